// SPDX-License-Identifier: Apache-2.0
// Whether the server does its work, now and in the last minute: for load balancers, for operators
// and for its page.

#include "server/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "server/handler/handler.h"
#include "server/handler/parameters.h"
#include "server/watch/watch.h"

#define MINUTE_NS 60000000000ll

/* ---- readiness ---- */

/* Ready is who can take pushes: others can go to another server meanwhile, or wait. */
void api_ready(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    if (atomic_load(&server->stopping))
        http_respond_error(request, 503, "The server is shutting down.");
    else if (store_writable(server->store, &error) < 0)
        http_respond_error(request, 503, "The server doesn't accept pushes; see /api/v1/health.");
    else
        http_respond_text(request, 200, "text/plain", "ready\n");
}

/* ---- health ---- */

struct health {
    struct buffer problems;  /* values of a JSON array */
    struct json_writer list; /* writes them */
    const char *tenant;      /* who asks; the first one may know of all */
    bool all;
    char folder[STORE_TENANT_BYTES_MAX + 3]; /* of the tenant, as it stands in paths */
    int64_t now_ns;
};

static void add_problem(struct health *health, const char *text)
{
    json_write_text(&health->list, text);
}

/* Sentences name files, and directories are called after tenants, so each tenant sees only its
 * own. */
static int list_problem(void *context, const char *text)
{
    struct health *health = context;
    if (health->all || strstr(text, health->folder))
        add_problem(health, text);
    return 0;
}

static void list_capped(void *context, const struct cardinality_stats *stats)
{
    struct health *health = context;
    char text[ERROR_TEXT_BYTES];
    if (!stats->refused_ns || health->now_ns - stats->refused_ns > MINUTE_NS ||
        (!health->all && strcmp(stats->tenant, health->tenant)))
        return;
    snprintf(text, sizeof(text),
             "Label %.100s of tenant %.64s has reached its limit of %u values: new values are "
             "stored as \"" LABEL_OTHER "\" (labels.max_values_per_name).",
             stats->name, stats->tenant, stats->values);
    add_problem(health, text);
}

static void list_refusals(struct health *health, uint64_t refused, const char *latest)
{
    char text[2 * ERROR_TEXT_BYTES];
    if (!refused)
        return;
    snprintf(text, sizeof(text), "%llu pushes were rejected in the last minute%s%s",
             (unsigned long long)refused, health->all ? "; the latest: " : ".",
             health->all ? latest : "");
    add_problem(health, text);
}

static void write_store(struct json_writer *json, const struct server *server,
                        const struct store_stats *stats, bool writable)
{
    uint64_t bytes = 0;
    for (int i = 0; i < STORE_TIERS; i++)
        bytes += stats->bytes[i];
    json_write_key(json, "store");
    json_write_object(json);
    json_member_text(json, "kind", store_engine(server->store));
    json_member_unsigned(json, "samples", stats->rows);
    json_member_unsigned(json, "windows", stats->windows);
    json_member_unsigned(json, "series", stats->series);
    json_member_unsigned(json, "bytes", bytes);
    json_member_unsigned(json, "fresh_blocks", stats->fresh_blocks);
    json_member_unsigned(json, "free_bytes", stats->free_bytes);
    json_member_bool(json, "writable", writable);
    json_member_unsigned(json, "write_failures", stats->write_failures);
    json_member_unsigned(json, "shed_files", stats->shed_files);
    json_member_unsigned(json, "damaged_files", stats->damaged_files);
    json_write_object_end(json);
}

void api_health(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    struct store_stats stats = {0};
    struct health health = {.tenant = http_request_identity(request)->tenant,
                            .now_ns = clock_ns(CLOCK_REALTIME)};
    char latest[ERROR_TEXT_BYTES];
    if (!parameters_known(request, "/api/v1/health"))
        return;
    health.list = json_writer(&health.problems);
    snprintf(health.folder, sizeof(health.folder), "/%s/", health.tenant);
    health.all = !strcmp(health.tenant, TOKEN_DEFAULT_TENANT);
    int r = store_stats(server->store, &stats, &error);
    if (!r)
        r = store_problems(server->store, list_problem, &health, &error);
    if (!r && server->spans)
        r = span_index_problems(server->spans, list_problem, &health);
    if (health.all && server->watch && watch_damaged(server->watch)) {
        char text[ERROR_TEXT_BYTES];
        snprintf(
            text, sizeof(text),
            "Marks and findings begin anew: their file was damaged and is now %.300s. Remove it "
            "if it isn't needed.",
            watch_damaged(server->watch));
        add_problem(&health, text);
    }
    bool writable = store_writable(server->store, &error) >= 0;
    uint64_t refused = refusals_recent(&server->ingest->refusals, monotonic_ns(), latest);
    list_refusals(&health, refused, latest);
    pthread_rwlock_rdlock(&server->ingest->rules_lock);
    cardinality_each(label_policy_cardinality(server->ingest->rules.policy), list_capped, &health);
    pthread_rwlock_unlock(&server->ingest->rules_lock);
    const char *status = r < 0                                 ? "failing"
                         : health.problems.length || !writable ? "degraded"
                                                               : "ok";
    struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    json_write_object(&json);
    json_member_text(&json, "status", status);
    json_member_text(&json, "version", ASSAY_VERSION);
    json_member_fixed(&json, "uptime_seconds", (double)(monotonic_ns() - server->started_ns) / 1e9,
                      0);
    write_store(&json, server, &stats, writable);
    json_member_unsigned(&json, "pushes_refused", refused);
    json_write_key(&json, "problems");
    json_write_array(&json);
    if (health.problems.length)
        json_write_raw(&json, buffer_text(&health.problems), health.problems.length);
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    http_respond_header(request, "Cache-Control", "no-store");
    http_respond(request, r < 0 ? 503 : 200, "application/json", &out);
    buffer_release(&out);
    buffer_release(&health.problems);
}
