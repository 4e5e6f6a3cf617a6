/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variances of many functions, each estimated from a few observations, corrected by each other
 * (Smyth 2004): the estimates scatter more than chance alone explains when functions really differ,
 * and only then a function's own estimate has to stand for itself. docs/comparison.md has the
 * reasons.
 */
#pragma once

#include <stddef.h>

/* Observations of one function that a variance is made of; more are not looked at. */
#define MODERATE_LENGTH_MAX 64

/* The typical ratio of a function with n samples is typical * (1 + excess * n): bursts and hosts
 * add to its samples in proportion to their number, so to their variance by its square. */
struct moderation {
    double typical, excess;
    double df; /* how many degrees of freedom that is worth; 0: nothing is known */

    /* Private. */
    size_t length;
    double own_df; /* of each function */
    struct moderation_entry {
        double log_ratio, samples;
    } * entries;
    size_t count, capacity;
    double products[MODERATE_LENGTH_MAX * MODERATE_LENGTH_MAX];
};

/* Each function has `length` observations with `own_df` degrees of freedom. */
void moderation_init(struct moderation *moderation, size_t length, double own_df);

void moderation_release(struct moderation *moderation);

/* `ratio` is the function's variance, relative to that expected of its samples' number;
 * `observations` are what it was made of, on any scale. Functions without variance are left out. */
void moderation_add(struct moderation *moderation, double ratio, double samples,
                    const double *observations);

/* Sets `typical`, `excess` and `df`. Functions that rise and fall together are fewer than they
 * seem: `df` is at most what as many independent ones would be worth. Two or three hosts can't show
 * that; `independence`, if above 0, is what something else has shown. */
void moderation_fit(struct moderation *moderation, double independence);

/* The share of the functions that is independent of the others. */
double moderation_independence(const struct moderation *moderation);

/* The corrected ratio of a function and its degrees of freedom. It is never below its own where
 * that has several degrees of freedom. */
double moderation_ratio(const struct moderation *moderation, double own, double samples,
                        double *ret_df);
