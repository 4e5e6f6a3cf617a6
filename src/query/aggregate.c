// SPDX-License-Identifier: Apache-2.0
// Averages, last and greatest values of levels. See aggregate.h.

#include "query/aggregate.h"

#include "base/memory.h"
#include "profile/level.h"
#include "query/covered.h"

#define SECOND_NS 1000000000ll
#define MOMENTS_MAX 20000 /* of a range */

static int ignore_points(void *context, const struct labels *group,
                         const struct store_point *points, size_t count)
{
    (void)context, (void)group, (void)points, (void)count;
    return 0;
}

/* Twice the usual time between snapshots of a process, so that one is in every moment. */
int query_aggregate_moment(struct store *store, const struct store_selection *selection,
                           int64_t step_ns, const struct store_limits *limits, int64_t *ret_ns,
                           struct error *error)
{
    static const int64_t seconds[] = {10, 20, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400};
    struct store_quality found = {0};
    int64_t range = selection->to_ns - selection->from_ns;
    struct store_timeseries_query query = {.step_ns = MAX(range, SECOND_NS)};
    int r = store_timeseries(store, selection, &query, limits, ignore_points, NULL, &found, error);
    if (r < 0)
        return r;
    int64_t apart = found.windows ? found.duration_ns / (int64_t)found.windows : 0;
    *ret_ns = step_ns ? step_ns : MAX(range, SECOND_NS);
    for (size_t i = 0; i < ARRAY_LENGTH(seconds); i++) {
        int64_t moment = seconds[i] * SECOND_NS;
        if (moment >= 2 * apart && moment < *ret_ns && range / moment < MOMENTS_MAX &&
            (!step_ns || step_ns % moment == 0)) {
            *ret_ns = moment;
            break;
        }
    }
    return 0;
}

static bool is_chosen(enum query_aggregate aggregate, const struct store_point *point,
                      const struct store_point *best)
{
    return aggregate == QUERY_LAST ||
           covered_rate(point->value, point->per_ns) > covered_rate(best->value, best->per_ns);
}

size_t query_aggregate_points(enum query_aggregate aggregate, int64_t from_ns, int64_t step_ns,
                              const struct store_point *moments, size_t count,
                              struct store_point *points)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        struct store_point point = moments[i];
        point.time_ns -= (point.time_ns - from_ns) % step_ns;
        if (!made || points[made - 1].time_ns != point.time_ns)
            points[made++] = point;
        else if (is_chosen(aggregate, &point, &points[made - 1]))
            points[made - 1] = point;
    }
    return made;
}

struct choice {
    enum query_aggregate aggregate;
    struct store_point best;
    bool any;
};

static int choose(void *context, const struct labels *group, const struct store_point *points,
                  size_t count)
{
    struct choice *choice = context;
    (void)group;
    for (size_t i = 0; i < count; i++)
        if (!choice->any || is_chosen(choice->aggregate, &points[i], &choice->best)) {
            choice->best = points[i];
            choice->any = true;
        }
    return 0;
}

/* Moments are counted from the end, so that the last one is whole. */
int query_aggregate_narrow(enum query_aggregate aggregate, struct store *store,
                           struct store_selection *selection, const struct store_limits *limits,
                           struct error *error)
{
    if (aggregate == QUERY_AVERAGE)
        return 0;
    if (!level_is_type(selection->type))
        return error_set(error, -EINVAL,
                         "agg is for levels, such as memory in use; values of \"%s\" add up.",
                         selection->type);
    struct store_timeseries_query query = {0};
    struct choice choice = {.aggregate = aggregate};
    struct store_selection all = *selection;
    all.from_ns = MAX(all.from_ns, (int64_t)0);
    int r = query_aggregate_moment(store, &all, 0, limits, &query.step_ns, error);
    if (!r)
        all.from_ns += (all.to_ns - all.from_ns) % query.step_ns;
    if (!r)
        r = store_timeseries(store, &all, &query, limits, choose, &choice, NULL, error);
    if (!r && choice.any) {
        selection->from_ns = choice.best.time_ns;
        selection->to_ns = MIN(selection->to_ns, choice.best.time_ns + query.step_ns);
    }
    return r;
}
