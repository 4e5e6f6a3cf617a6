// SPDX-License-Identifier: Apache-2.0
// What the agent knows of itself, on its socket: /status for people and programs, /metrics for
// Prometheus. One table of numbers for all three forms, so that they can't disagree.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "http/server.h"

/* All numbers at one moment. */
struct status {
    struct agent_figures agent;
    struct spool_figures spool;
    struct upload_figures upload;
    struct agent_symbols_figures symbols;
    const char *means;
    const char *shortcoming; /* NULL: nothing is missing */
    struct agent_control *control;
    bool off; /* the switch is */
};

struct number {
    const char *key;    /* in JSON */
    const char *metric; /* without "assay_agent_" */
    const char *help;
    bool gauge;
    double value;
};

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

#define NUMBERS_MAX 56

static size_t list_numbers(const struct status *status, struct number *numbers)
{
    const struct agent_figures *agent = &status->agent;
    const struct capture_figures *capture = &agent->capture;
    const struct agent_cost *cost = &agent->cost;
    const struct upload_figures *upload = &status->upload;
    uint64_t whole = capture->ends[UNWIND_END_COMPLETE];
    const struct number list[] = {
        {"rate_hz", "sample_rate_hertz", "Samples per second and CPU now.", true,
         agent->paused || status->off || agent->guard.rest ? 0 : agent->rate_hz},
        {"capture_off", "capture_off", "The switch has turned capture off.", true, status->off},
        {"samples", "samples_total", "Samples taken.", false, (double)capture->samples},
        {"samples_unwanted", "samples_unwanted_total", "Samples of processes nobody chose.", false,
         (double)capture->unwanted},
        {"cpu_sampled_seconds", "sampled_cpu_seconds_total", "CPU time that samples stand for.",
         false, (double)capture->cpu_ns / 1e9},
        {"walks", "stack_walks_total", "User stacks walked.", false, (double)capture->walks},
        {"walks_whole_share", "stack_walks_whole_ratio", "Of them, those that reached the end.",
         true, share(whole, capture->walks)},
        {"processes", "processes", "Processes that are followed.", true, (double)capture->tracked},
        {"targets", "targets", "Processes with samples lately.", true, (double)agent->targets},
        {"targets_dropped", "targets_dropped_total", "Processes that rules dropped.", false,
         (double)agent->targets_dropped},
        {"windows", "windows_total", "Windows handed over.", false, (double)agent->windows},
        {"windows_dropped", "windows_dropped_total", "Windows that were lost on the host.", false,
         (double)agent->windows_dropped},
        {"frames", "frames_total", "Frames that names were wanted for.", false,
         (double)agent->names.frames},
        {"frames_unnamed_share", "frames_unnamed_ratio", "Of them, those without a name.", true,
         share(agent->names.unnamed, agent->names.frames)},
        {"frames_looked_up", "frames_looked_up_total", "Names that were not known yet.", false,
         (double)agent->names.found},
        {"files_too_large", "files_too_large_total",
         "Times that a file's symbol tables were too large to be read.", false,
         (double)agent->names.too_large},
        {"cpu_seconds", "cpu_seconds_total", "CPU time of the agent itself.", false,
         (double)cost->cpu_ns / 1e9},
        {"encode_cpu_seconds", "encode_cpu_seconds_total", "Of it, for names and requests.", false,
         (double)agent->encode_cpu_ns / 1e9},
        {"bpf_seconds", "bpf_seconds_total", "CPU time of its BPF programs; -1: not measured.",
         false, cost->bpf_ns < 0 ? -1 : (double)cost->bpf_ns / 1e9},
        {"cpu_share", "cpu_ratio", "Both over the last second, of one CPU.", true, cost->cpu_share},
        {"resident_bytes", "resident_bytes", "Memory.", true, (double)cost->resident_bytes},
        {"encoded_bytes", "encoded_bytes_total", "Bytes of requests made.", false,
         (double)agent->encoded_bytes},
        {"budget_level", "budget_level", "Steps down from all that was asked for; 0: none.", true,
         agent->guard.level},
        {"budget_level_max", "budget_level_max", "The level at which nothing is sampled.", true,
         agent->guard.level_max},
        {"budget_steps_down", "budget_steps_down_total", "Times that less was sampled.", false,
         (double)agent->guard.steps_down},
        {"budget_steps_up", "budget_steps_up_total", "Times that more was sampled again.", false,
         (double)agent->guard.steps_up},
        {"budget_caches_dropped", "budget_caches_dropped_total",
         "Times that names were forgotten for want of memory.", false,
         (double)agent->guard.caches_dropped},
        {"budget_busiest_only", "budget_busiest_only", "Only the busiest processes are sampled.",
         true, agent->guard.busiest_only},
        {"budget_cpu_share", "budget_cpu_ratio", "Cost over the last seconds, of the host's CPUs.",
         true, agent->guard.cpu_share},
        {"budget_cpu_limit", "budget_cpu_limit_ratio", "What that may be.", true,
         agent->guard.limits.cpu_share},
        {"budget_memory_limit", "budget_memory_limit_bytes", "What memory may be.", true,
         (double)agent->guard.limits.resident_bytes},
        {"budget_upload", "budget_upload_bytes_per_minute", "Bytes of requests in a minute.", true,
         agent->guard.upload_per_minute},
        {"budget_upload_limit", "budget_upload_limit_bytes_per_minute", "What that may be.", true,
         (double)agent->guard.limits.upload_bytes},
        {"spool_batches", "spool_batches", "Batches that wait for the server.", true,
         (double)status->spool.batches},
        {"spool_bytes", "spool_bytes", "Their size.", true, (double)status->spool.bytes},
        {"spool_dropped", "spool_dropped_total", "Batches that were lost.", false,
         (double)status->spool.dropped},
        {"spool_dropped_full", "spool_dropped_full_total", "Of them, because it was full.", false,
         (double)status->spool.dropped_full},
        {"spool_dropped_old", "spool_dropped_old_total", "Because they were too old.", false,
         (double)status->spool.dropped_old},
        {"spool_dropped_memory", "spool_dropped_memory_total", "Because the disk took none.", false,
         (double)status->spool.dropped_memory},
        {"spool_memory_batches", "spool_memory_batches", "Batches that wait in memory alone.", true,
         (double)status->spool.memory_batches},
        {"spool_damaged", "spool_damaged_total", "Files that were damaged.", false,
         (double)status->spool.damaged},
        {"spool_refused", "spool_refused_total", "Batches that the server will never take.", false,
         (double)status->spool.refused},
        {"upload_throttled", "upload_throttled_total", "Requests answered with 429 or 503.", false,
         (double)upload->throttled},
        {"uploads", "upload_requests_total", "Requests to the server.", false,
         (double)upload->requests},
        {"upload_failures", "upload_failures_total", "Of them, those that failed.", false,
         (double)upload->failures},
        {"upload_bytes", "upload_bytes_total", "Bytes that the server took.", false,
         (double)upload->bytes},
        {"upload_last", "upload_last_timestamp_seconds", "When it took the last; 0: never.", true,
         (double)upload->last_ns / 1e9},
        {"symbols_wanted", "symbols_wanted", "Builds that the server asks its agents for.", true,
         (double)status->symbols.wanted},
        {"symbols_asked", "symbols_asked_total", "Builds that this agent was to send.", false,
         (double)status->symbols.asked},
        {"symbols_sent", "symbols_sent_total", "Of them, those that the server has.", false,
         (double)status->symbols.sent},
        {"symbols_refused", "symbols_refused_total", "Of them, those that it hasn't.", false,
         (double)status->symbols.refused},
        {"symbols_bytes", "symbols_sent_bytes_total", "Bytes of symbols that were sent.", false,
         (double)status->symbols.bytes},
    };
    _Static_assert(ARRAY_LENGTH(list) <= NUMBERS_MAX, "all fit");
    memcpy(numbers, list, sizeof(list));
    return ARRAY_LENGTH(list);
}

static struct status read_status(struct agent *agent)
{
    struct agent_figures figures = agent_figures(agent);
    return (struct status){
        .agent = figures,
        .spool = spool_figures(agent->spool),
        .upload = uploader_figures(agent->uploader),
        .symbols = agent_symbols_figures(agent->symbols),
        .means = figures.means == CAPTURE_ANY ? "nothing" : capture_means_name(figures.means),
        .control = agent->control,
        .off = atomic_load(&agent->off),
        .shortcoming = agent->shortcoming[0] ? agent->shortcoming : NULL,
    };
}

/* ---- forms ---- */

static void put_json_text(struct buffer *out, const char *key, const char *text)
{
    buffer_printf(out, ",\"%s\":", key);
    text_escape_json(out, text, strlen(text));
}

static void put_json(struct buffer *out, const struct status *status)
{
    struct number numbers[NUMBERS_MAX];
    size_t count = list_numbers(status, numbers);
    buffer_add_text(out, "{\"version\":\"" ASSAY_VERSION "\"");
    put_json_text(out, "means", status->means);
    agent_control_write(status->control, out);
    put_json_text(out, "shortcoming", status->shortcoming ? status->shortcoming : "");
    put_json_text(out, "upload_error", status->upload.error);
    put_json_text(out, "symbols_error", status->symbols.error);
    put_json_text(out, "budget_reason", guard_reason_name(status->agent.guard.reason));
    put_json_text(out, "budget_what", status->agent.guard.what);
    put_json_text(out, "budget_why", status->agent.guard.level ? status->agent.guard_why : "");
    buffer_printf(out, ",\"paused\":%s", status->agent.paused ? "true" : "false");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, ",\"%s\":%.15g", numbers[i].key, numbers[i].value);
    buffer_add_text(out, ",\"losses\":{");
    for (size_t i = 0; i < status->agent.loss_count; i++)
        buffer_printf(out, "%s\"%s\":%" PRIu64, i ? "," : "", status->agent.losses[i].reason,
                      status->agent.losses[i].count);
    buffer_add_text(out, "}}\n");
}

/* Why less is sampled than was asked for: one of them is 1, or none. */
static void put_reasons(struct buffer *out, enum guard_reason now)
{
    buffer_add_text(out, "# HELP assay_agent_budget_exceeded Which limit took samples away.\n"
                         "# TYPE assay_agent_budget_exceeded gauge\n");
    for (enum guard_reason reason = GUARD_CPU; reason <= GUARD_UPLOAD; reason++)
        buffer_printf(out, "assay_agent_budget_exceeded{limit=\"%s\"} %d\n",
                      guard_reason_name(reason), reason == now);
}

static void put_metrics(struct buffer *out, const struct status *status)
{
    struct number numbers[NUMBERS_MAX];
    size_t count = list_numbers(status, numbers);
    for (size_t i = 0; i < count; i++) {
        const char *name = numbers[i].metric;
        buffer_printf(out, "# HELP assay_agent_%s %s\n# TYPE assay_agent_%s %s\n", name,
                      numbers[i].help, name, numbers[i].gauge ? "gauge" : "counter");
        buffer_printf(out, "assay_agent_%s %.15g\n", name, numbers[i].value);
    }
    put_reasons(out, status->agent.guard.reason);
    buffer_add_text(out, "# HELP assay_agent_lost_total What is missing, by its reason.\n"
                         "# TYPE assay_agent_lost_total counter\n");
    for (size_t i = 0; i < status->agent.loss_count; i++)
        buffer_printf(out, "assay_agent_lost_total{reason=\"%s\"} %" PRIu64 "\n",
                      status->agent.losses[i].reason, status->agent.losses[i].count);
}

static void put_upload(struct buffer *out, const struct status *status)
{
    const struct upload_figures *upload = &status->upload;
    buffer_printf(out, "upload    %" PRIu64 " of %" PRIu64 " requests taken, %.1f KiB",
                  upload->requests - upload->failures, upload->requests,
                  (double)upload->bytes / 1024);
    if (upload->last_ns)
        buffer_printf(out, ", the last %.0f s ago",
                      (double)(clock_ns(CLOCK_REALTIME) - upload->last_ns) / 1e9);
    buffer_add_char(out, '\n');
    if (upload->error[0])
        buffer_printf(out, "          %s\n", upload->error);
    buffer_printf(out, "spool     %" PRIu64 " batches wait, %.1f KiB; %" PRIu64 " were dropped\n",
                  status->spool.batches, (double)status->spool.bytes / 1024, status->spool.dropped);
    if (status->spool.damaged || status->spool.refused)
        buffer_printf(out, "          %" PRIu64 " were damaged, %" PRIu64 " refused\n",
                      status->spool.damaged, status->spool.refused);
    if (status->spool.trouble[0])
        buffer_printf(out, "          %s %" PRIu64 " wait in memory.\n", status->spool.trouble,
                      status->spool.memory_batches);
}

static void put_symbols(struct buffer *out, const struct agent_symbols_figures *symbols)
{
    if (!symbols->asked)
        return;
    buffer_printf(out,
                  "symbols   %" PRIu64 " of %" PRIu64 " files that the server asked for sent, %.1f "
                  "KiB\n",
                  symbols->sent, symbols->asked, (double)symbols->bytes / 1024);
    if (symbols->error[0])
        buffer_printf(out, "          %s\n", symbols->error);
}

static void put_budget(struct buffer *out, const struct agent_figures *agent)
{
    const struct guard_figures *guard = &agent->guard;
    buffer_printf(out,
                  "budget    %.2g%% of the host's CPU (at most %.3g%%), %.0f MiB (at most %.0f), "
                  "%.0f KiB a minute (at most %.0f)\n",
                  100 * guard->cpu_share, 100 * guard->limits.cpu_share,
                  (double)agent->cost.resident_bytes / (1 << 20),
                  (double)guard->limits.resident_bytes / (1 << 20), guard->upload_per_minute / 1024,
                  (double)guard->limits.upload_bytes / 1024);
    if (guard->level)
        buffer_printf(out, "          sampled %s: %s\n", guard->what, agent->guard_why);
}

static void put_text(struct buffer *out, const struct status *status)
{
    const struct agent_figures *agent = &status->agent;
    const struct capture_figures *capture = &agent->capture;
    char reason[AGENT_CONTROL_REASON_BYTES];
    agent_control_reason(status->control, reason);
    if (*reason)
        buffer_printf(out, "sampling  off: %s\n", reason);
    else if (agent->paused || agent->guard.rest)
        buffer_printf(out, "sampling  off\n");
    else
        buffer_printf(out, "sampling  by %s, %u times a second on each CPU\n", status->means,
                      agent->rate_hz);
    if (status->shortcoming)
        buffer_printf(out, "          %s\n", status->shortcoming);
    buffer_printf(out, "samples   %" PRIu64 " of %" PRIu64 " processes, %.1f s of CPU time\n",
                  capture->samples, capture->processes, (double)capture->cpu_ns / 1e9);
    for (size_t i = 0; i < agent->loss_count; i++)
        buffer_printf(out, "lost      %" PRIu64 " %s\n", agent->losses[i].count,
                      agent->losses[i].what);
    buffer_printf(out, "stacks    %.2f%% of user stacks whole, %.2f%% of frames without a name\n",
                  100 * share(capture->ends[UNWIND_END_COMPLETE], capture->walks),
                  100 * share(agent->names.unnamed, agent->names.frames));
    buffer_printf(out,
                  "targets   %" PRIu64 " processes with samples lately, %" PRIu64 " followed\n",
                  agent->targets, capture->tracked);
    buffer_printf(out, "windows   %" PRIu64 ", %" PRIu64 " of them dropped\n", agent->windows,
                  agent->windows_dropped);
    put_upload(out, status);
    put_symbols(out, &status->symbols);
    buffer_printf(out, "cost      %.2f%% of a CPU in the last second; %.1f s since the start",
                  100 * agent->cost.cpu_share, (double)agent->cost.cpu_ns / 1e9);
    if (agent->cost.bpf_ns >= 0)
        buffer_printf(out, ", and %.2f s in BPF programs", (double)agent->cost.bpf_ns / 1e9);
    buffer_printf(out, "\nmemory    %.1f MiB\n", (double)agent->cost.resident_bytes / (1 << 20));
    put_budget(out, agent);
}

/* ---- the socket ---- */

static void serve_status(struct http_request *request, void *agent)
{
    struct buffer body = {0};
    struct status status = read_status(agent);
    const char *format = http_request_query(request, "format");
    bool text = format && !strcmp(format, "text");
    (text ? put_text : put_json)(&body, &status);
    http_respond(request, 200, text ? "text/plain; charset=utf-8" : "application/json", &body);
    buffer_release(&body);
}

void agent_status_json(struct agent *agent, struct buffer *out)
{
    struct status status = read_status(agent);
    put_json(out, &status);
}

static void serve_metrics(struct http_request *request, void *agent)
{
    struct buffer body = {0};
    struct status status = read_status(agent);
    put_metrics(&body, &status);
    http_respond(request, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
    buffer_release(&body);
}

int agent_status_start(struct agent *agent, struct error *error)
{
    static const struct http_route routes[] = {
        {.method = "GET", .pattern = "/status", .handle = serve_status},
        {.method = "GET", .pattern = "/metrics", .handle = serve_metrics},
    };
    const char *address = agent->settings->status;
    if (!address || !*address)
        return 0;
    const char *missing = agent->capture ? capture_shortcoming(agent->capture) : NULL;
    snprintf(agent->shortcoming, sizeof(agent->shortcoming), "%s", missing ? missing : "");
    struct http_server_options options = {.listen = &address,
                                          .listen_count = 1,
                                          .routes = routes,
                                          .route_count = ARRAY_LENGTH(routes),
                                          .userdata = agent,
                                          .io_threads = 1,
                                          .workers = 2,
                                          .connection_limit = 16,
                                          .request_limit = 8,
                                          .buffer_limit_bytes = 1 << 20};
    return http_server_start(&options, &agent->http, error);
}
