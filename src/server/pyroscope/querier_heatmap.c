// SPDX-License-Identifier: Apache-2.0
// Pyroscope's heat maps: how many pushes, or spans, had a value of which size, over time. All
// series share one scale of twenty steps from the smallest value to the greatest.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/wire.h"
#include "query/covered.h"
#include "server/admission/admission.h"
#include "server/pyroscope/querier.h"

#define BUCKETS 20
#define POINTS_MAX 1000000
#define GROUPS_MAX 10000
#define MEASURED_BYTES (64u << 10)

enum { HEATMAP_INDIVIDUAL = 1, HEATMAP_SPAN };

struct heat_point {
    uint32_t group;
    int64_t slot;  /* (slot - 1, slot] in steps from the range's start */
    uint64_t push; /* of a process and time: label sets of samples are parts of one push */
    int64_t value;
    uint32_t exemplar; /* from 1; 0: none */
};

struct heatmap {
    struct call *call;
    const char *type;
    int64_t from_ns, step_ns;
    struct labels *groups;
    size_t group_count, group_capacity;
    struct id_table index;
    struct heat_point *points;
    size_t count, capacity;
    struct {
        struct store_exemplar exemplar;
        size_t set;
    } * exemplars;
    size_t exemplar_count, exemplar_capacity;
    struct labels *sets; /* of exemplars' series, which come one after the other */
    size_t set_count, set_capacity;
    size_t label_bytes, memory_bytes_max;
    int64_t least, most;
    bool too_many;
};

static void heatmap_release(struct heatmap *map)
{
    for (size_t i = 0; i < map->group_count; i++)
        labels_release(&map->groups[i]);
    for (size_t i = 0; i < map->set_count; i++)
        labels_release(&map->sets[i]);
    free(map->sets);
    free(map->groups);
    free(map->points);
    free(map->exemplars);
    id_table_release(&map->index);
}

static uint32_t find_group(struct heatmap *map, const struct labels *labels)
{
    struct labels group = {0};
    querier_group(&map->call->request, labels, map->type, &group);
    uint64_t hash = labels_hash(&group);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&map->index, &probe)) != ID_NONE)
        if (labels_equal(&map->groups[id], &group))
            break;
    if (id == ID_NONE && map->group_count < GROUPS_MAX) {
        id = (uint32_t)map->group_count;
        array_reserve(map->groups, map->group_capacity, map->group_count + 1);
        map->label_bytes += labels_memory(&group);
        map->groups[map->group_count++] = group;
        id_table_insert(&map->index, hash, id);
        return id;
    }
    labels_release(&group);
    return id;
}

static bool is_full(const struct heatmap *map)
{
    return map->count == POINTS_MAX || map->capacity * sizeof(*map->points) +
                                               map->exemplar_capacity * sizeof(*map->exemplars) +
                                               map->label_bytes >
                                           map->memory_bytes_max;
}

static void keep_exemplar(struct heatmap *map, const struct labels *labels,
                          const struct store_exemplar *exemplar)
{
    if (!map->set_count || !labels_equal(&map->sets[map->set_count - 1], labels)) {
        array_reserve(map->sets, map->set_capacity, map->set_count + 1);
        map->sets[map->set_count] = (struct labels){0};
        labels_copy(&map->sets[map->set_count], labels);
        map->label_bytes += sizeof(*labels) + labels_memory(&map->sets[map->set_count++]);
    }
    array_reserve(map->exemplars, map->exemplar_capacity, map->exemplar_count + 1);
    map->exemplars[map->exemplar_count].exemplar = *exemplar;
    map->exemplars[map->exemplar_count++].set = map->set_count - 1;
}

static int add_point(struct heatmap *map, const struct labels *labels, uint64_t push,
                     int64_t time_ns, int64_t value, const struct store_exemplar *exemplar)
{
    uint32_t group = find_group(map, labels);
    map->too_many |= is_full(map) || group == ID_NONE;
    if (map->too_many)
        return 1;
    int64_t after = time_ns - map->from_ns;
    struct heat_point point = {.group = group,
                               .slot = (after + map->step_ns - 1) / map->step_ns,
                               .push = push,
                               .value = value};
    if (exemplar) {
        keep_exemplar(map, labels, exemplar);
        point.exemplar = (uint32_t)map->exemplar_count;
    }
    array_reserve(map->points, map->capacity, map->count + 1);
    map->points[map->count++] = point;
    return 0;
}

static int add_window(void *context, const struct store_profile *window)
{
    struct heatmap *map = context;
    struct store_exemplar whole = {.time_ns = window->time_ns, .value = querier_sum(window)};
    bool wanted = map->call->request.exemplar_type >= EXEMPLARS_INDIVIDUAL;
    uint64_t push = hash_word(covered_process(window->labels) ^ hash_word((uint64_t)whole.time_ns));
    return add_point(map, window->labels, push, whole.time_ns, whole.value, wanted ? &whole : NULL);
}

static int add_exemplar(void *context, const struct labels *labels, const struct profile *profile,
                        const struct store_exemplar *exemplar)
{
    struct heatmap *map = context;
    static const uint8_t no_span[8];
    (void)profile;
    bool wanted = map->call->request.exemplar_type >= EXEMPLARS_INDIVIDUAL;
    if (!memcmp(exemplar->link.span_id, no_span, sizeof(no_span)))
        return 0;
    return add_point(map, labels, map->count, exemplar->time_ns, exemplar->value,
                     wanted ? exemplar : NULL);
}

static int compare_points(const void *a, const void *b)
{
    const struct heat_point *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x->push < y->push ? -1 : x->push > y->push;
}

/* Sorts the points, and makes those of one push one; of their exemplars the greatest stays. */
static void join_points(struct heatmap *map)
{
    struct heat_point *points = map->points;
    size_t count = 0;
    if (map->count)
        qsort(points, map->count, sizeof(*points), compare_points);
    for (size_t i = 0; i < map->count; i++) {
        struct heat_point *last = count ? &points[count - 1] : NULL;
        if (!last || compare_points(last, &points[i])) {
            points[count++] = points[i];
            continue;
        }
        last->value = add_saturated(last->value, points[i].value);
        if (last->exemplar && points[i].exemplar &&
            map->exemplars[points[i].exemplar - 1].exemplar.value >
                map->exemplars[last->exemplar - 1].exemplar.value)
            last->exemplar = points[i].exemplar;
    }
    map->count = count;
    for (size_t i = 0; i < count; i++) {
        map->least = i ? MIN(map->least, points[i].value) : points[i].value;
        map->most = i ? MAX(map->most, points[i].value) : points[i].value;
    }
}

static size_t bucket_of(const struct heatmap *map, int64_t value)
{
    double range = (double)map->most - (double)map->least;
    double share = range > 0 ? ((double)value - (double)map->least) / range : 0;
    return MIN((size_t)(share * BUCKETS), (size_t)BUCKETS - 1);
}

/* The points of one slot. */
static void put_slot(struct heatmap *map, const struct heat_point *points, size_t count)
{
    struct call *call = map->call;
    struct rpc_writer *answer = &call->answer;
    uint32_t counts[BUCKETS] = {0};
    const struct heat_point *best[BUCKETS] = {0};
    double range = MAX((double)map->most - (double)map->least, 1);
    for (size_t i = 0; i < count; i++) {
        size_t bucket = bucket_of(map, points[i].value);
        counts[bucket]++;
        if (points[i].exemplar && (!best[bucket] || points[i].value > best[bucket]->value))
            best[bucket] = &points[i];
    }
    int64_t ms = (map->from_ns + points->slot * map->step_ns) / MS_NS;
    double edges[BUCKETS];
    for (size_t i = 0; i < BUCKETS; i++)
        edges[i] = floor((double)map->least + range * (double)i / BUCKETS);
    size_t mark = rpc_begin(answer, 2, NULL);
    rpc_put_i64(answer, 1, "timestamp", ms);
    rpc_put_doubles(answer, 2, "yMin", edges, BUCKETS);
    rpc_put_counts(answer, 3, "counts", counts, BUCKETS);
    rpc_list(answer, "exemplars");
    for (size_t i = 0; i < BUCKETS; i++) {
        if (!best[i])
            continue;
        size_t exemplar = best[i]->exemplar - 1;
        querier_put_exemplar(call, 4, &map->exemplars[exemplar].exemplar,
                             &map->sets[map->exemplars[exemplar].set]);
    }
    rpc_list_end(answer);
    rpc_end(answer, mark);
}

/* The content of one group's message. */
static int put_slots(struct heatmap *map, const struct heat_point *points, size_t count)
{
    struct call *call = map->call;
    int r = 0;
    querier_put_labels(call, &map->groups[points->group]);
    rpc_list(&call->answer, "slots");
    for (size_t i = 0, end; !r && i < count; i = end) {
        for (end = i; end < count && points[end].slot == points[i].slot;)
            end++;
        put_slot(map, points + i, end - i);
        r = querier_pass(call);
    }
    rpc_list_end(&call->answer);
    return r;
}

static int forget(void *context, const void *bytes, size_t length)
{
    (void)context;
    (void)bytes;
    (void)length;
    return 0;
}

/* A message's length stands before it: written twice, it need not be held. */
static uint64_t measure_slots(struct heatmap *map, const struct heat_point *points, size_t count)
{
    struct buffer_drain drain = {.take = forget, .piece_bytes = MEASURED_BYTES};
    _cleanup_buffer_ struct buffer thrown_away = {.drain = &drain};
    struct rpc_writer answer = map->call->answer;
    map->call->answer = rpc_writer(&thrown_away, false);
    put_slots(map, points, count);
    map->call->answer = answer;
    return buffer_written(&thrown_away);
}

/* All points of one group. */
static int put_series(struct heatmap *map, const struct heat_point *points, size_t count)
{
    struct call *call = map->call;
    struct rpc_writer *answer = &call->answer;
    if (answer->is_json) {
        rpc_begin(answer, 1, NULL);
        int r = put_slots(map, points, count);
        rpc_end(answer, 0);
        return r;
    }
    wire_put_tag(answer->out, 1, WIRE_BYTES);
    wire_put_varint(answer->out, measure_slots(map, points, count));
    return put_slots(map, points, count);
}

/* A group's part of the sorted points. */
struct heat_run {
    const struct labels *labels;
    size_t first, count;
};

static int compare_runs(const void *a, const void *b)
{
    const struct heat_run *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return labels_compare(x->labels, y->labels);
}

/* With more series than requested, those with the most points. */
static int put_all(struct heatmap *map, int64_t limit)
{
    _cleanup_free_ struct heat_run *runs = memory_zalloc(map->group_count + 1, sizeof(*runs));
    size_t count = 0;
    int r = 0;
    join_points(map);
    for (size_t i = 0; i < map->count; i++) {
        if (!i || map->points[i].group != map->points[i - 1].group)
            runs[count++] =
                (struct heat_run){.labels = &map->groups[map->points[i].group], .first = i};
        runs[count - 1].count++;
    }
    if (limit > 0 && (uint64_t)limit < count) {
        qsort(runs, count, sizeof(*runs), compare_runs);
        count = (size_t)limit;
    }
    for (size_t i = 0; !r && i < count; i++)
        r = put_series(map, map->points + runs[i].first, runs[i].count);
    return r;
}

int querier_select_heatmap(struct call *call, struct error *error)
{
    struct rpc_request *request = &call->request;
    _cleanup_query_context_ struct query_context query_context = {0};
    int64_t step_ns;
    int r = querier_step(request, &step_ns, error);
    if (!r)
        r = querier_ask(call, request, request->label_selector, true, &query_context, error);
    if (!r)
        r = admit_rest(error);
    if (r < 0)
        return r;
    query_context.limits.memory_bytes = admit_profile_bytes(call->server->admissions);
    _cleanup_(heatmap_release) struct heatmap map = {.call = call,
                                                     .type = query_context.query.type,
                                                     .from_ns = query_context.selection.from_ns,
                                                     .step_ns = step_ns,
                                                     .memory_bytes_max =
                                                         query_context.limits.memory_bytes};
    r = request->query_type == HEATMAP_SPAN
            ? store_exemplars(call->server->store, &query_context.selection, NULL,
                              &query_context.limits, add_exemplar, &map, error)
            : store_scan(call->server->store, &query_context.selection, &query_context.limits,
                         add_window, &map, error);
    if (map.too_many)
        return error_set(error, -E2BIG,
                         "The heat map would exceed %d points, %d series or %zu MiB; select a "
                         "shorter time range or group by fewer labels.",
                         POINTS_MAX, GROUPS_MAX, map.memory_bytes_max >> 20);
    if (r < 0)
        return r;
    rpc_open(&call->answer);
    rpc_list(&call->answer, "series");
    r = put_all(&map, request->limit);
    rpc_list_end(&call->answer);
    rpc_close(&call->answer);
    return r;
}
