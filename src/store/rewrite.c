// SPDX-License-Identifier: Apache-2.0
// Taking windows out of blocks: for rollups that are made anew, and for what should never have been
// stored.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/plan.h"

static int remove_block(struct file *file, int64_t id, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_REMOVE_BLOCK, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, id);
    return file_step(file, statement, error);
}

static int encode_rest(struct file *file, struct block_codec *codec, uint32_t series,
                       const struct block_rows *rows, struct error *error)
{
    _cleanup_buffer_ struct buffer data = {0};
    struct file_block block = {.series = series, .level = 1};
    for (size_t i = 0; i < rows->window_count; i++) {
        block.windows += rows->windows[i].windows;
        block.rows += rows->windows[i].raw_rows;
        block.total = add_saturated(block.total, rows->windows[i].total);
    }
    block.start_ns = rows->windows[0].start_ns;
    block.last_ns = rows->windows[rows->window_count - 1].start_ns;
    block_encode(codec, rows, 0, rows->window_count, &data);
    block.data = data.data;
    block.length = data.length;
    return file_add_block(file, &block, error);
}

/* One block without the windows in [from, to). A block that can't be read stays. */
static int rewrite_block(struct file *file, struct block_codec *codec, uint32_t series, int64_t id,
                         const struct buffer *data, int64_t from_ns, int64_t to_ns,
                         uint64_t *removed, struct error *error)
{
    struct block_view view;
    if (block_open(codec, data->data, data->length, &view) < 0)
        return 0;
    size_t first = 0, end = view.window_count;
    while (first < end && view.windows[first].start_ns < from_ns)
        first++;
    while (end > first && view.windows[end - 1].start_ns >= to_ns)
        end--;
    if (first == end)
        return 0;
    for (size_t i = first; i < end; i++)
        *removed += view.windows[i].windows;
    struct block_rows rows = {0};
    int r = block_decode(&view, 0, first, &rows);
    if (!r)
        r = block_decode(&view, end, view.window_count - end, &rows);
    if (r == -EBADMSG)
        r = error_set(error, r, "%s: a block can't be read.", file->path);
    if (!r)
        r = remove_block(file, id, error);
    if (!r && rows.window_count)
        r = encode_rest(file, codec, series, &rows, error);
    block_rows_release(&rows);
    return r;
}

struct old_block {
    int64_t id;
    struct buffer data;
};

int file_remove_windows(struct file *file, struct block_codec *codec, uint32_t series,
                        int64_t from_ns, int64_t to_ns, uint64_t *removed, struct error *error)
{
    struct old_block *blocks = NULL;
    size_t count = 0, capacity = 0;
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_SURE_BLOCKS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, from_ns - tier_block_ns[file->tier]);
    sqlite3_bind_int64(statement, 3, to_ns);
    sqlite3_bind_int64(statement, 4, from_ns);
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        array_reserve(blocks, capacity, count + 1);
        blocks[count] = (struct old_block){.id = sqlite3_column_int64(statement, 0)};
        buffer_add(&blocks[count++].data, sqlite3_column_blob(statement, 1),
                   (size_t)sqlite3_column_bytes(statement, 1));
    }
    for (size_t i = 0; i < count; i++) {
        if (!r)
            r = rewrite_block(file, codec, series, blocks[i].id, &blocks[i].data, from_ns, to_ns,
                              removed, error);
        buffer_release(&blocks[i].data);
    }
    free(blocks);
    return r;
}

/* ---- deleting ---- */

static int remove_exemplars(struct file *file, uint32_t series, int64_t from_ns, int64_t to_ns,
                            struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_REMOVE_EXEMPLARS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, from_ns);
    sqlite3_bind_int64(statement, 3, to_ns);
    return file_step(file, statement, error);
}

static bool is_selected(struct file *file, uint32_t id, const struct store_selection *selection)
{
    pthread_rwlock_rdlock(&file->lock);
    const struct catalog_series *series = &file->catalog.series[id];
    bool selected =
        (!selection->type || !strcmp(selection->type, series->type)) &&
        (!selection->selector || selector_matches(selection->selector, &series->labels));
    pthread_rwlock_unlock(&file->lock);
    return selected;
}

/* Every slot of the next tier in the range is made anew. */
static int note_all_late(struct file *file, int64_t from_ns, int64_t to_ns, struct error *error)
{
    if (file->tier == STORE_DAY)
        return 0;
    int64_t slot = tier_slot_ns[file->tier + 1];
    int r = 0;
    for (int64_t at = from_ns / slot * slot; !r && at < to_ns; at += slot)
        r = file_note_late(file, at, error);
    return r;
}

static int delete_in_file(struct embedded *store, struct file *file,
                          const struct store_selection *selection, int64_t from_ns, int64_t to_ns,
                          uint64_t *removed, struct error *error)
{
    int r = file_load(file, error);
    if (r < 0)
        return r;
    struct block_codec *codec = embedded_codec(store);
    pthread_mutex_lock(&file->write_lock);
    r = file_begin(file, error);
    if (!r) {
        pthread_rwlock_rdlock(&file->lock);
        size_t count = file->catalog.series_count;
        pthread_rwlock_unlock(&file->lock);
        uint64_t before = *removed;
        for (uint32_t i = 0; !r && i < count; i++) {
            if (!is_selected(file, i, selection))
                continue;
            r = file_remove_windows(file, codec, i, from_ns, to_ns, removed, error);
            if (!r && file->tier == STORE_RAW)
                r = remove_exemplars(file, i, from_ns, to_ns, error);
        }
        if (!r && *removed > before)
            r = note_all_late(file, from_ns, to_ns, error);
        r = file_end(file, r, error);
    }
    pthread_mutex_unlock(&file->write_lock);
    embedded_codec_return(store, codec);
    return r;
}

/* Raw data goes first, and rollups of it are made anew. What has no raw data any more can only go
 * by whole slots and whole rollup series. */
int embedded_delete(struct store *base, const struct store_selection *selection,
                    uint64_t *ret_windows, struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct file_list list =
        embedded_files(store, selection->tenant, selection->from_ns, selection->to_ns);
    bool exact = true, fits = plan_selector_fits_rollups(selection->selector);
    uint64_t removed = 0, rolled = 0;
    int r = store->read_only ? error_set(error, -EROFS, "The store was opened for reading.") : 0;
    for (size_t i = 0; !r && i < list.count; i++) {
        struct file *file = list.files[i];
        int64_t from = MAX(selection->from_ns, file->from_ns);
        int64_t to = MIN(selection->to_ns, file->to_ns);
        if (file->tier == STORE_RAW) {
            r = delete_in_file(store, file, selection, from, to, &removed, error);
            continue;
        }
        /* Up to where raw data begins in this class, the rollup is all there is. */
        for (size_t k = 0; k < list.count; k++)
            if (list.files[k]->tier == STORE_RAW &&
                !strcmp(list.files[k]->class_name, file->class_name))
                to = MIN(to, list.files[k]->from_ns);
        if (from >= to)
            continue;
        int64_t slot = tier_slot_ns[file->tier];
        int64_t first = (from + slot - 1) / slot * slot, end = to / slot * slot;
        exact &= fits && first == from && end == to;
        if (fits && first < end)
            r = delete_in_file(store, file, selection, first, end, &rolled, error);
    }
    embedded_release(store, &list);
    while (!r && (r = embedded_maintain(base, NULL, error)) == 1)
        r = 0;
    *ret_windows = removed + rolled;
    if (!r && !exact)
        r = error_set(error, -ENOTSUP,
                      "Raw data was removed; rollups whose raw data is gone hold whole slots of "
                      "whole services, and what was selected is not that. Select by service_name, "
                      "version and full days, or let them expire.");
    return r;
}
