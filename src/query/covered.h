/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The divisor of an answer's values: docs/covered-time.md and docs/levels.md. The store measures
 * covered time (store/cover.h); rates, averages and comparisons all use these functions.
 */
#pragma once

#include "store/cover.h"
#include "store/store.h"

/* Adds the times of selections that have no series in common, before totals are added. */
void covered_add(struct store_quality *sum, const struct store_quality *part);

void covered_add_point(struct store_point *sum, const struct store_point *point);

/* A value per second of covered time, or a level; NAN when that isn't known. */
double covered_rate(int64_t value, int64_t per_ns);

/* Windows of a process that are farther apart say nothing of the time between them. */
#define COVERED_PAUSE_NS COVER_SLOT_NS

/* A process by the labels of one of its series: the same for all label sets of its samples. */
uint64_t covered_process(const struct labels *labels);

/* The use in a step: its value, extended over the pauses between windows of a process at the rate
 * in them. */
double covered_used(const struct store_point *point);

/* How long a merged profile lasts: what its values are divided by for rates; for levels, covered
 * time. */
int64_t covered_duration(const char *type, const struct store_quality *quality);

/* The share of [from, to) that is covered, with `now_ns` as the end of ranges that go on; below 0:
 * unknown. */
double covered_share(const struct store_selection *selection, int64_t covered_ns, int64_t now_ns);

/* Makes averages of sums over snapshots: values of a merged level, and its stats. Does nothing to
 * other types. */
void covered_settle_total(const char *type, struct store_quality *quality);
void covered_settle(const char *type, struct profile *profile, struct store_quality *quality);
