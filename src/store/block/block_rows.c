// SPDX-License-Identifier: Apache-2.0
// Rows in memory: windows of one series on their way into a block or out of one.

#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/block/block.h"

void block_rows_release(struct block_rows *rows)
{
    free(rows->windows);
    free(rows->nodes);
    free(rows->values);
    *rows = (struct block_rows){0};
}

void block_rows_clear(struct block_rows *rows)
{
    rows->window_count = rows->row_count = 0;
}

size_t block_rows_memory(const struct block_rows *rows)
{
    return rows->window_capacity * sizeof(*rows->windows) +
           rows->node_capacity * sizeof(*rows->nodes) +
           rows->value_capacity * sizeof(*rows->values);
}

void block_rows_reserve(struct block_rows *rows, size_t extra)
{
    array_reserve(rows->nodes, rows->node_capacity, rows->row_count + extra);
    array_reserve(rows->values, rows->value_capacity, rows->row_count + extra);
}

/* Sorts by the upper half, a byte at a time. `other` is as large; gives the one that holds the
 * result. */
static uint64_t *sort_keys(uint64_t *keys, uint64_t *other, size_t count)
{
    for (unsigned shift = 32; shift < 64; shift += 8) {
        size_t starts[257] = {0};
        for (size_t i = 0; i < count; i++)
            starts[(keys[i] >> shift & 0xff) + 1]++;
        if (starts[(keys[0] >> shift & 0xff) + 1] == count)
            continue; /* all have the same byte here */
        for (unsigned i = 1; i < 257; i++)
            starts[i] += starts[i - 1];
        for (size_t i = 0; i < count; i++)
            other[starts[keys[i] >> shift & 0xff]++] = keys[i];
        uint64_t *swap = keys;
        keys = other;
        other = swap;
    }
    return keys;
}

/* Few rows: moving each to its place costs less than counting bytes. */
static void insert_keys(uint64_t *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        size_t at = i;
        for (; at && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

void block_rows_add(struct block_rows *rows, const struct block_window *window,
                    const uint32_t *nodes, const int64_t *values, size_t count)
{
    block_rows_reserve(rows, count);
    array_reserve(rows->windows, rows->window_capacity, rows->window_count + 1);
    struct block_window *added = &rows->windows[rows->window_count++];
    *added = *window;
    added->first_row = (uint32_t)rows->row_count;
    added->total = 0;
    _cleanup_free_ uint64_t *space = memory_alloc((2 * count + 1) * sizeof(uint64_t));
    uint64_t *keys = space;
    for (size_t i = 0; i < count; i++)
        keys[i] = (uint64_t)nodes[i] << 32 | i;
    if (count > 64)
        keys = sort_keys(keys, space + count, count);
    else
        insert_keys(keys, count);
    uint32_t *out_nodes = rows->nodes + rows->row_count;
    int64_t *out_values = rows->values + rows->row_count;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t node = (uint32_t)(keys[i] >> 32);
        int64_t value = values[(uint32_t)keys[i]];
        added->total = add_saturated(added->total, value);
        if (kept && out_nodes[kept - 1] == node) {
            out_values[kept - 1] = add_saturated(out_values[kept - 1], value);
        } else {
            out_nodes[kept] = node;
            out_values[kept++] = value;
        }
    }
    added->row_count = (uint32_t)kept;
    rows->row_count += kept;
}
