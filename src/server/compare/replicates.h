/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A selection as the comparison engine needs it: a profile whose rows keep steps of time, and hosts
 * where these can be told apart, and which says what each of them covers (compare/table.h). Private
 * to src/server.
 */
#pragma once

#include "server/query/context.h"

/* Steps that a selection is cut into at most, about. */
#define REPLICATES_STEPS 64

/*
 * Chooses the steps, about so many, and the label that names hosts: hosts are kept apart where raw
 * data can be read in reasonable time, of a selection of an hour, or of one service and a day.
 * Narrows the selection to where there is data. -ENOENT when nothing is selected.
 */
int replicates_plan(struct query_context *query_context, unsigned steps,
                    struct store_apart *ret_apart, struct error *error);

/* Merges by such a plan: as query_context_merge, with steps and hosts kept apart. `matcher` selects
 * some of the series; NULL: all. */
int replicates_merge_planned(struct query_context *query_context, const struct store_apart *apart,
                             const struct matcher *matcher, struct profile *profile,
                             struct store_quality *ret_quality, struct error *error);

/* Adds what the selection covers and the requests that it counts. */
int replicates_add_frame(struct query_context *query_context, const struct store_apart *apart,
                         struct profile *profile, struct error *error);

/* The type of requests that the same series count, "" where they count none. */
int replicates_requests_type(struct store *store, const struct store_selection *selection,
                             char ret_type[QUERY_TYPE_BYTES], struct error *error);

/*
 * All of these. Fills `profile`, which the caller has initialised with replicates_detail(). -ENOENT
 * when nothing is selected. `ret_label` is the label that names hosts, or NULL.
 */
int replicates_merge(struct query_context *query_context, struct profile *profile,
                     struct store_quality *ret_quality, const char **ret_label,
                     struct error *error);

#define REPLICATES_DETAIL (PROFILE_TIMES | PROFILE_LABELS)
