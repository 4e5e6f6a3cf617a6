/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as compilers use them: counts by function and line, relative to the function's first
 * line, with inlined functions inside those they were inlined into. Built from a profile for the
 * writers of clang's and gcc's files.
 */
#pragma once

#include "base/idtable.h"
#include "format/format.h"

/* A function, or one that was inlined at a place of another. */
struct fdo_function {
    char *name;           /* the linker's, without suffixes of clones */
    uint32_t parent;      /* index + 1; 0: not inlined */
    uint32_t offset;      /* of the call in the parent: lines from its first */
    uint64_t total;       /* with all inlined into it */
    uint64_t head;        /* calls that were seen; 0: none were */
    uint32_t first_line;  /* index + 1 into lines; by offset */
    uint32_t first_child; /* index + 1 into functions */
    uint32_t next;        /* of the same parent */
};

struct fdo_line {
    uint32_t function, offset;
    uint64_t count;        /* of its busiest instruction */
    uint32_t next;         /* of the same function: index + 1 */
    uint32_t first_target; /* index + 1: who was called from here */
};

struct fdo_target {
    uint32_t function; /* that was not inlined */
    uint64_t count;
    uint32_t next; /* of the same line: index + 1 */
};

struct fdo_place { /* an instruction */
    uint32_t line;
    uint64_t address;
    uint64_t count;
};

struct fdo_tree {
    struct fdo_function *functions;
    size_t function_count, function_capacity;
    struct id_table function_index;
    struct fdo_line *lines;
    size_t line_count, line_capacity;
    struct id_table line_index;
    struct fdo_place *places;
    size_t place_count, place_capacity;
    struct id_table place_index;
    struct fdo_target *targets;
    size_t target_count, target_capacity;
    struct fdo_place *entries; /* `line` is a function: its lowest address that was executed */
    size_t entry_count, entry_capacity;
    struct id_table entry_index;
    uint32_t *order; /* functions that were not inlined, those with the most samples first */
    size_t order_count;
    uint64_t used, left_out; /* samples; the latter have no line or are the kernel's */
};

/* Of a sample type: -1 is what branch stacks say was executed where there are any, or else
 * samples/count. An error when nothing can be used. */
int fdo_tree_build(struct fdo_tree *tree, const struct profile *profile, int type,
                   struct error *error);
void fdo_tree_release(struct fdo_tree *tree);

/* How often a function was entered: the calls that branch stacks have, or else the samples of its
 * first line that has any. */
uint64_t fdo_head_count(const struct fdo_tree *tree, uint32_t function);
