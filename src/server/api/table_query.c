// SPDX-License-Identifier: Apache-2.0
// Tables of functions: see table_query.h.

#include "server/api/table_query.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "query/sandwich.h"
#include "server/admission/admission.h"
#include "server/api/api.h"

#define PARTITIONS_MAX 64

void table_query_release(struct table_query *query)
{
    regex_free(query->search);
    tree_part_release(&query->part);
    free(query->hide);
    free(query->fold);
    *query = (struct table_query){0};
}

/* ---- reading ---- */

static const char **read_list(struct http_request *request, const char *wanted, size_t *ret_count)
{
    const char **list = NULL;
    size_t capacity = 0;
    *ret_count = 0;
    for (size_t i = 0; i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (strcmp(name, wanted) || !*value)
            continue;
        array_reserve(list, capacity, *ret_count + 1);
        list[(*ret_count)++] = value;
    }
    return list;
}

/* A text is found wherever it is in a name; one with capitals minds them. */
static void quote(const char *text, struct buffer *out)
{
    if (!strpbrk(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        buffer_add_text(out, "(?i)");
    for (; *text; text++) {
        if (strchr(".*+?^${}()|[]\\", *text))
            buffer_add_char(out, '\\');
        buffer_add_char(out, *text);
    }
}

/* In an expression, \S and \W are classes and no capitals. */
static bool minds_case(const char *expression)
{
    for (; *expression; expression++) {
        if (*expression == '\\' && expression[1])
            expression++;
        else if (*expression >= 'A' && *expression <= 'Z')
            return true;
    }
    return false;
}

static int read_search(struct table_query *query, struct http_request *request, struct error *error)
{
    const char *text = http_request_query(request, "search");
    const char *expression = http_request_query(request, "regex");
    _cleanup_buffer_ struct buffer pattern = {0};
    if (text && *text && expression && *expression)
        return error_set(error, -EINVAL, "Use either search or regex.");
    if (expression && *expression)
        buffer_printf(&pattern, "%s%s", minds_case(expression) ? "" : "(?i)", expression);
    else if (text && *text)
        quote(text, &pattern);
    else
        return 0;
    return regex_new(buffer_text(&pattern), false, "the search", &query->search, error);
}

static int read_order(struct table_query *query, struct http_request *request, bool changes,
                      struct error *error)
{
    static const char *const plain[] = {"flat", "cum", "name", NULL};
    static const char *const compared[] = {"flat",      "cum",      "new_flat", "new_cum",
                                           "base_flat", "base_cum", "name",     NULL};
    static const enum function_order plain_orders[] = {FUNCTIONS_BY_FLAT, FUNCTIONS_BY_CUMULATIVE,
                                                       FUNCTIONS_BY_NAME};
    static const enum function_order compared_orders[] = {
        FUNCTIONS_BY_FLAT_CHANGE, FUNCTIONS_BY_CUMULATIVE_CHANGE, FUNCTIONS_BY_FLAT,
        FUNCTIONS_BY_CUMULATIVE,  FUNCTIONS_BY_BASE_FLAT,         FUNCTIONS_BY_BASE_CUMULATIVE,
        FUNCTIONS_BY_NAME};
    static const char *const directions[] = {"desc", "asc", NULL};
    const char *given = http_request_query(request, "order");
    unsigned order, direction;
    int r = parameter_word(request, "sort", changes ? compared : plain, 0, &order, error);
    if (!r)
        r = parameter_word(request, "order", directions, 0, &direction, error);
    if (r < 0)
        return r;
    query->sorting = (struct function_sorting){
        .order = changes ? compared_orders[order] : plain_orders[order], .scale = 1};
    /* Names begin with the first unless told otherwise. */
    query->sorting.ascending = query->sorting.order == FUNCTIONS_BY_NAME
                                   ? given && *given && direction == 0
                                   : direction == 1;
    query->ends = changes && !(given && *given) && !query->offset && order <= 1;
    return 0;
}

static const char *one_of(struct http_request *request, const char *name)
{
    const char *value = http_request_query(request, name);
    return value && *value ? value : NULL;
}

int table_query_read_simpler(struct table_query *query, struct http_request *request,
                             struct error *error)
{
    static const char *const recursion[] = {"all", "once", NULL};
    unsigned once;
    int r = parameter_word(request, "recursion", recursion, 0, &once, error);
    if (r < 0)
        return r;
    query->hide = read_list(request, "hide", &query->simpler.hide_count);
    query->fold = read_list(request, "fold", &query->simpler.fold_count);
    query->simpler.hide = query->hide;
    query->simpler.fold = query->fold;
    query->simpler.only = one_of(request, "only");
    query->simpler.recursion = once == 1;
    query->below = one_of(request, "below");
    query->above = one_of(request, "above");
    if (query->below && query->above)
        return error_set(error, -EINVAL, "Use either above or below.");
    return 0;
}

bool table_query_simplifies(const struct table_query *query)
{
    const struct calltree_simpler *simpler = &query->simpler;
    return simpler->hide_count || simpler->fold_count || simpler->only || simpler->recursion;
}

int table_query_read(struct table_query *query, struct http_request *request, bool changes,
                     struct error *error)
{
    static const char *const rows[] = {"function", "package", "binary", NULL};
    static const enum function_grouping groupings[] = {FUNCTIONS_EACH, FUNCTIONS_BY_PACKAGE,
                                                       FUNCTIONS_BY_BINARY};
    unsigned row = 0;
    query->limit = API_ROWS;
    int r = parameter_number(request, "limit", 1, API_ROWS_MAX, &query->limit, error);
    if (!r)
        r = parameter_number(request, "offset", 0, UINT32_MAX, &query->offset, error);
    if (!r)
        r = parameter_word(request, "rows", rows, 0, &row, error);
    query->grouping = groupings[row];
    if (!r)
        r = read_order(query, request, changes, error);
    if (!r)
        r = read_search(query, request, error);
    if (!r)
        r = tree_part_read_focus(&query->part, request, error);
    return r < 0 ? r : table_query_read_simpler(query, request, error);
}

/* ---- making ---- */

/* Of functions, by their names: those that a pass adds up. */
struct partition {
    uint32_t index, count;
};

struct pending {
    struct partition list[PARTITIONS_MAX];
    size_t count;
};

struct making {
    const struct table_query *query;
    const struct query_context *query_context;
    struct pending *pending;
    struct function_choice choice;
    enum calltree_side side;
    size_t memory_bytes;
    struct function_table *table;
    bool found; /* a stack that begins with the focus, or has the function */
};

/* Goes on with half of the names; the others are for another pass. */
static int split(struct making *making, struct error *error)
{
    struct function_choice *choice = &making->choice;
    struct pending *pending = making->pending;
    if (choice->partitions >= PARTITIONS_MAX || pending->count == PARTITIONS_MAX)
        return query_context_too_large(making->query_context, error);
    pending->list[pending->count++] =
        (struct partition){choice->partition + choice->partitions, 2 * choice->partitions};
    choice->partitions *= 2;
    function_table_restrict(making->table, choice->partition, choice->partitions);
    return 0;
}

static int add_tree(struct making *making, const struct profile *profile, struct error *error)
{
    const struct table_query *query = making->query;
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    int r = calltree_add(&tree, profile, CALLTREE_NEW, error);
    if (r < 0 || (query->part.focus_count &&
                  !calltree_focus(&tree, query->part.focus, query->part.focus_count)))
        return r;
    making->found = true;
    calltree_simplify(&tree, &query->simpler);
    r = function_table_add(making->table, &tree, 0, CALLTREE_NEW, making->side, &making->choice,
                           error);
    while (!r && making->memory_bytes &&
           function_table_memory(making->table) > making->memory_bytes)
        r = split(making, error);
    return r;
}

static int add_part(void *context, struct profile *profile, struct error *error)
{
    struct making *making = context;
    const char *function = making->query->below ? making->query->below : making->query->above;
    if (!function)
        return add_tree(making, profile, error);
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_sandwich_ struct sandwich sandwich;
    naming_init(&naming, profile);
    if (!sandwich_init(&sandwich, profile, &naming, function))
        return 0;
    return add_tree(making, making->query->below ? &sandwich.below : &sandwich.above, error);
}

/* One pass over everything that is selected. */
static int make_partition(struct making *making, const struct table_side *sides, size_t count,
                          struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < count; i++) {
        making->side = sides[i].side;
        making->query_context = sides[i].query_context;
        making->memory_bytes = admit_profile_bytes(sides[i].query_context->server->admissions);
        r = query_context_each(sides[i].query_context, 0, add_part, making, sides[i].quality,
                               error);
    }
    return r;
}

/* A page applies the same choices to each part as to the whole. */
static void keep_wanted(const struct table_query *query, struct function_table *table)
{
    function_table_sort(table, &query->sorting);
    if (!query->ends)
        function_table_keep(table, query->offset + query->limit);
}

int table_make(struct table_query *query, const struct table_side *sides, size_t count,
               table_scale_fn *scale, void *context, struct function_table *table,
               struct error *error)
{
    struct pending pending = {.list = {{0, 1}}, .count = 1};
    bool found = false;
    int r = 0;
    while (!r && pending.count) {
        const struct partition *next = &pending.list[--pending.count];
        _cleanup_function_table_ struct function_table part;
        function_table_init(&part);
        struct making making = {.query = query,
                                .pending = &pending,
                                .choice = {.grouping = query->grouping,
                                           .search = query->search,
                                           .focus_count = query->part.focus_count,
                                           .partition = next->index,
                                           .partitions = next->count},
                                .table = &part};
        r = make_partition(&making, sides, count, error);
        if (r < 0)
            return r;
        found |= making.found;
        query->sorting.scale = scale ? scale(context, &part) : 1;
        keep_wanted(query, &part);
        function_table_copy_sums(table, &part);
        function_table_append(table, &part);
        keep_wanted(query, table);
        if (making.memory_bytes && function_table_memory(table) > 2 * making.memory_bytes)
            r = error_set(error, -E2BIG, "The rows exceed the memory limit; use a smaller limit.");
    }
    const char *function = query->below ? query->below : query->above;
    if (!found && function)
        return api_missing_function(function, error);
    if (!found && query->part.focus_count)
        return tree_part_missing(error);
    for (size_t i = 0; !r && i < count; i++)
        r = query_context_measure(sides[i].query_context, sides[i].quality, error);
    return r;
}

/* ---- writing ---- */

void table_put_counts(struct json_writer *json, const struct table_query *query,
                      const struct function_table *table, bool base)
{
    if (query->search)
        json_member_signed(json, "matched", table->matched[CALLTREE_NEW]);
    if (query->search && base)
        json_member_signed(json, "matched_base", table->matched[CALLTREE_BASE]);
    json_member_unsigned(json, "function_count", table->function_count);
}

void table_put_function(struct json_writer *json, const struct function_table *table,
                        const struct function_row *row)
{
    api_put_function(json, &(struct naming_entry){.name = function_text(table, row->name),
                                                  .file = function_text(table, row->file),
                                                  .binary = function_text(table, row->binary)});
}
