/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time over time: what has to be done once and is dear, as reading the symbol table of a large
 * program, is followed by a while in which it is paid for. Pure logic: it reads no clock.
 */
#pragma once

#include <stdint.h>

struct pace {
    double share;      /* of one CPU that may be used, over time; 0: as much as it takes */
    int64_t credit_ns; /* CPU time that is left; below 0 it is owed */
    int64_t now_ns;
};

/* Unused budget is saved for at most this time. */
#define PACE_SAVED_NS (10 * 1000000000ll)

/* With nothing saved. */
void pace_init(struct pace *pace, double share, int64_t now_ns);
void pace_spend(struct pace *pace, int64_t cpu_ns);

/* CPU time that is granted besides the share. It pays what is owed first, and is saved like the
 * share's. */
void pace_earn(struct pace *pace, int64_t cpu_ns);

/* How long it takes until nothing is owed any more; 0 when nothing is. */
int64_t pace_owed_ns(struct pace *pace, int64_t now_ns);
