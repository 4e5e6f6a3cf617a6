/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers by what they are for, so that nothing outside this directory names one of x86-64. The
 * numbers are DWARF's. src/arch/x86_64/x86_64.bpf.h is the same for programs in the kernel.
 */
#pragma once

#include <asm/perf_regs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

enum {
    REGISTER_BASE = 3,     /* rbx: callee-saved; lazy binding finds its frame by it */
    REGISTER_ARGUMENT = 5, /* rdi: a call's first */
    REGISTER_FP = 6,       /* rbp */
    REGISTER_SP = 7,       /* rsp */
    REGISTER_IP = 16,      /* rip */
    REGISTERS = 17,
};

/* The first arguments of a call. */
static const uint8_t registers_arguments[] = {REGISTER_ARGUMENT, 4, 1};

/* The registers that perf events sample, in the kernel's order: by bit number. */
#define REGISTERS_PERF                                                                             \
    (1ull << PERF_REG_X86_BX | 1ull << PERF_REG_X86_DI | 1ull << PERF_REG_X86_BP |                 \
     1ull << PERF_REG_X86_SP | 1ull << PERF_REG_X86_IP)
static const uint8_t registers_perf_order[] = {REGISTER_BASE, REGISTER_ARGUMENT, REGISTER_FP,
                                               REGISTER_SP, REGISTER_IP};

/* Of a thread that is stopped. */
struct thread_registers {
    uint64_t value[REGISTERS];
    uint64_t thread_pointer;
    bool in_system_call;
};

static inline struct thread_registers registers_of_thread(const struct user_regs_struct *user)
{
    return (struct thread_registers){.value = {user->rax, user->rdx, user->rcx, user->rbx,
                                               user->rsi, user->rdi, user->rbp, user->rsp, user->r8,
                                               user->r9, user->r10, user->r11, user->r12, user->r13,
                                               user->r14, user->r15, user->rip},
                                     .thread_pointer = user->fs_base,
                                     .in_system_call = (int64_t)user->orig_rax >= 0};
}

/* The number of a register by its assembler name, of any size: "rdi", "edi", "dil". */
bool register_by_name(const char *name, size_t length, unsigned *ret_number);
