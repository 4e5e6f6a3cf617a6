/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call graphs, for formats that know functions and calls between them instead of stacks: callgrind,
 * cProfile. The graph is unfolded into a tree: what a function costs by itself is divided among its
 * callers in proportion to what the calls cost, and so on up to the roots. Each function's own cost
 * is exact to the last unit; how it is divided is an estimate, as in every tool that draws such a
 * graph as a tree. Calls back into a function that is on the stack already are not followed.
 */
#pragma once

#include "base/idtable.h"
#include "profile/profile.h"

#define GRAPH_VALUES_MAX 16
#define GRAPH_NODES_MAX 200000 /* of the tree */
#define GRAPH_DEPTH_MAX 400

struct graph_function {
    struct profile_frame frame;       /* without a line */
    int64_t self, incoming, outgoing; /* of the first value; calls of itself are left out */
    uint32_t first_call;              /* index + 1 into `calls`; 0: none */
    uint32_t first_item;
    double reached;   /* sum of the fractions of its nodes */
    uint32_t largest; /* the node with the largest fraction */
    bool on_path;
};

struct graph_item { /* own cost, on a line */
    uint32_t function, line, next;
    int64_t values[GRAPH_VALUES_MAX];
};

struct graph_call {
    uint32_t caller, callee, next;
    int64_t value; /* the first value of all that happened in the calls */
};

struct call_graph {
    unsigned width; /* values of each cost */
    struct graph_function *functions;
    size_t function_count, function_capacity;
    struct graph_item *items;
    size_t item_count, item_capacity;
    struct id_table item_index; /* by function and line */
    struct graph_call *calls;
    size_t call_count, call_capacity;
    struct id_table call_index; /* by caller and callee */
};

void call_graph_release(struct call_graph *graph);
#define _cleanup_graph_ _cleanup_(call_graph_release)

uint32_t call_graph_function(struct call_graph *graph, const struct profile_frame *frame);
/* Negative values count as 0. */
void call_graph_add_self(struct call_graph *graph, uint32_t function, uint32_t line,
                         const int64_t *values);
void call_graph_add_call(struct call_graph *graph, uint32_t caller, uint32_t callee, int64_t value);

/* Adds everything to the profile; `types` has `width` sample types. */
int call_graph_resolve(struct call_graph *graph, struct profile *profile, const unsigned *types,
                       struct error *error);
