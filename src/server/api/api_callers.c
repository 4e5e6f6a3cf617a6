// SPDX-License-Identifier: Apache-2.0
// The API's answer about one function: its callers and callees, as tables and as trees.

#include <string.h>

#include "format/picture/flamedata.h"
#include "query/sandwich.h"
#include "server/api/api.h"
#include "server/api/table_query.h"
#include "server/handler/answer.h"

#define DEFAULT_NODES 8192
#define NODES_MAX (1u << 20)
#define NODE_BYTES 64 /* of a tree, with its columns and indexes */

/* One direction: the neighbours, exactly, and the tree of the largest nodes. */
struct direction {
    struct function_table neighbours;
    struct calltree tree;
    bool limited; /* nodes were folded away before all was added */
    uint32_t dropped;
};

struct around {
    const char *function;
    uint32_t nodes, nodes_max; /* of a tree in the end, and before */
    struct direction above, below;
    int64_t flat, cumulative, total;
    bool filling; /* trees are frozen, and get their values */
    bool found;
};

static void around_init(struct around *around)
{
    struct direction *directions[] = {&around->above, &around->below};
    for (size_t i = 0; i < ARRAY_LENGTH(directions); i++) {
        function_table_init(&directions[i]->neighbours);
        calltree_init(&directions[i]->tree);
    }
}

static void around_release(struct around *around)
{
    struct direction *directions[] = {&around->above, &around->below};
    for (size_t i = 0; i < ARRAY_LENGTH(directions); i++) {
        function_table_release(&directions[i]->neighbours);
        calltree_release(&directions[i]->tree);
    }
}

static void add_neighbours(struct function_table *table, const struct naming *naming,
                           const struct ranking *ranking)
{
    static const struct naming_entry root = {.name = "", .file = "", .binary = ""};
    for (size_t i = 0; i < ranking->count; i++) {
        const struct rank_row *from = &ranking->rows[i];
        const struct naming_entry *entry =
            from->entry == RANK_ROOT ? &root : &naming->entries[from->entry];
        struct function_row *row =
            function_table_row(table, entry->name, strlen(entry->name), entry->file, entry->binary);
        row->cumulative[CALLTREE_NEW] =
            add_saturated(row->cumulative[CALLTREE_NEW], from->cumulative);
    }
}

static int add_stacks(const struct around *around, struct direction *direction,
                      const struct profile *stacks, struct error *error)
{
    if (around->filling && !direction->limited)
        return 0; /* it has all */
    int r = calltree_add(&direction->tree, stacks, CALLTREE_NEW, error);
    if (!r && !around->filling && direction->tree.node_count > around->nodes_max) {
        direction->limited = true;
        direction->dropped += calltree_limit(&direction->tree, around->nodes_max / 2);
    }
    return r;
}

static int add_part(void *context, struct profile *profile, struct error *error)
{
    struct around *around = context;
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_sandwich_ struct sandwich sandwich;
    naming_init(&naming, profile);
    bool found = sandwich_init(&sandwich, profile, &naming, around->function);
    if (!around->filling && profile->type_count)
        for (size_t row = 0; row < profile->samples.count; row++)
            around->total = add_saturated(around->total, profile->samples.values[0][row]);
    if (!found)
        return 0;
    if (!around->filling) {
        around->found = true;
        around->flat = add_saturated(around->flat, sandwich.flat);
        around->cumulative = add_saturated(around->cumulative, sandwich.cumulative);
        add_neighbours(&around->above.neighbours, &naming, &sandwich.callers);
        add_neighbours(&around->below.neighbours, &naming, &sandwich.callees);
    }
    int r = add_stacks(around, &around->above, &sandwich.above, error);
    return r < 0 ? r : add_stacks(around, &around->below, &sandwich.below, error);
}

static int look_around(struct around *around, struct query_context *query_context,
                       struct query_quality *quality, struct error *error)
{
    struct function_sorting sorting = {.order = FUNCTIONS_BY_CUMULATIVE};
    struct direction *directions[] = {&around->above, &around->below};
    size_t memory = query_context->limits.memory_bytes;
    around->nodes_max =
        MAX(around->nodes, memory ? (uint32_t)MIN(memory / NODE_BYTES, NODES_MAX) : NODES_MAX);
    int r = query_context_each(query_context, 0, add_part, around, quality, error);
    if (!r && !around->found)
        r = api_missing_function(around->function, error);
    for (size_t i = 0; !r && i < ARRAY_LENGTH(directions); i++) {
        function_table_sort(&directions[i]->neighbours, &sorting);
        directions[i]->dropped += calltree_limit(&directions[i]->tree, around->nodes);
        if (directions[i]->limited)
            calltree_freeze(&directions[i]->tree);
    }
    around->filling = around->above.limited || around->below.limited;
    if (!r && around->filling)
        r = query_context_each(query_context, 0, add_part, around, quality, error);
    for (size_t i = 0; !r && around->filling && i < ARRAY_LENGTH(directions); i++)
        directions[i]->dropped += calltree_limit(&directions[i]->tree, around->nodes);
    return r < 0 ? r : query_context_measure(query_context, quality, error);
}

static void put_neighbours(struct buffer *out, const char *key, const struct function_table *table,
                           uint64_t limit)
{
    buffer_printf(out, ",\n\"%s_count\":%zu,\"%s\":[", key, table->count, key);
    for (size_t i = 0; i < table->count && i < limit && buffer_pass(out); i++) {
        buffer_add_text(out, i ? ",\n" : "\n");
        table_put_function(out, table, &table->rows[i]);
        buffer_printf(out, ",\"cum\":%lld}", (long long)table->rows[i].cumulative[CALLTREE_NEW]);
    }
    buffer_add_char(out, ']');
}

static int put_tree(struct buffer *out, const char *key, const struct direction *direction,
                    const char *title, struct error *error)
{
    struct flame_options options = {.title = title, .dropped = direction->dropped};
    buffer_printf(out, ",\n\"%s\":", key);
    return flamedata_write(out, &direction->tree, &options, error);
}

static int write_callers(struct http_request *request, const struct around *around,
                         const struct query_quality *quality, const char *type, uint64_t limit,
                         struct error *error)
{
    _cleanup_answer_ struct answer answer = {0};
    struct buffer *out = &answer.out;
    answer_init(&answer, request, "application/json");
    buffer_add_char(out, '{');
    api_put_unit(out, type);
    buffer_add_text(out, ",\"function\":");
    json_put_text(out, around->function);
    buffer_printf(out, ",\"flat\":%lld,\"cum\":%lld,\"total\":%lld,", (long long)around->flat,
                  (long long)around->cumulative, (long long)around->total);
    quality_write(quality, NULL, out);
    put_neighbours(out, "callers", &around->above.neighbours, limit);
    put_neighbours(out, "callees", &around->below.neighbours, limit);
    int r = put_tree(out, "caller_tree", &around->above, around->function, error);
    if (!r)
        r = put_tree(out, "callee_tree", &around->below, around->function, error);
    buffer_add_text(out, "}\n");
    return answer_end(&answer, r, error);
}

void api_callers(struct http_request *request, void *server)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    struct error error = {0};
    uint64_t limit = API_ROWS, nodes = DEFAULT_NODES;
    struct query_quality quality = {0};
    _cleanup_(around_release) struct around around = {.function =
                                                          http_request_query(request, "function")};
    around_init(&around);
    if (!parameters_known(request, "/api/v1/callers"))
        return;
    int r = !around.function || !*around.function
                ? error_set(&error, -EINVAL, "The parameter function is missing.")
                : parameter_number(request, "limit", 1, API_ROWS_MAX, &limit, &error);
    if (!r)
        r = parameter_number(request, "max_nodes", 2, NODES_MAX, &nodes, &error);
    around.nodes = (uint32_t)nodes;
    if (!r)
        r = query_context_read_level(&query_context, request, server, &error);
    if (!r)
        r = query_context_read_links(&query_context, request, &error);
    if (!r)
        r = look_around(&around, &query_context, &quality, &error);
    if (!r)
        r = write_callers(request, &around, &quality, query_context.query.type, limit, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
