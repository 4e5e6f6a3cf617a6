// SPDX-License-Identifier: Apache-2.0
// Pyroscope's merged profiles: flame graphs, trees, graphs of calls, pprof, and differences.

#include <string.h>

#include "format/pprof/pprof.h"
#include "io/base64.h"
#include "io/wire.h"
#include "server/pyroscope/flamebearer.h"
#include "server/pyroscope/querier.h"

#define DOT_FUNCTIONS 80
#define PIECE_BYTES (64u << 10)

enum { FORMAT_TREE = 2, FORMAT_DOT, FORMAT_PPROF };

static int add_links(struct query_links *links, enum query_link_kind kind,
                     const struct rpc_texts *texts, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < texts->count; i++)
        r = query_links_add(links, kind, texts->list[i], error);
    return r;
}

/* The period and time of Pyroscope's answers: a period by the type's name, and the end of the
 * requested range. The parts into which the sample labels divide a push all have its duration, so
 * their sum would be too long. */
static void describe(struct profile *profile, const char *type, int64_t end_ms)
{
    size_t name_length, type_length, unit_length;
    const char *name = query_type_part(type, 0, &name_length);
    const char *period_type = query_type_part(type, 3, &type_length);
    const char *period_unit = query_type_part(type, 4, &unit_length);
    bool cpu = name_length == 11 && !memcmp(name, "process_cpu", 11);
    bool memory = name_length == 6 && !memcmp(name, "memory", 6);
    profile->period = cpu ? 1000000000 : memory ? 512 * 1024 : 1;
    profile->period_type.type = profile_string(profile, period_type, type_length);
    profile->period_type.unit = profile_string(profile, period_unit, unit_length);
    if (end_ms > 0 && end_ms <= INT64_MAX / MS_NS)
        profile->time_ns = end_ms * MS_NS;
    profile->duration_ns = 0;
}

static int merge_all(struct call *call, const struct rpc_request *request, struct profile *profile,
                     struct error *error)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    struct store_quality quality = {0};
    int r = querier_ask(call, request, request->label_selector, true, &query_context, error);
    if (!r)
        r = add_links(&query_context.links, QUERY_SPAN, &request->spans, error);
    if (!r)
        r = add_links(&query_context.links, QUERY_TRACE, &request->traces, error);
    if (!r)
        r = add_links(&query_context.links, QUERY_PROFILE, &request->profiles, error);
    if (!r)
        r = query_context_merge(&query_context, profile, &quality, error);
    if (!r)
        describe(profile, query_context.query.type, request->end);
    return r;
}

static int merge(struct call *call, const struct rpc_request *request, enum profile_detail detail,
                 struct profile *profile, struct error *error)
{
    profile_init(profile, detail);
    if (!querier_stacks_selected(request->stack))
        return merge_all(call, request, profile, error);
    _cleanup_profile_ struct profile all;
    profile_init(&all, detail);
    int r = merge_all(call, request, &all, error);
    if (!r)
        querier_select_stacks(request->stack, &all, profile);
    return r;
}

static uint32_t node_limit(int64_t nodes)
{
    return nodes <= 0 ? FLAMEBEARER_NODES : (uint32_t)MAX(MIN(nodes, FLAMEBEARER_NODES_MAX), 2);
}

/* ---- answers ---- */

/* The existing text, not copied. */
static void put_pieces(struct call *call, const char *data, size_t length)
{
    struct buffer *out = call->answer.out;
    for (size_t at = 0, piece; at < length && buffer_pass(out); at += piece) {
        piece = MIN(length - at, (size_t)PIECE_BYTES);
        buffer_add(out, data + at, piece);
    }
}

/* A message whose only field is `value`: JSON in JSON, and otherwise bytes or a message. */
static void put_only(struct call *call, unsigned number, const char *key,
                     const struct buffer *value)
{
    struct rpc_writer *answer = &call->answer;
    rpc_open(answer);
    if (answer->is_json) {
        json_write_key(&answer->json, key);
        json_write_value(&answer->json);
        put_pieces(call, value->data, value->length);
    } else if (value->length) {
        wire_put_tag(answer->out, number, WIRE_BYTES);
        wire_put_varint(answer->out, value->length);
        put_pieces(call, value->data, value->length);
    }
    rpc_close(answer);
}

static int put_tree(struct call *call, const struct profile *profile, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    _cleanup_buffer_ struct buffer bytes = {0}, text = {0};
    calltree_init(&tree);
    int r = calltree_add(&tree, profile, CALLTREE_NEW, error);
    if (r < 0)
        return r;
    calltree_limit(&tree, node_limit(call->request.max_nodes));
    flamebearer_write_tree(&tree, &bytes);
    if (call->request.json) {
        buffer_add_char(&text, '"');
        base64_encode(bytes.data, bytes.length, &text);
        buffer_add_char(&text, '"');
    }
    put_only(call, 2, "tree", call->request.json ? &text : &bytes);
    return 0;
}

static int put_pprof(struct call *call, const struct profile *profile, struct error *error)
{
    _cleanup_buffer_ struct buffer bytes = {0}, head = {0};
    int r = pprof_write(&bytes, profile, &(struct write_options){.type = -1}, error);
    if (r < 0)
        return r;
    struct rpc_writer *answer = &call->answer;
    struct buffer *out = answer->out;
    if (answer->is_json) {
        rpc_open(answer);
        rpc_begin(answer, 5, "pprof");
        json_write_key(&answer->json, "profile");
        r = protojson_profile(bytes.data, bytes.length, json_write_value(&answer->json), error);
        rpc_end(answer, 0);
        rpc_close(answer);
        return r;
    }
    wire_put_tag(&head, 1, WIRE_BYTES);
    wire_put_varint(&head, bytes.length);
    wire_put_tag(out, 5, WIRE_BYTES);
    wire_put_varint(out, head.length + bytes.length);
    buffer_add(out, head.data, head.length);
    put_pieces(call, bytes.data, bytes.length);
    return 0;
}

static void put_dot(struct call *call, const struct profile *profile)
{
    _cleanup_buffer_ struct buffer graph = {0}, text = {0};
    int64_t nodes = call->request.max_nodes;
    dot_write(profile, nodes > 0 ? (size_t)MIN(nodes, (int64_t)10000) : DOT_FUNCTIONS, &graph);
    if (call->request.json)
        json_put_text(&text, buffer_text(&graph));
    put_only(call, 3, "dot", call->request.json ? &text : &graph);
}

static int put_flame(struct call *call, struct calltree *tree, int64_t nodes)
{
    _cleanup_flamebearer_ struct flamebearer flame;
    struct rpc_writer *answer = &call->answer;
    flamebearer_init(&flame, tree, nodes);
    if (answer->is_json) {
        rpc_open(answer);
        json_write_key(&answer->json, "flamegraph");
        flamebearer_write_json(&flame, &answer->json);
        rpc_close(answer);
    } else {
        _cleanup_buffer_ struct buffer content = {0};
        flamebearer_write_wire(&flame, &content);
        put_only(call, 1, "flamegraph", &content);
    }
    return 0;
}

int querier_merge_stacktraces(struct call *call, struct error *error)
{
    _cleanup_profile_ struct profile profile = {0};
    _cleanup_calltree_ struct calltree tree;
    struct rpc_request *request = &call->request;
    calltree_init(&tree);
    /* Grafana's app makes do with a flame graph after this, but with nothing after other errors. */
    if (request->format > FORMAT_PPROF || request->format < 0)
        return error_set(error, -ENOSYS, "Unsupported format; use FLAMEGRAPH, TREE, DOT or PPROF.");
    int r = merge(call, request, request->format == FORMAT_PPROF ? format_pprof.detail : 0,
                  &profile, error);
    if (r < 0)
        return r;
    if (request->format == FORMAT_TREE)
        return put_tree(call, &profile, error);
    if (request->format == FORMAT_PPROF)
        return put_pprof(call, &profile, error);
    if (request->format == FORMAT_DOT) {
        put_dot(call, &profile);
        return 0;
    }
    r = calltree_add(&tree, &profile, CALLTREE_NEW, error);
    return r < 0 ? r : put_flame(call, &tree, request->max_nodes);
}

int querier_merge_span(struct call *call, struct error *error)
{
    if (!call->request.spans.count)
        return error_set(error, -EINVAL, "The request has no spans.");
    return querier_merge_stacktraces(call, error);
}

int querier_merge_profile(struct call *call, struct error *error)
{
    _cleanup_profile_ struct profile profile = {0};
    _cleanup_buffer_ struct buffer bytes = {0};
    bool json = call->request.json;
    int r = merge(call, &call->request, format_pprof.detail, &profile, error);
    if (!r)
        r = pprof_write(json ? &bytes : call->answer.out, &profile,
                        &(struct write_options){.type = -1}, error);
    return r < 0 || !json ? r
                          : protojson_profile(bytes.data, bytes.length, call->answer.out, error);
}

int querier_diff(struct call *call, struct error *error)
{
    _cleanup_profile_ struct profile left = {0}, right = {0};
    _cleanup_calltree_ struct calltree tree;
    struct rpc_request *request = &call->request;
    calltree_init(&tree);
    if (!request->left || !request->right)
        return error_set(error, -EINVAL, "A diff requires left and right.");
    int r = merge(call, request->left, 0, &left, error);
    if (!r)
        r = merge(call, request->right, 0, &right, error);
    if (!r)
        r = calltree_add(&tree, &right, CALLTREE_NEW, error);
    if (!r)
        r = calltree_add(&tree, &left, CALLTREE_BASE, error);
    if (!r && tree.type_count > 1)
        r = error_set(error, -EINVAL, "Profiles of different types can't be compared.");
    return r < 0 ? r : put_flame(call, &tree, request->left->max_nodes);
}
