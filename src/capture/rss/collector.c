// SPDX-License-Identifier: Apache-2.0
// Memory of processes as levels: see collector.h.

#include "capture/rss/collector.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits/pace.h"
#include "base/memory.h"
#include "capture/rss/cgroup_memory.h"
#include "capture/rss/holdings.h"

#define PROCESSES_MAX_RSS 4096 /* that are looked at */
#define FIND_NS 2000000000ll
#define LOOK_AGAIN_NS 10000000000ll /* one process, */
#define LOOK_SOON_NS 200000000ll    /* in a recording, where it may end at any time */
#define TURN_CPU_NS 2000000ll       /* at once, at most */
#define COST_SHARE 0.01             /* of one CPU, where no limit is set */
#define COST_SHARE_OF_LIMIT 0.2     /* half of it for files that cost by the page */
#define CGROUP_BYTES 4096
#define TYPES 7

struct held {
    uint32_t pid;
    uint64_t
        number; /* of the process and its program: what is known is of another when it differs */
    bool seen, read, ended;
    int cgroup; /* -1: none */
    int64_t looked_ns;
    uint32_t labels; /* in the profile that is being settled */
    struct holdings holdings;
};

struct rss {
    struct recorder *recorder;
    struct cgroup_memories cgroups;
    struct held *list;
    size_t count, capacity, next;
    bool off, everything; /* a recording: what was held at the end, with no limit of cost */
    struct pace looks, rollups;
    int64_t found_ns, snapshot_ns;
    int64_t interval_ns; /* between snapshots of an agent; recordings have one, at the end */
    int64_t cost_ns;
    uint64_t looked, left_out;
    unsigned rate_hz;
    uint32_t epoch;
    unsigned types[TYPES];
};

enum { TYPE_RSS, TYPE_PSS, TYPE_SWAP, TYPE_PAGE_TABLES, TYPE_HUGE, TYPE_CGROUP, TYPE_LIMIT };
static const char *const type_names[TYPES] = {
    [TYPE_RSS] = "rss",          [TYPE_PSS] = "rss_pss",
    [TYPE_SWAP] = "rss_swap",    [TYPE_PAGE_TABLES] = "rss_page_tables",
    [TYPE_HUGE] = "rss_hugetlb", [TYPE_CGROUP] = "rss_cgroup",
    [TYPE_LIMIT] = "rss_limit",
};
static const struct {
    unsigned type;
    const char *frame;
} kinds[HOLDING_KINDS] = {
    [HOLDING_ANON] = {TYPE_RSS, "[anonymous memory]"},
    [HOLDING_FILE] = {TYPE_RSS, "[mapped files]"},
    [HOLDING_SHARED] = {TYPE_RSS, "[shared memory]"},
    [HOLDING_PSS_ANON] = {TYPE_PSS, "[anonymous memory]"},
    [HOLDING_PSS_FILE] = {TYPE_PSS, "[mapped files]"},
    [HOLDING_PSS_SHARED] = {TYPE_PSS, "[shared memory]"},
    [HOLDING_SWAP] = {TYPE_SWAP, "[swap]"},
    [HOLDING_PAGE_TABLES] = {TYPE_PAGE_TABLES, "[page tables]"},
    [HOLDING_HUGE] = {TYPE_HUGE, "[huge pages]"},
};

static void rss_stop(void *state)
{
    struct rss *rss = state;
    if (!rss)
        return;
    cgroup_memories_release(&rss->cgroups);
    free(rss->list);
    free(rss);
}

static int rss_start(const struct collector_setup *setup, void **ret_state, struct error *error)
{
    (void)error;
    struct rss *rss = memory_zalloc(1, sizeof(*rss));
    double limit = setup->collect->cost_share, cpus = (double)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    double share = limit > 0 ? limit * cpus * COST_SHARE_OF_LIMIT : COST_SHARE;
    int64_t now_ns = monotonic_ns();
    rss->recorder = setup->recorder;
    rss->everything = !setup->recorder->label;
    rss->interval_ns = setup->collect->rss_interval_ns;
    rss->rate_hz = 1;
    pace_init(&rss->looks, share / 2, now_ns);
    pace_init(&rss->rollups, share / 2, now_ns);
    cgroup_memories_init(&rss->cgroups, "/proc/self/mounts");
    *ret_state = rss;
    return 0;
}

/* ---- which processes ---- */

/* Among the first `count`, which are in order. */
static struct held *find_held(struct rss *rss, size_t count, uint32_t pid)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rss->list[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && rss->list[low].pid == pid ? &rss->list[low] : NULL;
}

static int by_pid(const void *first, const void *second)
{
    const struct held *a = first, *b = second;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Of all processes of a machine, those that have used CPU time since. */
static bool is_wanted(const struct rss *rss, const struct process *process)
{
    return process->pid && !process->ended_ns && (rss->everything || process->sampled);
}

static void find_processes(struct rss *rss)
{
    struct processes *processes = &rss->recorder->processes;
    size_t known = rss->count;
    for (size_t i = 0; i < known; i++)
        rss->list[i].seen = false;
    for (size_t i = 0; i < processes->count; i++) {
        const struct process *process = processes->list[i];
        if (!is_wanted(rss, process))
            continue;
        struct held *held = find_held(rss, known, process->pid);
        if (held) {
            held->seen = true;
        } else if (rss->count < PROCESSES_MAX_RSS) {
            array_reserve(rss->list, rss->capacity, rss->count + 1);
            rss->list[rss->count++] =
                (struct held){.pid = process->pid, .seen = true, .cgroup = -1};
        } else {
            rss->left_out++;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < rss->count; i++) {
        rss->list[i].ended = !rss->list[i].seen;
        if (rss->list[i].seen || rss->everything)
            rss->list[kept++] = rss->list[i];
    }
    rss->count = kept;
    qsort(rss->list, rss->count, sizeof(*rss->list), by_pid);
}

/* ---- one look ---- */

static void find_cgroup(struct rss *rss, struct held *held)
{
    char path[32], content[CGROUP_BYTES];
    snprintf(path, sizeof(path), "/proc/%u/cgroup", held->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, content, sizeof(content));
    if (fd >= 0)
        close(fd);
    held->cgroup = length > 0 ? cgroup_memories_find(&rss->cgroups, content, (size_t)length) : -1;
}

/* Labels of a process in this profile; it has a number from then on. */
static uint32_t labels_of(struct rss *rss, const struct process *process)
{
    return recorder_labels(
        rss->recorder,
        &(struct recorder_sample){.pid = process->pid, .tid = process->pid, .comm = process->name});
}

/* Nothing is changed where it can't be read. */
static void look_at(struct rss *rss, struct held *held, int64_t now_ns, bool rollup)
{
    const struct process *process = processes_find(&rss->recorder->processes, held->pid);
    struct holdings fresh = {0};
    held->looked_ns = now_ns;
    if (!process || labels_of(rss, process) == CAPTURE_UNWANTED ||
        !holdings_read_status(&fresh, "/proc", held->pid))
        return;
    if (held->number == process->number && held->read)
        for (unsigned i = 0; i < HOLDING_KINDS; i++)
            if (!(fresh.known & 1u << i) && !(HOLDINGS_OF_STATUS & 1u << i)) {
                fresh.bytes[i] = held->holdings.bytes[i];
                fresh.known |= held->holdings.known & 1u << i;
            }
    if (rollup)
        holdings_read_rollup(&fresh, "/proc", held->pid);
    held->number = process->number;
    held->holdings = fresh;
    held->read = true;
    find_cgroup(rss, held);
    rss->looked++;
}

static int64_t thread_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Those that were never looked at come first. */
static bool is_due(const struct rss *rss, const struct held *held, bool fresh_only, int64_t now_ns)
{
    int64_t again_ns = rss->everything ? LOOK_SOON_NS : LOOK_AGAIN_NS;
    if (held->ended || (fresh_only && held->looked_ns))
        return false;
    return !held->looked_ns || now_ns - held->looked_ns >= again_ns;
}

static bool has_fresh(const struct rss *rss)
{
    for (size_t i = 0; i < rss->count; i++)
        if (!rss->list[i].looked_ns && !rss->list[i].ended)
            return true;
    return false;
}

/* In turn, as long as it is within its share. */
static void look_around(struct rss *rss, int64_t now_ns)
{
    int64_t began_ns = thread_ns(), at_ns = began_ns;
    if (now_ns - rss->found_ns >= FIND_NS) {
        rss->found_ns = now_ns;
        find_processes(rss);
        at_ns = thread_ns();
    }
    bool fresh_only = has_fresh(rss);
    for (size_t i = 0; i < rss->count && at_ns - began_ns < TURN_CPU_NS; i++) {
        struct held *held = &rss->list[rss->next++ % rss->count];
        if (!is_due(rss, held, fresh_only, now_ns))
            continue;
        bool first = rss->everything && !held->looked_ns;
        if (!first && pace_owed_ns(&rss->looks, now_ns) > 0)
            break;
        bool rollup = first || pace_owed_ns(&rss->rollups, now_ns) <= 0;
        look_at(rss, held, now_ns, rollup);
        int64_t took_ns = thread_ns() - at_ns;
        at_ns += took_ns;
        pace_spend(rollup ? &rss->rollups : &rss->looks, took_ns);
    }
    int64_t all_ns = thread_ns() - began_ns;
    pace_spend(&rss->looks, MAX(all_ns - (at_ns - began_ns), 0));
    rss->cost_ns += all_ns;
}

static void rss_turn(void *state, int64_t now_ns)
{
    struct rss *rss = state;
    if (!rss->off && rss->recorder->profile)
        look_around(rss, now_ns);
}

/* ---- a snapshot ---- */

static void begin_epoch(struct rss *rss)
{
    struct profile *profile = rss->recorder->profile;
    if (rss->epoch == rss->recorder->epoch)
        return;
    rss->epoch = rss->recorder->epoch;
    for (unsigned i = 0; i < TYPES; i++)
        rss->types[i] = profile_type(profile, profile_cstring(profile, type_names[i]),
                                     profile_cstring(profile, "bytes"));
    if (rss->recorder->no_cpu)
        profile->default_type = profile_cstring(profile, type_names[TYPE_RSS]);
}

static void add_row(struct rss *rss, uint32_t labels, const char *root, const char *frame,
                    unsigned type, uint64_t bytes)
{
    struct recorder *recorder = rss->recorder;
    uint32_t frames[2];
    size_t count = 0;
    if (!bytes)
        return;
    if (root)
        frames[count++] = recorder_mark(recorder, root);
    frames[count++] = recorder_mark(recorder, frame);
    size_t row = profile_sample(recorder->profile, profile_stack(recorder->profile, frames, count),
                                labels, 0, 0);
    profile_add_value(recorder->profile, row, rss->types[type], (int64_t)MIN(bytes, INT64_MAX));
}

static int by_labels(const void *first, const void *second)
{
    const struct held *a = first, *b = second;
    if (a->labels != b->labels)
        return a->labels < b->labels ? -1 : 1;
    return (a->cgroup > b->cgroup) - (a->cgroup < b->cgroup);
}

/* Processes with the same labels, as one. Their cgroups count once each. */
static void add_group(struct rss *rss, const struct held *list, size_t count, int64_t now_ns)
{
    uint64_t sums[HOLDING_KINDS] = {0}, used = 0, limit = 0;
    const struct process *process = processes_find(&rss->recorder->processes, list[0].pid);
    const char *root = rss->recorder->root_by_process && process ? process->name : NULL;
    for (size_t i = 0; i < count; i++) {
        for (unsigned k = 0; k < HOLDING_KINDS; k++)
            sums[k] += list[i].holdings.bytes[k];
        if (list[i].cgroup < 0 || (i && list[i - 1].cgroup == list[i].cgroup))
            continue;
        const struct cgroup_memory *cgroup =
            cgroup_memories_read(&rss->cgroups, list[i].cgroup, rss->snapshot_ns, now_ns);
        used += cgroup->there ? cgroup->used : 0;
        limit += cgroup->there ? cgroup->limit : 0;
    }
    for (unsigned k = 0; k < HOLDING_KINDS; k++)
        add_row(rss, list[0].labels, root, kinds[k].frame, kinds[k].type, sums[k]);
    add_row(rss, list[0].labels, root, "[cgroup]", TYPE_CGROUP, used);
    add_row(rss, list[0].labels, root, "[limit of the cgroup]", TYPE_LIMIT, limit);
}

/* Labels as the process's other samples have them now. One that has ended keeps, in a recording,
 * those that it had. */
static size_t collect(struct rss *rss, struct held *list)
{
    size_t count = 0;
    for (size_t i = 0; i < rss->count; i++) {
        struct held *held = &rss->list[i];
        const struct process *process = processes_find(&rss->recorder->processes, held->pid);
        if (!held->read || !process)
            continue;
        held->labels = labels_of(rss, process);
        if (held->labels != CAPTURE_UNWANTED && held->number == process->number)
            list[count++] = *held;
    }
    return count;
}

static void take_snapshot(struct rss *rss, int64_t now_ns)
{
    rss->snapshot_ns = now_ns;
    begin_epoch(rss);
    _cleanup_free_ struct held *list = memory_alloc((rss->count + 1) * sizeof(*list));
    size_t count = collect(rss, list);
    qsort(list, count, sizeof(*list), by_labels);
    for (size_t from = 0, to = 0; from < count; from = to) {
        while (to < count && list[to].labels == list[from].labels)
            to++;
        add_group(rss, list + from, to - from, now_ns);
    }
}

/* Of a recording that ends, or is paused. */
static void look_last(struct rss *rss)
{
    int64_t now_ns = monotonic_ns(), began_ns = thread_ns();
    find_processes(rss);
    for (size_t i = 0; i < rss->count; i++)
        if (!rss->list[i].ended)
            look_at(rss, &rss->list[i], now_ns, true);
    rss->cost_ns += thread_ns() - began_ns;
}

static void rss_settle(void *state)
{
    struct rss *rss = state;
    int64_t now_ns = monotonic_ns(), began_ns = thread_ns();
    bool settled = !rss->recorder->profile || rss->epoch == rss->recorder->epoch;
    if (settled || (rss->off && !rss->everything))
        return;
    if (!rss->off && rss->everything)
        look_last(rss);
    if (rss->everything || !rss->snapshot_ns || now_ns - rss->snapshot_ns >= rss->interval_ns)
        take_snapshot(rss, now_ns);
    rss->cost_ns += thread_ns() - began_ns;
}

/* ---- the rest ---- */

static int rss_set_rate(void *state, unsigned rate_hz)
{
    struct rss *rss = state;
    if (!rss->off && !rate_hz && rss->everything && rss->recorder->profile)
        look_last(rss);
    rss->off = !rate_hz;
    return 0;
}

static unsigned rss_rate(const void *state)
{
    return ((const struct rss *)state)->rate_hz;
}

static struct bpf_cost rss_cost(const void *state)
{
    const struct rss *rss = state;
    return (struct bpf_cost){.run_ns = (uint64_t)rss->cost_ns, .runs = rss->looked};
}

static void rss_losses(const void *state, struct capture_loss *losses, size_t *count)
{
    const struct rss *rss = state;
    if (rss->left_out && *count < CAPTURE_LOSSES_MAX)
        losses[(*count)++] = (struct capture_loss){
            "rss_left_out", "looks at the memory of processes beyond the limit", rss->left_out};
}

const struct collector_kind rss_collector = {
    .name = "rss",
    .collector = BPF_COLLECTOR_NONE,
    .modes = CAPTURE_RSS,
    .start = rss_start,
    .stop = rss_stop,
    .turn = rss_turn,
    .settle = rss_settle,
    .set_rate = rss_set_rate,
    .rate = rss_rate,
    .cost = rss_cost,
    .losses = rss_losses,
};
