/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: store, ingest, queries and API behind one HTTP server, and a thread that keeps the
 * store's house.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "config/settings.h"
#include "http/server.h"
#include "http/tls.h"
#include "server/ingest.h"
#include "store/store.h"

#define SERVER_LISTEN_MAX 8
#define SERVER_DEFAULT_LISTEN "127.0.0.1:4040"
#define SERVER_ROUTES_MAX 64

/* Zero-initialised and filled by server_options_defaults(). Texts are the caller's. */
struct server_options {
    const char *listen[SERVER_LISTEN_MAX];
    size_t listen_count;
    const char *data; /* NULL: in memory, gone at the end */
    uint64_t memory_limit_bytes, disk_limit_bytes;
    bool insecure;
    const char *tls_certificate, *tls_key, *tls_client_ca;
    const char *tokens_file;
    const char *cors_origin;
    unsigned retention_days[STORE_TIERS];
    struct ingest_limits limits;
    uint64_t query_memory_bytes; /* of one query */
    unsigned log_format;         /* enum server_log_format */
    bool access_log;
};

enum server_log_format { SERVER_LOG_TEXT, SERVER_LOG_JSON };

void server_options_defaults(struct server_options *options);

/* Reads the keys of a configuration file; what is wrong is added to the settings' problems. */
void server_options_read(struct server_options *options, struct settings *settings);

struct server {
    struct server_options options;
    struct store *store;
    struct ingest ingest;
    struct http_server *http;
    struct http_route routes[SERVER_ROUTES_MAX]; /* with the limits that are set */
    struct http_tls *tls;
    struct tokens *tokens;
    pthread_t keeper;
    bool keeper_runs;
    atomic_bool stopping;
    int64_t started_ns;
};

/* `rules` are taken over. Serves when it returns 0. */
int server_start(const struct server_options *options, struct label_rules *rules,
                 struct server **ret_server, struct error *error);

/* Ends what runs within `grace_ms`, then closes the store. Takes NULL. */
void server_stop(struct server *server, unsigned grace_ms);

/* Other rules from now on (taken over); certificate and tokens are read again. */
int server_reload(struct server *server, struct label_rules *rules, struct error *error);

/* ---- handlers, by file; all for server.c's table of routes ---- */

typedef void server_handler(struct http_request *request, void *server);

/* receive.c, receive_pyroscope.c */
server_handler receive_push, receive_otlp, receive_ingest, receive_connect_push, receive_parca;
/* api.c */
server_handler api_types, api_labels, api_label_values, api_series, api_senders, api_health,
    api_ready, api_metrics, api_build;
/* api_profiles.c */
server_handler api_flame, api_profile, api_top, api_diff;
/* api_points.c */
server_handler api_timeseries, api_exemplars;
/* querier.c */
server_handler querier_call, querier_unknown;
/* render.c */
server_handler render, render_diff, render_label_values;
