/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two programs, or libraries, of the same code at the same addresses under other names: built with
 * NAME(x) as a_x or b_x. They differ in data alone, the order in which the functions call each
 * other: where one is taken for the other, the chain is one that neither has.
 *
 *     a: a_start > a_first > a_second > a_third > a_leaf
 *     b: b_start > b_third > b_second > b_first > b_leaf
 */
#pragma once

#include "known.h"

#define JOIN(a, b) a##_##b
#define JOINED(a, b) JOIN(a, b)
#define NAME(x) JOINED(LETTER, x)

struct step {
    void (*call)(const struct step *next);
};

void NAME(start)(void);
CALL void NAME(leaf)(const struct step *next)
{
    (void)next;
    spin(UNIT);
}
CALL void NAME(first)(const struct step *next)
{
    next->call(next + 1);
    STAY;
}
CALL void NAME(second)(const struct step *next)
{
    next->call(next + 1);
    __asm__ volatile("nop" ::: "memory");
}
CALL void NAME(third)(const struct step *next)
{
    next->call(next + 1);
    __asm__ volatile("nop; nop" ::: "memory");
}

/* In writable memory, so that the two have the same sections. */
static struct step NAME(steps)[] = {
#if LETTER_NUMBER == 1
    {NAME(first)},
    {NAME(second)},
    {NAME(third)},
#else
    {NAME(third)},
    {NAME(second)},
    {NAME(first)},
#endif
    {NAME(leaf)},
};

CALL void NAME(start)(void)
{
    struct step *volatile steps = NAME(steps);
    steps->call(steps + 1);
    STAY;
}
