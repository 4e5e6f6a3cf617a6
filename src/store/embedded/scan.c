// SPDX-License-Identifier: Apache-2.0
// Queries of the embedded store other than merged values: exemplars, frames and single windows.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/embedded/plan.h"

/* ---- windows ---- */

struct scan {
    struct reader reader;
    store_window_fn *window_fn;
    store_exemplar_fn *exemplar_fn;
    void *context;
    const struct store_function *function;
    size_t memory_bytes;
    struct file *file;
    uint32_t service, series; /* whose exemplars were given last */
    bool ready;               /* the maps below are of `file` and `service` */
    struct profile profile;
    struct frame_map frames;
    struct node_map nodes;
    struct block_rows rows;
    bool *wanted;
    int result; /* of a callback */
};

static void forget_maps(struct scan *scan)
{
    node_map_release(&scan->nodes);
    frame_map_release(&scan->frames);
    profile_release(&scan->profile);
    free(scan->wanted);
    scan->wanted = NULL;
    scan->ready = false;
}

static void scan_release(struct scan *scan)
{
    forget_maps(scan);
    block_rows_release(&scan->rows);
}

/* The nodes are copied: windows are given without a lock held, while the tree may grow. */
static int scan_begin(struct reader *reader, struct file *file, uint32_t service,
                      struct error *error)
{
    struct scan *scan = (struct scan *)reader;
    int r = file_load_tree(file, service, error);
    if (r < 0)
        return r;
    forget_maps(scan);
    profile_init(&scan->profile, PROFILE_ALL);
    if (scan->file != file || scan->service != service)
        scan->series = ID_NONE;
    scan->file = file;
    scan->service = service;
    pthread_rwlock_rdlock(&file->lock);
    const struct tree *tree = &file->catalog.services[service].tree;
    frame_map_init(&scan->frames, &file->catalog.tables, &scan->profile);
    node_map_init(&scan->nodes, &scan->frames, tree->nodes, tree->count, NULL, &scan->profile);
    if (scan->function)
        scan->wanted = catalog_function_nodes(&file->catalog, service, scan->function, true);
    pthread_rwlock_unlock(&file->lock);
    scan->ready = true;
    return 0;
}

/* The result's nodes of a file's, under the lock. */
static int map_nodes(struct scan *scan, uint32_t *nodes, size_t count)
{
    int r = 0;
    pthread_rwlock_rdlock(&scan->file->lock);
    scan->nodes.nodes = scan->file->catalog.services[scan->service].tree.nodes;
    frame_map_refresh(&scan->frames);
    for (size_t i = 0; !r && i < count; i++) {
        if (nodes[i] >= scan->nodes.node_count)
            r = -EBADMSG;
        else
            nodes[i] = node_map_node(&scan->nodes, nodes[i]);
    }
    pthread_rwlock_unlock(&scan->file->lock);
    return r;
}

static int read_exemplars(struct scan *scan, uint32_t series, int64_t from_ns, int64_t to_ns,
                          struct store_exemplar **ret_list, size_t *ret_count, struct error *error)
{
    struct store_exemplar *list = NULL;
    size_t count = 0, capacity = 0;
    sqlite3_stmt *statement = file_sql(scan->file, scan->reader.connection, SQL_EXEMPLARS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, from_ns);
    sqlite3_bind_int64(statement, 3, to_ns);
    int r;
    while ((r = file_step(scan->file, statement, error)) == 1) {
        int64_t node = sqlite3_column_int64(statement, 2);
        const void *link = sqlite3_column_blob(statement, 4);
        if (node < 0 || node >= scan->nodes.node_count || !link ||
            sqlite3_column_bytes(statement, 4) != sizeof(struct profile_link) ||
            (scan->wanted && !scan->wanted[node]))
            continue;
        uint32_t mapped = (uint32_t)node;
        map_nodes(scan, &mapped, 1);
        array_reserve(list, capacity, count + 1);
        list[count] = (struct store_exemplar){.node = mapped,
                                              .value = sqlite3_column_int64(statement, 3),
                                              .time_ns = sqlite3_column_int64(statement, 1)};
        memcpy(&list[count++].link, link, sizeof(struct profile_link));
    }
    if (r < 0) {
        free(list);
        return r;
    }
    *ret_list = list;
    *ret_count = count;
    return 0;
}

static int give_window(struct scan *scan, uint32_t series, const struct block_window *window,
                       struct error *error)
{
    _cleanup_free_ struct store_row *rows = memory_zalloc(window->row_count + 1ul, sizeof(*rows));
    _cleanup_free_ struct store_exemplar *exemplars = NULL;
    _cleanup_free_ char *type = NULL;
    _cleanup_labels_ struct labels labels = {0};
    size_t exemplar_count;
    int r = read_exemplars(scan, series, window->start_ns, window->start_ns + 1, &exemplars,
                           &exemplar_count, error);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < window->row_count; i++)
        rows[i] = (struct store_row){.node = scan->rows.nodes[window->first_row + i],
                                     .value = scan->rows.values[window->first_row + i]};
    pthread_rwlock_rdlock(&scan->file->lock);
    labels_copy(&labels, &scan->file->catalog.series[series].labels);
    type = memory_strdup(scan->file->catalog.series[series].type);
    pthread_rwlock_unlock(&scan->file->lock);
    return scan->window_fn(scan->context,
                           &(struct store_profile){.labels = &labels,
                                                   .type = type,
                                                   .time_ns = window->start_ns,
                                                   .duration_ns = window->duration_ns,
                                                   .profile = &scan->profile,
                                                   .rows = rows,
                                                   .row_count = window->row_count,
                                                   .exemplars = exemplars,
                                                   .exemplar_count = exemplar_count});
}

static int scan_block(struct reader *reader, struct file *file, uint32_t series,
                      struct block_view *view, size_t first, size_t count, struct error *error)
{
    struct scan *scan = (struct scan *)reader;
    (void)file;
    block_rows_clear(&scan->rows);
    int r = block_decode(view, first, count, &scan->rows);
    if (!r)
        r = map_nodes(scan, scan->rows.nodes, scan->rows.row_count);
    if (r < 0)
        return r;
    if (profile_memory(&scan->profile) + block_rows_memory(&scan->rows) > scan->memory_bytes)
        return error_memory(error, scan->memory_bytes);
    for (size_t w = 0; !r && w < scan->rows.window_count; w++)
        r = give_window(scan, series, &scan->rows.windows[w], error);
    return r;
}

static int run_scan(struct embedded *store, struct scan *scan, struct error *error)
{
    struct store_limits raw = *scan->reader.limits;
    raw.raw_only = true;
    scan->memory_bytes = raw.memory_bytes ? raw.memory_bytes : store->memory_limit_bytes / 2;
    struct plan plan;
    unsigned damaged = 0;
    int r = plan_make(store, scan->reader.selection, NULL, &raw, &plan, &damaged, error);
    if (!r) {
        r = reader_run(&scan->reader, &plan, error);
        plan_release(store, &plan);
    }
    return r;
}

int embedded_scan(struct store *base, const struct store_selection *selection,
                  const struct store_limits *limits, store_window_fn *fn, void *context,
                  struct error *error)
{
    static const struct reader_calls calls = {.begin = scan_begin, .block = scan_block};
    struct embedded *store = embedded_of(base);
    _cleanup_(scan_release) struct scan scan = {
        .reader = {.store = store, .selection = selection, .limits = limits, .calls = &calls},
        .window_fn = fn,
        .context = context};
    return run_scan(store, &scan, error);
}

/* ---- exemplars ---- */

/* Stacks that were given are gone for the callback: when they have become many, begin anew. */
static int limit_stacks(struct scan *scan, struct error *error)
{
    if (profile_memory(&scan->profile) <= scan->memory_bytes / 4)
        return 0;
    return scan_begin(&scan->reader, scan->file, scan->service, error);
}

/* A series' exemplars are read once, with its first block: windows that begin at one moment share
 * them, also in different blocks. `end` comes after all of a service. */
static int exemplar_block(struct reader *reader, struct file *file, uint32_t series,
                          struct block_view *view, size_t first, size_t count, struct error *error)
{
    struct scan *scan = (struct scan *)reader;
    const struct store_selection *selection = reader->selection;
    _cleanup_free_ struct store_exemplar *list = NULL;
    _cleanup_labels_ struct labels labels = {0};
    size_t found = 0;
    (void)view, (void)first, (void)count;
    if (scan->series == series)
        return 0;
    scan->series = series;
    pthread_rwlock_rdlock(&file->lock);
    labels_copy(&labels, &file->catalog.series[series].labels);
    pthread_rwlock_unlock(&file->lock);
    int r = limit_stacks(scan, error);
    if (!r)
        r = read_exemplars(scan, series, selection->from_ns, selection->to_ns, &list, &found,
                           error);
    for (size_t i = 0; !r && i < found; i++)
        r = scan->exemplar_fn(scan->context, &labels, &scan->profile, &list[i]);
    return r;
}

int embedded_exemplars(struct store *base, const struct store_selection *selection,
                       const struct store_function *function, const struct store_limits *limits,
                       store_exemplar_fn *fn, void *context, struct error *error)
{
    static const struct reader_calls calls = {.begin = scan_begin, .block = exemplar_block};
    struct embedded *store = embedded_of(base);
    _cleanup_(scan_release) struct scan scan = {
        .reader = {.store = store, .selection = selection, .limits = limits, .calls = &calls},
        .exemplar_fn = fn,
        .function = function,
        .context = context};
    return run_scan(store, &scan, error);
}

/* ---- frames ---- */

struct frames {
    struct reader reader;
    store_frame_fn *fn;
    void *context;
};

static int frames_begin(struct reader *reader, struct file *file, uint32_t service,
                        struct error *error)
{
    struct frames *frames = (struct frames *)reader;
    int r = file_load_tree(file, service, error);
    if (r < 0)
        return r;
    if (is_cancelled(reader->limits))
        return error_cancelled(error);
    pthread_rwlock_rdlock(&file->lock);
    const struct tree *tree = &file->catalog.services[service].tree;
    r = give_frames(&file->catalog.tables, tree->nodes, tree->count, frames->fn, frames->context);
    pthread_rwlock_unlock(&file->lock);
    return r;
}

int embedded_frames(struct store *base, const struct store_selection *selection,
                    const struct store_timeseries_query *query, const struct store_limits *limits,
                    store_frame_fn *fn, void *context, struct error *error)
{
    static const struct reader_calls calls = {.begin = frames_begin};
    struct embedded *store = embedded_of(base);
    struct frames frames = {
        .reader = {.store = store, .selection = selection, .limits = limits, .calls = &calls},
        .fn = fn,
        .context = context};
    struct plan plan;
    unsigned damaged = 0;
    int r = plan_make(store, selection, query, limits, &plan, &damaged, error);
    if (!r) {
        r = reader_run(&frames.reader, &plan, error);
        plan_release(store, &plan);
    }
    return r;
}
