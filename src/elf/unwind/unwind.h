/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking a stack in user space, by the same rows and rules as the walk in the kernel: for stacks
 * that were copied (a process's first samples, recordings without privilege) and for processes that
 * are read while they are stopped.
 */
#pragma once

#include "elf/unwind/rows.h"

/* By DWARF number; `known` has a bit for each that the innermost frame knows. ip, sp and fp are
 * enough for all but a few instructions of hand-written code. */
struct unwind_registers {
    uint64_t value[UNWIND_REGISTERS];
    uint32_t known;
};

/* The three that matter. */
struct unwind_registers unwind_registers_of(uint64_t ip, uint64_t sp, uint64_t fp);

/* "complete", "truncated", ...: for programs */
const char *unwind_end_name(enum unwind_end end);
/* Why a walk that ended so has not all callers, and what helps: for people. */
const char *unwind_end_reason(enum unwind_end end);

enum {
    UNWIND_FRAME_EXACT = 1,    /* the instruction itself: innermost, or interrupted by a signal; all
                                  other addresses are return addresses, one behind the call */
    UNWIND_FRAME_GUESSED = 2,  /* found by a frame pointer in code without rows */
    UNWIND_FRAME_PLANTED = 4,  /* the first function of a coroutine: its start, which nobody called;
                                  exact, but not interrupted */
    UNWIND_FRAME_RUNTIME = 8,  /* a runtime has stepped through it */
    UNWIND_FRAME_ROWLESS = 16, /* code without rows, whose frame is found by its frame pointer */
};

struct unwind_frame {
    uint64_t address;
    uint64_t sp; /* the stack pointer there: where its part of the stack begins */
    uint64_t fp; /* the frame pointer; 0: not known */
    uint32_t flags;
};

/* The mapping at an address. */
struct unwind_place {
    const struct unwind_rows *rows; /* NULL: code without rows, such as Go's or a JIT's */
    uint64_t bias;                  /* address in the process - address in the file */
    bool generated;                 /* in no file: a thread never begins there */
};

/* False when the process has no code there. */
typedef bool (*unwind_find_fn)(void *context, uint64_t address, struct unwind_place *ret_place);
/* 8 bytes of the process's memory; false when they can't be read. */
typedef bool (*unwind_read_fn)(void *context, uint64_t address, uint64_t *ret_word);

/* Code that a runtime knows to walk: steps to the caller. Returns UNWIND_RUNTIME_DONE, with the
 * caller's registers, UNWIND_RUNTIME_NATIVE for other code, or how the walk ends. `read` is for the
 * stack, and `exact` is as in frames. */
enum { UNWIND_RUNTIME_DONE = -1, UNWIND_RUNTIME_NATIVE = -2 };
typedef int (*unwind_runtime_fn)(void *context, unwind_read_fn read, void *read_context, bool exact,
                                 struct unwind_registers *registers);

struct unwind_input {
    struct unwind_registers registers;
    /* The copy: `stack_bytes` bytes from `stack_address` on. */
    const uint8_t *stack;
    size_t stack_bytes;
    uint64_t stack_address;
    const struct unwind_rules *rules;
    unwind_find_fn find;
    unwind_read_fn read;       /* for what is not in the copy; may be NULL */
    void *context;             /* for both */
    bool in_system_call;       /* ip is behind a `syscall` instruction */
    unwind_runtime_fn runtime; /* may be NULL */
    void *runtime_context;
};

/* Frames from the innermost outwards: at most `frame_limit`, of which the first is registers.ip
 * itself. Addresses outside of code are not added. */
enum unwind_end unwind_walk(const struct unwind_input *input, struct unwind_frame *frames,
                            size_t frame_limit, size_t *ret_count);
