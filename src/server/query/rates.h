/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a selection by labels and by steps, in memory: for what is computed of them. Private to
 * src/server. */
#pragma once

#include "server/query/context.h"

struct rate_point {
    int64_t time_ns;    /* of the step's start */
    double value, rate; /* the rate is by covered time; NAN: not known */
};

struct rate_group {
    struct labels labels; /* those of the query that are there */
    double value, rate;   /* of all steps */
    struct rate_point *points;
    size_t count;
};

struct rate_groups {
    struct rate_group *list;
    size_t count, capacity;
    uint64_t left_out; /* groups beyond `most` */
    size_t most;
};
void rate_groups_release(struct rate_groups *groups);
#define _cleanup_rate_groups_ __attribute__((cleanup(rate_groups_release)))

/* Asks for a time series; names of functions are those of symbols and maps, too. `ret_groups` must
 * be empty, with `most` set. The quality may be NULL. */
int rate_groups_read(struct query_context *query_context,
                     const struct store_timeseries_query *query, struct rate_groups *ret_groups,
                     struct store_quality *ret_quality, struct error *error);

/* What multiplies a rate of a type: times are stored in nanoseconds. */
double rates_unit(const char *type);

/* -EINVAL unless a type is CPU time, which is what hosts are paid for. */
int rates_check_cpu(const char *type, struct error *error);
