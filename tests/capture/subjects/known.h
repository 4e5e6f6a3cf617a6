/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs with known call chains share: functions that stay functions, work of a known size,
 * and the CPU time of each section as the program itself measures it.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __clang__
#define CALL __attribute__((noinline))
#else
#define CALL __attribute__((noinline, noclone))
#endif

/* Behind a call, it keeps the call from becoming a jump. */
#define STAY __asm__ volatile("" ::: "memory")

/* A unit of work: tens of microseconds, and a loop that is the same wherever it stands. */
#define UNIT 100000

static inline __attribute__((always_inline)) void spin(uint64_t rounds)
{
    __asm__ volatile(".p2align 6\n1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
}

static inline int64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
