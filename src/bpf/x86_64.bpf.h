/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is particular to x86-64 in the programs: where its registers are. */
#pragma once

/* As the kernel saves them. A perf event's context begins with the same. */
struct user_registers {
    __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
    __u64 orig_ax;
    __u64 ip, cs, flags, sp, ss;
};

/* DWARF numbers. */
enum { REGISTER_BX = 3, REGISTER_BP = 6, REGISTER_SP = 7, REGISTER_IP = 16 };

#define REGISTERS_ALL ((1u << UNWIND_REGISTERS) - 1)

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
