/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many context switches are followed, so that programs cost no more than they may: which part
 * of the threads, and in which slices of the time. It knows no kernel: told what programs have cost
 * so far, it says what they are to do.
 *
 * Slices are chosen in advance and by chance, one from each period, so that what happens in them
 * stands for the period. A debt makes the limit a hard one: what programs cost beyond it is paid
 * for by not measuring. That happens when the load rises within a slice, or when the smallest part
 * is still too expensive. Such a slice stands for the time that it is paid in, too: otherwise busy
 * times would count for less than calm ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WALL_PACE_FOLLOW_MIN (1.0 / 64)
#define WALL_PACE_SHARE_MIN (1.0 / 16)
#define WALL_PACE_TURN_NS 100000000ll

struct wall_pace {
    unsigned cpus;
    double cost_share; /* that programs may take of all CPUs; 0: any. May be changed. */

    /* Orders to the programs, which may lower `follow` by themselves. */
    double follow; /* the part of the threads */
    double share;  /* of the time */
    bool resting;  /* not now */
    int64_t
        until_ns; /* of a rest that has begun: the slice before it stands for the time to here */

    int64_t slice_ns;                    /* length of slices */
    int64_t period_ns, begin_ns, end_ns; /* the end of this period; its slice */
    bool paying;                         /* resting until `debt_ns` is gone */
    double debt_ns;                      /* CPU time beyond the limit; below 0: saved */
    uint64_t cost_ns;
    int64_t turned_ns, calm_ns;           /* the last turn; when `follow` was last changed */
    double measured_ns, measured_cost_ns; /* since the last time that the parts were set */
};

void wall_pace_init(struct wall_pace *pace, unsigned cpus, double cost_share, int64_t now_ns,
                    uint64_t cost_ns);

/* To be called a few times a second; more often than WALL_PACE_TURN_NS has no effect. `cost_ns` is
 * the CPU time of programs and of the edges of slices so far, `follow` the part of the threads that
 * is followed, `edges_ns` what the edges of a slice cost, and `chance` a random number below 1.
 * Afterwards `follow` and `resting` may be others. */
void wall_pace_turn(struct wall_pace *pace, int64_t now_ns, uint64_t cost_ns, double follow,
                    int64_t edges_ns, double chance);

/* Measuring goes on after it was turned off, because it cost too much: with a small part. */
void wall_pace_resume(struct wall_pace *pace, int64_t now_ns, uint64_t cost_ns);
