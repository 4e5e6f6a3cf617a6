// SPDX-License-Identifier: Apache-2.0
// From profiles to observations: see table.h. Functions of all sources are joined by name, samples
// are sorted by replicate, and each replicate's stacks are walked once.

#include "compare/table.h"

#include <math.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "compare/table_parts.h"

void compare_table_release(struct compare_table *table)
{
    free(table->functions);
    free(table->replicates);
    free(table->cells);
    *table = (struct compare_table){0};
}

static void builder_release(struct table_builder *builder)
{
    for (size_t i = 0; builder->function_of && i < builder->source_count; i++)
        free(builder->function_of[i]);
    free(builder->function_of);
    free(builder->clusters);
    free(builder->cluster_of);
    free(builder->pair_keys);
    id_table_release(&builder->functions);
    id_table_release(&builder->pairs);
    for (int side = 0; side < COMPARE_SIDES; side++)
        free(builder->replicate_of[side]);
}

static uint32_t join_function(struct table_builder *builder, const struct naming_entry *entry)
{
    struct compare_table *table = builder->table;
    uint64_t hash = XXH3_64bits(entry->name, entry->length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&builder->functions, &probe)) != ID_NONE) {
        struct compare_function *known = &table->functions[id];
        if (known->length == entry->length && !memcmp(known->name, entry->name, entry->length))
            return id;
    }
    array_reserve(table->functions, builder->function_capacity, table->function_count + 2);
    id = (uint32_t)table->function_count++;
    table->functions[id] = (struct compare_function){
        .name = entry->name, .length = entry->length, .file = entry->file, .binary = entry->binary};
    id_table_insert(&builder->functions, hash, id);
    return id;
}

static void join_functions(struct table_builder *builder)
{
    builder->function_of = memory_zalloc(builder->source_count, sizeof(*builder->function_of));
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct naming *naming = builder->sources[i].naming;
        builder->function_of[i] = memory_alloc((naming->count + 1ul) * sizeof(uint32_t));
        for (uint32_t k = 0; k < naming->count; k++)
            builder->function_of[i][k] = join_function(builder, &naming->entries[k]);
    }
}

static void join_clusters(struct table_builder *builder)
{
    uint32_t count = 0;
    builder->clusters = memory_zalloc(builder->source_count, sizeof(*builder->clusters));
    builder->cluster_of = memory_zalloc(builder->source_count, sizeof(*builder->cluster_of));
    for (size_t i = 0; i < builder->source_count; i++) {
        const char *name = builder->sources[i].cluster;
        uint32_t id = 0;
        while (id < count && strcmp(builder->clusters[id], name))
            id++;
        if (id == count)
            builder->clusters[count++] = name;
        builder->cluster_of[i] = id;
    }
    builder->table->cluster_count = count;
}

/* The function that each node counts for: frames that are judged at their caller have its. */
static uint32_t *functions_of_nodes(const struct table_builder *builder, size_t source)
{
    const struct profile *profile = builder->sources[source].profile;
    const struct naming *naming = builder->sources[source].naming;
    uint32_t *functions = memory_alloc(profile->node_count * sizeof(*functions));
    functions[0] = ID_NONE;
    for (uint32_t node = 1; node < profile->node_count; node++) {
        uint32_t parent = profile->nodes[node].parent;
        uint32_t entry = naming->of_frame[profile->nodes[node].frame];
        uint32_t own = entry == NAMING_NONE ? ID_NONE : builder->function_of[source][entry];
        uint32_t above = naming->of_frame[profile->nodes[parent].frame];
        bool judged_above = parent && own != ID_NONE && above != NAMING_NONE &&
                            table_is_inlined(builder, builder->function_of[source][above], own);
        functions[node] = judged_above ? functions[parent] : own;
    }
    return functions;
}

/* Adds up one replicate at a time; arrays are by function or node, and cleaned by their lists. */
struct walk {
    struct table_builder *builder;
    const struct compare_source *source;
    uint32_t *function_of_node;
    double *node_value;
    uint32_t *nodes; /* with a value */
    size_t node_count;
    double *self, *total; /* by function */
    uint32_t *stamp;      /* by function: the last stack that counted, so that recursion doesn't */
    uint32_t *functions;  /* with a total */
    size_t function_count;
    uint32_t stack;
};

static int flush(struct walk *walk, uint32_t replicate, struct error *error)
{
    struct compare_table *table = walk->builder->table;
    const struct profile *profile = walk->source->profile;
    for (size_t i = 0; i < walk->node_count; i++) {
        uint32_t leaf = walk->nodes[i];
        double value = walk->node_value[leaf];
        walk->node_value[leaf] = 0;
        walk->stack++;
        if (walk->function_of_node[leaf] != ID_NONE)
            walk->self[walk->function_of_node[leaf]] += value;
        for (uint32_t node = leaf; node; node = profile->nodes[node].parent) {
            uint32_t function = walk->function_of_node[node];
            if (function == ID_NONE || walk->stamp[function] == walk->stack)
                continue;
            if (!walk->stamp[function])
                walk->functions[walk->function_count++] = function;
            walk->stamp[function] = walk->stack;
            walk->total[function] += value;
        }
    }
    if (table->cell_count + walk->function_count > COMPARE_CELLS_MAX)
        return error_set(error, -E2BIG,
                         "The comparison needs more than %u cells (functions times windows and "
                         "hosts); select a shorter time or fewer hosts.",
                         COMPARE_CELLS_MAX);
    array_reserve(table->cells, walk->builder->cell_capacity,
                  table->cell_count + walk->function_count);
    for (size_t i = 0; i < walk->function_count; i++) {
        uint32_t function = walk->functions[i];
        table->cells[table->cell_count++] =
            (struct compare_cell){function, replicate, walk->self[function], walk->total[function]};
        walk->self[function] = walk->total[function] = 0;
        walk->stamp[function] = 0;
    }
    walk->node_count = walk->function_count = 0;
    walk->stack = 0;
    return 0;
}

static void take_row(struct walk *walk, size_t row, struct compare_replicate *replicate)
{
    const struct profile_samples *samples = &walk->source->profile->samples;
    if (walk->source->requests_type < walk->source->profile->type_count)
        replicate->requests += (double)samples->values[walk->source->requests_type][row];
    int64_t value = samples->values[walk->source->type][row];
    if (!value)
        return;
    double weighted = (double)value * walk->source->factor;
    replicate->value += weighted;
    uint32_t node = samples->node[row];
    if (!node)
        return;
    if (walk->node_value[node] == 0)
        walk->nodes[walk->node_count++] = node;
    walk->node_value[node] += weighted;
    if (walk->node_value[node] == 0) /* cancelled out: keep the list free of repetitions */
        walk->node_value[node] = 1e-300;
}

/* Row numbers, by replicate: where each replicate's begin, and how many rows have none. */
static uint32_t *sort_rows(const struct table_builder *builder, size_t source, size_t **ret_first)
{
    const struct profile_samples *samples = &builder->sources[source].profile->samples;
    size_t replicates = builder->table->replicate_count;
    size_t *first = memory_zalloc(replicates + 2, sizeof(*first));
    uint32_t *of_row = memory_alloc((samples->count + 1) * sizeof(*of_row));
    for (size_t row = 0; row < samples->count; row++) {
        uint32_t id =
            table_replicate(builder, source, samples->time_ns ? samples->time_ns[row] : 0);
        of_row[row] = id == COMPARE_NO_REPLICATE ? (uint32_t)replicates : id;
        first[of_row[row] + 1]++;
    }
    for (size_t i = 0; i <= replicates; i++)
        first[i + 1] += first[i];
    uint32_t *rows = memory_alloc((samples->count + 1) * sizeof(*rows));
    _cleanup_free_ size_t *next = memory_alloc((replicates + 2) * sizeof(*next));
    memcpy(next, first, (replicates + 2) * sizeof(*next));
    for (size_t row = 0; row < samples->count; row++)
        rows[next[of_row[row]]++] = (uint32_t)row;
    free(of_row);
    *ret_first = first;
    return rows;
}

static int add_source(struct table_builder *builder, size_t index, struct error *error)
{
    const struct compare_source *source = &builder->sources[index];
    const struct profile *profile = source->profile;
    size_t functions = builder->table->function_count + 1;
    _cleanup_free_ size_t *first = NULL;
    _cleanup_free_ uint32_t *rows = sort_rows(builder, index, &first);
    _cleanup_free_ uint32_t *function_of_node = functions_of_nodes(builder, index);
    _cleanup_free_ double *node_value = memory_zalloc(profile->node_count, sizeof(double));
    _cleanup_free_ uint32_t *nodes = memory_alloc(profile->node_count * sizeof(uint32_t));
    _cleanup_free_ double *self = memory_zalloc(functions, sizeof(double));
    _cleanup_free_ double *total = memory_zalloc(functions, sizeof(double));
    _cleanup_free_ uint32_t *stamp = memory_zalloc(functions, sizeof(uint32_t));
    _cleanup_free_ uint32_t *touched = memory_alloc(functions * sizeof(uint32_t));
    struct walk walk = {.builder = builder,
                        .source = source,
                        .function_of_node = function_of_node,
                        .node_value = node_value,
                        .nodes = nodes,
                        .self = self,
                        .total = total,
                        .stamp = stamp,
                        .functions = touched};
    for (uint32_t i = 0; i < builder->table->replicate_count; i++) {
        if (first[i] == first[i + 1])
            continue;
        for (size_t k = first[i]; k < first[i + 1]; k++)
            take_row(&walk, rows[k], &builder->table->replicates[i]);
        int r = flush(&walk, i, error);
        if (r < 0)
            return r;
    }
    return 0;
}

static int compare_cells(const void *a, const void *b)
{
    const struct compare_cell *x = a, *y = b;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return x->replicate < y->replicate ? -1 : x->replicate > y->replicate;
}

/* Sorts the cells and adds those up that two sources of one cluster have in the same window. */
static void index_cells(struct compare_table *table)
{
    if (table->cell_count)
        qsort(table->cells, table->cell_count, sizeof(*table->cells), compare_cells);
    size_t kept = 0;
    for (size_t i = 0; i < table->cell_count; i++) {
        if (kept && !compare_cells(&table->cells[kept - 1], &table->cells[i])) {
            table->cells[kept - 1].self += table->cells[i].self;
            table->cells[kept - 1].total += table->cells[i].total;
        } else {
            table->cells[kept++] = table->cells[i];
        }
    }
    table->cell_count = kept;
    size_t cell = 0;
    for (size_t i = 0; i <= table->function_count; i++) {
        while (cell < table->cell_count && table->cells[cell].function < i)
            cell++;
        if (table->functions)
            table->functions[i].first_cell = cell;
    }
}

static double column_sum(const struct profile *profile, unsigned type)
{
    double sum = 0;
    for (size_t row = 0; row < profile->samples.count; row++)
        sum += fabs((double)profile->samples.values[type][row]);
    return sum;
}

/* How many samples a source's values come from. Profiles say it in a column of their own, or by
 * their period; where neither is known, each row counts as one, which errs on the careful side. */
static double sample_count(const struct compare_source *source)
{
    const struct profile *profile = source->profile;
    const char *unit = profile_text(profile, profile->types[source->type].unit);
    const char *period_unit = profile_text(profile, profile->period_type.unit);
    for (unsigned i = 0; i < profile->type_count; i++)
        if (!strcmp(profile_text(profile, profile->types[i].type), "samples") &&
            !strcmp(profile_text(profile, profile->types[i].unit), "count"))
            return column_sum(profile, i);
    if (profile->period > 0 && !strcmp(unit, period_unit))
        return column_sum(profile, source->type) / (double)profile->period;
    for (unsigned i = 0; profile->period > 0 && i < profile->type_count; i++)
        if (!strcmp(profile_text(profile, profile->types[i].unit), period_unit))
            return column_sum(profile, i) / (double)profile->period;
    return strcmp(unit, "count") ? (double)profile->samples.count
                                 : column_sum(profile, source->type);
}

static void add_sums(struct compare_table *table, const struct compare_source *sources,
                     size_t count)
{
    for (size_t i = 0; i < table->replicate_count; i++) {
        const struct compare_replicate *replicate = &table->replicates[i];
        table->seconds[replicate->side] += replicate->seconds;
        table->value[replicate->side] += replicate->value;
        table->requests[replicate->side] += replicate->requests;
    }
    for (size_t i = 0; i < count; i++)
        table->samples[sources[i].side] += sample_count(&sources[i]);
}

int compare_table_build(const struct compare_source *sources, size_t count,
                        struct compare_table *ret_table, struct error *error)
{
    if (count > COMPARE_SOURCES_MAX)
        return error_set(error, -E2BIG, "A comparison takes at most %d profiles, not %zu.",
                         COMPARE_SOURCES_MAX, count);
    _cleanup_compare_table_ struct compare_table table = {0};
    _cleanup_(builder_release) struct table_builder builder = {
        .sources = sources, .source_count = count, .table = &table};
    join_functions(&builder);
    join_clusters(&builder);
    table_find_inlined(&builder);
    int r = table_add_replicates(&builder, error);
    for (size_t i = 0; !r && i < count; i++)
        r = add_source(&builder, i, error);
    if (r < 0)
        return r;
    index_cells(&table);
    add_sums(&table, sources, count);
    *ret_table = table;
    table = (struct compare_table){0};
    return 0;
}
