/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that build a table share. */
#pragma once

#include "base/idtable.h"
#include "compare/table.h"

/* A time that a cluster of a source covers, from `from_ns` to before `to_ns`. */
struct table_span {
    int64_t from_ns, to_ns;
    uint32_t cluster;
};

struct table_spans {
    struct table_span *list;
    size_t count, capacity;
    double wall_seconds;    /* without what several cover at once */
    int64_t granularity_ns; /* 0: times are exact */
};

struct table_builder {
    const struct compare_source *sources;
    size_t source_count;
    struct compare_table *table;
    uint32_t **function_of; /* by source: naming entry -> function of the table */
    struct id_table functions;
    size_t function_capacity, replicate_capacity, cell_capacity;
    const char **clusters; /* names, by id */
    size_t cluster_capacity;
    uint32_t *cluster_of;      /* by source without a label */
    uint32_t **cluster_of_set; /* by source with one: label set -> cluster */
    struct table_spans *spans; /* by source */
    struct id_table pairs;     /* callers and callees whose callee is judged at its caller */
    uint64_t *pair_keys;
    size_t pair_capacity;
    int64_t origin_ns[COMPARE_SIDES];      /* where the first window begins */
    uint32_t *replicate_of[COMPARE_SIDES]; /* cluster * windows of the side + window */
};

/* Finds the functions that were inlined into a caller on one side only. */
void table_find_inlined(struct table_builder *builder);

/* Whether frames of `callee` right below `caller` count as the caller's. */
bool table_is_inlined(const struct table_builder *builder, uint32_t caller, uint32_t callee);

/* The cluster of a row. */
static inline uint32_t table_cluster(const struct table_builder *builder, size_t source, size_t row)
{
    const uint32_t *of_set = builder->cluster_of_set[source];
    return of_set ? of_set[builder->sources[source].profile->samples.labels[row]]
                  : builder->cluster_of[source];
}

/* Finds which times each source covers (table_spans.c). */
int table_find_spans(struct table_builder *builder, struct error *error);

/* Chooses the windows and adds one replicate for each that a source covers. */
int table_add_replicates(struct table_builder *builder, struct error *error);

/* The replicate that a row of a source belongs to; COMPARE_NO_REPLICATE: outside its spans. */
uint32_t table_replicate(const struct table_builder *builder, size_t source, size_t row);
#define COMPARE_NO_REPLICATE UINT32_MAX
