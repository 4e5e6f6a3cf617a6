/* SPDX-License-Identifier: Apache-2.0 */
/* The indexes behind a call tree, and the steps that build it. Private to src/profile. */
#pragma once

#include "base/arena.h"
#include "base/idtable.h"
#include "profile/views/calltree.h"

struct calltree_tables {
    struct arena text; /* names of functions, files, binaries and types */
    uint64_t seed;     /* so that nobody can prepare collisions */
    size_t function_capacity, node_capacity;
    uint32_t column_length; /* cells of each column that exists */
    struct id_table function_index, node_index;
    bool frozen;    /* see calltree_freeze */
    uint32_t other; /* then: the function "(other)" */
    uint32_t below; /* see calltree_below */
};

/* The id of the function "(other)". */
uint32_t calltree_other(struct calltree *tree);

/* Leaves only the root; columns keep their old cells. */
void calltree_clear_nodes(struct calltree *tree);

/* The id of the function with this name, added when new (ID_NONE when the tree is frozen); what is
 * known of it is completed. The name is copied; file and binary must live as long as the tree. */
uint32_t calltree_function_id(struct calltree *tree, const struct calltree_function *function);
uint32_t calltree_child(struct calltree *tree, uint32_t parent, uint32_t function, bool inlined);

/* Moves every column to a new numbering of nodes, adding up what fell together. */
void calltree_move_columns(struct calltree *tree, const uint32_t *moved, uint32_t old_count);
