/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From exact totals and sampled waits of threads to rows of a profile. A wait that was sent counts
 * for the inverse of its probability; then the waits of a thread in one state are scaled, so that
 * they add up to what the thread really spent in it. Private to capture/wall/.
 *
 * One per collector, which calls it from one thread. Everything belongs to the recorder's profile
 * of now, and goes with wall_accounts_settle.
 */
#pragma once

#include "base/idtable.h"
#include "bpf/wall.h"
#include "capture/record/recorder.h"

#define WALL_VALUE_TYPES 6
struct wall_account;
struct wall_pool;
struct wall_pending;

/* How well the total of a state is known. */
struct wall_error {
    double total_ns;
    double variance;         /* of the total */
    double weight, weight_2; /* of sampled waits, and the sum of squares */
    uint64_t waits;
    double slice_ns; /* of the total, until the last slice ended */
    double rates,
        rates_2; /* of slices: time in this state, times what they stand for; its square */
};

struct wall_accounts {
    struct recorder *recorder;
    unsigned modes; /* enum capture_mode */
    bool begun;     /* waits are chosen when they begin: BPF_WAIT_BEGUN */
    uint32_t epoch;
    unsigned types[WALL_VALUE_TYPES]; /* of the profile */
    struct wall_account *list;
    size_t count, capacity;
    struct id_table index;
    struct wall_pool *pools;
    size_t pool_count, pool_capacity;
    struct id_table pool_index;
    struct wall_pending *pending;
    size_t pending_count, pending_capacity;
    struct wall_names *names; /* of threads and others, for this profile */
    struct wall_locks *locks;
    double weight;         /* of times in this slice */
    unsigned slices;       /* so far */
    double spans, spans_2; /* what they stand for, in ns; sum, and of squares */
    struct wall_error errors[BPF_STATES];
};

void wall_accounts_init(struct wall_accounts *accounts, struct recorder *recorder, unsigned modes);
void wall_accounts_release(struct wall_accounts *accounts);

/* A tick of the CPU clock; a wait with its stack. They stand for `scale` threads. */
void wall_accounts_tick(struct wall_accounts *accounts, const struct recorder_sample *sample,
                        double scale);
void wall_accounts_wait(struct wall_accounts *accounts, const struct recorder_sample *sample,
                        const struct bpf_sample_event *event, double scale);

/* A thread spent this; `before` (may be NULL) is what was counted already. It stands for `scale`
 * threads: it was one of those that are told with probability 1 / scale. */
void wall_accounts_exact(struct wall_accounts *accounts, const struct bpf_thread *thread,
                         const struct bpf_thread *before, double scale);

/* A slice of time is about to end in which everything was measured: it stands for `weight` times
 * its length, and so do the exact times that are added before wall_accounts_end_slice(). */
void wall_accounts_weigh(struct wall_accounts *accounts, double weight);
void wall_accounts_end_slice(struct wall_accounts *accounts, int64_t length_ns);

/* Adds the rows to the profile, and comments that say how exact they are. The profile lasted for
 * `factor` times what its slices stand for, and the part `measured` of it was measured. */
void wall_accounts_settle(struct wall_accounts *accounts, double factor, double measured);
