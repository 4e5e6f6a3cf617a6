/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks. A tree holds the stacks of one service as {parent, frame} nodes, parents before their
 * children, node 0 the root; frames are those of the tables it belongs to. A map carries stacks
 * from one set of tables to another, remembering what it has carried.
 */
#pragma once

#include "base/digests.h"
#include "profile/profile.h"
#include "store/store.h"

struct tree {
    struct profile_node *nodes; /* [0] is the root */
    uint32_t count;
    size_t capacity;
    struct id_table branches; /* children that don't follow their parent at once */
    bool indexed;
    struct digest_table stacks; /* nodes by the digest of their stack: a cache of what was seen */
};

void tree_init(struct tree *tree);
void tree_release(struct tree *tree);
size_t tree_memory(const struct tree *tree);

/* Appends a node as it is: for loading. */
void tree_append(struct tree *tree, uint32_t parent, uint32_t frame);

/* The child of `parent` with that frame, added when new. */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint32_t frame);

/* Frames of `from` in `to`. Both may grow meanwhile; frames that `from` got after init can be asked
 * for after frame_map_refresh. */
struct frame_map {
    const struct profile *from;
    struct profile *to;
    uint32_t *string, *function, *mapping, *frame;                     /* 0: not yet */
    uint32_t string_count, function_count, mapping_count, frame_count; /* room */
};

void frame_map_init(struct frame_map *map, const struct profile *from, struct profile *to);
void frame_map_release(struct frame_map *map);
uint32_t frame_map_frame(struct frame_map *map, uint32_t frame);

/* Makes room for what `from` has got since. */
void frame_map_refresh(struct frame_map *map);

/* Nodes of one tree in another, which is a tree or a profile's. */
struct node_map {
    struct frame_map *frames;
    const struct profile_node *nodes;
    uint32_t node_count;
    uint32_t *node; /* 0: not yet */
    struct tree *to_tree;
    struct profile *to_profile;
    uint32_t *path; /* scratch */
    size_t path_capacity;
    bool reused;       /* for several trees: what it knows is noted, so that it can be forgotten */
    uint32_t *carried; /* nodes that are known */
    size_t carried_count, carried_capacity;
};

void node_map_init(struct node_map *map, struct frame_map *frames, const struct profile_node *nodes,
                   uint32_t node_count, struct tree *to_tree, struct profile *to_profile);
void node_map_release(struct node_map *map);
/* For another tree. Takes as long as there is to forget, and not as there are nodes. */
void node_map_reuse(struct node_map *map, struct tree *to_tree);
uint32_t node_map_node(struct node_map *map, uint32_t node);

/* Which nodes count for a function: its own, or all that have it anywhere on their stack. To be
 * freed; one per node. */
bool *function_nodes(const struct profile *tables, const struct profile_node *nodes, uint32_t count,
                     const struct store_function *function, bool cumulative);

/* Gives each frame of a tree once. */
int give_frames(const struct profile *tables, const struct profile_node *nodes, uint32_t count,
                store_frame_fn *fn, void *context);
