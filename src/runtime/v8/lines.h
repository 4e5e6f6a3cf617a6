/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of positions in scripts. V8 knows in which character of its script a function begins; where
 * the lines end, is found in the source text, once per script. One thread at a time.
 */
#pragma once

#include "runtime/codes.h"
#include "runtime/v8/binary.h"

#define V8_SCRIPTS_MAX 4096                 /* beyond these, all are forgotten and read anew */
#define V8_SCRIPTS_BYTES_MAX (8u << 20)     /* likewise */
#define V8_SOURCE_CHARACTERS_MAX (8u << 20) /* longer scripts have no lines */

struct v8_script {
    uint32_t pid, length;     /* length of the source, in characters */
    uint64_t address, source; /* of the script and of its source, as tagged pointers */
    uint32_t *ends;           /* of lines: positions in the source */
    size_t count;
};

struct v8_scripts {
    struct v8_script *list;
    size_t count, capacity;
    size_t bytes;
};

void v8_scripts_release(struct v8_scripts *scripts);

/* What a reader of functions works with. */
struct v8_context {
    const struct v8_binary *binary;
    struct v8_scripts *scripts; /* NULL: nobody asks for lines */
    uint32_t pid;
};

/* The line of a position in a script, from 1 on; 0: the source can't be read. */
uint32_t v8_scripts_line(const struct v8_context *context, const struct runtime_memory *memory,
                         uint64_t script, uint32_t position);
