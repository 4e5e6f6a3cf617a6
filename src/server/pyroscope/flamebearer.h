/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flame graphs as Pyroscope's clients draw them: per depth a row of bars {gap to the bar before,
 * total, self, name}, or seven numbers where two sides are compared. Private to src/server.
 */
#pragma once

#include "base/buffer.h"
#include "io/json_write.h"
#include "profile/views/calltree.h"

#define FLAMEBEARER_NODES 8192
#define FLAMEBEARER_NODES_MAX (1 << 20)

struct flamebearer_level {
    int64_t *values;
    size_t count, capacity;
};

struct flamebearer {
    const struct calltree *tree; /* the caller's; names come from there */
    struct flamebearer_level *levels;
    size_t level_count, level_capacity;
    uint32_t *names;   /* functions of the tree that have bars; "total" comes before them */
    uint32_t *name_of; /* per function of the tree: its number from 1, 0 without bars */
    uint32_t name_count;
    int64_t total, max_self, left, right;
    bool diff;
};

/* The tree has one type; it is limited to `nodes` (0: the default). With a base, that is the left
 * side. */
void flamebearer_init(struct flamebearer *flame, struct calltree *tree, int64_t nodes);
void flamebearer_release(struct flamebearer *flame);
#define _cleanup_flamebearer_ _cleanup_(flamebearer_release)

/* querier.v1.FlameGraph or FlameGraphDiff, as an object in JSON. */
void flamebearer_write_wire(const struct flamebearer *flame, struct buffer *out);
void flamebearer_write_json(const struct flamebearer *flame, struct json_writer *json);

/* The member "flamebearer" of an object, as /pyroscope/render has it. */
void flamebearer_write_render(const struct flamebearer *flame, struct json_writer *json);
/* The members "leftTicks" and "rightTicks" of a comparison. */
void flamebearer_write_ticks(const struct flamebearer *flame, struct json_writer *json);

/* The tree as bytes: depth first, the last child first. */
void flamebearer_write_tree(const struct calltree *tree, struct buffer *out);
