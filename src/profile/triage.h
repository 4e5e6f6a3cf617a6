/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of threads went, from a profile of wall-clock time (wall/nanoseconds with the
 * label `state`): the sum of each kind of waiting, the kind that matters most, and the stack that
 * holds most of it. Threads that wait for work are idle, by rules on the functions that they wait
 * in; a wait for a mutex never is.
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
    TRIAGE_SLEEPING,
    TRIAGE_OTHER,
    TRIAGE_IDLE,
    TRIAGE_KINDS,
};

struct triage {
    int64_t ns[TRIAGE_KINDS];
    int64_t busy_ns; /* all but idle */
    enum triage_kind verdict;
    uint32_t node; /* the stack with most of the verdict's time; 0: none */
    int64_t node_ns;
    uint32_t holder;   /* of a lock: the function that held it, by its id; 0: not known */
    int64_t holder_ns; /* waiting that it caused */
};

/* -ENODATA when the profile has no wall-clock time by state. Its stacks must have names. */
int triage_profile(const struct profile *profile, struct triage *ret_triage, struct error *error);

/* "computing", "lock": as JSON has it; and in words: "waiting for locks". */
const char *triage_kind_name(enum triage_kind kind);
const char *triage_kind_words(enum triage_kind kind);

/* The mark between where a thread waits for a lock and the stack of the lock's holder. */
#define TRIAGE_HOLDER_MARK "[lock holder]"
