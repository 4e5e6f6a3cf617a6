/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: store, ingest, queries and API behind one HTTP server, and a thread for the store's
 * maintenance. src/server/handler/handler.h has struct server, the parts that handlers use.
 */
#pragma once

#include "base/error.h"
#include "config/settings.h"
#include "http/server/server.h"
#include "server/compare/baselines.h"
#include "server/control/control.h"
#include "server/ingest/ingest.h"
#include "server/ingest/quota.h"
#include "server/rules/rules.h"
#include "server/saved/saved.h"
#include "server/scrape/scrape.h"
#include "server/symbols/api/source_links.h"
#include "server/symbols/symbols.h"
#include "server/watch/watch.h"
#include "spans/index.h"
#include "spans/template.h"
#include "store/store.h"

#define SERVER_LISTEN_MAX 8
#define SERVER_DEFAULT_LISTEN "127.0.0.1:4040"
#define SERVER_CLASSES_MAX 32

/* Zero-initialised and filled by server_options_defaults(). Texts are the caller's. */
struct server_options {
    const char *listen[SERVER_LISTEN_MAX];
    size_t listen_count;
    const char *otlp_listen; /* one more address, OTLP's own; NULL: none. It serves the same. */
    const char *data;
    bool in_memory;    /* ignores `data`; everything is lost at the end */
    const char *store; /* URL of the profiles' store: see store_open(). NULL: in `data` */
    uint64_t memory_limit_bytes, disk_limit_bytes;
    bool insecure;
    const char *tls_certificate, *tls_key, *tls_client_ca;
    const char *tokens_file;
    const char *cors_origin;
    struct store_class classes[SERVER_CLASSES_MAX]; /* the last is for all other services */
    size_t class_count;
    int64_t clock_limit_ns;      /* see store_options */
    const char **class_services; /* what the classes' lists are parts of; owned */
    struct ingest_limits limits;
    struct quota_limits rate;
    struct baselines_limits baselines;
    struct watch_options watch;
    struct watch_limit *memory_limits; /* what the watch's are; owned */
    struct saved_limits pins;
    const char *rules_file; /* NULL: no rules */
    struct {
        double core_hour; /* money; 0: not set */
        const char *currency;
    } cost;
    struct {
        bool enabled;
        int64_t retention_ns;
        uint64_t disk_limit_bytes;
        struct template_rules routes; /* owned */
    } spans;
    uint64_t delta_memory_bytes; /* for the last values of cumulative types */
    struct scrape_jobs *scrape;  /* owned; NULL: none */
    uint64_t query_memory_bytes; /* of one query */
    struct symbols_options symbols;
    struct source_link *source_links; /* owned; as they stand in the file */
    size_t source_link_count;
    /* As in http/server/server.h; 0: what stands there. */
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

/* `rules` are taken over. Serves when it returns 0. */
int server_start(const struct server_options *options, struct label_rules *rules,
                 struct server **ret_server, struct error *error);

/* Ends what runs within `grace_ms`, then closes the store. Takes NULL. */
void server_stop(struct server *server, unsigned grace_ms);

/* Applies other rules (takes ownership), the file of SLIs, limits of pushes and queries, rates, retention, disk limit
 * and targets; reads certificate and tokens again. Other differences in `options` need a restart,
 * which the log says. */
int server_reload(struct server *server, const struct server_options *options,
                  struct label_rules *rules, struct error *error);

/* All routes, for the test that compares them with docs/openapi.json: method, pattern and roles. */
size_t server_route_count(void);
struct http_route server_route_at(size_t index);
