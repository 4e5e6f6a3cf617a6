// SPDX-License-Identifier: Apache-2.0
// Runs the fleet against a server: one thread, one connection for each agent.

#include "simulate/campaign.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "simulate/courier.h"

#define SECOND 1000000000ll
#define TRIES_MOST 10
#define PREPARED_BYTES_MAX (4ull << 30)
#define PROGRESS_NS (SECOND / 2)
#define LAST_ANSWERS_NS (3 * SECOND) /* how long they are waited for after a stop */

struct slot { /* an agent's connection */
    struct fleet_upload upload;
    bool busy, waiting; /* on its way; refused, and to be sent again */
    unsigned tries;
    int64_t again_ns;
};

struct campaign {
    const struct campaign_options *options;
    struct campaign_result *result;
    struct fleet fleet;
    struct courier *courier;
    struct slot *slots;
    struct fleet_upload *prepared; /* NULL: made when sent */
    uint32_t *latencies_us;
    size_t latency_count;
    uint64_t next, all, in_flight;
    bool priming;
    int64_t began_ns, told_ns;
    int64_t stopped_ns; /* when the symbol request to stop was first seen; 0: it wasn't */
};

/* ---- what the server takes ---- */

/* Of a process or a thread, by its directory in /proc; -1: unknown. */
static double cpu_seconds_in(const char *folder)
{
    char path[128], text[1024];
    snprintf(path, sizeof(path), "%s/stat", folder);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    const char *at = strrchr(text, ')'); /* the command's name may hold anything */
    unsigned long user, system;
    if (!at ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return -1;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double cpu_seconds_of(int pid)
{
    char folder[64];
    snprintf(folder, sizeof(folder), "/proc/%d", pid);
    return cpu_seconds_in(folder);
}

static bool keeps_house(const char *name)
{
    return !strcmp(name, "maintenance\n") || !strcmp(name, "symbols\n");
}

/* Of the server's threads that compact and roll up, and look what lacks names: these are not
 * between a socket and the disk. */
static double maintenance_seconds_of(int pid)
{
    char folder[64], path[128], name[64];
    double seconds = 0;
    snprintf(folder, sizeof(folder), "/proc/%d/task", pid);
    DIR *threads = opendir(folder);
    for (struct dirent *entry; threads && (entry = readdir(threads));) {
        snprintf(path, sizeof(path), "%s/%.20s/comm", folder, entry->d_name);
        FILE *file = fopen(path, "re");
        bool named = file && fgets(name, sizeof(name), file) && keeps_house(name);
        if (file)
            fclose(file);
        snprintf(path, sizeof(path), "%s/%.20s", folder, entry->d_name);
        if (named)
            seconds += fmax(cpu_seconds_in(path), 0);
    }
    if (threads)
        closedir(threads);
    return seconds;
}

static void read_memory(int pid, uint64_t *ret_now, uint64_t *ret_peak)
{
    char path[64], line[256];
    unsigned long kib;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "VmRSS: %lu", &kib) == 1)
            *ret_now = kib * 1024ull;
        if (sscanf(line, "VmHWM: %lu", &kib) == 1)
            *ret_peak = kib * 1024ull;
    }
    if (file)
        fclose(file);
}

/* ---- one upload ---- */

static void make_upload(struct campaign *campaign, uint64_t index, struct fleet_upload *upload)
{
    uint32_t agents = campaign->options->fleet.agents, parts = fleet_uploads(&campaign->fleet);
    if (campaign->priming)
        fleet_upload_make(&campaign->fleet, (uint32_t)index, FLEET_PRIME, 0, upload);
    else
        fleet_upload_make(&campaign->fleet, (uint32_t)(index % agents),
                          (uint32_t)(index / agents / parts), (uint32_t)(index / agents % parts),
                          upload);
}

static void carry(struct campaign *campaign, uint32_t connection)
{
    struct slot *slot = &campaign->slots[connection];
    const struct fleet_options *fleet = &campaign->options->fleet;
    struct courier_load load = {.target = slot->upload.target,
                                .content_type = fleet->format == FLEET_OTLP
                                                    ? "application/x-protobuf"
                                                    : "application/octet-stream",
                                .content_coding = fleet->coding == FLEET_GZIP   ? "gzip"
                                                  : fleet->coding == FLEET_ZSTD ? "zstd"
                                                                                : NULL,
                                .batch_id = slot->upload.batch_id,
                                .body = slot->upload.body.data,
                                .length = slot->upload.body.length};
    slot->busy = true;
    slot->waiting = false;
    slot->tries++;
    campaign->in_flight++;
    courier_send(campaign->courier, connection, &load);
}

static void acknowledge(struct campaign *campaign, const struct slot *slot)
{
    struct campaign_result *result = campaign->result;
    for (uint32_t i = 0; i < slot->upload.sum_count; i++) {
        const struct fleet_sum *sum = &slot->upload.sums[i];
        result->sums[sum->service].rows += sum->rows;
        result->sums[sum->service].value += sum->value;
    }
    if (campaign->priming) {
        result->primed_rows += slot->upload.rows;
        return;
    }
    result->acknowledged++;
    result->rows += slot->upload.rows;
    result->windows += slot->upload.sum_count;
    result->bodies_bytes += slot->upload.body.length;
}

static bool may_pass(unsigned status)
{
    return !status || status == 408 || status == 429 || (status >= 500 && status != 501);
}

/* A server that was never there won't come. */
static unsigned tries_most(const struct campaign_result *result, unsigned status)
{
    return status || result->primed_rows || result->acknowledged ? TRIES_MOST : 3;
}

static void take_answer(struct campaign *campaign, const struct courier_answer *answer)
{
    struct campaign_result *result = campaign->result;
    struct slot *slot = &campaign->slots[answer->connection];
    unsigned status = answer->status < CAMPAIGN_STATUSES ? answer->status : 0;
    slot->busy = false;
    campaign->in_flight--;
    if (!campaign->priming) {
        result->answers[status]++;
        campaign->latencies_us[campaign->latency_count++ % campaign->all] =
            (uint32_t)MIN(answer->latency_ns / 1000, (int64_t)UINT32_MAX);
    }
    if (!result->texts[status])
        result->texts[status] = memory_strdup(answer->text);
    if (status == 200) {
        acknowledge(campaign, slot);
    } else if (may_pass(status) && slot->tries < tries_most(result, status) &&
               !*campaign->options->stop) {
        int64_t wait_ms = answer->retry_after_ms >= 0 ? answer->retry_after_ms : 1000;
        slot->waiting = true;
        slot->again_ns = monotonic_ns() + wait_ms * 1000000;
        result->repeated_tries++;
        return;
    } else {
        result->given_up += may_pass(status);
    }
    fleet_upload_release(&slot->upload);
}

/* ---- when ---- */

static int64_t due_ns(const struct campaign *campaign, uint64_t index)
{
    const struct campaign_options *options = campaign->options;
    if (campaign->priming)
        return 0;
    if (options->paced)
        return campaign->began_ns +
               (int64_t)((double)options->fleet.interval_ns * (double)index /
                         options->fleet.agents / fleet_uploads(&campaign->fleet));
    return options->rate > 0 ? campaign->began_ns + (int64_t)((double)index * 1e9 / options->rate)
                             : 0;
}

/* Sends what can be sent now; returns when something is due next. */
static int64_t send_due(struct campaign *campaign)
{
    const struct campaign_options *options = campaign->options;
    uint32_t agents = options->fleet.agents;
    int64_t now = monotonic_ns(), next = now + SECOND;
    uint64_t most = options->paced && !campaign->priming ? agents : options->in_flight;
    for (uint32_t i = 0; i < agents && campaign->result->repeated_tries; i++) {
        struct slot *slot = &campaign->slots[i];
        if (!slot->waiting)
            continue;
        if (slot->again_ns <= now)
            carry(campaign, i);
        else
            next = MIN(next, slot->again_ns);
    }
    while (campaign->next < campaign->all && campaign->in_flight < most &&
           !*campaign->options->stop) {
        uint32_t connection = (uint32_t)(campaign->next % agents);
        struct slot *slot = &campaign->slots[connection];
        int64_t due = due_ns(campaign, campaign->next);
        if (due > now)
            return MIN(next, due);
        if (slot->busy || slot->waiting)
            return next;
        if (campaign->prepared && !campaign->priming) {
            slot->upload = campaign->prepared[campaign->next];
            campaign->prepared[campaign->next] = (struct fleet_upload){0};
        } else {
            make_upload(campaign, campaign->next, &slot->upload);
        }
        slot->tries = 0;
        campaign->next++;
        campaign->result->uploads += !campaign->priming;
        campaign->result->late += due && now - due > SECOND;
        carry(campaign, connection);
        now = monotonic_ns();
    }
    return next;
}

static bool unfinished(struct campaign *campaign)
{
    if (*campaign->options->stop && !campaign->stopped_ns)
        campaign->stopped_ns = monotonic_ns();
    if (campaign->stopped_ns && monotonic_ns() - campaign->stopped_ns > LAST_ANSWERS_NS)
        return false;
    if (campaign->in_flight || (campaign->next < campaign->all && !*campaign->options->stop))
        return true;
    for (uint32_t i = 0; i < campaign->options->fleet.agents; i++)
        if (campaign->slots[i].waiting)
            return !*campaign->options->stop;
    return false;
}

static void tell(struct campaign *campaign, const char *doing, uint64_t done, uint64_t all)
{
    int64_t now = monotonic_ns();
    if (!campaign->options->progress || (done < all && now - campaign->told_ns < PROGRESS_NS))
        return;
    campaign->told_ns = now;
    campaign->options->progress(campaign->options->progress_context, doing, done, all);
}

/* Those whose answers didn't come before the end, which may be stored or not. */
static void give_up(struct campaign *campaign)
{
    for (uint32_t i = 0; campaign->in_flight && i < campaign->options->fleet.agents; i++)
        if (campaign->slots[i].busy)
            campaign->result->given_up++;
    campaign->in_flight = 0;
}

static void run(struct campaign *campaign, const char *doing, uint64_t all)
{
    campaign->next = 0;
    campaign->all = all;
    campaign->began_ns = monotonic_ns();
    while (unfinished(campaign)) {
        int64_t wait_ns = send_due(campaign) - monotonic_ns();
        struct courier_answer answer;
        int timeout_ms = (int)MAX(0, MIN((wait_ns + 999999) / 1000000, 1000));
        while (courier_wait(campaign->courier, timeout_ms, &answer)) {
            take_answer(campaign, &answer);
            timeout_ms = 0;
        }
        tell(campaign, doing, campaign->next, all);
    }
    give_up(campaign);
}

/* ---- the whole ---- */

static int prepare(struct campaign *campaign, uint64_t all, struct error *error)
{
    uint64_t bytes = 0;
    campaign->prepared = memory_zalloc(all, sizeof(*campaign->prepared));
    for (uint64_t i = 0; i < all && !*campaign->options->stop; i++) {
        make_upload(campaign, i, &campaign->prepared[i]);
        bytes += campaign->prepared[i].body.length;
        if (bytes > PREPARED_BYTES_MAX)
            return error_set(error, -E2BIG,
                             "The uploads take more than 4 GiB; prepare fewer rounds.");
        tell(campaign, "preparing", i + 1, all);
    }
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void finish(struct campaign *campaign)
{
    size_t count = MIN(campaign->latency_count, campaign->all);
    if (!count)
        return;
    qsort(campaign->latencies_us, count, sizeof(uint32_t), compare_numbers);
    campaign->result->latency_p50_ms = campaign->latencies_us[count / 2] / 1000.0;
    campaign->result->latency_p99_ms = campaign->latencies_us[count * 99 / 100] / 1000.0;
}

static void campaign_release(struct campaign *campaign)
{
    uint64_t all = campaign->all;
    for (uint64_t i = 0; campaign->prepared && i < all; i++)
        fleet_upload_release(&campaign->prepared[i]);
    for (uint32_t i = 0; campaign->slots && i < campaign->options->fleet.agents; i++)
        fleet_upload_release(&campaign->slots[i].upload);
    free(campaign->prepared);
    free(campaign->slots);
    free(campaign->latencies_us);
    courier_free(campaign->courier);
    fleet_release(&campaign->fleet);
}

static void measured_run(struct campaign *campaign, uint64_t all)
{
    struct campaign_result *result = campaign->result;
    int pid = campaign->options->server_pid;
    double before = pid ? cpu_seconds_of(pid) : -1;
    double house = pid ? maintenance_seconds_of(pid) : 0;
    int64_t began = monotonic_ns(), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    run(campaign, "sending", all);
    result->seconds = (double)(monotonic_ns() - began) / 1e9;
    result->cpu_seconds = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e9;
    result->server_cpu_seconds = -1;
    if (before >= 0)
        result->server_cpu_seconds = cpu_seconds_of(pid) - before;
    if (pid)
        result->server_maintenance_seconds = maintenance_seconds_of(pid) - house;
    if (pid)
        read_memory(pid, &result->server_memory, &result->server_peak_memory);
}

int campaign_run(const struct campaign_options *options, struct campaign_result *ret_result,
                 struct error *error)
{
    *ret_result = (struct campaign_result){0};
    _cleanup_(campaign_release) struct campaign campaign = {.options = options,
                                                            .result = ret_result};
    int r =
        courier_new(options->url, options->token, options->fleet.agents, &campaign.courier, error);
    if (r < 0)
        return r;
    fleet_init(&campaign.fleet, &options->fleet);
    ret_result->sum_count = options->fleet.services;
    ret_result->sums = memory_zalloc(options->fleet.services, sizeof(*ret_result->sums));
    campaign.slots = memory_zalloc(options->fleet.agents, sizeof(*campaign.slots));
    uint64_t all =
        (uint64_t)options->rounds * options->fleet.agents * fleet_uploads(&campaign.fleet);
    campaign.all = all;
    campaign.latencies_us = memory_zalloc(all, sizeof(*campaign.latencies_us));
    if (options->prepare)
        r = prepare(&campaign, all, error);
    if (r < 0)
        return r;
    if (options->prime) {
        campaign.priming = true;
        run(&campaign, "priming", fleet_primers(&campaign.fleet));
        campaign.priming = false;
        campaign.all = all;
    }
    measured_run(&campaign, all);
    finish(&campaign);
    if (!ret_result->acknowledged && ret_result->answers[0] && !*options->stop)
        return error_set(error, -ECONNREFUSED, "%s", ret_result->texts[0]);
    return 0;
}

void campaign_result_release(struct campaign_result *result)
{
    for (size_t i = 0; i < CAMPAIGN_STATUSES; i++)
        free(result->texts[i]);
    free(result->sums);
    *result = (struct campaign_result){0};
}
