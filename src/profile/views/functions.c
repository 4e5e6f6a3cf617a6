// SPDX-License-Identifier: Apache-2.0
// The table of functions: see functions.h.

#include "profile/views/functions.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/idtable.h"
#include "base/memory.h"
#include "profile/views/diff.h"
#include "profile/views/package.h"

void function_table_init(struct function_table *table)
{
    *table = (struct function_table){0};
    profile_init(&table->texts, 0);
}

void function_table_release(struct function_table *table)
{
    free(table->rows);
    free(table->row_of);
    profile_release(&table->texts);
    *table = (struct function_table){0};
}

size_t function_table_memory(const struct function_table *table)
{
    return table->capacity * sizeof(*table->rows) +
           table->row_of_capacity * sizeof(*table->row_of) + profile_memory(&table->texts);
}

const char *function_text(const struct function_table *table, uint32_t string)
{
    return profile_text(&table->texts, string);
}

struct function_row *function_table_row(struct function_table *table, const char *name,
                                        size_t length, const char *file, const char *binary)
{
    uint32_t id = profile_string(&table->texts, name, length);
    uint32_t file_id = profile_cstring(&table->texts, file);
    uint32_t binary_id = profile_cstring(&table->texts, binary);
    size_t known = table->row_of_capacity;
    array_reserve(table->row_of, table->row_of_capacity, table->texts.string_count);
    memset(table->row_of + known, 0, (table->row_of_capacity - known) * sizeof(*table->row_of));
    if (!table->row_of[id]) {
        array_reserve(table->rows, table->capacity, table->count + 1);
        table->rows[table->count++] = (struct function_row){.name = id};
        table->row_of[id] = (uint32_t)table->count;
        table->function_count++;
    }
    struct function_row *row = &table->rows[table->row_of[id] - 1];
    if (!row->file)
        row->file = file_id;
    if (!row->binary)
        row->binary = binary_id;
    return row;
}

/* ---- adding a tree ---- */

/* The name of a row; a part of the tree's texts. */
struct row_name {
    const char *text;
    size_t length;
    const char *file, *binary;
};

struct adding {
    const struct calltree *tree;
    const int64_t *self;
    uint32_t *row; /* by function; NULL: each is a row of its own */
    struct row_name *names;
    uint32_t row_count;
    int64_t *flat, *cumulative; /* by row */
    bool *matched;              /* by row; NULL: no search */
    bool *above;                /* by node: outside of the focus; NULL without one */
    int64_t matched_total;
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static struct row_name group_name(const struct calltree_function *function,
                                  enum function_grouping grouping)
{
    struct package package = {function->name, function->length};
    const char *binary = base_name(function->binary);
    if (grouping == FUNCTIONS_BY_BINARY)
        package = (struct package){binary, strlen(binary)};
    else if (!function->unnamed)
        package = package_of(function);
    if (package.text == function->binary) /* a function without a package is its binary's */
        package = (struct package){binary, strlen(binary)};
    if (!package.length)
        package = grouping == FUNCTIONS_BY_BINARY ? (struct package){"(no binary)", 11}
                                                  : (struct package){"(no package)", 12};
    return (struct row_name){package.text, package.length, "",
                             grouping == FUNCTIONS_BY_PACKAGE ? function->binary : ""};
}

/* The row of that name, added when it is new. */
static uint32_t named_row(struct adding *adding, struct id_table *table,
                          const struct row_name *wanted)
{
    uint64_t hash = XXH3_64bits(wanted->text, wanted->length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(table, &probe)) != ID_NONE)
        if (adding->names[id].length == wanted->length &&
            !memcmp(adding->names[id].text, wanted->text, wanted->length))
            return id;
    adding->names[adding->row_count] = *wanted;
    id_table_insert(table, hash, adding->row_count);
    return adding->row_count++;
}

/* Which row each function of the tree counts for. */
static void name_rows(struct adding *adding, enum function_grouping grouping)
{
    const struct calltree *tree = adding->tree;
    struct id_table table = {0};
    adding->names = memory_zalloc(tree->function_count + 1u, sizeof(*adding->names));
    if (grouping != FUNCTIONS_EACH)
        adding->row = memory_zalloc(tree->function_count + 1u, sizeof(*adding->row));
    for (uint32_t i = 0; i < tree->function_count; i++) {
        const struct calltree_function *function = &tree->functions[i];
        if (grouping == FUNCTIONS_EACH) {
            adding->names[adding->row_count++] = (struct row_name){
                function->name, function->length, function->file, function->binary};
        } else {
            struct row_name name = group_name(function, grouping);
            adding->row[i] = named_row(adding, &table, &name);
        }
    }
    id_table_release(&table);
}

static uint32_t row_of(const struct adding *adding, uint32_t function)
{
    return adding->row ? adding->row[function] : function;
}

static int find_matches(struct adding *adding, const struct regex *search, struct error *error)
{
    if (!search)
        return 0;
    adding->matched = memory_zalloc(adding->row_count + 1u, sizeof(*adding->matched));
    for (uint32_t i = 0; i < adding->row_count; i++) {
        const struct row_name *name = &adding->names[i];
        enum regex_result result = regex_find(search, name->text, name->length, 0, NULL);
        if (result == REGEX_LIMIT)
            return error_set(error, -EINVAL,
                             "The search expression is too expensive for the name \"%.*s\"; use "
                             "a simpler one.",
                             (int)MIN(name->length, (size_t)100), name->text);
        adding->matched[i] = result == REGEX_MATCH;
    }
    return 0;
}

/* The tree has one path to the focus: the nodes that are less deep. */
static void find_above(struct adding *adding, size_t focus_count)
{
    const struct calltree *tree = adding->tree;
    if (!focus_count)
        return;
    _cleanup_free_ uint32_t *depth = memory_zalloc(tree->node_count, sizeof(*depth));
    adding->above = memory_zalloc(tree->node_count, sizeof(*adding->above));
    for (uint32_t node = 1; node < tree->node_count; node++) {
        depth[node] = depth[tree->nodes[node].parent] + 1;
        adding->above[node] = depth[node] < focus_count;
    }
}

static void add_values(struct adding *adding)
{
    const struct calltree *tree = adding->tree;
    _cleanup_free_ uint32_t *stamp = memory_zalloc(tree->function_count + 1u, sizeof(*stamp));
    for (uint32_t leaf = 1; leaf < tree->node_count; leaf++) {
        int64_t value = adding->self[leaf];
        bool found = false;
        if (!value)
            continue;
        int64_t *flat = &adding->flat[row_of(adding, tree->nodes[leaf].function)];
        *flat = add_saturated(*flat, value);
        for (uint32_t node = leaf; node; node = tree->nodes[node].parent) {
            uint32_t function = row_of(adding, tree->nodes[node].function);
            if (adding->matched && adding->matched[function])
                found |= !adding->above || !adding->above[node];
            if (stamp[function] == leaf)
                continue;
            stamp[function] = leaf;
            adding->cumulative[function] = add_saturated(adding->cumulative[function], value);
        }
        if (found)
            adding->matched_total = add_saturated(adding->matched_total, value);
    }
}

void function_values(const struct calltree *tree, unsigned type, enum calltree_side side,
                     int64_t **ret_flat, int64_t **ret_cumulative)
{
    struct adding adding = {
        .tree = tree,
        .self = tree->types[type].self[side],
        .flat = memory_zalloc(tree->function_count + 1u, sizeof(*adding.flat)),
        .cumulative = memory_zalloc(tree->function_count + 1u, sizeof(*adding.cumulative)),
    };
    if (adding.self)
        add_values(&adding);
    *ret_flat = adding.flat;
    *ret_cumulative = adding.cumulative;
}

static bool is_within(const char *name, size_t length, uint32_t partition, uint32_t partitions)
{
    return XXH3_64bits(name, length) % partitions == partition;
}

static void add_rows(struct function_table *table, const struct adding *adding,
                     enum calltree_side side, const struct function_choice *choice)
{
    for (uint32_t i = 0; i < adding->row_count; i++) {
        const struct row_name *name = &adding->names[i];
        if ((!adding->flat[i] && !adding->cumulative[i]) ||
            (adding->matched && !adding->matched[i]))
            continue;
        if (choice->partitions > 1 &&
            !is_within(name->text, name->length, choice->partition, choice->partitions))
            continue;
        struct function_row *row =
            function_table_row(table, name->text, name->length, name->file, name->binary);
        row->flat[side] = add_saturated(row->flat[side], adding->flat[i]);
        row->cumulative[side] = add_saturated(row->cumulative[side], adding->cumulative[i]);
    }
}

static void add_sums(struct function_table *table, const struct adding *adding,
                     enum calltree_side side)
{
    for (uint32_t node = 0; node < adding->tree->node_count; node++)
        table->total[side] = add_saturated(table->total[side], adding->self[node]);
    table->matched[side] = add_saturated(table->matched[side], adding->matched_total);
}

int function_table_add(struct function_table *table, const struct calltree *tree, unsigned type,
                       enum calltree_side from, enum calltree_side to,
                       const struct function_choice *choice, struct error *error)
{
    const int64_t *self = type < tree->type_count ? tree->types[type].self[from] : NULL;
    if (!self)
        return 0;
    struct adding adding = {
        .tree = tree,
        .self = self,
        .flat = memory_zalloc(tree->function_count + 1u, sizeof(*adding.flat)),
        .cumulative = memory_zalloc(tree->function_count + 1u, sizeof(*adding.cumulative)),
    };
    name_rows(&adding, choice->grouping);
    int r = find_matches(&adding, choice->search, error);
    if (!r) {
        find_above(&adding, choice->focus_count);
        add_values(&adding);
        add_rows(table, &adding, to, choice);
        add_sums(table, &adding, to);
    }
    free(adding.flat);
    free(adding.cumulative);
    free(adding.matched);
    free(adding.above);
    free(adding.names);
    free(adding.row);
    return r;
}

void function_table_copy_sums(struct function_table *table, const struct function_table *other)
{
    memcpy(table->total, other->total, sizeof(table->total));
    memcpy(table->matched, other->matched, sizeof(table->matched));
}

/* ---- order ---- */

struct sort_context {
    const struct function_table *table;
    const struct function_sorting *sorting;
};

/* Sort keys, largest first: the second one decides between equals. */
static void sort_keys(const struct function_row *row, const struct function_sorting *sorting,
                      int64_t keys[2])
{
    int64_t flat = magnitude(row->flat[CALLTREE_NEW]), cum = magnitude(row->cumulative[0]);
    switch (sorting->order) {
    case FUNCTIONS_BY_BASE_FLAT:
    case FUNCTIONS_BY_BASE_CUMULATIVE:
        flat = magnitude(row->flat[CALLTREE_BASE]);
        cum = magnitude(row->cumulative[CALLTREE_BASE]);
        break;
    case FUNCTIONS_BY_FLAT_CHANGE:
    case FUNCTIONS_BY_CUMULATIVE_CHANGE:
        flat = diff_change(row->flat[CALLTREE_BASE], row->flat[CALLTREE_NEW], sorting->scale);
        cum = diff_change(row->cumulative[CALLTREE_BASE], row->cumulative[CALLTREE_NEW],
                          sorting->scale);
        break;
    default:
        break;
    }
    bool by_flat = sorting->order == FUNCTIONS_BY_FLAT ||
                   sorting->order == FUNCTIONS_BY_BASE_FLAT ||
                   sorting->order == FUNCTIONS_BY_FLAT_CHANGE;
    keys[0] = by_flat ? flat : cum;
    keys[1] = by_flat ? cum : flat;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct function_row *x = a, *y = b;
    const struct sort_context *sort = context;
    int result = 0;
    if (sort->sorting->order != FUNCTIONS_BY_NAME) {
        int64_t left[2], right[2];
        sort_keys(x, sort->sorting, left);
        sort_keys(y, sort->sorting, right);
        for (int i = 0; i < 2 && !result; i++)
            result = (left[i] < right[i]) - (left[i] > right[i]);
    }
    if (!result)
        result = strcmp(function_text(sort->table, x->name), function_text(sort->table, y->name));
    return sort->sorting->ascending ? -result : result;
}

void function_table_sort(struct function_table *table, const struct function_sorting *sorting)
{
    struct sort_context context = {.table = table, .sorting = sorting};
    if (table->count)
        qsort_r(table->rows, table->count, sizeof(*table->rows), compare_rows, &context);
    for (size_t i = 0; i < table->count; i++)
        table->row_of[table->rows[i].name] = (uint32_t)i + 1;
}

void function_table_keep(struct function_table *table, size_t count)
{
    for (; table->count > count; table->count--)
        table->row_of[table->rows[table->count - 1].name] = 0;
}

static void append_row(struct function_table *table, const struct function_table *other,
                       const struct function_row *from)
{
    const struct profile_string *name = &other->texts.strings[from->name];
    struct function_row *row =
        function_table_row(table, name->data, name->length, function_text(other, from->file),
                           function_text(other, from->binary));
    memcpy(row->flat, from->flat, sizeof(row->flat));
    memcpy(row->cumulative, from->cumulative, sizeof(row->cumulative));
}

void function_table_append(struct function_table *table, const struct function_table *other)
{
    uint64_t known = table->function_count;
    for (size_t i = 0; i < other->count; i++)
        append_row(table, other, &other->rows[i]);
    table->function_count = known + other->function_count;
}

void function_table_restrict(struct function_table *table, uint32_t partition, uint32_t partitions)
{
    struct function_table kept;
    function_table_init(&kept);
    for (size_t i = 0; i < table->count; i++) {
        const struct profile_string *name = &table->texts.strings[table->rows[i].name];
        if (is_within(name->data, name->length, partition, partitions))
            append_row(&kept, table, &table->rows[i]);
    }
    function_table_copy_sums(&kept, table);
    function_table_release(table);
    *table = kept;
}
