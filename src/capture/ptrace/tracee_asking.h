/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a tracer asks to stop for a sample, and when, so that the places of samples are where CPU
 * time is spent. Threads that run are asked at each look, those that sleep are left alone.
 *
 * A thread that waits for a CPU when it is asked is where it lost the last one, and that is more
 * often the end of a system call than its work is; a new one is at its beginning. The same is true
 * of one that has stopped for another reason just now, such as a fork. So it is asked again once it
 * has run for a random time, about what it gets at once.
 *
 * The time that looks and samples take is bounded: thousands of threads lower the rate instead of
 * taking the machine. By the tracing thread only.
 */
#pragma once

#include "capture/ptrace/tracees.h"

struct asking {
    int64_t period_ns; /* between looks, at least */
    uint64_t looks;
    int64_t next_ns;  /* look */
    int64_t again_ns; /* when the first of those that are asked again is due, */
    int64_t pause_ns; /* but not before */
    int64_t cost_ns;  /* of CPU time, since the last look */
    uint64_t random;
};

void asking_init(struct asking *asking, int64_t period_ns);

/* Asks those whose turn it is, if any. Returns when there may be something to do again. */
int64_t asking_turn(struct asking *asking, struct tracees *tracees);

/* The thread goes on after a stop. */
void asking_resumed(const struct tracees *tracees, struct tracee *tracee);

/* The thread has stopped because it was asked to: is that a place for a sample? If not, it will be
 * asked again. */
bool asking_accepts(struct asking *asking, struct tracees *tracees, struct tracee *tracee);

/* Cost of a sample, from here to there. */
int64_t asking_begin_cost(void);
void asking_end_cost(struct asking *asking, int64_t begin);
