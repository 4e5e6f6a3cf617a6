// SPDX-License-Identifier: Apache-2.0
// Starts and stops the server, and says which handler answers what.

#include "server/server.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/admit.h"
#include "server/audit.h"
#include "server/web.h"

#define INGEST_BODY 1 /* replaced by the limit that is set */
#define RPC_BODY (1u << 20)
#define SYMBOLS_BODY 2 /* so is this */
#define SYMBOLS_BODY_DEFAULT (2ull << 30)
#define SOURCE_BODY 3 /* and this */
#define MAPS_BODY (256ull << 20)
#define ORDER_BODY (64u << 10)
#define KEEP_HOUSE_MS 5000
#define QUERY_SHARE 12    /* part of the memory limit that the stacks of one query may take */
#define QUERY_SHARE_MAX 8 /* at most: three of these are all that there is for work */
#define MALLOC_ARENAS_MAX 8
#define MALLOC_MAP_BYTES (1 << 20)
#define MALLOC_TRIM_BYTES (4 << 20)
#define MALLOC_TRIM_SECONDS                                                                        \
    10 /* what goes back to the kernel is cleared by it when it is needed                          \
        */
#define HOUSEKEEPING_THREAD "housekeeping" /* by which benchmarks know it */

#define GET_READ(pattern, handler)                                                                 \
    {                                                                                              \
        "GET", pattern, HTTP_ROLE_READ, handler, 0, 0                                              \
    }
#define POST_INGEST(pattern, handler)                                                              \
    {                                                                                              \
        "POST", pattern, HTTP_ROLE_INGEST, handler, INGEST_BODY, HTTP_ROUTE_COMPUTES               \
    }

static const struct http_route routes[] = {
    POST_INGEST("/api/v1/push", receive_push),
    POST_INGEST("/v1development/profiles", receive_otlp),
    POST_INGEST("/ingest", receive_ingest),
    POST_INGEST("/pyroscope/ingest", receive_ingest),
    POST_INGEST("/push.v1.PusherService/Push", receive_connect_push),
    POST_INGEST("/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", receive_parca),
    POST_INGEST("/api/profiles/writeraw", receive_parca),
    POST_INGEST("/v1/profiles", receive_coroot),
    GET_READ("/api/v1/types", api_types),
    GET_READ("/api/v1/labels", api_labels),
    GET_READ("/api/v1/label/*/values", api_label_values),
    GET_READ("/api/v1/series", api_series),
    GET_READ("/api/v1/flame", api_flame),
    GET_READ("/api/v1/profile", api_profile),
    GET_READ("/api/v1/top", api_top),
    GET_READ("/api/v1/callers", api_callers),
    GET_READ("/api/v1/lines", api_lines),
    GET_READ("/api/v1/diff", api_diff),
    {"POST", "/api/v1/files/flame", HTTP_ROLE_READ, api_files_flame, INGEST_BODY, 0},
    {"POST", "/api/v1/files/diff", HTTP_ROLE_READ, api_files_diff, INGEST_BODY, 0},
    GET_READ("/api/v1/timeseries", api_timeseries),
    GET_READ("/api/v1/exemplars", api_exemplars),
    GET_READ("/api/v1/senders", api_senders),
    GET_READ("/api/v1/targets", api_targets),
    GET_READ("/api/v1/health", api_health),
    GET_READ("/api/v1/status/buildinfo", api_build),
    {"GET", "/api/v1/openapi.json", HTTP_ROLE_ANY, api_document, 0, 0},
    {"GET", "/api", HTTP_ROLE_ANY, api_page, 0, 0},
    {"POST", "/querier.v1.QuerierService/*", HTTP_ROLE_READ, querier_call, RPC_BODY, 0},
    {"POST", "/settings.v1.SettingsService/Get", HTTP_ROLE_READ, querier_no_settings, RPC_BODY, 0},
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
    {"GET", "/", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/explore", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/compare", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/function", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/files", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/recordings", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/agents", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/symbols", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/assets/*", HTTP_ROLE_ANY, web_asset, 0, 0},
    {"POST", "/api/v1/debuginfo", HTTP_ROLE_INGEST, symbols_upload, SYMBOLS_BODY, 0},
    {"GET", "/api/v1/debuginfo/*", HTTP_ROLE_INGEST, symbols_known, 0, 0},
    {"POST", "/debuginfo.v1alpha1.DebuginfoService/*", HTTP_ROLE_INGEST, symbols_call, SYMBOLS_BODY,
     0},
    {"POST", "/api/v1/sources", HTTP_ROLE_INGEST, sources_put_list, SOURCE_LIST_BYTES_MAX, 0},
    {"POST", "/api/v1/sources/*", HTTP_ROLE_INGEST, sources_put, SOURCE_BODY, 0},
    GET_READ("/api/v1/source", sources_get),
    GET_READ("/api/v1/source_links", source_links_get),
    GET_READ("/api/v1/symbols", symbols_list),
    GET_READ("/api/v1/symbols/missing", symbols_missing),
    {"DELETE", "/api/v1/symbols/*", HTTP_ROLE_ADMIN, symbols_delete, 0, 0},
    {"POST", "/api/v1/maps", HTTP_ROLE_INGEST, maps_upload, MAPS_BODY, 0},
    GET_READ("/api/v1/maps", maps_list),
    {"DELETE", "/api/v1/maps/*", HTTP_ROLE_ADMIN, maps_delete, 0, 0},
    {"GET", "/buildid/*", HTTP_ROLE_READ, debuginfod_get, 0, 0},
    {"POST", "/api/v1/admin/delete", HTTP_ROLE_ADMIN, admin_delete, 0, 0},
    {"GET", "/api/v1/audit", HTTP_ROLE_ADMIN, admin_audit, 0, 0},
    {"POST", "/api/v1/agents/report", HTTP_ROLE_INGEST, agents_report, AGENT_REPORT_BYTES, 0},
    {"GET", "/api/v1/agents/orders", HTTP_ROLE_INGEST, agents_orders, 0, 0},
    GET_READ("/api/v1/agents", agents_list),
    {"GET", "/api/v1/control", HTTP_ROLE_ADMIN, control_get, 0, 0},
    {"POST", "/api/v1/control", HTTP_ROLE_ADMIN, control_post, ORDER_BODY, 0},
    {"POST", "/api/v1/recordings", HTTP_ROLE_ADMIN, recordings_start, ORDER_BODY, 0},
    GET_READ("/api/v1/recordings", recordings_list),
    GET_READ("/api/v1/recordings/*", recordings_one),
    {"DELETE", "/api/v1/recordings/*", HTTP_ROLE_ADMIN, recordings_stop, 0, 0},
};

static const struct http_route missing = {"GET", "(none)", HTTP_ROLE_ANY, web_missing, 0, 0};

/* All that reads stacks or makes pictures of them; lists are small. */
static bool needs_memory(const struct http_route *route)
{
    static server_handler *const heavy[] = {
        api_flame,   api_profile,     api_top,        api_callers,    api_diff,
        api_lines,   api_timeseries,  api_exemplars,  querier_call,   render,
        render_diff, api_files_flame, api_files_diff, symbols_missing};
    bool needs = route->body_limit_bytes == INGEST_BODY;
    for (size_t i = 0; !needs && i < ARRAY_LENGTH(heavy); i++)
        needs = route->handle == heavy[i];
    return needs;
}

/* Of pushes and queries; NULL: it is none. A star is at the end of their patterns. */
static const struct http_route *find_gated(const struct http_request *request)
{
    const char *path = http_request_path(request);
    for (size_t i = 0; i < ARRAY_LENGTH(routes); i++) {
        const char *pattern = routes[i].pattern;
        size_t length = strcspn(pattern, "*");
        if (needs_memory(&routes[i]) && !strncmp(pattern, path, length) &&
            (pattern[length] || !path[length]))
            return &routes[i];
    }
    return NULL;
}

/* Pushes and queries pass the gate that admit.c is. */
static void admit(struct http_request *request, void *userdata)
{
    const struct http_route *route = find_gated(request);
    if (route && route->roles == HTTP_ROLE_INGEST)
        admit_push(request, userdata, route->handle);
    else if (route)
        admit_query(request, userdata, route->handle);
}

const struct http_route *server_routes(size_t *ret_count)
{
    *ret_count = ARRAY_LENGTH(routes);
    return routes;
}

static void log_access(void *userdata, const struct http_access *access)
{
    struct server *server = userdata;
    _cleanup_buffer_ struct buffer line = {0};
    if (!server->options.access_log)
        return;
    if (log_is_json()) {
        log_begin_json(LOG_INFO, &line);
        buffer_add_text(&line, ",\"message\":\"request\",\"peer\":");
        text_escape_json(&line, access->peer, strlen(access->peer));
        buffer_add_text(&line, ",\"method\":");
        text_escape_json(&line, access->method, strlen(access->method));
        buffer_add_text(&line, ",\"path\":");
        text_escape_json(&line, access->path, strlen(access->path));
        if (access->identity && access->identity->token_name) {
            buffer_add_text(&line, ",\"token\":");
            text_escape_json(&line, access->identity->token_name,
                             strlen(access->identity->token_name));
        }
        buffer_printf(&line, ",\"status\":%u,\"received\":%llu,\"sent\":%llu,\"us\":%lld}",
                      access->status, (unsigned long long)access->bytes_received,
                      (unsigned long long)access->bytes_sent, (long long)access->duration_us);
    } else {
        http_access_line(&line, access);
    }
    log_line(&line);
}

/* ---- what the store finds wrong ---- */

struct problem_list {
    const char *said; /* what was there last time, each between newlines */
    struct buffer now;
};

static int log_problem(void *context, const char *text)
{
    struct problem_list *list = context;
    size_t at = list->now.length;
    buffer_printf(&list->now, "\n%s\n", text);
    if (!list->said || !strstr(list->said, buffer_text(&list->now) + at))
        log_error("%s", text);
    return 0;
}

/* Says each of the store's problems once. */
static void log_problems(struct server *server)
{
    struct problem_list list = {.said = server->problems};
    store_problems(server->store, log_problem, &list, NULL);
    free(server->problems);
    server->problems = memory_strndup(buffer_text(&list.now), list.now.length);
    buffer_release(&list.now);
}

/* ---- the audit log ---- */

static void audit_self(struct server *server, const char *action, const char *outcome)
{
    char actor[AUDIT_ACTOR_BYTES];
    audit_write(server->audit, &(struct audit_entry){.actor = audit_local_actor(actor),
                                                     .action = action,
                                                     .target = "server " ASSAY_VERSION,
                                                     .outcome = outcome});
}

/* Pushes that no handler has seen are refused pushes of their sender all the same. */
static void count_refused(struct server *server, enum http_refusal reason, const char *peer,
                          const struct http_identity *identity, const struct http_request *request)
{
    const struct http_route *route = find_gated(request);
    if (!route || route->roles != HTTP_ROLE_INGEST || !identity || !identity->tenant)
        return;
    const char *agent = http_request_header(request, "User-Agent");
    struct sender seen = {.pushes = 1, .last_ns = clock_ns(CLOCK_REALTIME)};
    seen.refused[reason == HTTP_REFUSED_TOO_LARGE   ? REFUSED_TOO_LARGE
                 : reason == HTTP_REFUSED_RATE      ? REFUSED_RATE
                 : reason == HTTP_REFUSED_SLOW_BODY ? REFUSED_BROKEN_OFF
                                                    : REFUSED_STORE]++;
    snprintf(seen.tenant, SENDER_TEXT_BYTES, "%s", identity->tenant);
    snprintf(seen.name, SENDER_TEXT_BYTES, "%s",
             identity->token_name ? identity->token_name : peer);
    snprintf(seen.agent, SENDER_TEXT_BYTES, "%s", agent ? agent : "");
    senders_add(server->ingest.senders, &seen);
}

static void note_refusal(void *userdata, enum http_refusal reason, const char *peer,
                         const struct http_identity *identity, const struct http_request *request)
{
    struct server *server = userdata;
    if (request && (reason == HTTP_REFUSED_TOO_LARGE || reason == HTTP_REFUSED_RATE ||
                    reason == HTTP_REFUSED_OVERLOAD || reason == HTTP_REFUSED_SLOW_BODY))
        count_refused(server, reason, peer, identity, request);
    if (reason != HTTP_REFUSED_UNAUTHENTICATED && reason != HTTP_REFUSED_FORBIDDEN)
        return;
    audit_note(server->audit,
               &(struct audit_entry){.actor = identity ? identity->token_name : NULL,
                                     .tenant = identity ? identity->tenant : NULL,
                                     .action = "refused",
                                     .target = request ? http_request_path(request) : NULL,
                                     .outcome = http_refusal_name(reason),
                                     .remote = peer});
}

/* Compaction, rollups, retention: a round every few seconds, or at once when there is more. */
static void *keep_house(void *userdata)
{
    struct server *server = userdata;
    int64_t next = monotonic_ns(), trimmed = next;
    char said[ERROR_TEXT_BYTES] = "";
    pthread_setname_np(pthread_self(), HOUSEKEEPING_THREAD);
    while (!atomic_load(&server->stopping)) {
        audit_flush(server->audit);
        control_keep(server->control);
        if (monotonic_ns() >= next) {
            struct error error = {0};
            int r = store_maintain(server->store, &server->stopping, &error);
            if (r < 0 && r != -ECANCELED && strcmp(said, error.text)) {
                log_error("%s", error.text);
                snprintf(said, sizeof(said), "%s", error.text);
            }
            log_problems(server);
            if (monotonic_ns() - trimmed >= MALLOC_TRIM_SECONDS * 1000000000ll) {
                malloc_trim(MALLOC_TRIM_BYTES);
                trimmed = monotonic_ns();
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
    struct store_options store = {.directory = options->data,
                                  .classes = options->classes,
                                  .class_count = options->class_count,
                                  .memory_limit_bytes = options->memory_limit_bytes / 2,
                                  .disk_limit_bytes = options->disk_limit_bytes,
                                  .budget = &server->memory};
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
    for (size_t i = 0; i < ARRAY_LENGTH(routes); i++) {
        if (routes[i].body_limit_bytes == INGEST_BODY)
            server->routes[i].body_limit_bytes = (size_t)options->limits.body_bytes;
        if (routes[i].body_limit_bytes == SYMBOLS_BODY)
            server->routes[i].body_limit_bytes =
                options->symbols.file_bytes ? options->symbols.file_bytes : SYMBOLS_BODY_DEFAULT;
        if (routes[i].body_limit_bytes == SOURCE_BODY)
            server->routes[i].body_limit_bytes = options->symbols.source_file_bytes
                                                     ? options->symbols.source_file_bytes
                                                     : SOURCE_FILE_BYTES_DEFAULT;
        if (routes[i].handle == debuginfod_get && options->symbols.open)
            server->routes[i].roles = HTTP_ROLE_ANY;
        if (needs_memory(&routes[i]))
            server->routes[i].handle = admit;
    }
    struct http_server_options http = {
        .listen = options->listen,
        .listen_count = options->listen_count,
        .insecure = options->insecure,
        .routes = server->routes,
        .route_count = ARRAY_LENGTH(routes),
        .missing = &missing,
        .userdata = server,
        .tls = server->tls,
        .tokens = server->tokens,
        .cors_origin = options->cors_origin,
        .connection_limit = options->connections,
        .connections_per_peer = options->connections_per_address,
        .requests_per_second = options->requests_per_second,
        .idle_timeout_ms = (unsigned)(options->idle_timeout_ns / 1000000),
        .buffer_limit_bytes = MIN(options->memory_limit_bytes / 8, (uint64_t)64 << 20),
        .on_access = log_access,
        .on_refusal = note_refusal,
    };
    return http_server_start(&http, &server->http, error);
}

/* Those of pushes and queries. What needs memory is within the limit that the server was started
 * with. */
static void set_limits(struct server *server, const struct server_options *options)
{
    uint64_t memory = server->options.memory_limit_bytes;
    struct ingest_limits limits = options->limits;
    limits.expansion_bytes = MIN(limits.expansion_bytes, MAX(memory / 4, (uint64_t)8 << 20));
    pthread_rwlock_wrlock(&server->ingest.rules_lock);
    server->ingest.limits = limits;
    pthread_rwlock_unlock(&server->ingest.rules_lock);
    for (size_t i = 0; i < ARRAY_LENGTH(routes); i++)
        if (routes[i].body_limit_bytes == INGEST_BODY)
            http_route_set_body_limit(&server->routes[i], limits.body_bytes);
    uint64_t query =
        options->query_memory_bytes ? options->query_memory_bytes : memory / QUERY_SHARE;
    atomic_store(&server->query_memory_bytes, MIN(query, memory / QUERY_SHARE_MAX));
}

/*
 * How the memory limit is shared: 3/8 work (pushes, queries, housekeeping), 1/4 the store's caches,
 * 1/8 each bodies that come, cumulative profiles seen before, and scraping; symbol indexes that are
 * open and not in use take 1/8 of pages that the kernel can have back. What malloc keeps for
 * itself is held small: every arena can hold as much unused memory as the busiest time needed.
 */
static void share_memory(struct server *server)
{
    uint64_t limit = server->options.memory_limit_bytes;
    budget_init(&server->memory, limit / 8 * 3);
    budget_init(&server->starters, ADMIT_STARTERS);
    set_limits(server, &server->options);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    mallopt(M_ARENA_MAX, (int)MIN(MAX(processors, 2), MALLOC_ARENAS_MAX));
    mallopt(M_MMAP_THRESHOLD, MALLOC_MAP_BYTES);
    mallopt(M_TRIM_THRESHOLD, MALLOC_TRIM_BYTES);
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
    server->ingest.deltas =
        deltas_new(options->delta_memory_bytes ? options->delta_memory_bytes
                                               : options->memory_limit_bytes / 8);
    server->quotas = quotas_new(&options->rate);
    server->options.data = options->in_memory ? NULL : options->data;
    pthread_rwlock_init(&server->ingest.rules_lock, NULL);
    share_memory(server);
    int r = open_store(server, error);
    server->ingest.store = server->store;
    if (!r)
        log_problems(server);
    if (!r && server->options.data)
        r = audit_open(server->options.data, &server->audit, error);
    if (!r)
        r = control_open(server->options.data, &server->control, error);
    server->options.symbols.mapped_bytes = options->memory_limit_bytes / 8;
    server->options.symbols.memory = &server->memory;
    if (!r)
        r = symbols_open(&server->options.symbols, server->options.data, server->store,
                         &server->symbols, error);
    if (!r && options->scrape)
        r = scraper_start(&server->ingest, &server->memory, options->scrape,
                          options->memory_limit_bytes / 8, &server->scraper, error);
    if (!r)
        r = open_http(server, error);
    if (!r)
        r = -pthread_create(&server->keeper, NULL, keep_house, server);
    server->keeper_runs = !r;
    if (r < 0) {
        server_stop(server, 0);
        return r;
    }
    audit_self(server, "start", "done");
    *ret_server = server;
    return 0;
}

void server_stop(struct server *server, unsigned grace_ms)
{
    if (!server)
        return;
    atomic_store(&server->stopping, true);
    http_server_stop(server->http, grace_ms);
    scraper_stop(server->scraper);
    if (server->keeper_runs)
        pthread_join(server->keeper, NULL);
    tokens_free(server->tokens);
    http_tls_free(server->tls);
    symbols_close(server->symbols);
    store_close(server->store);
    if (server->keeper_runs)
        audit_self(server, "stop", "done");
    control_close(server->control);
    audit_close(server->audit);
    budget_release(&server->memory);
    budget_release(&server->starters);
    senders_free(server->ingest.senders);
    deltas_free(server->ingest.deltas);
    quotas_free(server->quotas);
    label_rules_release(&server->ingest.rules);
    pthread_rwlock_destroy(&server->ingest.rules_lock);
    free(server->problems);
    free(server);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_listen(const struct server_options *a, const struct server_options *b)
{
    bool same = a->listen_count == b->listen_count;
    for (size_t i = 0; same && i < a->listen_count; i++)
        same = same_text(a->listen[i], b->listen[i]);
    return same;
}

/* What is other than it was at the start and can't be changed while the server runs. */
static void say_what_needs_a_start(const struct server_options *old,
                                   const struct server_options *new)
{
    const struct {
        const char *name;
        bool same;
    } settings[] = {
        {"listen", same_listen(old, new)},
        {"data", same_text(old->data, new->data) || old->in_memory},
        {"memory_limit", old->memory_limit_bytes == new->memory_limit_bytes},
        {"tls", same_text(old->tls_certificate, new->tls_certificate) &&
                    same_text(old->tls_key, new->tls_key) &&
                    same_text(old->tls_client_ca, new->tls_client_ca)},
        {"tokens", same_text(old->tokens_file, new->tokens_file)},
        {"limits.connections", old->connections == new->connections &&
                                   old->connections_per_address == new->connections_per_address},
        {"limits.requests_per_second", old->requests_per_second == new->requests_per_second},
        {"limits.idle_timeout", old->idle_timeout_ns == new->idle_timeout_ns},
        {"limits.delta_memory", old->delta_memory_bytes == new->delta_memory_bytes},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(settings); i++)
        if (!settings[i].same)
            log_warning("%s is another now: start the server again for that.", settings[i].name);
}

int server_reload(struct server *server, const struct server_options *options,
                  struct label_rules *rules, struct error *error)
{
    struct store_options retention = {.classes = options->classes,
                                      .class_count = options->class_count,
                                      .disk_limit_bytes = options->disk_limit_bytes};
    say_what_needs_a_start(&server->options, options);
    int kept = store_set_retention(server->store, &retention, error);
    if (kept < 0)
        return kept;
    set_limits(server, options);
    quotas_set(server->quotas, &options->rate);
    int scraped = server->scraper ? scraper_reload(server->scraper, options->scrape, error) : 0;
    if (scraped < 0)
        return scraped;
    pthread_rwlock_wrlock(&server->ingest.rules_lock);
    struct label_rules old = server->ingest.rules;
    server->ingest.rules = *rules;
    pthread_rwlock_unlock(&server->ingest.rules_lock);
    *rules = (struct label_rules){0};
    label_rules_release(&old);
    int r = server->tls ? http_tls_reload(server->tls, error) : 0;
    if (!r && server->tokens)
        r = tokens_reload(server->tokens, error);
    audit_self(server, "reload", r < 0 && error ? error->text : "done");
    return r;
}
