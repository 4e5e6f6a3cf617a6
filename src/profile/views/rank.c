// SPDX-License-Identifier: Apache-2.0
// Ranking functions, edges and lines: see rank.h. Values are first added up per node; then every
// node with a value is walked to the root once, and a stamp per function keeps recursion from
// counting twice. Stacks of one profile share few long chains, so this beats building child lists.

#include "profile/views/rank.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void ranking_release(struct ranking *ranking)
{
    free(ranking->rows);
    *ranking = (struct ranking){0};
}

int64_t *profile_node_values(const struct profile *profile, unsigned type)
{
    const struct profile_samples *samples = &profile->samples;
    int64_t *values = memory_zalloc(profile->node_count, sizeof(*values));
    if (type >= profile->type_count)
        return values;
    const int64_t *column = samples->values[type];
    for (size_t row = 0; row < samples->count; row++) {
        int64_t *value = &values[samples->node[row]];
        *value = add_saturated(*value, column[row]);
    }
    return values;
}

static void add_totals(struct ranking *ranking, const struct profile *profile, unsigned type)
{
    if (type >= profile->type_count)
        return;
    for (size_t row = 0; row < profile->samples.count; row++) {
        int64_t value = profile->samples.values[type][row];
        ranking->total = add_saturated(ranking->total, value);
        ranking->absolute = add_saturated(ranking->absolute, magnitude(value));
    }
}

struct sort_context {
    const struct naming *naming;
    enum rank_order order;
};

static int compare_names(const struct naming *naming, uint32_t a, uint32_t b)
{
    if (a >= naming->count || b >= naming->count)
        return a < b ? -1 : a > b;
    return strcmp(naming->entries[a].name, naming->entries[b].name);
}

static int compare_magnitudes(int64_t a, int64_t b)
{
    a = magnitude(a), b = magnitude(b);
    return a > b ? -1 : a < b;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct rank_row *x = a, *y = b;
    const struct sort_context *sort = context;
    int flat = compare_magnitudes(x->flat, y->flat);
    int cumulative = compare_magnitudes(x->cumulative, y->cumulative);
    int first = sort->order == RANK_BY_FLAT ? flat : cumulative;
    int second = sort->order == RANK_BY_FLAT ? cumulative : flat;
    if (first)
        return first;
    return second ? second : compare_names(sort->naming, x->entry, y->entry);
}

static void sort_rows(struct ranking *ranking, const struct naming *naming, enum rank_order order)
{
    struct sort_context context = {.naming = naming, .order = order};
    if (ranking->count)
        qsort_r(ranking->rows, ranking->count, sizeof(*ranking->rows), compare_rows, &context);
}

void rank_functions(const struct profile *profile, const struct naming *naming, unsigned type,
                    enum rank_order order, struct ranking *ret_ranking)
{
    struct ranking ranking = {.rows = memory_zalloc(naming->count, sizeof(*ranking.rows))};
    _cleanup_free_ int64_t *values = profile_node_values(profile, type);
    _cleanup_free_ uint32_t *stamp = memory_zalloc(naming->count, sizeof(*stamp));
    _cleanup_free_ uint32_t *entry_of_node = memory_alloc(profile->node_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < profile->node_count; i++)
        entry_of_node[i] = naming->of_frame[profile->nodes[i].frame];
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        int64_t value = values[leaf];
        if (!value)
            continue;
        struct rank_row *row = &ranking.rows[entry_of_node[leaf]];
        row->flat = add_saturated(row->flat, value);
        for (uint32_t node = leaf; node; node = profile->nodes[node].parent) {
            uint32_t entry = entry_of_node[node];
            if (stamp[entry] == leaf)
                continue;
            stamp[entry] = leaf;
            row = &ranking.rows[entry];
            row->cumulative = add_saturated(row->cumulative, value);
        }
    }
    add_totals(&ranking, profile, type);
    for (uint32_t i = 0; i < naming->count; i++) {
        ranking.rows[i].entry = i;
        if (stamp[i])
            ranking.rows[ranking.count++] = ranking.rows[i];
    }
    sort_rows(&ranking, naming, order);
    *ret_ranking = ranking;
}

void rank_neighbours(const struct profile *profile, const struct naming *naming, unsigned type,
                     const bool *chosen, enum rank_direction direction, struct ranking *ret_ranking,
                     int64_t *ret_self)
{
    /* One more slot than entries: the last stands for "no caller". */
    uint32_t root = naming->count;
    struct ranking ranking = {.rows = memory_zalloc(root + 1ul, sizeof(*ranking.rows))};
    _cleanup_free_ int64_t *values = profile_node_values(profile, type);
    _cleanup_free_ uint32_t *stamp = memory_zalloc(root + 1ul, sizeof(*stamp));
    int64_t self = 0;
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        if (!values[leaf])
            continue;
        uint32_t inner = NAMING_NONE;
        for (uint32_t node = leaf; node; node = profile->nodes[node].parent) {
            uint32_t entry = naming->of_frame[profile->nodes[node].frame];
            uint32_t parent = profile->nodes[node].parent;
            uint32_t neighbour = inner;
            if (direction == RANK_CALLERS)
                neighbour = parent ? naming->of_frame[profile->nodes[parent].frame] : root;
            if (chosen[entry] && neighbour == NAMING_NONE)
                self = add_saturated(self, values[leaf]);
            if (chosen[entry] && neighbour != NAMING_NONE && stamp[neighbour] != leaf) {
                stamp[neighbour] = leaf;
                struct rank_row *row = &ranking.rows[neighbour];
                row->cumulative = add_saturated(row->cumulative, values[leaf]);
            }
            inner = entry;
        }
    }
    add_totals(&ranking, profile, type);
    for (uint32_t i = 0; i <= root; i++) {
        ranking.rows[i].entry = i == root ? RANK_ROOT : i;
        if (stamp[i])
            ranking.rows[ranking.count++] = ranking.rows[i];
    }
    sort_rows(&ranking, naming, RANK_BY_CUMULATIVE);
    *ret_ranking = ranking;
    *ret_self = self;
}

static int compare_lines(const void *a, const void *b)
{
    const struct line_row *x = a, *y = b;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* One row per distinct (function, file, line) among the chosen frames, sorted; and for every frame
 * its row, or UINT32_MAX. */
static struct line_row *line_table(const struct profile *profile, const struct naming *naming,
                                   const bool *chosen, uint32_t *row_of_frame, size_t *ret_count)
{
    struct line_row *rows = memory_zalloc(profile->frame_count, sizeof(*rows));
    size_t count = 0;
    for (uint32_t i = 1; i < profile->frame_count; i++)
        if (chosen[naming->of_frame[i]])
            rows[count++] =
                (struct line_row){.entry = naming->of_frame[i],
                                  .file = profile->functions[profile->frames[i].function].file,
                                  .line = profile->frames[i].line};
    qsort(rows, count, sizeof(*rows), compare_lines);
    size_t unique = 0;
    for (size_t i = 0; i < count; i++)
        if (!i || compare_lines(&rows[i], &rows[unique - 1]))
            rows[unique++] = rows[i];
    for (uint32_t i = 0; i < profile->frame_count; i++) {
        row_of_frame[i] = UINT32_MAX;
        if (!i || !chosen[naming->of_frame[i]])
            continue;
        struct line_row key = {.entry = naming->of_frame[i],
                               .file = profile->functions[profile->frames[i].function].file,
                               .line = profile->frames[i].line};
        struct line_row *found = bsearch(&key, rows, unique, sizeof(*rows), compare_lines);
        row_of_frame[i] = (uint32_t)(found - rows);
    }
    *ret_count = unique;
    return rows;
}

struct line_row *rank_lines(const struct profile *profile, const struct naming *naming,
                            unsigned type, const bool *chosen, size_t *ret_count)
{
    _cleanup_free_ uint32_t *row_of_frame = memory_alloc(profile->frame_count * sizeof(uint32_t));
    struct line_row *rows = line_table(profile, naming, chosen, row_of_frame, ret_count);
    _cleanup_free_ int64_t *values = profile_node_values(profile, type);
    _cleanup_free_ uint32_t *stamp = memory_zalloc(*ret_count, sizeof(*stamp));
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        if (!values[leaf])
            continue;
        uint32_t at = row_of_frame[profile->nodes[leaf].frame];
        if (at != UINT32_MAX)
            rows[at].flat = add_saturated(rows[at].flat, values[leaf]);
        for (uint32_t node = leaf; node; node = profile->nodes[node].parent) {
            at = row_of_frame[profile->nodes[node].frame];
            if (at == UINT32_MAX || stamp[at] == leaf)
                continue;
            stamp[at] = leaf;
            rows[at].cumulative = add_saturated(rows[at].cumulative, values[leaf]);
        }
    }
    return rows;
}
