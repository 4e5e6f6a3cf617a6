// SPDX-License-Identifier: Apache-2.0
// The API's answer about one function: its callers and callees, as tables and as trees.

#include <string.h>

#include "format/picture/flamedata.h"
#include "profile/level.h"
#include "profile/views/diff.h"
#include "query/covered.h"
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
    int64_t flat[CALLTREE_SIDES], cumulative[CALLTREE_SIDES], total[CALLTREE_SIDES];
    bool filling; /* trees are frozen, and get their values */
    bool found;
    struct table_query simple; /* what of it is left */

    /* The selection, and what it is compared with. */
    struct query_context contexts[CALLTREE_SIDES];
    struct query_quality quality[CALLTREE_SIDES];
    bool compared;
    enum diff_normalize normalize;
    double scale;            /* of the base */
    enum calltree_side side; /* that is being added */
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
    table_query_release(&around->simple);
    for (int side = 0; side < CALLTREE_SIDES; side++)
        query_context_release(&around->contexts[side]);
}

static void add_neighbours(struct function_table *table, const struct naming *naming,
                           const struct ranking *ranking, enum calltree_side side)
{
    static const struct naming_entry root = {.name = "", .file = "", .binary = ""};
    for (size_t i = 0; i < ranking->count; i++) {
        const struct rank_row *from = &ranking->rows[i];
        const struct naming_entry *entry =
            from->entry == RANK_ROOT ? &root : &naming->entries[from->entry];
        struct function_row *row =
            function_table_row(table, entry->name, strlen(entry->name), entry->file, entry->binary);
        row->cumulative[side] = add_saturated(row->cumulative[side], from->cumulative);
    }
}

static int add_stacks(const struct around *around, struct direction *direction,
                      const struct profile *stacks, struct error *error)
{
    if (around->filling && !direction->limited)
        return 0; /* it has all */
    int r = calltree_add(&direction->tree, stacks, around->side, error);
    if (!r && !around->filling && direction->tree.node_count > around->nodes_max) {
        direction->limited = true;
        direction->dropped += calltree_limit(&direction->tree, around->nodes_max / 2);
    }
    return r;
}

static int add_profile(struct around *around, const struct profile *profile, struct error *error)
{
    enum calltree_side side = around->side;
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_sandwich_ struct sandwich sandwich;
    naming_init(&naming, profile);
    if (!sandwich_init(&sandwich, profile, &naming, around->function))
        return 0;
    if (!around->filling) {
        around->found = true;
        around->flat[side] = add_saturated(around->flat[side], sandwich.flat);
        around->cumulative[side] = add_saturated(around->cumulative[side], sandwich.cumulative);
        add_neighbours(&around->above.neighbours, &naming, &sandwich.callers, side);
        add_neighbours(&around->below.neighbours, &naming, &sandwich.callees, side);
    }
    int r = add_stacks(around, &around->above, &sandwich.above, error);
    return r < 0 ? r : add_stacks(around, &around->below, &sandwich.below, error);
}

static int add_simpler(struct around *around, const struct profile *profile, struct error *error)
{
    if (!table_query_simplifies(&around->simple))
        return add_profile(around, profile, error);
    _cleanup_profile_ struct profile simple;
    int r = sandwich_simplify(profile, &around->simple.simpler, &simple, error);
    return r < 0 ? r : add_profile(around, &simple, error);
}

static int add_part(void *context, struct profile *profile, struct error *error)
{
    struct around *around = context;
    int64_t *total = &around->total[around->side];
    if (!around->filling && profile->type_count)
        for (size_t row = 0; row < profile->samples.count; row++)
            *total = add_saturated(*total, profile->samples.values[0][row]);
    const char *function = around->simple.below ? around->simple.below : around->simple.above;
    if (!function)
        return add_simpler(around, profile, error);
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_sandwich_ struct sandwich cut;
    naming_init(&naming, profile);
    if (!sandwich_init(&cut, profile, &naming, function))
        return 0;
    return add_simpler(around, around->simple.below ? &cut.below : &cut.above, error);
}

static int add_sides(struct around *around, struct error *error)
{
    int r = 0;
    for (int side = 0; !r && side <= (around->compared ? CALLTREE_BASE : CALLTREE_NEW); side++) {
        around->side = (enum calltree_side)side;
        r = query_context_each(&around->contexts[side], 0, add_part, around, &around->quality[side],
                               error);
    }
    return r;
}

static void find_scale(struct around *around)
{
    const char *type = around->contexts[CALLTREE_NEW].query.type;
    struct diff_sums sums[CALLTREE_SIDES];
    for (int side = 0; side < CALLTREE_SIDES; side++)
        sums[side] = (struct diff_sums){around->total[side],
                                        covered_duration(type, &around->quality[side].found),
                                        level_is_type(type)};
    const struct diff_sums *base = &sums[CALLTREE_BASE], *new_side = &sums[CALLTREE_NEW];
    around->normalize = diff_resolve_of(base, new_side, around->normalize);
    around->scale = diff_scale_of(base, new_side, around->normalize);
}

static int look_around(struct around *around, struct error *error)
{
    struct function_sorting sorting = {.order = FUNCTIONS_BY_CUMULATIVE};
    struct direction *directions[] = {&around->above, &around->below};
    size_t memory = around->contexts[CALLTREE_NEW].limits.memory_bytes;
    around->nodes_max =
        MAX(around->nodes, memory ? (uint32_t)MIN(memory / NODE_BYTES, NODES_MAX) : NODES_MAX);
    int r = add_sides(around, error);
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
        r = add_sides(around, error);
    for (size_t i = 0; !r && around->filling && i < ARRAY_LENGTH(directions); i++)
        directions[i]->dropped += calltree_limit(&directions[i]->tree, around->nodes);
    for (int side = 0; !r && side <= (around->compared ? CALLTREE_BASE : CALLTREE_NEW); side++)
        r = query_context_measure(&around->contexts[side], &around->quality[side], error);
    if (!r && around->compared)
        find_scale(around);
    return r;
}

static void put_neighbours(struct json_writer *json, const char *key, const char *count_key,
                           const struct function_table *table, bool compared, uint64_t limit)
{
    json_write_line(json);
    json_member_unsigned(json, count_key, table->count);
    json_write_key(json, key);
    json_write_array(json);
    for (size_t i = 0; i < table->count && i < limit && buffer_pass(json->out); i++) {
        const struct function_row *row = &table->rows[i];
        json_write_line(json);
        json_write_object(json);
        table_put_function(json, table, row);
        json_member_signed(json, "cum", row->cumulative[CALLTREE_NEW]);
        if (compared)
            json_member_signed(json, "base_cum", row->cumulative[CALLTREE_BASE]);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static int put_tree(struct json_writer *json, const char *key, const struct around *around,
                    const struct direction *direction, struct error *error)
{
    static const enum flame_normalize normalize[] = {
        FLAME_NORMALIZE_TOTAL, FLAME_NORMALIZE_DURATION, FLAME_NORMALIZE_NONE};
    struct flame_options options = {.title = around->function, .dropped = direction->dropped};
    if (around->compared) {
        options.normalize = normalize[around->normalize];
        options.scale = &around->scale;
    }
    json_write_line(json);
    json_write_key(json, key);
    return flamedata_write(json_write_value(json), &direction->tree, &options, error);
}

static void put_sums(struct json_writer *json, const struct around *around, enum calltree_side side)
{
    static const char *const keys[CALLTREE_SIDES][3] = {
        [CALLTREE_NEW] = {"flat", "cum", "total"},
        [CALLTREE_BASE] = {"base_flat", "base_cum", "base_total"}};
    json_member_signed(json, keys[side][0], around->flat[side]);
    json_member_signed(json, keys[side][1], around->cumulative[side]);
    json_member_signed(json, keys[side][2], around->total[side]);
}

static int write_callers(struct http_request *request, const struct around *around, uint64_t limit,
                         struct error *error)
{
    _cleanup_answer_ struct answer answer = {0};
    struct json_writer writer = json_writer(&answer.out), *json = &writer;
    answer_init(&answer, request, "application/json");
    json_write_object(json);
    api_put_unit(json, around->contexts[CALLTREE_NEW].query.type);
    json_member_text(json, "function", around->function);
    put_sums(json, around, CALLTREE_NEW);
    quality_write(&around->quality[CALLTREE_NEW], NULL, json);
    if (around->compared) {
        put_sums(json, around, CALLTREE_BASE);
        json_member_number(json, "scale", around->scale);
        json_write_key(json, "base");
        json_write_object(json);
        quality_write(&around->quality[CALLTREE_BASE], NULL, json);
        json_write_object_end(json);
    }
    put_neighbours(json, "callers", "callers_count", &around->above.neighbours, around->compared,
                   limit);
    put_neighbours(json, "callees", "callees_count", &around->below.neighbours, around->compared,
                   limit);
    int r = put_tree(json, "caller_tree", around, &around->above, error);
    if (!r)
        r = put_tree(json, "callee_tree", around, &around->below, error);
    json_write_object_end(json);
    buffer_add_char(json->out, '\n');
    return answer_end(&answer, r, error);
}

/* The base is the selection, but for what its own parameters say. */
static int read_base(struct around *around, struct http_request *request, struct server *server,
                     struct error *error)
{
    static const char *const names[] = {"total", "duration", "none", NULL};
    static const char *const own[] = {"base_query", "base_from", "base_to"};
    for (size_t i = 0; i < ARRAY_LENGTH(own); i++)
        around->compared |= http_request_query(request, own[i]) != NULL;
    unsigned normalize;
    int r = parameter_word(request, "normalize", names, DIFF_DEFAULT, &normalize, error);
    if (r < 0 || !around->compared)
        return r;
    around->normalize = (enum diff_normalize)normalize;
    const struct query_context *new_side = &around->contexts[CALLTREE_NEW];
    struct query_context *base = &around->contexts[CALLTREE_BASE];
    const char *query = http_request_query(request, "query");
    r = query_context_read_from(base, request, server, "base_", query ? query : "",
                                new_side->selection.from_ns, new_side->selection.to_ns, true,
                                error);
    if (r < 0)
        return r;
    if (strcmp(base->query.type, new_side->query.type))
        return error_set(error, -EINVAL, "Profiles of different types can't be compared.");
    return query_context_narrow(base, request, error);
}

void api_callers(struct http_request *request, void *server)
{
    struct error error = {0};
    uint64_t limit = API_ROWS, nodes = DEFAULT_NODES;
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
        r = table_query_read_simpler(&around.simple, request, &error);
    if (!r)
        r = query_context_read_level(&around.contexts[CALLTREE_NEW], request, server, &error);
    if (!r)
        r = read_base(&around, request, server, &error);
    if (!r)
        r = query_context_read_links(&around.contexts[CALLTREE_NEW], request, &error);
    if (!r)
        r = look_around(&around, &error);
    if (!r)
        r = write_callers(request, &around, limit, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
