// SPDX-License-Identifier: Apache-2.0
// Replicates: which windows there are, and how much of each a source covers. A window without
// samples is an observation too, so windows come from what is covered, not from the samples.

#include <string.h>

#include "base/memory.h"
#include "compare/table_parts.h"

#define WINDOWS_MAX 4096          /* on a side */
#define WINDOW_LEAST_NS 100000000 /* below that the sampling period itself shows */
#define SLOTS_MAX (16u << 20)     /* clusters * windows of a side */

/* Spans of a source; `own` is room for the one that a profile itself has. */
static size_t spans_of(const struct compare_source *source, struct compare_span *own,
                       const struct compare_span **ret_spans)
{
    if (source->spans) {
        *ret_spans = source->spans;
        return source->span_count;
    }
    const struct profile *profile = source->profile;
    int64_t to;
    if (profile->duration_ns <= 0 || profile->time_ns < 0 ||
        __builtin_add_overflow(profile->time_ns, profile->duration_ns, &to))
        return 0;
    *own = (struct compare_span){profile->time_ns, to};
    *ret_spans = own;
    return 1;
}

/* All samples of all sources have a time within their spans' range. */
static bool has_times(const struct table_builder *builder)
{
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct compare_source *source = &builder->sources[i];
        const struct profile_samples *samples = &source->profile->samples;
        struct compare_span own;
        const struct compare_span *spans;
        if (!spans_of(source, &own, &spans) || (samples->count && !samples->time_ns))
            return false;
        for (size_t row = 0; row < samples->count; row++)
            if (!samples->time_ns[row])
                return false;
    }
    return true;
}

/* From the first span's start to the last one's end, by side. */
static void find_ranges(const struct table_builder *builder, struct compare_span *ranges)
{
    for (int side = 0; side < COMPARE_SIDES; side++)
        ranges[side] = (struct compare_span){INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct compare_source *source = &builder->sources[i];
        struct compare_span own, *range = &ranges[source->side];
        const struct compare_span *spans;
        size_t count = spans_of(source, &own, &spans);
        for (size_t k = 0; k < count; k++) {
            range->from_ns = MIN(range->from_ns, spans[k].from_ns);
            range->to_ns = MAX(range->to_ns, spans[k].to_ns);
        }
    }
}

/* The covered time of a side: what windows are cut from. A range may have long gaps. */
static int64_t longest_covered(const struct table_builder *builder, enum compare_side side)
{
    int64_t longest = 0;
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct compare_source *source = &builder->sources[i];
        struct compare_span own;
        const struct compare_span *spans;
        size_t count = source->side == side ? spans_of(source, &own, &spans) : 0;
        int64_t covered = 0;
        for (size_t k = 0; k < count; k++)
            covered = add_saturated(covered, MAX(spans[k].to_ns - spans[k].from_ns, 0));
        longest = MAX(longest, covered);
    }
    return longest;
}

/* As long as gives the shorter side the windows that are wanted and the longer range not too many;
 * a multiple of the sources' granularity. 0 when that is impossible. */
static int64_t choose_window(const struct table_builder *builder, const struct compare_span *ranges)
{
    int64_t window =
        MIN(longest_covered(builder, COMPARE_BASE), longest_covered(builder, COMPARE_NEW)) /
        COMPARE_WINDOWS;
    window = MAX(window, WINDOW_LEAST_NS);
    for (int side = 0; side < COMPARE_SIDES; side++)
        window = MAX(window, (ranges[side].to_ns - ranges[side].from_ns) / (WINDOWS_MAX - 1) + 1);
    int64_t granularity = 1;
    for (size_t i = 0; i < builder->source_count; i++)
        granularity = MAX(granularity, builder->sources[i].granularity_ns);
    int64_t steps = (window + granularity - 1) / granularity;
    return __builtin_mul_overflow(steps, granularity, &window) ? 0 : window;
}

static uint32_t add_replicate(struct table_builder *builder, size_t source, uint32_t window)
{
    struct compare_table *table = builder->table;
    enum compare_side side = builder->sources[source].side;
    uint32_t *slot =
        &builder
             ->replicate_of[side][(size_t)builder->cluster_of[source] * table->window_count[side] +
                                  window];
    if (*slot != COMPARE_NO_REPLICATE)
        return *slot;
    array_reserve(table->replicates, builder->replicate_capacity, table->replicate_count + 1);
    *slot = (uint32_t)table->replicate_count++;
    table->replicates[*slot] = (struct compare_replicate){
        .side = side, .cluster = builder->cluster_of[source], .window = window};
    return *slot;
}

static void cover(struct table_builder *builder, size_t source, const struct compare_span *span)
{
    struct compare_table *table = builder->table;
    enum compare_side side = builder->sources[source].side;
    int64_t at = span->from_ns;
    while (at < span->to_ns) {
        int64_t end = span->to_ns, window = 0;
        if (table->window_ns) {
            window = (at - builder->origin_ns[side]) / table->window_ns;
            end = MIN(end, builder->origin_ns[side] + (window + 1) * table->window_ns);
        }
        uint32_t id = add_replicate(builder, source, (uint32_t)window);
        table->replicates[id].seconds += (double)(end - at) / 1e9;
        at = end;
    }
}

int table_add_replicates(struct table_builder *builder, struct error *error)
{
    struct compare_table *table = builder->table;
    struct compare_span ranges[COMPARE_SIDES];
    find_ranges(builder, ranges);
    table->window_ns = has_times(builder) ? choose_window(builder, ranges) : 0;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        int64_t range = ranges[side].to_ns - ranges[side].from_ns;
        builder->origin_ns[side] = ranges[side].from_ns;
        table->window_count[side] = table->window_ns ? (uint32_t)(range / table->window_ns + 1) : 1;
        size_t slots = (size_t)table->window_count[side] * table->cluster_count;
        if (slots > SLOTS_MAX)
            return error_set(error, -E2BIG,
                             "Too many hosts or files (%u) to compare over time; select fewer.",
                             table->cluster_count);
        builder->replicate_of[side] = memory_alloc(slots * sizeof(uint32_t));
        memset(builder->replicate_of[side], 0xff, slots * sizeof(uint32_t));
    }
    for (size_t i = 0; i < builder->source_count; i++) {
        struct compare_span own;
        const struct compare_span *spans;
        size_t count = spans_of(&builder->sources[i], &own, &spans);
        for (size_t k = 0; k < count; k++)
            cover(builder, i, &spans[k]);
        if (!table->window_ns) /* also those that say no duration */
            add_replicate(builder, i, 0);
    }
    return 0;
}

uint32_t table_replicate(const struct table_builder *builder, size_t source, uint64_t time_ns)
{
    const struct compare_table *table = builder->table;
    enum compare_side side = builder->sources[source].side;
    size_t first = (size_t)builder->cluster_of[source] * table->window_count[side];
    if (!table->window_ns)
        return builder->replicate_of[side][first];
    if (time_ns > INT64_MAX)
        return COMPARE_NO_REPLICATE;
    /* Clocks of samples and of a recording's start differ by less than a window: the ends take
     * what is just outside. */
    int64_t window = ((int64_t)time_ns - builder->origin_ns[side]) / table->window_ns;
    window = MIN(MAX(window, 0), (int64_t)table->window_count[side] - 1);
    while (window > 0 &&
           builder->replicate_of[side][first + (size_t)window] == COMPARE_NO_REPLICATE)
        window--;
    return builder->replicate_of[side][first + (size_t)window];
}
