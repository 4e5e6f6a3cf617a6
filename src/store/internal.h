/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the implementations of the store. Private to src/store. */
#pragma once

#include "label/selector.h"
#include "store/store.h"
#include "store/tree.h"

/* Texts, each once; the set has copies of them. */
struct text_set {
    const char **list;
    size_t count, capacity;
    struct id_table index;
    struct arena arena;
};

void text_set_release(struct text_set *set);
void text_set_add(struct text_set *set, const char *text);
int text_set_give(struct text_set *set, store_text_fn *fn, void *context); /* in order */

enum store_texts { TEXTS_NAMES, TEXTS_VALUES, TEXTS_TYPES };

struct point_groups;

/* An engine. It must have the first group of operations; an engine that has nothing of the kind
 * leaves members of the second one NULL, and store.c gives the answer that stands beside them.
 * store.c has checked the arguments: tenants, batches, types and steps are well-formed. */
struct store_operations {
    const char *name; /* of the engine */
    void (*close)(struct store *store);
    int (*write)(struct store *store, const struct store_batch *batch, struct error *error);
    int (*series)(struct store *store, const struct store_selection *selection, store_series_fn *fn,
                  void *context, struct error *error);
    int (*merge)(struct store *store, const struct store_selection *selection,
                 const struct store_limits *limits, struct profile *profile, unsigned type,
                 struct store_quality *quality, struct error *error);
    /* Adds to groups, which the caller has made and releases. */
    int (*timeseries)(struct store *store, const struct store_selection *selection,
                      const struct store_timeseries_query *query, const struct store_limits *limits,
                      struct point_groups *groups, struct store_quality *quality,
                      struct error *error);
    int (*frames)(struct store *store, const struct store_selection *selection,
                  const struct store_timeseries_query *query, const struct store_limits *limits,
                  store_frame_fn *fn, void *context, struct error *error);
    int (*exemplars)(struct store *store, const struct store_selection *selection,
                     const struct store_function *function, const struct store_limits *limits,
                     store_exemplar_fn *fn, void *context, struct error *error);
    int (*scan)(struct store *store, const struct store_selection *selection,
                const struct store_limits *limits, store_window_fn *fn, void *context,
                struct error *error);
    int (*maintain)(struct store *store, const atomic_bool *cancelled, struct error *error);
    int (*set_retention)(struct store *store, const struct store_options *options,
                         struct error *error);
    int (*delete)(struct store *store, const struct store_selection *selection, bool dry_run,
                  struct store_deleted *deleted, struct error *error);
    int (*stats)(struct store *store, struct store_stats *stats, struct error *error);
    int (*tenants)(struct store *store, store_text_fn *fn, void *context, struct error *error);

    void (*trim)(struct store *store); /* NULL: it has no caches */

    /* Adds names of labels, values of the label `name`, or types; NULL: found by `series`. */
    int (*texts)(struct store *store, const struct store_selection *selection,
                 enum store_texts what, const char *name, struct text_set *set,
                 struct error *error);
    /* NULL: -ENOTSUP. */
    int (*export)(struct store *store, const struct store_selection *selection,
                  const struct store_limits *limits, store_sink_fn *sink, void *context,
                  struct store_transfer *transfer, struct error *error);
    int (*import)(struct store *store, store_source_fn *source, void *context, const char *tenant,
                  struct store_transfer *transfer, struct error *error);
    /* NULL: there are none. */
    int (*files)(struct store *store, store_file_fn *fn, void *context, struct error *error);
    int (*problems)(struct store *store, store_text_fn *fn, void *context, struct error *error);
    unsigned (*damaged_files)(struct store *store, const struct store_selection *selection);
    /* NULL: -ENOENT. */
    int (*acknowledge)(struct store *store, const char *tenant, const char *name,
                       char ret_path[static PATH_MAX], struct error *error);
    /* NULL: always, and nothing to do. */
    int (*writable)(struct store *store, struct error *error);
    int (*resume_retention)(struct store *store, struct error *error);
    /* NULL: -ENOTSUP, and none is lost. */
    int (*set_pins)(struct store *store, const struct store_pin *pins, size_t count);
    int (*lost_pins)(struct store *store, store_text_fn *fn, void *context);
    /* NULL: nothing can be wrong. */
    int (*check)(struct store *store, store_text_fn *fn, void *context, struct error *error);
};

struct store {
    const struct store_operations *operations;
    uint64_t seed; /* of stack digests, which are never stored */
};

/* Export and import for engines that have raw windows alone (src/store/transfer). The scan must set
 * the generation of profiles. */
int transfer_export(struct store *store, const struct store_selection *selection,
                    const struct store_limits *limits, store_sink_fn *sink, void *context,
                    struct store_transfer *transfer, struct error *error);
int transfer_import(struct store *store, store_source_fn *source, void *context, const char *tenant,
                    struct store_transfer *transfer, struct error *error);

/* `texts` by going through all series. */
int texts_from_series(struct store *store, const struct store_selection *selection,
                      enum store_texts what, const char *name, struct text_set *set,
                      struct error *error);

bool is_excluded(const struct store_selection *selection, const struct labels *labels);

static inline bool is_cancelled(const struct store_limits *limits)
{
    return limits->cancelled && atomic_load_explicit(limits->cancelled, memory_order_relaxed);
}

static inline int error_cancelled(struct error *error)
{
    return error_set(error, -ECANCELED, "The query was cancelled.");
}

/* Whether `needed` exceeds the memory, after asking for more. */
static inline bool is_too_much(const struct store_limits *limits, size_t needed, size_t *memory)
{
    if (likely(needed <= *memory))
        return false;
    if (limits->more)
        *memory = MAX(*memory, limits->more(limits->more_context));
    return needed > *memory;
}

static inline int error_memory(struct error *error, size_t limit_bytes)
{
    return error_set(error, -E2BIG,
                     "The answer exceeds the query memory limit of %zu MiB; select a shorter time "
                     "range or fewer series.",
                     limit_bytes >> 20);
}

/* Adds a window to the stats. */
void quality_add(struct store_quality *quality, int64_t first_ns, int64_t last_ns, uint64_t windows,
                 uint64_t rows, int64_t total);

/* Sets its times when all windows are in. */
struct covering;
void quality_cover(struct store_quality *quality, const struct covering *covering);

/* Groups of points, for time series. */
struct point_group {
    struct labels labels;
    int64_t *values;
    uint64_t *windows; /* raw windows seen in each step */
    int64_t *covered_ns, *per_ns, *process_ns, *used_ns;
    int64_t sum; /* of all values, where groups are ordered by it */
};

struct point_groups {
    const struct store_timeseries_query *query;
    int64_t from_ns;
    size_t steps;
    struct point_group *groups;
    size_t count, capacity;
    size_t label_bytes;
    struct id_table index;
    struct digest_table moments; /* that a group has had */
    size_t most;                 /* groups; one more is a refusal, and `crowded` says so */
    bool crowded;
    /* Which groups are the greatest, when there are more: first only their sums are added up, then
     * the points of those that are chosen. */
    bool ranking;
    struct point_sum {
        uint64_t hash; /* of the group's labels */
        int64_t sum;
    } * sums; /* while ranking all of them, then those that are chosen, by hash */
    size_t sum_count, sum_capacity;
    size_t rest_count; /* groups that are not chosen */
    uint32_t rest;     /* the group that they are added to, or ID_NONE */
};

/* Ready for groups; -E2BIG when there would be too many steps. */
/* The selection with the start of its first step as its own. */
struct store_selection selection_of_steps(const struct store_selection *selection,
                                          const struct store_timeseries_query *query);

int point_groups_init(struct point_groups *groups, const struct store_selection *selection,
                      const struct store_timeseries_query *query, struct error *error);
void point_groups_release(struct point_groups *groups);

/* For a selection with more groups than wanted: empties the groups for a first reading, which ranks
 * them, and for a second one, of the greatest. */
void point_groups_rank(struct point_groups *groups);
void point_groups_choose(struct point_groups *groups);

/* The group that a series belongs to; ID_NONE when there are too many. */
uint32_t point_groups_find(struct point_groups *groups, const struct labels *series);
void point_groups_add(struct point_groups *groups, uint32_t group, int64_t start_ns, int64_t value,
                      uint64_t windows);
void point_groups_cover(struct point_groups *groups, struct covering *covering);
size_t point_groups_memory(const struct point_groups *groups);
int point_groups_give(struct point_groups *groups, store_points_fn *fn, void *context);
