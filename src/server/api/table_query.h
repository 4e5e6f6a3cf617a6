/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of functions, of everything that is selected: which rows of them a request wants, in which
 * order, and how they are made. Private to src/server.
 */
#pragma once

#include "profile/views/functions.h"
#include "server/api/tree_part.h"
#include "server/query/context.h"

struct table_query {
    uint64_t limit, offset;
    struct function_sorting sorting;
    bool ends; /* without `order`, a table of changes has its both ends */
    struct regex *search;
    enum function_grouping grouping; /* what a row is */
    struct tree_part part;           /* its focus */
    struct calltree_simpler simpler;
    const char **hide, **fold;
    /* Only the frames of stacks from the outermost one of this function on, to the leaf or to the
     * root; NULL: all. */
    const char *below, *above;
};

void table_query_release(struct table_query *query);
#define _cleanup_table_query_ __attribute__((cleanup(table_query_release)))

/* `changes`: the table compares two sides. */
int table_query_read(struct table_query *query, struct http_request *request, bool changes,
                     struct error *error);

/* The parts of stacks that the parameters below, above, hide, fold, only and recursion leave: a
 * part of the above. */
int table_query_read_simpler(struct table_query *query, struct http_request *request,
                             struct error *error);

/* Whether any are. */
bool table_query_simplifies(const struct table_query *query);

struct table_side {
    struct query_context *query_context;
    enum calltree_side side;
    struct query_quality *quality; /* set */
};

/* The factor for the base, after everything is added up. */
typedef double table_scale_fn(void *context, const struct function_table *table);

/* Makes the table, sorted, with the rows up to the last that is wanted. Rows that don't fit into
 * memory at once are ranked part by part. `scale` is NULL for one side. */
int table_make(struct table_query *query, const struct table_side *sides, size_t count,
               table_scale_fn *scale, void *context, struct function_table *table,
               struct error *error);

/* ,"function_count":...,"matched":...: `matched_base` when the table has a base. */
void table_put_counts(struct json_writer *json, const struct table_query *query,
                      const struct function_table *table, bool base);

/* The names of a row: {"function":...,"file":...,"binary":..., without its end. */
void table_put_function(struct json_writer *json, const struct function_table *table,
                        const struct function_row *row);
