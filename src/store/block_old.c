// SPDX-License-Identifier: Apache-2.0
// Column blocks of format 1, which are read and no longer written: rows in order of windows, as
// distances in the dictionary. Compaction turns them into what is written now.

#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/block_codec.h"

#define HIGH_BITS 0x8080808080808080ull

enum {
    HEAD_PACKED = 1,    /* the window table and dictionary are compressed */
    COLUMNS_PACKED = 2, /* the columns are */
};

static int read_windows(struct block_codec *codec, struct cursor *head, struct block_view *view)
{
    array_reserve(codec->windows, codec->window_capacity, view->window_count);
    array_reserve(codec->places, codec->place_capacity, view->window_count + 1);
    int64_t start = 0, duration = 0;
    size_t rows = 0, index_at = 0, value_at = view->index_bytes;
    for (size_t w = 0; w < view->window_count; w++) {
        struct block_window *window = &codec->windows[w];
        start = (int64_t)((uint64_t)start + (uint64_t)cursor_signed(head));
        duration = (int64_t)((uint64_t)duration + (uint64_t)cursor_signed(head));
        uint64_t count = cursor_varint(head);
        *window = (struct block_window){.start_ns = start,
                                        .duration_ns = duration,
                                        .first_ns = start,
                                        .last_ns = start,
                                        .windows = 1,
                                        .raw_rows = count,
                                        .row_count = (uint32_t)count,
                                        .total = cursor_signed(head)};
        codec->places[w] = (struct window_place){.index_at = index_at, .value_at = value_at};
        uint64_t index_bytes = cursor_varint(head), value_bytes = cursor_varint(head);
        if (view->flags & BLOCK_MERGED) {
            window->first_ns = (int64_t)((uint64_t)start + cursor_varint(head));
            window->last_ns = (int64_t)((uint64_t)window->first_ns + cursor_varint(head));
            window->windows = cursor_varint(head);
            window->raw_rows = cursor_varint(head);
        }
        if (count > view->row_count - rows || index_bytes > view->index_bytes - index_at ||
            value_bytes > view->column_bytes - value_at)
            return -EBADMSG;
        rows += count;
        index_at += index_bytes;
        value_at += value_bytes;
    }
    codec->places[view->window_count] =
        (struct window_place){.index_at = index_at, .value_at = value_at};
    return head->failed || rows != view->row_count || index_at != view->index_bytes ||
                   value_at != view->column_bytes
               ? -EBADMSG
               : 0;
}

static int read_dictionary(struct block_codec *codec, struct cursor *head, struct block_view *view)
{
    array_reserve(codec->dictionary, codec->dictionary_capacity, view->dictionary_count + 1);
    uint64_t node = 0;
    for (size_t i = 0; i < view->dictionary_count; i++) {
        uint64_t step = cursor_varint(head);
        if ((i && !step) || step > UINT32_MAX || (node += step) > UINT32_MAX)
            return -EBADMSG;
        codec->dictionary[i] = (uint32_t)node;
    }
    return head->failed || cursor_left(head) ? -EBADMSG : 0;
}

int block_old_open(struct block_codec *codec, struct cursor *cursor, struct block_view *view)
{
    uint64_t windows = cursor_varint(cursor), dictionary = cursor_varint(cursor);
    uint64_t rows = cursor_varint(cursor);
    view->unit = cursor_varint(cursor);
    uint64_t index_bytes = cursor_varint(cursor), column_bytes = cursor_varint(cursor);
    uint64_t head_bytes = cursor_varint(cursor), head_packed = cursor_varint(cursor);
    const uint8_t *head = cursor_bytes(cursor, head_packed);
    /* Every window takes six bytes of the head, every entry one, every row two of the columns. */
    if (cursor->failed || windows > BLOCK_WINDOWS_MAX || rows > BLOCK_ROWS_MAX ||
        dictionary > rows || windows > head_bytes / 6 || dictionary > head_bytes ||
        head_bytes > 64ull * BLOCK_WINDOWS_MAX + 5ull * BLOCK_ROWS_MAX ||
        column_bytes > 2ull * VARINT_BYTES_MAX * BLOCK_ROWS_MAX || index_bytes > column_bytes ||
        rows > column_bytes / 2 || !view->unit || view->unit > INT64_MAX)
        return -EBADMSG;
    view->window_count = windows;
    view->dictionary_count = dictionary;
    view->row_count = rows;
    view->index_bytes = index_bytes;
    view->column_bytes = column_bytes;
    view->packed = cursor->at;
    view->packed_bytes = cursor_left(cursor);
    head = block_unpack(codec, &codec->sections[0], head, head_packed, view->flags & HEAD_PACKED,
                        head_bytes);
    if (!head)
        return -EBADMSG;
    struct cursor table = cursor_over(head, head_bytes);
    if (read_windows(codec, &table, view) < 0 || read_dictionary(codec, &table, view) < 0)
        return -EBADMSG;
    view->windows = codec->windows;
    view->dictionary = codec->dictionary;
    return 0;
}

static bool open_columns(struct block_view *view)
{
    if (!view->columns)
        view->columns =
            block_unpack(view->codec, &view->codec->sections[1], view->packed, view->packed_bytes,
                         view->flags & COLUMNS_PACKED, view->column_bytes);
    return view->columns;
}

static inline size_t sum_of_bytes(uint64_t bytes)
{
    uint64_t pairs = (bytes & 0x00ff00ff00ff00ffull) + (bytes >> 8 & 0x00ff00ff00ff00ffull);
    return (size_t)(pairs * 0x0001000100010001ull >> 48);
}

/* One window's rows, `next` being one beyond the index of the row before. */
static int sum_window(const struct block_view *view, size_t w, uint64_t *sums)
{
    const struct window_place *place = &view->codec->places[w];
    struct cursor index = {.at = view->columns + place->index_at,
                           .end = view->columns + place[1].index_at};
    struct cursor value = {.at = view->columns + place->value_at,
                           .end = view->columns + place[1].value_at};
    if (w + 1 == view->window_count)
        index.end = view->columns + view->index_bytes;
    uint32_t left = view->windows[w].row_count;
    size_t next = 0, limit = view->dictionary_count;
    bool is_signed = view->flags & BLOCK_SIGNED;
    while (left) {
        if (left >= 8 && cursor_left(&index) >= 8 && cursor_left(&value) >= 8 && !is_signed) {
            uint64_t steps, values;
            memcpy(&steps, index.at, 8);
            memcpy(&values, value.at, 8);
            if (!((steps | values) & HIGH_BITS) && sum_of_bytes(steps) + 8 <= limit - next) {
                for (unsigned i = 0; i < 8; i++) {
                    next += steps >> (8 * i) & 0xff;
                    sums[next++] += values >> (8 * i) & 0xff;
                }
                index.at += 8;
                value.at += 8;
                left -= 8;
                continue;
            }
        }
        uint64_t step = cursor_varint(&index), number = cursor_varint(&value);
        if (step >= limit - next)
            return -EBADMSG; /* also at the end of the dictionary: limit - next is 0 */
        next += step;
        sums[next++] += is_signed ? (uint64_t)unzigzag(number) : number;
        left--;
    }
    return index.failed || value.failed || index.at != index.end || value.at != value.end ? -EBADMSG
                                                                                          : 0;
}

int block_old_sum(struct block_view *view, size_t first, size_t count, uint64_t *sums)
{
    if (!open_columns(view))
        return -EBADMSG;
    for (size_t w = first; w < first + count; w++)
        if (sum_window(view, w, sums) < 0)
            return -EBADMSG;
    return 0;
}

int block_old_decode(struct block_view *view, size_t first, size_t count, struct block_rows *rows)
{
    if (!open_columns(view))
        return -EBADMSG;
    for (size_t w = first; w < first + count; w++) {
        const struct window_place *place = &view->codec->places[w];
        struct cursor index =
            cursor_over(view->columns + place->index_at, view->index_bytes - place->index_at);
        struct cursor value =
            cursor_over(view->columns + place->value_at, view->column_bytes - place->value_at);
        struct block_window window = view->windows[w];
        if (rows->row_count + window.row_count > UINT32_MAX)
            return -E2BIG;
        window.first_row = (uint32_t)rows->row_count;
        block_rows_reserve(rows, window.row_count);
        size_t next = 0;
        for (uint32_t i = 0; i < window.row_count; i++) {
            uint64_t step = cursor_varint(&index), number = cursor_varint(&value);
            if (index.failed || value.failed || step >= view->dictionary_count - next)
                return -EBADMSG;
            next += step;
            rows->nodes[rows->row_count] = view->dictionary[next++];
            rows->values[rows->row_count++] =
                block_scale(view, view->flags & BLOCK_SIGNED ? (uint64_t)unzigzag(number) : number);
        }
        array_reserve(rows->windows, rows->window_capacity, rows->window_count + 1);
        rows->windows[rows->window_count++] = window;
    }
    return 0;
}

int block_old_pick(struct block_view *view, size_t first, size_t count, const bool *wanted,
                   int64_t *totals)
{
    struct block_rows rows = {0};
    int r = block_old_decode(view, first, count, &rows);
    for (size_t w = 0; !r && w < count; w++) {
        const struct block_window *window = &rows.windows[w];
        for (uint32_t i = window->first_row; i < window->first_row + window->row_count; i++)
            if (wanted[rows.nodes[i]])
                totals[w] = add_saturated(totals[w], rows.values[i]);
    }
    block_rows_release(&rows);
    return r;
}
