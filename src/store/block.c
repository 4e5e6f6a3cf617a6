// SPDX-License-Identifier: Apache-2.0
// Column blocks, both ways. The inner loop of every query is block_sum: eight rows at a time while
// differences and values fit a byte each, which nearly all do.

#include "store/block.h"

#include <limits.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/varint.h"

#define BLOCK_FORMAT 1
#define COMPRESS_FROM 128 /* bytes; below, zstd's frame costs more than it saves */
#define HIGH_BITS 0x8080808080808080ull

enum {
    FLAG_HEAD_PACKED = 1,    /* the window table and dictionary are compressed */
    FLAG_COLUMNS_PACKED = 2, /* the columns are */
    FLAG_MERGED = 4,         /* windows that were merged: first, last, counts */
    FLAG_SIGNED = 8,         /* values are zigzag */
};

struct window_place { /* in the columns, from their starts */
    size_t index_at, value_at;
};

struct block_codec {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
    struct buffer head, columns, values, packed;
    struct block_window *windows;
    struct window_place *places;
    uint32_t *dictionary;
    size_t window_capacity, place_capacity, dictionary_capacity;
};

struct block_codec *block_codec_new(void)
{
    struct block_codec *codec = memory_zalloc(1, sizeof(*codec));
    codec->compressor = ZSTD_createCCtx();
    codec->decompressor = ZSTD_createDCtx();
    if (!codec->compressor || !codec->decompressor)
        abort(); /* as memory_alloc does */
    /* Columns of small numbers have few real repetitions; looking only for long ones makes both
     * ways a tenth to a quarter faster, and the result no larger. */
    ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_compressionLevel, 1);
    ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_minMatch, 7);
    return codec;
}

void block_codec_free(struct block_codec *codec)
{
    if (!codec)
        return;
    ZSTD_freeCCtx(codec->compressor);
    ZSTD_freeDCtx(codec->decompressor);
    buffer_release(&codec->head);
    buffer_release(&codec->columns);
    buffer_release(&codec->values);
    buffer_release(&codec->packed);
    free(codec->windows);
    free(codec->places);
    free(codec->dictionary);
    free(codec);
}

/* ---- writing ---- */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t magnitude_of(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* The largest number that divides all values; at least 1. */
static uint64_t common_unit(const int64_t *values, size_t count, bool *ret_negative)
{
    uint64_t unit = 0;
    bool negative = false;
    for (size_t i = 0; i < count; i++) {
        negative |= values[i] < 0;
        uint64_t magnitude = magnitude_of(values[i]);
        if (unit != 1 && (!unit || magnitude % unit))
            unit = greatest_divisor(unit, magnitude);
    }
    *ret_negative = negative;
    return unit ? unit : 1;
}

static int compare_nodes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts numbers by bytes, lowest first: several times faster than comparing. `other` is as large.
 */
static uint32_t *sort_numbers(uint32_t *numbers, uint32_t *other, size_t count)
{
    if (count < 64) {
        qsort(numbers, count, sizeof(*numbers), compare_nodes);
        return numbers;
    }
    for (unsigned shift = 0; shift < 32; shift += 8) {
        size_t starts[257] = {0};
        for (size_t i = 0; i < count; i++)
            starts[(numbers[i] >> shift & 0xff) + 1]++;
        if (starts[(numbers[0] >> shift & 0xff) + 1] == count)
            continue; /* all have the same byte here */
        for (unsigned i = 1; i < 257; i++)
            starts[i] += starts[i - 1];
        for (size_t i = 0; i < count; i++)
            other[starts[numbers[i] >> shift & 0xff]++] = numbers[i];
        uint32_t *swap = numbers;
        numbers = other;
        other = swap;
    }
    return numbers;
}

/* Fills codec->dictionary with the distinct nodes, ascending. */
static size_t make_dictionary(struct block_codec *codec, const uint32_t *nodes, size_t count,
                              bool sorted)
{
    array_reserve(codec->dictionary, codec->dictionary_capacity, 2 * count + 1);
    if (!count)
        return 0;
    memcpy(codec->dictionary, nodes, count * sizeof(*nodes));
    if (sorted) /* one window: each node once, in order */
        return count;
    uint32_t *numbers = sort_numbers(codec->dictionary, codec->dictionary + count, count);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++)
        if (!i || numbers[i] != codec->dictionary[distinct - 1])
            codec->dictionary[distinct++] = numbers[i];
    return distinct;
}

/* Both run through ascending numbers, so a window costs its rows, not a search for each; large
 * strides are searched by doubling. */
static size_t find_index(const uint32_t *dictionary, size_t count, size_t from, uint32_t node)
{
    size_t step = 1, low = from;
    while (low + step < count && dictionary[low + step] <= node) {
        low += step;
        step *= 2;
    }
    size_t high = MIN(low + step, count);
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (dictionary[middle] <= node)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void put_columns(struct block_codec *codec, const struct block_rows *rows, size_t first,
                        size_t count, size_t dictionary_count, uint64_t unit, bool negative)
{
    codec->columns.length = codec->values.length = 0;
    array_reserve(codec->places, codec->place_capacity, count);
    for (size_t w = 0; w < count; w++) {
        const struct block_window *window = &rows->windows[first + w];
        const uint32_t *nodes = rows->nodes + window->first_row;
        const int64_t *values = rows->values + window->first_row;
        size_t room = (size_t)window->row_count * VARINT_BYTES_MAX;
        uint8_t *index = (uint8_t *)buffer_reserve(&codec->columns, room), *index_start = index;
        uint8_t *value = (uint8_t *)buffer_reserve(&codec->values, room), *value_start = value;
        size_t at = 0, next = 0;
        for (uint32_t i = 0; i < window->row_count; i++) {
            at = find_index(codec->dictionary, dictionary_count, at, nodes[i]);
            index = varint_put(index, at - next);
            next = at + 1;
            int64_t scaled = unit == 1 ? values[i] : values[i] / (int64_t)unit;
            value = varint_put(value, negative ? zigzag(scaled) : (uint64_t)scaled);
        }
        codec->places[w] = (struct window_place){.index_at = (size_t)(index - index_start),
                                                 .value_at = (size_t)(value - value_start)};
        codec->columns.length += codec->places[w].index_at;
        codec->values.length += codec->places[w].value_at;
    }
}

static void put_windows(struct block_codec *codec, const struct block_window *windows, size_t count,
                        bool merged)
{
    int64_t start = 0, duration = 0;
    for (size_t w = 0; w < count; w++) {
        const struct block_window *window = &windows[w];
        struct buffer *head = &codec->head;
        buffer_add_signed(head, (int64_t)((uint64_t)window->start_ns - (uint64_t)start));
        buffer_add_signed(head, (int64_t)((uint64_t)window->duration_ns - (uint64_t)duration));
        buffer_add_varint(head, window->row_count);
        buffer_add_signed(head, window->total);
        buffer_add_varint(head, codec->places[w].index_at);
        buffer_add_varint(head, codec->places[w].value_at);
        if (merged) {
            buffer_add_varint(head, (uint64_t)window->first_ns - (uint64_t)window->start_ns);
            buffer_add_varint(head, (uint64_t)window->last_ns - (uint64_t)window->first_ns);
            buffer_add_varint(head, window->windows);
            buffer_add_varint(head, window->raw_rows);
        }
        start = window->start_ns;
        duration = window->duration_ns;
    }
}

/* Leaves `content` or, when that is smaller, its compressed form in codec->packed. */
static bool pack(struct block_codec *codec, const struct buffer *content)
{
    codec->packed.length = 0;
    if (content->length >= COMPRESS_FROM) {
        size_t room = ZSTD_compressBound(content->length);
        char *out = buffer_reserve(&codec->packed, room);
        size_t got = ZSTD_compress2(codec->compressor, out, room, content->data, content->length);
        if (!ZSTD_isError(got) && got < content->length) {
            codec->packed.length = got;
            return true;
        }
    }
    buffer_add(&codec->packed, content->data, content->length);
    return false;
}

static bool is_merged(const struct block_window *window)
{
    return window->windows != 1 || window->raw_rows != window->row_count ||
           window->first_ns != window->start_ns || window->last_ns != window->start_ns;
}

void block_encode(struct block_codec *codec, const struct block_rows *rows, size_t first,
                  size_t count, struct buffer *out)
{
    const struct block_window *windows = rows->windows + first;
    size_t first_row = count ? windows[0].first_row : 0, row_count = 0;
    bool merged = false, negative;
    for (size_t w = 0; w < count; w++) {
        row_count += windows[w].row_count;
        merged |= is_merged(&windows[w]);
    }
    uint64_t unit = common_unit(rows->values + first_row, row_count, &negative);
    if (unit > INT64_MAX)
        unit = 1;
    size_t dictionary_count =
        make_dictionary(codec, rows->nodes + first_row, row_count, count == 1);
    put_columns(codec, rows, first, count, dictionary_count, unit, negative);
    size_t index_bytes = codec->columns.length;
    buffer_add(&codec->columns, codec->values.data, codec->values.length);

    codec->head.length = 0;
    put_windows(codec, windows, count, merged);
    uint32_t last = 0;
    for (size_t i = 0; i < dictionary_count; i++) {
        buffer_add_varint(&codec->head, codec->dictionary[i] - last);
        last = codec->dictionary[i];
    }

    size_t start = out->length;
    buffer_add_char(out, BLOCK_FORMAT);
    buffer_add_char(out, 0); /* flags */
    unsigned flags = (merged ? FLAG_MERGED : 0) | (negative ? FLAG_SIGNED : 0);
    buffer_add_varint(out, count);
    buffer_add_varint(out, dictionary_count);
    buffer_add_varint(out, row_count);
    buffer_add_varint(out, unit);
    buffer_add_varint(out, index_bytes);
    buffer_add_varint(out, codec->columns.length);
    buffer_add_varint(out, codec->head.length);
    flags |= pack(codec, &codec->head) ? FLAG_HEAD_PACKED : 0;
    buffer_add_varint(out, codec->packed.length);
    buffer_add(out, codec->packed.data, codec->packed.length);
    flags |= pack(codec, &codec->columns) ? FLAG_COLUMNS_PACKED : 0;
    buffer_add(out, codec->packed.data, codec->packed.length);
    out->data[start + 1] = (char)flags;
    uint64_t checksum = XXH3_64bits(out->data + start, out->length - start);
    buffer_add(out, &checksum, sizeof(checksum));
}

/* ---- reading ---- */

/* `length` decompressed bytes, from zstd or as they are. zstd's worst case is known, so a length
 * that no such input can have is refused before anything is allocated. */
static const uint8_t *unpack(struct block_codec *codec, struct buffer *room, const uint8_t *data,
                             size_t data_bytes, bool packed, size_t length)
{
    if (!packed)
        return data_bytes == length ? data : NULL;
    if (ZSTD_getFrameContentSize(data, data_bytes) != length)
        return NULL;
    room->length = 0;
    char *out = buffer_reserve(room, length + 1);
    size_t got = ZSTD_decompressDCtx(codec->decompressor, out, length, data, data_bytes);
    return got == length ? (const uint8_t *)out : NULL;
}

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
        if (view->flags & FLAG_MERGED) {
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

int block_open(struct block_codec *codec, const void *data, size_t length,
               struct block_view *ret_view)
{
    uint64_t checksum;
    if (length < 2 + sizeof(checksum))
        return -EBADMSG;
    length -= sizeof(checksum);
    memcpy(&checksum, (const char *)data + length, sizeof(checksum));
    if (checksum != XXH3_64bits(data, length))
        return -EBADMSG;
    struct cursor cursor = cursor_over(data, length);
    const uint8_t *start = cursor_bytes(&cursor, 2);
    if (start[0] != BLOCK_FORMAT)
        return -EBADMSG;
    struct block_view view = {.codec = codec, .flags = start[1]};
    uint64_t windows = cursor_varint(&cursor), dictionary = cursor_varint(&cursor);
    uint64_t rows = cursor_varint(&cursor);
    view.unit = cursor_varint(&cursor);
    uint64_t index_bytes = cursor_varint(&cursor), column_bytes = cursor_varint(&cursor);
    uint64_t head_bytes = cursor_varint(&cursor), head_packed = cursor_varint(&cursor);
    const uint8_t *head = cursor_bytes(&cursor, head_packed);
    /* Every window takes six bytes of the head, every entry one, every row two of the columns. */
    if (cursor.failed || windows > BLOCK_WINDOWS_MAX || rows > BLOCK_ROWS_MAX ||
        dictionary > rows || windows > head_bytes / 6 || dictionary > head_bytes ||
        head_bytes > 64ull * BLOCK_WINDOWS_MAX + 5ull * BLOCK_ROWS_MAX ||
        column_bytes > 2ull * VARINT_BYTES_MAX * BLOCK_ROWS_MAX || index_bytes > column_bytes ||
        rows > column_bytes / 2 || !view.unit || view.unit > INT64_MAX)
        return -EBADMSG;
    view.window_count = windows;
    view.dictionary_count = dictionary;
    view.row_count = rows;
    view.index_bytes = index_bytes;
    view.column_bytes = column_bytes;
    view.packed = cursor.at;
    view.packed_bytes = cursor_left(&cursor);
    head =
        unpack(codec, &codec->head, head, head_packed, view.flags & FLAG_HEAD_PACKED, head_bytes);
    if (!head)
        return -EBADMSG;
    struct cursor table = cursor_over(head, head_bytes);
    if (read_windows(codec, &table, &view) < 0 || read_dictionary(codec, &table, &view) < 0)
        return -EBADMSG;
    view.windows = codec->windows;
    view.dictionary = codec->dictionary;
    *ret_view = view;
    return 0;
}

static bool open_columns(struct block_view *view)
{
    if (!view->columns)
        view->columns = unpack(view->codec, &view->codec->columns, view->packed, view->packed_bytes,
                               view->flags & FLAG_COLUMNS_PACKED, view->column_bytes);
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
    bool is_signed = view->flags & FLAG_SIGNED;
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

int block_sum(struct block_view *view, size_t first, size_t count, uint64_t *sums)
{
    if (!open_columns(view))
        return -EBADMSG;
    for (size_t w = first; w < first + count; w++)
        if (sum_window(view, w, sums) < 0)
            return -EBADMSG;
    return 0;
}

int64_t block_scale(const struct block_view *view, uint64_t sum)
{
    int64_t result;
    if (__builtin_mul_overflow((int64_t)sum, (int64_t)view->unit, &result))
        return (int64_t)sum < 0 ? INT64_MIN : INT64_MAX;
    return result;
}

int block_decode(struct block_view *view, size_t first, size_t count, struct block_rows *rows)
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
                block_scale(view, view->flags & FLAG_SIGNED ? (uint64_t)unzigzag(number) : number);
        }
        array_reserve(rows->windows, rows->window_capacity, rows->window_count + 1);
        rows->windows[rows->window_count++] = window;
    }
    return 0;
}
