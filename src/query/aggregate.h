/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value of a level over a range: its average, its last value or its greatest
 * (docs/levels.md). Last and greatest values are those of a *moment*: the shortest of some round
 * times in which each process has a snapshot, so that processes that are not observed at the same
 * time are still added up.
 */
#pragma once

#include "store/store.h"

enum query_aggregate { QUERY_AVERAGE, QUERY_LAST, QUERY_MAX };

/* Narrows a level's selection to the moment that stands for it. -EINVAL for other types. */
int query_aggregate_narrow(enum query_aggregate aggregate, struct store *store,
                           struct store_selection *selection, const struct store_limits *limits,
                           struct error *error);

/* Makes points of a level's moments: `step_ns` is divided into them, and `moments` (which may be
 * the same as `points`) become one point per step. Returns how many. */
size_t query_aggregate_points(enum query_aggregate aggregate, int64_t from_ns, int64_t step_ns,
                              const struct store_point *moments, size_t count,
                              struct store_point *points);

/* How long a moment is: divides `step_ns` (0: any), and is at most that. */
int query_aggregate_moment(struct store *store, const struct store_selection *selection,
                           int64_t step_ns, const struct store_limits *limits, int64_t *ret_ns,
                           struct error *error);
