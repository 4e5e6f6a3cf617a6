/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions: what each costs, over whole call trees. Trees are added one after the
 * other, so that a table of a fleet needs the memory of one service's stacks and of its rows. A
 * stack counts once for a function, however often recursion puts it there.
 */
#pragma once

#include "io/regex.h"
#include "profile/views/calltree.h"

struct function_row {
    uint32_t name, file, binary; /* strings of the table */
    int64_t flat[CALLTREE_SIDES], cumulative[CALLTREE_SIDES];
};

struct function_table {
    struct function_row *rows;
    size_t count;
    uint64_t function_count; /* rows that there are; more than `count` while only parts are kept */
    int64_t total[CALLTREE_SIDES];
    int64_t matched[CALLTREE_SIDES]; /* stacks with a function that the search found, each once */

    struct profile texts; /* private from here on: only its strings are used */
    uint32_t *row_of;     /* by string: row + 1 of the function with that name */
    size_t capacity, row_of_capacity;
};

void function_table_init(struct function_table *table);
void function_table_release(struct function_table *table);
#define _cleanup_function_table_ __attribute__((cleanup(function_table_release)))
size_t function_table_memory(const struct function_table *table);

const char *function_text(const struct function_table *table, uint32_t string);

/* The row of a function, added with zeros when new; what is known of it is completed. It may move
 * when another is added. */
struct function_row *function_table_row(struct function_table *table, const char *name,
                                        size_t length, const char *file, const char *binary);

/* A row of the table stands for a function, or all functions of a package or of a binary, for which
 * a stack counts once, too. */
enum function_grouping { FUNCTIONS_EACH, FUNCTIONS_BY_PACKAGE, FUNCTIONS_BY_BINARY };

/* The part of a tree to add. */
struct function_choice {
    enum function_grouping grouping;
    const struct regex *search; /* only rows whose names it matches; NULL: all */
    /* How many frames all stacks begin with. A zoom to the last of them leaves the others outside,
     * and a search doesn't look there. */
    size_t focus_count;
    uint32_t partition, partitions; /* only functions of one, by their names; 0 of them: all */
};

/* Adds a column of a tree to a side of the table. -EINVAL when the search meets its limits. */
int function_table_add(struct function_table *table, const struct calltree *tree, unsigned type,
                       enum calltree_side from, enum calltree_side to,
                       const struct function_choice *choice, struct error *error);

/* The values of each of the tree's functions, by its index there. The caller frees both. */
void function_values(const struct calltree *tree, unsigned type, enum calltree_side side,
                     int64_t **ret_flat, int64_t **ret_cumulative);

enum function_order {
    FUNCTIONS_BY_FLAT,
    FUNCTIONS_BY_CUMULATIVE,
    FUNCTIONS_BY_BASE_FLAT,
    FUNCTIONS_BY_BASE_CUMULATIVE,
    FUNCTIONS_BY_FLAT_CHANGE, /* signed: the widest growth first */
    FUNCTIONS_BY_CUMULATIVE_CHANGE,
    FUNCTIONS_BY_NAME,
};

struct function_sorting {
    enum function_order order;
    bool ascending;
    double scale; /* of the base, for changes */
};

/* The largest magnitudes first, ties by the other value and then by name; names from A on.
 * `ascending` turns that around, names from the last on. */
void function_table_sort(struct function_table *table, const struct function_sorting *sorting);

/* Of a sorted table: keeps the first rows only. `function_count` stays. */
void function_table_keep(struct function_table *table, size_t count);

/* Takes over what another table has besides its rows. */
void function_table_copy_sums(struct function_table *table, const struct function_table *other);

/* Drops the rows that aren't of a partition. */
void function_table_restrict(struct function_table *table, uint32_t partition, uint32_t partitions);

/* Adds another table's rows, of functions that this one doesn't have. */
void function_table_append(struct function_table *table, const struct function_table *other);
