/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function and what is around it: who calls it, what it calls, and both as whole trees. A stack
 * counts once, by the outermost of the function's frames on it: what is above that goes into one
 * tree, upside down, what is below into the other, so that both trees' totals are the function's.
 */
#pragma once

#include "profile/views/calltree.h"
#include "profile/views/rank.h"

struct sandwich {
    int64_t flat, cumulative, total;
    struct ranking callers, callees; /* direct ones; see rank_neighbours */
    struct profile above, below;     /* each stack begins with the function */
};

void sandwich_release(struct sandwich *sandwich);
#define _cleanup_sandwich_ __attribute__((cleanup(sandwich_release)))

/* The stacks of a profile's first type by function, made simpler: `ret_simple` is initialised here.
 */
int sandwich_simplify(const struct profile *profile, const struct calltree_simpler *simpler,
                      struct profile *ret_simple, struct error *error);

/* Of the profile's first type. False when no stack has a function of that name; release it even
 * then. */
bool sandwich_init(struct sandwich *sandwich, const struct profile *profile,
                   const struct naming *naming, const char *function);
