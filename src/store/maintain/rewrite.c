// SPDX-License-Identifier: Apache-2.0
// Taking windows out of blocks, and counting them: for rollups that are made anew, and for what
// should never have been stored.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/embedded/plan.h"

static int remove_block(struct file *file, int64_t id, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_REMOVE_BLOCK, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, id);
    file->removed = true;
    return file_step(file, statement, error);
}

static void bind_range(struct file *file, sqlite3_stmt *statement, uint32_t series, int64_t from_ns,
                       int64_t to_ns)
{
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, from_ns - tier_block_ns[file->tier]);
    sqlite3_bind_int64(statement, 3, to_ns);
    sqlite3_bind_int64(statement, 4, from_ns);
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

int file_count_windows(struct file *file, struct connection *connection, struct block_codec *codec,
                       uint32_t series, int64_t from_ns, int64_t to_ns,
                       struct store_deleted *counted, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, connection, SQL_SURE_BLOCKS, error);
    if (!statement)
        return error->code;
    bind_range(file, statement, series, from_ns, to_ns);
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        struct block_view view;
        const void *data = sqlite3_column_blob(statement, 1);
        if (!data || block_open(codec, data, (size_t)sqlite3_column_bytes(statement, 1), &view) < 0)
            continue;
        for (size_t i = 0; i < view.window_count; i++) {
            const struct block_window *window = &view.windows[i];
            if (window->start_ns < from_ns || window->start_ns >= to_ns)
                continue;
            counted->windows += window->windows;
            counted->rows += window->raw_rows;
        }
    }
    return r;
}

/* One block without the windows in [from, to). A block that can't be read stays. */
static int rewrite_block(struct file *file, struct block_codec *codec, uint32_t series, int64_t id,
                         const struct buffer *data, int64_t from_ns, int64_t to_ns,
                         struct store_deleted *removed, struct error *error)
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
    for (size_t i = first; i < end; i++) {
        removed->windows += view.windows[i].windows;
        removed->rows += view.windows[i].raw_rows;
    }
    struct block_rows rows = {0};
    int r = block_decode(&view, 0, first, &rows);
    if (!r)
        r = block_decode(&view, end, view.window_count - end, &rows);
    if (r == -EBADMSG)
        r = error_set(error, r, "%s: unreadable block.", file->path);
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
                        int64_t from_ns, int64_t to_ns, struct store_deleted *removed,
                        struct error *error)
{
    struct old_block *blocks = NULL;
    size_t count = 0, capacity = 0;
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_SURE_BLOCKS, error);
    if (!statement)
        return error->code;
    bind_range(file, statement, series, from_ns, to_ns);
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
