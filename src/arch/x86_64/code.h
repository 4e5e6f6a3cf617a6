/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rules of functions that have no call frame information, from their code: what is pushed,
 * and by how much the stack pointer is moved, on every path from the function's start. That is what
 * compilers write down as call frame information, and the rules agree with it for nearly all code
 * of a C library; where paths disagree, or the code does something else to the stack pointer, there
 * are none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/unwind_rule.h"

#define X86_64_FUNCTION_BYTES_MAX 65536

/* An instruction, as far as the stack is concerned. */
struct x86_64_instruction {
    uint8_t length;
    uint8_t map; /* 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a; others are vector instructions' */
    uint8_t opcode;
    uint8_t rex;
    uint8_t modrm; /* where there is one, and */
    uint8_t sib;
    bool has_modrm;
    int32_t displacement;
    int64_t immediate; /* or the distance of a jump */
};

/* False when it is not one, or longer than `room`. */
bool x86_64_decode(const uint8_t *code, size_t room, struct x86_64_instruction *ret_instruction);

/* Rules in ascending order, without holes: from `offset` on, for `length` bytes. */
typedef void x86_64_rule_fn(void *context, uint32_t offset, uint32_t length,
                            const struct unwind_rule *rule);

/* The fallback where code can't be followed: the frame pointer, if the function sets one up. */
enum unwind_cfa x86_64_code_unknown(const uint8_t *code, size_t length);

/* The rules of one function; `is_entry`: it is where the kernel starts the program. False, and
 * nothing is reported, when its code can't be followed. */
bool x86_64_code_rules(const uint8_t *code, size_t length, bool is_entry, x86_64_rule_fn *put,
                       void *context);
