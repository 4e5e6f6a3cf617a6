// SPDX-License-Identifier: Apache-2.0
// Reads column blocks. The dictionary holds all that a merge of whole blocks needs; the rows, which
// are most of a block, are only read if some of its windows are selected.

#include "store/block/block.h"

#include <limits.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/block/block_codec.h"

struct block_codec *block_codec_new(void)
{
    struct block_codec *codec = memory_zalloc(1, sizeof(*codec));
    codec->compressor = memory_create(ZSTD_createCCtx());
    codec->decompressor = memory_create(ZSTD_createDCtx());
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
    for (unsigned i = 0; i < BLOCK_SECTIONS; i++)
        buffer_release(&codec->sections[i]);
    buffer_release(&codec->packed);
    free(codec->windows);
    free(codec->dictionary);
    free(codec->counts);
    free(codec->sums);
    free(codec->cursors);
    free(codec->gaps);
    free(codec->numbers);
    free(codec);
}

/* zstd says beforehand how much it is, so a length that the block's numbers can't have is refused
 * before anything is allocated. */
const uint8_t *block_unpack(struct block_codec *codec, struct buffer *room, const uint8_t *data,
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

static const uint8_t *open_section(struct block_view *view, enum block_section section)
{
    size_t stored = view->sections[section].stored_bytes, bytes = view->sections[section].bytes;
    return block_unpack(view->codec, &view->codec->sections[section], view->sections[section].data,
                        stored, stored != bytes, bytes);
}

/* ---- opening ---- */

static void read_cover(struct cursor *cursor, struct block_window *windows, size_t count)
{
    for (size_t w = 0; w < count; w++)
        windows[w].covered_ns = (int64_t)(cursor_varint(cursor) & INT64_MAX);
    for (size_t w = 0; w < count; w++)
        windows[w].per_ns = (int64_t)(cursor_varint(cursor) & INT64_MAX);
    for (size_t w = 0; w < count; w++)
        windows[w].present_ns = (int64_t)(cursor_varint(cursor) & INT64_MAX);
    for (size_t w = 0; w < count; w++)
        windows[w].begin_ns =
            (int64_t)((uint64_t)windows[w].start_ns + (uint64_t)cursor_signed(cursor));
    for (size_t w = 0; w < count; w++)
        windows[w].end_ns = (int64_t)((uint64_t)windows[w].begin_ns + cursor_varint(cursor));
    for (size_t w = 0; w < count; w++)
        windows[w].from_ns =
            (int64_t)((uint64_t)windows[w].start_ns + (uint64_t)cursor_signed(cursor));
    for (size_t w = 0; w < count; w++)
        windows[w].to_ns = (int64_t)((uint64_t)windows[w].from_ns + cursor_varint(cursor));
}

static int read_windows(struct block_view *view)
{
    struct block_codec *codec = view->codec;
    size_t count = view->window_count, rows = 0;
    const uint8_t *data = open_section(view, SECTION_WINDOWS);
    if (!data)
        return -EBADMSG;
    struct cursor cursor = cursor_over(data, view->sections[SECTION_WINDOWS].bytes);
    array_reserve(codec->windows, codec->window_capacity, count + 1);
    struct block_window *windows = codec->windows;
    uint64_t start = 0, step = 0, duration = 0;
    for (size_t w = 0; w < count; w++) {
        step += (uint64_t)cursor_signed(&cursor);
        start += step;
        windows[w] = (struct block_window){.start_ns = (int64_t)start,
                                           .first_ns = (int64_t)start,
                                           .last_ns = (int64_t)start,
                                           .windows = 1};
    }
    for (size_t w = 0; w < count; w++) {
        duration += (uint64_t)cursor_signed(&cursor);
        windows[w].duration_ns = (int64_t)duration;
    }
    for (size_t w = 0; w < count; w++) {
        uint64_t number = cursor_varint(&cursor);
        if (number > view->row_count - rows)
            return -EBADMSG;
        rows += number;
        windows[w].row_count = (uint32_t)number;
        windows[w].raw_rows = number;
    }
    for (size_t w = 0; w < count; w++) {
        uint64_t total = (uint64_t)cursor_signed(&cursor);
        windows[w].total =
            view->flags & BLOCK_UNIT_TOTALS ? block_scale(view, total) : (int64_t)total;
    }
    if (view->flags & BLOCK_MERGED) {
        for (size_t w = 0; w < count; w++)
            windows[w].first_ns = (int64_t)((uint64_t)windows[w].start_ns + cursor_varint(&cursor));
        for (size_t w = 0; w < count; w++)
            windows[w].last_ns = (int64_t)((uint64_t)windows[w].first_ns + cursor_varint(&cursor));
        for (size_t w = 0; w < count; w++)
            windows[w].windows = cursor_varint(&cursor);
        for (size_t w = 0; w < count; w++)
            windows[w].raw_rows = cursor_varint(&cursor);
        read_cover(&cursor, windows, count);
    }
    view->windows = windows;
    return cursor.failed || cursor_left(&cursor) || rows != view->row_count ? -EBADMSG : 0;
}

/* Every window takes four bytes at least, every entry one of each column, every row but an entry's
 * last one of the values; nothing is longer than its numbers can be. */
static bool are_plausible(const struct block_view *view)
{
    uint64_t windows = view->window_count, entries = view->dictionary_count;
    uint64_t rows = view->row_count, counted = windows > 1 ? entries : 0;
    const uint64_t at_least[BLOCK_SECTIONS] = {
        4 * windows, entries, counted, entries, rows - entries, rows * place_bytes(windows)};
    const uint64_t at_most[BLOCK_SECTIONS] = {15ull * VARINT_BYTES_MAX * windows,
                                              5 * entries,
                                              4 * counted,
                                              VARINT_BYTES_MAX * entries,
                                              VARINT_BYTES_MAX * (rows - entries),
                                              rows * place_bytes(windows)};
    for (unsigned i = 0; i < BLOCK_SECTIONS; i++)
        if (view->sections[i].bytes < at_least[i] || view->sections[i].bytes > at_most[i])
            return false;
    return true;
}

static int open_sections(struct block_codec *codec, struct cursor *cursor, struct block_view *view)
{
    uint64_t windows = cursor_varint(cursor), entries = cursor_varint(cursor);
    uint64_t rows = cursor_varint(cursor);
    view->unit = cursor_varint(cursor);
    uint64_t bytes[BLOCK_SECTIONS], stored[BLOCK_SECTIONS];
    for (unsigned i = 0; i < BLOCK_SECTIONS; i++) {
        bytes[i] = cursor_varint(cursor);
        stored[i] = cursor_varint(cursor);
    }
    if (cursor->failed || windows > BLOCK_WINDOWS_MAX || rows > BLOCK_ROWS_MAX || entries > rows ||
        (rows && !windows) || (windows == 1 && rows != entries) || (rows && !entries) ||
        !view->unit || view->unit > INT64_MAX)
        return -EBADMSG;
    view->window_count = windows;
    view->dictionary_count = entries;
    view->row_count = rows;
    for (unsigned i = 0; i < BLOCK_SECTIONS; i++) {
        view->sections[i].data = cursor_bytes(cursor, stored[i]);
        view->sections[i].stored_bytes = stored[i];
        view->sections[i].bytes = bytes[i];
    }
    if (cursor->failed || cursor_left(cursor) || !are_plausible(view))
        return -EBADMSG;
    view->codec = codec;
    return read_windows(view);
}

int block_open_windows(struct block_codec *codec, const void *data, size_t length,
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
    struct block_view view = {.codec = codec, .flags = start[1]};
    int r = start[0] == BLOCK_FORMAT ? open_sections(codec, &cursor, &view) : -EBADMSG;
    if (!r)
        *ret_view = view;
    return r;
}

static int read_counts(struct block_view *view)
{
    struct block_codec *codec = view->codec;
    size_t entries = view->dictionary_count, rows = 0;
    array_reserve(codec->counts, codec->count_capacity, entries + 1);
    if (view->window_count <= 1) {
        for (size_t i = 0; i < entries; i++)
            codec->counts[i] = 1;
        return 0;
    }
    const uint8_t *data = open_section(view, SECTION_COUNTS);
    if (!data)
        return -EBADMSG;
    struct cursor cursor = cursor_over(data, view->sections[SECTION_COUNTS].bytes);
    for (size_t i = 0; i < entries; i++) {
        uint64_t count = cursor_varint(&cursor) + 1;
        if (count > view->window_count || count > view->row_count - rows)
            return -EBADMSG;
        codec->counts[i] = (uint32_t)count;
        rows += count;
    }
    return cursor.failed || cursor_left(&cursor) || rows != view->row_count ? -EBADMSG : 0;
}

static int read_sums(struct block_view *view)
{
    struct block_codec *codec = view->codec;
    const uint8_t *data = open_section(view, SECTION_SUMS);
    if (!data)
        return -EBADMSG;
    size_t entries = view->dictionary_count, bytes = view->sections[SECTION_SUMS].bytes;
    array_reserve(codec->sums, codec->sum_capacity, entries + 1);
    struct cursor cursor = cursor_over(data, bytes);
    bool is_signed = view->flags & BLOCK_SIGNED;
    for (size_t i = 0; i < entries; i++) {
        uint64_t number = cursor_varint(&cursor);
        codec->sums[i] = is_signed ? (uint64_t)unzigzag(number) : number;
    }
    return cursor.failed || cursor_left(&cursor) ? -EBADMSG : 0;
}

int block_open_stacks(struct block_view *view)
{
    struct block_codec *codec = view->codec;
    if (view->dictionary)
        return 0;
    const uint8_t *data = open_section(view, SECTION_NODES);
    if (!data)
        return -EBADMSG;
    array_reserve(codec->dictionary, codec->dictionary_capacity, view->dictionary_count + 1);
    struct cursor cursor = cursor_over(data, view->sections[SECTION_NODES].bytes);
    uint64_t node = 0;
    for (size_t i = 0; i < view->dictionary_count; i++) {
        uint64_t step = cursor_varint(&cursor);
        if ((i && !step) || step > UINT32_MAX || (node += step) > UINT32_MAX)
            return -EBADMSG;
        codec->dictionary[i] = (uint32_t)node;
    }
    if (cursor.failed || cursor_left(&cursor) || read_sums(view) < 0)
        return -EBADMSG;
    view->dictionary = codec->dictionary;
    return 0;
}

int block_open(struct block_codec *codec, const void *data, size_t length,
               struct block_view *ret_view)
{
    struct block_view view;
    int r = block_open_windows(codec, data, length, &view);
    if (!r)
        r = block_open_stacks(&view);
    if (!r)
        *ret_view = view;
    return r;
}

/* ---- rows ---- */

int64_t block_scale(const struct block_view *view, uint64_t sum)
{
    int64_t result;
    if (__builtin_mul_overflow((int64_t)sum, (int64_t)view->unit, &result))
        return (int64_t)sum < 0 ? INT64_MIN : INT64_MAX;
    return result;
}

static int open_rows(struct block_view *view)
{
    if (view->places)
        return 0;
    if (block_open_stacks(view) < 0 || read_counts(view) < 0)
        return -EBADMSG;
    view->values = open_section(view, SECTION_VALUES);
    const uint8_t *places = open_section(view, SECTION_PLACES);
    if (!view->values || !places)
        return -EBADMSG;
    view->places = places;
    return 0;
}

/* The rows of one entry after the other. Every use below is its own loop: what a row costs decides
 * how long a query takes. */
struct row_reader {
    const uint8_t *place;
    size_t stride; /* between the bytes of a place */
    struct cursor value;
};

static struct row_reader read_rows(const struct block_view *view)
{
    return (struct row_reader){.place = view->places,
                               .stride = view->row_count,
                               .value =
                                   cursor_over(view->values, view->sections[SECTION_VALUES].bytes)};
}

static inline __attribute__((always_inline)) uint32_t next_gap(struct row_reader *rows,
                                                               unsigned bytes)
{
    uint32_t gap = 0;
    for (unsigned i = 0; i < bytes; i++)
        gap |= (uint32_t)rows->place[i * rows->stride] << (8 * i);
    rows->place++;
    return gap;
}

enum value_kind { VALUES_BYTES, VALUES_VARINTS, VALUES_SIGNED };

static enum value_kind value_kind(const struct block_view *view)
{
    if (view->flags & BLOCK_SIGNED)
        return VALUES_SIGNED;
    return view->sections[SECTION_VALUES].bytes == view->row_count - view->dictionary_count
               ? VALUES_BYTES
               : VALUES_VARINTS;
}

static inline __attribute__((always_inline)) uint64_t next_value(struct row_reader *rows,
                                                                 enum value_kind kind)
{
    if (kind == VALUES_BYTES) /* there is one for each row: the section's length says so */
        return *rows->value.at++;
    uint64_t number = cursor_varint(&rows->value);
    return kind == VALUES_SIGNED ? (uint64_t)unzigzag(number) : number;
}

static inline __attribute__((always_inline)) int sum_rows(const struct block_view *view,
                                                          uint32_t first, uint32_t count,
                                                          uint64_t *sums, unsigned bytes,
                                                          enum value_kind kind)
{
    struct row_reader rows = read_rows(view);
    const struct block_codec *codec = view->codec;
    for (size_t i = 0; i < view->dictionary_count; i++) {
        uint64_t rest = codec->sums[i], picked = 0;
        uint32_t window = 0;
        for (uint32_t left = codec->counts[i] - 1; left; left--) {
            window += next_gap(&rows, bytes);
            uint64_t value = next_value(&rows, kind);
            rest -= value;
            picked += window - first < count ? value : 0;
            window++;
        }
        window += next_gap(&rows, bytes);
        picked += window - first < count ? rest : 0;
        if (window >= view->window_count)
            return -EBADMSG;
        sums[i] += picked;
    }
    return rows.value.failed || cursor_left(&rows.value) ? -EBADMSG : 0;
}

/* Few blocks have more than 256 windows of anything but raw data, or values beyond a byte. */
static int sum_some(const struct block_view *view, uint32_t first, uint32_t count, uint64_t *sums)
{
    unsigned bytes = place_bytes(view->window_count);
    enum value_kind kind = value_kind(view);
    if (kind == VALUES_SIGNED)
        return sum_rows(view, first, count, sums, bytes, kind);
    if (kind == VALUES_BYTES)
        return bytes == 1   ? sum_rows(view, first, count, sums, 1, VALUES_BYTES)
               : bytes == 2 ? sum_rows(view, first, count, sums, 2, VALUES_BYTES)
                            : sum_rows(view, first, count, sums, 3, VALUES_BYTES);
    return bytes == 1   ? sum_rows(view, first, count, sums, 1, VALUES_VARINTS)
           : bytes == 2 ? sum_rows(view, first, count, sums, 2, VALUES_VARINTS)
                        : sum_rows(view, first, count, sums, 3, VALUES_VARINTS);
}

int block_sum(struct block_view *view, size_t first, size_t count, uint64_t *sums)
{
    if (block_open_stacks(view) < 0)
        return -EBADMSG;
    if (!count)
        return 0;
    if (count < view->window_count)
        return open_rows(view) < 0 ? -EBADMSG
                                   : sum_some(view, (uint32_t)first, (uint32_t)count, sums);
    for (size_t i = 0; i < view->dictionary_count; i++)
        sums[i] += view->codec->sums[i];
    return 0;
}

int block_pick(struct block_view *view, size_t first, size_t count, const bool *wanted,
               int64_t *totals)
{
    if (open_rows(view) < 0)
        return -EBADMSG;
    struct row_reader rows = read_rows(view);
    const struct block_codec *codec = view->codec;
    unsigned bytes = place_bytes(view->window_count);
    enum value_kind kind = value_kind(view);
    for (size_t i = 0; i < view->dictionary_count; i++) {
        uint32_t left = codec->counts[i];
        if (!wanted[view->dictionary[i]]) {
            rows.place += left;
            if (kind == VALUES_BYTES)
                rows.value.at += left - 1;
            else
                while (--left)
                    cursor_varint(&rows.value);
            continue;
        }
        uint64_t rest = codec->sums[i];
        for (uint32_t window = 0; left; left--, window++) {
            window += next_gap(&rows, bytes);
            uint64_t value = left > 1 ? next_value(&rows, kind) : rest;
            rest -= value;
            if (window >= view->window_count)
                return -EBADMSG;
            if (window - first < count)
                totals[window - first] =
                    add_saturated(totals[window - first], block_scale(view, value));
        }
    }
    return rows.value.failed ? -EBADMSG : 0;
}

/* Room for the rows of some windows, whose places are in the codec's cursors afterwards. */
static int reserve_windows(struct block_view *view, size_t first, size_t count,
                           struct block_rows *rows)
{
    struct block_codec *codec = view->codec;
    array_reserve(codec->cursors, codec->cursor_capacity, count + 1);
    array_reserve(rows->windows, rows->window_capacity, rows->window_count + count);
    size_t at = rows->row_count;
    for (size_t w = 0; w < count; w++) {
        struct block_window window = view->windows[first + w];
        if (at + window.row_count > UINT32_MAX)
            return -E2BIG;
        window.first_row = codec->cursors[w] = (uint32_t)at;
        at += window.row_count;
        rows->windows[rows->window_count + w] = window;
    }
    block_rows_reserve(rows, at - rows->row_count + 1);
    return 0;
}

/* Entries are in ascending order, so each window gets its rows in that order. */
static int place_rows(struct block_view *view, size_t first, size_t count, struct block_rows *to)
{
    struct row_reader rows = read_rows(view);
    struct block_codec *codec = view->codec;
    const struct block_window *windows = to->windows + to->window_count;
    unsigned bytes = place_bytes(view->window_count);
    enum value_kind kind = value_kind(view);
    size_t placed = 0, wanted = 0;
    for (size_t i = 0; i < view->dictionary_count; i++) {
        uint64_t rest = codec->sums[i], window = 0;
        for (uint32_t left = codec->counts[i]; left; left--, window++) {
            window += next_gap(&rows, bytes);
            uint64_t value = left > 1 ? next_value(&rows, kind) : rest;
            rest -= value;
            if (window >= view->window_count)
                return -EBADMSG;
            if (window - first >= count)
                continue;
            const struct block_window *into = &windows[window - first];
            uint32_t at = codec->cursors[window - first]++;
            if (at - into->first_row >= into->row_count)
                return -EBADMSG;
            to->nodes[at] = view->dictionary[i];
            to->values[at] = block_scale(view, value);
            placed++;
        }
    }
    for (size_t w = 0; w < count; w++)
        wanted += windows[w].row_count;
    if (rows.value.failed || cursor_left(&rows.value) || placed != wanted)
        return -EBADMSG;
    to->window_count += count;
    to->row_count += placed;
    return 0;
}

int block_decode(struct block_view *view, size_t first, size_t count, struct block_rows *rows)
{
    if (open_rows(view) < 0)
        return -EBADMSG;
    int r = reserve_windows(view, first, count, rows);
    return r < 0 ? r : place_rows(view, first, count, rows);
}
