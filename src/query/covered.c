// SPDX-License-Identifier: Apache-2.0
// Rates, levels and the share of the time that is covered. See covered.h.

#include "query/covered.h"

#include <math.h>

#include "base/memory.h"
#include "base/number.h"
#include "profile/level.h"
#include "store/cover.h"

void covered_add(struct store_quality *sum, const struct store_quality *part)
{
    double rate = 0, total = 0;
    const struct store_quality *sides[] = {sum, part};
    for (size_t i = 0; i < ARRAY_LENGTH(sides); i++)
        if (sides[i]->per_ns > 0) {
            total += (double)magnitude(sides[i]->total);
            rate += (double)magnitude(sides[i]->total) / (double)sides[i]->per_ns;
        }
    sum->per_ns = rate > 0 ? llround(total / rate) : MAX(sum->per_ns, part->per_ns);
    sum->covered_ns = MAX(sum->covered_ns, part->covered_ns);
    sum->duration_ns = add_saturated(sum->duration_ns, part->duration_ns);
}

void covered_add_point(struct store_point *sum, const struct store_point *point)
{
    struct store_quality a = {
        .total = sum->value, .per_ns = sum->per_ns, .covered_ns = sum->covered_ns};
    struct store_quality b = {
        .total = point->value, .per_ns = point->per_ns, .covered_ns = point->covered_ns};
    covered_add(&a, &b);
    sum->per_ns = a.per_ns;
    sum->covered_ns = a.covered_ns;
}

uint64_t covered_process(const struct labels *labels)
{
    return cover_process(labels);
}

double covered_used(const struct store_point *point)
{
    double value = (double)point->value;
    return point->per_ns > 0 ? value * ((double)point->used_ns / (double)point->per_ns) : value;
}

double covered_rate(int64_t value, int64_t per_ns)
{
    return per_ns > 0 ? (double)value * 1e9 / (double)per_ns : NAN;
}

int64_t covered_duration(const char *type, const struct store_quality *quality)
{
    return level_is_type(type) ? quality->covered_ns : quality->per_ns;
}

double covered_share(const struct store_selection *selection, int64_t covered_ns, int64_t now_ns)
{
    int64_t from = MAX(selection->from_ns, (int64_t)0), to = MIN(selection->to_ns, now_ns);
    return to > from && covered_ns > 0 ? MIN((double)covered_ns / (double)(to - from), 1) : -1;
}

static int64_t divide(int64_t value, double by)
{
    return llround((double)value / by);
}

/* Roundings are carried on, so that the sum stays what it is: an average of goroutines may be less
 * than one on every stack. */
static void divide_all(int64_t *values, size_t count, double by)
{
    double sum = 0, given = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i] / by;
        double whole = round(sum - given);
        values[i] = (int64_t)whole;
        given += whole;
    }
}

void covered_settle_total(const char *type, struct store_quality *quality)
{
    if (!level_is_type(type) || quality->per_ns <= 0)
        return;
    double snapshots = (double)quality->per_ns / 1e9;
    quality->total = divide(quality->total, snapshots);
    quality->cut = divide(quality->cut, snapshots);
    quality->per_ns = 1000000000;
}

void covered_settle(const char *type, struct profile *profile, struct store_quality *quality)
{
    if (!level_is_type(type) || quality->per_ns <= 0)
        return;
    double snapshots = (double)quality->per_ns / 1e9;
    for (unsigned t = 0; t < profile->type_count; t++)
        divide_all(profile->samples.values[t], profile->samples.count, snapshots);
    covered_settle_total(type, quality);
}
