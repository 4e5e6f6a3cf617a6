/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code as text, in the syntax of objdump and gdb (AT&T's), by Capstone. To be called in a
 * confined process where the code can't be trusted: see symbol/disassembly.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_64_INSTRUCTION_TEXT_BYTES 256 /* Capstone's own limits add up to less */

struct x86_64_line {
    uint8_t length;  /* 1 to 15 */
    uint64_t target; /* of a jump or a call to a fixed address; 0 for all else */
    char text[X86_64_INSTRUCTION_TEXT_BYTES];
};

typedef void x86_64_line_fn(void *context, const struct x86_64_line *line);

/* Gives every instruction of `code`, which begins at `address`: their lengths add up to `length`.
 * Bytes that are not an instruction, or unknown to Capstone, become ".byte 0x62, ...", with the
 * right length where src/arch can tell that. False when Capstone can't be started. */
bool x86_64_disassemble(const uint8_t *code, size_t length, uint64_t address, x86_64_line_fn *put,
                        void *context);
