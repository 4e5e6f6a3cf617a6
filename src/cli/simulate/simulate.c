// SPDX-License-Identifier: Apache-2.0
// `assay simulate`: a fleet that doesn't exist sends its profiles to a server.

#include <ctype.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/input.h"
#include "cli/simulate/simulate.h"
#include "config/quantity.h"
#include "io/json_write.h"
#include "query/query.h"
#include "simulate/campaign.h"

#define SECOND 1000000000ll
#define AGENTS_MAX 100000
#define SERVICES_MAX 10000

struct simulate_options {
    const char *server, *interval, *duration, *from, *format, *coding, *token_file, *sums;
    uint64_t agents, services, per_agent, rows, stacks, seed, rounds, in_flight, deploy, pid;
    double rate, known, regression;
    bool fast, prime, prepare, json;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static void show_progress(void *context, const char *doing, uint64_t done, uint64_t all)
{
    (void)context;
    fprintf(stderr, "\r%s: %llu of %llu uploads\033[K", doing, (unsigned long long)done,
            (unsigned long long)all);
    if (done >= all)
        fprintf(stderr, "\r\033[K");
    fflush(stderr);
}

static int read_token(const char *path, struct buffer *token)
{
    struct error error = {0};
    const char *text = getenv("ASSAY_TOKEN");
    if (path && file_read(path, 4096, token, &error) < 0)
        return fail(&error);
    if (!path && text)
        buffer_add_text(token, text);
    while (token->length && isspace((unsigned char)token->data[token->length - 1]))
        token->length--;
    return EXIT_FINE;
}

static int write_sums(const char *path, const struct campaign_result *result)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct error error = {0};
    buffer_add_text(&text, "service,rows,value\n");
    for (uint32_t i = 0; i < result->sum_count; i++)
        buffer_printf(&text, "service-%03u,%llu,%lld\n", i,
                      (unsigned long long)result->sums[i].rows, (long long)result->sums[i].value);
    return file_write_atomic(path, text.data, text.length, &error) < 0 ? fail(&error) : EXIT_FINE;
}

/* ---- the closing table: one list of stats, printed as text or as JSON ---- */

struct figure {
    const char *key, *title;
    double value;
    int decimals;
    bool known;
};

/* One answer's status as a name: "503", or "broken" where there was none. */
static const char *status_name(unsigned status, char text[16])
{
    snprintf(text, 16, status ? "%u" : "broken", status);
    return text;
}

static bool is_refusal(const struct campaign_result *result, unsigned status)
{
    return status != 200 && result->answers[status];
}

static void print_table(const struct campaign_result *result, const struct figure *stats,
                        size_t count)
{
    char name[16];
    for (size_t i = 0; i < count; i++)
        if (stats[i].known)
            printf("%-22s %14.*f\n", stats[i].title, stats[i].decimals, stats[i].value);
    for (unsigned i = 0; i < CAMPAIGN_STATUSES; i++)
        if (is_refusal(result, i))
            printf("rejected    %8llu  %s: %s\n", (unsigned long long)result->answers[i],
                   status_name(i, name), result->texts[i] ? result->texts[i] : "");
}

static void print_json(const struct campaign_result *result, const struct figure *stats,
                       size_t count)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct json_writer json = json_writer(&text);
    char name[16];
    json_write_object(&json);
    for (size_t i = 0; i < count; i++)
        if (stats[i].known)
            json_member_fixed(&json, stats[i].key, stats[i].value, stats[i].decimals);
    json_write_key(&json, "refused");
    json_write_object(&json);
    for (unsigned i = 0; i < CAMPAIGN_STATUSES; i++)
        if (is_refusal(result, i))
            json_member_unsigned(&json, status_name(i, name), result->answers[i]);
    json_write_object_end(&json);
    json_write_object_end(&json);
    puts(buffer_text(&text));
}

static void print_result(const struct campaign_result *result, bool json)
{
    double seconds = fmax(result->seconds, 1e-9), server = result->server_cpu_seconds;
    const struct figure stats[] = {
        {"uploads", "uploads sent", (double)result->uploads, 0, true},
        {"acknowledged", "acknowledged", (double)result->acknowledged, 0, true},
        {"given_up", "given up", (double)result->given_up, 0, true},
        {"repeated_tries", "sent again", (double)result->repeated_tries, 0, true},
        {"late", "late by 1 s or more", (double)result->late, 0, true},
        {"windows", "windows", (double)result->windows, 0, true},
        {"rows", "rows (samples)", (double)result->rows, 0, true},
        {"primed_rows", "rows sent before", (double)result->primed_rows, 0, result->primed_rows},
        {"body_bytes", "bytes of bodies", (double)result->bodies_bytes, 0, true},
        {"seconds", "seconds", result->seconds, 3, true},
        {"rows_per_second", "rows a second", (double)result->rows / seconds, 0, true},
        {"latency_p50_ms", "latency p50, ms", result->latency_p50_ms, 1, true},
        {"latency_p99_ms", "latency p99, ms", result->latency_p99_ms, 1, true},
        {"cpu_seconds", "our CPU seconds", result->cpu_seconds, 3, true},
        {"server_cpu_seconds", "server's CPU seconds", server, 3, server >= 0},
        {"server_maintenance_seconds", "  of it maintenance", result->server_maintenance_seconds, 3,
         server >= 0},
        {"rows_per_core_second", "rows a core-second", (double)result->rows / server, 0,
         server > 0},
        {"server_cores", "server's cores", server / seconds, 3, server >= 0},
        {"server_memory", "server's memory", (double)result->server_memory, 0,
         result->server_memory},
        {"server_peak_memory", "server's peak memory", (double)result->server_peak_memory, 0,
         result->server_memory},
    };
    if (json)
        print_json(result, stats, ARRAY_LENGTH(stats));
    else
        print_table(result, stats, ARRAY_LENGTH(stats));
}

/* ---- options ---- */

static int read_times(const struct simulate_options *options, struct campaign_options *campaign)
{
    struct error error = {0};
    int64_t now = clock_ns(CLOCK_REALTIME), interval, duration = 0;
    if (!quantity_duration(options->interval, &interval) || interval < SECOND / 1000)
        return options_wrong("simulate", "\"%s\" is not an interval; use a form such as 10s.",
                             options->interval);
    if (options->duration && (!quantity_duration(options->duration, &duration) || !duration))
        return options_wrong("simulate", "\"%s\" is not a duration; use a form such as 5m.",
                             options->duration);
    if (options->duration && options->rounds)
        return options_wrong("simulate", "--duration and --rounds are mutually exclusive.");
    uint64_t rounds = options->duration ? (uint64_t)((duration + interval - 1) / interval)
                      : options->rounds ? options->rounds
                                        : 6;
    if (rounds >= UINT32_MAX / 2)
        return options_wrong("simulate", "Too many rounds.");
    campaign->rounds = (uint32_t)rounds;
    campaign->paced = !options->fast && !options->from;
    campaign->fleet.interval_ns = interval;
    /* Windows that are over when they are sent. */
    campaign->fleet.start_ns =
        campaign->paced ? now - interval : now - interval * (int64_t)(rounds + 1);
    if (options->from && query_time(options->from, now, &campaign->fleet.start_ns, &error) < 0)
        return fail(&error);
    return -1;
}

static int read_options(const struct simulate_options *options, struct campaign_options *campaign)
{
    if (!options->server)
        return options_wrong("simulate", "Specify the server with --server URL.");
    if (!options->agents || options->agents > AGENTS_MAX || !options->services ||
        options->services > SERVICES_MAX)
        return options_wrong("simulate", "The limits are 1 to %d agents and 1 to %d services.",
                             AGENTS_MAX, SERVICES_MAX);
    if (!options->rows || options->rows > 1000000 || !options->stacks ||
        options->stacks > 1000000 || !options->in_flight)
        return options_wrong("simulate",
                             "--rows, --stacks and --in-flight must be from 1 to a million.");
    if (!(options->known >= 0 && options->known <= 1) || !(options->regression >= 0))
        return options_wrong("simulate",
                             "--stacks-known must be from 0 to 1, --regression at least 0.");
    bool pprof = !strcmp(options->format, "pprof");
    if (!pprof && strcmp(options->format, "otlp"))
        return options_wrong("simulate", "--format must be otlp or pprof.");
    static const char *const codings[] = {"gzip", "zstd", "none"};
    size_t coding = 0;
    while (coding < ARRAY_LENGTH(codings) && strcmp(options->coding, codings[coding]))
        coding++;
    if (coding == ARRAY_LENGTH(codings))
        return options_wrong("simulate", "--compression must be gzip, zstd or none.");
    campaign->url = options->server;
    campaign->rate = options->rate;
    campaign->in_flight = (uint32_t)options->in_flight;
    campaign->prime = options->prime;
    campaign->prepare = options->prepare;
    campaign->server_pid = (int)MIN(options->pid, (uint64_t)INT32_MAX);
    campaign->stop = &stopped;
    campaign->progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    campaign->fleet = (struct fleet_options){
        .seed = options->seed,
        .agents = (uint32_t)options->agents,
        .services = (uint32_t)options->services,
        .services_per_agent = (uint32_t)MIN(options->per_agent, SERVICES_MAX),
        .rows = (uint32_t)options->rows,
        .stacks = (uint32_t)options->stacks,
        .known = options->known,
        .deploy = (uint32_t)MIN(options->deploy, UINT32_MAX / 2),
        .regression = options->regression,
        .format = pprof ? FLEET_PPROF : FLEET_OTLP,
        .coding = (enum fleet_coding)coding};
    return read_times(options, campaign);
}

static int run(const struct simulate_options *options, struct campaign_options *campaign)
{
    _cleanup_buffer_ struct buffer token = {0};
    struct error error = {0};
    struct campaign_result result;
    int r = read_token(options->token_file, &token);
    if (r != EXIT_FINE)
        return r;
    campaign->token = token.length ? buffer_text(&token) : NULL;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    r = campaign_run(campaign, &result, &error);
    if (r < 0) {
        campaign_result_release(&result);
        return fail(&error);
    }
    print_result(&result, options->json);
    if (campaign->fleet.deploy && campaign->fleet.regression > 0 && !options->json) {
        struct fleet fleet;
        fleet_init(&fleet, &campaign->fleet);
        printf("slower since round %u: %s of service-000\n", campaign->fleet.deploy,
               fleet_slow_function(&fleet));
        fleet_release(&fleet);
    }
    r = options->sums ? write_sums(options->sums, &result) : EXIT_FINE;
    if (r == EXIT_FINE && result.acknowledged < result.uploads)
        r = EXIT_FAILED;
    campaign_result_release(&result);
    return r;
}

int simulate_fleet(int argc, char **argv)
{
    struct simulate_options options = {.agents = 10,
                                       .services = 10,
                                       .per_agent = 10,
                                       .rows = 50,
                                       .stacks = 2000,
                                       .seed = 1,
                                       .in_flight = 64,
                                       .known = 0.95,
                                       .interval = "10s",
                                       .format = "otlp",
                                       .coding = "gzip"};
    const struct option own[] = {
        {"Fleet", .kind = OPTION_GROUP},
        {"agents", 'n', OPTION_COUNT, "N", "number of hosts with an agent (10)", &options.agents},
        {"services", 's', OPTION_COUNT, "N", "number of services in total (10)", &options.services},
        {"services-per-agent", 0, OPTION_COUNT, "N", "services on each host (10)",
         &options.per_agent},
        {"rows", 0, OPTION_COUNT, "N", "distinct stacks of a service in an upload (50)",
         &options.rows},
        {"stacks", 0, OPTION_COUNT, "N", "recurring stacks of a service (2000)", &options.stacks},
        {"stacks-known", 0, OPTION_NUMBER, "SHARE", "share of rows with a recurring stack (0.95)",
         &options.known},
        {"deploy", 0, OPTION_COUNT, "ROUND",
         "round in which all services get a new version (never)", &options.deploy},
        {"regression", 0, OPTION_NUMBER, "SHARE", "slowdown of one function in this version",
         &options.regression},
        {"seed", 0, OPTION_COUNT, "N", "seed of the random numbers (1)", &options.seed},
        {"Sending", .kind = OPTION_GROUP},
        {"server", 'u', OPTION_TEXT, "URL", "URL of the server, http://HOST:PORT", &options.server},
        {"token-file", 0, OPTION_TEXT, "FILE", "file with the token; default: $ASSAY_TOKEN",
         &options.token_file},
        {"format", 'f', OPTION_TEXT, "F", "otlp, or pprof with one upload per service",
         &options.format},
        {"compression", 0, OPTION_TEXT, "C", "gzip (default), zstd or none", &options.coding},
        {"interval", 'i', OPTION_TEXT, "T", "time between an agent's uploads (10s)",
         &options.interval},
        {"rounds", 0, OPTION_COUNT, "N", "uploads of each agent (6)", &options.rounds},
        {"duration", 'd', OPTION_TEXT, "T", "run for this time instead", &options.duration},
        {"fast", 0, OPTION_FLAG, NULL, "don't wait; windows are in the past", &options.fast},
        {"from", 0, OPTION_TEXT, "T", "the same, with windows from this time, such as now-1d",
         &options.from},
        {"rate", 0, OPTION_NUMBER, "N", "limit of uploads per second with --fast and --from",
         &options.rate},
        {"in-flight", 0, OPTION_COUNT, "N", "parallel uploads with --fast and --from (64)",
         &options.in_flight},
        {"prime", 0, OPTION_FLAG, NULL, "first send every stack once, not counted", &options.prime},
        {"prepare", 0, OPTION_FLAG, NULL, "prepare all uploads before sending the first",
         &options.prepare},
        {"Result", .kind = OPTION_GROUP},
        {"json", 0, OPTION_FLAG, NULL, "print the final table as JSON", &options.json},
        {"sums", 0, OPTION_TEXT, "OUT", "write the acknowledged values by service as CSV",
         &options.sums},
        {"server-pid", 0, OPTION_COUNT, "PID",
         "pid of the server on this machine, to measure its cost", &options.pid},
        {0}};
    struct command_line line = {
        .command = "simulate",
        .arguments = "--server URL",
        .summary = "Sends profiles of a simulated fleet to a server, reproducibly for a seed.",
        .options = own,
    };
    struct campaign_options campaign = {0};
    int r = options_parse(&line, argc, argv);
    if (r < 0)
        r = read_options(&options, &campaign);
    return r < 0 ? run(&options, &campaign) : r;
}
