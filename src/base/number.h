/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of values from outside: they stop at the ends of the range instead of wrapping. */
#pragma once

#include <stdint.h>

static inline int64_t add_saturated(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static inline int64_t magnitude(int64_t value)
{
    return value == INT64_MIN ? INT64_MAX : value < 0 ? -value : value;
}
