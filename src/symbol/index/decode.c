// SPDX-License-Identifier: Apache-2.0
// The packed parts of a symbol index: see index_decode.h and docs/formats/symbol-index.md.

#include "symbol/index/decode.h"

#include <xxhash.h>

#include "base/memory.h"

uint64_t symbol_index_header_checksum(const struct symbol_index_header *header)
{
    struct symbol_index_header copy = *header;
    copy.header_checksum = 0;
    return XXH3_64bits(&copy, sizeof(copy));
}

const char *symbol_index_string(const struct symbol_index *index, uint32_t offset)
{
    if (!offset || offset >= index->header->parts[SYMBOL_INDEX_STRINGS].length)
        return NULL;
    return (const char *)index->parts[SYMBOL_INDEX_STRINGS] + offset;
}

/* Nearly all numbers are of one byte or two. */
static inline uint64_t number(struct cursor *cursor)
{
    if (likely(cursor->at < cursor->end && *cursor->at < 0x80))
        return *cursor->at++;
    return cursor_uleb(cursor);
}

static inline uint32_t moved(uint32_t value, struct cursor *cursor)
{
    return value + (uint32_t)symbol_index_unfold(number(cursor));
}

/* ---- rows ---- */

bool symbol_index_rows_start(const struct symbol_index *index, uint32_t group,
                             struct symbol_index_rows *ret_rows)
{
    const struct symbol_index_group *groups =
        (const struct symbol_index_group *)(const void *)index->parts[SYMBOL_INDEX_GROUPS];
    uint64_t length = index->header->parts[SYMBOL_INDEX_ROWS].length;
    uint64_t start = groups[group].offset;
    uint64_t end = group + 1 < index->group_count ? groups[group + 1].offset : length;
    if (start > end || end > length)
        return false;
    *ret_rows = (struct symbol_index_rows){
        .cursor = cursor_of(index->parts[SYMBOL_INDEX_ROWS] + start, (size_t)(length - start)),
        .stop = index->parts[SYMBOL_INDEX_ROWS] + end,
        .left = SYMBOL_INDEX_ROWS_PER_GROUP - 1,
    };
    ret_rows->row.address = groups[group].address;
    ret_rows->row.node = (uint32_t)number(&ret_rows->cursor);
    ret_rows->row.file = (uint32_t)number(&ret_rows->cursor);
    ret_rows->row.line = (uint32_t)number(&ret_rows->cursor);
    ret_rows->cursor.bad |= ret_rows->cursor.at > ret_rows->stop;
    return !ret_rows->cursor.bad;
}

/* A number of one byte or two off the low end of a word, if it is there (`there`: all ones). */
static inline uint32_t take_short(uint64_t *word, uint32_t there, uint32_t *longer, uint32_t *used)
{
    uint32_t low = (uint32_t)*word & 0xffff, two = -(low >> 7 & 1);
    uint32_t bits = (8 + (8 & two)) & there;
    *longer |= low & low >> 8 & 0x80 & there;
    *word >>= bits;
    *used += bits;
    return ((low & 0x7f) | (low >> 1 & 0x3f80 & two)) & there;
}

/*
 * A row whose numbers are all short, as nearly all are: it fits a word. Which of them are there,
 * and their lengths, are as good as random, so no branch depends on them. False: the row isn't
 * short.
 */
static inline bool next_short(struct symbol_index_rows *rows)
{
    struct symbol_index_row *row = &rows->row;
    uint64_t word;
    uint32_t longer = 0, used = 0;
    memcpy(&word, rows->cursor.at, sizeof(word));
    uint32_t first = take_short(&word, UINT32_MAX, &longer, &used);
    uint32_t has_node = -(uint32_t) !!(first & SYMBOL_INDEX_ROW_NODE);
    uint32_t has_file = -(uint32_t) !!(first & SYMBOL_INDEX_ROW_FILE);
    uint32_t has_line = -(uint32_t) !!(first & SYMBOL_INDEX_ROW_LINE);
    uint32_t node = take_short(&word, has_node, &longer, &used);
    uint32_t file = take_short(&word, has_file, &longer, &used);
    uint32_t line = take_short(&word, has_line, &longer, &used);
    uint32_t distance = first >> SYMBOL_INDEX_ROW_BITS;
    if (unlikely(longer || distance > UINT32_MAX - row->address))
        return false;
    rows->cursor.at += used / 8;
    rows->cursor.bad |= rows->cursor.at > rows->stop;
    row->address += distance;
    row->node += (uint32_t)symbol_index_unfold(node);
    row->file += (uint32_t)symbol_index_unfold(file);
    row->line += (uint32_t)symbol_index_unfold(line);
    return true;
}

bool symbol_index_rows_next(struct symbol_index_rows *rows)
{
    struct cursor *cursor = &rows->cursor;
    struct symbol_index_row *row = &rows->row;
    if (cursor->at >= rows->stop || !rows->left)
        return false;
    rows->left--;
    if (likely(cursor_left(cursor) >= sizeof(uint64_t)) && next_short(rows))
        return !cursor->bad;
    uint64_t first = number(cursor), distance = first >> SYMBOL_INDEX_ROW_BITS;
    if (distance > UINT32_MAX - row->address) {
        cursor->bad = true;
        return false;
    }
    row->address += (uint32_t)distance;
    if (first & SYMBOL_INDEX_ROW_NODE)
        row->node = moved(row->node, cursor);
    if (first & SYMBOL_INDEX_ROW_FILE)
        row->file = moved(row->file, cursor);
    if (first & SYMBOL_INDEX_ROW_LINE)
        row->line = moved(row->line, cursor);
    cursor->bad |= cursor->at > rows->stop;
    return !cursor->bad;
}

bool symbol_index_row_find(const struct symbol_index *index, uint32_t group, uint32_t address,
                           struct symbol_index_row *ret_row)
{
    struct symbol_index_rows rows;
    if (!symbol_index_rows_start(index, group, &rows))
        return false;
    do {
        *ret_row = rows.row;
    } while (symbol_index_rows_next(&rows) && rows.row.address <= address);
    return !rows.cursor.bad;
}

/* ---- nodes ---- */

/* The group's nodes from its first to the one at `last`. */
static bool read_nodes(const struct symbol_index *index, uint32_t group, uint32_t last,
                       struct symbol_index_nodes *nodes)
{
    const uint32_t *groups = (const uint32_t *)(const void *)index->parts[SYMBOL_INDEX_NODE_GROUPS];
    uint64_t length = index->header->parts[SYMBOL_INDEX_NODES].length;
    if (groups[group] > length)
        return false;
    struct cursor cursor = cursor_of(index->parts[SYMBOL_INDEX_NODES] + groups[group],
                                     (size_t)(length - groups[group]));
    uint32_t file = 0, line = 0, at = group * SYMBOL_INDEX_NODES_PER_GROUP + 1;
    uint64_t start = index->header->base;
    for (uint32_t i = 0; i <= last; i++, at++) {
        struct symbol_index_node *node = &nodes->list[i];
        uint64_t distance = number(&cursor);
        *node = (struct symbol_index_node){.function = (uint32_t)number(&cursor)};
        if (distance >= at)
            return false;
        if (distance) {
            node->parent = at - (uint32_t)distance;
            node->file = file = moved(file, &cursor);
            node->line = line = moved(line, &cursor);
        } else {
            start += (uint64_t)symbol_index_unfold(number(&cursor));
            node->start = start;
        }
    }
    nodes->group = group;
    nodes->count = last + 1;
    return !cursor.bad;
}

const struct symbol_index_node *symbol_index_node_find(const struct symbol_index *index,
                                                       uint32_t wanted,
                                                       struct symbol_index_nodes *nodes)
{
    if (!wanted || wanted > index->header->node_count)
        return NULL;
    uint32_t group = (wanted - 1) / SYMBOL_INDEX_NODES_PER_GROUP;
    uint32_t place = (wanted - 1) % SYMBOL_INDEX_NODES_PER_GROUP;
    if (nodes->group == group && place < nodes->count)
        return &nodes->list[place];
    nodes->count = 0;
    if (!read_nodes(index, group, place, nodes)) {
        nodes->count = 0;
        return NULL;
    }
    return &nodes->list[place];
}
