// SPDX-License-Identifier: Apache-2.0
// Pyroscope's lists: types, label names and values, series; and what a query would read.

#include <string.h>

#include "base/text.h"
#include "format/wire.h"
#include "server/admit.h"
#include "server/querier.h"
#include "server/series_list.h"

/* Lists of several matchers add up, each element once; and of some labels only there are fewer sets
 * than series. What is known takes memory, of which there is some for each query. */
static bool seen_before(struct call *call, const struct labels *labels)
{
    uint64_t hash = labels_hash(labels);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&call->index, &probe)) != ID_NONE)
        if (labels_equal(&call->seen[id], labels))
            return true;
    array_reserve(call->seen, call->seen_capacity, call->seen_count + 1);
    call->seen[call->seen_count] = (struct labels){0};
    labels_copy(&call->seen[call->seen_count], labels);
    call->seen_bytes += sizeof(*labels) + labels_memory(&call->seen[call->seen_count]);
    id_table_insert(&call->index, hash, (uint32_t)call->seen_count++);
    return false;
}

static bool text_seen_before(struct call *call, const char *text)
{
    if (call->request.matchers.count < 2)
        return false;
    struct labels one = {0};
    labels_set(&one, "name", text);
    bool known = seen_before(call, &one);
    labels_release(&one);
    return known;
}

static int put_name(void *context, const char *text)
{
    struct call *call = context;
    if (text_seen_before(call, text))
        return 0;
    if (call->request.json) {
        querier_put_comma(call);
        json_put_text(call->out, text);
    } else {
        wire_put_bytes(call->out, 1, text, strlen(text));
    }
    return querier_pass(call);
}

/* For each of the request's matchers; without any, once for everything. */
static int for_matchers(struct call *call,
                        int (*fn)(struct call *, struct question *, struct error *),
                        struct error *error)
{
    const struct rpc_texts *matchers = &call->request.matchers;
    int r = 0;
    for (size_t i = 0; !r && i < MAX(matchers->count, (size_t)1); i++) {
        _cleanup_question_ struct question question = {0};
        r = querier_ask(call, &call->request, matchers->count ? matchers->list[i] : "", false,
                        &question, error);
        if (r == -ENOENT) /* a type that isn't there: nothing has it */
            r = 0;
        else if (!r)
            r = fn(call, &question, error);
    }
    if (r == -E2BIG && error->code != r)
        error_set(
            error, r,
            "The list takes more memory than there is for one question; ask for fewer labels, "
            "a shorter time, or with one matcher.");
    return r;
}

static int put_type(void *context, const char *id)
{
    static const struct {
        const char *key;
        unsigned number;
    } parts[] = {
        {"name", 2}, {"sampleType", 4}, {"sampleUnit", 5}, {"periodType", 6}, {"periodUnit", 7}};
    struct call *call = context;
    struct buffer *out = call->out;
    size_t mark = 0, length;
    if (call->request.json) {
        querier_put_comma(call);
        buffer_add_text(out, "{\"ID\":");
        json_put_text(out, id);
    } else {
        mark = wire_begin(out, 1);
        wire_put_bytes(out, 1, id, strlen(id));
    }
    for (unsigned i = 0; i < ARRAY_LENGTH(parts); i++) {
        const char *part = query_type_part(id, i, &length);
        if (call->request.json) {
            buffer_printf(out, ",\"%s\":", parts[i].key);
            text_escape_json(out, part, length);
        } else {
            wire_put_bytes(out, parts[i].number, part, length);
        }
    }
    if (call->request.json)
        buffer_add_char(out, '}');
    else
        wire_end(out, mark);
    return 0;
}

static int types_of(struct call *call, struct question *question, struct error *error)
{
    return store_types(call->server->store, &question->selection, put_type, call, error);
}

static int names_of(struct call *call, struct question *question, struct error *error)
{
    int r = store_label_names(call->server->store, &question->selection, put_name, call, error);
    return r < 0 ? r : put_name(call, "__profile_type__");
}

static int values_of(struct call *call, struct question *question, struct error *error)
{
    const char *name = call->request.name;
    if (!strcmp(name, "__profile_type__"))
        return store_types(call->server->store, &question->selection, put_name, call, error);
    return store_label_values(call->server->store, &question->selection, name, put_name, call,
                              error);
}

static int put_series(void *context, const struct labels *labels, const char *type,
                      int64_t first_ns, int64_t last_ns)
{
    struct call *call = context;
    const struct rpc_texts *wanted = &call->request.label_names;
    bool repeats = wanted->count || call->request.matchers.count > 1;
    struct labels all = {0}, shown = {0};
    (void)first_ns;
    (void)last_ns;
    labels_copy(&all, labels);
    labels_set(&all, "__profile_type__", type);
    for (size_t i = 0; i < wanted->count; i++) {
        const char *value = labels_get(&all, wanted->list[i]);
        labels_set(&shown, wanted->list[i], value ? value : "");
    }
    const struct labels *set = wanted->count ? &shown : &all;
    if (set->count && !(repeats && seen_before(call, set))) {
        size_t mark = 0;
        if (call->request.json) {
            querier_put_comma(call);
            buffer_add_char(call->out, '{');
        } else {
            mark = wire_begin(call->out, 2);
        }
        querier_put_labels(call, set);
        if (call->request.json)
            buffer_add_char(call->out, '}');
        else
            wire_end(call->out, mark);
    }
    labels_release(&all);
    labels_release(&shown);
    return call->seen_bytes > admit_profile_bytes(call->server) ? -E2BIG : 0;
}

static int series_of(struct call *call, struct question *question, struct error *error)
{
    return series_list(call->server->store, &question->selection, call->out, put_series, call,
                       error);
}

static int list(struct call *call, const char *key,
                int (*fn)(struct call *, struct question *, struct error *), struct error *error)
{
    if (call->request.json)
        buffer_printf(call->out, "{\"%s\":[", key);
    int r = for_matchers(call, fn, error);
    if (call->request.json)
        buffer_add_text(call->out, "]}");
    return r;
}

int querier_profile_types(struct call *call, struct error *error)
{
    return list(call, "profileTypes", types_of, error);
}

int querier_label_names(struct call *call, struct error *error)
{
    return list(call, "names", names_of, error);
}

int querier_label_values(struct call *call, struct error *error)
{
    if (!*call->request.name)
        return error_set(error, -EINVAL, "The request names no label.");
    return list(call, "names", values_of, error);
}

int querier_series(struct call *call, struct error *error)
{
    int r = admit_rest(error);
    return r < 0 ? r : list(call, "labelsSet", series_of, error);
}

/* ---- what is there at all ---- */

struct extent {
    int64_t first_ns, last_ns;
    uint64_t series;
};

static int extend(void *context, const struct labels *labels, const char *type, int64_t first_ns,
                  int64_t last_ns)
{
    struct extent *extent = context;
    (void)labels;
    (void)type;
    extent->first_ns = extent->series++ ? MIN(extent->first_ns, first_ns) : first_ns;
    extent->last_ns = MAX(extent->last_ns, last_ns);
    return 0;
}

int querier_profile_stats(struct call *call, struct error *error)
{
    struct extent extent = {0};
    struct store_selection selection = {.tenant = http_request_identity(call->http)->tenant,
                                        .to_ns = INT64_MAX};
    int r = store_series(call->server->store, &selection, extend, &extent, error);
    if (call->request.json) {
        buffer_printf(call->out,
                      "{\"dataIngested\":%s,\"oldestProfileTime\":\"%lld\","
                      "\"newestProfileTime\":\"%lld\"}",
                      extent.series ? "true" : "false", (long long)(extent.first_ns / MS_NS),
                      (long long)(extent.last_ns / MS_NS));
    } else {
        wire_put_u64(call->out, 1, extent.series != 0);
        wire_put_i64(call->out, 2, extent.first_ns / MS_NS);
        wire_put_i64(call->out, 3, extent.last_ns / MS_NS);
    }
    return r;
}

static int no_points(void *context, const struct labels *group, const struct store_point *points,
                     size_t count)
{
    (void)context;
    (void)group;
    (void)points;
    (void)count;
    return 0;
}

/* What would be read, from a count of it: the whole has bytes, and this is a share of its rows. */
static int analyze(struct call *call, struct question *question, struct extent *extent,
                   struct store_quality *quality, uint64_t *ret_bytes, struct error *error)
{
    struct store *store = call->server->store;
    struct store_stats stats;
    int r = store_series(store, &question->selection, extend, extent, error);
    if (!r)
        r = store_stats(store, &stats, error);
    if (r < 0 || !question->selection.type || !extent->series)
        return r;
    struct store_selection there = question->selection;
    there.from_ns = MAX(there.from_ns, extent->first_ns);
    there.to_ns = MIN(there.to_ns, extent->last_ns + 1);
    struct store_timeseries_query query = {
        .step_ns = MAX(there.to_ns - there.from_ns, (int64_t)1000000000)};
    if (there.to_ns > there.from_ns)
        r = store_timeseries(store, &there, &query, &question->limits, no_points, NULL, quality,
                             error);
    if (!r && stats.rows)
        *ret_bytes =
            (uint64_t)((double)stats.bytes[STORE_RAW] * (double)quality->rows / (double)stats.rows);
    return r;
}

int querier_analyze(struct call *call, struct error *error)
{
    _cleanup_question_ struct question question = {0};
    struct buffer *out = call->out;
    struct store_quality quality = {0};
    struct extent extent = {0};
    uint64_t bytes = 0;
    int r =
        querier_ask(call, &call->request, call->request.label_selector, false, &question, error);
    if (!r)
        r = analyze(call, &question, &extent, &quality, &bytes, error);
    if (r < 0)
        return r;
    if (call->request.json) {
        buffer_printf(out,
                      "{\"queryScopes\":[{\"componentType\":\"store\",\"componentCount\":\"1\","
                      "\"blockCount\":\"%llu\",\"seriesCount\":\"%llu\",\"profileCount\":\"%llu\","
                      "\"sampleCount\":\"%llu\",\"profileBytes\":\"%llu\"}],",
                      (unsigned long long)quality.blocks, (unsigned long long)extent.series,
                      (unsigned long long)quality.windows, (unsigned long long)quality.rows,
                      (unsigned long long)bytes);
        buffer_printf(out,
                      "\"queryImpact\":{\"totalBytesInTimeRange\":\"%llu\","
                      "\"totalQueriedSeries\":\"%llu\",\"deduplicationNeeded\":false}}",
                      (unsigned long long)bytes, (unsigned long long)extent.series);
        return 0;
    }
    size_t mark = wire_begin(out, 1);
    wire_put_bytes(out, 1, "store", 5);
    wire_put_u64(out, 2, 1);
    wire_put_u64(out, 3, quality.blocks);
    wire_put_u64(out, 4, extent.series);
    wire_put_u64(out, 5, quality.windows);
    wire_put_u64(out, 6, quality.rows);
    wire_put_u64(out, 8, bytes);
    wire_end(out, mark);
    mark = wire_begin(out, 2);
    wire_put_u64(out, 2, bytes);
    wire_put_u64(out, 3, extent.series);
    wire_end(out, mark);
    return 0;
}
