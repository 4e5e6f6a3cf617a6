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
 * Fills `profile`, which the caller has initialised with replicates_detail(). -ENOENT when nothing
 * is selected. Hosts are kept apart where raw data can be read in reasonable time: of a selection
 * of an hour, or of one service and a day; `ret_label` is the label that names them, or NULL.
 */
int replicates_merge(struct query_context *query_context, struct profile *profile,
                     struct store_quality *ret_quality, const char **ret_label,
                     struct error *error);

#define REPLICATES_DETAIL (PROFILE_TIMES | PROFILE_LABELS)
