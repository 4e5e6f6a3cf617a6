// SPDX-License-Identifier: Apache-2.0
// Measures answers: hosts, the part of the time that is covered, losses. See quality.h.

#include "query/quality.h"

#include <string.h>

#include "base/memory.h"
#include "query/query.h"

#define SECOND_NS 1000000000ll
#define HOUR_NS (3600 * SECOND_NS)

static int count_text(void *context, const char *text)
{
    *(uint64_t *)context += *text != 0;
    return 0;
}

static int count_hosts(struct store *store, const struct store_selection *selection,
                       uint64_t *ret_hosts, struct error *error)
{
    static const char *const names[] = {"host", "host.name", "hostname", "instance"};
    int r = 0;
    for (size_t i = 0; !r && !*ret_hosts && i < ARRAY_LENGTH(names); i++)
        r = store_label_values(store, selection, names[i], count_text, ret_hosts, error);
    return r;
}

/* ---- coverage ---- */

struct coverage {
    int64_t length_ns; /* of a window, at least a step */
    int64_t end_ns;    /* what is covered up to here is counted */
    int64_t to_ns;
    int64_t covered_ns;
};

static int cover(void *context, const struct labels *group, const struct store_point *points,
                 size_t count)
{
    struct coverage *coverage = context;
    (void)group;
    for (size_t i = 0; i < count; i++) {
        if (!points[i].windows)
            continue;
        int64_t start = MAX(points[i].time_ns, coverage->end_ns);
        int64_t end = MIN(add_saturated(points[i].time_ns, coverage->length_ns), coverage->to_ns);
        coverage->covered_ns += MAX(end - start, (int64_t)0);
        coverage->end_ns = MAX(coverage->end_ns, end);
    }
    return 0;
}

/* Steps that rollups can answer where the range is long: a figure about an answer must not cost
 * more than the answer. */
static int64_t coverage_step(int64_t range_ns)
{
    return range_ns <= 2 * HOUR_NS          ? 10 * SECOND_NS
           : range_ns <= 2 * 24 * HOUR_NS   ? 600 * SECOND_NS
           : range_ns <= 100 * 24 * HOUR_NS ? HOUR_NS
                                            : 24 * HOUR_NS;
}

static int measure_coverage(struct store *store, const struct store_selection *selection,
                            const struct store_limits *limits, int64_t now_ns,
                            struct query_quality *quality, struct error *error)
{
    struct store_selection range = *selection;
    range.from_ns = MAX(range.from_ns, (int64_t)0);
    range.to_ns = MIN(range.to_ns, now_ns);
    int64_t step = coverage_step(range.to_ns - range.from_ns);
    if (step > 10 * SECOND_NS) {
        range.from_ns = (range.from_ns + step - 1) / step * step;
        /* What is going on now counts although it isn't over. */
        bool open = selection->to_ns >= now_ns;
        range.to_ns = (range.to_ns + (open ? step - 1 : 0)) / step * step;
    }
    quality->covered = -1;
    quality->covered_step_ns = step;
    if (range.to_ns - range.from_ns < step || !quality->found.windows)
        return 0;
    int64_t length = quality->found.duration_ns / (int64_t)quality->found.windows;
    struct coverage coverage = {
        .length_ns = MAX(length, step), .end_ns = range.from_ns, .to_ns = range.to_ns};
    struct store_timeseries_query query = {.step_ns = step, .presence = true};
    int r = store_timeseries(store, &range, &query, limits, cover, &coverage, NULL, error);
    if (!r)
        quality->covered = (double)coverage.covered_ns / (double)(range.to_ns - range.from_ns);
    return r;
}

/* ---- losses ---- */

#define LOSS_TYPES_MAX 8

struct losses {
    char types[LOSS_TYPES_MAX][QUERY_TYPE_BYTES];
    size_t count;
};

static int find_losses(void *context, const char *id)
{
    struct losses *losses = context;
    size_t length;
    const char *part = query_type_part(id, 1, &length);
    bool loss =
        (length == 7 && !memcmp(part, "dropped", 7)) || (length == 4 && !memcmp(part, "lost", 4));
    if (loss && losses->count < LOSS_TYPES_MAX && strlen(id) < QUERY_TYPE_BYTES)
        strcpy(losses->types[losses->count++], id);
    return 0;
}

static int ignore_points(void *context, const struct labels *group,
                         const struct store_point *points, size_t count)
{
    (void)context;
    (void)group;
    (void)points;
    (void)count;
    return 0;
}

static int add_losses(struct store *store, const struct store_selection *selection,
                      const struct store_limits *limits, struct query_quality *quality,
                      struct error *error)
{
    struct losses *losses = memory_zalloc(1, sizeof(*losses));
    struct store_selection all = *selection;
    all.type = NULL;
    int r = store_types(store, &all, find_losses, losses, error);
    for (size_t i = 0; !r && i < losses->count; i++) {
        struct store_quality sum = {0};
        struct store_timeseries_query query = {.step_ns = MAX(all.to_ns - all.from_ns, SECOND_NS)};
        all.type = losses->types[i];
        r = store_timeseries(store, &all, &query, limits, ignore_points, NULL, &sum, error);
        quality->has_dropped |= !r && sum.windows;
        quality->dropped = add_saturated(quality->dropped, sum.total);
    }
    free(losses);
    return r;
}

int query_quality_measure(struct store *store, const struct store_selection *selection,
                          const struct store_limits *limits, int64_t now_ns,
                          struct query_quality *quality, struct error *error)
{
    quality->hosts = 0;
    quality->has_dropped = false;
    quality->dropped = 0;
    int r = count_hosts(store, selection, &quality->hosts, error);
    if (!r)
        r = measure_coverage(store, selection, limits, now_ns, quality, error);
    if (!r)
        r = add_losses(store, selection, limits, quality, error);
    return r;
}
