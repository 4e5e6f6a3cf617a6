/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML documents as trees of nodes that know their line, read with libyaml's event parser.
 * Everything is bounded: bytes, depth, nodes, and what aliases may stand for, so that no walk over
 * a tree takes longer than its limit. An alias is the same node again, not a copy.
 *
 * One document per file. Mapping keys are scalars, each once. Tags and merge keys (<<) are refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"

#define YAML_BYTES_MAX (4u << 20)
#define YAML_DEPTH_MAX 32
#define YAML_NODES_MAX 200000 /* aliases counted by what they stand for */

enum yaml_kind { YAML_NULL, YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    uint32_t line;    /* from 1 */
    bool quoted;      /* a scalar in quotes or a block: text, whatever it looks like */
    const char *text; /* of a scalar, NUL-terminated without a NUL inside; "" otherwise */
    size_t count;     /* entries of a list or map */
    struct yaml_node **values;
    struct yaml_node **keys; /* of a map, scalars; NULL for a list */
    uint32_t weight;         /* nodes in it, itself included */
};

/* Owns all its nodes. */
struct yaml_tree {
    struct yaml_node *root; /* YAML_NULL for an empty document */
    struct arena arena;
};

/* `name` is for error messages, which start with "name:line: ". */
int yaml_tree_read(const char *name, const char *text, size_t length, struct yaml_tree *ret_tree,
                   struct error *error);
int yaml_tree_read_file(const char *path, struct yaml_tree *ret_tree, struct error *error);
void yaml_tree_release(struct yaml_tree *tree);
#define _cleanup_yaml_tree_ _cleanup_(yaml_tree_release)

/* The value of a key of a map, or NULL. */
const struct yaml_node *yaml_node_get(const struct yaml_node *map, const char *key);
