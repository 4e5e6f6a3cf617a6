/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the programs specific to x86-64: the location of its registers. */
#pragma once

#include "bpf/types.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs {
    unsigned long di;
    unsigned long orig_ax;
};
#pragma clang attribute pop
#define SYSTEM_CALL(registers) ((registers)->orig_ax)
#define SYSTEM_CALL_ARGUMENT(registers) ((registers)->di)           /* the first */
#define IN_SYSTEM_CALL(registers) ((__s64)(registers).orig_ax >= 0) /* struct user_registers */
#define THREAD_POINTER(task) ((task)->thread.fsbase)
/* execve and execveat */
#define IN_EXEC(registers) ((registers).orig_ax == 59 || (registers).orig_ax == 322)
#define NO_SYSTEM_CALL (~0ull) /* the kernel was entered by an exception or an interrupt */

/* As the kernel saves them. A perf event's context begins with the same. */
struct user_registers {
    __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
    __u64 orig_ax;
    __u64 ip, cs, flags, sp, ss;
};

/* DWARF numbers. */
enum { REGISTER_BASE = 3, REGISTER_FP = 6, REGISTER_SP = 7, REGISTER_IP = 16 };
enum { REGISTER_ARGUMENT = 5 }; /* a system call's first */
enum { REGISTER_RESULT = 0 };   /* of a function */

#define REGISTERS_ALL ((1u << UNWIND_REGISTERS) - 1)

/* How many events a sample stands for: it follows the registers in a perf event's context. */
#define LOAD_PERIOD(from)                                                                          \
    (*(volatile __u64 *)((const char *)(from) + sizeof(struct user_registers)))

/* By hand, since copying a context as a whole is not allowed. */
#define LOAD(from, name)                                                                           \
    (*(volatile __u64 *)((const char *)(from) + offsetof(struct user_registers, name)))
#define LOAD_REGISTERS(from, value)                                                                \
    do {                                                                                           \
        (value)[0] = LOAD(from, ax), (value)[1] = LOAD(from, dx), (value)[2] = LOAD(from, cx);     \
        (value)[3] = LOAD(from, bx), (value)[4] = LOAD(from, si), (value)[5] = LOAD(from, di);     \
        (value)[6] = LOAD(from, bp), (value)[7] = LOAD(from, sp), (value)[8] = LOAD(from, r8);     \
        (value)[9] = LOAD(from, r9), (value)[10] = LOAD(from, r10);                                \
        (value)[11] = LOAD(from, r11), (value)[12] = LOAD(from, r12);                              \
        (value)[13] = LOAD(from, r13), (value)[14] = LOAD(from, r14);                              \
        (value)[15] = LOAD(from, r15), (value)[16] = LOAD(from, ip);                               \
    } while (0)
