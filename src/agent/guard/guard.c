// SPDX-License-Identifier: Apache-2.0
// Decides how much to sample within the budget: see guard.h.

#include "agent/guard/guard.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define SECOND_NS 1000000000ll
/* Windows are made into requests every ten seconds: over less, cost goes up and down. */
#define CPU_SPAN_NS (10 * SECOND_NS)
/* At first there is everything to learn: all binaries that run, and all their names. */
#define LEARNING_NS (30 * SECOND_NS)
#define UPLOAD_SPAN_NS (60 * SECOND_NS)
/* Steps are taken before the limit is reached, and back only far below it. */
#define SHED_SHARE 0.9
/* Collectors go earlier: what processes cost can double within a window, and then there is
 * something left to give up. */
#define COLLECTOR_SHED_SHARE 0.7
/* ... and at once when a sudden load makes them cost more than all may. */
#define COLLECTOR_SPAN_NS (3 * SECOND_NS)
/* They are asked to cost less before that, but not less than the second. */
#define COLLECTOR_KEEP_SHARE 0.6
#define COLLECTOR_LEAST_SHARE 0.05
#define RETURN_SHARE 0.7
#define MEMORY_SETTLE_NS (5 * SECOND_NS)
#define DROP_AGAIN_NS (60 * SECOND_NS)
#define MEMORY_RETURN_SHARE 0.8
#define BACKOFF_MAX 32

/* ---- levels ---- */

/* Steps of the rate: 19, 9, 4, 2, 1 are four. */
static unsigned rate_levels(const struct guard *guard)
{
    unsigned levels = 0;
    for (unsigned rate = guard->rate_hz; rate > 1; rate /= 2)
        levels++;
    return levels;
}

static unsigned type_levels(const struct guard *guard)
{
    return guard->type_count - 1 - (unsigned)__builtin_popcount(guard->unwanted);
}

unsigned guard_level_max(const struct guard *guard)
{
    return rate_levels(guard) + type_levels(guard) + guard->can_choose + 1;
}

/* The collector that cost most of those that are on and may be turned off, since the last step. */
static unsigned most_expensive(const struct guard *guard)
{
    const struct guard_cost *first = &guard->history[0].cost;
    const struct guard_cost *last = &guard->history[guard->count - 1].cost;
    unsigned costliest = 1;
    int64_t most = -1;
    for (unsigned i = 1; i < guard->type_count; i++) {
        int64_t took = last->type_ns[i] - first->type_ns[i];
        if (!((guard->state.types_off | guard->unwanted) & 1u << i) && took > most) {
            most = took;
            costliest = i;
        }
    }
    return costliest;
}

/* The last one that was turned off is not known any more; the cheapest comes back first. */
static unsigned cheapest_off(const struct guard *guard)
{
    const struct guard_cost *last = &guard->history[guard->count - 1].cost;
    unsigned cheapest = 0;
    int64_t least = INT64_MAX;
    for (unsigned i = 0; i < guard->type_count; i++)
        if ((guard->state.types_off & 1u << i) && last->type_ns[i] < least) {
            least = last->type_ns[i];
            cheapest = i;
        }
    return cheapest;
}

static void set_level(struct guard *guard, unsigned level)
{
    unsigned types = type_levels(guard), rates = types + rate_levels(guard);
    struct guard_state *state = &guard->state;
    unsigned off = MIN(level, types);
    state->divisor = 1u << (MIN(level, rates) - off);
    while ((unsigned)__builtin_popcount(state->types_off) < off)
        state->types_off |= 1u << most_expensive(guard);
    while ((unsigned)__builtin_popcount(state->types_off) > off)
        state->types_off &= ~(1u << cheapest_off(guard));
    state->busiest_only = guard->can_choose && level > rates;
    state->rest = level >= guard_level_max(guard);
    guard->level = level;
}

void guard_init(struct guard *guard, const struct guard_limits *limits, unsigned cpus,
                unsigned rate_hz, unsigned type_count, bool can_choose)
{
    *guard = (struct guard){.limits = *limits,
                            .cpus = MAX(cpus, 1u),
                            .rate_hz = rate_hz,
                            .type_count = MAX(MIN(type_count, GUARD_TYPES_MAX), 1u),
                            .can_choose = can_choose,
                            .state.divisor = 1,
                            .backoff = 1};
}

void guard_set_types(struct guard *guard, unsigned type_count, unsigned unwanted)
{
    unsigned count = MAX(MIN(type_count, GUARD_TYPES_MAX), 1u);
    unwanted &= (1u << count) - 2; /* the CPU clock is always wanted */
    if (count == guard->type_count && unwanted == guard->unwanted)
        return;
    guard->type_count = count;
    guard->unwanted = unwanted;
    guard->state.types_off = 0;
    guard->count = MIN(guard->count, (size_t)1);
    set_level(guard, MIN(guard->level, guard_level_max(guard)));
}

/* ---- what it cost ---- */

static void remember(struct guard *guard, int64_t now_ns, const struct guard_cost *cost)
{
    if (guard->count == GUARD_HISTORY)
        memmove(guard->history, guard->history + 1, sizeof(guard->history[0]) * --guard->count);
    guard->history[guard->count].ns = now_ns;
    guard->history[guard->count++].cost = *cost;
}

/* The first moment that is within the span; the first of all where they don't go so far back. */
static size_t first_within(const struct guard *guard, int64_t span_ns)
{
    int64_t now_ns = guard->history[guard->count - 1].ns;
    size_t first = 0;
    while (first + 1 < guard->count && now_ns - guard->history[first].ns > span_ns)
        first++;
    return first;
}

/* CPU time of the span in units of what is allowed in all of it: beyond 1 it is spent, even when
 * the span has only begun. */
static double cpu_spent(const struct guard *guard, int64_t span_ns)
{
    size_t first = first_within(guard, span_ns), last = guard->count - 1;
    double used = (double)(guard->history[last].cost.cpu_ns - guard->history[first].cost.cpu_ns);
    return used / (guard->limits.cpu_share * guard->cpus * (double)span_ns);
}

static double upload_spent(const struct guard *guard)
{
    size_t first = first_within(guard, UPLOAD_SPAN_NS), last = guard->count - 1;
    double used =
        (double)(guard->history[last].cost.upload_bytes - guard->history[first].cost.upload_bytes);
    return used / (double)guard->limits.upload_bytes;
}

static void measure(struct guard *guard)
{
    size_t last = guard->count - 1, first = first_within(guard, CPU_SPAN_NS);
    size_t minute = first_within(guard, UPLOAD_SPAN_NS);
    double passed = (double)(guard->history[last].ns - guard->history[first].ns);
    double minutes = (double)(guard->history[last].ns - guard->history[minute].ns) / 60e9;
    if (passed > 0)
        guard->cpu_share =
            (double)(guard->history[last].cost.cpu_ns - guard->history[first].cost.cpu_ns) /
            passed / guard->cpus;
    if (minutes > 0)
        guard->upload_per_minute = (double)(guard->history[last].cost.upload_bytes -
                                            guard->history[minute].cost.upload_bytes) /
                                   minutes;
}

/* ---- steps ---- */

static void take_step(struct guard *guard, unsigned level, int64_t now_ns)
{
    bool up = level < guard->level;
    if (up)
        guard->steps_up++;
    else
        guard->steps_down++;
    /* A step up that is undone soon waits longer the next time. */
    if (!up && guard->came_back && now_ns - guard->changed_ns < guard->limits.patience_ns)
        guard->backoff = MIN(guard->backoff * 2, (unsigned)BACKOFF_MAX);
    else if (up && guard->came_back)
        guard->backoff = MAX(guard->backoff / 2, 1u);
    set_level(guard, level);
    guard->came_back = up;
    guard->changed_ns = now_ns;
    if (!level)
        guard->reason = GUARD_FINE;
    guard->history[0] = guard->history[guard->count - 1];
    guard->count = 1;
}

static bool step_down(struct guard *guard, enum guard_reason reason, double spent, int64_t now_ns)
{
    unsigned rates = type_levels(guard) + rate_levels(guard), level = guard->level;
    if (level >= guard_level_max(guard))
        return false;
    /* Far beyond the limit, several halves of the rate at once. */
    do
        level++;
    while ((spent /= 2) > SHED_SHARE && level > type_levels(guard) && level < rates);
    guard->reason = reason;
    take_step(guard, level, now_ns);
    return true;
}

/* The maximum extra cost that the step up is expected to have. */
static double growth(const struct guard *guard)
{
    /* After a rest, what sampling costs is not known: it is tried. */
    return guard->state.rest ? 0 : 2;
}

static bool may_return(const struct guard *guard, int64_t now_ns)
{
    const struct guard_limits *limits = &guard->limits;
    int64_t wait_ns = limits->patience_ns * guard->backoff;
    size_t last = guard->count - 1;
    if (!guard->level || now_ns - guard->changed_ns < wait_ns || !last)
        return false;
    int64_t span_ns = guard->history[last].ns - guard->history[0].ns;
    double upload = guard->upload_per_minute / (double)limits->upload_bytes;
    return cpu_spent(guard, span_ns) * growth(guard) <= RETURN_SHARE &&
           upload * growth(guard) <= RETURN_SHARE &&
           (double)guard->history[last].cost.resident_bytes <=
               (double)limits->resident_bytes * MEMORY_RETURN_SHARE;
}

/* Caches first; what is still too much after that is answered by sampling less. */
static enum guard_action look_at_memory(struct guard *guard, int64_t now_ns, uint64_t resident)
{
    double share = (double)resident / (double)guard->limits.resident_bytes;
    if (share <= SHED_SHARE || now_ns - guard->changed_ns < MEMORY_SETTLE_NS)
        return GUARD_KEEP;
    if (!guard->dropped_ns || now_ns - guard->dropped_ns >= DROP_AGAIN_NS) {
        guard->dropped_ns = now_ns;
        guard->caches_dropped++;
        return GUARD_DROP_CACHES;
    }
    if (now_ns - guard->dropped_ns < MEMORY_SETTLE_NS)
        return GUARD_KEEP;
    return step_down(guard, GUARD_MEMORY, share, now_ns) ? GUARD_CHANGED : GUARD_KEEP;
}

enum guard_action guard_tick(struct guard *guard, int64_t now_ns, const struct guard_cost *cost)
{
    if (!guard->count)
        guard->began_ns = now_ns;
    remember(guard, now_ns, cost);
    measure(guard);
    int64_t span_ns = now_ns - guard->began_ns < LEARNING_NS ? LEARNING_NS : CPU_SPAN_NS;
    double cpu = cpu_spent(guard, span_ns), upload = upload_spent(guard);
    bool sheddable = guard->level < type_levels(guard);
    if (sheddable && span_ns == CPU_SPAN_NS)
        cpu = fmax(cpu, cpu_spent(guard, COLLECTOR_SPAN_NS) * COLLECTOR_SHED_SHARE);
    if (cpu > (sheddable ? COLLECTOR_SHED_SHARE : SHED_SHARE) &&
        step_down(guard, GUARD_CPU, cpu, now_ns)) {
        /* After a late tick there is no other measurement, and this one decided. */
        guard->cpu_share = fmax(guard->cpu_share, cpu * guard->limits.cpu_share);
        return GUARD_CHANGED;
    }
    if (upload > SHED_SHARE && step_down(guard, GUARD_UPLOAD, upload, now_ns))
        return GUARD_CHANGED;
    enum guard_action action = look_at_memory(guard, now_ns, cost->resident_bytes);
    if (action != GUARD_KEEP || !may_return(guard, now_ns))
        return action;
    take_step(guard, guard->level - 1, now_ns);
    return GUARD_CHANGED;
}

double guard_spare_share(const struct guard *guard, unsigned type)
{
    double limit = guard->limits.cpu_share;
    if (!guard->count || type >= GUARD_TYPES_MAX)
        return limit;
    size_t last = guard->count - 1, first = first_within(guard, CPU_SPAN_NS);
    int64_t now_ns = guard->history[last].ns, passed_ns = now_ns - guard->history[first].ns;
    if (now_ns - guard->began_ns < LEARNING_NS || passed_ns < COLLECTOR_SPAN_NS)
        return limit;
    const struct guard_cost *from = &guard->history[first].cost, *to = &guard->history[last].cost;
    int64_t other_ns = (to->cpu_ns - to->type_ns[type]) - (from->cpu_ns - from->type_ns[type]);
    double other = (double)other_ns / ((double)passed_ns * guard->cpus);
    return fmin(fmax(COLLECTOR_KEEP_SHARE * limit - other, COLLECTOR_LEAST_SHARE * limit), limit);
}

struct guard_stats guard_stats(const struct guard *guard)
{
    struct guard_stats stats = {.limits = guard->limits,
                                .level = guard->level,
                                .level_max = guard_level_max(guard),
                                .reason = guard->reason,
                                .cpu_share = guard->cpu_share,
                                .upload_per_minute = guard->upload_per_minute,
                                .steps_down = guard->steps_down,
                                .steps_up = guard->steps_up,
                                .caches_dropped = guard->caches_dropped,
                                .rest = guard->state.rest,
                                .busiest_only = guard->state.busiest_only};
    guard_describe(guard, stats.what, sizeof(stats.what));
    return stats;
}

/* ---- words ---- */

const char *guard_reason_name(enum guard_reason reason)
{
    static const char *const names[] = {[GUARD_FINE] = "",
                                        [GUARD_CPU] = "cpu",
                                        [GUARD_MEMORY] = "memory",
                                        [GUARD_UPLOAD] = "upload"};
    return names[reason];
}

void guard_explain(const struct guard *guard, char *text, size_t room)
{
    const struct guard_limits *limits = &guard->limits;
    if (guard->reason == GUARD_CPU)
        snprintf(text, room, "CPU %.3g%%, limit %.3g%%", 100 * guard->cpu_share,
                 100 * limits->cpu_share);
    else if (guard->reason == GUARD_MEMORY)
        snprintf(text, room, "memory %.1f MiB, limit %.1f MiB",
                 (double)guard->history[guard->count - 1].cost.resident_bytes / (1 << 20),
                 (double)limits->resident_bytes / (1 << 20));
    else if (guard->reason == GUARD_UPLOAD)
        snprintf(text, room, "uploads %.1f KiB a minute, limit %.1f KiB",
                 guard->upload_per_minute / 1024, (double)limits->upload_bytes / 1024);
    else
        snprintf(text, room, "the cost is within the budget");
}

void guard_describe(const struct guard *guard, char *text, size_t room)
{
    const struct guard_state *state = &guard->state;
    if (state->rest) {
        snprintf(text, room, "0 Hz (paused)");
        return;
    }
    unsigned rate = MAX(guard->rate_hz / state->divisor, 1u);
    int used = snprintf(text, room, "%u Hz", rate);
    if (state->divisor > 1)
        used += snprintf(text + MIN((size_t)used, room), room - MIN((size_t)used, room),
                         " (target %u)", guard->rate_hz);
    if (state->types_off)
        used += snprintf(text + MIN((size_t)used, room), room - MIN((size_t)used, room),
                         ", %d of %u collectors off", __builtin_popcount(state->types_off),
                         guard->type_count);
    if (state->busiest_only)
        snprintf(text + MIN((size_t)used, room), room - MIN((size_t)used, room),
                 ", busiest processes only");
}
