// SPDX-License-Identifier: Apache-2.0
// From profiles to observations: see table.h. Functions of all sources are joined by name, samples
// are sorted by replicate, and each replicate's stacks are walked once.

#include "compare/table.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "compare/table_parts.h"
#include "profile/level.h"

void compare_table_release(struct compare_table *table)
{
    free(table->functions);
    free(table->replicates);
    free(table->cells);
    arena_release(&table->names);
    *table = (struct compare_table){0};
}

/* The tables that belong to the sources of a part. */
static void release_part(struct table_builder *builder)
{
    for (size_t i = 0; builder->function_of && i < builder->source_count; i++)
        free(builder->function_of[i]);
    for (size_t i = 0; builder->cluster_of_set && i < builder->source_count; i++)
        free(builder->cluster_of_set[i]);
    free(builder->function_of);
    free(builder->cluster_of);
    free(builder->cluster_of_set);
    free(builder->pair_keys);
    id_table_release(&builder->pairs);
    builder->function_of = builder->cluster_of_set = NULL;
    builder->cluster_of = NULL;
    builder->pair_keys = NULL;
    builder->pair_count = builder->pair_capacity = 0;
    builder->pairs = (struct id_table){0};
}

static void release_spans(struct table_builder *builder)
{
    for (size_t i = 0; builder->spans && i < builder->source_count; i++)
        free(builder->spans[i].list);
    free(builder->spans);
    builder->spans = NULL;
}

void compare_table_abandon(struct table_builder *builder)
{
    if (!builder)
        return;
    free(builder->clusters);
    id_table_release(&builder->functions);
    for (int side = 0; side < COMPARE_SIDES; side++)
        free(builder->replicate_of[side]);
    compare_table_release(&builder->table);
    free(builder);
}

static uint32_t join_function(struct table_builder *builder, const struct naming_entry *entry)
{
    struct compare_table *table = &builder->table;
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
        .name = arena_strndup(&table->names, entry->name, entry->length), .length = entry->length};
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

static uint32_t join_cluster(struct table_builder *builder, const char *name)
{
    uint32_t id = 0, count = builder->table.cluster_count;
    while (id < count && strcmp(builder->clusters[id], name))
        id++;
    if (id == count && builder->has_clusters)
        return TABLE_NO_CLUSTER;
    if (id == count) {
        array_reserve(builder->clusters, builder->cluster_capacity, count + 1ul);
        builder->clusters[builder->table.cluster_count++] = name;
    }
    return id;
}

/* Names of clusters that come from a label live in the profile. */
static uint32_t *clusters_of_sets(struct table_builder *builder,
                                  const struct compare_source *source)
{
    const struct profile *profile = source->profile;
    uint32_t sets = profile_label_set_count(profile);
    uint32_t *of_set = memory_zalloc(sets + 1ul, sizeof(*of_set));
    _cleanup_free_ bool *used = memory_zalloc(sets + 1ul, sizeof(*used));
    for (size_t row = 0; row < profile->samples.count; row++)
        used[profile->samples.labels[row]] = true;
    for (uint32_t set = 0; set < sets; set++) {
        size_t count;
        if (!used[set])
            continue;
        const struct profile_label *labels = profile_labels(profile, set, &count);
        const char *name = source->cluster;
        for (size_t i = 0; i < count; i++)
            if (labels[i].text &&
                !strcmp(profile_text(profile, labels[i].key), source->cluster_label))
                name = profile_text(profile, labels[i].text);
        of_set[set] = join_cluster(builder, name);
    }
    return of_set;
}

static void join_clusters(struct table_builder *builder)
{
    builder->cluster_of = memory_zalloc(builder->source_count, sizeof(*builder->cluster_of));
    builder->cluster_of_set =
        memory_zalloc(builder->source_count, sizeof(*builder->cluster_of_set));
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct compare_source *source = &builder->sources[i];
        if (source->cluster_label)
            builder->cluster_of_set[i] = clusters_of_sets(builder, source);
        else
            builder->cluster_of[i] = join_cluster(builder, source->cluster);
    }
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

/* Nodes whose function isn't on the stack above: a function's total is the sum of what is below
 * these, and recursion doesn't count twice. */
static bool *outermost_nodes(const struct profile *profile, const uint32_t *function_of_node)
{
    bool *outermost = memory_zalloc(profile->node_count, sizeof(*outermost));
    for (uint32_t node = 1; node < profile->node_count; node++) {
        uint32_t above = profile->nodes[node].parent;
        while (above && function_of_node[above] != function_of_node[node])
            above = profile->nodes[above].parent;
        outermost[node] = !above;
    }
    return outermost;
}

/* Adds up one replicate at a time; arrays are by function or node, and zero between replicates. */
struct walk {
    struct table_builder *builder;
    const struct compare_source *source;
    const uint32_t *function_of_node;
    const bool *outermost;
    double *node_value;
    double *self, *total; /* by function */
    bool *touched;        /* by function */
    uint32_t *functions;  /* that are touched */
    size_t function_count;
};

static void touch(struct walk *walk, uint32_t function)
{
    if (!walk->touched[function])
        walk->functions[walk->function_count++] = function;
    walk->touched[function] = true;
}

/* Parents come before their children, so that one pass from the end adds up whole subtrees. */
static void add_up(struct walk *walk)
{
    const struct profile_node *nodes = walk->source->profile->nodes;
    for (uint32_t node = walk->source->profile->node_count; --node;) {
        double value = walk->node_value[node];
        if (value == 0)
            continue;
        uint32_t function = walk->function_of_node[node];
        walk->node_value[node] = 0;
        walk->node_value[nodes[node].parent] += value;
        if (function == ID_NONE || !walk->outermost[node])
            continue;
        touch(walk, function);
        walk->total[function] += value;
    }
    walk->node_value[0] = 0;
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

static void flush(struct walk *walk, uint32_t replicate)
{
    struct table_builder *builder = walk->builder;
    struct compare_table *table = &builder->table;
    add_up(walk);
    if (table->cell_count + walk->function_count > builder->cells_max) {
        index_cells(table);
        table_shrink(builder, builder->cells_max - builder->cells_max / 4);
        /* Nothing but coarse functions: there are only so many of these. */
        builder->cells_max = MAX(builder->cells_max, table->cell_count / 3 * 4);
    }
    array_reserve(table->cells, builder->cell_capacity, table->cell_count + walk->function_count);
    for (size_t i = 0; i < walk->function_count; i++) {
        uint32_t function = walk->functions[i];
        table->cells[table->cell_count++] =
            (struct compare_cell){function, table_cell_replicate(builder, function, replicate),
                                  walk->self[function], walk->total[function]};
        walk->self[function] = walk->total[function] = 0;
        walk->touched[function] = false;
    }
    walk->function_count = 0;
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
    walk->node_value[node] += weighted;
    uint32_t function = walk->function_of_node[node];
    if (function == ID_NONE)
        return;
    touch(walk, function); /* even if values cancel out */
    walk->self[function] += weighted;
}

/* Row numbers, by replicate: where each replicate's begin, and how many rows have none. */
static uint32_t *sort_rows(const struct table_builder *builder, size_t source, size_t **ret_first)
{
    const struct profile_samples *samples = &builder->sources[source].profile->samples;
    size_t replicates = builder->table.replicate_count;
    size_t *first = memory_zalloc(replicates + 2, sizeof(*first));
    uint32_t *of_row = memory_alloc((samples->count + 1) * sizeof(*of_row));
    for (size_t row = 0; row < samples->count; row++) {
        uint32_t id = table_replicate(builder, source, row);
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

static void add_source(struct table_builder *builder, size_t index)
{
    const struct compare_source *source = &builder->sources[index];
    const struct profile *profile = source->profile;
    size_t functions = builder->table.function_count + 1;
    _cleanup_free_ size_t *first = NULL;
    _cleanup_free_ uint32_t *rows = sort_rows(builder, index, &first);
    _cleanup_free_ uint32_t *function_of_node = functions_of_nodes(builder, index);
    _cleanup_free_ bool *outermost = outermost_nodes(profile, function_of_node);
    _cleanup_free_ double *node_value = memory_zalloc(profile->node_count, sizeof(double));
    _cleanup_free_ double *self = memory_zalloc(functions, sizeof(double));
    _cleanup_free_ double *total = memory_zalloc(functions, sizeof(double));
    _cleanup_free_ bool *touched = memory_zalloc(functions, sizeof(bool));
    _cleanup_free_ uint32_t *list = memory_alloc(functions * sizeof(uint32_t));
    struct walk walk = {.builder = builder,
                        .source = source,
                        .function_of_node = function_of_node,
                        .outermost = outermost,
                        .node_value = node_value,
                        .self = self,
                        .total = total,
                        .touched = touched,
                        .functions = list};
    for (uint32_t i = 0; i < builder->table.replicate_count; i++) {
        if (first[i] == first[i + 1])
            continue;
        for (size_t k = first[i]; k < first[i + 1]; k++)
            take_row(&walk, rows[k], &builder->table.replicates[i]);
        flush(&walk, i);
    }
}

static void add_sums(struct compare_table *table)
{
    for (size_t i = 0; i < table->replicate_count; i++) {
        const struct compare_replicate *replicate = &table->replicates[i];
        table->seconds[replicate->side] += replicate->seconds;
        table->value[replicate->side] += replicate->value;
        table->requests[replicate->side] += replicate->requests;
    }
}

static unsigned find_type(const struct profile *profile, const char *type, const char *unit)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        if (!strcmp(profile_text(profile, profile->types[i].type), type) &&
            !strcmp(profile_text(profile, profile->types[i].unit), unit))
            return i;
    return PROFILE_TYPES_MAX;
}

void compare_source_init(struct compare_source *source, const struct profile *profile,
                         const struct naming *naming, unsigned type)
{
    *source = (struct compare_source){
        .profile = profile,
        .naming = naming,
        .type = type,
        .requests_type = find_type(profile, "requests", "count"),
        .covered_type = find_type(profile, COMPARE_COVERED_TYPE, COMPARE_COVERED_UNIT),
        .factor = 1};
}

static int begin(struct table_builder *builder, struct error *error)
{
    const struct compare_source *frames = builder->sources;
    if (builder->source_count)
        builder->table.level = level_is_sample_type(
            profile_text(frames[0].profile, frames[0].profile->types[frames[0].type].type));
    join_clusters(builder);
    int r = table_find_spans(builder, error);
    if (!r)
        r = table_add_replicates(builder, error);
    release_spans(builder);
    release_part(builder);
    builder->has_clusters = true;
    return r;
}

int compare_table_begin(const struct compare_source *frames, size_t count, size_t cells_max,
                        struct table_builder **ret_builder, struct error *error)
{
    if (count > COMPARE_SOURCES_MAX)
        return error_set(error, -E2BIG, "A comparison takes at most %d profiles, not %zu.",
                         COMPARE_SOURCES_MAX, count);
    struct table_builder *builder = memory_zalloc(1, sizeof(*builder));
    builder->sources = frames;
    builder->source_count = count;
    builder->cells_max = cells_max ? MIN(cells_max, (size_t)COMPARE_CELLS_MAX) : COMPARE_CELLS_MAX;
    builder->table.samples_known = true;
    int r = begin(builder, error);
    if (r < 0) {
        compare_table_abandon(builder);
        return r;
    }
    *ret_builder = builder;
    return 0;
}

void compare_table_add(struct table_builder *builder, const struct compare_source *sources,
                       size_t count)
{
    struct compare_table *table = &builder->table;
    builder->sources = sources;
    builder->source_count = count;
    join_functions(builder);
    join_clusters(builder);
    table_find_inlined(builder);
    for (size_t i = 0; i < count; i++) {
        add_source(builder, i);
        table->samples[sources[i].side] += table_sample_count(&sources[i], &table->samples_known);
    }
    release_part(builder);
}

size_t compare_table_functions(const struct table_builder *builder)
{
    return builder->table.function_count;
}

void compare_table_end(struct table_builder *builder, struct compare_table *ret_table)
{
    index_cells(&builder->table);
    add_sums(&builder->table);
    *ret_table = builder->table;
    builder->table = (struct compare_table){0};
    compare_table_abandon(builder);
}

int compare_table_build(const struct compare_source *sources, size_t count,
                        struct compare_table *ret_table, struct error *error)
{
    struct table_builder *builder;
    int r = compare_table_begin(sources, count, 0, &builder, error);
    if (r < 0)
        return r;
    compare_table_add(builder, sources, count);
    compare_table_end(builder, ret_table);
    return 0;
}
