/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree by function: what flame graphs, `report --tree` and diffs show. Frames that differ
 * only in line or address are one node here. A tree can hold two sides, the new profile and a
 * base, for comparison. It owns all its memory and needs the profiles no more once added.
 */
#pragma once

#include "base/number.h"
#include "profile/naming.h"
#include "profile/profile.h"

enum calltree_side { CALLTREE_NEW, CALLTREE_BASE, CALLTREE_SIDES };

struct calltree_function {
    const char *name; /* not escaped; never empty */
    size_t length;
    const char *file;     /* or "" */
    const char *binary;   /* or "" */
    enum frame_kind kind; /* of the first frame that has one */
    bool unnamed;
};

struct calltree_node {
    uint32_t parent;   /* smaller than this node's id; node 0 is the root */
    uint32_t function; /* index into functions; unused for the root */
    bool inlined;      /* all its frames were */
};

struct calltree_type {
    const char *name, *unit;
    bool is_state; /* the part of another type that was measured in the state `name` */
    int64_t *self[CALLTREE_SIDES]; /* per node; [CALLTREE_BASE] is NULL without a base */
};

struct calltree {
    struct calltree_function *functions;
    uint32_t function_count;
    struct calltree_node *nodes;
    uint32_t node_count;
    struct calltree_type types[PROFILE_TYPES_MAX];
    unsigned type_count;
    bool has_base;
    uint32_t *followed; /* see calltree_follow; NULL: none */
    size_t followed_count;
    struct calltree_tables *tables; /* private to calltree.c */
};

void calltree_init(struct calltree *tree);
void calltree_release(struct calltree *tree);
#define _cleanup_calltree_ __attribute__((cleanup(calltree_release)))

/* Adds a profile's samples to a side; types are matched by name and unit, new ones are added. Only
 * stacks with a value become nodes. -E2BIG when there are too many types. */
int calltree_add(struct calltree *tree, const struct profile *profile, enum calltree_side side,
                 struct error *error);

/* What is added from now on is below the root's child with this name, such as [thread main]; NULL:
 * below the root again. Copies the name. */
void calltree_below(struct calltree *tree, const char *name);

/* Adds, as types behind all others, what of an added profile's type was measured in which state: by
 * the label of its samples, for at most CALLTREE_STATES_MAX states. Does nothing where no sample
 * has one. */
void calltree_add_states(struct calltree *tree, const struct profile *profile, unsigned type);

#define CALLTREE_STATES_MAX 16
#define CALLTREE_STATE_LABEL "state"

/* The same for one state by its name, from a profile of it alone: of the tree's `type`, which the
 * profile has, too. Does nothing where it has none, or there are as many states already. */
void calltree_add_state(struct calltree *tree, const struct profile *profile, unsigned type,
                        const char *state);

/* Takes over an array of nodes of an added profile and makes them nodes of the tree, which stay the
 * right ones when the tree is limited, focused or simplified: `followed`. One array at a time. */
void calltree_follow(struct calltree *tree, const struct profile *profile, uint32_t *nodes,
                     size_t count);

/* The tree's index of one of an added profile's types; PROFILE_TYPES_MAX when there is none. */
unsigned calltree_type_of(const struct calltree *tree, const struct profile *profile,
                          unsigned type);

/* Totals per node (self and all below), by one backward pass. The caller frees the array. */
int64_t *calltree_totals(const struct calltree *tree, unsigned type, enum calltree_side side);

/*
 * Children of every node in one array: those of node n are children[first[n]] to
 * children[first[n + 1] - 1], the largest `order` value first (ties: by name), or by name when
 * `order` is NULL. The caller frees both arrays.
 */
void calltree_children(const struct calltree *tree, const int64_t *order, uint32_t **ret_first,
                       uint32_t **ret_children);

/*
 * Leaves at most `limit` nodes (at least two): those with the largest totals, of any type and side
 * and relative to that column's sum, stay; the rest is folded into one child "(other)" of its
 * nearest kept ancestor, so that sums stay right. Totals count magnitudes here, so that a node of a
 * difference whose values cancel out still stays. Returns how many nodes were folded away.
 */
uint32_t calltree_limit(struct calltree *tree, uint32_t limit);

/*
 * Takes all values out, and lets what is added from now on make no new nodes: a stack that leaves
 * the tree ends in the child "(other)" of the last node that it has there. So a tree whose nodes
 * were chosen from a part of the data gets exact values by adding all of it once more.
 */
void calltree_freeze(struct calltree *tree);

/* Leaves the part that these functions' names lead to from the root, and them. False when there is
 * none: the tree is as it was. */
bool calltree_focus(struct calltree *tree, const char *const *names, size_t count);

#define CALLTREE_OTHER "(other)"

/* The part of a column under "(other)", folded there by calltree_limit or by the store that the
 * profile came from: magnitudes, so that values that cancel out count, too. */
int64_t calltree_folded(const struct calltree *tree, unsigned type, enum calltree_side side);

/* How a tree is made simpler. A frame that is taken out leaves its value with its caller. */
struct calltree_simpler {
    const char *const *hide; /* functions, by name */
    size_t hide_count;
    const char *const *fold; /* binaries without their paths: a run of frames of one is one frame */
    size_t fold_count;
    const char *only; /* a binary: only the stacks through it. NULL: all */
    bool recursion;   /* a recursive call is its outermost one */
};

#define CALLTREE_ALL_LIBRARIES "*" /* in `fold`: each library, which is one function */
#define CALLTREE_NO_LIBRARIES                                                                      \
    "-" /* in `fold`: libraries are left out, and callers take their values */

void calltree_simplify(struct calltree *tree, const struct calltree_simpler *simpler);
