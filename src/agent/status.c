// SPDX-License-Identifier: Apache-2.0
// Status of the agent on its socket: /status for people and programs, /metrics for Prometheus. One
// table of numbers serves all three forms, so that they agree.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "http/server/server.h"
#include "io/json_write.h"

/* All numbers at one moment. */
struct status {
    struct agent_stats agent;
    struct spool_stats spool;
    struct upload_stats upload;
    struct agent_symbols_stats symbols;
    struct jit_excess jit[NAMER_EXCESS_MAX]; /* users who lost names */
    size_t jit_count;
    const char *backend;
    const char *shortcoming; /* NULL: nothing is missing */
    struct agent_control *control;
    const struct redactor *redactor;
    bool off; /* the switch is */
};

struct number {
    const char *key;    /* in JSON */
    const char *metric; /* without "assay_agent_"; NULL: written by itself */
    const char *help;
    bool gauge;
    double value;
};

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

#define NUMBERS_MAX 72

static size_t list_numbers(const struct status *status, struct number *numbers)
{
    const struct agent_stats *agent = &status->agent;
    const struct capture_stats *capture = &agent->capture;
    const struct agent_cost *cost = &agent->cost;
    const struct upload_stats *upload = &status->upload;
    uint64_t whole = capture->ends[UNWIND_END_COMPLETE];
    const struct number list[] = {
        {"rate_hz", "sample_rate_hertz", "Current samples per second and CPU.", true,
         agent->paused || status->off || agent->guard.rest ? 0 : agent->rate_hz},
        {"rate_wanted_hz", "sample_rate_wanted_hertz",
         "Samples per second and CPU by the settings or the server's order, without throttling.",
         true, agent->sampling.rate_hz},
        {"sampling_ordered", "sampling_ordered",
         "Whether the server ordered the rates and collectors.", true, agent->sampling.ordered},
        {"capture_off", "capture_off", "Whether capture is turned off.", true, status->off},
        {"samples", "samples_total", "Samples taken.", false, (double)capture->samples},
        {"samples_unwanted", "samples_unwanted_total",
         "Samples of processes that were not selected.", false, (double)capture->unwanted},
        {"cpu_sampled_seconds", "sampled_cpu_seconds_total", "CPU time represented by samples.",
         false, (double)capture->cpu_ns / 1e9},
        {"walks", "stack_walks_total", "User stacks walked.", false, (double)capture->walks},
        {"walks_whole_share", "stack_walks_whole_ratio", "User stacks that reached the end.", true,
         share(whole, capture->walks)},
        {"processes", "processes", "Tracked processes.", true, (double)capture->tracked},
        {"targets", "targets", "Processes with recent samples.", true, (double)agent->targets},
        {"pod_containers", "pod_containers", "Containers on the list of pods.", true,
         (double)agent->pod_containers},
        {"targets_dropped", "targets_dropped_total", "Processes dropped by rules.", false,
         (double)agent->targets_dropped},
        {"memory_shortages", "memory_shortages_total",
         "Allocations that failed and used the reserve.", false, (double)memory_shortages()},
        {"memory_refusals", "memory_refusals_total",
         "Inputs left out, as there was not enough memory with the reserve, either.", false,
         (double)memory_refusals()},
        {"windows", "windows_total", "Windows passed to the encoder.", false,
         (double)agent->encoder.windows},
        {"windows_dropped", "windows_dropped_total", "Windows lost on the host.", false,
         (double)agent->encoder.dropped},
        {"frames", "frames_total", "Frames to be resolved.", false, (double)agent->names.frames},
        {"frames_unnamed_share", "frames_unnamed_ratio", "Unresolved frames.", true,
         share(agent->names.unnamed, agent->names.frames)},
        {"frames_looked_up", "frames_looked_up_total", "Names looked up for the first time.", false,
         (double)agent->names.found},
        {"files_postponed", "files_postponed_total",
         "Postponed lookups in large files, to save CPU time.", false,
         (double)agent->names.postponed},
        {"files_too_large", "files_too_large_total", "Symbol tables that were too large to read.",
         false, (double)agent->names.too_large},
        {"redactions", NULL, NULL, false, (double)redactor_total(status->redactor)},
        {"cpu_seconds", "cpu_seconds_total", "CPU time of the agent itself.", false,
         (double)cost->cpu_ns / 1e9},
        {"encode_cpu_seconds", "encode_cpu_seconds_total", "CPU time for names and requests.",
         false, (double)agent->encoder.cpu_ns / 1e9},
        {"bpf_seconds", "bpf_seconds_total", "CPU time of its BPF programs; -1: not measured.",
         false, cost->bpf_ns < 0 ? -1 : (double)cost->bpf_ns / 1e9},
        {"cpu_share", "cpu_ratio", "CPU time of both over the last second, in CPUs.", true,
         cost->cpu_share},
        {"resident_bytes", "resident_bytes", "Memory.", true, (double)cost->resident_bytes},
        {"encoded_bytes", "encoded_bytes_total", "Bytes of generated requests.", false,
         (double)agent->encoder.bytes},
        {"budget_level", "budget_level", "Throttling steps; 0: none.", true, agent->guard.level},
        {"budget_level_max", "budget_level_max", "The level at which sampling stops.", true,
         agent->guard.level_max},
        {"budget_steps_down", "budget_steps_down_total", "Steps to less sampling.", false,
         (double)agent->guard.steps_down},
        {"budget_steps_up", "budget_steps_up_total", "Steps to more sampling.", false,
         (double)agent->guard.steps_up},
        {"budget_caches_dropped", "budget_caches_dropped_total",
         "Times that cached names were dropped to save memory.", false,
         (double)agent->guard.caches_dropped},
        {"budget_rest_seconds", "budget_rest_seconds_total",
         "Time without sampling, to stay within the budget.", false, (double)agent->rest_ns / 1e9},
        {"budget_busiest_only", "budget_busiest_only",
         "Whether only the busiest processes are sampled.", true, agent->guard.busiest_only},
        {"budget_cpu_share", "budget_cpu_ratio", "Recent cost, in percent of the host's CPUs.",
         true, agent->guard.cpu_share},
        {"budget_cpu_limit", "budget_cpu_limit_ratio", "CPU limit.", true,
         agent->guard.limits.cpu_share},
        {"budget_memory_limit", "budget_memory_limit_bytes", "Memory limit.", true,
         (double)agent->guard.limits.resident_bytes},
        {"budget_upload", "budget_upload_bytes_per_minute", "Bytes of requests per minute.", true,
         agent->guard.upload_per_minute},
        {"budget_upload_limit", "budget_upload_limit_bytes_per_minute", "CPU limit.", true,
         (double)agent->guard.limits.upload_bytes},
        {"spool_batches", "spool_batches", "Batches waiting for the server.", true,
         (double)status->spool.batches},
        {"spool_bytes", "spool_bytes", "Size of the open indexes.", true,
         (double)status->spool.bytes},
        {"spool_dropped", "spool_dropped_total", "Lost batches.", false,
         (double)status->spool.dropped},
        {"spool_dropped_full", "spool_dropped_full_total",
         "Batches dropped because the spool was full.", false, (double)status->spool.dropped_full},
        {"spool_dropped_old", "spool_dropped_old_total",
         "Batches dropped because they were too old.", false, (double)status->spool.dropped_old},
        {"spool_dropped_memory", "spool_dropped_memory_total",
         "Batches dropped because of disk failures.", false, (double)status->spool.dropped_memory},
        {"spool_memory_batches", "spool_memory_batches", "Batches waiting in memory only.", true,
         (double)status->spool.memory_batches},
        {"spool_damaged", "spool_damaged_total", "Damaged files.", false,
         (double)status->spool.damaged},
        {"spool_refused", "spool_refused_total", "Batches rejected permanently by the server.",
         false, (double)status->spool.refused},
        {"upload_skipped", "upload_skipped_total",
         "Times that other batches were sent before a failing one.", false,
         (double)upload->skipped},
        {"upload_kept", "upload_kept_total",
         "Batches rejected for their size, or by a proxy, to be retried.", false,
         (double)upload->kept},
        {"upload_throttled", "upload_throttled_total", "Requests answered with 429 or 503.", false,
         (double)upload->throttled},
        {"uploads", "upload_requests_total", "Requests to the server.", false,
         (double)upload->requests},
        {"upload_failures", "upload_failures_total", "Failed requests to the server.", false,
         (double)upload->failures},
        {"upload_bytes", "upload_bytes_total", "Bytes accepted by the server.", false,
         (double)upload->bytes},
        {"upload_last", "upload_last_timestamp_seconds",
         "Time of the last accepted request; 0: never.", true, (double)upload->last_ns / 1e9},
        {"symbols_wanted", "symbols_wanted", "Builds whose symbols the server requests.", true,
         (double)status->symbols.wanted},
        {"symbols_asked", "symbols_asked_total", "Builds assigned to this agent.", false,
         (double)status->symbols.asked},
        {"symbols_sent", "symbols_sent_total", "Uploaded builds.", false,
         (double)status->symbols.sent},
        {"symbols_refused", "symbols_refused_total", "Builds that failed to upload.", false,
         (double)status->symbols.refused},
        {"symbols_bytes", "symbols_sent_bytes_total", "Bytes of uploaded symbols.", false,
         (double)status->symbols.bytes},
    };
    _Static_assert(ARRAY_LENGTH(list) <= NUMBERS_MAX, "all fit");
    memcpy(numbers, list, sizeof(list));
    return ARRAY_LENGTH(list);
}

static struct status read_status(struct agent *agent)
{
    struct agent_stats stats = agent_stats(agent);
    struct status status = {
        .agent = stats,
        .spool = spool_stats(agent->spool),
        .upload = uploader_stats(agent->uploader),
        .symbols = agent_symbols_stats(agent->symbols),
        .backend = stats.backend == CAPTURE_ANY ? "nothing" : capture_backend_name(stats.backend),
        .control = agent->control,
        .redactor = agent->settings->label_rules.redactor,
        .off = atomic_load(&agent->off),
        .shortcoming = agent->shortcoming[0] ? agent->shortcoming : NULL,
    };
    status.agent.cost.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    status.jit_count = namer_excess(agent->namer, status.jit, NAMER_EXCESS_MAX);
    return status;
}

/* ---- who is not followed as others are ---- */

#define DEGRADED_MAX (CAPTURE_EXCESS_MAX + NAMER_EXCESS_MAX)

static size_t list_degraded(const struct status *status, struct capture_excess *ret_list)
{
    size_t count = status->agent.excess_count;
    memcpy(ret_list, status->agent.excess, count * sizeof(*ret_list));
    for (size_t i = 0; i < status->jit_count; i++)
        ret_list[count++] = (struct capture_excess){.user = status->jit[i].user,
                                                    .what = "names of JIT code",
                                                    .count = status->jit[i].count};
    return count;
}

static void put_degraded_json(struct json_writer *json, const struct status *status)
{
    struct capture_excess list[DEGRADED_MAX];
    size_t count = list_degraded(status, list);
    json_write_key(json, "degraded");
    json_write_array(json);
    for (size_t i = 0; i < count; i++) {
        json_write_object(json);
        json_member_text(json, "what", list[i].what);
        json_member_unsigned(json, "count", list[i].count);
        if (list[i].user != CAPTURE_USER_UNKNOWN)
            json_member_unsigned(json, "user", list[i].user);
        if (list[i].cgroup[0])
            json_member_text(json, "cgroup", list[i].cgroup);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_degraded_metrics(struct buffer *out, const struct status *status)
{
    struct capture_excess list[DEGRADED_MAX];
    size_t count = list_degraded(status, list);
    buffer_add_text(out, "# HELP assay_agent_degraded Users and cgroups above a limit, recorded in "
                         "less detail.\n# TYPE assay_agent_degraded gauge\n");
    for (size_t i = 0; i < count; i++) {
        buffer_printf(out, "assay_agent_degraded{what=\"%s\",user=\"", list[i].what);
        if (list[i].user != CAPTURE_USER_UNKNOWN)
            buffer_printf(out, "%" PRIu32, list[i].user);
        buffer_printf(out, "\",cgroup=\"%s\"} %" PRIu64 "\n", list[i].cgroup, list[i].count);
    }
}

static void put_degraded_text(struct buffer *out, const struct status *status)
{
    struct capture_excess list[DEGRADED_MAX];
    size_t count = list_degraded(status, list);
    for (size_t i = 0; i < count; i++) {
        buffer_printf(out, "degraded  too many %s (%" PRIu64 ")", list[i].what, list[i].count);
        if (list[i].user != CAPTURE_USER_UNKNOWN)
            buffer_printf(out, " of user %" PRIu32, list[i].user);
        if (list[i].cgroup[0])
            buffer_printf(out, " in cgroup %s", list[i].cgroup);
        buffer_add_char(out, '\n');
    }
}

/* ---- forms ---- */

static void put_json(struct buffer *out, const struct status *status)
{
    struct number numbers[NUMBERS_MAX];
    size_t count = list_numbers(status, numbers);
    const struct agent_stats *agent = &status->agent;
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_text(&json, "version", ASSAY_VERSION);
    json_member_text(&json, "means", status->backend);
    agent_control_write(status->control, &json);
    json_member_text(&json, "shortcoming", status->shortcoming ? status->shortcoming : "");
    json_member_text(&json, "upload_error", status->upload.error);
    json_member_text(&json, "symbols_error", status->symbols.error);
    json_member_text(&json, "budget_reason", guard_reason_name(agent->guard.reason));
    json_member_text(&json, "budget_what", agent->guard.what);
    json_member_text(&json, "budget_why", agent->guard.level ? agent->guard_why : "");
    json_write_key(&json, "sampling");
    json_write_object(&json);
    json_member_unsigned(&json, "rate", agent->sampling.rate_hz);
    json_member_bool(&json, "wall", agent->sampling.wall);
    json_member_unsigned(&json, "wall_rate", agent->sampling.wall_rate_hz);
    json_member_bool(&json, "heap", agent->sampling.heap);
    json_member_bool(&json, "faults", agent->sampling.faults);
    json_member_bool(&json, "rss", agent->sampling.rss);
    json_member_bool(&json, "ordered", agent->sampling.ordered);
    json_member_bool(&json, "cut", agent->sampling.cut);
    json_member_text(&json, "text", agent->sampling_text);
    json_write_object_end(&json);
    put_degraded_json(&json, status);
    json_member_bool(&json, "paused", agent->paused);
    for (size_t i = 0; i < count; i++)
        json_member_digits(&json, numbers[i].key, numbers[i].value, 15);
    json_write_key(&json, "collectors");
    json_write_object(&json);
    for (size_t i = 0; i < agent->collector_count; i++) {
        json_write_key(&json, agent->collectors[i].name);
        json_write_object(&json);
        json_member_bool(&json, "on", agent->collectors[i].on);
        json_member_number(&json, "bpf_seconds", (double)agent->collectors[i].run_ns / 1e9);
        json_member_unsigned(&json, "runs", agent->collectors[i].runs);
        json_write_object_end(&json);
    }
    json_write_object_end(&json);
    json_write_key(&json, "losses");
    json_write_object(&json);
    for (size_t i = 0; i < agent->loss_count; i++)
        json_member_unsigned(&json, agent->losses[i].reason, agent->losses[i].count);
    json_write_object_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

/* Why less is sampled than was asked for: one of them is 1, or none. */
static void put_reasons(struct buffer *out, enum guard_reason now)
{
    buffer_add_text(out, "# HELP assay_agent_budget_exceeded Whether this limit caused "
                         "throttling.\n# TYPE assay_agent_budget_exceeded gauge\n");
    for (enum guard_reason reason = GUARD_CPU; reason <= GUARD_UPLOAD; reason++)
        buffer_printf(out, "assay_agent_budget_exceeded{limit=\"%s\"} %d\n",
                      guard_reason_name(reason), reason == now);
}

static void put_collectors(struct buffer *out, const struct agent_stats *agent)
{
    buffer_add_text(out, "# HELP assay_agent_collector_on Whether a collector is on.\n"
                         "# TYPE assay_agent_collector_on gauge\n");
    for (size_t i = 0; i < agent->collector_count; i++)
        buffer_printf(out, "assay_agent_collector_on{collector=\"%s\"} %d\n",
                      agent->collectors[i].name, agent->collectors[i].on);
    buffer_add_text(out,
                    "# HELP assay_agent_collector_bpf_seconds_total CPU time of its BPF programs.\n"
                    "# TYPE assay_agent_collector_bpf_seconds_total counter\n");
    for (size_t i = 0; i < agent->collector_count; i++)
        buffer_printf(out, "assay_agent_collector_bpf_seconds_total{collector=\"%s\"} %.9g\n",
                      agent->collectors[i].name, (double)agent->collectors[i].run_ns / 1e9);
}

static void put_metrics(struct buffer *out, struct agent *agent, const struct status *status)
{
    struct number numbers[NUMBERS_MAX];
    size_t count = list_numbers(status, numbers);
    for (size_t i = 0; i < count; i++) {
        const char *name = numbers[i].metric;
        if (!name)
            continue;
        buffer_printf(out, "# HELP assay_agent_%s %s\n# TYPE assay_agent_%s %s\n", name,
                      numbers[i].help, name, numbers[i].gauge ? "gauge" : "counter");
        buffer_printf(out, "assay_agent_%s %.15g\n", name, numbers[i].value);
    }
    put_collectors(out, &status->agent);
    pthread_mutex_lock(&agent->lock);
    levels_write(&agent->levels, monotonic_ns(), out);
    pthread_mutex_unlock(&agent->lock);
    put_reasons(out, status->agent.guard.reason);
    put_degraded_metrics(out, status);
    redactor_write_metrics(status->redactor, "assay_agent_redactions_total", out);
    buffer_add_text(
        out,
        "# HELP assay_agent_lost_total Losses by reason.\n# TYPE assay_agent_lost_total counter\n");
    for (size_t i = 0; i < status->agent.loss_count; i++)
        buffer_printf(out, "assay_agent_lost_total{reason=\"%s\"} %" PRIu64 "\n",
                      status->agent.losses[i].reason, status->agent.losses[i].count);
}

static void put_upload(struct buffer *out, const struct status *status)
{
    const struct upload_stats *upload = &status->upload;
    buffer_printf(out, "upload    %" PRIu64 " of %" PRIu64 " requests accepted, %.1f KiB",
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

static void put_symbols(struct buffer *out, const struct agent_symbols_stats *symbols)
{
    if (!symbols->asked)
        return;
    buffer_printf(out, "symbols   %" PRIu64 " of %" PRIu64 " requested files uploaded, %.1f KiB\n",
                  symbols->sent, symbols->asked, (double)symbols->bytes / 1024);
    if (symbols->error[0])
        buffer_printf(out, "          %s\n", symbols->error);
}

static void put_budget(struct buffer *out, const struct agent_stats *agent)
{
    const struct guard_stats *guard = &agent->guard;
    buffer_printf(out,
                  "budget    %.2g%% of the host's CPU (limit %.3g%%), %.0f MiB (limit %.0f), %.0f "
                  "KiB a minute (limit %.0f)\n",
                  100 * guard->cpu_share, 100 * guard->limits.cpu_share,
                  (double)agent->cost.resident_bytes / (1 << 20),
                  (double)guard->limits.resident_bytes / (1 << 20), guard->upload_per_minute / 1024,
                  (double)guard->limits.upload_bytes / 1024);
    if (guard->level)
        buffer_printf(out, "          sampled %s: %s\n", guard->what, agent->guard_why);
}

static void put_text(struct buffer *out, const struct status *status)
{
    const struct agent_stats *agent = &status->agent;
    const struct capture_stats *capture = &agent->capture;
    char reason[AGENT_CONTROL_REASON_BYTES];
    agent_control_reason(status->control, reason);
    if (*reason)
        buffer_printf(out, "sampling  off: %s\n", reason);
    else if (agent->paused || agent->guard.rest)
        buffer_printf(out, "sampling  off\n");
    else
        buffer_printf(out, "sampling  by %s, %u times a second on each CPU\n", status->backend,
                      agent->rate_hz);
    if (agent->sampling.ordered)
        buffer_printf(out, "          %s\n", agent->sampling_text);
    if (status->shortcoming)
        buffer_printf(out, "          %s\n", status->shortcoming);
    buffer_printf(out, "samples   %" PRIu64 " of %" PRIu64 " processes, %.1f s of CPU time\n",
                  capture->samples, capture->processes, (double)capture->cpu_ns / 1e9);
    for (size_t i = 0; i < agent->collector_count; i++)
        buffer_printf(out, "collector %s %s, %.3f s of BPF\n", agent->collectors[i].name,
                      agent->collectors[i].on ? "on" : "off",
                      (double)agent->collectors[i].run_ns / 1e9);
    for (size_t i = 0; i < agent->loss_count; i++)
        buffer_printf(out, "lost      %" PRIu64 " %s\n", agent->losses[i].count,
                      agent->losses[i].what);
    buffer_printf(out, "stacks    %.2f%% of user stacks complete, %.2f%% of frames unresolved\n",
                  100 * share(capture->ends[UNWIND_END_COMPLETE], capture->walks),
                  100 * share(agent->names.unnamed, agent->names.frames));
    buffer_printf(out,
                  "targets   %" PRIu64 " processes with recent samples, %" PRIu64 " followed\n",
                  agent->targets, capture->tracked);
    buffer_printf(out, "windows   %" PRIu64 ", %" PRIu64 " of them dropped\n",
                  agent->encoder.windows, agent->encoder.dropped);
    put_upload(out, status);
    put_symbols(out, &status->symbols);
    buffer_printf(out, "cost      %.2f%% of a CPU in the last second; %.1f s since the start",
                  100 * agent->cost.cpu_share, (double)agent->cost.cpu_ns / 1e9);
    if (agent->cost.bpf_ns >= 0)
        buffer_printf(out, ", and %.2f s in BPF programs", (double)agent->cost.bpf_ns / 1e9);
    buffer_printf(out, "\nmemory    %.1f MiB\n", (double)agent->cost.resident_bytes / (1 << 20));
    put_budget(out, agent);
    put_degraded_text(out, status);
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
    put_metrics(&body, agent, &status);
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
