// SPDX-License-Identifier: Apache-2.0
// Metrics for Prometheus.

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/compare/baselines.h"
#include "server/compare/compared.h"
#include "server/internal.h"
#include "server/rules/live.h"
#include "server/scrape/scrape.h"
#include "server/watch/watch.h"

static void metric(struct buffer *out, const char *name, const char *kind, const char *help,
                   double value)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, kind, name,
                  value);
}

static void ingest_metrics(struct server *server, struct buffer *out)
{
    struct sender total = senders_total(server->ingest->senders);
    metric(out, "assay_ingest_pushes_total", "counter", "Pushes, including rejected ones.",
           (double)total.pushes);
    metric(out, "assay_ingest_repeats_total", "counter", "Duplicate pushes.",
           (double)total.repeats);
    metric(out, "assay_ingest_windows_total", "counter", "Stored windows of series.",
           (double)total.windows);
    metric(out, "assay_ingest_samples_total", "counter", "Stored samples.", (double)total.rows);
    metric(out, "assay_ingest_exemplars_total", "counter", "Stored exemplars.",
           (double)total.exemplars);
    metric(out, "assay_ingest_clock_corrections_total", "counter", "Profiles with corrected times.",
           (double)total.corrected);
    metric(out, "assay_ingest_stacks_cut_total", "counter", "Samples with a truncated stack.",
           (double)total.cut);
    buffer_add_text(out, "# HELP assay_ingest_refused_total Rejected pushes, by reason.\n# TYPE "
                         "assay_ingest_refused_total counter\n");
    for (int i = 0; i < INGEST_REFUSALS; i++)
        buffer_printf(out, "assay_ingest_refused_total{reason=\"%s\"} %llu\n",
                      ingest_refusal_name((enum ingest_refusal)i),
                      (unsigned long long)total.refused[i]);
    uint64_t counts[LABEL_REASONS];
    pthread_rwlock_rdlock(&server->ingest->rules_lock);
    label_policy_counts(server->ingest->rules.policy, counts);
    redactor_write_metrics(server->ingest->rules.redactor, "assay_redactions_total", out);
    pthread_rwlock_unlock(&server->ingest->rules_lock);
    metric(out, "assay_ingest_capped_series_total", "counter",
           "Series with labels above the limit of distinct names or values.", (double)total.capped);
    buffer_add_text(out, "# HELP assay_labels_changed_total Labels dropped or changed, by reason.\n"
                         "# TYPE assay_labels_changed_total counter\n");
    for (int i = 0; i < LABEL_REASONS; i++)
        buffer_printf(out, "assay_labels_changed_total{reason=\"%s\"} %llu\n",
                      label_reason_name((enum label_reason)i), (unsigned long long)counts[i]);
}

static void store_metrics(struct server *server, struct buffer *out)
{
    static const char *const tiers[STORE_TIERS] = {"raw", "10m", "hour", "day"};
    struct store_stats stats;
    if (store_stats(server->store, &stats, NULL) < 0)
        return;
    metric(out, "assay_store_samples", "gauge", "Samples in the store.", (double)stats.rows);
    metric(out, "assay_store_windows", "gauge", "Windows in the store.", (double)stats.windows);
    metric(out, "assay_store_series", "gauge", "Series, summed over files.", (double)stats.series);
    metric(out, "assay_store_fresh_blocks", "gauge", "Blocks waiting for compaction.",
           (double)stats.fresh_blocks);
    metric(out, "assay_store_memory_bytes", "gauge", "Memory of the store's caches.",
           (double)stats.memory_bytes);
    metric(out, "assay_store_commits_total", "counter", "Commits.", (double)stats.commits);
    metric(out, "assay_store_shed_files_total", "counter",
           "Days deleted to stay below the disk limit.", (double)stats.shed_files);
    metric(out, "assay_store_free_bytes", "gauge", "Free space of the store's file system.",
           (double)stats.free_bytes);
    metric(out, "assay_store_writable", "gauge", "1 if pushes can be stored.",
           store_writable(server->store, NULL) >= 0);
    metric(out, "assay_store_write_failures_total", "counter",
           "Batches that failed to write to disk.", (double)stats.write_failures);
    metric(out, "assay_store_damaged_files", "gauge", "Damaged files that are not acknowledged.",
           (double)stats.damaged_files);
    metric(out, "assay_store_expired_files_total", "counter", "Files removed by retention.",
           (double)stats.expired_files);
    metric(out, "assay_store_retention_stopped", "gauge",
           "1 if retention is stopped because of the clock.", stats.retention_stopped);
    buffer_add_text(out, "# HELP assay_store_bytes Size of files, by tier.\n"
                         "# TYPE assay_store_bytes gauge\n");
    for (int i = 0; i < STORE_TIERS; i++)
        buffer_printf(out, "assay_store_bytes{tier=\"%s\"} %llu\n", tiers[i],
                      (unsigned long long)stats.bytes[i]);
}

static void span_metrics(struct server *server, struct buffer *out)
{
    struct span_stats stats;
    if (!server->spans)
        return;
    span_index_stats(server->spans, &stats);
    metric(out, "assay_spans", "gauge", "Spans in the index.", (double)stats.spans);
    metric(out, "assay_spans_bytes", "gauge", "Size of the index of spans.", (double)stats.bytes);
    metric(out, "assay_spans_written_total", "counter", "Spans stored.", (double)stats.written);
    metric(out, "assay_spans_write_failures_total", "counter", "Commits of spans that failed.",
           (double)stats.write_failures);
    metric(out, "assay_spans_repeated_pushes_total", "counter",
           "Pushes of spans that were stored before.", (double)stats.repeated);
    metric(out, "assay_spans_too_old_total", "counter",
           "Spans rejected because they are older than the retention period.",
           (double)stats.too_old);
    metric(out, "assay_spans_too_new_total", "counter",
           "Spans rejected because they start in the future.", (double)stats.too_new);
    metric(out, "assay_spans_expired_total", "counter", "Spans removed by retention.",
           (double)stats.expired);
    metric(out, "assay_spans_shed_total", "counter", "Spans removed to stay below the disk limit.",
           (double)stats.shed);
    metric(out, "assay_spans_damaged_blocks_total", "counter", "Damaged blocks that queries met.",
           (double)stats.damaged);
    metric(out, "assay_spans_damaged_files", "gauge", "Damaged files of spans.",
           (double)stats.damaged_files);
    metric(out, "assay_spans_retention_stopped", "gauge",
           "1 if retention of spans is stopped because of the clock.", stats.retention_stopped);
}

static void memory_metrics(struct server *server, struct buffer *out)
{
    struct budget_stats memory = budget_stats(&server->admissions->memory);
    metric(out, "assay_memory_budget_bytes", "gauge",
           "Memory for pushes, queries and maintenance together.", (double)memory.limit_bytes);
    metric(out, "assay_memory_budget_used_bytes", "gauge",
           "Memory in use for pushes, queries and maintenance.", (double)memory.used_bytes);
    metric(out, "assay_memory_budget_peak_bytes", "gauge",
           "Peak memory for pushes, queries and maintenance.", (double)memory.peak_bytes);
    metric(out, "assay_memory_pushes_refused_total", "counter",
           "Pushes rejected because of the memory limit.",
           (double)atomic_load(&server->admissions->pushes_refused));
    metric(out, "assay_memory_shortages_total", "counter",
           "Allocations that failed and used the reserve.", (double)memory_shortages());
}

static void comparison_metrics(struct server *server, struct buffer *out)
{
    const struct comparisons *stats = server->comparisons;
    struct baselines_stats baselines = baselines_stats(server->baselines);
    metric(out, "assay_comparisons_total", "counter", "Comparisons made.",
           (double)atomic_load(&stats->made));
    metric(out, "assay_comparisons_failed_total", "counter",
           "Comparisons that failed, such as for lack of data.",
           (double)atomic_load(&stats->failed));
    metric(out, "assay_comparisons_changed_total", "counter",
           "Comparisons with at least one certain change.", (double)atomic_load(&stats->changed));
    metric(out, "assay_comparisons_judged_total", "counter",
           "Values of functions that comparisons judged.", (double)atomic_load(&stats->judged));
    metric(out, "assay_comparisons_found_total", "counter", "Certain changes among them.",
           (double)atomic_load(&stats->found));
    metric(out, "assay_comparisons_seconds_total", "counter", "Time spent on comparisons.",
           (double)atomic_load(&stats->busy_ns) / 1e9);
    metric(out, "assay_baselines", "gauge", "Baselines of all tenants.", (double)baselines.count);
    metric(out, "assay_baseline_bytes", "gauge", "Size of the baselines of all tenants.",
           (double)baselines.bytes);
    metric(out, "assay_baselines_refused_total", "counter", "Baselines rejected by a quota.",
           (double)baselines.refused);
}

static double resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void api_metrics(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct buffer out = {0};
    buffer_printf(&out,
                  "# HELP assay_build_info The program's version.\n# TYPE assay_build_info gauge\n"
                  "assay_build_info{version=\"%s\"} 1\n",
                  ASSAY_VERSION);
    metric(&out, "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
    metric(&out, "process_cpu_seconds_total", "counter", "CPU time, user and system.",
           (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
    ingest_metrics(server, &out);
    store_metrics(server, &out);
    span_metrics(server, &out);
    memory_metrics(server, &out);
    comparison_metrics(server, &out);
    watch_write_metrics(server->watch,
                        server->tokens ? http_request_identity(request)->tenant : NULL, &out);
    if (server->core_hour > 0)
        buffer_printf(
            &out,
            "# HELP assay_cost_core_hour Price of a core-hour.\n"
            "# TYPE assay_cost_core_hour gauge\nassay_cost_core_hour{currency=\"%s\"} %.17g\n",
            server->currency, server->core_hour);
    rules_write_metrics(server->rules,
                        server->tokens ? http_request_identity(request)->tenant : NULL, &out);
    control_write_metrics(server->control, &out);
    symbols_write_metrics(server->symbols,
                          server->tokens ? http_request_identity(request)->tenant : NULL, &out);
    if (server->scraper)
        scraper_write_metrics(server->scraper, &out);
    if (server->http)
        http_server_metrics(server->http, &out);
    http_respond(request, 200, "text/plain; version=0.0.4", &out);
    buffer_release(&out);
}
