/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a call tree a picture shows: the part below some frames (parameter `focus`), and a
 * maximum of nodes (`max_nodes`). A page uses this to ask for what it folded into "(other)".
 */
#pragma once

#include "format/picture/flamedata.h"
#include "http/server/request.h"
#include "profile/views/calltree.h"

struct tree_part {
    uint64_t nodes;
    const char **focus; /* the request's own texts, the outermost caller first */
    size_t focus_count;
};

void tree_part_release(struct tree_part *part);
#define _cleanup_tree_part_ __attribute__((cleanup(tree_part_release)))

/* `nodes` and `nodes_max` are what max_nodes is unless given, and at most. */
int tree_part_read(struct tree_part *part, struct http_request *request, uint64_t nodes,
                   uint64_t nodes_max, struct error *error);

/* The parameter `split`: a label by whose values a tree is split below its root; NULL when it isn't
 * asked for. */
int tree_part_read_split(const char **ret_label, struct http_request *request, struct error *error);

/* The parameter focus alone. */
int tree_part_read_focus(struct tree_part *part, struct http_request *request, struct error *error);

/* Leaves that part of the tree, and says in the options how many nodes were folded away. `table` is
 * NULL, or zeroes that get the values of all functions where that is any, and belong to the caller;
 * a part doesn't need them. -ENOENT when no stack has it. */
int tree_part_take(const struct tree_part *part, struct calltree *tree, struct flame_table *table,
                   struct flame_options *options, struct error *error);

/* The error of a focus that no stack begins with. */
int tree_part_missing(struct error *error);
