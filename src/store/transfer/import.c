// SPDX-License-Identifier: Apache-2.0
// Importing export files. Raw windows are written as any push is, under an id that follows from
// their content, so that the same ones are stored once however often they come. Rollups go into
// their files in one transaction each, with the same kind of id.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "store/embedded/outlived.h"
#include "store/transfer/export_file.h"

/* ---- raw windows ---- */

struct raw_batch {
    struct store_profile *windows;
    struct store_row *rows;
    struct store_exemplar *exemplars;
    size_t count, row_count, exemplar_count;
};

static void raw_batch_release(struct raw_batch *raw)
{
    free(raw->windows);
    free(raw->rows);
    free(raw->exemplars);
}

/* The tree as nodes of the tables' own profile; by node of the tree. A damaged file could hold a
 * stack twice, so ids may differ. */
static uint32_t *make_nodes(struct catalog *catalog)
{
    const struct tree *tree = &catalog->services[0].tree;
    uint32_t *nodes = memory_zalloc(tree->count, sizeof(*nodes));
    for (uint32_t i = 1; i < tree->count; i++)
        nodes[i] =
            profile_child(&catalog->tables, nodes[tree->nodes[i].parent], tree->nodes[i].frame);
    return nodes;
}

static int compare_exemplars(const void *a, const void *b)
{
    const struct export_exemplar *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* A window's exemplars go with the first window of that series and start; they are in order of
 * starts. */
static void add_exemplars(struct raw_batch *raw, const struct export_series *series,
                          const uint32_t *nodes, int64_t start_ns, struct store_profile *window)
{
    size_t low = 0, high = series->exemplar_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (series->exemplars[middle].start_ns < start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    window->exemplars = raw->exemplars + raw->exemplar_count;
    for (; low < series->exemplar_count && series->exemplars[low].start_ns == start_ns; low++) {
        raw->exemplars[raw->exemplar_count] = series->exemplars[low].exemplar;
        raw->exemplars[raw->exemplar_count++].node = nodes[series->exemplars[low].exemplar.node];
        window->exemplar_count++;
    }
}

static void add_windows(struct raw_batch *raw, struct export_batch *batch, size_t index,
                        const uint32_t *nodes)
{
    const struct export_series *series = &batch->series[index];
    const struct block_rows *rows = &series->rows;
    if (series->exemplar_count)
        qsort(series->exemplars, series->exemplar_count, sizeof(*series->exemplars),
              compare_exemplars);
    for (size_t w = 0; w < rows->window_count; w++) {
        const struct block_window *from = &rows->windows[w];
        struct store_profile *to = &raw->windows[raw->count++];
        *to = (struct store_profile){.labels = &batch->catalog.series[index].labels,
                                     .type = batch->catalog.series[index].type,
                                     .time_ns = from->start_ns,
                                     .duration_ns = from->duration_ns,
                                     .profile = &batch->catalog.tables,
                                     .rows = raw->rows + raw->row_count,
                                     .row_count = from->row_count};
        for (uint32_t i = 0; i < from->row_count; i++)
            raw->rows[raw->row_count++] =
                (struct store_row){.node = nodes[rows->nodes[from->first_row + i]],
                                   .value = rows->values[from->first_row + i]};
        if (!w || from->start_ns != rows->windows[w - 1].start_ns)
            add_exemplars(raw, series, nodes, from->start_ns, to);
    }
}

static int import_raw(struct store *store, struct export_batch *batch, const char *id,
                      struct error *error)
{
    size_t exemplars = 0;
    for (size_t i = 0; i < batch->series_count; i++)
        exemplars += batch->series[i].exemplar_count;
    _cleanup_(raw_batch_release) struct raw_batch raw = {
        .windows = memory_zalloc(batch->windows + 1, sizeof(*raw.windows)),
        .rows = memory_zalloc(batch->rows + 1, sizeof(*raw.rows)),
        .exemplars = memory_zalloc(exemplars + 1, sizeof(*raw.exemplars))};
    _cleanup_free_ uint32_t *nodes = make_nodes(&batch->catalog);
    for (size_t i = 0; i < batch->series_count; i++)
        add_windows(&raw, batch, i, nodes);
    return store_write(
        store,
        &(struct store_batch){
            .tenant = batch->tenant, .batch_id = id, .profiles = raw.windows, .count = raw.count},
        error);
}

/* ---- rollups ---- */

struct rollup_import {
    struct embedded *store;
    struct export_batch *batch;
    struct file *file;
    struct block_codec *codec;
    uint8_t id[16];
};

static int find_id(struct rollup_import *import, struct error *error)
{
    sqlite3_stmt *statement = file_sql(import->file, import->file->writer, SQL_FIND_BATCH, error);
    if (!statement)
        return error->code;
    sqlite3_bind_blob(statement, 1, import->id, sizeof(import->id), SQLITE_STATIC);
    int r = file_step(import->file, statement, error);
    sqlite3_reset(statement);
    return r;
}

static int add_id(struct rollup_import *import, struct error *error)
{
    sqlite3_stmt *statement = file_sql(import->file, import->file->writer, SQL_ADD_BATCH, error);
    if (!statement)
        return error->code;
    sqlite3_bind_blob(statement, 1, import->id, sizeof(import->id), SQLITE_STATIC);
    return file_step(import->file, statement, error);
}

static int add_slot(struct file *file, int64_t slot_ns, struct error *error)
{
    int r = file_add_slot(file, slot_ns, error);
    return r < 0 ? r : file_note_late(file, slot_ns, error);
}

/* 1 when a file of a tier has a slot in the range. */
static int has_slots(struct rollup_import *import, enum store_tier tier, int64_t from_ns,
                     int64_t to_ns, struct error *error)
{
    struct file *file = embedded_file(import->store, import->file->tenant, import->file->class_name,
                                      tier, from_ns, false, error);
    if (!file)
        return 0;
    struct connection *connection = file_borrow(file, error);
    sqlite3_stmt *statement = connection ? file_sql(file, connection, SQL_SLOTS, error) : NULL;
    int r = statement ? 0 : error->code;
    if (statement) {
        sqlite3_bind_int64(statement, 1, from_ns);
        sqlite3_bind_int64(statement, 2, to_ns);
        r = file_step(file, statement, error);
        sqlite3_reset(statement);
    }
    file_return(file, connection);
    embedded_unref(import->store, file);
    return r;
}

/* 1 when the store has data of its own there which the slot, or a coarser one, is made of or was
 * made of: whichever was made again would lose the other. */
static int is_taken(struct rollup_import *import, int64_t slot_ns, struct error *error)
{
    enum store_tier tier = import->batch->tier;
    int64_t end = slot_ns + tier_slot_ns[tier];
    struct file *raw = embedded_file(import->store, import->file->tenant, import->file->class_name,
                                     STORE_RAW, slot_ns, false, error);
    bool taken = raw && raw->floor_ns < end;
    embedded_unref(import->store, raw);
    int r = 0;
    for (unsigned finer = STORE_TEN_MINUTES; !taken && r >= 0 && finer < tier; finer++)
        taken = (r = has_slots(import, finer, slot_ns, end, error)) == 1;
    int own = taken || r < 0 ? r : has_slots(import, tier, slot_ns, end, error);
    for (unsigned coarser = tier + 1; !taken && own == 0 && r >= 0 && coarser < STORE_TIERS;
         coarser++) {
        int64_t from = slot_ns / tier_slot_ns[coarser] * tier_slot_ns[coarser];
        taken = (r = has_slots(import, coarser, from, from + tier_slot_ns[coarser], error)) == 1;
    }
    return r < 0 ? r : own < 0 ? own : taken;
}

/* Series `index` of the batch: stacks into the file's tree, a block for all windows. */
static int add_series(struct rollup_import *import, struct frame_map *frames, size_t index,
                      struct error *error)
{
    struct file *file = import->file;
    const struct catalog_series *from = &import->batch->catalog.series[index];
    const struct tree *tree = &import->batch->catalog.services[0].tree;
    const struct block_rows *rows = &import->batch->series[index].rows;
    pthread_rwlock_wrlock(&file->lock);
    uint32_t series = catalog_series(&file->catalog, &from->labels, from->type);
    uint32_t service = file->catalog.series[series].service;
    pthread_rwlock_unlock(&file->lock);
    int r = file_load_tree(file, service, error);
    if (r < 0)
        return r;
    struct node_map map;
    struct block_rows moved = {0};
    _cleanup_buffer_ struct buffer data = {0};
    struct file_block block = {.series = series,
                               .level = 1,
                               .start_ns = rows->windows[0].start_ns,
                               .last_ns = rows->windows[rows->window_count - 1].start_ns};
    pthread_rwlock_wrlock(&file->lock);
    node_map_init(&map, frames, tree->nodes, tree->count, &file->catalog.services[service].tree,
                  NULL);
    for (size_t i = 0; i < rows->row_count; i++)
        rows->nodes[i] = node_map_node(&map, rows->nodes[i]);
    node_map_release(&map);
    pthread_rwlock_unlock(&file->lock);
    for (size_t w = 0; w < rows->window_count; w++) {
        const struct block_window *window = &rows->windows[w];
        block_rows_add(&moved, window, rows->nodes + window->first_row,
                       rows->values + window->first_row, window->row_count);
        block.windows += window->windows;
        block.rows += window->raw_rows;
        block.total += moved.windows[w].total;
        if (!r)
            r = add_slot(file, window->start_ns, error);
    }
    block_encode(import->codec, &moved, 0, moved.window_count, &data);
    block.data = data.data;
    block.length = data.length;
    if (!r)
        r = file_add_block(file, &block, error);
    block_rows_release(&moved);
    return r;
}

static int add_rollup(struct rollup_import *import, struct error *error)
{
    struct frame_map frames;
    int r = find_id(import, error);
    if (r)
        return r < 0 ? r : error_set(error, -EALREADY, "The batch is already imported.");
    frame_map_init(&frames, &import->batch->catalog.tables, &import->file->catalog.tables);
    for (size_t i = 0; !r && i < import->batch->series_count; i++)
        r = add_series(import, &frames, i, error);
    frame_map_release(&frames);
    return r < 0 ? r : add_id(import, error);
}

/* Slots begin where slots do, in one file, and not in the store's own time. */
static int check_slots(struct rollup_import *import, struct error *error)
{
    int64_t slot = tier_slot_ns[import->batch->tier];
    for (size_t i = 0; i < import->batch->series_count; i++) {
        const struct block_rows *rows = &import->batch->series[i].rows;
        for (size_t w = 0; w < rows->window_count; w++) {
            int64_t start = rows->windows[w].start_ns;
            if (start % slot || start < import->file->from_ns || start >= import->file->to_ns)
                return error_set(error, -EBADMSG, "A rollup of the file is not aligned to a slot.");
            int r = is_taken(import, start, error);
            if (r)
                return r < 0 ? r
                             : error_set(error, -ERANGE,
                                         "The store already has data for the time of %s, and "
                                         "rollups of the same time can't be merged.",
                                         import->file->name);
        }
    }
    return 0;
}

static int import_rollup(struct store *base, struct export_batch *batch, const char *id,
                         struct error *error)
{
    struct embedded *store = embedded_of(base);
    const char *service = batch->catalog.services[0].name;
    struct rollup_import import = {.store = store, .batch = batch};
    XXH128_hash_t hash = XXH3_128bits(id, strlen(id));
    memcpy(import.id, &hash, sizeof(import.id));
    int64_t start = batch->series[0].rows.windows[0].start_ns;
    if (start <= 0 || start > embedded_now(store) + DAY_NS)
        return error_set(error, -EBADMSG, "Invalid rollup timestamp in the file.");
    pthread_rwlock_rdlock(&store->gate);
    import.file = embedded_file(store, batch->tenant, embedded_class_of(store, service)->name,
                                batch->tier, start, true, error);
    int r = import.file ? file_load(import.file, error) : error->code;
    if (!r) {
        import.codec = embedded_codec(store);
        pthread_mutex_lock(&import.file->write_lock);
        r = file_begin(import.file, error);
        if (!r) {
            r = find_id(&import, error);
            if (!r)
                r = check_slots(&import, error);
            if (r >= 0)
                r = add_rollup(&import, error);
            r = file_end(import.file, r, error);
        }
        pthread_mutex_unlock(&import.file->write_lock);
        embedded_codec_return(store, import.codec);
    }
    embedded_unref(store, import.file);
    pthread_rwlock_unlock(&store->gate);
    return r;
}

/* ---- the file ---- */

static int import_batch(struct store *store, bool rollups, struct export_batch *batch,
                        struct store_transfer *transfer, struct error *error)
{
    char id[EXPORT_ID_BYTES];
    export_batch_id(batch, id);
    int r = batch->tier == STORE_RAW ? import_raw(store, batch, id, error)
            : rollups                ? import_rollup(store, batch, id, error)
                      : error_set(error, -ERANGE, "This store keeps raw windows only, no rollups.");
    transfer->batches++;
    if (r == -EALREADY) {
        transfer->repeated_batches++;
        return 0;
    }
    if (r == -ERANGE) {
        if (!transfer->refused_batches++)
            snprintf(transfer->refusal, sizeof(transfer->refusal), "%s", error->text);
        return 0;
    }
    if (!r) {
        transfer->windows += batch->windows;
        transfer->rows += batch->rows;
    }
    return r;
}

static int import_file(struct store *store, bool rollups, store_source_fn *source, void *context,
                       const char *tenant, struct store_transfer *transfer, struct error *error)
{
    struct export_reader reader = {.source = source, .context = context};
    struct block_codec *codec = block_codec_new();
    _cleanup_buffer_ struct buffer content = {0};
    int r = export_reader_begin(&reader, error);
    while (!r && (r = export_reader_next(&reader, &content, error)) == 1) {
        _cleanup_export_batch_ struct export_batch batch = {0};
        r = export_batch_decode(content.data, content.length, codec, &batch);
        if (r < 0) {
            r = error_set(error, r,
                          "Batch %llu of the file is malformed despite a correct checksum; the "
                          "batches before are stored.",
                          (unsigned long long)reader.batches + 1);
            break;
        }
        export_reader_count(&reader, &batch);
        if (tenant && strcmp(tenant, batch.tenant))
            continue;
        r = import_batch(store, rollups, &batch, transfer, error);
    }
    transfer->bytes = reader.bytes;
    block_codec_free(codec);
    return r;
}

int embedded_import(struct store *store, store_source_fn *source, void *context, const char *tenant,
                    struct store_transfer *transfer, struct error *error)
{
    return import_file(store, true, source, context, tenant, transfer, error);
}

int transfer_import(struct store *store, store_source_fn *source, void *context, const char *tenant,
                    struct store_transfer *transfer, struct error *error)
{
    return import_file(store, false, source, context, tenant, transfer, error);
}
