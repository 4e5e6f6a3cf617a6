/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that look random and follow from a seed, the same on every machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/idtable.h"

struct random {
    uint64_t state;
};

/* A stream of its own for each (seed, a, b, c). */
static inline struct random random_start(uint64_t seed, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t state = hash_word(seed + 0x9e3779b97f4a7c15ull);
    state = hash_word(state ^ ((uint64_t)a << 32 | b)) + c;
    return (struct random){.state = hash_word(state + 0x9e3779b97f4a7c15ull)};
}

static inline uint64_t random_next(struct random *random)
{
    random->state += 0x9e3779b97f4a7c15ull;
    return hash_word(random->state);
}

/* 0 to limit - 1; limit > 0. */
static inline uint32_t random_below(struct random *random, uint32_t limit)
{
    return (uint32_t)((random_next(random) >> 32) * limit >> 32);
}

/* 0 up to, but not including, 1. */
static inline double random_share(struct random *random)
{
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

static inline bool random_percent(struct random *random, uint32_t percent)
{
    return random_below(random, 100) < percent;
}
