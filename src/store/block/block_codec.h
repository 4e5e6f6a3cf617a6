/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of the block codec: block.c (reading) and block_write.c. Private. */
#pragma once

#include <zstd.h>

#include "store/block/block.h"
#include "store/block/varint.h"

#define BLOCK_FORMAT 3

enum {
    BLOCK_MERGED = 4,       /* windows that were merged: first, last, counts */
    BLOCK_SIGNED = 8,       /* values are zigzag */
    BLOCK_UNIT_TOTALS = 16, /* windows' totals are divided by the unit */
};

enum block_section {
    SECTION_WINDOWS,
    SECTION_NODES,
    SECTION_COUNTS,
    SECTION_SUMS,
    SECTION_VALUES,
    SECTION_PLACES,
    BLOCK_SECTIONS,
};

struct block_codec {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
    struct buffer sections[BLOCK_SECTIONS], packed;
    struct block_window *windows;
    uint32_t *dictionary; /* by entry, as the next two */
    uint32_t *counts;     /* rows */
    uint64_t *sums;
    uint32_t *cursors; /* scratch: by entry when writing, by window when reading */
    uint32_t *gaps;    /* scratch when writing: by row in order of stacks, as the next */
    uint64_t *numbers;
    size_t window_capacity, dictionary_capacity, count_capacity, sum_capacity, cursor_capacity,
        gap_capacity, number_capacity;
};

/* How many bytes the number of a window takes: what is in no doubt takes none. */
static inline unsigned place_bytes(size_t window_count)
{
    return window_count <= 1 ? 0 : window_count <= 0x100 ? 1 : window_count <= 0x10000 ? 2 : 3;
}

/* `length` decompressed bytes, from zstd or, when that is as long, as they are; NULL when they are
 * damaged. They are in `room` or in `data`. */
const uint8_t *block_unpack(struct block_codec *codec, struct buffer *room, const uint8_t *data,
                            size_t data_bytes, bool packed, size_t length);
