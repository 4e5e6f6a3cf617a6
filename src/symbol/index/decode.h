/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the symbol index's reader (index.c) and its check (index_check.c): rows and nodes. */
#pragma once

#include "elf/cursor.h"
#include "symbol/index/index.h"

/* From an address on, up to the next row's. Without a node, a file and a line there is nothing. */
struct symbol_index_row {
    uint32_t address; /* from the base */
    uint32_t node, file, line;
};

/* A function at some place: a root is a function of its own, all others are inlined into their
 * parents, at the file and line. */
struct symbol_index_node {
    uint32_t parent, function, file, line;
    uint64_t start; /* of a root */
};

uint64_t symbol_index_header_checksum(const struct symbol_index_header *header);

/* NULL for none. */
const char *symbol_index_string(const struct symbol_index *index, uint32_t offset);

/* All rows of a group, one after the other. */
struct symbol_index_rows {
    struct cursor cursor; /* to the end of all groups */
    const uint8_t *stop;  /* the end of this one */
    struct symbol_index_row row;
    uint32_t left;
};

bool symbol_index_rows_start(const struct symbol_index *index, uint32_t group,
                             struct symbol_index_rows *ret_rows);
/* False at the end; `cursor.bad` is set then when the group makes no sense. */
bool symbol_index_rows_next(struct symbol_index_rows *rows);

/* The row that an address is in; the group starts at or before it. */
bool symbol_index_row_find(const struct symbol_index *index, uint32_t group, uint32_t address,
                           struct symbol_index_row *ret_row);
/* The nodes of a group, decoded on demand: the node that one is inlined into is usually in the same
 * group. `count` is 0 at first. */
struct symbol_index_nodes {
    uint32_t group, count;
    struct symbol_index_node list[SYMBOL_INDEX_NODES_PER_GROUP];
};

/* Nodes count from 1. NULL when the number is invalid, or its group is damaged. */
const struct symbol_index_node *symbol_index_node_find(const struct symbol_index *index,
                                                       uint32_t number,
                                                       struct symbol_index_nodes *nodes);
