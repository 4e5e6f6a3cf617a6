/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that count from the start of their process, as Go's alloc_space and mutex delays do,
 * become what was added since the last profile of the same series. What is remembered of a series
 * is a value per stack; a stack is known by its functions and lines, not by addresses, and by the
 * labels of its sample.
 *
 * The first profile of a series yields nothing. A value that went down means that the process was
 * started again: that is counted, and the profile is a first one. A stack that isn't there any more
 * is remembered for some profiles, so that it isn't new when it comes back. When what is remembered
 * grows beyond its limit, the series that was heard of longest ago is forgotten.
 *
 * Any thread may call any of these.
 */
#pragma once

#include "profile/profile.h"

struct deltas;

struct deltas *deltas_new(size_t limit_bytes);
void deltas_free(struct deltas *deltas); /* takes NULL */

enum delta_outcome {
    DELTA_FIRST,   /* nothing to compare with */
    DELTA_RESTART, /* nothing that compares */
    DELTA_STALE,   /* older than what is known: nothing, and nothing changes */
    DELTA_KNOWN,   /* the values are differences now */
};

/* A step that may have to be taken back, because what came of it could not be stored. */
struct delta_step {
    struct delta_step *next; /* for lists of the caller's */
    enum delta_outcome outcome;
    int64_t since_ns; /* of DELTA_KNOWN: time between both profiles; 0 where they have no times */
    uint64_t key, version, before_version;
    struct delta_table *before; /* what was remembered */
    int64_t before_ns;
};

/* Replaces the values of the types for which `cumulative` is true: by differences, or by zeroes
 * when the outcome is not DELTA_KNOWN. `key` names the series. `complete`: the sender never omits a
 * stack, as Go's runtime; when most stacks are gone, it is another process, even if no value of the
 * remaining ones went down. */
struct delta_step *deltas_apply(struct deltas *deltas, uint64_t key, const bool *cumulative,
                                bool complete, struct profile *profile);

/* Ends a step: for good, or as if it had never been. Frees it. */
void deltas_commit(struct deltas *deltas, struct delta_step *step);
void deltas_revert(struct deltas *deltas, struct delta_step *step);

struct delta_stats {
    uint64_t series, bytes;                     /* at present */
    uint64_t first, restarts, stale, forgotten; /* ever: profiles, and series for lack of room */
};
struct delta_stats deltas_stats(struct deltas *deltas);

/* Whether a type of this name in a profile of Go's counts from the start: alloc_objects,
 * alloc_space, contentions, delay. */
bool delta_is_known_type(const char *type);
