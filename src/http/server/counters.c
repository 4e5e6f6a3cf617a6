// SPDX-License-Identifier: Apache-2.0
// The server's counters, its metrics, and the access log.

#include <stdio.h>

#include "base/text.h"
#include "http/server/internal.h"

static const char *const refusal_names[HTTP_REFUSAL_COUNT] = {
    [HTTP_REFUSED_CONNECTIONS] = "connections",
    [HTTP_REFUSED_IDLE] = "idle",
    [HTTP_REFUSED_SLOW_HEAD] = "slow_head",
    [HTTP_REFUSED_SLOW_BODY] = "slow_body",
    [HTTP_REFUSED_SLOW_READER] = "slow_reader",
    [HTTP_REFUSED_OVERLOAD] = "overload",
    [HTTP_REFUSED_RATE] = "rate",
    [HTTP_REFUSED_TOO_LARGE] = "too_large",
    [HTTP_REFUSED_UNAUTHENTICATED] = "unauthenticated",
    [HTTP_REFUSED_GUESSING] = "guessing",
    [HTTP_REFUSED_FORBIDDEN] = "forbidden",
    [HTTP_REFUSED_MALFORMED] = "malformed",
    [HTTP_REFUSED_FLOOD] = "flood",
    [HTTP_REFUSED_HALF_CLOSED] = "half_closed",
    [HTTP_REFUSED_STOPPING] = "stopping",
};

const char *http_refusal_name(enum http_refusal reason)
{
    return refusal_names[reason];
}

void counters_refused(struct http_server *server, enum http_refusal reason, const char *peer,
                      const struct http_identity *identity, const struct http_request *request)
{
    atomic_fetch_add(&server->refusals[reason], 1);
    if (server->options.on_refusal)
        server->options.on_refusal(server->options.userdata, reason, peer, identity, request);
}

static void add(atomic_uint_least64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

void counters_add(struct http_request *request)
{
    struct http_server *server = request->server;
    bool listed = request->route && request->route != server->options.missing;
    size_t index =
        listed ? (size_t)(request->route - server->options.routes) : server->options.route_count;
    struct route_counters *counters = &server->counters[index];
    int64_t duration_us = http_now_us() - request->began_us;
    add(&counters->status[MIN(request->status, HTTP_STATUS_MAX - 1u)], 1);
    add(&counters->received, request->received);
    add(&counters->sent, request->sent);
    add(&counters->microseconds, (uint64_t)duration_us);
    if (!server->options.on_access)
        return;
    struct http_access access = {
        .peer = request->peer,
        .method = request->method,
        .path = request->path,
        .user_agent = http_request_header(request, "User-Agent"),
        .identity = &request->identity,
        .status = request->status,
        .bytes_received = request->received,
        .bytes_sent = request->sent,
        .duration_us = duration_us,
        .route = listed ? request->route->pattern : NULL,
    };
    server->options.on_access(server->options.userdata, &access);
}

uint64_t http_server_refused(const struct http_server *server, enum http_refusal reason)
{
    return atomic_load(&server->refusals[reason]);
}

size_t http_server_connections(const struct http_server *server)
{
    return atomic_load(&server->connection_count);
}

static void add_labels(struct buffer *out, const struct http_server *server, size_t index)
{
    const struct http_route *routes = server->options.routes;
    bool known = index < server->options.route_count;
    buffer_printf(out, "{method=\"%s\",route=\"%s\"", known ? routes[index].method : "",
                  known ? routes[index].pattern : "");
}

static void add_requests(struct buffer *out, struct http_server *server)
{
    buffer_add_text(out, "# HELP assay_http_requests_total Finished requests.\n# TYPE "
                         "assay_http_requests_total counter\n");
    for (size_t i = 0; i <= server->options.route_count; i++)
        for (unsigned status = 0; status < HTTP_STATUS_MAX; status++) {
            uint64_t count =
                atomic_load_explicit(&server->counters[i].status[status], memory_order_relaxed);
            if (!count)
                continue;
            buffer_add_text(out, "assay_http_requests_total");
            add_labels(out, server, i);
            buffer_printf(out, ",status=\"%u\"} %llu\n", status, (unsigned long long)count);
        }
}

static void add_sums(struct buffer *out, struct http_server *server)
{
    static const struct {
        const char *name, *help;
        size_t offset;
        double scale;
    } sums[] = {
        {"assay_http_received_bytes_total", "Bytes of request bodies.",
         offsetof(struct route_counters, received), 1},
        {"assay_http_sent_bytes_total", "Bytes of response bodies.",
         offsetof(struct route_counters, sent), 1},
        {"assay_http_request_seconds_total",
         "Time from the head of the request to the end of the answer.",
         offsetof(struct route_counters, microseconds), 1e-6},
    };
    for (size_t k = 0; k < ARRAY_LENGTH(sums); k++) {
        buffer_printf(out, "# HELP %s %s\n# TYPE %s counter\n", sums[k].name, sums[k].help,
                      sums[k].name);
        for (size_t i = 0; i <= server->options.route_count; i++) {
            atomic_uint_least64_t *sum = (void *)((char *)&server->counters[i] + sums[k].offset);
            buffer_add_text(out, sums[k].name);
            add_labels(out, server, i);
            buffer_printf(out, "} %.15g\n", (double)atomic_load(sum) * sums[k].scale);
        }
    }
}

void http_server_metrics(struct http_server *server, struct buffer *out)
{
    add_requests(out, server);
    add_sums(out, server);
    buffer_add_text(out, "# HELP assay_http_refused_total Rejected requests and connections, by "
                         "reason.\n# TYPE assay_http_refused_total counter\n");
    for (size_t i = 0; i < HTTP_REFUSAL_COUNT; i++)
        buffer_printf(out, "assay_http_refused_total{reason=\"%s\"} %llu\n", refusal_names[i],
                      (unsigned long long)atomic_load(&server->refusals[i]));
    const struct {
        const char *name, *help;
        size_t value;
    } gauges[] = {
        {"assay_http_connections", "Open connections.", atomic_load(&server->connection_count)},
        {"assay_http2_connections", "Open connections of HTTP/2.",
         atomic_load(&server->h2_connections)},
        {"assay_http2_streams", "Open streams of HTTP/2.", atomic_load(&server->h2_streams)},
        {"assay_http_requests_active", "Unfinished requests.", atomic_load(&server->active_count)},
        {"assay_http_requests_queued", "Requests waiting for a worker.",
         workers_queued(server->workers)},
        {"assay_http_streams", "Streamed answers in progress.", atomic_load(&server->stream_count)},
        {"assay_http_buffer_bytes", "Memory of bodies and streamed answers.",
         atomic_load(&server->budget.used)},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(gauges); i++)
        buffer_printf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %zu\n", gauges[i].name,
                      gauges[i].help, gauges[i].name, gauges[i].name, gauges[i].value);
}

void http_access_line(struct buffer *out, const struct http_access *access)
{
    const char *name = access->identity ? access->identity->token_name : NULL;
    buffer_printf(out, "%s ", access->peer);
    text_escape_terminal(out, name ? name : "-", name ? strlen(name) : 1);
    buffer_add_text(out, " \"");
    text_escape_terminal(out, access->method, strlen(access->method));
    buffer_add_char(out, ' ');
    text_escape_terminal(out, access->path, strlen(access->path));
    buffer_printf(out, "\" %u %llu %llu %.1f ms", access->status,
                  (unsigned long long)access->bytes_received,
                  (unsigned long long)access->bytes_sent, (double)access->duration_us / 1000);
}
