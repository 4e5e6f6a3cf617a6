// SPDX-License-Identifier: Apache-2.0
// Pyroscope's query API, querier.v1, as Grafana's data source and its own tools call it: which
// method has which fields, and what their messages have in common.

#include "server/pyroscope/querier.h"

#include <math.h>
#include <string.h>

#include "base/hex.h"
#include "io/wire.h"
#include "query/types.h"
#include "server/handler/answer.h"
#include "server/pyroscope/pyroscope.h"

static const char *const formats[] = {"PROFILE_FORMAT_UNSPECIFIED", "PROFILE_FORMAT_FLAMEGRAPH",
                                      "PROFILE_FORMAT_TREE",        "PROFILE_FORMAT_DOT",
                                      "PROFILE_FORMAT_PPROF",       NULL};
static const char *const aggregations[] = {"TIME_SERIES_AGGREGATION_TYPE_SUM",
                                           "TIME_SERIES_AGGREGATION_TYPE_AVERAGE", NULL};
static const char *const exemplar_types[] = {"EXEMPLAR_TYPE_UNSPECIFIED", "EXEMPLAR_TYPE_NONE",
                                             "EXEMPLAR_TYPE_INDIVIDUAL", "EXEMPLAR_TYPE_SPAN",
                                             NULL};
static const char *const heatmap_types[] = {"HEATMAP_QUERY_TYPE_UNSPECIFIED",
                                            "HEATMAP_QUERY_TYPE_INDIVIDUAL",
                                            "HEATMAP_QUERY_TYPE_SPAN", NULL};

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
static const struct rpc_field pgo_fields[] = {
    {1, "keepLocations", "keep_locations", RPC_NUMBER, AT(keep_locations)},
    {2, "aggregateCallees", "aggregate_callees", RPC_BOOL, AT(aggregate_callees)},
    {0}};
static const struct rpc_field stack_fields[] = {
    {1, "callSite", "call_site", RPC_NAMED, AT(call_site)},
    {2, "goPgo", "go_pgo", RPC_MESSAGE, AT(pgo), NULL, pgo_fields},
    {0}};
#define TYPE_AND_LABELS                                                                            \
    {1, "profileTypeID", "profile_typeID", RPC_TEXT, AT(profile_type)},                            \
    {                                                                                              \
        2, "labelSelector", "label_selector", RPC_TEXT, AT(label_selector)                         \
    }
#define SELECTION_FIELDS                                                                           \
    TYPE_AND_LABELS, {3, "start", NULL, RPC_NUMBER, AT(start)},                                    \
    {                                                                                              \
        4, "end", NULL, RPC_NUMBER, AT(end)                                                        \
    }
#define STACK_FIELD(number)                                                                        \
    {                                                                                              \
        number, "stackTraceSelector", "stack_trace_selector", RPC_MESSAGE, AT(stack), NULL,        \
            stack_fields                                                                           \
    }
static const struct rpc_field merge_fields[] = {
    SELECTION_FIELDS,
    {5, "maxNodes", "max_nodes", RPC_NUMBER, AT(max_nodes)},
    {6, "format", NULL, RPC_ENUM, AT(format), formats},
    STACK_FIELD(7),
    {8, "profileIdSelector", "profile_id_selector", RPC_TEXTS, AT(profiles)},
    {10, "traceIdSelector", "trace_id_selector", RPC_TEXTS, AT(traces)},
    {11, "spanSelector", "span_selector", RPC_TEXTS, AT(spans)},
    {0}};
static const struct rpc_field span_fields[] = {
    TYPE_AND_LABELS,
    {3, "spanSelector", "span_selector", RPC_TEXTS, AT(spans)},
    {4, "start", NULL, RPC_NUMBER, AT(start)},
    {5, "end", NULL, RPC_NUMBER, AT(end)},
    {6, "maxNodes", "max_nodes", RPC_NUMBER, AT(max_nodes)},
    {7, "format", NULL, RPC_ENUM, AT(format), formats},
    {0}};
static const struct rpc_field profile_fields[] = {
    SELECTION_FIELDS,
    {5, "maxNodes", "max_nodes", RPC_NUMBER, AT(max_nodes)},
    STACK_FIELD(6),
    {7, "profileIdSelector", "profile_id_selector", RPC_TEXTS, AT(profiles)},
    {8, "traceIdSelector", "trace_id_selector", RPC_TEXTS, AT(traces)},
    {0}};
static const struct rpc_field points_fields[] = {
    SELECTION_FIELDS,
    {5, "groupBy", "group_by", RPC_TEXTS, AT(group_by)},
    {6, "step", NULL, RPC_DOUBLE, AT(step)},
    {7, "aggregation", NULL, RPC_ENUM, AT(aggregation), aggregations},
    STACK_FIELD(8),
    {9, "limit", NULL, RPC_NUMBER, AT(limit)},
    {10, "exemplarType", "exemplar_type", RPC_ENUM, AT(exemplar_type), exemplar_types},
    {0}};
static const struct rpc_field heatmap_fields[] = {
    SELECTION_FIELDS,
    {5, "step", NULL, RPC_DOUBLE, AT(step)},
    {6, "groupBy", "group_by", RPC_TEXTS, AT(group_by)},
    {7, "queryType", "query_type", RPC_ENUM, AT(query_type), heatmap_types},
    {8, "exemplarType", "exemplar_type", RPC_ENUM, AT(exemplar_type), exemplar_types},
    {9, "limit", NULL, RPC_NUMBER, AT(limit)},
    {0}};
static const struct rpc_field diff_fields[] = {
    {1, "left", NULL, RPC_MESSAGE, AT(left), NULL, merge_fields},
    {2, "right", NULL, RPC_MESSAGE, AT(right), NULL, merge_fields},
    {0}};
static const struct rpc_field analyze_fields[] = {{2, "start", NULL, RPC_NUMBER, AT(start)},
                                                  {3, "end", NULL, RPC_NUMBER, AT(end)},
                                                  {4, "query", NULL, RPC_TEXT, AT(label_selector)},
                                                  {0}};
static const struct rpc_field no_fields[] = {{0}};

static const struct {
    const char *name;
    querier_method *run;
    const struct rpc_field *fields;
} methods[] = {
    {"ProfileTypes", querier_profile_types, types_fields},
    {"LabelNames", querier_label_names, names_fields},
    {"LabelValues", querier_label_values, values_fields},
    {"Series", querier_series, series_fields},
    {"SelectMergeStacktraces", querier_merge_stacktraces, merge_fields},
    {"SelectMergeSpanProfile", querier_merge_span, span_fields},
    {"SelectMergeProfile", querier_merge_profile, profile_fields},
    {"SelectSeries", querier_select_series, points_fields},
    {"SelectHeatmap", querier_select_heatmap, heatmap_fields},
    {"Diff", querier_diff, diff_fields},
    {"GetProfileStats", querier_profile_stats, no_fields},
    {"AnalyzeQuery", querier_analyze, analyze_fields},
};

const struct rpc_field *querier_fields(const char *method)
{
    for (size_t i = 0; i < ARRAY_LENGTH(methods); i++)
        if (!strcmp(methods[i].name, method))
            return methods[i].fields;
    return NULL;
}

/* ---- what messages are made of ---- */

static void put_labels(struct call *call, unsigned number, const struct labels *labels)
{
    struct rpc_writer *answer = &call->answer;
    rpc_list(answer, "labels");
    for (size_t i = 0; i < labels->count; i++) {
        if (label_is_internal(labels->list[i].name))
            continue;
        size_t mark = rpc_begin(answer, number, NULL);
        rpc_put_text(answer, 1, "name", labels->list[i].name);
        rpc_put_text(answer, 2, "value", labels->list[i].value);
        rpc_end(answer, mark);
    }
    rpc_list_end(answer);
}

void querier_put_labels(struct call *call, const struct labels *labels)
{
    put_labels(call, 1, labels);
}

void querier_set_type_label(struct labels *labels, const char *name, const char *type)
{
    size_t length;
    const char *value = query_type_value(type, name, &length);
    if (value)
        labels_set_n(labels, name, strlen(name), value, length);
}

void querier_group(const struct rpc_request *request, const struct labels *labels, const char *type,
                   struct labels *ret_group)
{
    for (size_t i = 0; i < request->group_by.count; i++) {
        const char *name = request->group_by.list[i], *value = labels_get(labels, name);
        if (value)
            labels_set(ret_group, name, value);
        else
            querier_set_type_label(ret_group, name, type);
    }
}

int querier_step(const struct rpc_request *request, int64_t *ret_ns, struct error *error)
{
    if (!(request->step >= 0.001 && request->step < 1e9))
        return error_set(error, -EINVAL, "The step is missing, too short or too long.");
    *ret_ns = llround(request->step * 1e9) / MS_NS * MS_NS;
    return 0;
}

int64_t querier_sum(const struct store_profile *window)
{
    int64_t sum = 0;
    for (size_t i = 0; i < window->row_count; i++)
        sum = add_saturated(sum, window->rows[i].value);
    return sum;
}

void querier_put_exemplar(struct call *call, unsigned number, const struct store_exemplar *exemplar,
                          const struct labels *labels)
{
    static const struct profile_link none;
    struct rpc_writer *answer = &call->answer;
    char profile[PROFILE_ID_BYTES] = "", span[17] = "", trace[33] = "";
    if (call->request.exemplar_type == EXEMPLARS_INDIVIDUAL)
        query_profile_id(labels, exemplar->time_ns, profile);
    if (memcmp(exemplar->link.span_id, none.span_id, sizeof(none.span_id)))
        hex_encode(exemplar->link.span_id, sizeof(none.span_id), span);
    if (memcmp(exemplar->link.trace_id, none.trace_id, sizeof(none.trace_id)))
        hex_encode(exemplar->link.trace_id, sizeof(none.trace_id), trace);
    size_t mark = rpc_begin(answer, number, NULL);
    rpc_put_i64(answer, 1, "timestamp", exemplar->time_ns / MS_NS);
    rpc_put_text(answer, 2, "profileId", profile);
    rpc_put_text(answer, 3, "spanId", span);
    rpc_put_i64(answer, 4, "value", exemplar->value);
    put_labels(call, 5, labels);
    rpc_put_text(answer, 6, "traceId", trace);
    rpc_end(answer, mark);
}

int querier_ask(struct call *call, const struct rpc_request *request, const char *selector,
                bool typed, struct query_context *query_context, struct error *error)
{
    int64_t start = MAX(request->start, 0), end = request->end;
    int64_t from = start > INT64_MAX / MS_NS - 1 ? INT64_MAX - 1 : start * MS_NS;
    int64_t to = end <= 0 || end > INT64_MAX / MS_NS - 1 ? INT64_MAX : (end + 1) * MS_NS;
    _cleanup_buffer_ struct buffer text = {0};
    buffer_printf(&text, "%s%s", request->profile_type, selector);
    return query_context_init(query_context, call->http, call->server, buffer_text(&text), from, to,
                              typed, error);
}

/* ---- calls ---- */

void querier_unknown(struct http_request *request, void *server)
{
    (void)server;
    http_respond_code(request, HTTP_UNIMPLEMENTED, "%s is not implemented.",
                      http_request_path(request));
}

/* The same answer to everybody, with protobuf's bytes and as JSON. */
static void respond_fixed(struct http_request *request, const char *wire, const char *json)
{
    static const struct rpc_field none[] = {{0}};
    _cleanup_rpc_ struct rpc_request message;
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    int r = rpc_read(request, none, &message, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    buffer_add_text(&out, message.json ? json : wire);
    rpc_respond(request, &message, &out);
}

/* Grafana's Profiles Drilldown asks for its settings before each flame graph, and says so aloud
 * when it gets none; of an empty list it makes its defaults. */
void querier_no_settings(struct http_request *request, void *server)
{
    (void)server;
    respond_fixed(request, "", "{\"settings\":[]}");
}

/* Optional features of Pyroscope's servers; this one has none of them. */
void querier_no_features(struct http_request *request, void *server)
{
    (void)server;
    respond_fixed(request, "", "{\"featureFlags\":[]}");
}

/* QuerierAPI=1: the version of the query API, of which there has been one. */
void querier_version(struct http_request *request, void *server)
{
    (void)server;
    respond_fixed(request, "\x08\x01", "{\"QuerierAPI\":\"1\"}");
}

void querier_call(struct http_request *request, void *server)
{
    size_t method = 0;
    while (method < ARRAY_LENGTH(methods) && strcmp(methods[method].name, rpc_method(request)))
        method++;
    if (method == ARRAY_LENGTH(methods)) {
        querier_unknown(request, server);
        return;
    }
    _cleanup_answer_ struct answer answer = {0};
    struct call call = {.http = request, .server = server};
    struct error error = {0};
    answer_init(&answer, request, NULL);
    int r = rpc_read(request, methods[method].fields, &call.request, &error);
    answer.content_type = rpc_content_type(&call.request);
    call.answer = rpc_writer(&answer.out, call.request.json);
    if (!r)
        r = methods[method].run(&call, &error);
    r = answer_end(&answer, r, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    for (size_t i = 0; i < call.seen_count; i++)
        labels_release(&call.seen[i]);
    free(call.seen);
    id_table_release(&call.index);
    rpc_release(&call.request);
}
