/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions are responsible for what grew. A function that became slower makes all of its
 * callers grow, and one that does more makes its callees grow: of these, only the responsible
 * subtree is a cause.
 */
#pragma once

#include "compare/compare.h"

#define CAUSES_MAX 8            /* in one comparison; the largest changes first */
#define CAUSE_CANDIDATES_MAX 64 /* functions that grew and are looked at, likewise */

/* Of both sides, the profile whose first type was compared, its names, and what its values are
 * divided by. */
struct cause_side {
    const struct profile *profile;
    const struct naming *naming;
    double exposure;
};

/* Keeps the new causes among `count` functions that grew, at most CAUSE_CANDIDATES_MAX of them, and
 * returns how many those are; their order stays. Of those that are `known`, neither they nor what
 * has the same cause are kept. */
size_t causes_keep(const struct cause_side sides[static COMPARE_SIDES],
                   const struct compare_row **grown, const bool *known, size_t count);
