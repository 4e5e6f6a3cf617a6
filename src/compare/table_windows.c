// SPDX-License-Identifier: Apache-2.0
// Replicates: which windows there are, and how much of each a source covers. A window without
// samples is an observation too, so windows come from what is covered, not from the samples.

#include <string.h>

#include "base/memory.h"
#include "compare/table_parts.h"

#define WINDOWS_MAX 4096          /* on a side */
#define WINDOW_LEAST_NS 100000000 /* below that the sampling period itself shows */
#define SLOTS_MAX (16u << 20)     /* clusters * windows of a side */

/* All samples of all sources have a time. A file's level is one snapshot, whatever times its
 * samples have: only steps of a server are several. */
static bool has_times(const struct table_builder *builder)
{
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct compare_source *source = &builder->sources[i];
        const struct profile_samples *samples = &source->profile->samples;
        if (builder->table.level && source->covered_type >= source->profile->type_count)
            return false;
        if (!builder->spans[i].count || (samples->count && !samples->time_ns))
            return false;
        for (size_t row = 0; row < samples->count; row++)
            if (!samples->time_ns[row])
                return false;
    }
    return true;
}

struct range {
    int64_t from_ns, to_ns;
};

/* From the first span's start to the last one's end, by side. */
static void find_ranges(const struct table_builder *builder, struct range *ranges)
{
    for (int side = 0; side < COMPARE_SIDES; side++)
        ranges[side] = (struct range){INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct table_spans *spans = &builder->spans[i];
        struct range *range = &ranges[builder->sources[i].side];
        for (size_t k = 0; k < spans->count; k++) {
            range->from_ns = MIN(range->from_ns, spans->list[k].from_ns);
            range->to_ns = MAX(range->to_ns, spans->list[k].to_ns);
        }
    }
}

/* The covered time of a side: what windows are cut from. A range may have long gaps. */
static int64_t longest_covered(const struct table_builder *builder, enum compare_side side)
{
    double longest = 0;
    for (size_t i = 0; i < builder->source_count; i++)
        if (builder->sources[i].side == side)
            longest = MAX(longest, builder->spans[i].wall_seconds);
    return (int64_t)MIN(longest * 1e9, 9e18);
}

/* As long as gives the shorter side the windows that are wanted and the longer range not too many;
 * a multiple of the sources' granularity. 0 when that is impossible. */
static int64_t choose_window(const struct table_builder *builder, const struct range *ranges)
{
    int64_t window =
        MIN(longest_covered(builder, COMPARE_BASE), longest_covered(builder, COMPARE_NEW)) /
        COMPARE_WINDOWS;
    window = MAX(window, WINDOW_LEAST_NS);
    for (int side = 0; side < COMPARE_SIDES; side++)
        window = MAX(window, (ranges[side].to_ns - ranges[side].from_ns) / (WINDOWS_MAX - 1) + 1);
    int64_t granularity = 1;
    for (size_t i = 0; i < builder->source_count; i++)
        granularity = MAX(granularity, builder->spans[i].granularity_ns);
    int64_t steps = (window + granularity - 1) / granularity;
    return __builtin_mul_overflow(steps, granularity, &window) ? 0 : window;
}

static uint32_t add_replicate(struct table_builder *builder, size_t source, uint32_t cluster,
                              uint32_t window)
{
    struct compare_table *table = &builder->table;
    enum compare_side side = builder->sources[source].side;
    size_t at = (size_t)cluster * table->window_count[side] + window;
    uint32_t *slot = &builder->replicate_of[side][at];
    if (*slot != COMPARE_NO_REPLICATE)
        return *slot;
    array_reserve(table->replicates, builder->replicate_capacity, table->replicate_count + 1);
    *slot = (uint32_t)table->replicate_count++;
    table->replicates[*slot] =
        (struct compare_replicate){.side = side, .cluster = cluster, .window = window};
    return *slot;
}

/* `part`: of the seconds, what counts where several clusters cover the same time. */
static void cover(struct table_builder *builder, size_t source, const struct table_span *span,
                  double part)
{
    struct compare_table *table = &builder->table;
    enum compare_side side = builder->sources[source].side;
    int64_t at = span->from_ns;
    while (at < span->to_ns) {
        int64_t end = span->to_ns, window = 0;
        if (table->window_ns) {
            window = (at - builder->origin_ns[side]) / table->window_ns;
            end = MIN(end, builder->origin_ns[side] + (window + 1) * table->window_ns);
        }
        uint32_t id = add_replicate(builder, source, span->cluster, (uint32_t)window);
        table->replicates[id].seconds += part * (double)(end - at) / 1e9;
        at = end;
    }
}

static void cover_source(struct table_builder *builder, size_t source)
{
    const struct table_spans *spans = &builder->spans[source];
    double sum = 0;
    for (size_t k = 0; k < spans->count; k++)
        sum += (double)(spans->list[k].to_ns - spans->list[k].from_ns) / 1e9;
    for (size_t k = 0; k < spans->count; k++)
        cover(builder, source, &spans->list[k], sum > 0 ? spans->wall_seconds / sum : 0);
    if (builder->table.window_ns)
        return;
    /* Also of those that say no duration. */
    size_t rows = builder->sources[source].profile->samples.count;
    for (size_t row = 0; row < MAX(rows, (size_t)1); row++) {
        if (!builder->cluster_of_set[source])
            row = rows;
        add_replicate(builder, source,
                      builder->cluster_of_set[source] ? table_cluster(builder, source, row)
                                                      : builder->cluster_of[source],
                      0);
    }
}

int table_add_replicates(struct table_builder *builder, struct error *error)
{
    struct compare_table *table = &builder->table;
    struct range ranges[COMPARE_SIDES];
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
    for (size_t i = 0; i < builder->source_count; i++)
        cover_source(builder, i);
    for (size_t i = table->replicate_count; i-- > 0;)
        builder->first_replicate[table->replicates[i].side] = (uint32_t)i;
    return 0;
}

uint32_t table_replicate(const struct table_builder *builder, size_t source, size_t row)
{
    const struct profile_samples *samples = &builder->sources[source].profile->samples;
    uint64_t time_ns = samples->time_ns ? samples->time_ns[row] : 0;
    const struct compare_table *table = &builder->table;
    enum compare_side side = builder->sources[source].side;
    uint32_t cluster = table_cluster(builder, source, row);
    size_t first = (size_t)cluster * table->window_count[side];
    if (cluster == TABLE_NO_CLUSTER)
        return COMPARE_NO_REPLICATE;
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
