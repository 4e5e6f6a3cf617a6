// SPDX-License-Identifier: Apache-2.0
// Column blocks, written: rows of many windows turned into rows of each stack.

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/block/block_codec.h"

#define COMPRESS_FROM 128 /* bytes; below, zstd's frame costs more than it saves */

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
    return unit && unit <= INT64_MAX ? unit : 1;
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

/* Fills the codec's dictionary with the distinct nodes, ascending, and how often each occurs. */
static size_t make_dictionary(struct block_codec *codec, const uint32_t *nodes, size_t count)
{
    array_reserve(codec->dictionary, codec->dictionary_capacity, 2 * count + 1);
    array_reserve(codec->counts, codec->count_capacity, count + 1);
    if (!count)
        return 0;
    memcpy(codec->dictionary, nodes, count * sizeof(*nodes));
    uint32_t *numbers = sort_numbers(codec->dictionary, codec->dictionary + count, count);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++) {
        if (!i || numbers[i] != codec->dictionary[distinct - 1]) {
            codec->counts[distinct] = 0;
            codec->dictionary[distinct++] = numbers[i];
        }
        codec->counts[distinct - 1]++;
    }
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

static void put_number(struct buffer *out, uint64_t number, bool is_signed)
{
    buffer_add_varint(out, is_signed ? zigzag((int64_t)number) : number);
}

/* Puts rows in order of stacks: `gaps` and `numbers`, an entry's rows from the sum of all counts
 * before it on. */
static void turn(struct block_codec *codec, const struct block_rows *rows, size_t first,
                 size_t count, size_t dictionary_count, size_t row_count, uint64_t unit)
{
    array_reserve(codec->cursors, codec->cursor_capacity, 2 * dictionary_count + 1);
    array_reserve(codec->gaps, codec->gap_capacity, row_count + 1);
    array_reserve(codec->numbers, codec->number_capacity, row_count + 1);
    uint32_t *at = codec->cursors, *next_window = codec->cursors + dictionary_count;
    uint32_t row = 0;
    for (size_t i = 0; i < dictionary_count; i++) {
        at[i] = row;
        next_window[i] = 0;
        row += codec->counts[i];
    }
    for (size_t w = 0; w < count; w++) {
        const struct block_window *window = &rows->windows[first + w];
        const uint32_t *nodes = rows->nodes + window->first_row;
        const int64_t *values = rows->values + window->first_row;
        size_t entry = 0;
        for (uint32_t i = 0; i < window->row_count; i++) {
            entry = find_index(codec->dictionary, dictionary_count, entry, nodes[i]);
            int64_t scaled = unit == 1 ? values[i] : values[i] / (int64_t)unit;
            codec->sums[entry] += (uint64_t)scaled;
            codec->numbers[at[entry]] = (uint64_t)scaled;
            codec->gaps[at[entry]++] = (uint32_t)w - next_window[entry];
            next_window[entry] = (uint32_t)w + 1;
        }
    }
}

/* All values of an entry but the last, which the sum tells. Numbers below 256 are a byte each when
 * all are; readers see that from the length. */
static void put_values(struct block_codec *codec, size_t dictionary_count, size_t row_count,
                       bool negative)
{
    struct buffer *out = &codec->sections[SECTION_VALUES];
    uint64_t *numbers = codec->numbers, all = 0;
    size_t kept = 0;
    for (size_t i = 0, row = 0; i < dictionary_count; row += codec->counts[i++])
        for (uint32_t k = 0; k + 1 < codec->counts[i]; k++) {
            all |= numbers[row + k];
            numbers[kept++] = numbers[row + k];
        }
    bool bytes = all < 0x100 && !negative;
    uint8_t *at = (uint8_t *)buffer_reserve(out, row_count * VARINT_BYTES_MAX + 1), *start = at;
    for (size_t i = 0; i < kept; i++) {
        if (bytes)
            *at++ = (uint8_t)numbers[i];
        else
            at = varint_put(at, negative ? zigzag((int64_t)numbers[i]) : numbers[i]);
    }
    out->length = (size_t)(at - start);
}

/* Byte by byte: the upper ones, nearly all 0, cost little when they are together. */
static void put_places(struct block_codec *codec, size_t row_count, size_t window_count)
{
    struct buffer *out = &codec->sections[SECTION_PLACES];
    unsigned bytes = place_bytes(window_count);
    uint8_t *at = (uint8_t *)buffer_reserve(out, row_count * bytes + 1);
    for (unsigned shift = 0; shift < 8 * bytes; shift += 8)
        for (size_t i = 0; i < row_count; i++)
            *at++ = (uint8_t)(codec->gaps[i] >> shift);
    out->length = row_count * bytes;
}

static void put_stacks(struct block_codec *codec, const struct block_rows *rows, size_t first,
                       size_t count, size_t row_count, uint64_t unit, bool negative,
                       size_t *ret_dictionary_count)
{
    size_t first_row = count ? rows->windows[first].first_row : 0;
    const uint32_t *nodes = rows->nodes + first_row;
    const int64_t *values = rows->values + first_row;
    size_t entries = row_count;
    if (count > 1) {
        entries = make_dictionary(codec, nodes, row_count);
        array_reserve(codec->sums, codec->sum_capacity, entries + 1);
        memset(codec->sums, 0, entries * sizeof(*codec->sums));
        turn(codec, rows, first, count, entries, row_count, unit);
        put_values(codec, entries, row_count, negative);
        put_places(codec, row_count, count);
        for (size_t i = 0; i < entries; i++)
            buffer_add_varint(&codec->sections[SECTION_COUNTS], codec->counts[i] - 1);
    }
    /* One window has each node once, in order, and its values are the sums. */
    uint32_t last = 0;
    for (size_t i = 0; i < entries; i++) {
        uint32_t node = count > 1 ? codec->dictionary[i] : nodes[i];
        uint64_t sum = count > 1 ? codec->sums[i] : (uint64_t)(values[i] / (int64_t)unit);
        buffer_add_varint(&codec->sections[SECTION_NODES], node - last);
        put_number(&codec->sections[SECTION_SUMS], sum, negative);
        last = node;
    }
    *ret_dictionary_count = entries;
}

static void put_cover(struct buffer *out, const struct block_window *windows, size_t count)
{
    for (size_t w = 0; w < count; w++)
        buffer_add_varint(out, (uint64_t)windows[w].covered_ns);
    for (size_t w = 0; w < count; w++)
        buffer_add_varint(out, (uint64_t)windows[w].per_ns);
    for (size_t w = 0; w < count; w++)
        buffer_add_varint(out, (uint64_t)windows[w].present_ns);
    for (size_t w = 0; w < count; w++)
        buffer_add_signed(out,
                          (int64_t)((uint64_t)windows[w].begin_ns - (uint64_t)windows[w].start_ns));
    for (size_t w = 0; w < count; w++)
        buffer_add_varint(out, (uint64_t)windows[w].end_ns - (uint64_t)windows[w].begin_ns);
    for (size_t w = 0; w < count; w++)
        buffer_add_signed(out,
                          (int64_t)((uint64_t)windows[w].from_ns - (uint64_t)windows[w].start_ns));
    for (size_t w = 0; w < count; w++)
        buffer_add_varint(out, (uint64_t)windows[w].to_ns - (uint64_t)windows[w].from_ns);
}

/* Column by column; starts as the change of their distance, which is 0 in a regular series. */
static void put_windows(struct block_codec *codec, const struct block_window *windows, size_t count,
                        bool merged, uint64_t total_unit)
{
    struct buffer *out = &codec->sections[SECTION_WINDOWS];
    uint64_t start = 0, step = 0;
    for (size_t w = 0; w < count; w++) {
        uint64_t next = (uint64_t)windows[w].start_ns - start;
        buffer_add_signed(out, (int64_t)(next - step));
        start = (uint64_t)windows[w].start_ns;
        step = next;
    }
    uint64_t duration = 0;
    for (size_t w = 0; w < count; w++) {
        buffer_add_signed(out, (int64_t)((uint64_t)windows[w].duration_ns - duration));
        duration = (uint64_t)windows[w].duration_ns;
    }
    for (size_t w = 0; w < count; w++)
        buffer_add_varint(out, windows[w].row_count);
    for (size_t w = 0; w < count; w++)
        buffer_add_signed(out, windows[w].total / (int64_t)total_unit);
    for (size_t w = 0; merged && w < count; w++)
        buffer_add_varint(out, (uint64_t)windows[w].first_ns - (uint64_t)windows[w].start_ns);
    for (size_t w = 0; merged && w < count; w++)
        buffer_add_varint(out, (uint64_t)windows[w].last_ns - (uint64_t)windows[w].first_ns);
    for (size_t w = 0; merged && w < count; w++)
        buffer_add_varint(out, windows[w].windows);
    for (size_t w = 0; merged && w < count; w++)
        buffer_add_varint(out, windows[w].raw_rows);
    if (merged)
        put_cover(out, windows, count);
}

static bool is_merged(const struct block_window *window)
{
    return window->windows != 1 || window->raw_rows != window->row_count ||
           window->first_ns != window->start_ns || window->last_ns != window->start_ns ||
           window->per_ns;
}

/* Appends a section, compressed when that is smaller, and gives its length there. */
static size_t pack(struct block_codec *codec, const struct buffer *content, struct buffer *out)
{
    if (content->length >= COMPRESS_FROM) {
        size_t room = ZSTD_compressBound(content->length);
        char *at = buffer_reserve(out, room);
        size_t got = ZSTD_compress2(codec->compressor, at, room, content->data, content->length);
        if (!ZSTD_isError(got) && got < content->length) {
            out->length += got;
            return got;
        }
    }
    buffer_add(out, content->data, content->length);
    return content->length;
}

void block_encode(struct block_codec *codec, const struct block_rows *rows, size_t first,
                  size_t count, struct buffer *out)
{
    const struct block_window *windows = rows->windows + first;
    size_t first_row = count ? windows[0].first_row : 0, row_count = 0, dictionary_count;
    bool merged = false, negative, whole = true;
    for (size_t w = 0; w < count; w++) {
        row_count += windows[w].row_count;
        merged |= is_merged(&windows[w]);
    }
    uint64_t unit = common_unit(rows->values + first_row, row_count, &negative);
    for (size_t w = 0; w < count; w++) /* a total that met the ends of the range isn't */
        whole &= windows[w].total % (int64_t)unit == 0;
    for (unsigned i = 0; i < BLOCK_SECTIONS; i++)
        codec->sections[i].length = 0;
    put_windows(codec, windows, count, merged, whole ? unit : 1);
    put_stacks(codec, rows, first, count, row_count, unit, negative, &dictionary_count);

    size_t start = out->length;
    buffer_add_char(out, BLOCK_FORMAT);
    buffer_add_char(out, (char)((merged ? BLOCK_MERGED : 0) | (negative ? BLOCK_SIGNED : 0) |
                                (whole ? BLOCK_UNIT_TOTALS : 0)));
    buffer_add_varint(out, count);
    buffer_add_varint(out, dictionary_count);
    buffer_add_varint(out, row_count);
    buffer_add_varint(out, unit);
    codec->packed.length = 0;
    for (unsigned i = 0; i < BLOCK_SECTIONS; i++) {
        buffer_add_varint(out, codec->sections[i].length);
        buffer_add_varint(out, pack(codec, &codec->sections[i], &codec->packed));
    }
    buffer_add(out, codec->packed.data, codec->packed.length);
    uint64_t checksum = XXH3_64bits(out->data + start, out->length - start);
    buffer_add(out, &checksum, sizeof(checksum));
}
