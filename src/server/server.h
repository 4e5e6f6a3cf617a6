/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: store, ingest, queries and API behind one HTTP server, and a thread that keeps the
 * store's house.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/budget.h"
#include "base/error.h"
#include "config/settings.h"
#include "http/server.h"
#include "http/tls.h"
#include "server/control.h"
#include "server/ingest.h"
#include "server/quota.h"
#include "server/scrape.h"
#include "server/symbols.h"
#include "store/store.h"

#define SERVER_LISTEN_MAX 8
#define SERVER_DEFAULT_LISTEN "127.0.0.1:4040"
#define SERVER_ROUTES_MAX 96
#define SERVER_CLASSES_MAX 32

/* Zero-initialised and filled by server_options_defaults(). Texts are the caller's. */
struct server_options {
    const char *listen[SERVER_LISTEN_MAX];
    size_t listen_count;
    const char *data;
    bool in_memory; /* whatever `data` says: gone at the end */
    uint64_t memory_limit_bytes, disk_limit_bytes;
    bool insecure;
    const char *tls_certificate, *tls_key, *tls_client_ca;
    const char *tokens_file;
    const char *cors_origin;
    struct store_class classes[SERVER_CLASSES_MAX]; /* the last is for all other services */
    size_t class_count;
    const char **class_services; /* what the classes' lists are parts of; owned */
    struct ingest_limits limits;
    struct quota_limits rate;
    uint64_t delta_memory_bytes; /* for the last values of cumulative types */
    struct scrape_jobs *scrape;  /* owned; NULL: none */
    uint64_t query_memory_bytes; /* of one query */
    struct symbols_options symbols;
    struct source_link *source_links; /* owned; as they stand in the file */
    size_t source_link_count;
    /* As in http/server.h; 0: what stands there. */
    uint64_t connections, connections_per_address, requests_per_second;
    int64_t idle_timeout_ns;
    unsigned log_format; /* enum server_log_format */
    bool access_log;
};

enum server_log_format { SERVER_LOG_TEXT, SERVER_LOG_JSON };

void server_options_defaults(struct server_options *options);

/* Reads the keys of a configuration file; what is wrong is added to the settings' problems. */
void server_options_read(struct server_options *options, struct settings *settings);
void server_options_release(struct server_options *options);

struct server {
    struct server_options options;
    struct store *store;
    struct ingest ingest;
    struct http_server *http;
    struct http_route routes[SERVER_ROUTES_MAX]; /* with the limits that are set */
    struct http_tls *tls;
    struct tokens *tokens;
    struct audit *audit;    /* NULL: in memory only */
    struct budget memory;   /* of pushes, queries and housekeeping */
    struct budget starters; /* see admit.c; of queries, not bytes */
    _Atomic uint64_t query_memory_bytes;
    _Atomic uint64_t pushes_without_memory;
    struct quotas *quotas;
    struct scraper *scraper;
    struct control *control;
    struct symbols *symbols;
    pthread_t keeper;
    bool keeper_runs;
    atomic_bool stopping;
    int64_t started_ns;
    char *problems; /* of the store, those that were logged already */
};

/* `rules` are taken over. Serves when it returns 0. */
int server_start(const struct server_options *options, struct label_rules *rules,
                 struct server **ret_server, struct error *error);

/* Ends what runs within `grace_ms`, then closes the store. Takes NULL. */
void server_stop(struct server *server, unsigned grace_ms);

/* Other rules (taken over), limits of pushes and queries, rates, retention, disk limit and targets
 * from now on; certificate and tokens are read again. What else differs in `options` needs another
 * start, which the log says. */
int server_reload(struct server *server, const struct server_options *options,
                  struct label_rules *rules, struct error *error);

/* Notes in the audit log what a request did. */
void server_audit(struct server *server, struct http_request *request, const char *action,
                  const char *target, const char *outcome);

/* All routes, for the test that compares them with docs/openapi.json. */
const struct http_route *server_routes(size_t *ret_count);

/* ---- handlers, by file; all for server.c's table of routes ---- */

typedef void server_handler(struct http_request *request, void *server);

/* receive.c */
server_handler receive_push, receive_otlp;
/* receive_ingest.c, receive_series.c */
server_handler receive_ingest, receive_connect_push, receive_parca, receive_coroot;
/* api.c */
server_handler api_types, api_labels, api_label_values, api_series, api_senders, api_health,
    api_ready, api_build;
/* scrape_status.c */
server_handler api_targets;
/* api_metrics.c */
server_handler api_metrics;
/* api_profiles.c */
server_handler api_flame, api_profile, api_top, api_callers;
/* api_lines.c */
server_handler api_lines;
/* api_document.c */
server_handler api_document, api_page;
/* api_diff.c */
server_handler api_diff;
/* api_files.c */
server_handler api_files_flame, api_files_diff;
/* api_points.c, api_exemplars.c */
server_handler api_timeseries, api_exemplars;
/* admit.c: runs the handler of a push or a query when there is memory for it. */
void admit_push(struct http_request *request, void *server, server_handler *handler);
void admit_query(struct http_request *request, void *server, server_handler *handler);
/* admin.c */
server_handler admin_delete, admin_audit;
/* agents_api.c, control_api.c, recordings_api.c */
server_handler agents_report, agents_orders, agents_list, control_get, control_post,
    recordings_start, recordings_list, recordings_one, recordings_stop;
/* symbols_api.c, symbols_pyroscope.c, symbols_debuginfod.c */
server_handler symbols_upload, symbols_known, symbols_list, symbols_missing, symbols_delete,
    symbols_call, debuginfod_get;
/* sources_api.c, source_links.c */
server_handler sources_put_list, sources_put, sources_get, source_links_get;
/* maps_api.c */
server_handler maps_upload, maps_list, maps_delete;
/* querier.c */
server_handler querier_call, querier_unknown, querier_no_settings;
/* render.c */
server_handler render, render_diff, render_label_values;
