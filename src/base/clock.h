/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in nanoseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Since some moment in the past, whatever the wall clock does. */
static inline int64_t monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}
