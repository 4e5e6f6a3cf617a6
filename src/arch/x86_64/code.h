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

/* Control doesn't continue after it: code there is reached from elsewhere, if at all. */
bool x86_64_ends_path(const struct x86_64_instruction *instruction);
/* A call, or an address that is taken to be called later. `end` is where the instruction ends;
 * `is_fixed`: the program is always at the same addresses. */
bool x86_64_takes_address(const struct x86_64_instruction *instruction, uint64_t end, bool is_fixed,
                          uint64_t *ret_address);
/* Padding between functions. */
bool x86_64_is_padding(const struct x86_64_instruction *instruction);

/* Rules in ascending order, without holes: from `offset` on, for `length` bytes. */
typedef void x86_64_rule_fn(void *context, uint32_t offset, uint32_t length,
                            const struct unwind_rule *rule);

/* The usual instructions for that are in it. */
bool x86_64_sets_frame_pointer(const uint8_t *code, size_t length);
/* The fallback where a function can't be followed: the frame pointer, or LOST if it has none. */
enum unwind_cfa x86_64_code_unknown(const uint8_t *code, size_t length);

/*
 * Code where nobody knows which functions begin where. What is on the stack at an instruction is
 * what the code behind it takes off until it returns, so that is found from anywhere inside of a
 * function, and code that reaches no return has no rules.
 */
struct x86_64_region;

struct x86_64_region *x86_64_region_new(size_t bytes_max);
void x86_64_region_free(struct x86_64_region *region);

/* Known states at the beginnings of paths. */
enum x86_64_start { X86_64_START_ANYWHERE, X86_64_START_FUNCTION, X86_64_START_PROGRAM };

struct x86_64_code {
    const uint8_t *bytes;
    size_t length;
    const uint8_t *functions; /* not 0 where one begins, as far as calls tell: a call right before
                                 it never returns */
};

/* The code of the calls that follow, which has to stay as it is until another is set; what
 * `functions` says may change. False where there is no room for so much. */
bool x86_64_region_set(struct x86_64_region *region, const struct x86_64_code *code);

/* Follows the paths from `offset` on. At most `*steps` instructions are looked at, and subtracted.
 * Rules in ascending order, with holes where no path leads; false, and nothing is reported, where
 * they can't be found. */
bool x86_64_region_rules(struct x86_64_region *region, size_t offset, enum x86_64_start start,
                         uint64_t *steps, x86_64_rule_fn *put, void *context);

/* When that was false: its stack can't be followed. Otherwise it reaches no return, and may be part
 * of a function that is elsewhere, which may keep a frame pointer. */
bool x86_64_region_is_lost(const struct x86_64_region *region);

/* The rules of one function; `is_entry`: it is where the kernel starts the program. False, and
 * nothing is reported, when its code can't be followed. */
bool x86_64_code_rules(const uint8_t *code, size_t length, bool is_entry, x86_64_rule_fn *put,
                       void *context);
