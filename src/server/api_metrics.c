// SPDX-License-Identifier: Apache-2.0
// What Prometheus scrapes.

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/question.h"

static void metric(struct buffer *out, const char *name, const char *kind, const char *help,
                   double value)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, kind, name,
                  value);
}

static void ingest_metrics(struct server *server, struct buffer *out)
{
    struct sender total = senders_total(server->ingest.senders);
    metric(out, "assay_ingest_pushes_total", "counter", "Pushes, refused ones too.",
           (double)total.pushes);
    metric(out, "assay_ingest_repeats_total", "counter", "Pushes that were stored before.",
           (double)total.repeats);
    metric(out, "assay_ingest_windows_total", "counter", "Windows of series stored.",
           (double)total.windows);
    metric(out, "assay_ingest_samples_total", "counter", "Samples stored.", (double)total.rows);
    metric(out, "assay_ingest_exemplars_total", "counter", "Exemplars stored.",
           (double)total.exemplars);
    metric(out, "assay_ingest_clock_corrections_total", "counter",
           "Profiles whose times were corrected.", (double)total.corrected);
    metric(out, "assay_ingest_stacks_cut_total", "counter", "Samples whose stack was too deep.",
           (double)total.cut);
    buffer_add_text(out, "# HELP assay_ingest_refused_total Pushes refused, by reason.\n"
                         "# TYPE assay_ingest_refused_total counter\n");
    for (int i = 0; i < INGEST_REFUSALS; i++)
        buffer_printf(out, "assay_ingest_refused_total{reason=\"%s\"} %llu\n",
                      ingest_refusal_name((enum ingest_refusal)i),
                      (unsigned long long)total.refused[i]);
    uint64_t counts[LABEL_REASONS];
    pthread_rwlock_rdlock(&server->ingest.rules_lock);
    label_policy_counts(server->ingest.rules.policy, counts);
    pthread_rwlock_unlock(&server->ingest.rules_lock);
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
    metric(out, "assay_store_samples", "gauge", "Samples stored now.", (double)stats.rows);
    metric(out, "assay_store_windows", "gauge", "Windows stored now.", (double)stats.windows);
    metric(out, "assay_store_series", "gauge", "Series, summed over files.", (double)stats.series);
    metric(out, "assay_store_fresh_blocks", "gauge", "Blocks that wait for compaction.",
           (double)stats.fresh_blocks);
    metric(out, "assay_store_memory_bytes", "gauge", "Memory of the store's caches.",
           (double)stats.memory_bytes);
    metric(out, "assay_store_commits_total", "counter", "Commits.", (double)stats.commits);
    metric(out, "assay_store_shed_files_total", "counter", "Days dropped for the disk limit.",
           (double)stats.shed_files);
    buffer_add_text(out, "# HELP assay_store_bytes Size of files, by tier.\n"
                         "# TYPE assay_store_bytes gauge\n");
    for (int i = 0; i < STORE_TIERS; i++)
        buffer_printf(out, "assay_store_bytes{tier=\"%s\"} %llu\n", tiers[i],
                      (unsigned long long)stats.bytes[i]);
}

static void memory_metrics(struct server *server, struct buffer *out)
{
    struct budget_figures memory = budget_figures(&server->memory);
    metric(out, "assay_memory_budget_bytes", "gauge",
           "Memory for pushes, queries and housekeeping together.", (double)memory.limit_bytes);
    metric(out, "assay_memory_budget_used_bytes", "gauge", "Of it what is taken now.",
           (double)memory.used_bytes);
    metric(out, "assay_memory_budget_peak_bytes", "gauge", "The most of it that ever was.",
           (double)memory.peak_bytes);
    metric(out, "assay_memory_pushes_refused_total", "counter",
           "Pushes told to come back since the memory limit was used up.",
           (double)atomic_load(&server->pushes_without_memory));
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
    memory_metrics(server, &out);
    control_write_metrics(server->control, &out);
    symbols_write_metrics(server->symbols, &out);
    if (server->scraper)
        scraper_write_metrics(server->scraper, &out);
    if (server->http)
        http_server_metrics(server->http, &out);
    http_respond(request, 200, "text/plain; version=0.0.4", &out);
    buffer_release(&out);
}
