// SPDX-License-Identifier: Apache-2.0
// Starts, reloads and stops the parts of a server.

#include "server/server.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/audit/audit.h"
#include "server/compare/compared.h"
#include "server/internal.h"
#include "server/pyroscope/adhoc.h"
#include "server/rules/live.h"

#define MAINTENANCE_INTERVAL_MS 5000
#define QUERY_SHARE 12    /* part of the memory limit that the stacks of one query may take */
#define QUERY_SHARE_MAX 8 /* at most: three of these are all that there is for work */
#define PROGRAM_BYTES (16 << 20) /* pages of the program and its libraries */
#define MALLOC_ARENAS_MAX 8
#define MALLOC_MAP_BYTES (1 << 20)
#define MALLOC_TRIM_BYTES (4 << 20)
#define MALLOC_TRIM_SECONDS 10  /* memory given back to the kernel is cleared when it is needed */
#define MAINTENANCE_SHARE 0.003 /* of one CPU, besides what each row pays for */
#define SHORTAGE_TRIM_NS 1000000000ll
#define SPAN_SEGMENT_PART 2048 /* of the memory limit: bytes per span that is sorted at once */
#define MAINTENANCE_THREAD "maintenance" /* by which benchmarks know it */

static struct server_process *process_of(struct server *server)
{
    return (struct server_process *)server; /* its first member */
}

static void audit_self(struct server_process *process, const char *action, const char *outcome)
{
    char actor[AUDIT_ACTOR_BYTES];
    audit_write(process->parts.audit, &(struct audit_entry){.actor = audit_local_actor(actor),
                                                            .action = action,
                                                            .target = "server " ASSAY_VERSION,
                                                            .outcome = outcome});
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
static void log_problems(struct server_process *process)
{
    struct problem_list list = {.said = process->problems};
    store_problems(process->parts.store, log_problem, &list, NULL);
    free(process->problems);
    process->problems = memory_strndup(buffer_text(&list.now), list.now.length);
    buffer_release(&list.now);
}

/* Work is held up near the memory limit (budget_watch_process): before that, caches and what malloc
 * keeps for itself are given back. */
static void keep_to_memory_limit(struct server_process *process, int64_t *trimmed_ns)
{
    int64_t now = monotonic_ns();
    if (now - *trimmed_ns < SHORTAGE_TRIM_NS ||
        memory_resident() < process->options.memory_limit_bytes / 4 * 3)
        return;
    store_trim(process->parts.store);
    malloc_trim(0);
    *trimmed_ns = monotonic_ns();
}

/* A round for the spans; returns what maintenance as a whole has come to. */
static int keep_spans(struct server_process *process, char said[ERROR_TEXT_BYTES], int before)
{
    struct error error = {0};
    if (!process->parts.spans)
        return before;
    int r = span_index_maintain(process->parts.spans, &error);
    if (r < 0 && strcmp(said, error.text)) {
        log_error("%s", error.text);
        snprintf(said, ERROR_TEXT_BYTES, "%s", error.text);
    }
    return MAX(before, r);
}

/* Compaction, rollups, retention: a round every few seconds, or at once when there is more. */
static void *maintain(void *userdata)
{
    struct server_process *process = userdata;
    struct server *server = &process->parts;
    int64_t next = monotonic_ns(), trimmed = next;
    char said[ERROR_TEXT_BYTES] = "";
    pthread_setname_np(pthread_self(), MAINTENANCE_THREAD);
    while (!atomic_load(&server->stopping)) {
        audit_flush(server->audit);
        control_keep(server->control);
        keep_to_memory_limit(process, &trimmed);
        if (monotonic_ns() >= next) {
            struct error error = {0};
            int r = store_maintain(server->store, &server->stopping, &error);
            if (r < 0 && r != -ECANCELED && strcmp(said, error.text)) {
                log_error("%s", error.text);
                snprintf(said, sizeof(said), "%s", error.text);
            }
            pins_round(server, clock_ns(CLOCK_REALTIME));
            r = keep_spans(process, said, r);
            log_problems(process);
            if (monotonic_ns() - trimmed >= MALLOC_TRIM_SECONDS * 1000000000ll) {
                malloc_trim(MALLOC_TRIM_BYTES);
                trimmed = monotonic_ns();
            }
            next = monotonic_ns() + (r > 0 ? 0 : MAINTENANCE_INTERVAL_MS * 1000000ll);
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return NULL;
}

static void log_note(void *context, const char *text)
{
    (void)context;
    log_info("%s", text);
}

/* Half of what is left when the program itself is in memory. */
static uint64_t store_memory(uint64_t limit)
{
    return (limit - MIN(limit / 4, (uint64_t)PROGRAM_BYTES)) / 2;
}

static int open_store(struct server_process *process, struct error *error)
{
    const struct server_options *options = &process->options;
    const char *url = options->store ? options->store : options->data;
    struct store_options store = {.classes = options->classes,
                                  .class_count = options->class_count,
                                  .memory_limit_bytes = store_memory(options->memory_limit_bytes),
                                  .disk_limit_bytes = options->disk_limit_bytes,
                                  .maintenance_share = MAINTENANCE_SHARE,
                                  .clock_limit_ns = options->clock_limit_ns,
                                  .note = log_note,
                                  .budget = &process->admissions.memory};
    return store_open(url ? url : "memory:", &store, &process->parts.store, error);
}

static int open_http(struct server_process *process, struct error *error)
{
    const struct server_options *options = &process->options;
    struct server *server = &process->parts;
    int r = 0;
    if (options->tls_certificate)
        r = http_tls_open(options->tls_certificate, options->tls_key, options->tls_client_ca,
                          &process->tls, error);
    if (!r && options->tokens_file)
        r = tokens_open(options->tokens_file, &server->tokens, error);
    if (r < 0)
        return r;
    struct http_server_options http = {
        .listen = options->listen,
        .listen_count = options->listen_count,
        .insecure = options->insecure,
        .http2 = true,
        .tls = process->tls,
        .tokens = server->tokens,
        .cors_origin = options->cors_origin,
        .connection_limit = options->connections,
        .connections_per_peer = options->connections_per_address,
        .requests_per_second = options->requests_per_second,
        .idle_timeout_ms = (unsigned)(options->idle_timeout_ns / 1000000),
        .buffer_limit_bytes = MIN(options->memory_limit_bytes / 8, (uint64_t)64 << 20),
        .answer_limit_bytes = MIN(options->memory_limit_bytes / 8, (uint64_t)64 << 20),
        .on_access = observe_access,
        .on_refusal = observe_refusal,
    };
    routes_init(process, &http);
    return http_server_start(&http, &server->http, error);
}

/* The limits of pushes and queries. Those on memory are within the limit that the server started
 * with. */
static void set_limits(struct server_process *process, const struct server_options *options)
{
    uint64_t memory = process->options.memory_limit_bytes;
    struct ingest_limits limits = options->limits;
    limits.expansion_bytes = MIN(limits.expansion_bytes, MAX(memory / 4, (uint64_t)8 << 20));
    pthread_rwlock_wrlock(&process->ingest.rules_lock);
    process->ingest.limits = limits;
    pthread_rwlock_unlock(&process->ingest.rules_lock);
    routes_set_limits(process, options);
    uint64_t query =
        options->query_memory_bytes ? options->query_memory_bytes : memory / QUERY_SHARE;
    atomic_store(&process->admissions.query_memory_bytes, MIN(query, memory / QUERY_SHARE_MAX));
}

/*
 * How the memory limit is shared: 3/8 work (pushes, queries, maintenance), 1/4 the store's caches,
 * 1/8 each bodies being received, earlier cumulative profiles, and scraping; open symbol indexes
 * that are not in use take 1/8 of pages that the kernel can reclaim. malloc's own reserve is held
 * small: every arena can keep as much unused memory as it needed at its peak.
 * No work begins beside other work where all of it could exceed 7/8 of the limit: the rest is for
 * memory that no account sees.
 */
static void share_memory(struct server_process *process)
{
    uint64_t limit = process->options.memory_limit_bytes;
    admissions_init(&process->admissions, limit / 8 * 3);
#ifndef __SANITIZE_ADDRESS__ /* its shadow and what it quarantines are resident, too */
    budget_watch_process(&process->admissions.memory, limit / 8 * 7);
#endif
    memory_reserve(limit / 2); /* for requests in progress when memory runs out */
    set_limits(process, &process->options);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    mallopt(M_ARENA_MAX, (int)MIN(MAX(processors, 2), MALLOC_ARENAS_MAX));
    /* Less where there is little: what is freed in the middle of a heap stays. */
    mallopt(M_MMAP_THRESHOLD, (int)MIN(limit / 512, (uint64_t)MALLOC_MAP_BYTES));
    mallopt(M_TRIM_THRESHOLD, (int)MIN(limit / 128, (uint64_t)MALLOC_TRIM_BYTES));
}

/* The steps that can't fail, in the order in which the parts need each other. */
static struct server_process *process_new(const struct server_options *options,
                                          struct label_rules *rules)
{
    struct server_process *process = memory_zalloc(1, sizeof(*process));
    uint64_t memory = options->memory_limit_bytes;
    process->lock_fd = -1;
    process->options = *options;
    process->options.data = options->in_memory ? NULL : options->data;
    process->options.symbols.mapped_bytes = memory / 8;
    process->options.symbols.memory = &process->admissions.memory;
    process->ingest.rules = *rules;
    *rules = (struct label_rules){0};
    process->ingest.senders = senders_new();
    process->ingest.deltas =
        deltas_new(options->delta_memory_bytes ? options->delta_memory_bytes : memory / 8);
    process->ingest.quotas = quotas_new(&options->rate);
    refusals_init(&process->ingest.refusals);
    pthread_rwlock_init(&process->ingest.rules_lock, NULL);
    process->parts =
        (struct server){.ingest = &process->ingest,
                        .admissions = &process->admissions,
                        .adhoc = adhoc_new(),
                        .baselines = baselines_new(process->options.data, &options->baselines),
                        .comparisons = memory_zalloc(1, sizeof(struct comparisons)),
                        .span_routes = &process->options.spans.routes,
                        .source_links = options->source_links,
                        .source_link_count = options->source_link_count,
                        .core_hour = options->cost.core_hour,
                        .currency = options->cost.currency,
                        .data = process->options.data,
                        .started_ns = monotonic_ns()};
    share_memory(process);
    return process;
}

/* The embedded store takes the directory that it is in. */
static int take_data(struct server_process *process, struct error *error)
{
    const struct server_options *options = &process->options;
    if (!options->store || !options->data)
        return 0;
    const char *path = options->store;
    path += strncmp(path, "file:", 5) ? 0 : 5;
    path += strncmp(path, "//", 2) ? 0 : 2;
    return strcmp(path, options->data)
               ? file_take_directory(options->data, &process->lock_fd, error)
               : 0;
}

static struct span_options span_options(const struct server_options *options, bool in_memory)
{
    uint64_t memory = options->memory_limit_bytes;
    return (struct span_options){.retention_ns = options->spans.retention_ns,
                                 .clock_limit_ns = options->clock_limit_ns,
                                 .disk_limit_bytes =
                                     in_memory ? MIN(options->spans.disk_limit_bytes, memory / 8)
                                               : options->spans.disk_limit_bytes,
                                 .segment_spans = (size_t)(memory / SPAN_SEGMENT_PART)};
}

static int open_spans(struct server_process *process, struct error *error)
{
    struct span_options options = span_options(&process->options, !process->parts.data);
    return span_index_open(process->parts.data, &options, &process->parts.spans, error);
}

static int apply_pins(struct server *server, struct error *error)
{
    int r = pins_apply(server, error);
    if (r != -ENOTSUP)
        return r;
    /* Another store than the one that had them. */
    log_error("Pins keep nothing: %s", error->text);
    return 0;
}

/* `path` may be NULL. Logs all that is wrong; the rules that were set stay then. */
static int load_rules(struct rules *rules, const char *path, struct error *error)
{
    struct problems problems = {.file = path};
    struct rule_set *set = path ? rule_set_read(path, &problems) : NULL;
    int r = 0;
    if (problems.count) {
        const char *text = buffer_text(&problems.text), *end;
        r = error_set(error, -EINVAL, "The rules are not valid: %.*s", (int)strcspn(text, "\n"),
                      text);
        for (; (end = strchr(text, '\n')); text = end + 1)
            log_error("%.*s", (int)(end - text), text);
    } else {
        rules_set(rules, set);
    }
    problems_release(&problems);
    return r;
}

static int open_parts(struct server_process *process, struct error *error)
{
    const struct server_options *options = &process->options;
    struct server *server = &process->parts;
    int r = take_data(process, error);
    if (!r)
        r = open_store(process, error);
    process->ingest.store = server->store;
    if (!r)
        log_problems(process);
    if (!r && server->data)
        r = audit_open(server->data, &server->audit, error);
    if (!r)
        r = control_open(server->data, &server->control, error);
    if (!r)
        control_limit_agents(server->control, options->memory_limit_bytes / 8);
    if (!r)
        r = watch_open(server, &options->watch, server->data, &server->watch, error);
    if (!r)
        r = rules_open(server, server->data, &server->rules, error);
    if (!r)
        r = load_rules(server->rules, options->rules_file, error);
    if (!r)
        r = saved_open(server->data, &options->pins, &server->saved, error);
    if (!r)
        r = apply_pins(server, error);
    if (!r && options->spans.enabled)
        r = open_spans(process, error);
    if (!r)
        r = symbols_open(&options->symbols, server->data, server->store, &server->symbols, error);
    if (!r && options->scrape)
        r = scraper_start(&process->ingest, &process->admissions.memory, options->scrape,
                          options->memory_limit_bytes / 8, &server->scraper, error);
    return r;
}

int server_start(const struct server_options *options, struct label_rules *rules,
                 struct server **ret_server, struct error *error)
{
    struct server_process *process = process_new(options, rules);
    int r = open_parts(process, error);
    if (!r)
        r = open_http(process, error);
    if (!r)
        r = -pthread_create(&process->maintainer, NULL, maintain, process);
    process->maintains = !r;
    if (!r)
        r = watch_start(process->parts.watch, error);
    if (!r)
        r = rules_start(process->parts.rules, error);
    if (r < 0) {
        server_stop(&process->parts, 0);
        return r;
    }
    audit_self(process, "start", "done");
    *ret_server = &process->parts;
    return 0;
}

static void ingest_release(struct ingest *ingest)
{
    senders_free(ingest->senders);
    deltas_free(ingest->deltas);
    quotas_free(ingest->quotas);
    label_rules_release(&ingest->rules);
    pthread_rwlock_destroy(&ingest->rules_lock);
    refusals_release(&ingest->refusals);
}

void server_stop(struct server *server, unsigned grace_ms)
{
    if (!server)
        return;
    struct server_process *process = process_of(server);
    atomic_store(&server->stopping, true);
    http_server_stop(server->http, grace_ms);
    scraper_stop(server->scraper);
    if (process->maintains)
        pthread_join(process->maintainer, NULL);
    watch_close(server->watch);
    rules_close(server->rules);
    saved_close(server->saved);
    tokens_free(server->tokens);
    http_tls_free(process->tls);
    symbols_close(server->symbols);
    span_index_close(server->spans);
    store_close(server->store);
    if (process->maintains)
        audit_self(process, "stop", "done");
    control_close(server->control);
    audit_close(server->audit);
    admissions_release(&process->admissions);
    adhoc_free(server->adhoc);
    baselines_free(server->baselines);
    free(server->comparisons);
    ingest_release(&process->ingest);
    if (process->lock_fd >= 0)
        close(process->lock_fd);
    free(process->problems);
    free(process);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_templates(const struct template_rules *a, const struct template_rules *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = !strcmp(a->list[i], b->list[i]);
    return same;
}

static bool same_leaks(const struct watch_options *a, const struct watch_options *b)
{
    bool same = a->leaks == b->leaks && a->leak_interval_ns == b->leak_interval_ns &&
                a->leak_range_ns == b->leak_range_ns && a->least_rate == b->least_rate &&
                a->limit_count == b->limit_count;
    for (size_t i = 0; same && i < a->limit_count; i++)
        same = !strcmp(a->limits[i].service, b->limits[i].service) &&
               a->limits[i].bytes == b->limits[i].bytes;
    return same;
}

static bool same_listen(const struct server_options *a, const struct server_options *b)
{
    bool same = a->listen_count == b->listen_count;
    for (size_t i = 0; same && i < a->listen_count; i++)
        same = same_text(a->listen[i], b->listen[i]);
    return same;
}

/* Settings that differ from those at the start and can't change while the server runs. */
static void say_what_needs_a_start(const struct server_options *old,
                                   const struct server_options *new)
{
    const struct {
        const char *name;
        bool same;
    } settings[] = {
        {"listen", same_listen(old, new)},
        {"data", same_text(old->data, new->data) || old->in_memory},
        {"store", same_text(old->store, new->store)},
        {"memory_limit", old->memory_limit_bytes == new->memory_limit_bytes},
        {"tls", same_text(old->tls_certificate, new->tls_certificate) &&
                    same_text(old->tls_key, new->tls_key) &&
                    same_text(old->tls_client_ca, new->tls_client_ca)},
        {"retention_clock_limit", old->clock_limit_ns == new->clock_limit_ns},
        {"tokens", same_text(old->tokens_file, new->tokens_file)},
        {"watch", old->watch.enabled == new->watch.enabled &&
                      old->watch.interval_ns == new->watch.interval_ns &&
                      old->watch.first_look_ns == new->watch.first_look_ns &&
                      old->watch.min_growth == new->watch.min_growth &&
                      old->watch.min_share == new->watch.min_share &&
                      old->watch.cpu == new->watch.cpu &&
                      old->watch.changes == new->watch.changes && same_leaks(&old->watch, &new->watch)},
        {"cost", old->cost.core_hour == new->cost.core_hour &&
                     same_text(old->cost.currency, new->cost.currency)},
        {"spans.enabled", old->spans.enabled == new->spans.enabled},
        {"spans.routes", same_templates(&old->spans.routes, &new->spans.routes)},
        {"limits.connections", old->connections == new->connections &&
                                   old->connections_per_address == new->connections_per_address},
        {"limits.requests_per_second", old->requests_per_second == new->requests_per_second},
        {"limits.idle_timeout", old->idle_timeout_ns == new->idle_timeout_ns},
        {"limits.delta_memory", old->delta_memory_bytes == new->delta_memory_bytes},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(settings); i++)
        if (!settings[i].same)
            log_warning("%s changed; restart the server to apply it.", settings[i].name);
}

int server_reload(struct server *server, const struct server_options *options,
                  struct label_rules *rules, struct error *error)
{
    struct server_process *process = process_of(server);
    struct store_options retention = {.classes = options->classes,
                                      .class_count = options->class_count,
                                      .disk_limit_bytes = options->disk_limit_bytes};
    say_what_needs_a_start(&process->options, options);
    int kept = store_set_retention(server->store, &retention, error);
    if (kept < 0)
        return kept;
    set_limits(process, options);
    if (server->spans) {
        struct span_options spans = span_options(options, !server->data);
        span_index_set_limits(server->spans, &spans);
    }
    quotas_set(process->ingest.quotas, &options->rate);
    int loaded = load_rules(server->rules, options->rules_file, error);
    if (loaded < 0)
        return loaded;
    int scraped = server->scraper ? scraper_reload(server->scraper, options->scrape, error) : 0;
    if (scraped < 0)
        return scraped;
    pthread_rwlock_wrlock(&process->ingest.rules_lock);
    struct label_rules old = process->ingest.rules;
    process->ingest.rules = *rules;
    pthread_rwlock_unlock(&process->ingest.rules_lock);
    *rules = (struct label_rules){0};
    label_rules_release(&old);
    int r = process->tls ? http_tls_reload(process->tls, error) : 0;
    if (!r && server->tokens)
        r = tokens_reload(server->tokens, error);
    audit_self(process, "reload", r < 0 && error ? error->text : "done");
    return r;
}
