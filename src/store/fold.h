/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service's stacks with a value each, folded to what an answer tells apart: one that wants no
 * addresses and lines has many nodes of a file's tree as one. What is too small to matter is left
 * out before.
 */
#pragma once

#include "profile/profile.h"

/* Of a file's frames, for answers without lines and addresses: the first that is the same. */
struct plain_frames {
    uint32_t *same;
    uint32_t count;
    size_t capacity;
    struct id_table index; /* of those that are the first */
    uint32_t *namesake;    /* of a function: the first that is called so in the same file */
    uint32_t function_count;
    size_t function_capacity;
    struct id_table names; /* of those functions that are the first */
};

void plain_frames_release(struct plain_frames *plain);
size_t plain_frames_memory(const struct plain_frames *plain);

/* Goes on with what the tables have got since. */
void plain_frames_refresh(struct plain_frames *plain, const struct profile *tables);

struct fold_group {
    uint32_t parent; /* group; always smaller than this one's id, 0 is the root */
    uint32_t frame;  /* of the file: any of those that are the same here */
    int64_t self, total;
};

struct fold {
    struct fold_group *groups; /* [0] is the root */
    size_t count, capacity;
    struct id_table branches; /* groups that don't follow their parent at once */
    uint32_t *group;          /* by node; ID_NONE: left out */
    size_t group_capacity;
};

void fold_release(struct fold *fold);
size_t fold_memory(const struct fold *fold);

/* Folds the nodes whose totals are at least `least`. `same` is by frame; NULL when each is itself
 * alone. */
void fold_nodes(struct fold *fold, const uint32_t *same, const struct profile_node *nodes,
                uint32_t count, const int64_t *sums, const int64_t *totals, uint64_t least);
