// SPDX-License-Identifier: Apache-2.0
// Function-by-function difference: see diff.h.

#include "profile/views/diff.h"

#include <math.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "profile/level.h"

static int64_t side_total(const struct diff_side *side)
{
    int64_t total = 0;
    if (side->type < side->profile->type_count)
        for (size_t row = 0; row < side->profile->samples.count; row++)
            total = add_saturated(total, side->profile->samples.values[side->type][row]);
    return total;
}

static struct diff_sums sums_of(const struct diff_side *side)
{
    const struct profile *profile = side->profile;
    bool known = side->type < profile->type_count;
    const char *type = known ? profile_text(profile, profile->types[side->type].type) : "";
    return (struct diff_sums){side_total(side), profile->duration_ns, level_is_sample_type(type)};
}

enum diff_normalize diff_resolve_of(const struct diff_sums *base, const struct diff_sums *new_side,
                                    enum diff_normalize normalize)
{
    if (normalize != DIFF_DEFAULT)
        return normalize;
    if (base->level || new_side->level)
        return DIFF_ABSOLUTE;
    bool known = base->duration_ns > 0 && new_side->duration_ns > 0;
    return known ? DIFF_BY_DURATION : DIFF_BY_TOTAL;
}

enum diff_normalize diff_resolve(const struct diff_side *base, const struct diff_side *new_side,
                                 enum diff_normalize normalize)
{
    struct diff_sums from = sums_of(base), to = sums_of(new_side);
    return diff_resolve_of(&from, &to, normalize);
}

double diff_scale_of(const struct diff_sums *base, const struct diff_sums *new_side,
                     enum diff_normalize normalize)
{
    double from = 0, to = 0;
    normalize = diff_resolve_of(base, new_side, normalize);
    if (normalize == DIFF_BY_TOTAL) {
        from = (double)base->total;
        to = (double)new_side->total;
    } else if (normalize == DIFF_BY_DURATION && !new_side->level) {
        from = (double)base->duration_ns;
        to = (double)new_side->duration_ns;
    }
    return from > 0 && to > 0 ? to / from : 1;
}

double diff_scale(const struct diff_side *base, const struct diff_side *new_side,
                  enum diff_normalize normalize)
{
    struct diff_sums from = sums_of(base), to = sums_of(new_side);
    return diff_scale_of(&from, &to, normalize);
}

int64_t diff_change(int64_t base, int64_t new_value, double scale)
{
    if (scale == 1)
        return add_saturated(new_value, base == INT64_MIN ? INT64_MAX : -base);
    double difference = (double)new_value - (double)base * scale;
    if (difference >= 9.2e18)
        return INT64_MAX;
    return difference <= -9.2e18 ? INT64_MIN : (int64_t)llround(difference);
}

/* Rows of the base are found again by name. */
struct join {
    struct diff *diff;
    struct id_table index;
    size_t capacity;
};

static struct diff_row *find_row(struct join *join, const struct naming_entry *entry)
{
    struct diff *diff = join->diff;
    uint64_t hash = XXH3_64bits(entry->name, entry->length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&join->index, &probe)) != ID_NONE) {
        const struct naming_entry *known = diff->rows[id].entry;
        if (known->length == entry->length && !memcmp(known->name, entry->name, entry->length))
            return &diff->rows[id];
    }
    array_reserve(diff->rows, join->capacity, diff->count + 1);
    id_table_insert(&join->index, hash, (uint32_t)diff->count);
    diff->rows[diff->count] = (struct diff_row){.entry = entry};
    return &diff->rows[diff->count++];
}

static int compare_changes(const void *a, const void *b, void *context)
{
    const struct diff_row *x = a, *y = b;
    bool flat = *(const enum rank_order *)context == RANK_BY_FLAT;
    const int64_t keys[2][2] = {{flat ? x->flat_change : x->cumulative_change,
                                 flat ? x->cumulative_change : x->flat_change},
                                {flat ? y->flat_change : y->cumulative_change,
                                 flat ? y->cumulative_change : y->flat_change}};
    for (int i = 0; i < 2; i++)
        if (keys[0][i] != keys[1][i])
            return keys[0][i] > keys[1][i] ? -1 : 1;
    return strcmp(x->entry->name, y->entry->name);
}

void diff_functions(const struct diff_side *base, const struct diff_side *new_side, double scale,
                    enum rank_order order, struct diff *ret_diff)
{
    struct diff diff = {.scale = scale};
    struct join join = {.diff = &diff};
    for (int side = 0; side < 2; side++) {
        const struct diff_side *from = side ? new_side : base;
        _cleanup_ranking_ struct ranking ranking = {0};
        rank_functions(from->profile, from->naming, from->type, order, &ranking);
        *(side ? &diff.new_total : &diff.base_total) = ranking.total;
        for (size_t i = 0; i < ranking.count; i++) {
            const struct rank_row *row = &ranking.rows[i];
            struct diff_row *target = find_row(&join, &from->naming->entries[row->entry]);
            *(side ? &target->new_flat : &target->base_flat) = row->flat;
            *(side ? &target->new_cumulative : &target->base_cumulative) = row->cumulative;
        }
    }
    id_table_release(&join.index);
    for (size_t i = 0; i < diff.count; i++) {
        struct diff_row *row = &diff.rows[i];
        row->flat_change = diff_change(row->base_flat, row->new_flat, scale);
        row->cumulative_change = diff_change(row->base_cumulative, row->new_cumulative, scale);
    }
    if (diff.count)
        qsort_r(diff.rows, diff.count, sizeof(*diff.rows), compare_changes, &order);
    *ret_diff = diff;
}

void diff_release(struct diff *diff)
{
    free(diff->rows);
    *diff = (struct diff){0};
}
