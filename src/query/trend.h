/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether values climb steadily: Sen's slope with an interval over pairs of points of one block (a
 * process between two restarts), and tests that tell a leak from a cache that fills and from a
 * sawtooth. docs/watch.md has the method.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trend_point {
    double time, value;
    uint32_t block; /* only points of one block are compared */
};

#define TREND_POINTS_MAX 4096     /* the first ones count */
#define TREND_BLOCK_POINTS_MAX 64 /* likewise, of each block */
#define TREND_BLOCK_POINTS_MIN 6  /* blocks with fewer don't count */

struct trend {
    double slope, low, high; /* value by time; low and high: 99.9%, INFINITY without a bound */
    double late, late_low;   /* of the later half of each block; low: 97.5% */
    double climb;            /* from the first to the last quarter of blocks, added up */
    double fall;             /* the deepest fall below an earlier value, likewise */
    double span;             /* of time, of the longest block */
    size_t points;
};

/* Points by block, then by time. False: too few of them. */
bool trend_of(const struct trend_point *points, size_t count, struct trend *ret_trend);

/* It certainly climbs by at least so much, still does in the later half, and never fell by much. */
bool trend_climbs(const struct trend *trend, double least_slope);
