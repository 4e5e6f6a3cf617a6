// SPDX-License-Identifier: Apache-2.0
// The graph of calls in graphviz's language: the costliest functions and the calls between them. A
// stack counts once for a call, however often recursion makes it.

#include <stdlib.h>
#include <string.h>

#include "profile/units.h"
#include "profile/views/rank.h"
#include "server/pyroscope/querier.h"

struct edge {
    uint32_t caller, callee; /* numbers of shown functions */
    uint32_t stamp;          /* the last stack that counted */
    int64_t value;
};

struct graph {
    const struct profile *profile;
    const struct naming *naming;
    uint32_t *number; /* per entry of the naming; UINT32_MAX: not shown */
    struct edge *edges;
    size_t count, capacity;
    struct id_table index;
};

static struct edge *find_edge(struct graph *graph, uint32_t caller, uint32_t callee)
{
    uint64_t hash = hash_word((uint64_t)caller << 32 | callee);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&graph->index, &probe)) != ID_NONE)
        if (graph->edges[id].caller == caller && graph->edges[id].callee == callee)
            return &graph->edges[id];
    array_reserve(graph->edges, graph->capacity, graph->count + 1);
    graph->edges[graph->count] = (struct edge){.caller = caller, .callee = callee};
    id_table_insert(&graph->index, hash, (uint32_t)graph->count);
    return &graph->edges[graph->count++];
}

/* Functions that aren't shown are stepped over: the call goes from shown one to shown one. */
static void count_calls(struct graph *graph, uint32_t leaf, int64_t value)
{
    uint32_t callee = UINT32_MAX;
    for (uint32_t node = leaf; node; node = graph->profile->nodes[node].parent) {
        uint32_t at = graph->number[graph->naming->of_frame[graph->profile->nodes[node].frame]];
        if (at == UINT32_MAX)
            continue;
        if (callee != UINT32_MAX) {
            struct edge *edge = find_edge(graph, at, callee);
            if (edge->stamp != leaf) {
                edge->stamp = leaf;
                edge->value = add_saturated(edge->value, value);
            }
        }
        callee = at;
    }
}

/* Quoted; a name may hold anything. */
static void put_label(struct buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            buffer_add_char(out, '\\');
        buffer_add_char(out, (unsigned char)text[i] < ' ' ? ' ' : text[i]);
    }
}

void dot_write(const struct profile *profile, size_t functions, struct buffer *out)
{
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_ranking_ struct ranking ranking = {0};
    naming_init(&naming, profile);
    rank_functions(profile, &naming, 0, RANK_BY_CUMULATIVE, &ranking);
    const char *unit =
        profile->type_count ? profile_text(profile, profile->types[0].unit) : "count";
    struct graph graph = {.profile = profile, .naming = &naming};
    graph.number = memory_alloc((naming.count + 1u) * sizeof(*graph.number));
    memset(graph.number, 0xff, (naming.count + 1u) * sizeof(*graph.number));
    buffer_add_text(out, "digraph \"profile\" {\nnode [shape=box]\n");
    for (size_t i = 0; i < ranking.count && i < functions; i++) {
        const struct naming_entry *entry = &naming.entries[ranking.rows[i].entry];
        graph.number[ranking.rows[i].entry] = (uint32_t)i;
        buffer_printf(out, "N%zu [label=\"", i + 1);
        put_label(out, entry->name, entry->length);
        buffer_add_text(out, "\\n");
        units_add(out, &units_terminal, (double)ranking.rows[i].flat, unit);
        buffer_add_text(out, " of ");
        units_add(out, &units_terminal, (double)ranking.rows[i].cumulative, unit);
        buffer_add_text(out, "\"]\n");
    }
    _cleanup_free_ int64_t *values = profile_node_values(profile, 0);
    for (uint32_t node = 1; node < profile->node_count; node++)
        if (values[node])
            count_calls(&graph, node, values[node]);
    for (size_t i = 0; i < graph.count; i++) {
        buffer_printf(out, "N%u -> N%u [label=\"", graph.edges[i].caller + 1,
                      graph.edges[i].callee + 1);
        units_add(out, &units_terminal, (double)graph.edges[i].value, unit);
        buffer_add_text(out, "\"]\n");
    }
    buffer_add_text(out, "}\n");
    free(graph.number);
    free(graph.edges);
    id_table_release(&graph.index);
}
