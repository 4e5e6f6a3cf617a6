// SPDX-License-Identifier: Apache-2.0
// Pyroscope's values over time, optionally with exemplars.

#include <stdlib.h>
#include <string.h>

#include "io/wire.h"
#include "profile/level.h"
#include "query/covered.h"
#include "server/admission/admission.h"
#include "server/pyroscope/querier.h"

#define EXEMPLARS_MAX 100000     /* looked at for one answer */
#define ROLLUP_NS 600000000000ll /* the shortest slot of rollups */

enum { SUM, AVERAGE };

/* A span's samples of one step, added up; or a step's greatest window. */
struct found {
    uint64_t group; /* hash of its group's labels */
    int64_t slot;
    struct store_exemplar exemplar;
    struct labels labels;
};

struct points {
    struct call *call;
    const char *type;
    const struct store_selection *selection;
    int64_t step_ns, shown_ns; /* what a step's point is stamped with, from the step's beginning */
    struct found *found;
    size_t found_count, found_capacity, found_bytes, found_bytes_max;
    struct id_table index;
    uint64_t series; /* written so far */
};

static void points_release(struct points *points)
{
    for (size_t i = 0; i < points->found_count; i++)
        labels_release(&points->found[i].labels);
    free(points->found);
    id_table_release(&points->index);
}

/* ---- exemplars ---- */

/* The entry of the same kind, or a new one; NULL when the limit is reached. */
static struct found *find_known(struct points *points, const struct labels *labels,
                                const struct store_exemplar *exemplar, bool of_span, bool *ret_new)
{
    struct labels group = {0};
    querier_group(&points->call->request, labels, points->type, &group);
    struct found found = {.group = labels_hash(&group),
                          .slot =
                              (exemplar->time_ns - points->selection->from_ns) / points->step_ns,
                          .exemplar = *exemplar};
    labels_release(&group);
    uint64_t hash = hash_word(found.group ^ hash_word((uint64_t)found.slot));
    for (size_t i = 0; of_span && i < sizeof(exemplar->link.span_id); i++)
        hash = hash * 31 + exemplar->link.span_id[i] + exemplar->link.trace_id[i];
    hash = hash_word(hash);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&points->index, &probe)) != ID_NONE) {
        struct found *known = &points->found[id];
        if (known->group == found.group && known->slot == found.slot &&
            (!of_span || (!memcmp(&known->exemplar.link, &exemplar->link, sizeof(exemplar->link)) &&
                          known->exemplar.time_ns == exemplar->time_ns))) {
            *ret_new = false;
            return known;
        }
    }
    if (points->found_count == EXEMPLARS_MAX || points->found_bytes > points->found_bytes_max)
        return NULL;
    array_reserve(points->found, points->found_capacity, points->found_count + 1);
    labels_copy(&found.labels, labels);
    points->found_bytes += sizeof(found) + labels_memory(&found.labels);
    points->found[points->found_count] = found;
    id_table_insert(&points->index, hash, (uint32_t)points->found_count);
    *ret_new = true;
    return &points->found[points->found_count++];
}

/* A span's samples of one step and time add up. */
static int find_exemplar(void *context, const struct labels *labels, const struct profile *profile,
                         const struct store_exemplar *exemplar)
{
    static const uint8_t no_span[8];
    bool is_new;
    (void)profile;
    if (!memcmp(exemplar->link.span_id, no_span, sizeof(no_span)))
        return 0;
    struct found *known = find_known(context, labels, exemplar, true, &is_new);
    if (known && !is_new)
        known->exemplar.value = add_saturated(known->exemplar.value, exemplar->value);
    return !known;
}

/* Of the windows of one step, the greatest. */
static int find_window(void *context, const struct store_profile *window)
{
    struct points *points = context;
    struct store_exemplar whole = {.time_ns = window->time_ns, .value = querier_sum(window)};
    bool is_new;
    struct found *known = find_known(points, window->labels, &whole, false, &is_new);
    if (known && !is_new && whole.value > known->exemplar.value) {
        points->found_bytes -= labels_memory(&known->labels);
        labels_release(&known->labels);
        known->labels = (struct labels){0};
        labels_copy(&known->labels, window->labels);
        points->found_bytes += labels_memory(&known->labels);
        known->exemplar = whole;
    }
    return !known;
}

static int compare_found(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x->exemplar.value > y->exemplar.value ? -1 : x->exemplar.value < y->exemplar.value;
}

/* The greatest of a point's. */
static const struct found *exemplar_of(const struct points *points, uint64_t group, int64_t slot)
{
    size_t low = 0, high = points->found_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct found *at = &points->found[middle];
        if (at->group < group || (at->group == group && at->slot < slot))
            low = middle + 1;
        else
            high = middle;
    }
    const struct found *at = &points->found[low];
    return low < points->found_count && at->group == group && at->slot == slot ? at : NULL;
}

/* ---- points ---- */

int64_t querier_points_range(struct store_selection *selection, int64_t step_ns)
{
    int64_t start = selection->from_ns, last = start;
    if (selection->to_ns == INT64_MAX)
        last = INT64_MAX - MS_NS;
    else if (selection->to_ns - MS_NS > start)
        last += (selection->to_ns - MS_NS - start) / step_ns * step_ns;
    /* A millisecond that a point is stamped with is its last. Where that would keep steps from
     * being whole slots of rollups, which may be all that is left, it is the next one's first. */
    int64_t inclusive = start % ROLLUP_NS || step_ns % ROLLUP_NS ? MS_NS : 0;
    selection->from_ns = start - step_ns + inclusive;
    selection->to_ns = last + inclusive;
    return step_ns - inclusive;
}

static void put_point(struct points *points, const struct store_point *point, uint64_t group)
{
    struct call *call = points->call;
    struct rpc_writer *answer = &call->answer;
    double value = (double)point->value;
    if (level_is_type(points->type) && point->per_ns)
        value = covered_rate(point->value, point->per_ns);
    /* Of whole profiles, also where labels of samples divided them. */
    else if (call->request.aggregation == AVERAGE && point->windows)
        value /= (double)point->windows;
    /* Clients divide by the step. */
    else if (call->request.aggregation != AVERAGE)
        value = covered_used(point);
    int64_t ms = (point->time_ns + points->shown_ns) / MS_NS;
    const struct found *found =
        exemplar_of(points, group, (point->time_ns - points->selection->from_ns) / points->step_ns);
    size_t mark = rpc_begin(answer, 2, NULL);
    rpc_put_double(answer, 1, "value", value);
    rpc_put_i64(answer, 2, "timestamp", ms);
    if (found) {
        rpc_list(answer, "exemplars");
        querier_put_exemplar(call, 4, &found->exemplar, &found->labels);
        rpc_list_end(answer);
    }
    rpc_end(answer, mark);
}

static int put_group(void *context, const struct labels *group, const struct store_point *list,
                     size_t count)
{
    struct points *points = context;
    struct call *call = points->call;
    struct rpc_writer *answer = &call->answer;
    struct labels labels = {0};
    if (call->request.limit > 0 && points->series >= (uint64_t)call->request.limit)
        return 0;
    points->series++;
    querier_group(&call->request, group, points->type, &labels);
    uint64_t hash = labels_hash(&labels);
    size_t mark = rpc_begin(answer, 1, NULL);
    querier_put_labels(call, &labels);
    rpc_list(answer, "points");
    int r = 0;
    for (size_t i = 0; !r && i < count; i++) {
        put_point(points, &list[i], hash);
        if (call->request.json)
            r = querier_pass(call);
    }
    rpc_list_end(answer);
    rpc_end(answer, mark); /* of protobuf, whole until here: its length comes before it */
    labels_release(&labels);
    return r ? r : querier_pass(call);
}

int querier_select_series(struct call *call, struct error *error)
{
    struct rpc_request *request = &call->request;
    _cleanup_query_context_ struct query_context query_context = {0};
    struct store_quality quality;
    int64_t step_ns;
    int r = querier_step(request, &step_ns, error);
    if (r < 0)
        return r;
    if (request->stack && request->stack->call_site.count)
        return error_set(error, -EINVAL,
                         "Time series of one call site are not supported; omit stackTraceSelector, "
                         "or merge the stacks.");
    r = querier_ask(call, request, request->label_selector, true, &query_context, error);
    if (r < 0)
        return r;
    struct store *store = call->server->store;
    struct store_timeseries_query query = {.step_ns = MAX(step_ns, 1000 * MS_NS),
                                           .group_by = request->group_by.list,
                                           .group_count = request->group_by.count,
                                           .moments = request->aggregation == AVERAGE,
                                           .greatest_first = true};
    int64_t shown_ns = querier_points_range(&query_context.selection, query.step_ns);
    _cleanup_(points_release) struct points points = {.call = call,
                                                      .type = query_context.query.type,
                                                      .selection = &query_context.selection,
                                                      .step_ns = query.step_ns,
                                                      .shown_ns = shown_ns};
    if (request->exemplar_type >= EXEMPLARS_INDIVIDUAL)
        r = admit_rest(error);
    query_context.limits.memory_bytes = admit_profile_bytes(call->server->admissions);
    points.found_bytes_max = admit_profile_bytes(call->server->admissions) / 4;
    if (!r && request->exemplar_type == EXEMPLARS_INDIVIDUAL)
        r = store_scan(store, &query_context.selection, &query_context.limits, find_window, &points,
                       error);
    else if (!r && request->exemplar_type >= EXEMPLARS_SPAN)
        r = store_exemplars(store, &query_context.selection, NULL, &query_context.limits,
                            find_exemplar, &points, error);
    if (r < 0)
        return r;
    if (points.found_count)
        qsort(points.found, points.found_count, sizeof(*points.found), compare_found);
    rpc_open(&call->answer);
    rpc_list(&call->answer, "series");
    do
        r = store_timeseries(store, &query_context.selection, &query, &query_context.limits,
                             put_group, &points, &quality, error);
    while (query_context_again(&query_context, &r, error));
    rpc_list_end(&call->answer);
    rpc_close(&call->answer);
    return r;
}
