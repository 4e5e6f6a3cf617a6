// SPDX-License-Identifier: Apache-2.0
// Exponential gaps and sampling weights: see chance.h.

#include "heap/chance.h"

uint64_t chance_next(uint64_t *state)
{
    uint64_t word = *state += 0x9e3779b97f4a7c15ull;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    return word ^ word >> 31;
}

/* -log(number / 2^53) for 1 <= number <= 2^53. */
static double minus_log(uint64_t number)
{
    const double ln2 = 0.693147180559945309417;
    int exponent = 63 - __builtin_clzll(number);
    double mantissa = (double)number / (double)(1ull << exponent); /* from 1 to 2 */
    if (mantissa > 1.4142135623730951) {
        mantissa /= 2;
        exponent++;
    }
    /* log(m) = 2 atanh((m - 1) / (m + 1)); the last term is below 1e-12. */
    double root = (mantissa - 1) / (mantissa + 1), square = root * root, sum = 0;
    for (int odd = 15; odd >= 1; odd -= 2)
        sum = sum * square + 1.0 / odd;
    return (53 - exponent) * ln2 - 2 * root * sum;
}

int64_t chance_gap(uint64_t *state, uint64_t mean)
{
    return (int64_t)(minus_log((chance_next(state) >> 11) + 1) * (double)mean);
}

/* 1 - exp(-x) for x >= 0: a series for x / 1024, doubled ten times. */
static double hit_probability(double x)
{
    if (x > 40)
        return 1;
    double small = x / 1024;
    double hit =
        small *
        (1 - small / 2 * (1 - small / 3 * (1 - small / 4 * (1 - small / 5 * (1 - small / 6)))));
    for (int i = 0; i < 10; i++)
        hit = hit * (2 - hit);
    return hit;
}

uint64_t chance_weight(uint64_t size, uint64_t mean)
{
    if (!size || !mean)
        return size;
    double weight = (double)size / hit_probability((double)size / (double)mean);
    return weight < 9e18 ? (uint64_t)(weight + 0.5) : size;
}
