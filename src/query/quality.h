/* SPDX-License-Identifier: Apache-2.0 */
/* How good an answer is, beyond what the store counts while it adds up. */
#pragma once

#include "store/store.h"

struct query_quality {
    struct store_quality found;
    /* Distinct values of `host`, or where there is none of host.name, hostname, instance; 0: no
     * series says where it is from. */
    uint64_t hosts;
    /* The share of the range that windows cover, in steps of 10 s and of rollups' slots for long
     * ranges; below 0: unknown. */
    double covered;
    int64_t covered_step_ns;
    /* What senders say they lost: the sum of their types `dropped` and `lost`. */
    bool has_dropped;
    int64_t dropped;
};

/* Fills all but `found`, which it reads. `now_ns` is where a range that goes on into the future
 * ends. */
int query_quality_measure(struct store *store, const struct store_selection *selection,
                          const struct store_limits *limits, int64_t now_ns,
                          struct query_quality *quality, struct error *error);
