/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that build a table. */
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
    const struct compare_source *sources; /* of the part that is being added, or the frames */
    size_t source_count;
    struct compare_table table;
    size_t cells_max;
    bool has_clusters;      /* all of them: no other may come */
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
    size_t pair_count, pair_capacity;
    int64_t origin_ns[COMPARE_SIDES]; /* where the first window begins */
    uint32_t first_replicate[COMPARE_SIDES];
    uint32_t *replicate_of[COMPARE_SIDES]; /* cluster * windows of the side + window */
};

/* Finds the functions that were inlined into a caller on one side only. */
void table_find_inlined(struct table_builder *builder);

/* Whether frames of `callee` right below `caller` count as the caller's. */
bool table_is_inlined(const struct table_builder *builder, uint32_t caller, uint32_t callee);

/* The cluster of a row; TABLE_NO_CLUSTER: one that the frames don't have. */
#define TABLE_NO_CLUSTER UINT32_MAX
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

/* Makes the smallest functions coarse until there are at most so many cells, in order. */
void table_shrink(struct table_builder *builder, size_t cells_max);

/* Where a value of a replicate is kept: of a coarse function, in its side's first. */
static inline uint32_t table_cell_replicate(const struct table_builder *builder, uint32_t function,
                                            uint32_t replicate)
{
    const struct compare_table *table = &builder->table;
    return table->functions[function].coarse
               ? builder->first_replicate[table->replicates[replicate].side]
               : replicate;
}

/* How many samples a source's values come from. Profiles say it in a column of their own, by their
 * period, or by what all values are multiples of; where nothing is known, each row counts as one,
 * which errs on the careful side. */
double table_sample_count(const struct compare_source *source, bool *known);
