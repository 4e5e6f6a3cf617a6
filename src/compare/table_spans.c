// SPDX-License-Identifier: Apache-2.0
// Which times the sources of a comparison cover: what their profiles say of themselves.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compare/table_parts.h"

static void add_span(struct table_spans *spans, int64_t from_ns, int64_t to_ns, uint32_t cluster)
{
    array_reserve(spans->list, spans->capacity, spans->count + 1);
    spans->list[spans->count++] = (struct table_span){from_ns, to_ns, cluster};
}

/* Rows of the type `covered`. */
static int read_covered(const struct table_builder *builder, size_t index,
                        struct table_spans *spans, struct error *error)
{
    const struct compare_source *source = &builder->sources[index];
    const struct profile_samples *samples = &source->profile->samples;
    for (size_t row = 0; row < samples->count; row++) {
        int64_t covered = samples->values[source->covered_type][row], to;
        uint64_t time = samples->time_ns ? samples->time_ns[row] : 0;
        if (!covered)
            continue;
        if (covered < 0 || !time || time > INT64_MAX ||
            __builtin_add_overflow((int64_t)time, covered, &to))
            return error_set(error, -EINVAL,
                             "A covered time of %lld ns at %llu ns is not possible.",
                             (long long)covered, (unsigned long long)time);
        add_span(spans, (int64_t)time, to, table_cluster(builder, index, row));
    }
    return 0;
}

/* A file with a level is one snapshot, however long it took, and counts as much as any other. */
#define SNAPSHOT_NS 1000000000

/* The whole of the profile, for each cluster that has samples. */
static void take_whole(const struct table_builder *builder, size_t index, struct table_spans *spans)
{
    const struct compare_source *source = &builder->sources[index];
    const struct profile *profile = source->profile;
    bool level = builder->table.level;
    int64_t from = level ? 0 : profile->time_ns, to;
    int64_t duration = level ? SNAPSHOT_NS : profile->duration_ns;
    if (duration <= 0 || from < 0 || __builtin_add_overflow(from, duration, &to))
        return;
    _cleanup_free_ bool *seen = memory_zalloc(builder->table.cluster_count + 1ul, sizeof(*seen));
    if (!source->cluster_label)
        add_span(spans, from, to, builder->cluster_of[index]);
    for (size_t row = 0; source->cluster_label && row < profile->samples.count; row++) {
        uint32_t cluster = table_cluster(builder, index, row);
        if (!seen[cluster])
            add_span(spans, from, to, cluster);
        seen[cluster] = true;
    }
}

static int compare_spans(const void *a, const void *b)
{
    const struct table_span *x = a, *y = b;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/* Steps begin at multiples of one length: the least difference between two of them. */
static void measure(struct table_spans *spans, bool stepped)
{
    int64_t until = INT64_MIN;
    if (spans->count)
        qsort(spans->list, spans->count, sizeof(*spans->list), compare_spans);
    for (size_t i = 0; i < spans->count; i++) {
        const struct table_span *span = &spans->list[i];
        int64_t from = MAX(span->from_ns, until);
        if (span->to_ns > from)
            spans->wall_seconds += (double)(span->to_ns - from) / 1e9;
        until = MAX(until, span->to_ns);
        int64_t step = i ? span->from_ns - span[-1].from_ns : 0;
        if (stepped && step && (!spans->granularity_ns || step < spans->granularity_ns))
            spans->granularity_ns = step;
    }
}

int table_find_spans(struct table_builder *builder, struct error *error)
{
    builder->spans = memory_zalloc(builder->source_count + 1, sizeof(*builder->spans));
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct compare_source *source = &builder->sources[i];
        struct table_spans *spans = &builder->spans[i];
        bool stepped = source->covered_type < source->profile->type_count;
        int r = stepped ? read_covered(builder, i, spans, error) : 0;
        if (r < 0)
            return r;
        if (!stepped)
            take_whole(builder, i, spans);
        spans->granularity_ns = source->granularity_ns;
        measure(spans, stepped);
    }
    return 0;
}
