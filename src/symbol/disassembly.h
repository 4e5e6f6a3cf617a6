/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of a function. Its code can be anybody's, so a confined child (confined.h)
 * disassembles it: it gets the bytes and no file, and its answer is checked like any other input.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "symbol/confined.h"

#define DISASSEMBLY_BYTES_MAX (1u << 20) /* of a function; interpreters have about 100 KiB */

struct instruction {
    uint64_t address; /* in the file's own terms */
    uint64_t target;  /* of a jump or a call to a fixed address; 0 for all else */
    uint8_t length;
    const char *text; /* external: to be escaped */
};

struct disassembly {
    struct instruction *instructions; /* in ascending order, without holes */
    size_t count;
    struct buffer answer; /* holds the texts */
};

int disassembly_make(const void *code, size_t length, uint64_t address,
                     struct disassembly *ret_disassembly, struct error *error);
void disassembly_release(struct disassembly *disassembly);

/* Takes the output of a child for `length` bytes of code apart. `output` is taken over when it is
 * right. */
int disassembly_read(struct buffer *output, size_t length, uint64_t address,
                     struct disassembly *ret_disassembly, struct error *error);

extern const struct confined_program disassembly_program;
