/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain difference of two profiles, function by function. The base is scaled first, so that
 * runs of different length or load can be compared.
 */
#pragma once

#include "profile/naming.h"
#include "profile/profile.h"
#include "profile/views/rank.h"

struct diff_side {
    const struct profile *profile;
    const struct naming *naming;
    unsigned type; /* PROFILE_TYPES_MAX: the profile doesn't have it, all its values are 0 */
};

struct diff_row {
    const struct naming_entry *entry;   /* of whichever side has it */
    int64_t base_flat, base_cumulative; /* as they were, not scaled */
    int64_t new_flat, new_cumulative;
    int64_t flat_change, cumulative_change; /* new - base * scale, rounded */
};

struct diff {
    struct diff_row *rows;
    size_t count;
    int64_t base_total, new_total;
    double scale;
};

enum diff_normalize { DIFF_BY_TOTAL, DIFF_BY_DURATION, DIFF_ABSOLUTE, DIFF_DEFAULT };

/* The meaning of the default: values per second; levels, as live memory, as they are; totals where
 * a duration isn't known. Others stand for themselves. */
enum diff_normalize diff_resolve(const struct diff_side *base, const struct diff_side *new_side,
                                 enum diff_normalize normalize);

/* The factor of base values, so that both have the same total or duration. 1 when that
 * cannot be (a total or duration is 0), and for levels by duration. */
double diff_scale(const struct diff_side *base, const struct diff_side *new_side,
                  enum diff_normalize normalize);

struct diff_sums {
    int64_t total, duration_ns;
    bool level;
};

/* The same of sides whose sums are known. */
enum diff_normalize diff_resolve_of(const struct diff_sums *base, const struct diff_sums *new_side,
                                    enum diff_normalize normalize);
double diff_scale_of(const struct diff_sums *base, const struct diff_sums *new_side,
                     enum diff_normalize normalize);

/* new - base * scale, rounded. */
int64_t diff_change(int64_t base, int64_t new_value, double scale);

/* Rows with the widest growth first, by flat or cumulative value; the greatest shrinkage is last.
 * Both sides must outlive the result. */
void diff_functions(const struct diff_side *base, const struct diff_side *new_side, double scale,
                    enum rank_order order, struct diff *ret_diff);
void diff_release(struct diff *diff);
#define _cleanup_diff_ __attribute__((cleanup(diff_release)))
