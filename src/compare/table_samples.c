// SPDX-License-Identifier: Apache-2.0
// How many samples the values of a source come from.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compare/table_parts.h"

static double column_sum(const struct profile *profile, unsigned type)
{
    double sum = 0;
    for (size_t row = 0; row < profile->samples.count; row++)
        sum += fabs((double)profile->samples.values[type][row]);
    return sum;
}

/* Times of samples are multiples of the sampling period, whatever they were added up to: their
 * greatest common divisor, where it is long enough to be one. 0: no such period. */
static double period_of_times(const struct profile *profile, unsigned type, const char *unit)
{
    uint64_t divisor = 0;
    double shortest = !strcmp(unit, "nanoseconds")    ? 1e5
                      : !strcmp(unit, "microseconds") ? 1e2
                                                      : INFINITY;
    for (size_t row = 0; row < profile->samples.count; row++) {
        uint64_t value = (uint64_t)llabs(profile->samples.values[type][row]);
        while (value) {
            uint64_t rest = divisor % value;
            divisor = value;
            value = rest;
        }
        if (divisor && (double)divisor < shortest)
            return 0;
    }
    return (double)divisor;
}

double table_sample_count(const struct compare_source *source, bool *known)
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
    if (!strcmp(unit, "count"))
        return column_sum(profile, source->type);
    double period = period_of_times(profile, source->type, unit);
    if (period > 0)
        return column_sum(profile, source->type) / period;
    *known = false;
    double rows = 0;
    for (size_t row = 0; row < profile->samples.count; row++)
        rows += profile->samples.values[source->type][row] != 0;
    return rows;
}
