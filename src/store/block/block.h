/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Column blocks: windows of one series, compressed. A block has a table of its windows, a
 * dictionary of the stacks in it with the sum of each, and its rows in order of stacks: in which
 * window, and with which value (divided by their greatest common divisor). So a merge of whole
 * blocks reads dictionaries and sums only, and a total per window the table only.
 * docs/formats/store.md has every byte.
 *
 * A codec holds the compressor's contexts and scratch memory; one thread at a time.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

#define BLOCK_ROWS_MAX (1u << 24)
#define BLOCK_WINDOWS_MAX (1u << 20)

struct block_window {
    int64_t start_ns;
    int64_t duration_ns;       /* of a slot: summed over its processes */
    int64_t first_ns, last_ns; /* starts of the raw windows in it */
    uint64_t windows;          /* raw windows in it */
    uint64_t raw_rows;         /* their rows */
    int64_t total;             /* sum of values */
    uint32_t row_count;        /* rows here */
    uint32_t first_row;        /* in struct block_rows */

    /* Of slots, see struct cover; all 0 in raw windows. */
    int64_t covered_ns, per_ns, present_ns;
    int64_t begin_ns, end_ns, from_ns, to_ns;
};

/* Decoded: what is encoded, and what compaction works on. Rows of a window are in ascending order
 * of nodes, each node once. */
struct block_rows {
    struct block_window *windows;
    size_t window_count, window_capacity;
    uint32_t *nodes;
    int64_t *values;
    size_t row_count, node_capacity, value_capacity;
};

void block_rows_release(struct block_rows *rows);
void block_rows_clear(struct block_rows *rows);
size_t block_rows_memory(const struct block_rows *rows);

/* Room for `extra` more rows. */
void block_rows_reserve(struct block_rows *rows, size_t extra);

/* Appends a window with rows in any order: sorted, and rows of one node added up. Row count and
 * total are set from them. */
void block_rows_add(struct block_rows *rows, const struct block_window *window,
                    const uint32_t *nodes, const int64_t *values, size_t count);

struct block_codec;
struct block_codec *block_codec_new(void);
void block_codec_free(struct block_codec *codec);

/* Encodes windows [first, first + count) of `rows`, which must be in order of their starts. */
void block_encode(struct block_codec *codec, const struct block_rows *rows, size_t first,
                  size_t count, struct buffer *out);

/* A block being read; points into its codec and into `data`, valid until the codec's next use. */
struct block_view {
    struct block_codec *codec;
    const struct block_window *windows; /* without first_row */
    size_t window_count;
    const uint32_t *dictionary; /* nodes, ascending; NULL until block_open_stacks */
    size_t dictionary_count;
    size_t row_count;
    uint64_t unit; /* what values are multiplied with */

    /* private */
    unsigned flags;
    struct {
        const uint8_t *data;
        size_t stored_bytes, bytes;
    } sections[6];
    const uint8_t *values, *places;
};

/* Checks and opens a block: windows and dictionary. -EBADMSG with no sentence when it is damaged:
 * the caller knows which it is. */
int block_open(struct block_codec *codec, const void *data, size_t length,
               struct block_view *ret_view);

/* The two halves of it, for those who may not need the second. */
int block_open_windows(struct block_codec *codec, const void *data, size_t length,
                       struct block_view *ret_view);
int block_open_stacks(struct block_view *view);

/* Adds up windows [first, first + count): sums[i] += value / unit for dictionary index i, wrapping;
 * `sums` has dictionary_count entries. */
int block_sum(struct block_view *view, size_t first, size_t count, uint64_t *sums);

/* The sum of `sums[i] * unit` as a value, stopping at the ends of the range. */
int64_t block_scale(const struct block_view *view, uint64_t sum);

/* Adds values of wanted stacks to totals[0..count), one for each window from `first` on; `wanted`
 * is by node, and has all of the dictionary. */
int block_pick(struct block_view *view, size_t first, size_t count, const bool *wanted,
               int64_t *totals);

/* Appends windows [first, first + count) with their rows. */
int block_decode(struct block_view *view, size_t first, size_t count, struct block_rows *rows);
