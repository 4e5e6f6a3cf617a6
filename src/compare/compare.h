/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which changes are real: each function's self and total change with a confidence interval, a
 * p-value and a verdict that holds over the whole graph. docs/comparison.md explains the method.
 */
#pragma once

#include "compare/table.h"

/* The divisor of values. */
enum compare_normalize {
    COMPARE_PER_SECOND, /* of covered time */
    COMPARE_PER_TOTAL,  /* shares */
    COMPARE_PER_REQUEST,
    COMPARE_RAW,
    COMPARE_NORMALIZES,
};
extern const char *const compare_normalize_names[COMPARE_NORMALIZES];

enum compare_verdict {
    COMPARE_NOISE,     /* indistinguishable from no change */
    COMPARE_UNDECIDED, /* suspicious alone, but not among so many functions */
    COMPARE_GREW,
    COMPARE_SHRANK,
    COMPARE_TOO_FEW, /* samples, to be judged */
};
extern const char *const compare_verdict_names[];

/* How the variance was found. */
enum compare_method { COMPARE_BY_COUNTS, COMPARE_BY_WINDOWS, COMPARE_BY_CLUSTERS };
extern const char *const compare_method_names[];

struct compare_options {
    enum compare_normalize normalize;
    double false_discovery_rate; /* 0.05 */
    double min_share;            /* of the larger side's total; smaller functions are not judged */
};

/* One quantity of one function, normalised. Infinite bounds are possible for growth. */
struct compare_measure {
    double base, new_value, change;
    /* Interval of the change; excludes 0 exactly for verdicts, and is unbounded for negative
     * values. */
    double low, high;
    double growth; /* new / base - 1; INFINITY without a base */
    double growth_low, growth_high;
    double p, adjusted; /* two-sided; adjusted by Benjamini-Hochberg */
    enum compare_verdict verdict;
    double more_seconds; /* covered on each side, to settle an undecided change; or 0 */
    double variance[COMPARE_SIDES], df; /* what the interval was made of */
    double counts[COMPARE_SIDES];       /* samples; by counts, divided by the overdispersion */
    bool judged;
};

struct compare_row {
    const struct compare_function *function;
    struct compare_measure self, total;
    double share[COMPARE_SIDES]; /* of the side's total, by total */
};

struct comparison {
    struct compare_row *rows; /* by the table's functions */
    size_t count;
    struct compare_measure whole; /* the sum of all samples */
    struct compare_options options;
    enum compare_method method;
    bool counted;                   /* numbers of samples are known, so that they can be tested */
    double overdispersion;          /* factor on the variance; at least 1 */
    size_t judged, found;           /* hypotheses, and how many of them are changes */
    double level;                   /* of the intervals, 0.95 with one hypothesis */
    double exposure[COMPARE_SIDES]; /* what values were divided by */
};

/* -EINVAL with a sentence when a denominator is missing or zero, or there are no samples. The table
 * must outlive the result. */
int compare(const struct compare_table *table, const struct compare_options *options,
            struct comparison *ret_comparison, struct error *error);
void comparison_release(struct comparison *comparison);
#define _cleanup_comparison_ __attribute__((cleanup(comparison_release)))

/* The one-sided p-value of "new > factor * base", and of its contrary. */
double compare_exceeds(const struct comparison *comparison, const struct compare_measure *measure,
                       double factor);
double compare_stays_below(const struct comparison *comparison,
                           const struct compare_measure *measure, double factor);

/* The interval of new / base - 1 whose ends a one-sided test at `alpha` doesn't reject; the high
 * end can be infinite. */
void compare_growth_interval(const struct compare_measure *measure, double alpha, double *ret_low,
                             double *ret_high);

/* The one-sided p-value of one side alone against a fixed value. */
double compare_above(const struct compare_measure *measure, enum compare_side side, double limit);
double compare_below(const struct compare_measure *measure, enum compare_side side, double limit);
