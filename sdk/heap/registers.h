/* SPDX-License-Identifier: Apache-2.0 */
/* Initial registers for unwinding, of the function that this is inlined into. x86-64 only. */
#pragma once

#include <stdint.h>

struct own_registers {
    uint64_t ip, sp, fp, base; /* as src/arch/x86_64/registers.h calls them */
};

static inline __attribute__((always_inline)) struct own_registers registers_read(void)
{
    struct own_registers own;
    __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2\n\tmov %%rbx, %3"
                     : "=&r"(own.ip), "=&r"(own.sp), "=&r"(own.fp), "=&r"(own.base));
    return own;
}
