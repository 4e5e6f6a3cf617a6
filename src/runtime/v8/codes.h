/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JavaScript functions that samples have met, by identity (bpf/runtime.h), with their names and
 * files: each is read once, as soon as it is known of. The garbage collector moves objects: what
 * was read counts only if all of it has the right types, and is the same before and after. One
 * thread at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/idtable.h"
#include "runtime/memory.h"
#include "runtime/v8/binary.h"

#define V8_CODES_MAX (1u << 17)
#define V8_CODES_BYTES_MAX (24u << 20)
#define V8_NAME_MAX 512 /* characters; longer names are cut */

/* The members of bpf_code_event: all are tagged pointers. */
struct v8_mark {
    uint64_t shared, name, script;
};

struct v8_known {
    uint64_t identity;
    uint32_t pid;
    bool named, ambiguous;
    struct v8_mark mark;
    const char *function; /* "(anonymous)" for those without a name */
    const char *file;     /* "": built in */
};

struct v8_codes {
    struct v8_known *list;
    size_t count, capacity;
    struct id_table index; /* by identity */
    struct arena arena;
    uint64_t named, unreadable; /* so far */
};

void v8_codes_release(struct v8_codes *codes);
void v8_codes_clear(struct v8_codes *codes);
bool v8_codes_full(const struct v8_codes *codes);

/* Reads a function that was met in the process; binary is NULL when that is not known. */
void v8_codes_take(struct v8_codes *codes, const struct v8_binary *binary,
                   const struct runtime_memory *memory, uint32_t pid, uint64_t identity,
                   const struct v8_mark *mark);
/* NULL: it was never met. */
const struct v8_known *v8_codes_find(const struct v8_codes *codes, uint64_t identity);
