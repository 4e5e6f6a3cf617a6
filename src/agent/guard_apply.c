// SPDX-License-Identifier: Apache-2.0
// Applies the decisions of the guard (guard.h): rates, processes and pauses of the capture. Reports
// them in the log, in the status and in windows.

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

/* The busiest: as few as are worth a name each, many enough for a host that does a few things. */
#define BUSIEST_MAX 32
/* How long all users are sampled to find the busiest, and how often. */
#define LOOK_AROUND_NS 5000000000ll
#define CHOOSE_AGAIN_NS 60000000000ll
/* Threads share what they allocate from: each arena of its own keeps what it once needed. */
#define ARENAS_MAX 2

/* ---- the capture ---- */

static unsigned wanted_rate(const struct agent *agent)
{
    return MAX(agent->sampling.rate_hz / agent->guard.state.divisor, 1u);
}

static int apply_rate(struct agent *agent, struct error *error)
{
    unsigned rate = wanted_rate(agent);
    int r = rate == agent->rate_hz ? 0 : capture_set_rate(agent->capture, rate, error);
    if (!r)
        agent->rate_hz = rate;
    return r;
}

static int apply_pause(struct agent *agent, struct error *error)
{
    bool pause = agent->paused || agent->guard.state.rest;
    int r = pause == agent->silent ? 0 : capture_pause(agent->capture, pause, error);
    if (!r)
        agent->silent = pause;
    return r;
}

int agent_pause(struct agent *agent, bool pause, struct error *error)
{
    bool before = agent->paused;
    agent->paused = pause;
    int r = apply_pause(agent, error);
    if (r < 0)
        agent->paused = before;
    return r;
}

static int choose_busiest(struct agent *agent, struct error *error)
{
    uint32_t pids[BUSIEST_MAX];
    size_t count = capture_busiest(agent->capture, pids, BUSIEST_MAX);
    agent->narrowed = count > 0;
    return capture_narrow(agent->capture, pids, count, error);
}

/* Users that are left out have no samples to rank them by, so now and then all are sampled. */
static int apply_choice(struct agent *agent, int64_t now_ns, struct error *error)
{
    if (!agent->guard.state.busiest_only) {
        int r = agent->narrowed ? capture_narrow(agent->capture, NULL, 0, error) : 0;
        agent->narrowed = false;
        agent->chosen_ns = 0;
        return r;
    }
    if (!agent->chosen_ns) { /* by what was sampled until now */
        agent->chosen_ns = now_ns;
        return choose_busiest(agent, error);
    }
    int64_t passed_ns = now_ns - agent->chosen_ns;
    if (agent->narrowed && passed_ns >= CHOOSE_AGAIN_NS) {
        agent->narrowed = false;
        agent->chosen_ns = now_ns;
        capture_busiest(agent->capture, NULL, 0);
        return capture_narrow(agent->capture, NULL, 0, error);
    }
    if (!agent->narrowed && passed_ns >= LOOK_AROUND_NS) {
        agent->chosen_ns = now_ns;
        return choose_busiest(agent, error);
    }
    return 0;
}

/* Turns collectors off and on as the guard says; the first is the CPU clock. */
static void apply_collectors(struct agent *agent)
{
    struct capture_cost costs[CAPTURE_COLLECTORS_MAX];
    size_t count = capture_costs(agent->capture, costs);
    unsigned divisor = agent->guard.state.divisor;
    for (size_t i = 1; i < count; i++) {
        bool off = (agent->guard.state.types_off | agent->guard.unwanted) & 1u << i;
        unsigned rate = MAX(agent->sampling.wall_rate_hz / divisor, 1u);
        if (off == costs[i].on || (!off && rate != agent->collector_hz[i]))
            capture_set_collector(agent->capture, costs[i].name, off ? 0 : rate);
        agent->collector_hz[i] = off ? 0 : rate;
    }
}

static int apply(struct agent *agent, int64_t now_ns, struct error *error)
{
    int r = apply_rate(agent, error);
    apply_collectors(agent);
    if (!r)
        r = apply_choice(agent, now_ns, error);
    return r < 0 ? r : apply_pause(agent, error);
}

/* Collectors that can measure less do so before the guard has to turn them off. */
static void limit_collectors(struct agent *agent)
{
    for (size_t i = 1; i < agent->stats.collector_count; i++)
        capture_limit_collector(agent->capture, agent->stats.collectors[i].name,
                                guard_spare_share(&agent->guard, (unsigned)i));
}

/* The collectors of the capture, and those that nobody wants now. */
static void set_types(struct agent *agent)
{
    struct capture_cost costs[CAPTURE_COLLECTORS_MAX];
    size_t count = capture_costs(agent->capture, costs);
    unsigned unwanted = 0;
    for (size_t i = 1; i < count; i++)
        unwanted |= sampling_wants(&agent->sampling, costs[i].name) ? 0 : 1u << i;
    guard_set_types(&agent->guard, (unsigned)count, unwanted);
}

int agent_guard_follow(struct agent *agent, struct error *error)
{
    set_types(agent);
    agent->guard.rate_hz = agent->sampling.rate_hz;
    return apply(agent, monotonic_ns(), error);
}

int agent_guard_attach(struct agent *agent, struct error *error)
{
    agent->rate_hz = agent->sampling.rate_hz;
    for (size_t i = 0; i < CAPTURE_COLLECTORS_MAX; i++)
        agent->collector_hz[i] = agent->sampling.wall_rate_hz;
    agent->silent = agent->narrowed = false;
    agent->chosen_ns = 0;
    agent->guard.can_choose = capture_backend(agent->capture) == CAPTURE_BPF;
    return agent_guard_follow(agent, error);
}

/* ---- log ---- */

static void announce(struct agent *agent, bool down)
{
    char what[GUARD_TEXT_BYTES];
    /* On the way back, the reason for what is still missing stays what it was. */
    if (down || !agent->guard.level)
        guard_explain(&agent->guard, agent->guard_why, sizeof(agent->guard_why));
    guard_describe(&agent->guard, what, sizeof(what));
    if (down)
        log_warning("Throttled to %s: %s.", what, agent->guard_why);
    else
        log_info("Sampling rate raised to %s: the cost is low enough.", what);
    if (agent->window)
        window_note(agent->window, "budget: sampled from here on at %s%s%s", what, down ? ": " : "",
                    down ? agent->guard_why : "");
}

void agent_guard_note(const struct agent *agent, struct window *window)
{
    char what[GUARD_TEXT_BYTES];
    if (!agent->guard.level)
        return;
    guard_describe(&agent->guard, what, sizeof(what));
    window_note(window, "budget: sampled at %s: %s", what, agent->guard_why);
}

/* ---- each second ---- */

static void drop_caches(struct agent *agent)
{
    log_info("Memory is short: dropping cached names.");
    encoder_drop_caches(agent->encoder);
    malloc_trim(0);
}

int agent_guard_tick(struct agent *agent, int64_t now_ns, struct error *error)
{
    struct guard *guard = &agent->guard;
    pthread_mutex_lock(&agent->lock);
    const struct agent_cost *measured = &agent->stats.cost;
    int64_t cpu_ns = measured->cpu_ns + MAX(measured->bpf_ns, (int64_t)0);
    struct guard_cost cost = {.cpu_ns = cpu_ns,
                              .resident_bytes = measured->resident_bytes,
                              .upload_bytes = encoder_stats(agent->encoder).bytes,
                              .type_ns = {cpu_ns}};
    agent->stats.collector_count = capture_costs(agent->capture, agent->stats.collectors);
    for (size_t i = 1; i < agent->stats.collector_count; i++)
        cost.type_ns[i] = (int64_t)agent->stats.collectors[i].run_ns;
    pthread_mutex_unlock(&agent->lock);
    guard->rate_hz = agent->sampling.rate_hz;
    unsigned before = guard->level;
    enum guard_action action = guard_tick(guard, now_ns, &cost);
    if (action == GUARD_DROP_CACHES)
        drop_caches(agent);
    if (action == GUARD_CHANGED)
        announce(agent, guard->level > before);
    int r = apply(agent, now_ns, error);
    limit_collectors(agent);
    pthread_mutex_lock(&agent->lock);
    agent->stats.guard = guard_stats(guard);
    memcpy(agent->stats.guard_why, agent->guard_why, sizeof(agent->guard_why));
    pthread_mutex_unlock(&agent->lock);
    return r;
}

void agent_guard_start(struct agent *agent)
{
    const struct agent_settings *settings = agent->settings;
    struct guard_limits limits = {.cpu_share = settings->budget_cpu_percent / 100,
                                  .resident_bytes = settings->budget_memory_bytes,
                                  .upload_bytes = settings->budget_upload_bytes,
                                  .patience_ns = settings->budget_patience_ns};
    mallopt(M_ARENA_MAX, ARENAS_MAX);
    guard_init(&agent->guard, &limits, (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1),
               agent->sampling.rate_hz, 1, false);
    agent->stats.guard = guard_stats(&agent->guard);
}
