// SPDX-License-Identifier: Apache-2.0
// Pyroscope's query API, querier.v1, as Grafana's data source and its own tools call it.

#include <math.h>
#include <string.h>

#include "base/idtable.h"
#include "base/text.h"
#include "format/pprof.h"
#include "format/wire.h"
#include "server/flamebearer.h"
#include "server/question.h"
#include "server/receive.h"
#include "server/rpc.h"

#define MS_NS 1000000ll

static const char *const formats[] = {"UNSPECIFIED", "FLAMEGRAPH", "TREE", "DOT", "PPROF", NULL};
static const char *const aggregations[] = {"SUM", "AVERAGE", NULL};

#define AT(member) offsetof(struct rpc_request, member)

static const struct rpc_field types_fields[] = {
    {1, "start", NULL, RPC_NUMBER, AT(start)}, {2, "end", NULL, RPC_NUMBER, AT(end)}, {0}};
static const struct rpc_field names_fields[] = {{1, "matchers", NULL, RPC_TEXTS, AT(matchers)},
                                                {2, "start", NULL, RPC_NUMBER, AT(start)},
                                                {3, "end", NULL, RPC_NUMBER, AT(end)},
                                                {0}};
static const struct rpc_field values_fields[] = {{1, "name", NULL, RPC_TEXT, AT(name)},
                                                 {2, "matchers", NULL, RPC_TEXTS, AT(matchers)},
                                                 {3, "start", NULL, RPC_NUMBER, AT(start)},
                                                 {4, "end", NULL, RPC_NUMBER, AT(end)},
                                                 {0}};
static const struct rpc_field series_fields[] = {
    {1, "matchers", NULL, RPC_TEXTS, AT(matchers)},
    {2, "labelNames", "label_names", RPC_TEXTS, AT(label_names)},
    {3, "start", NULL, RPC_NUMBER, AT(start)},
    {4, "end", NULL, RPC_NUMBER, AT(end)},
    {0}};
#define SELECTION_FIELDS                                                                           \
    {1, "profileTypeID", "profile_typeID", RPC_TEXT, AT(profile_type)},                            \
        {2, "labelSelector", "label_selector", RPC_TEXT, AT(label_selector)},                      \
        {3, "start", NULL, RPC_NUMBER, AT(start)},                                                 \
    {                                                                                              \
        4, "end", NULL, RPC_NUMBER, AT(end)                                                        \
    }
static const struct rpc_field merge_fields[] = {
    SELECTION_FIELDS,
    {5, "maxNodes", "max_nodes", RPC_NUMBER, AT(max_nodes)},
    {6, "format", NULL, RPC_ENUM, AT(format), formats},
    {8, "profileIdSelector", "profile_id_selector", RPC_TEXTS, AT(spans)},
    {10, "traceIdSelector", "trace_id_selector", RPC_TEXTS, AT(spans)},
    {11, "spanSelector", "span_selector", RPC_TEXTS, AT(spans)},
    {0}};
static const struct rpc_field profile_fields[] = {
    SELECTION_FIELDS, {5, "maxNodes", "max_nodes", RPC_NUMBER, AT(max_nodes)}, {0}};
static const struct rpc_field points_fields[] = {
    SELECTION_FIELDS,
    {5, "groupBy", "group_by", RPC_TEXTS, AT(group_by)},
    {6, "step", NULL, RPC_DOUBLE, AT(step)},
    {7, "aggregation", NULL, RPC_ENUM, AT(aggregation), aggregations},
    {9, "limit", NULL, RPC_NUMBER, AT(limit)},
    {0}};
static const struct rpc_field diff_fields[] = {
    {1, "left", NULL, RPC_MESSAGE, AT(left), NULL, merge_fields},
    {2, "right", NULL, RPC_MESSAGE, AT(right), NULL, merge_fields},
    {0}};
static const struct rpc_field no_fields[] = {{0}};

struct call {
    struct http_request *http;
    struct server *server;
    struct rpc_request request;
    struct buffer out;
    const char *comma;
    struct labels *seen; /* label sets that are in the answer */
    size_t seen_count, seen_capacity;
    struct id_table index;
    const char *type; /* of points, for grouping by it */
};

/* ---- what messages are made of ---- */

static void put_comma(struct call *call)
{
    buffer_add_text(&call->out, call->comma);
    call->comma = ",";
}

static void put_pair(struct call *call, const char *name, const char *value, bool first)
{
    struct buffer *out = &call->out;
    if (call->request.json) {
        buffer_add_text(out, first ? "{\"name\":" : ",{\"name\":");
        json_put_text(out, name);
        buffer_add_text(out, ",\"value\":");
        json_put_text(out, value);
        buffer_add_char(out, '}');
        return;
    }
    size_t mark = wire_begin(out, 1);
    wire_put_bytes(out, 1, name, strlen(name));
    wire_put_bytes(out, 2, value, strlen(value));
    wire_end(out, mark);
}

/* labels=1, a list of pairs. */
static void put_labels(struct call *call, const struct labels *labels)
{
    if (call->request.json)
        buffer_add_text(&call->out, "\"labels\":[");
    for (size_t i = 0; i < labels->count; i++)
        put_pair(call, labels->list[i].name, labels->list[i].value, !i);
    if (call->request.json)
        buffer_add_char(&call->out, ']');
}

/* A text of a list that is each text once; the store gives them in order. */
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
    id_table_insert(&call->index, hash, (uint32_t)call->seen_count++);
    return false;
}

static int put_name(void *context, const char *text)
{
    struct call *call = context;
    struct labels one = {0};
    labels_set(&one, "name", text);
    bool known = seen_before(call, &one);
    labels_release(&one);
    if (known)
        return 0;
    if (call->request.json) {
        put_comma(call);
        json_put_text(&call->out, text);
    } else {
        wire_put_bytes(&call->out, 1, text, strlen(text));
    }
    return 0;
}

/* ---- questions ---- */

static int ask(struct call *call, const struct rpc_request *request, const char *selector,
               bool typed, struct question *question, struct error *error)
{
    /* Their ends are inclusive; no times mean all times. */
    int64_t start = MAX(request->start, 0), end = request->end;
    int64_t from = start > INT64_MAX / MS_NS - 1 ? INT64_MAX - 1 : start * MS_NS;
    int64_t to = end <= 0 || end > INT64_MAX / MS_NS - 1 ? INT64_MAX : (end + 1) * MS_NS;
    _cleanup_buffer_ struct buffer text = {0};
    buffer_printf(&text, "%s%s", request->profile_type, selector);
    return question_init(question, call->http, call->server, buffer_text(&text), from, to, typed,
                         error);
}

/* For each of the request's matchers, which add up; without any, once for everything. */
static int for_matchers(struct call *call,
                        int (*fn)(struct call *, struct question *, struct error *),
                        struct error *error)
{
    const struct rpc_texts *matchers = &call->request.matchers;
    int r = 0;
    for (size_t i = 0; !r && i < MAX(matchers->count, (size_t)1); i++) {
        _cleanup_question_ struct question question = {0};
        r = ask(call, &call->request, matchers->count ? matchers->list[i] : "", false, &question,
                error);
        if (!r)
            r = fn(call, &question, error);
    }
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
    struct buffer *out = &call->out;
    size_t mark = 0, length;
    if (call->request.json) {
        put_comma(call);
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
    if (set->count && !seen_before(call, set)) {
        size_t mark = 0;
        if (call->request.json) {
            put_comma(call);
            buffer_add_char(&call->out, '{');
        } else {
            mark = wire_begin(&call->out, 2);
        }
        put_labels(call, set);
        if (call->request.json)
            buffer_add_char(&call->out, '}');
        else
            wire_end(&call->out, mark);
    }
    labels_release(&all);
    labels_release(&shown);
    return 0;
}

static int series_of(struct call *call, struct question *question, struct error *error)
{
    return store_series(call->server->store, &question->selection, put_series, call, error);
}

static int list(struct call *call, const char *key,
                int (*fn)(struct call *, struct question *, struct error *), struct error *error)
{
    if (call->request.json)
        buffer_printf(&call->out, "{\"%s\":[", key);
    int r = for_matchers(call, fn, error);
    if (call->request.json)
        buffer_add_text(&call->out, "]}");
    return r;
}

static int profile_types(struct call *call, struct error *error)
{
    return list(call, "profileTypes", types_of, error);
}

static int label_names(struct call *call, struct error *error)
{
    return list(call, "names", names_of, error);
}

static int label_values(struct call *call, struct error *error)
{
    return list(call, "names", values_of, error);
}

static int series(struct call *call, struct error *error)
{
    return list(call, "labelsSet", series_of, error);
}

/* ---- profiles ---- */

static int merge(struct call *call, const struct rpc_request *request, enum profile_detail detail,
                 struct profile *profile, struct error *error)
{
    _cleanup_question_ struct question question = {0};
    struct store_quality quality = {0};
    profile_init(profile, detail);
    if (request->spans.count)
        return error_set(error, -ENOTSUP,
                         "Profiles of single traces, spans or pushes can't be "
                         "merged; leave the selectors of those out.");
    int r = ask(call, request, request->label_selector, true, &question, error);
    return r < 0 ? r : question_merge(&question, profile, &quality, error);
}

static int merge_stacktraces(struct call *call, struct error *error)
{
    _cleanup_profile_ struct profile profile = {0};
    _cleanup_calltree_ struct calltree tree;
    struct rpc_request *request = &call->request;
    struct buffer content = {0}, *out = &call->out;
    bool json = request->json;
    calltree_init(&tree);
    int r = merge(call, request, request->format == 4 ? format_pprof.detail : 0, &profile, error);
    if (!r)
        r = calltree_add(&tree, &profile, CALLTREE_NEW, error);
    if (r < 0)
        return r;
    if (request->format == 2) {
        calltree_limit(&tree, (uint32_t)(request->max_nodes > 1
                                             ? MIN(request->max_nodes, FLAMEBEARER_NODES_MAX)
                                             : FLAMEBEARER_NODES));
        flamebearer_write_tree(&tree, &content);
        if (json) {
            buffer_add_text(out, "{\"tree\":\"");
            base64_encode(content.data, content.length, out);
            buffer_add_text(out, "\"}");
        } else {
            wire_put_bytes(out, 2, content.data, content.length);
        }
    } else if (request->format == 4 && !json) {
        struct buffer wrapped = {0};
        r = pprof_write(&content, &profile, &(struct write_options){.type = -1}, error);
        wire_put_bytes(&wrapped, 1, content.data, content.length);
        wire_put_bytes(out, 5, wrapped.data, wrapped.length);
        buffer_release(&wrapped);
    } else if (request->format >= 3) {
        r = error_set(error, -EINVAL, "That format isn't answered in; FLAMEGRAPH and TREE are.");
    } else {
        _cleanup_flamebearer_ struct flamebearer flame;
        flamebearer_init(&flame, &tree, request->max_nodes);
        if (json) {
            buffer_add_text(out, "{\"flamegraph\":");
            flamebearer_write_json(&flame, out);
            buffer_add_char(out, '}');
        } else {
            flamebearer_write_wire(&flame, &content);
            wire_put_bytes(out, 1, content.data, content.length);
        }
    }
    buffer_release(&content);
    return r;
}

static int merge_profile(struct call *call, struct error *error)
{
    _cleanup_profile_ struct profile profile = {0};
    if (call->request.json)
        return error_set(error, -EINVAL, "Profiles are answered as application/proto only.");
    int r = merge(call, &call->request, format_pprof.detail, &profile, error);
    return r < 0 ? r
                 : pprof_write(&call->out, &profile, &(struct write_options){.type = -1}, error);
}

static int diff(struct call *call, struct error *error)
{
    _cleanup_profile_ struct profile left = {0}, right = {0};
    _cleanup_calltree_ struct calltree tree;
    struct rpc_request *request = &call->request;
    calltree_init(&tree);
    if (!request->left || !request->right)
        return error_set(error, -EINVAL, "A difference wants left and right.");
    int r = merge(call, request->left, 0, &left, error);
    if (!r)
        r = merge(call, request->right, 0, &right, error);
    if (!r)
        r = calltree_add(&tree, &right, CALLTREE_NEW, error);
    if (!r)
        r = calltree_add(&tree, &left, CALLTREE_BASE, error);
    if (!r && tree.type_count > 1)
        r = error_set(error, -EINVAL, "Profiles of different types can't be compared.");
    if (r < 0)
        return r;
    _cleanup_flamebearer_ struct flamebearer flame;
    flamebearer_init(&flame, &tree, request->left->max_nodes);
    if (request->json) {
        buffer_add_text(&call->out, "{\"flamegraph\":");
        flamebearer_write_json(&flame, &call->out);
        buffer_add_char(&call->out, '}');
    } else {
        struct buffer content = {0};
        flamebearer_write_wire(&flame, &content);
        wire_put_bytes(&call->out, 1, content.data, content.length);
        buffer_release(&content);
    }
    return 0;
}

/* ---- points ---- */

static void put_point(struct call *call, const struct store_point *point, bool first)
{
    struct buffer *out = &call->out;
    double value = (double)point->value;
    if (call->request.aggregation == 1 && point->windows)
        value /= (double)point->windows;
    int64_t ms = point->time_ns / MS_NS;
    if (call->request.json) {
        buffer_printf(out, "%s{\"value\":%.17g,\"timestamp\":\"%lld\"}", first ? "" : ",", value,
                      (long long)ms);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    size_t mark = wire_begin(out, 2);
    wire_put_fixed64(out, 1, bits);
    wire_put_i64(out, 2, ms);
    wire_end(out, mark);
}

static int put_group(void *context, const struct labels *group, const struct store_point *points,
                     size_t count)
{
    struct call *call = context;
    struct labels labels = {0};
    size_t mark = 0;
    labels_copy(&labels, group);
    for (size_t i = 0; i < call->request.group_by.count; i++)
        if (!strcmp(call->request.group_by.list[i], "__profile_type__"))
            labels_set(&labels, "__profile_type__", call->type);
    if (call->request.json) {
        put_comma(call);
        buffer_add_char(&call->out, '{');
    } else {
        mark = wire_begin(&call->out, 1);
    }
    put_labels(call, &labels);
    if (call->request.json)
        buffer_add_text(&call->out, ",\"points\":[");
    for (size_t i = 0; i < count; i++)
        put_point(call, &points[i], !i);
    if (call->request.json)
        buffer_add_text(&call->out, "]}");
    else
        wire_end(&call->out, mark);
    labels_release(&labels);
    return 0;
}

static int select_series(struct call *call, struct error *error)
{
    struct rpc_request *request = &call->request;
    _cleanup_question_ struct question question = {0};
    struct store_quality quality;
    if (!(request->step >= 0.001 && request->step < 1e9))
        return error_set(error, -EINVAL, "The step is too short or too long, or isn't there.");
    int r = ask(call, request, request->label_selector, true, &question, error);
    if (r < 0)
        return r;
    struct store_timeseries_query query = {.step_ns = llround(fmax(request->step, 1) * 1e9),
                                           .group_by = request->group_by.list,
                                           .group_count = request->group_by.count};
    call->type = question.query.type;
    if (request->json)
        buffer_add_text(&call->out, "{\"series\":[");
    r = store_timeseries(call->server->store, &question.selection, &query, &question.limits,
                         put_group, call, &quality, error);
    if (request->json)
        buffer_add_text(&call->out, "]}");
    return r;
}

/* ---- what is there at all ---- */

struct extent {
    int64_t first_ns, last_ns;
};

static int extend(void *context, const struct labels *labels, const char *type, int64_t first_ns,
                  int64_t last_ns)
{
    struct extent *extent = context;
    (void)labels;
    (void)type;
    extent->first_ns = extent->last_ns ? MIN(extent->first_ns, first_ns) : first_ns;
    extent->last_ns = MAX(extent->last_ns, last_ns);
    return 0;
}

static int profile_stats(struct call *call, struct error *error)
{
    struct extent extent = {0};
    struct store_selection selection = {.tenant = http_request_identity(call->http)->tenant,
                                        .to_ns = INT64_MAX};
    int r = store_series(call->server->store, &selection, extend, &extent, error);
    bool any = extent.last_ns != 0;
    if (call->request.json) {
        buffer_printf(&call->out,
                      "{\"dataIngested\":%s,\"oldestProfileTime\":\"%lld\","
                      "\"newestProfileTime\":\"%lld\"}",
                      any ? "true" : "false", (long long)(extent.first_ns / MS_NS),
                      (long long)(extent.last_ns / MS_NS));
    } else {
        wire_put_u64(&call->out, 1, any);
        wire_put_i64(&call->out, 2, extent.first_ns / MS_NS);
        wire_put_i64(&call->out, 3, extent.last_ns / MS_NS);
    }
    return r;
}

static const struct {
    const char *name;
    int (*run)(struct call *call, struct error *error);
    const struct rpc_field *fields;
} methods[] = {
    {"ProfileTypes", profile_types, types_fields},
    {"LabelNames", label_names, names_fields},
    {"LabelValues", label_values, values_fields},
    {"Series", series, series_fields},
    {"SelectMergeStacktraces", merge_stacktraces, merge_fields},
    {"SelectMergeProfile", merge_profile, profile_fields},
    {"SelectSeries", select_series, points_fields},
    {"Diff", diff, diff_fields},
    {"GetProfileStats", profile_stats, no_fields},
};

void querier_unknown(struct http_request *request, void *server)
{
    (void)server;
    http_respond_code(request, HTTP_UNIMPLEMENTED, "%s isn't served.", http_request_path(request));
}

void querier_call(struct http_request *request, void *server)
{
    size_t method = 0;
    while (method < ARRAY_LENGTH(methods) &&
           strcmp(methods[method].name, http_request_rest(request)))
        method++;
    if (method == ARRAY_LENGTH(methods)) {
        querier_unknown(request, server);
        return;
    }
    struct call call = {.http = request, .server = server, .comma = ""};
    struct error error = {0};
    int r = rpc_read(request, methods[method].fields, &call.request, &error);
    if (!r)
        r = methods[method].run(&call, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        rpc_respond(request, &call.request, &call.out);
    for (size_t i = 0; i < call.seen_count; i++)
        labels_release(&call.seen[i]);
    free(call.seen);
    id_table_release(&call.index);
    rpc_release(&call.request);
    buffer_release(&call.out);
}
