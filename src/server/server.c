// SPDX-License-Identifier: Apache-2.0
// Starts and stops the server, and says which handler answers what.

#include "server/server.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#define INGEST_BODY 1 /* replaced by the limit that is set */
#define RPC_BODY (1u << 20)
#define KEEP_HOUSE_MS 5000

#define GET_READ(pattern, handler)                                                                 \
    {                                                                                              \
        "GET", pattern, HTTP_ROLE_READ, handler, 0, 0                                              \
    }
#define POST_INGEST(pattern, handler)                                                              \
    {                                                                                              \
        "POST", pattern, HTTP_ROLE_INGEST, handler, INGEST_BODY, 0                                 \
    }

static const struct http_route routes[] = {
    POST_INGEST("/api/v1/push", receive_push),
    POST_INGEST("/v1development/profiles", receive_otlp),
    POST_INGEST("/ingest", receive_ingest),
    POST_INGEST("/pyroscope/ingest", receive_ingest),
    POST_INGEST("/push.v1.PusherService/Push", receive_connect_push),
    POST_INGEST("/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", receive_parca),
    POST_INGEST("/api/profiles/writeraw", receive_parca),
    GET_READ("/api/v1/types", api_types),
    GET_READ("/api/v1/labels", api_labels),
    GET_READ("/api/v1/label/*/values", api_label_values),
    GET_READ("/api/v1/series", api_series),
    GET_READ("/api/v1/flame", api_flame),
    GET_READ("/api/v1/profile", api_profile),
    GET_READ("/api/v1/top", api_top),
    GET_READ("/api/v1/diff", api_diff),
    GET_READ("/api/v1/timeseries", api_timeseries),
    GET_READ("/api/v1/exemplars", api_exemplars),
    GET_READ("/api/v1/senders", api_senders),
    GET_READ("/api/v1/health", api_health),
    GET_READ("/api/v1/status/buildinfo", api_build),
    {"POST", "/querier.v1.QuerierService/*", HTTP_ROLE_READ, querier_call, RPC_BODY, 0},
    {"POST", "/settings.v1.*", HTTP_ROLE_READ, querier_unknown, RPC_BODY, 0},
    {"POST", "/vcs.v1.*", HTTP_ROLE_READ, querier_unknown, RPC_BODY, 0},
    {"POST", "/adhocprofiles.v1.*", HTTP_ROLE_READ, querier_unknown, RPC_BODY, 0},
    {"POST", "/capabilities.v1.*", HTTP_ROLE_READ, querier_unknown, RPC_BODY, 0},
    {"POST", "/version.v1.*", HTTP_ROLE_READ, querier_unknown, RPC_BODY, 0},
    GET_READ("/pyroscope/render", render),
    GET_READ("/pyroscope/render-diff", render_diff),
    GET_READ("/pyroscope/label-values", render_label_values),
    GET_READ("/metrics", api_metrics),
    {"GET", "/ready", HTTP_ROLE_ANY, api_ready, 0, 0},
};

static void log_access(void *userdata, const struct http_access *access)
{
    struct server *server = userdata;
    struct buffer line = {0};
    if (!server->options.access_log)
        return;
    if (server->options.log_format == SERVER_LOG_JSON) {
        buffer_add_text(&line, "{\"peer\":");
        text_escape_json(&line, access->peer, strlen(access->peer));
        buffer_printf(&line, ",\"method\":\"%s\",\"path\":", access->method);
        text_escape_json(&line, access->path, strlen(access->path));
        buffer_printf(&line, ",\"status\":%u,\"received\":%llu,\"sent\":%llu,\"us\":%lld}",
                      access->status, (unsigned long long)access->bytes_received,
                      (unsigned long long)access->bytes_sent, (long long)access->duration_us);
    } else {
        http_access_line(&line, access);
    }
    fprintf(stderr, "%s\n", buffer_text(&line));
    buffer_release(&line);
}

/* Compaction, rollups, retention: a round every few seconds, or at once when there is more. */
static void *keep_house(void *userdata)
{
    struct server *server = userdata;
    int64_t next = monotonic_ns();
    char said[ERROR_TEXT_BYTES] = "";
    while (!atomic_load(&server->stopping)) {
        if (monotonic_ns() >= next) {
            struct error error = {0};
            int r = store_maintain(server->store, &server->stopping, &error);
            if (r < 0 && r != -ECANCELED && strcmp(said, error.text)) {
                log_error("%s", error.text);
                snprintf(said, sizeof(said), "%s", error.text);
            }
            next = monotonic_ns() + (r > 0 ? 0 : KEEP_HOUSE_MS * 1000000ll);
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return NULL;
}

static int open_store(struct server *server, struct error *error)
{
    const struct server_options *options = &server->options;
    struct store_class class = {.name = "default"};
    memcpy(class.days, options->retention_days, sizeof(class.days));
    struct store_options store = {.directory = options->data,
                                  .classes = &class,
                                  .class_count = 1,
                                  .memory_limit_bytes = options->memory_limit_bytes / 2,
                                  .disk_limit_bytes = options->disk_limit_bytes};
    return options->data ? store_open_embedded(&store, &server->store, error)
                         : store_open_memory(&store, &server->store, error);
}

_Static_assert(ARRAY_LENGTH(routes) <= SERVER_ROUTES_MAX, "the copy has room for all");

static int open_http(struct server *server, struct error *error)
{
    const struct server_options *options = &server->options;
    int r = 0;
    if (options->tls_certificate)
        r = http_tls_open(options->tls_certificate, options->tls_key, options->tls_client_ca,
                          &server->tls, error);
    if (!r && options->tokens_file)
        r = tokens_open(options->tokens_file, &server->tokens, error);
    if (r < 0)
        return r;
    memcpy(server->routes, routes, sizeof(routes));
    for (size_t i = 0; i < ARRAY_LENGTH(routes); i++)
        if (routes[i].roles == HTTP_ROLE_INGEST)
            server->routes[i].body_limit_bytes = options->limits.body_bytes;
    struct http_server_options http = {
        .listen = options->listen,
        .listen_count = options->listen_count,
        .insecure = options->insecure,
        .routes = server->routes,
        .route_count = ARRAY_LENGTH(routes),
        .userdata = server,
        .tls = server->tls,
        .tokens = server->tokens,
        .cors_origin = options->cors_origin,
        .buffer_limit_bytes = MIN(options->memory_limit_bytes / 8, (uint64_t)64 << 20),
        .on_access = log_access,
    };
    return http_server_start(&http, &server->http, error);
}

int server_start(const struct server_options *options, struct label_rules *rules,
                 struct server **ret_server, struct error *error)
{
    struct server *server = memory_zalloc(1, sizeof(*server));
    server->options = *options;
    server->started_ns = monotonic_ns();
    server->ingest.rules = *rules;
    *rules = (struct label_rules){0};
    server->ingest.limits = options->limits;
    server->ingest.senders = senders_new();
    pthread_rwlock_init(&server->ingest.rules_lock, NULL);
    int r = open_store(server, error);
    server->ingest.store = server->store;
    if (!r)
        r = open_http(server, error);
    if (!r)
        r = -pthread_create(&server->keeper, NULL, keep_house, server);
    server->keeper_runs = !r;
    if (r < 0) {
        server_stop(server, 0);
        return r;
    }
    *ret_server = server;
    return 0;
}

void server_stop(struct server *server, unsigned grace_ms)
{
    if (!server)
        return;
    atomic_store(&server->stopping, true);
    http_server_stop(server->http, grace_ms);
    if (server->keeper_runs)
        pthread_join(server->keeper, NULL);
    tokens_free(server->tokens);
    http_tls_free(server->tls);
    store_close(server->store);
    senders_free(server->ingest.senders);
    label_rules_release(&server->ingest.rules);
    pthread_rwlock_destroy(&server->ingest.rules_lock);
    free(server);
}

int server_reload(struct server *server, struct label_rules *rules, struct error *error)
{
    pthread_rwlock_wrlock(&server->ingest.rules_lock);
    struct label_rules old = server->ingest.rules;
    server->ingest.rules = *rules;
    pthread_rwlock_unlock(&server->ingest.rules_lock);
    *rules = (struct label_rules){0};
    label_rules_release(&old);
    int r = server->tls ? http_tls_reload(server->tls, error) : 0;
    return r < 0 || !server->tokens ? r : tokens_reload(server->tokens, error);
}
