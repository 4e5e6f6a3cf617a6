// SPDX-License-Identifier: Apache-2.0
// Adding up time series by groups of labels, and stats about what was read.

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/cover.h"
#include "store/internal.h"

void quality_add(struct store_quality *quality, int64_t first_ns, int64_t last_ns, uint64_t windows,
                 uint64_t rows, int64_t total)
{
    if (!quality->windows || first_ns < quality->first_ns)
        quality->first_ns = first_ns;
    if (!quality->windows || last_ns > quality->last_ns)
        quality->last_ns = last_ns;
    quality->windows += windows;
    quality->rows += rows;
    quality->total = add_saturated(quality->total, total);
}

void quality_cover(struct store_quality *quality, const struct covering *covering)
{
    struct cover cover = covering_total(covering, COVER_ALL);
    quality->duration_ns = cover.process_ns;
    quality->covered_ns = cover.covered_ns;
    quality->per_ns = cover.per_ns;
}

struct store_selection selection_of_steps(const struct store_selection *selection,
                                          const struct store_timeseries_query *query)
{
    struct store_selection steps = *selection;
    int64_t past = query->aligned ? selection->from_ns % query->step_ns : 0;
    if (past < 0)
        past += query->step_ns;
    if (__builtin_sub_overflow(selection->from_ns, past, &steps.from_ns))
        steps.from_ns = selection->from_ns;
    return steps;
}

int point_groups_init(struct point_groups *groups, const struct store_selection *asked,
                      const struct store_timeseries_query *query, struct error *error)
{
    struct store_selection steps_selection = selection_of_steps(asked, query);
    const struct store_selection *selection = &steps_selection;
    *groups = (struct point_groups){.query = query,
                                    .from_ns = selection->from_ns,
                                    .most = query->groups_most
                                                ? MIN(query->groups_most, (size_t)STORE_GROUPS_MAX)
                                                : STORE_GROUPS_MAX,
                                    .rest = ID_NONE};
    uint64_t range = selection->to_ns > selection->from_ns
                         ? (uint64_t)selection->to_ns - (uint64_t)selection->from_ns
                         : 0;
    uint64_t step = (uint64_t)query->step_ns, steps = range / step + (range % step != 0);
    if (steps > STORE_POINTS_MAX)
        return error_set(error, -E2BIG,
                         "The range has %llu steps; the limit is %d. Use longer steps.",
                         (unsigned long long)steps, STORE_POINTS_MAX);
    groups->steps = steps;
    return 0;
}

static void clear_groups(struct point_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        labels_release(&groups->groups[i].labels);
        free(groups->groups[i].values);
        free(groups->groups[i].windows);
        free(groups->groups[i].covered_ns);
        free(groups->groups[i].per_ns);
        free(groups->groups[i].process_ns);
        free(groups->groups[i].used_ns);
    }
    free(groups->groups);
    id_table_release(&groups->index);
    digest_table_release(&groups->moments);
    groups->groups = NULL;
    groups->count = groups->capacity = groups->label_bytes = 0;
    groups->index = (struct id_table){0};
    groups->moments = (struct digest_table){0};
}

void point_groups_release(struct point_groups *groups)
{
    clear_groups(groups);
    free(groups->sums);
    *groups = (struct point_groups){0};
}

size_t point_groups_memory(const struct point_groups *groups)
{
    return groups->count * (sizeof(*groups->groups) + 48 * groups->steps) + groups->label_bytes +
           groups->sum_capacity * (sizeof(*groups->sums) + 16) +
           digest_table_bytes(&groups->moments);
}

/* ---- more groups than wanted ---- */

void point_groups_rank(struct point_groups *groups)
{
    clear_groups(groups);
    groups->ranking = true;
}

static int compare_greatest(const void *a, const void *b)
{
    const struct point_sum *x = a, *y = b;
    if (x->sum != y->sum)
        return x->sum > y->sum ? -1 : 1;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int compare_hashes(const void *a, const void *b)
{
    const struct point_sum *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

void point_groups_choose(struct point_groups *groups)
{
    clear_groups(groups);
    groups->ranking = false;
    if (!groups->sum_count)
        return;
    size_t kept = MIN(groups->sum_count, groups->most);
    qsort(groups->sums, groups->sum_count, sizeof(*groups->sums), compare_greatest);
    groups->rest_count = groups->sum_count - kept;
    groups->sum_count = kept;
    qsort(groups->sums, kept, sizeof(*groups->sums), compare_hashes);
}

static uint32_t rank_group(struct point_groups *groups, uint64_t hash)
{
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&groups->index, &probe)) != ID_NONE)
        if (groups->sums[id].hash == hash)
            return id;
    id = (uint32_t)groups->sum_count++;
    array_reserve(groups->sums, groups->sum_capacity, groups->sum_count);
    groups->sums[id] = (struct point_sum){.hash = hash};
    id_table_insert(&groups->index, hash, id);
    return id;
}

static bool is_rest(const struct point_groups *groups, uint64_t hash)
{
    const struct point_sum wanted = {.hash = hash};
    return groups->rest_count && !bsearch(&wanted, groups->sums, groups->sum_count,
                                          sizeof(*groups->sums), compare_hashes);
}

/* ---- finding ---- */

static uint32_t add_group(struct point_groups *groups)
{
    uint32_t id = (uint32_t)groups->count++;
    array_reserve(groups->groups, groups->capacity, groups->count);
    groups->groups[id] = (struct point_group){
        .values = memory_zalloc(groups->steps + 1, sizeof(int64_t)),
        .windows = memory_zalloc(groups->steps + 1, sizeof(uint64_t)),
        .covered_ns = memory_zalloc(groups->steps + 1, sizeof(int64_t)),
        .per_ns = memory_zalloc(groups->steps + 1, sizeof(int64_t)),
        .process_ns = memory_zalloc(groups->steps + 1, sizeof(int64_t)),
        .used_ns = memory_zalloc(groups->steps + 1, sizeof(int64_t)),
    };
    return id;
}

static uint32_t find_group(struct point_groups *groups, const struct labels *key, uint64_t hash)
{
    if (groups->ranking)
        return rank_group(groups, hash);
    if (is_rest(groups, hash)) {
        if (groups->rest == ID_NONE)
            groups->rest = add_group(groups);
        return groups->rest;
    }
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&groups->index, &probe)) != ID_NONE)
        if (labels_equal(&groups->groups[id].labels, key))
            return id;
    if (groups->count - (groups->rest != ID_NONE) == groups->most) {
        groups->crowded = true;
        return ID_NONE;
    }
    id = add_group(groups);
    labels_copy(&groups->groups[id].labels, key);
    groups->label_bytes += labels_memory(&groups->groups[id].labels);
    id_table_insert(&groups->index, hash, id);
    return id;
}

uint32_t point_groups_find(struct point_groups *groups, const struct labels *series)
{
    _cleanup_labels_ struct labels key = {0};
    for (size_t i = 0; i < groups->query->group_count; i++) {
        const char *value = labels_get(series, groups->query->group_by[i]);
        if (value)
            labels_set(&key, groups->query->group_by[i], value);
    }
    return find_group(groups, &key, labels_hash(&key));
}

/* The parts of one push begin at one moment. Rollups know how many windows they are made of, but
 * not when these began. */
static bool is_new_moment(struct point_groups *groups, uint32_t group, int64_t start_ns)
{
    int64_t key[2] = {group, start_ns / 1000000};
    XXH128_hash_t hash = XXH3_128bits(key, sizeof(key));
    struct digest digest = {.low = hash.low64, .high = hash.high64};
    if (digest_table_find(&groups->moments, digest) != ID_NONE)
        return false;
    digest_table_insert(&groups->moments, digest, 0);
    return true;
}

void point_groups_add(struct point_groups *groups, uint32_t group, int64_t start_ns, int64_t value,
                      uint64_t windows)
{
    if (groups->ranking) {
        groups->sums[group].sum = add_saturated(groups->sums[group].sum, value);
        return;
    }
    uint64_t step =
        ((uint64_t)start_ns - (uint64_t)groups->from_ns) / (uint64_t)groups->query->step_ns;
    if (step >= groups->steps)
        return;
    int64_t *cell = &groups->groups[group].values[step];
    *cell = add_saturated(*cell, value);
    if (!groups->query->moments || windows != 1 || is_new_moment(groups, group, start_ns))
        groups->groups[group].windows[step] += windows;
}

static void cover_step(void *context, uint32_t group, int64_t step_ns, const struct cover *cover)
{
    struct point_groups *groups = context;
    if (groups->ranking)
        return;
    uint64_t step =
        ((uint64_t)step_ns - (uint64_t)groups->from_ns) / (uint64_t)groups->query->step_ns;
    if (group >= groups->count || step >= groups->steps)
        return;
    groups->groups[group].covered_ns[step] = cover->covered_ns;
    groups->groups[group].per_ns[step] = cover->per_ns;
    groups->groups[group].process_ns[step] = cover->process_ns;
    groups->groups[group].used_ns[step] = cover->used_ns;
}

void point_groups_cover(struct point_groups *groups, struct covering *covering)
{
    covering_fill_pauses(covering);
    covering_steps(covering, cover_step, groups);
}

static int compare_groups(const void *a, const void *b)
{
    const struct point_group *x = a, *y = b;
    return labels_compare(&x->labels, &y->labels);
}

static int compare_sums(const void *a, const void *b)
{
    const struct point_group *x = a, *y = b;
    if (x->sum != y->sum)
        return x->sum > y->sum ? -1 : 1;
    return labels_compare(&x->labels, &y->labels);
}

int point_groups_give(struct point_groups *groups, store_points_fn *fn, void *context)
{
    bool by_sum = groups->query->greatest_first;
    bool rest = groups->rest != ID_NONE;
    if (rest) { /* last */
        struct point_group last = groups->groups[groups->rest];
        groups->groups[groups->rest] = groups->groups[groups->count - 1];
        groups->groups[groups->count - 1] = last;
    }
    for (size_t g = 0; by_sum && g < groups->count; g++)
        for (size_t i = 0; i < groups->steps; i++)
            groups->groups[g].sum =
                add_saturated(groups->groups[g].sum, groups->groups[g].values[i]);
    if (groups->count)
        qsort(groups->groups, groups->count - rest, sizeof(*groups->groups),
              by_sum ? compare_sums : compare_groups);
    _cleanup_free_ struct store_point *points = memory_zalloc(groups->steps + 1, sizeof(*points));
    for (size_t g = 0; g < groups->count; g++) {
        size_t count = 0;
        for (size_t i = 0; i < groups->steps; i++)
            if (groups->groups[g].windows[i])
                points[count++] = (struct store_point){
                    .time_ns = groups->from_ns + (int64_t)i * groups->query->step_ns,
                    .value = groups->groups[g].values[i],
                    .windows = groups->groups[g].windows[i],
                    .covered_ns = groups->groups[g].covered_ns[i],
                    .per_ns = groups->groups[g].per_ns[i],
                    .process_ns = groups->groups[g].process_ns[i],
                    .used_ns = groups->groups[g].used_ns[i],
                };
        bool is_last = rest && g + 1 == groups->count;
        int result = fn(context, is_last ? NULL : &groups->groups[g].labels, points, count);
        if (result)
            return result;
    }
    return 0;
}
