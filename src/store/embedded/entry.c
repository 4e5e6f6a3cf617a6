// SPDX-License-Identifier: Apache-2.0
// Entry to the embedded store. All reads and writes pass the gate, which scrubbing closes for a
// moment; and queries first reserve their memory from the budget, which limits how many run at
// once.

#include "store/embedded/embedded.h"

#define QUERY_WAIT_MS 10000

static void enter(struct embedded *store)
{
    pthread_rwlock_rdlock(&store->gate);
}

static void leave(struct embedded *store)
{
    pthread_rwlock_unlock(&store->gate);
}

/* Memory of one query: the caller's limit, or a quarter of the budget; never more than all of it.
 */
static size_t query_memory(const struct embedded *store, const struct store_limits *limits)
{
    size_t bytes = limits->memory_bytes ? limits->memory_bytes : store->memory_limit_bytes / 4;
    return budget_fit(store->budget, bytes);
}

static int begin_query(struct embedded *store, const struct store_limits *limits,
                       struct store_limits *ret_limits, struct error *error)
{
    *ret_limits = *limits;
    ret_limits->memory_bytes = query_memory(store, limits);
    if (!limits->admitted &&
        !budget_wait(store->budget, ret_limits->memory_bytes, QUERY_WAIT_MS, limits->cancelled)) {
        if (is_cancelled(limits))
            return error_cancelled(error);
        return error_set(error, -EAGAIN,
                         "Other queries and pushes have used up the memory limit for %d seconds; "
                         "try again, or give the server more memory.",
                         QUERY_WAIT_MS / 1000);
    }
    enter(store);
    return 0;
}

static void end_query(struct embedded *store, const struct store_limits *limits)
{
    leave(store);
    if (!limits->admitted)
        budget_give(store->budget, limits->memory_bytes);
}

static int write_batch(struct store *base, const struct store_batch *batch, struct error *error)
{
    if (atomic_load(&embedded_of(base)->memory_full))
        return error_set(error, -EAGAIN, STORE_MEMORY_FULL);
    enter(embedded_of(base));
    int r = embedded_write(base, batch, error);
    leave(embedded_of(base));
    embedded_count_write(embedded_of(base), r, error);
    return r;
}

static int series(struct store *base, const struct store_selection *selection, store_series_fn *fn,
                  void *context, struct error *error)
{
    enter(embedded_of(base));
    int r = embedded_series(base, selection, fn, context, error);
    leave(embedded_of(base));
    return r;
}

static int texts(struct store *base, const struct store_selection *selection, enum store_texts what,
                 const char *name, struct text_set *set, struct error *error)
{
    enter(embedded_of(base));
    int r = embedded_texts(base, selection, what, name, set, error);
    leave(embedded_of(base));
    return r;
}

static int merge(struct store *base, const struct store_selection *selection,
                 const struct store_limits *limits, struct profile *profile, unsigned type,
                 struct store_quality *quality, struct error *error)
{
    struct store_limits granted;
    int r = begin_query(embedded_of(base), limits, &granted, error);
    if (r < 0)
        return r;
    r = embedded_merge(base, selection, &granted, profile, type, quality, error);
    end_query(embedded_of(base), &granted);
    return r;
}

static int timeseries(struct store *base, const struct store_selection *selection,
                      const struct store_timeseries_query *query, const struct store_limits *limits,
                      struct point_groups *groups, struct store_quality *quality,
                      struct error *error)
{
    struct store_limits granted;
    int r = begin_query(embedded_of(base), limits, &granted, error);
    if (r < 0)
        return r;
    r = embedded_timeseries(base, selection, query, &granted, groups, quality, error);
    end_query(embedded_of(base), &granted);
    return r;
}

static int frames(struct store *base, const struct store_selection *selection,
                  const struct store_timeseries_query *query, const struct store_limits *limits,
                  store_frame_fn *fn, void *context, struct error *error)
{
    struct store_limits granted;
    int r = begin_query(embedded_of(base), limits, &granted, error);
    if (r < 0)
        return r;
    r = embedded_frames(base, selection, query, &granted, fn, context, error);
    end_query(embedded_of(base), &granted);
    return r;
}

static int exemplars(struct store *base, const struct store_selection *selection,
                     const struct store_function *function, const struct store_limits *limits,
                     store_exemplar_fn *fn, void *context, struct error *error)
{
    struct store_limits granted;
    int r = begin_query(embedded_of(base), limits, &granted, error);
    if (r < 0)
        return r;
    r = embedded_exemplars(base, selection, function, &granted, fn, context, error);
    end_query(embedded_of(base), &granted);
    return r;
}

static int scan(struct store *base, const struct store_selection *selection,
                const struct store_limits *limits, store_window_fn *fn, void *context,
                struct error *error)
{
    struct store_limits granted;
    int r = begin_query(embedded_of(base), limits, &granted, error);
    if (r < 0)
        return r;
    r = embedded_scan(base, selection, &granted, fn, context, error);
    end_query(embedded_of(base), &granted);
    return r;
}

static int check(struct store *base, store_text_fn *fn, void *context, struct error *error)
{
    enter(embedded_of(base));
    int r = embedded_check(base, fn, context, error);
    leave(embedded_of(base));
    return r;
}

const struct store_operations embedded_operations = {
    .name = "embedded",
    .close = embedded_close,
    .write = write_batch,
    .series = series,
    .texts = texts,
    .merge = merge,
    .timeseries = timeseries,
    .frames = frames,
    .exemplars = exemplars,
    .scan = scan,
    .maintain = embedded_maintain,
    .trim = embedded_trim,
    .set_retention = embedded_set_retention,
    .delete = embedded_delete,
    .export = embedded_export,
    .import = embedded_import,
    .stats = embedded_stats,
    .files = embedded_list_files,
    .problems = embedded_problems,
    .writable = embedded_writable,
    .damaged_files = embedded_damaged_files,
    .acknowledge = embedded_acknowledge,
    .resume_retention = embedded_resume_retention,
    .set_pins = embedded_set_pins,
    .lost_pins = embedded_lost_pins,
    .tenants = embedded_tenants,
    .check = check,
};
