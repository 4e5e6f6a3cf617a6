// SPDX-License-Identifier: Apache-2.0
// From a call graph to stacks: see graph.h.

#include "format/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void call_graph_release(struct call_graph *graph)
{
    free(graph->functions);
    free(graph->items);
    free(graph->calls);
    id_table_release(&graph->item_index);
    id_table_release(&graph->call_index);
}

uint32_t call_graph_function(struct call_graph *graph, const struct profile_frame *frame)
{
    array_reserve(graph->functions, graph->function_capacity, graph->function_count + 1);
    graph->functions[graph->function_count] = (struct graph_function){.frame = *frame};
    return (uint32_t)graph->function_count++;
}

void call_graph_add_self(struct call_graph *graph, uint32_t function, uint32_t line,
                         const int64_t *values)
{
    uint64_t hash = hash_word((uint64_t)function << 32 | line);
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&graph->item_index, &probe)) != ID_NONE)
        if (graph->items[found].function == function && graph->items[found].line == line)
            break;
    struct graph_function *owner = &graph->functions[function];
    if (found == ID_NONE) {
        array_reserve(graph->items, graph->item_capacity, graph->item_count + 1);
        found = (uint32_t)graph->item_count++;
        graph->items[found] =
            (struct graph_item){.function = function, .line = line, .next = owner->first_item};
        owner->first_item = found + 1;
        id_table_insert(&graph->item_index, hash, found);
    }
    for (unsigned i = 0; i < graph->width; i++)
        graph->items[found].values[i] =
            add_saturated(graph->items[found].values[i], MAX(values[i], (int64_t)0));
    owner->self = add_saturated(owner->self, MAX(values[0], (int64_t)0));
}

void call_graph_add_call(struct call_graph *graph, uint32_t caller, uint32_t callee, int64_t value)
{
    if (caller == callee)
        return;
    uint64_t hash = hash_word((uint64_t)caller << 32 | callee);
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&graph->call_index, &probe)) != ID_NONE)
        if (graph->calls[found].caller == caller && graph->calls[found].callee == callee)
            break;
    struct graph_function *from = &graph->functions[caller], *to = &graph->functions[callee];
    if (found == ID_NONE) {
        array_reserve(graph->calls, graph->call_capacity, graph->call_count + 1);
        found = (uint32_t)graph->call_count++;
        graph->calls[found] =
            (struct graph_call){.caller = caller, .callee = callee, .next = from->first_call};
        from->first_call = found + 1;
        id_table_insert(&graph->call_index, hash, found);
    }
    value = MAX(value, (int64_t)0);
    graph->calls[found].value = add_saturated(graph->calls[found].value, value);
    from->outgoing = add_saturated(from->outgoing, value);
    to->incoming = add_saturated(to->incoming, value);
}

/* ---- the tree ---- */

struct tree_node {
    uint32_t function;
    uint32_t stack; /* node of the profile: the callers */
    double fraction;
    uint32_t next; /* of the same function: index + 1 */
};

struct visit { /* a function on the path, and the call that is next */
    uint32_t node, call;
};

struct unfolding {
    struct call_graph *graph;
    struct profile *profile;
    struct tree_node *nodes;
    size_t count, capacity;
    uint32_t *first; /* of each function: index + 1 */
    struct visit path[GRAPH_DEPTH_MAX];
    double least; /* what is worth a node, of the first value */
};

static uint32_t add_node(struct unfolding *tree, uint32_t function, uint32_t stack, double fraction)
{
    struct graph_function *owner = &tree->graph->functions[function];
    array_reserve(tree->nodes, tree->capacity, tree->count + 1);
    uint32_t id = (uint32_t)tree->count++;
    tree->nodes[id] = (struct tree_node){
        .function = function, .stack = stack, .fraction = fraction, .next = tree->first[function]};
    tree->first[function] = id + 1;
    if (!owner->reached || fraction > tree->nodes[owner->largest].fraction)
        owner->largest = id;
    owner->reached += fraction;
    return id;
}

static uint32_t stack_of(struct unfolding *tree, uint32_t node)
{
    const struct tree_node *at = &tree->nodes[node];
    uint32_t frame = profile_frame(tree->profile, &tree->graph->functions[at->function].frame);
    return profile_child(tree->profile, at->stack, frame);
}

/* Everything that is called from a root, depth first. */
static void unfold(struct unfolding *tree, uint32_t root)
{
    struct call_graph *graph = tree->graph;
    size_t depth = 1;
    tree->path[0] = (struct visit){add_node(tree, root, 0, 1), graph->functions[root].first_call};
    graph->functions[root].on_path = true;
    while (depth) {
        struct visit *visit = &tree->path[depth - 1];
        if (!visit->call) {
            graph->functions[tree->nodes[visit->node].function].on_path = false;
            depth--;
            continue;
        }
        const struct graph_call *call = &graph->calls[visit->call - 1];
        visit->call = call->next;
        struct graph_function *callee = &graph->functions[call->callee];
        double fraction = tree->nodes[visit->node].fraction * (double)call->value /
                          (double)MAX(callee->incoming, (int64_t)1);
        double cost = fraction * ((double)callee->self + (double)callee->outgoing);
        if (callee->on_path || depth == GRAPH_DEPTH_MAX || tree->count >= GRAPH_NODES_MAX ||
            cost < tree->least)
            continue;
        uint32_t node = add_node(tree, call->callee, stack_of(tree, visit->node), fraction);
        callee->on_path = true;
        tree->path[depth++] = (struct visit){node, callee->first_call};
    }
}

/* ---- samples ---- */

static size_t row_of(struct unfolding *tree, const struct tree_node *node, uint32_t line)
{
    struct profile_frame frame = tree->graph->functions[node->function].frame;
    frame.line = line;
    uint32_t child =
        profile_child(tree->profile, node->stack, profile_frame(tree->profile, &frame));
    return profile_sample(tree->profile, child, 0, 0, 0);
}

/* One cost over all nodes of its function; what rounding leaves goes to the largest. */
static void divide(struct unfolding *tree, const struct graph_item *item, const unsigned *types)
{
    const struct graph_function *owner = &tree->graph->functions[item->function];
    int64_t left[GRAPH_VALUES_MAX];
    memcpy(left, item->values, sizeof(left));
    for (uint32_t at = tree->first[item->function]; at; at = tree->nodes[at - 1].next) {
        const struct tree_node *node = &tree->nodes[at - 1];
        if (at - 1 == owner->largest)
            continue;
        double share = node->fraction / owner->reached;
        size_t row = SIZE_MAX;
        for (unsigned i = 0; i < tree->graph->width; i++) {
            int64_t value = (int64_t)((double)item->values[i] * share);
            value = MIN(MAX(value, (int64_t)0), left[i]);
            if (!value)
                continue;
            if (row == SIZE_MAX)
                row = row_of(tree, node, item->line);
            profile_add_value(tree->profile, row, types[i], value);
            left[i] -= value;
        }
    }
    size_t row = row_of(tree, &tree->nodes[owner->largest], item->line);
    for (unsigned i = 0; i < tree->graph->width; i++)
        profile_add_value(tree->profile, row, types[i], left[i]);
}

int call_graph_resolve(struct call_graph *graph, struct profile *profile, const unsigned *types,
                       struct error *error)
{
    struct unfolding *tree = memory_zalloc(1, sizeof(*tree));
    double total = 0;
    tree->graph = graph;
    tree->profile = profile;
    tree->first = memory_zalloc(graph->function_count + 1, sizeof(*tree->first));
    for (size_t i = 0; i < graph->function_count; i++)
        total += (double)graph->functions[i].self;
    tree->least = MAX(total / 100000, 0.5);
    for (size_t i = 0; i < graph->function_count; i++)
        if (!graph->functions[i].incoming)
            unfold(tree, (uint32_t)i);
    /* Nodes that only cycles lead to, or too little value, stand alone. */
    for (size_t i = 0; i < graph->function_count; i++)
        if (!tree->first[i] && graph->functions[i].first_item)
            unfold(tree, (uint32_t)i);
    int r = 0;
    for (size_t i = 0; i < graph->item_count && !r; i++) {
        divide(tree, &graph->items[i], types);
        if (profile_full(profile))
            r = error_set(error, -E2BIG, "The file has more stacks than a profile can hold.");
    }
    free(tree->nodes);
    free(tree->first);
    free(tree);
    return r;
}
