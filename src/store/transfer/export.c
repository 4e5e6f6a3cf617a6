// SPDX-License-Identifier: Apache-2.0
// Exporting the embedded store: every raw window, and the rollups that have outlived theirs, which
// come first so that importing finds them before raw data of the same days.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/embedded/outlived.h"
#include "store/embedded/plan.h"
#include "store/transfer/export_file.h"

#define HOUR_NS 3600000000000ll
#define BATCH_ROWS_MAX (1u << 20)

struct export
{
    struct reader reader;
    struct export_writer writer;
    struct block_codec *codec; /* the reader's is busy */
    struct export_batch batch; /* of the service being read, once it has windows */
    struct frame_map frames;
    struct node_map nodes;
    struct block_rows rows;
    struct buffer content;
};

static void forget_batch(struct export *export)
{
    export_batch_release(&export->batch);
    frame_map_release(&export->frames);
    node_map_release(&export->nodes);
}

static int flush_batch(struct export *export)
{
    int r = 0;
    if (export->batch.windows) {
        export->content.length = 0;
        export_batch_encode(&export->batch, export->codec, &export->content);
        r = export_writer_batch(&export->writer, &export->content, &export->batch);
    }
    forget_batch(export);
    return r;
}

static int export_begin(struct reader *reader, struct file *file, uint32_t service,
                        struct error *error)
{
    (void)reader;
    return file_load_tree(file, service, error);
}

/* With the file's lock held. */
static void begin_batch(struct export *export, struct file *file, uint32_t service)
{
    const struct tree *tree = &file->catalog.services[service].tree;
    export_batch_init(&export->batch, file->tenant, file->tier);
    catalog_service(&export->batch.catalog, file->catalog.services[service].name);
    frame_map_init(&export->frames, &file->catalog.tables, &export->batch.catalog.tables);
    node_map_init(&export->nodes, &export->frames, tree->nodes, tree->count,
                  &export->batch.catalog.services[0].tree, NULL);
}

static int add_windows(struct export *export, struct file *file, uint32_t series)
{
    const struct block_rows *rows = &export->rows;
    const struct catalog_series *from = &file->catalog.series[series];
    struct tree *tree = &file->catalog.services[from->service].tree;
    if (!export->batch.tenant)
        begin_batch(export, file, from->service);
    export->nodes.nodes = tree->nodes;
    frame_map_refresh(&export->frames);
    for (size_t i = 0; i < rows->row_count; i++) {
        if (rows->nodes[i] >= export->nodes.node_count)
            return -EBADMSG;
        rows->nodes[i] = node_map_node(&export->nodes, rows->nodes[i]);
    }
    struct export_series *to = export_batch_series(&export->batch, &from->labels, from->type);
    for (size_t w = 0; w < rows->window_count; w++) {
        const struct block_window *window = &rows->windows[w];
        block_rows_add(&to->rows, window, rows->nodes + window->first_row,
                       rows->values + window->first_row, window->row_count);
        export->batch.windows++;
        export->batch.rows += window->row_count;
    }
    return 0;
}

/* Those of the windows from `from` on. Blocks of a series may overlap, so exemplars are read with
 * the window that they belong to, once for each start. */
static int add_exemplars(struct export *export, struct file *file, uint32_t series,
                         struct error *error)
{
    const struct catalog_series *from = &file->catalog.series[series];
    int64_t previous = INT64_MIN;
    int r = 0;
    for (size_t w = 0; r >= 0 && w < export->rows.window_count; w++) {
        int64_t start = export->rows.windows[w].start_ns;
        if (start == previous)
            continue;
        previous = start;
        pthread_rwlock_rdlock(&file->lock);
        struct export_series *to = export_batch_series(&export->batch, &from->labels, from->type);
        pthread_rwlock_unlock(&file->lock);
        bool known = false;
        for (size_t i = 0; i < to->exemplar_count && !known; i++)
            known = to->exemplars[i].start_ns == start;
        sqlite3_stmt *statement =
            known ? NULL : file_sql(file, export->reader.connection, SQL_EXEMPLARS, error);
        if (!statement && !known)
            return error->code;
        if (known)
            continue;
        sqlite3_bind_int64(statement, 1, series);
        sqlite3_bind_int64(statement, 2, start);
        sqlite3_bind_int64(statement, 3, start + 1);
        while ((r = file_step(file, statement, error)) == 1) {
            int64_t node = sqlite3_column_int64(statement, 2);
            const void *link = sqlite3_column_blob(statement, 4);
            if (node < 0 || node >= export->nodes.node_count || !link ||
                sqlite3_column_bytes(statement, 4) != sizeof(struct profile_link))
                continue;
            struct export_exemplar exemplar = {.start_ns = start};
            exemplar.exemplar.time_ns = sqlite3_column_int64(statement, 1);
            exemplar.exemplar.value = sqlite3_column_int64(statement, 3);
            memcpy(&exemplar.exemplar.link, link, sizeof(exemplar.exemplar.link));
            pthread_rwlock_rdlock(&file->lock);
            export->nodes.nodes = file->catalog.services[from->service].tree.nodes;
            frame_map_refresh(&export->frames);
            exemplar.exemplar.node = node_map_node(&export->nodes, (uint32_t)node);
            pthread_rwlock_unlock(&file->lock);
            array_reserve(to->exemplars, to->exemplar_capacity, to->exemplar_count + 1);
            to->exemplars[to->exemplar_count++] = exemplar;
        }
    }
    return r;
}

static int export_block(struct reader *reader, struct file *file, uint32_t series,
                        struct block_view *view, size_t first, size_t count, struct error *error)
{
    struct export *export = (struct export *)reader;
    block_rows_clear(&export->rows);
    int r = block_decode(view, first, count, &export->rows);
    if (r < 0)
        return r;
    pthread_rwlock_rdlock(&file->lock);
    r = add_windows(export, file, series);
    pthread_rwlock_unlock(&file->lock);
    if (!r && file->tier == STORE_RAW)
        r = add_exemplars(export, file, series, error);
    if (!r && export->batch.rows > BATCH_ROWS_MAX)
        r = flush_batch(export);
    return r;
}

static int export_end(struct reader *reader, struct file *file, uint32_t service,
                      struct error *error)
{
    (void)file;
    (void)service;
    (void)error;
    return flush_batch((struct export *)reader);
}

static const struct reader_calls export_calls = {
    .begin = export_begin, .block = export_block, .end = export_end};

/* One stretch of a file; queries, pushes and deletions get their turn between two. */
static int export_range(struct export *export, struct file *file, int64_t from_ns, int64_t to_ns,
                        struct error *error)
{
    struct embedded *store = export->reader.store;
    struct plan_range range = {.file = file, .from_ns = from_ns, .to_ns = to_ns};
    struct plan plan = {.ranges = &range, .count = 1};
    if (is_cancelled(export->reader.limits))
        return error_set(error, -ECANCELED, "The export was stopped.");
    pthread_rwlock_rdlock(&store->gate);
    int r = reader_run(&export->reader, &plan, error);
    pthread_rwlock_unlock(&store->gate);
    forget_batch(export);
    return r;
}

static int export_span(struct export *export, struct file *file, const struct time_span *span,
                       struct error *error)
{
    const struct store_selection *selection = export->reader.selection;
    int64_t step = file->tier == STORE_RAW ? HOUR_NS : DAY_NS;
    int64_t from = MAX(span->from_ns, selection->from_ns), to = MIN(span->to_ns, selection->to_ns);
    int r = 0;
    for (int64_t at = from; !r && at < to;) {
        int64_t next = MIN(to, (at / step + 1) * step);
        r = export_range(export, file, at, next, error);
        at = next;
    }
    return r;
}

/* Windows that the file has, at least: a raw file's period, or what has outlived its source. */
static int find_spans(const struct file_list *list, struct file *file,
                      const struct store_selection *selection, struct time_spans *spans,
                      struct error *error)
{
    if (file->tier != STORE_RAW)
        return outlived_spans(list, file, selection->from_ns, selection->to_ns, spans, error);
    array_reserve(spans->list, spans->capacity, 1);
    spans->list[spans->count++] =
        (struct time_span){.from_ns = file->from_ns, .to_ns = file->to_ns};
    return 0;
}

static int export_files(struct export *export, const struct file_list *list, bool raw,
                        struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < list->count; i++) {
        struct file *file = list->files[i];
        _cleanup_time_spans_ struct time_spans spans = {0};
        if ((file->tier == STORE_RAW) != raw || file->gone)
            continue;
        r = find_spans(list, file, export->reader.selection, &spans, error);
        if (embedded_is_damaged(export->reader.store, file, r)) {
            embedded_set_aside(export->reader.store, file, error->text);
            export->reader.quality->damaged_files++;
            r = 0;
        }
        for (size_t k = 0; !r && k < spans.count; k++)
            r = export_span(export, file, &spans.list[k], error);
    }
    return r;
}

int embedded_export(struct store *base, const struct store_selection *selection,
                    const struct store_limits *limits, store_sink_fn *sink, void *context,
                    struct store_transfer *transfer, struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct store_quality quality = {0};
    struct export export = {.reader = {.store = store,
                                       .selection = selection,
                                       .limits = limits,
                                       .calls = &export_calls,
                                       .quality = &quality},
                            .writer = {.sink = sink, .context = context},
                            .codec = embedded_codec(store)};
    struct file_list list =
        embedded_files(store, selection->tenant, selection->from_ns, selection->to_ns);
    int r = export_writer_begin(&export.writer);
    if (!r)
        r = export_files(&export, &list, false, error);
    if (!r)
        r = export_files(&export, &list, true, error);
    if (!r)
        r = export_writer_end(&export.writer);
    embedded_release(store, &list);
    embedded_codec_return(store, export.codec);
    block_rows_release(&export.rows);
    buffer_release(&export.content);
    *transfer = (struct store_transfer){.batches = export.writer.batches,
                                        .windows = export.writer.windows,
                                        .rows = export.writer.rows,
                                        .bytes = export.writer.bytes,
                                        .damaged_blocks = quality.damaged_blocks,
                                        .damaged_files = embedded_damaged_files(base, selection)};
    return r;
}
