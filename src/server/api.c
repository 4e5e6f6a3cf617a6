// SPDX-License-Identifier: Apache-2.0
// The API's lists: types, labels, series, senders; and how the server is: health, metrics.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "label/quote.h"
#include "server/question.h"

/* A JSON array in the making. */
struct list {
    struct buffer out;
    const char *comma;
    const char *label; /* only these values, of series */
};

static int list_text(void *context, const char *text)
{
    struct list *list = context;
    buffer_add_text(&list->out, list->comma);
    json_put_text(&list->out, text);
    list->comma = ",";
    return 0;
}

static int list_type(void *context, const char *id)
{
    static const char *const keys[] = {"name", "sample_type", "sample_unit", "period_type",
                                       "period_unit"};
    struct list *list = context;
    buffer_printf(&list->out, "%s{\"id\":", list->comma);
    json_put_text(&list->out, id);
    for (unsigned i = 0; i < ARRAY_LENGTH(keys); i++) {
        size_t length;
        const char *part = query_type_part(id, i, &length);
        buffer_printf(&list->out, ",\"%s\":", keys[i]);
        text_escape_json(&list->out, part, length);
    }
    buffer_add_char(&list->out, '}');
    list->comma = ",";
    return 0;
}

static int list_series(void *context, const struct labels *labels, const char *type,
                       int64_t first_ns, int64_t last_ns)
{
    struct list *list = context;
    buffer_printf(&list->out, "%s{\"type\":", list->comma);
    json_put_text(&list->out, type);
    buffer_printf(&list->out, ",\"first\":%.3f,\"last\":%.3f,\"labels\":", (double)first_ns / 1e9,
                  (double)last_ns / 1e9);
    labels_write_json(labels, &list->out);
    buffer_add_char(&list->out, '}');
    list->comma = ",";
    return 0;
}

enum listing { LIST_TYPES, LIST_NAMES, LIST_VALUES, LIST_SERIES };

static void respond_list(struct http_request *request, struct server *server, enum listing listing)
{
    _cleanup_question_ struct question question = {0};
    struct error error = {0};
    struct list list = {.comma = ""};
    buffer_add_char(&list.out, '[');
    int r = question_read(&question, request, server, "", false, &error);
    const struct store_selection *selection = &question.selection;
    if (!r && listing == LIST_TYPES)
        r = store_types(server->store, selection, list_type, &list, &error);
    else if (!r && listing == LIST_NAMES)
        r = store_label_names(server->store, selection, list_text, &list, &error);
    else if (!r && listing == LIST_VALUES)
        r = store_label_values(server->store, selection,
                               strcmp(http_request_rest(request), "service")
                                   ? http_request_rest(request)
                                   : LABEL_SERVICE_NAME,
                               list_text, &list, &error);
    else if (!r)
        r = store_series(server->store, selection, list_series, &list, &error);
    buffer_add_text(&list.out, "]\n");
    if (r < 0)
        http_respond_failure(request, &error);
    else
        http_respond(request, 200, "application/json", &list.out);
    buffer_release(&list.out);
}

void api_types(struct http_request *request, void *server)
{
    respond_list(request, server, LIST_TYPES);
}

void api_labels(struct http_request *request, void *server)
{
    respond_list(request, server, LIST_NAMES);
}

void api_label_values(struct http_request *request, void *server)
{
    respond_list(request, server, LIST_VALUES);
}

void api_series(struct http_request *request, void *server)
{
    respond_list(request, server, LIST_SERIES);
}

void api_senders(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct buffer out = {0};
    senders_write(server->ingest.senders, http_request_identity(request)->tenant, &out);
    buffer_add_char(&out, '\n');
    http_respond(request, 200, "application/json", &out);
    buffer_release(&out);
}

void api_ready(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    if (atomic_load(&server->stopping))
        http_respond_error(request, 503, "The server is stopping.");
    else
        http_respond_text(request, 200, "text/plain", "ready\n");
}

void api_build(struct http_request *request, void *userdata)
{
    (void)userdata;
    http_respond_text(request, 200, "application/json",
                      "{\"status\":\"success\",\"data\":{\"version\":\"" ASSAY_VERSION
                      "\",\"revision\":\"\",\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"\","
                      "\"goVersion\":\"\"}}\n");
}

void api_health(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    struct store_stats stats = {0};
    struct list list = {.comma = ""};
    int r = store_stats(server->store, &stats, &error);
    if (!r)
        r = store_problems(server->store, list_text, &list, &error);
    struct buffer out = {0};
    uint64_t bytes = 0;
    for (int i = 0; i < STORE_TIERS; i++)
        bytes += stats.bytes[i];
    buffer_printf(&out,
                  "{\"status\":\"%s\",\"version\":\"%s\",\"uptime_seconds\":%.0f,"
                  "\"store\":{\"kind\":\"%s\",\"samples\":%llu,\"windows\":%llu,\"series\":%llu,"
                  "\"bytes\":%llu,\"fresh_blocks\":%llu},\"problems\":[%.*s]}\n",
                  r < 0             ? "failing"
                  : list.out.length ? "degraded"
                                    : "ok",
                  ASSAY_VERSION, (double)(monotonic_ns() - server->started_ns) / 1e9,
                  server->options.data ? "embedded" : "memory", (unsigned long long)stats.rows,
                  (unsigned long long)stats.windows, (unsigned long long)stats.series,
                  (unsigned long long)bytes, (unsigned long long)stats.fresh_blocks,
                  (int)list.out.length, list.out.length ? list.out.data : "");
    http_respond(request, r < 0 ? 503 : 200, "application/json", &out);
    buffer_release(&out);
    buffer_release(&list.out);
}

/* ---- /metrics ---- */

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
    if (server->http)
        http_server_metrics(server->http, &out);
    http_respond(request, 200, "text/plain; version=0.0.4", &out);
    buffer_release(&out);
}
