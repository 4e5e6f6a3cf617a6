/* SPDX-License-Identifier: Apache-2.0 */
/* How good an answer is, beyond what the store counts while it adds up. */
#pragma once

#include "query/sources.h"
#include "store/store.h"

struct query_quality {
    struct store_quality found;
    /* Distinct values of `host`, or else of host.name, hostname, instance; 0: no series has any of
     * these. */
    uint64_t hosts;
    /* Label names that the selection has the value "other" of, which values over the limit of
     * different ones become (label/rules/policy.h). */
    uint64_t capped_labels;
    double covered; /* the share of the range that is covered; below 0: unknown */
    /* Losses that senders reported: the sum of their types `dropped` and `lost`. */
    const struct query_sources *sources; /* NULL: none had to be chosen */
    bool has_dropped;
    int64_t dropped;
    /* The share whose innermost frame has no name, where it was counted beside the answer. */
    bool has_unnamed;
    double unnamed_share;
    /* Builds whose symbols were requested of agents, and are being uploaded: names that are still
     * missing may come. */
    uint64_t symbols_requested, symbols_uploading;
};

/* Adds what was found of another part of a selection; each series belongs to one part. */
void query_quality_add(struct store_quality *sum, const struct store_quality *part);

/* Fills all but `found`, which it reads. `now_ns` is where a range that goes on into the future
 * ends. */
int query_quality_measure(struct store *store, const struct store_selection *selection,
                          const struct store_limits *limits, int64_t now_ns,
                          struct query_quality *quality, struct error *error);
