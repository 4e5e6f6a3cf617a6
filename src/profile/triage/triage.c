// SPDX-License-Identifier: Apache-2.0
// Sums by kind, and the stack that matters: see triage.h.

#include "profile/triage/triage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "profile/shared.h"
#include "profile/triage/idle.h"

#define SLEEP_SHARE 0.1 /* of busy time: below, timers are not what matters */
/* Goroutines that wait for each other wait for what one of them does, and many only wait for work:
 * what they do matters, unless it is less than this part of everything. */
#define WORK_SHARE 0.01

static const struct {
    const char *state; /* the label's value */
    const char *name, *words;
} kinds[TRIAGE_KINDS] = {
    [TRIAGE_COMPUTING] = {"running", "computing", "computing"},
    [TRIAGE_STARVED] = {"runnable", "starved", "waiting for a CPU"},
    [TRIAGE_LOCK] = {"lock", "lock", "waiting for locks"},
    [TRIAGE_DISK] = {"disk", "disk", "waiting for disks"},
    [TRIAGE_NETWORK] = {"network", "network", "waiting for the network"},
    [TRIAGE_PIPE] = {"pipe", "pipe", "waiting for other processes"},
    [TRIAGE_CHILD] = {"child", "child", "waiting for children"},
    [TRIAGE_IO_URING] = {"io_uring", "io_uring", "waiting for io_uring"},
    [TRIAGE_CHANNEL] = {"channel", "channel", "waiting for other goroutines"},
    [TRIAGE_SLEEPING] = {"sleep", "sleeping", "sleeping"},
    [TRIAGE_OTHER] = {"other", "other", "waiting for something else"},
    [TRIAGE_IDLE] = {"", "idle", "idle"},
};

/* Functions that unlock: the holder is their caller. */
static const char *const unlockers[] = {
    "futex",
    "lll_",
    "pthread_mutex_unlock",
    "pthread_rwlock_unlock",
    "mutex_unlock",
    "PyMutex_",
    "__GI___pthread_mutex_un",
    "pthread_cond_",
    "runtime.futex",
    "drop_gil",
    "std::mutex::unlock",
    "std::lock_guard",
    "std::unique_lock",
    "syscall",
    "mtx_unlock",
    "sync.(*Mutex).",
    "sync.(*RWMutex).",
    "runtime.unlock",
};

const char *triage_kind_name(enum triage_kind kind)
{
    return kinds[kind].name;
}

const char *triage_kind_words(enum triage_kind kind)
{
    return kinds[kind].words;
}

const char *triage_kind_state(enum triage_kind kind)
{
    return kinds[kind].state;
}

static const char *function_of(const struct profile *profile, uint32_t node)
{
    uint32_t function = profile->frames[profile->nodes[node].frame].function;
    return profile_text(profile, profile->functions[function].name);
}

/* The kind of a state; TRIAGE_OTHER for one that has no kind of its own. */
static enum triage_kind kind_of_state(const char *state)
{
    for (unsigned kind = 0; kind < TRIAGE_IDLE; kind++)
        if (!strcmp(state, kinds[kind].state))
            return (enum triage_kind)kind;
    return TRIAGE_OTHER;
}

static uint32_t label_of(const struct profile *profile, uint32_t label_set, const char *key)
{
    size_t count = 0;
    const struct profile_label *labels = profile_labels(profile, label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, labels[i].key), key))
            return labels[i].text;
    return 0;
}

/* The value of the label `state`; NULL without one. */
static const char *state_of(const struct profile *profile, uint32_t label_set)
{
    uint32_t state = label_of(profile, label_set, "state");
    return state ? profile_text(profile, state) : NULL;
}

static bool is_unlocker(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(unlockers); i++)
        if (strstr(name, unlockers[i]))
            return true;
    return false;
}

/* Functions in which threads wait for locks: the waiter is their caller. */
static const char *const lockers[] = {
    "futex",         "lll_",           "_lock",           "lock_slow",
    "pthread_cond_", "std::mutex",     "std::lock_guard", "std::unique_lock",
    "syscall",       "runtime.sema",   "sync.(*",         "PyMutex_",
    "take_gil",      "runtime.gopark", "sync.runtime_",
};

static bool is_locker(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(lockers); i++)
        if (strstr(name, lockers[i]))
            return true;
    return false;
}

/* The function that held a lock: the innermost of the holder's stack that doesn't unlock, and of
 * the program itself where there is one. With `marked`, that stack is in front of a mark, and
 * otherwise it is the whole. */
static uint32_t holder_of(const struct profile *profile, uint32_t node, bool marked)
{
    uint32_t found = 0, own = 0;
    for (; node; node = profile->nodes[node].parent) {
        const char *name = function_of(profile, node);
        uint32_t function = profile->frames[profile->nodes[node].frame].function;
        if (!strcmp(name, TRIAGE_HOLDER_MARK))
            return own ? own : found;
        if (!*name || is_unlocker(name))
            continue;
        if (!found)
            found = function;
        if (!own && !shared_code(profile, node))
            own = function;
    }
    return marked ? 0 : own ? own : found;
}

const char *triage_lock_name(const char *function, size_t *ret_length)
{
    size_t length = strlen(function), prefix = strlen("[lock ");
    if (length <= prefix + 1 || strncmp(function, "[lock ", prefix) != 0 ||
        function[length - 1] != ']' || !strcmp(function, TRIAGE_HOLDER_MARK))
        return NULL;
    *ret_length = length - prefix - 1;
    return function + prefix;
}

/* The lock that a stack waits for. */
static uint32_t lock_of(const struct profile *profile, uint32_t node)
{
    size_t length;
    for (; node; node = profile->nodes[node].parent)
        if (triage_lock_name(function_of(profile, node), &length))
            return profile->frames[profile->nodes[node].frame].function;
    return 0;
}

/* The function that waits: the innermost of the waiter's stack that doesn't lock, and of the
 * program itself where there is one. */
static uint32_t waiter_of(const struct profile *profile, uint32_t node)
{
    uint32_t found = 0, own = 0, waiter = node;
    size_t length;
    for (uint32_t at = node; at; at = profile->nodes[at].parent)
        if (!strcmp(function_of(profile, at), TRIAGE_HOLDER_MARK))
            waiter = profile->nodes[at].parent;
    for (; waiter; waiter = profile->nodes[waiter].parent) {
        const char *name = function_of(profile, waiter);
        uint32_t function = profile->frames[profile->nodes[waiter].frame].function;
        if (!*name || is_locker(name) || triage_lock_name(name, &length) ||
            !strcmp(name, "[kernel lock]"))
            continue;
        if (!found)
            found = function;
        if (!own && !shared_code(profile, waiter))
            own = function;
    }
    return own ? own : found;
}

/* An entry that triage adds up: a wait, or work, of threads and goroutines. */
struct part {
    uint32_t node, labels;
    enum triage_kind kind;
    int64_t ns;
};

struct parts {
    struct part *list;
    size_t count;
};

#define OTHERS_COUNTED 256 /* a recording has 64 names, each in a few cgroups */

/* Processes that had the CPU while threads waited for it, most time first. */
static void find_others(const struct profile *profile, const struct parts *parts,
                        struct triage *triage)
{
    struct triage_other all[OTHERS_COUNTED];
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->list[i];
        uint32_t name =
            part->kind == TRIAGE_STARVED ? label_of(profile, part->labels, "ran_instead") : 0;
        if (!name)
            continue;
        uint32_t cgroup = label_of(profile, part->labels, "ran_instead_cgroup");
        size_t at = 0;
        while (at < count && (all[at].name != name || all[at].cgroup != cgroup))
            at++;
        if (at == OTHERS_COUNTED)
            continue;
        if (at == count)
            all[count++] = (struct triage_other){.name = name, .cgroup = cgroup};
        all[at].ns = add_saturated(all[at].ns, part->ns);
    }
    while (triage->other_count < TRIAGE_OTHERS_MAX) {
        size_t most = 0;
        for (size_t i = 1; i < count; i++)
            if (all[i].ns > all[most].ns)
                most = i;
        if (!count || !all[most].ns)
            return;
        triage->others[triage->other_count++] = all[most];
        all[most].ns = 0;
    }
}

#define EDGES_COUNTED 256 /* different ones beyond these are left out */

static void find_edges(const struct profile *profile, const struct parts *parts,
                       struct triage *triage)
{
    struct triage_edge all[EDGES_COUNTED];
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->list[i];
        if (part->kind != TRIAGE_LOCK)
            continue;
        struct triage_edge edge = {.waiter = waiter_of(profile, part->node),
                                   .lock = lock_of(profile, part->node),
                                   .holder = holder_of(profile, part->node, true)};
        size_t at = 0;
        while (at < count && (all[at].waiter != edge.waiter || all[at].lock != edge.lock ||
                              all[at].holder != edge.holder))
            at++;
        if (at == EDGES_COUNTED)
            continue;
        if (at == count)
            all[count++] = edge;
        all[at].ns = add_saturated(all[at].ns, part->ns);
    }
    while (triage->edge_count < TRIAGE_EDGES_MAX) {
        size_t most = 0;
        for (size_t i = 1; i < count; i++)
            if (all[i].ns > all[most].ns)
                most = i;
        if (!count || !all[most].ns)
            return;
        triage->edges[triage->edge_count++] = all[most];
        all[most].ns = 0;
    }
}

/* Comments of several windows add up: their errors are independent. */
static void find_errors(const struct profile *profile, struct triage *triage)
{
    double variances[TRIAGE_KINDS] = {0};
    for (size_t i = 0; i < profile->comment_count; i++) {
        char state[32];
        double total, deviation, waits;
        if (sscanf(profile_text(profile, profile->comments[i]),
                   "wall time: %31s %lf s, standard error %lf s, effective waits %lf", state,
                   &total, &deviation, &waits) != 4 ||
            !isfinite(deviation) || !isfinite(waits) || waits < 0)
            continue;
        for (unsigned kind = 0; kind < TRIAGE_IDLE; kind++)
            if (!strcmp(kinds[kind].state, state)) {
                variances[kind] += deviation * deviation;
                triage->waits[kind] += waits;
            }
    }
    for (unsigned kind = 0; kind < TRIAGE_IDLE; kind++)
        triage->error_ns[kind] = (int64_t)fmin(sqrt(variances[kind]) * 1e9, 9e18);
}

double triage_share_error(const struct triage *triage, enum triage_kind kind, double share)
{
    return triage->waits[kind] > 0 ? sqrt(share * (1 - share) / triage->waits[kind]) : 0;
}

static enum triage_kind choose(const struct triage *triage)
{
    enum triage_kind most = TRIAGE_IDLE;
    int64_t most_ns = 0, sleep_ns = triage->ns[TRIAGE_SLEEPING];
    int64_t channel_ns = triage->ns[TRIAGE_CHANNEL];
    double apart_ns = (double)(triage->busy_ns - channel_ns);
    for (unsigned kind = 0; kind < TRIAGE_IDLE; kind++)
        if (kind != TRIAGE_SLEEPING && kind != TRIAGE_CHANNEL && triage->ns[kind] > most_ns) {
            most = (enum triage_kind)kind;
            most_ns = triage->ns[kind];
        }
    if (most_ns && (double)most_ns >= SLEEP_SHARE * apart_ns &&
        (double)most_ns >= WORK_SHARE * (double)triage->busy_ns)
        return most;
    if (sleep_ns > most_ns && (double)sleep_ns >= SLEEP_SHARE * (double)triage->busy_ns)
        return TRIAGE_SLEEPING;
    return channel_ns > most_ns ? TRIAGE_CHANNEL : sleep_ns > most_ns ? TRIAGE_SLEEPING : most;
}

/* The largest of an array of sums, from 1 on; 0: all are 0. */
static uint32_t largest(const int64_t *sums, uint32_t count, int64_t *ret_most)
{
    uint32_t at = 0;
    int64_t most = 0;
    for (uint32_t i = 1; i < count; i++)
        if (sums[i] > most) {
            most = sums[i];
            at = i;
        }
    *ret_most = most;
    return at;
}

/* ---- what there is ---- */

/* A wait by the functions in which it is. */
static enum triage_kind refine(const struct profile *profile, uint32_t node, enum triage_kind kind)
{
    const struct idle_rules *rules = idle_rules_default();
    const char *own = kind > TRIAGE_STARVED ? idle_own_state(rules, profile, node) : NULL;
    if (own)
        kind = kind_of_state(own);
    return idle_matches(rules, profile, node, kinds[kind].state) ? TRIAGE_IDLE : kind;
}

/* TRIAGE_KINDS: no part of wall-clock time by state. */
static enum triage_kind kind_of_thread(const struct profile *profile, size_t row)
{
    const char *state = state_of(profile, profile->samples.labels[row]);
    return state ? refine(profile, profile->samples.node[row], kind_of_state(state)) : TRIAGE_KINDS;
}

/* Goroutines that run or are in system calls are on threads, whose states tell more. */
static enum triage_kind kind_of_goroutine(const struct profile *profile, size_t row)
{
    const char *state = state_of(profile, profile->samples.labels[row]);
    if (!state || !strcmp(state, "running") || !strcmp(state, "syscall"))
        return TRIAGE_KINDS;
    return !strcmp(state, TRIAGE_STATE_IDLE)
               ? TRIAGE_IDLE
               : refine(profile, profile->samples.node[row], kind_of_state(state));
}

/* Go's own profile of blocking has waits for locks and channels. */
static enum triage_kind kind_of_blocking(const struct profile *profile, size_t row)
{
    enum triage_kind kind = TRIAGE_LOCK;
    for (uint32_t node = profile->samples.node[row]; node; node = profile->nodes[node].parent) {
        const char *name = function_of(profile, node);
        if (!strncmp(name, "runtime.chan", strlen("runtime.chan")) ||
            !strcmp(name, "runtime.selectgo") || !strcmp(name, "runtime.block"))
            kind = TRIAGE_CHANNEL;
    }
    return refine(profile, profile->samples.node[row], kind);
}

typedef enum triage_kind kind_fn(const struct profile *profile, size_t row);

/* Adds the rows of a type, where the profile has it. */
static void add_parts(const struct profile *profile, const char *type_name, kind_fn *kind_of,
                      struct parts *parts)
{
    const struct profile_samples *samples = &profile->samples;
    unsigned type = profile_find_type(profile, type_name);
    for (size_t row = 0; row < samples->count && type < PROFILE_TYPES_MAX; row++) {
        int64_t ns = samples->values[type][row];
        enum triage_kind kind = ns > 0 ? kind_of(profile, row) : TRIAGE_KINDS;
        if (kind != TRIAGE_KINDS)
            parts->list[parts->count++] = (struct part){
                .node = samples->node[row], .labels = samples->labels[row], .kind = kind, .ns = ns};
    }
}

/* Where Go's profile of mutexes has it: who made others wait, most first. */
static void find_holders(const struct profile *profile, struct triage *triage)
{
    const struct profile_samples *samples = &profile->samples;
    unsigned type = profile_find_type(profile, TRIAGE_MUTEX_TYPE);
    if (type == PROFILE_TYPES_MAX)
        return;
    _cleanup_free_ int64_t *sums = memory_zalloc(profile->function_count + 1, sizeof(*sums));
    for (size_t row = 0; row < samples->count; row++) {
        uint32_t holder = holder_of(profile, samples->node[row], false);
        int64_t ns = MAX(samples->values[type][row], 0);
        sums[holder] = add_saturated(sums[holder], ns);
        triage->mutex_ns = add_saturated(triage->mutex_ns, ns);
    }
    while (triage->holder_count < TRIAGE_HOLDERS_MAX) {
        int64_t ns;
        uint32_t function = largest(sums, profile->function_count, &ns);
        if (!function)
            return;
        triage->holders[triage->holder_count++] =
            (struct triage_holder){.function = function, .ns = ns};
        sums[function] = 0;
    }
}

/* The stack with most of the verdict's time, and for locks the lock and who held it. */
static void find_most(const struct profile *profile, const struct parts *parts,
                      struct triage *triage)
{
    _cleanup_free_ int64_t *nodes = memory_zalloc(profile->node_count + 1, sizeof(*nodes));
    _cleanup_free_ int64_t *holders = memory_zalloc(profile->function_count + 1, sizeof(*holders));
    _cleanup_free_ int64_t *locks = memory_zalloc(profile->function_count + 1, sizeof(*locks));
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->list[i];
        if (part->kind != triage->verdict)
            continue;
        nodes[part->node] = add_saturated(nodes[part->node], part->ns);
        if (part->kind == TRIAGE_LOCK) {
            uint32_t holder = holder_of(profile, part->node, true);
            holders[holder] = add_saturated(holders[holder], part->ns);
            uint32_t lock = lock_of(profile, part->node);
            locks[lock] = add_saturated(locks[lock], part->ns);
        }
    }
    triage->node = largest(nodes, profile->node_count, &triage->node_ns);
    triage->holder = largest(holders, profile->function_count, &triage->holder_ns);
    triage->lock = largest(locks, profile->function_count, &triage->lock_ns);
}

int triage_profile(const struct profile *profile, struct triage *ret_triage, struct error *error)
{
    struct triage triage = {0};
    _cleanup_free_ struct part *list = memory_zalloc(2 * profile->samples.count + 1, sizeof(*list));
    struct parts parts = {.list = list};
    int64_t total_ns = 0;
    add_parts(profile, "wall", kind_of_thread, &parts);
    size_t threads = parts.count;
    add_parts(profile, TRIAGE_GOROUTINE_TYPE, kind_of_goroutine, &parts);
    if (parts.count == threads) /* the same waits, as the program itself has them */
        add_parts(profile, TRIAGE_BLOCK_TYPE, kind_of_blocking, &parts);
    for (size_t i = 0; i < parts.count; i++) {
        int64_t *sum = &triage.ns[parts.list[i].kind];
        *sum = add_saturated(*sum, parts.list[i].ns);
        total_ns = add_saturated(total_ns, parts.list[i].ns);
    }
    if (!total_ns)
        return error_set(error, -ENODATA,
                         "The profile contains no wall-clock time by state; record it with "
                         "`assay record --mode wall,lock`.");
    triage.busy_ns = total_ns - triage.ns[TRIAGE_IDLE];
    triage.verdict = choose(&triage);
    find_most(profile, &parts, &triage);
    find_holders(profile, &triage);
    find_others(profile, &parts, &triage);
    find_edges(profile, &parts, &triage);
    find_errors(profile, &triage);
    *ret_triage = triage;
    return 0;
}
