/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of threads went, from a profile of wall-clock time (wall/nanoseconds with the
 * label `state`): the sum of each kind of waiting, the kind that matters most, and the stack that
 * holds most of it. Threads that wait for work are idle, by rules on the functions that they wait
 * in; a wait for a mutex never is.
 *
 * Threads of Go programs only run goroutines. So the waits of goroutines are added
 * (goroutine_wall/nanoseconds with the label `state`); where these weren't measured, those of the
 * program's own profile of blocking (TRIAGE_BLOCK_TYPE). The program's profile of mutexes
 * (TRIAGE_MUTEX_TYPE) says who held locks.
 */
#pragma once

#include "base/error.h"
#include "profile/profile.h"

enum triage_kind {
    TRIAGE_COMPUTING,
    TRIAGE_STARVED, /* could run, and had no CPU */
    TRIAGE_LOCK,
    TRIAGE_DISK,
    TRIAGE_NETWORK,
    TRIAGE_PIPE,
    TRIAGE_CHILD,
    TRIAGE_IO_URING,
    TRIAGE_CHANNEL, /* of goroutines: for each other */
    TRIAGE_SLEEPING,
    TRIAGE_OTHER,
    TRIAGE_IDLE,
    TRIAGE_KINDS,
};

/* Types in nanoseconds beside wall. Those of Go's own profiles are called delay in both there. */
#define TRIAGE_GOROUTINE_TYPE "goroutine_wall"
#define TRIAGE_BLOCK_TYPE "block_delay"
#define TRIAGE_MUTEX_TYPE "mutex_delay"
#define TRIAGE_STATE_IDLE "idle" /* of goroutines of the runtime that wait for work */

/* A process that had the CPU while threads waited for it. */
#define TRIAGE_OTHERS_MAX 5
struct triage_other {
    uint32_t name, cgroup; /* strings; cgroup 0: not known */
    int64_t ns;
};

/* Pairs of waiter and holder, with the lock: functions by their ids, 0: not known. */
#define TRIAGE_EDGES_MAX 10
struct triage_edge {
    uint32_t waiter, lock, holder;
    int64_t ns;
};

/* A function that held contended locks, by the program's own profile of mutexes. */
#define TRIAGE_HOLDERS_MAX 5
struct triage_holder {
    uint32_t function;
    int64_t ns; /* that others waited */
};

struct triage {
    int64_t ns[TRIAGE_KINDS];
    int64_t error_ns[TRIAGE_KINDS]; /* standard errors, as the recording has them */
    double waits[TRIAGE_KINDS];     /* of how many independent waits stacks are; 0: not known */
    int64_t busy_ns;                /* all but idle */
    enum triage_kind verdict;
    uint32_t node; /* the stack with most of the verdict's time; 0: none */
    int64_t node_ns;
    uint32_t holder;   /* of a lock: the function that held it, by its id; 0: not known */
    int64_t holder_ns; /* waiting that it caused */
    uint32_t lock; /* the function whose name is that of the lock, "[lock NAME]"; 0: not known */
    int64_t lock_ns;
    struct triage_other others[TRIAGE_OTHERS_MAX]; /* most first */
    size_t other_count;
    struct triage_edge edges[TRIAGE_EDGES_MAX]; /* most first, whatever the verdict */
    size_t edge_count;
    struct triage_holder holders[TRIAGE_HOLDERS_MAX]; /* most first */
    size_t holder_count;
    int64_t mutex_ns;   /* of all holders */
    const char *target; /* options of `assay record` for it; NULL: not known. The caller's */
};

/* -ENODATA when the profile has no wall-clock time by state. Its stacks must have names. */
int triage_profile(const struct profile *profile, struct triage *ret_triage, struct error *error);

/* "computing", "lock": as JSON has it; and in words: "waiting for locks". */
const char *triage_kind_name(enum triage_kind kind);
const char *triage_kind_words(enum triage_kind kind);
/* The value of the label `state`; "" of idle, which is not one. */
const char *triage_kind_state(enum triage_kind kind);

/* The name in "[lock NAME]"; NULL: it is not one. */
const char *triage_lock_name(const char *function, size_t *ret_length);

/* The standard error of the share of a kind's time that one stack has; 0: not known. */
double triage_share_error(const struct triage *triage, enum triage_kind kind, double share);

/* The mark between where a thread waits for a lock and the stack of the lock's holder. */
#define TRIAGE_HOLDER_MARK "[lock holder]"

/* How exact the wall-clock time in a state is, as a comment of the profile: in seconds its total
 * and the total's standard error, and of how many independent waits its stacks are. */
#define TRIAGE_ERROR_FORMAT "wall time: %s %.6f s, standard error %.6f s, effective waits %.1f"
#define TRIAGE_ERROR_BYTES 160
