/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sampling over bytes in a program: something of n bytes is chosen with the probability
 * 1 - e^(-n/mean), independently of everything else, so that a point of a Poisson process over all
 * bytes falls into it. The chance that was used is sent with the sample, which stands for n /
 * chance bytes: sums are unbiased whatever the arithmetic below rounds off.
 */
#pragma once

#define CHANCE_CERTAIN (1ull << 32) /* chances are in units of 2^-32 */
#define CHANCE_MEAN_MAX (1ull << 26)

/* Never 0. `mean` is from 1 to CHANCE_MEAN_MAX. */
static inline __attribute__((always_inline)) unsigned long long chance_of(unsigned long long bytes,
                                                                          unsigned long long mean)
{
    if (bytes >= mean * 16)
        return CHANCE_CERTAIN;
    unsigned long long x = (bytes << 32) / mean;
    if (x < 1ull << 28) {
        unsigned long long square = x * x >> 32;
        unsigned long long chance = x - square / 2 + (square * x >> 32) / 6;
        return chance ? chance : 1;
    }
    /* The 256th part, where three terms are exact enough, and eight times squared. */
    unsigned long long part = x >> 8, square = part * part >> 32;
    unsigned long long rest = CHANCE_CERTAIN - part + square / 2 - (square * part >> 32) / 6;
    for (int i = 0; i < 8; i++)
        rest = rest * rest >> 32;
    return CHANCE_CERTAIN - rest;
}

static inline unsigned long long chance_stands_for(unsigned long long bytes,
                                                   unsigned long long chance)
{
    __extension__ typedef unsigned __int128 wide;
    wide weight = chance ? ((wide)bytes << 32) / chance : 0;
    return weight >> 63 ? 0 : (unsigned long long)weight;
}
