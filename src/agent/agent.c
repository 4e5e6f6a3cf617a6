// SPDX-License-Identifier: Apache-2.0
// Windows of samples, one after the other: see agent.h.

#include "agent/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/guard/privilege.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/server/server.h"

#define READ_MS 250 /* at most, between looks at what has come */
#define TICK_NS 1000000000ll
#define SHORTAGE_BYTES ((size_t)16 << 20) /* set aside: see memory_reserve() */
/* Samples may come many times a second, and the switch has a second. */
#define SWITCH_NS 200000000ll
#define HTTP_GRACE_MS 100

/* ---- what it costs ---- */

static int64_t cpu_ns(clockid_t clock)
{
    return clock_ns(clock);
}

static uint64_t resident_bytes(void)
{
    unsigned long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct agent_cost measure(const struct agent_cost *before, int64_t bpf_ns, int64_t passed_ns)
{
    struct agent_cost cost = {.cpu_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID),
                              .bpf_ns = bpf_ns,
                              .resident_bytes = resident_bytes()};
    int64_t used = cost.cpu_ns - before->cpu_ns;
    if (bpf_ns >= 0 && before->bpf_ns >= 0)
        used += bpf_ns - before->bpf_ns;
    cost.cpu_share = passed_ns > 0 ? (double)used / (double)passed_ns : 0;
    return cost;
}

static uint64_t *find_loss(struct agent_stats *sum, const struct capture_loss *loss)
{
    for (size_t i = 0; i < sum->loss_count; i++)
        if (!strcmp(sum->losses[i].reason, loss->reason))
            return &sum->losses[i].count;
    if (sum->loss_count == CAPTURE_LOSSES_MAX)
        return NULL;
    sum->losses[sum->loss_count] = *loss;
    sum->losses[sum->loss_count].count = 0;
    return &sum->losses[sum->loss_count++].count;
}

/* The stats of a capture, which may be NULL, on top of those before it. */
static void add_capture(struct agent_stats *sum, const struct capture *capture)
{
    struct capture_loss losses[CAPTURE_LOSSES_MAX];
    if (!capture)
        return;
    struct capture_stats all = capture_stats(capture);
    const struct capture_stats *before = &sum->capture;
    all.samples += before->samples;
    all.cpu_ns += before->cpu_ns;
    all.processes += before->processes;
    all.walks += before->walks;
    for (size_t i = 0; i < UNWIND_END_KINDS; i++)
        all.ends[i] += before->ends[i];
    all.lost += before->lost;
    all.unwanted += before->unwanted;
    all.bpf_ns = all.bpf_ns < 0 ? all.bpf_ns : all.bpf_ns + MAX(before->bpf_ns, 0);
    all.copies += before->copies;
    sum->capture = all;
    size_t count = capture_losses(capture, losses);
    for (size_t i = 0; i < count; i++) {
        uint64_t *loss = find_loss(sum, &losses[i]);
        if (loss)
            *loss += losses[i].count;
    }
}

/* Logs users and cgroups that are newly left out of normal tracking. */
static void update_excess(struct agent *agent)
{
    struct capture_excess now[CAPTURE_EXCESS_MAX];
    struct agent_stats *stats = &agent->stats;
    size_t count = agent->capture ? capture_excess(agent->capture, now) : 0;
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t j = 0; j < stats->excess_count; j++)
            known = known || (stats->excess[j].user == now[i].user &&
                              !strcmp(stats->excess[j].what, now[i].what) &&
                              !strcmp(stats->excess[j].cgroup, now[i].cgroup));
        if (known)
            continue;
        char user[32] = "unknown users";
        if (now[i].user != CAPTURE_USER_UNKNOWN)
            snprintf(user, sizeof(user), "user %" PRIu32, now[i].user);
        log_warning("Too many %s of %s%s%s: recording less detail for them to protect others.",
                    now[i].what, user, now[i].cgroup[0] ? " in cgroup " : "", now[i].cgroup);
        if (agent->window)
            window_note(agent->window, "degraded: too many %s of %s %s", now[i].what, user,
                        now[i].cgroup);
    }
    memcpy(stats->excess, now, count * sizeof(*now));
    stats->excess_count = count;
}

/* Once a second: acts on the agent's own cost. */
static int tick(struct agent *agent, int64_t now_ns, struct error *error)
{
    memory_reserved(); /* if a shortage has used it */
    struct agent_stats all = agent->ended;
    struct agent_stats *stats = &agent->stats;
    add_capture(&all, agent->capture);
    struct capture_stats capture = all.capture;
    int64_t bpf_ns = capture.bpf_ns;
    if (bpf_ns >= 0)
        bpf_ns += atomic_load(&agent->recorded_bpf_ns);
    pthread_mutex_lock(&agent->lock);
    stats->capture = capture;
    memcpy(stats->losses, all.losses, sizeof(all.losses));
    stats->loss_count = all.loss_count;
    stats->backend = agent->capture ? capture_backend(agent->capture) : stats->backend;
    stats->cost = measure(&stats->cost, bpf_ns, now_ns - agent->ticked_ns);
    stats->rate_hz = agent->rate_hz;
    stats->sampling = agent->sampling;
    memcpy(stats->sampling_text, agent->sampling_text, sizeof(stats->sampling_text));
    stats->paused = agent->paused;
    if (agent->capture && agent->guard.state.rest && agent->ticked_ns) {
        stats->rest_ns += now_ns - agent->ticked_ns;
        agent->window_rest_ns += now_ns - agent->ticked_ns;
    }
    stats->targets = agent->targets.count;
    stats->targets_dropped = agent->targets.dropped;
    stats->pod_containers = pods_count(agent->targets.pods);
    update_excess(agent);
    pthread_mutex_unlock(&agent->lock);
    agent->ticked_ns = now_ns;
    return agent->capture ? agent_guard_tick(agent, now_ns, error) : 0;
}

struct agent_stats agent_stats(struct agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    struct agent_stats stats = agent->stats;
    pthread_mutex_unlock(&agent->lock);
    stats.encoder = encoder_stats(agent->encoder);
    stats.names = namer_stats(agent->namer);
    return stats;
}

/* ---- windows ---- */

static void begin_window(struct agent *agent)
{
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    agent->window = window_new(now_ns);
    agent->window_end_ns = (now_ns / AGENT_WINDOW_NS + 1) * AGENT_WINDOW_NS;
    agent->window_began_ns = monotonic_ns();
    /* One that begins a moment late is still the whole one. */
    if (agent->window_end_ns - now_ns > AGENT_WINDOW_NS - TICK_NS / 2)
        agent->window->time_ns = agent->window_end_ns - AGENT_WINDOW_NS;
    capture_into(agent->capture, &agent->window->profile);
    if (agent->sampling.ordered)
        window_note(agent->window, "sampling: %s", agent->sampling_text);
    agent_guard_note(agent, agent->window);
}

static int end_window(struct agent *agent, struct error *error)
{
    int r = capture_read(agent->capture, 0, true, error);
    if (r < 0)
        return r;
    struct window *window = TAKE_PTR(agent->window);
    struct capture_stats stats = capture_stats(agent->capture);
    int64_t duration_ns = agent->window_end_ns - window->time_ns;
    int64_t passed_ns = monotonic_ns() - agent->window_began_ns;
    /* The wall clock may have been set; and the last window ends early. */
    if (duration_ns <= 0 || passed_ns < duration_ns - TICK_NS || passed_ns > duration_ns + TICK_NS)
        duration_ns = passed_ns;
    capture_into(agent->capture, NULL);
    window->samples = stats.samples - agent->last.capture.samples;
    agent->last.capture = stats;
    window_note_losses(window, agent->capture, agent->last.losses, &agent->last.loss_count);
    if (agent->window_rest_ns)
        window_note(window, "budget: sampling was paused for %lld s of this window",
                    (long long)(agent->window_rest_ns + TICK_NS / 2) / TICK_NS);
    agent->window_rest_ns = 0;
    window_close(window, agent->capture, duration_ns, agent->settings->symbolize == SYMBOLIZE_HOST);
    targets_tidy(&agent->targets, monotonic_ns());
    pthread_mutex_lock(&agent->lock);
    agent->service_count =
        targets_services(&agent->targets, &agent->services, &agent->service_capacity);
    levels_take(&agent->levels, &window->profile, monotonic_ns());
    pthread_mutex_unlock(&agent->lock);
    if (agent_symbols_look(agent->symbols, agent->capture, &window->profile))
        agent_control_urge(agent->control);
    encoder_take(agent->encoder, window);
    return 0;
}

static bool window_over(const struct agent *agent)
{
    return clock_ns(CLOCK_REALTIME) >= agent->window_end_ns ||
           monotonic_ns() - agent->window_began_ns > AGENT_WINDOW_NS + TICK_NS;
}

/* ---- the switch ---- */

static int turn_on(struct agent *agent, struct error *error)
{
    int r = agent_capture_new(agent->settings, &agent->sampling, &agent->targets, &agent->capture,
                              error);
    agent->loaded_modes = sampling_modes(&agent->sampling);
    return r < 0 ? r : agent_guard_attach(agent, error);
}

/* Everything is closed: events, BPF programs and their maps. The unfinished window is sent. */
static int turn_off(struct agent *agent, struct error *error)
{
    int r = agent->window ? end_window(agent, error) : 0;
    add_capture(&agent->ended, agent->capture);
    capture_free(TAKE_PTR(agent->capture));
    agent->last = (struct agent_stats){0};
    return r;
}

static int follow_switch(struct agent *agent, struct error *error)
{
    int64_t now_ns = monotonic_ns();
    if (agent->switch_ns && now_ns - agent->switch_ns < SWITCH_NS)
        return 0;
    agent->switch_ns = now_ns;
    bool off = agent_control_off(agent->control);
    struct error failure = {0};
    int r = 0;
    atomic_store(&agent->off, off);
    if (off && agent->capture) {
        r = turn_off(agent, error);
    } else if (!off && !agent->capture && now_ns >= agent->retry_ns) {
        if (turn_on(agent, &failure) < 0) {
            agent->retry_ns = monotonic_ns() + AGENT_WINDOW_NS;
            log_warning("Failed to turn capture on: %s", failure.text);
        }
    }
    agent_control_switched(agent->control, !agent->capture);
    return r;
}

/* ---- rates and collectors ---- */

static void find_sampling(struct agent *agent)
{
    agent_control_sampling(agent->control, &agent->order);
    agent->sampling = sampling_within(agent->settings, &agent->order);
    sampling_explain(&agent->sampling, &agent->order, agent->sampling_text);
}

/* Does what the server has ordered since, or the settings say now. A collector that was never
 * loaded takes a new capture. */
static int follow_sampling(struct agent *agent, struct error *error)
{
    struct sampling before = agent->sampling;
    char text[SAMPLING_TEXT_BYTES];
    memcpy(text, agent->sampling_text, sizeof(text));
    find_sampling(agent);
    if (sampling_same(&before, &agent->sampling) && !strcmp(text, agent->sampling_text))
        return 0;
    log_info("Sampling from now on: %s.", agent->sampling_text);
    if (!agent->capture)
        return 0;
    if (agent->window)
        window_note(agent->window, "sampling: from here on %s", agent->sampling_text);
    if (sampling_modes(&agent->sampling) & ~agent->loaded_modes) {
        struct error failure = {0};
        int r = turn_off(agent, error);
        if (r < 0)
            return r;
        if (turn_on(agent, &failure) < 0)
            log_warning("Failed to turn capture on: %s", failure.text);
        return 0;
    }
    return agent_guard_follow(agent, error);
}

/* Of a running agent's settings, these change. */
static void reload(struct agent *agent, agent_reload_fn read, void *context)
{
    struct agent_settings fresh = {0}, *now = agent->settings;
    int r = read ? read(context, &fresh) : -ENOENT;
    if (r == -ENOENT)
        log_info("SIGHUP: the agent was started without a configuration file; nothing to reload.");
    else if (r < 0)
        log_warning("SIGHUP: the configuration is invalid; the agent keeps its settings.");
    if (!r) {
        now->rate_hz = fresh.rate_hz;
        now->wall = fresh.wall;
        now->wall_rate_hz = fresh.wall_rate_hz;
        now->heap = fresh.heap;
        now->faults = fresh.faults;
        now->rss = fresh.rss;
        now->sampling_allowed = fresh.sampling_allowed;
        now->sampling_rate_max = fresh.sampling_rate_max;
        now->sampling_wall_rate_max = fresh.sampling_wall_rate_max;
        log_info("SIGHUP: rates, collectors and their limits are reloaded; other settings change "
                 "when the agent restarts.");
    }
    agent_settings_release(&fresh);
}

int agent_run(struct agent *agent, agent_reload_fn read, void *context, struct error *error)
{
    int r = 0;
    watchdog_join(agent->watchdog, WATCHDOG_CAPTURE);
    while (r >= 0 && !atomic_load(&agent->stopping)) {
        watchdog_beat(agent->watchdog, WATCHDOG_CAPTURE);
        if (agent_control_reload())
            reload(agent, read, context);
        r = follow_switch(agent, error);
        if (r >= 0)
            r = follow_sampling(agent, error);
        if (r < 0)
            break;
        if (!agent->capture) {
            nanosleep(&(struct timespec){.tv_nsec = READ_MS * 1000000ll}, NULL);
            if (monotonic_ns() - agent->ticked_ns >= TICK_NS)
                r = tick(agent, monotonic_ns(), error);
            continue;
        }
        if (!agent->window)
            begin_window(agent);
        int64_t left_ms = (agent->window_end_ns - clock_ns(CLOCK_REALTIME)) / 1000000 + 1;
        r = capture_read(agent->capture, (int)MAX(MIN(left_ms, READ_MS), 1), false, error);
        if (r == 1) /* all that could be looked at has ended */
            break;
        if (r >= 0 && window_over(agent)) {
            r = end_window(agent, error);
            if (r >= 0)
                begin_window(agent);
        }
        int64_t now_ns = monotonic_ns();
        if (r >= 0 && now_ns - agent->ticked_ns >= TICK_NS)
            r = tick(agent, now_ns, error);
    }
    if (r >= 0 && agent->window)
        r = end_window(agent, error);
    watchdog_idle(agent->watchdog, WATCHDOG_CAPTURE);
    return MIN(r, 0);
}

void agent_interrupt(struct agent *agent)
{
    atomic_store(&agent->stopping, true);
}

/* ---- lifecycle ---- */

static int start_upload(struct agent *agent, struct error *error)
{
    const struct agent_settings *settings = agent->settings;
    struct upload_options options = {.url = settings->server_url,
                                     .token_file = settings->token_file,
                                     .ca_file = settings->ca_file,
                                     .certificate_file = settings->certificate_file,
                                     .key_file = settings->key_file,
                                     .proxy = settings->proxy,
                                     .compression = settings->compression,
                                     .protocol = settings->protocol,
                                     .batches_per_second =
                                         (double)settings->catch_up * 1e9 / AGENT_WINDOW_NS};
    _cleanup_buffer_ struct buffer folder = {0};
    buffer_printf(&folder, "%s/spool", settings->data);
    struct spool_options place = {.folder = buffer_text(&folder),
                                  .limit_bytes = settings->spool_bytes,
                                  .age_ns = settings->spool_age_ns};
    int r = spool_open(&place, &agent->spool, error);
    return r < 0 ? r : uploader_start(&options, agent->spool, &agent->uploader, error);
}

int agent_start(struct agent_settings *settings, struct agent **ret_agent, struct error *error)
{
    memory_reserve(SHORTAGE_BYTES);
    struct agent *agent = memory_zalloc(1, sizeof(*agent));
    agent->settings = settings;
    agent->stats.cost.bpf_ns = -1;
    pthread_mutex_init(&agent->lock, NULL);
    targets_init(&agent->targets, settings);
    agent->namer = namer_new();
    agent->measuring = capture_measure_all();
    int r = agent_control_open(agent, &agent->control, error);
    if (!r)
        find_sampling(agent);
    agent_guard_start(agent);
    if (!r && !agent_control_off(agent->control))
        r = turn_on(agent, error);
    /* Threads have what the one has that starts them. */
    if (!r && settings->confine)
        r = privilege_drop(settings->user, settings->data, error);
    if (!r && (settings->kubelet || settings->api_server || settings->kubelet_read_only))
        r = pods_start(&(struct pods_options){.kubelet = settings->kubelet,
                                              .api_server = settings->api_server,
                                              .read_only = settings->kubelet_read_only,
                                              .node = settings->node,
                                              .token_file = settings->pods_token_file,
                                              .ca_file = settings->pods_ca_file,
                                              .insecure = settings->pods_insecure},
                       &agent->targets.pods, error);
    if (!r)
        r = watchdog_start(settings->watchdog_ns, &agent->watchdog, error);
    if (!r)
        r = start_upload(agent, error);
    if (!r)
        r = agent_symbols_start(settings, agent_control_id(agent->control), agent->control,
                                &agent->symbols, error);
    if (!r)
        r = encoder_start(
            &(struct encoder_options){.namer = agent->namer,
                                      .spool = agent->spool,
                                      .watchdog = agent->watchdog,
                                      .learning_share = agent_learning_share(settings)},
            &agent->encoder, error);
    if (!r)
        r = agent_status_start(agent, error);
    if (!r)
        r = agent_control_start(agent->control, error);
    if (!r && settings->confine)
        r = privilege_filter(error);
    if (r < 0) {
        agent_stop(agent, 0);
        return r;
    }
    agent->stats.backend = agent->capture ? capture_backend(agent->capture) : CAPTURE_ANY;
    watchdog_ready(agent->watchdog);
    *ret_agent = agent;
    return 0;
}

void agent_stop(struct agent *agent, unsigned grace_ms)
{
    if (!agent)
        return;
    atomic_store(&agent->stopping, true);
    http_server_stop(agent->http, HTTP_GRACE_MS);
    agent_control_stop(agent->control);
    encoder_stop(agent->encoder);
    agent->encoder = NULL;
    agent_symbols_stop(agent->symbols);
    uploader_stop(agent->uploader, grace_ms);
    watchdog_stop(agent->watchdog);
    agent_control_free(agent->control);
    spool_close(agent->spool);
    capture_free(agent->capture);
    window_free(agent->window);
    namer_free(agent->namer);
    pods_stop(agent->targets.pods);
    targets_release(&agent->targets);
    if (agent->measuring >= 0)
        close(agent->measuring);
    levels_release(&agent->levels);
    free(agent->services);
    pthread_mutex_destroy(&agent->lock);
    free(agent);
}
