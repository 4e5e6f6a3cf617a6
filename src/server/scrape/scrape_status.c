// SPDX-License-Identifier: Apache-2.0
// Status of targets: GET /api/v1/targets, and metrics for Prometheus.

#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "io/json_write.h"
#include "label/quote.h"
#include "server/handler/parameters.h"
#include "server/scrape/scrape_parts.h"

static const char *const health_names[] = {"unknown", "up", "down"};

static const char *const failure_names[SCRAPE_FAILURES] = {
    [FAILED_CONNECT] = "connect", [FAILED_TIMEOUT] = "timeout",     [FAILED_TLS] = "tls",
    [FAILED_STATUS] = "status",   [FAILED_TOO_LARGE] = "too_large", [FAILED_CONTENT] = "content",
    [FAILED_STORE] = "store",     [FAILED_OTHER] = "other",
};

/* ---- targets ---- */

static void write_loop(const struct scrape_loop *loop, int64_t now_ns, struct json_writer *json)
{
    json_write_object(json);
    json_member_text(json, "job", loop->job->name);
    json_member_text(json, "profile", loop->profile->name);
    json_member_text(json, "url", loop->url);
    json_write_key(json, "labels");
    labels_write_json(&loop->labels, json);
    json_member_text(json, "health", health_names[loop->health]);
    json_member_bool(json, "running", loop->run);
    json_member_text(json, "last_error", loop->error ? loop->error : "");
    json_member_fixed(json, "last_scrape", (double)loop->last_ns / 1e9, 3);
    json_member_fixed(json, "last_duration_seconds", (double)loop->duration_ns / 1e9, 3);
    json_member_fixed(json, "next_in_seconds", (double)MAX(loop->due_ns - now_ns, 0ll) / 1e9, 3);
    json_member_fixed(json, "interval_seconds", (double)loop->job->interval_ns / 1e9, 3);
    json_member_unsigned(json, "scrapes", loop->scrapes);
    json_member_unsigned(json, "failures", loop->failures);
    json_member_unsigned(json, "missed", loop->missed);
    json_write_object_end(json);
}

void scraper_write_targets(struct scraper *scraper, const char *tenant, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    int64_t now = monotonic_ns();
    json_write_array(&json);
    pthread_mutex_lock(&scraper->lock);
    for (size_t i = 0; i < scraper->count; i++) {
        const struct scrape_loop *loop = scraper->loops[i];
        if (loop->gone || strcmp(loop->job->tenant, tenant))
            continue;
        json_write_line(&json);
        write_loop(loop, now, &json);
    }
    pthread_mutex_unlock(&scraper->lock);
    json_write_array_end(&json);
}

/* ---- metrics ---- */

static void head(struct buffer *out, const char *name, const char *kind, const char *help)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void number(struct buffer *out, const char *name, const char *kind, const char *help,
                   double value)
{
    head(out, name, kind, help);
    buffer_printf(out, "%s %.17g\n", name, value);
}

/* Loops by job and health; the lock is held. */
static void write_jobs(const struct scraper *scraper, struct buffer *out)
{
    const struct scrape_jobs *jobs = scraper->jobs;
    uint64_t(*counts)[3] = memory_zalloc(MAX(jobs->count, 1u), sizeof(*counts));
    for (size_t i = 0; i < scraper->count; i++) {
        const struct scrape_loop *loop = scraper->loops[i];
        /* Between a reload and what it leads to, loops are of older jobs: those are left out. */
        if (!loop->gone && loop->jobs == jobs)
            counts[loop->job - jobs->list][loop->health]++;
    }
    head(out, "assay_scrape_targets", "gauge", "Profiles of targets, by job and health.");
    for (size_t i = 0; i < jobs->count; i++)
        for (unsigned health = 0; health < ARRAY_LENGTH(health_names); health++) {
            buffer_add_text(out, "assay_scrape_targets{job=");
            label_write_quoted(out, jobs->list[i].name);
            buffer_printf(out, ",health=\"%s\"} %llu\n", health_names[health],
                          (unsigned long long)counts[i][health]);
        }
    free(counts);
}

static void write_deltas(const struct delta_stats *stats, struct buffer *out)
{
    number(out, "assay_delta_series", "gauge", "Series with stored cumulative values.",
           (double)stats->series);
    number(out, "assay_delta_memory_bytes", "gauge", "Memory for cumulative values.",
           (double)stats->bytes);
    number(out, "assay_delta_first_total", "counter", "Profiles without a previous one.",
           (double)stats->first);
    number(out, "assay_delta_restarts_total", "counter", "Profiles after a restart of the process.",
           (double)stats->restarts);
    number(out, "assay_delta_stale_total", "counter", "Profiles older than the previous one.",
           (double)stats->stale);
    number(out, "assay_delta_forgotten_total", "counter", "Series dropped to save memory.",
           (double)stats->forgotten);
}

void scraper_write_metrics(struct scraper *scraper, struct buffer *out)
{
    pthread_mutex_lock(&scraper->lock);
    write_jobs(scraper, out);
    number(out, "assay_scrapes_total", "counter", "Scrapes, including failed ones.",
           (double)scraper->scrapes);
    head(out, "assay_scrape_failures_total", "counter", "Failed scrapes, by reason.");
    for (unsigned i = 0; i < SCRAPE_FAILURES; i++)
        buffer_printf(out, "assay_scrape_failures_total{reason=\"%s\"} %llu\n", failure_names[i],
                      (unsigned long long)scraper->failed[i]);
    number(out, "assay_scrape_missed_total", "counter",
           "Scrapes skipped because the previous one was still running.", (double)scraper->missed);
    number(out, "assay_scrape_bytes_total", "counter", "Bytes of answers.", (double)scraper->bytes);
    number(out, "assay_scrape_duration_seconds_total", "counter", "Total time of scrapes.",
           (double)scraper->busy_ns / 1e9);
    number(out, "assay_scrape_left_out", "gauge", "Profiles of targets above the limit.",
           (double)scraper->over_limit);
    number(out, "assay_scrape_broken_files", "gauge", "Unreadable target files.",
           (double)scraper->broken_files);
    pthread_mutex_unlock(&scraper->lock);
    struct delta_stats stats = deltas_stats(scraper->ingest->deltas);
    write_deltas(&stats, out);
}

void api_targets(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct buffer out = {0};
    if (!parameters_known(request, "/api/v1/targets"))
        return;
    scraper_write_targets(server->scraper, http_request_identity(request)->tenant, &out);
    buffer_add_char(&out, '\n');
    http_respond_header(request, "Cache-Control", "no-store");
    http_respond(request, 200, "application/json", &out);
    buffer_release(&out);
}
