/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which spans a query selects, by their labels: service_name, route, method, span_name, kind,
 * status and code. Labels are texts of a block of spans, so each text is matched once.
 */
#pragma once

#include "query/query.h"
#include "spans/index.h"

struct query_spans {
    const struct selector *selector;
    struct match_budget *budget;
    const struct span_batch *batch;
    uint8_t *known; /* by matcher and text: what was found */
    size_t room;
};
void query_spans_release(struct query_spans *spans);
#define _cleanup_query_spans_ _cleanup_(query_spans_release)

/* Before the spans of each block, which must stay until the next call. */
void query_spans_begin(struct query_spans *spans, const struct span_batch *batch);

/* -EDOM, -ECANCELED: see matching_test. */
int query_spans_match(struct query_spans *spans, const struct span *span, bool *ret_selected,
                      struct error *error);

/* Deletes the spans that the query selects and that start in the range. A query with a type selects
 * profiles only. */
int query_spans_delete(struct span_index *index, const struct query *query,
                       const struct span_query *range, bool dry_run, uint64_t *ret_spans,
                       struct error *error);
