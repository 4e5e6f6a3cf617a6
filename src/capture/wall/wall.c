// SPDX-License-Identifier: Apache-2.0
// Exact totals and sampled waits into one profile: see wall.h.

#include "capture/wall/wall.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "arch/system_calls.h"
#include "base/clock.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "capture/bpf/object.h"
#include "capture/record/vocabulary.h"

#define UNIT 4294967296.0 /* of rates and gaps in the kernel: 2^32 */
#define MEAN_WAIT_NS_START 10e6
#define MEAN_WAIT_NS_MIN 100e3
#define MEAN_WAIT_NS_MAX 10e9
#define TUNE_NS 1000000000ll
#define CLOCK_TRIES 200
#define WAITS_HZ 99 /* with their stacks, per CPU */

/* What a thread spent in one state, exactly and by what was sampled. */
struct account {
    uint32_t pid, tid;
    uint8_t state;
    char comm[17];
    uint32_t labels; /* without the state, once it is settled */
    double weight_ns;
    uint64_t exact_ns;
};

/* Time in one state of all threads that share their labels. */
struct pool {
    uint32_t labels;
    uint8_t state;
    double weight_ns;      /* of what was sampled */
    uint64_t unsampled_ns; /* of threads of which nothing was */
};

/* A stack whose time is known when its account is settled. */
struct pending {
    uint32_t node;
    uint32_t account;
    uint64_t time_ns;
    uint8_t state; /* finer than the account's */
    double weight_ns;
    double waits; /* that it stands for */
};

#define STATE(name) (1u << BPF_STATE_##name)
#define STATES_ALL ((1u << BPF_STATES) - 1)

/* The values of a row: which modes have them, and in which states. */
static const struct value_type {
    unsigned mode, states;
    const char *name, *unit;
    bool counts; /* waits instead of their time */
} value_types[] = {
    {CAPTURE_WALL, STATES_ALL, "wall", "nanoseconds", false},
    {CAPTURE_OFF_CPU, STATES_ALL & ~STATE(RUNNING), "off_cpu", "nanoseconds", false},
    {CAPTURE_LOCK, STATE(LOCK), "contentions", "count", true},
    {CAPTURE_LOCK, STATE(LOCK), "delay", "nanoseconds", false},
    {CAPTURE_IO, STATE(DISK) | STATE(NETWORK) | STATE(PIPE) | STATE(IO_URING), "io", "nanoseconds",
     false},
    {CAPTURE_RUN_QUEUE, STATE(RUNNABLE), "runq", "nanoseconds", false},
};
#define VALUE_TYPES ARRAY_LENGTH(value_types)

struct wall {
    struct recorder *recorder;
    struct bpf_probes *probes;
    struct bpf_wall *shared;
    struct bpf_thread *threads;
    bool off, looking;
    struct bpf_thread *seen;     /* as they were at the last look */
    uint32_t epoch;              /* of the recorder, that all below belongs to */
    unsigned modes;              /* enum capture_mode */
    unsigned types[VALUE_TYPES]; /* of the profile */
    struct account *accounts;
    size_t account_count, account_capacity;
    struct id_table index; /* of accounts */
    struct pool *pools;
    size_t pool_count, pool_capacity;
    struct id_table pool_index;
    struct pending *pending;
    size_t pending_count, pending_capacity;
    unsigned cpus, target_hz;
    uint64_t waits, tuned_waits;
    int64_t tuned_ns;
};

const char *wall_state_name(enum bpf_state state)
{
    static const char *const names[BPF_STATES] = {
        [BPF_STATE_RUNNING] = "running",   [BPF_STATE_RUNNABLE] = "runnable",
        [BPF_STATE_LOCK] = "lock",         [BPF_STATE_DISK] = "disk",
        [BPF_STATE_NETWORK] = "network",   [BPF_STATE_SLEEP] = "sleep",
        [BPF_STATE_PIPE] = "pipe",         [BPF_STATE_CHILD] = "child",
        [BPF_STATE_IO_URING] = "io_uring", [BPF_STATE_OTHER] = "other",
        [BPF_STATE_DESCRIPTOR] = "other",
    };
    return (unsigned)state < BPF_STATES ? names[state] : "other";
}

/* ---- the kernel side ---- */

static void set_mean(struct wall *wall, double mean_ns)
{
    mean_ns = fmin(fmax(mean_ns, MEAN_WAIT_NS_MIN), MEAN_WAIT_NS_MAX);
    wall->shared->rate = (unsigned)fmax(UNIT / mean_ns, 1);
}

static void set_gaps(struct bpf_wall *shared)
{
    for (size_t i = 0; i <= BPF_GAPS; i++) {
        double share = fmin((double)i / BPF_GAPS, 1 - 0.1 / BPF_GAPS);
        shared->gaps[i] = (uint64_t)(-log1p(-share) * UNIT);
    }
}

/* Programs learn how the clocks differ at the first switch of any thread. */
static int wait_for_clock(struct wall *wall)
{
    for (int i = 0; i < CLOCK_TRIES; i++) {
        if (__atomic_load_n(&wall->shared->clock_ns, __ATOMIC_RELAXED))
            return 0;
        usleep(1000);
    }
    return -ETIMEDOUT;
}

/* Which threads: by the kernel's id of the cgroup. */
static int set_cgroup(int cgroup, struct bpf_wall_constants *constants, struct error *error)
{
    struct statfs system;
    struct stat found;
    if (cgroup < 0)
        return 0;
    if (fstatfs(cgroup, &system) < 0 || fstat(cgroup, &found) < 0)
        return error_set_errno(error, -errno, "Cannot look at the cgroup");
    if (system.f_type != CGROUP2_SUPER_MAGIC)
        return error_set(error, -ENOTSUP,
                         "Waits of a cgroup can be recorded in the hierarchy of cgroup 2 only; use "
                         "its directory there, or --mode cpu.");
    constants->cgroup = found.st_ino;
    return 0;
}

static int load_probes(struct wall *wall, const struct collector_setup *setup, struct error *error)
{
    struct bpf_wall_constants constants = {
        .min_block_ns = (uint64_t)MAX(setup->collect->min_block_ns, 0),
        .wakers = (setup->modes & CAPTURE_LOCK) != 0,
    };
    memcpy(constants.system_call_states, system_call_states, sizeof(system_call_states));
    int r = set_cgroup(setup->cgroup, &constants, error);
    if (!r)
        r = bpf_probes_open(setup->sampler, "assay_wall", bpf_wall_object, bpf_wall_object_length,
                            &wall->probes, error);
    if (r < 0)
        return r;
    if (!constants.wakers)
        bpf_probes_leave_out(wall->probes, "assay_waking");
    r = bpf_probes_set_constants(wall->probes, ".rodata.wall", &constants, sizeof(constants));
    if (!r)
        r = bpf_probes_load(wall->probes, error);
    if (r == -ENOENT || r == -ESRCH || r == -EINVAL)
        return error_set(error, -ENOTSUP,
                         "This kernel cannot measure waits: it lacks the tracepoint sched_exit_tp "
                         "(Linux 6.16) or its type information. --mode cpu works without it.");
    if (r < 0)
        return r;
    wall->shared = bpf_probes_table(wall->probes, "wall");
    wall->threads = bpf_probes_table(wall->probes, "threads");
    return wall->shared && wall->threads
               ? 0
               : error_set_errno(error, -ENOMEM, "Cannot map the table of threads");
}

/* Switches come last: everything that they need is there by then. */
static int attach_probes(struct wall *wall, bool wakers, struct error *error)
{
    static const char *const programs[] = {"assay_wall_fork", "assay_wall_exec", "assay_wall_exit",
                                           "assay_threads", "assay_switch"};
    int r = 0;
    for (size_t i = 0; !r && i < ARRAY_LENGTH(programs); i++)
        r = bpf_probes_attach(wall->probes, programs[i]);
    if (!r && wakers)
        r = bpf_probes_attach(wall->probes, "assay_waking");
    if (!r)
        r = wait_for_clock(wall);
    if (!r)
        r = bpf_probes_iterate(wall->probes, "assay_threads");
    return r < 0 ? error_set_errno(error, r, "Failed to trace context switches") : 0;
}

static void wall_stop(void *state)
{
    struct wall *wall = state;
    if (!wall)
        return;
    bpf_probes_free(wall->probes);
    free(wall->seen);
    free(wall->accounts);
    free(wall->pools);
    free(wall->pending);
    id_table_release(&wall->index);
    id_table_release(&wall->pool_index);
    free(wall);
}

static int wall_start(const struct collector_setup *setup, void **ret_state, struct error *error)
{
    struct wall *wall = memory_zalloc(1, sizeof(*wall));
    unsigned waits_hz = setup->collect->waits_hz ? setup->collect->waits_hz : WAITS_HZ;
    wall->modes = setup->modes;
    wall->recorder = setup->recorder;
    wall->seen = memory_zalloc(BPF_THREADS_MAX, sizeof(*wall->seen));
    wall->cpus = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    wall->target_hz = waits_hz * wall->cpus;
    wall->tuned_ns = monotonic_ns();
    int r = load_probes(wall, setup, error);
    if (!r) {
        set_gaps(wall->shared);
        set_mean(wall, MEAN_WAIT_NS_START);
        r = attach_probes(wall, setup->modes & CAPTURE_LOCK, error);
    }
    if (r < 0) {
        wall_stop(wall);
        return r;
    }
    *ret_state = wall;
    return 0;
}

static void wall_turn(void *state, int64_t now_ns)
{
    struct wall *wall = state;
    int64_t passed_ns = now_ns - wall->tuned_ns;
    if (passed_ns < TUNE_NS)
        return;
    double wanted = wall->target_hz * (double)passed_ns / 1e9;
    double got = (double)(wall->waits - wall->tuned_waits);
    double mean_ns = UNIT / wall->shared->rate;
    /* Halfway, since load comes and goes. */
    set_mean(wall, mean_ns * sqrt((got + 1) / (wanted + 1)));
    wall->tuned_waits = wall->waits;
    wall->tuned_ns = now_ns;
}

/* ---- accounts ---- */

static void begin_epoch(struct wall *wall)
{
    struct profile *profile = wall->recorder->profile;
    if (wall->epoch == wall->recorder->epoch)
        return;
    wall->epoch = wall->recorder->epoch;
    wall->account_count = wall->pending_count = 0;
    id_table_clear(&wall->index);
    for (size_t i = 0; profile && i < VALUE_TYPES; i++)
        if (wall->modes & value_types[i].mode)
            wall->types[i] = profile_type(profile, profile_cstring(profile, value_types[i].name),
                                          profile_cstring(profile, value_types[i].unit));
    if (profile && wall->recorder->no_cpu && profile->type_count)
        profile->default_type = profile->types[profile->type_count - 1].type;
}

static struct account *find_account(struct wall *wall, uint32_t pid, uint32_t tid, unsigned state,
                                    const char *comm)
{
    uint64_t hash = hash_word((uint64_t)tid << 8 | state);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&wall->index, &probe)) != ID_NONE) {
        struct account *account = &wall->accounts[id];
        if (account->tid != tid || account->state != state || account->pid != pid)
            continue;
        snprintf(account->comm, sizeof(account->comm), "%s", comm); /* the last name counts */
        return account;
    }
    array_reserve(wall->accounts, wall->account_capacity, wall->account_count + 1);
    id_table_insert(&wall->index, hash, (uint32_t)wall->account_count);
    struct account *account = &wall->accounts[wall->account_count++];
    *account = (struct account){.pid = pid, .tid = tid, .state = (uint8_t)state};
    snprintf(account->comm, sizeof(account->comm), "%s", comm);
    return account;
}

/* Where a thread waits; for a lock, with the stack of the thread that let it go on behind it: its
 * holder. */
static uint32_t waiting_stack(struct wall *wall, const struct recorder_sample *sample,
                              unsigned state)
{
    struct recorder *recorder = wall->recorder;
    if (state != BPF_STATE_LOCK || !sample->second_count)
        return profile_stack(recorder->profile, sample->frames, sample->frame_count);
    uint32_t frames[3 * RECORDER_FRAMES_MAX];
    size_t count = MIN(sample->frame_count, (size_t)2 * RECORDER_FRAMES_MAX - 1);
    size_t second = MIN(sample->second_count, (size_t)RECORDER_FRAMES_MAX);
    memcpy(frames, sample->frames, count * sizeof(*frames));
    frames[count++] = recorder_mark(recorder, "[lock holder]");
    memcpy(frames + count, sample->second_frames, second * sizeof(*frames));
    return profile_stack(recorder->profile, frames, count + second);
}

static void add_pending(struct wall *wall, const struct recorder_sample *sample, unsigned state,
                        unsigned accounted, double weight_ns, double waits)
{
    struct recorder *recorder = wall->recorder;
    if (weight_ns <= 0)
        return;
    struct account *account = find_account(wall, sample->pid, sample->tid, accounted, sample->comm);
    account->weight_ns += weight_ns;
    array_reserve(wall->pending, wall->pending_capacity, wall->pending_count + 1);
    wall->pending[wall->pending_count++] =
        (struct pending){.node = waiting_stack(wall, sample, state),
                         .account = (uint32_t)(account - wall->accounts),
                         .time_ns = sample->time_ns + (uint64_t)recorder->epoch_ns,
                         .state = (uint8_t)state,
                         .weight_ns = weight_ns,
                         .waits = waits};
}

static void wall_take_tick(void *state, const struct recorder_sample *sample)
{
    struct wall *wall = state;
    begin_epoch(wall);
    add_pending(wall, sample, BPF_STATE_RUNNING, BPF_STATE_RUNNING, (double)sample->cpu_ns, 0);
}

static void wall_take_sample(void *context, const struct recorder_sample *sample,
                             const struct bpf_sample_event *event)
{
    struct wall *wall = context;
    const struct bpf_wait *wait = (const struct bpf_wait *)event->detail;
    begin_epoch(wall);
    double length_ns = (double)event->value + (double)wait->queued_ns;
    double chance = -expm1(-length_ns * wait->rate / UNIT);
    unsigned state = MIN((unsigned)wait->state, BPF_STATES - 1u);
    unsigned accounted = MIN((unsigned)wait->account, BPF_STATES - 1u);
    if (!wall->looking)
        wall->waits++;
    if (chance <= 0)
        return;
    if (accounted != BPF_STATE_RUNNING)
        add_pending(wall, sample, state, accounted, (double)event->value / chance, 1 / chance);
    add_pending(wall, sample, BPF_STATE_RUNNABLE, BPF_STATE_RUNNABLE,
                (double)wait->queued_ns / chance, 1 / chance);
}

/* ---- exact totals ---- */

static void add_exact(struct wall *wall, const struct bpf_thread *thread,
                      const struct bpf_thread *before)
{
    bool same = before->tid == thread->tid && before->tgid == thread->tgid;
    char comm[sizeof(thread->comm) + 1] = "";
    memcpy(comm, thread->comm, sizeof(thread->comm));
    for (unsigned state = 0; state < BPF_STATES; state++) {
        uint64_t start_ns = same ? before->ns[state] : 0;
        if (thread->ns[state] > start_ns)
            find_account(wall, thread->tgid, thread->tid, state, comm)->exact_ns +=
                thread->ns[state] - start_ns;
    }
}

/* The end of a thread. */
static void wall_take_note(void *state, const struct bpf_note *note)
{
    struct wall *wall = state;
    const struct bpf_thread *thread = (const struct bpf_thread *)note;
    if (note->bytes < sizeof(*thread))
        return;
    begin_epoch(wall);
    for (size_t way = 0; way < BPF_THREAD_WAYS; way++) {
        struct bpf_thread *seen =
            &wall->seen[((size_t)thread->tid * BPF_THREAD_WAYS + way) & (BPF_THREADS_MAX - 1)];
        if (seen->tid == thread->tid && seen->tgid == thread->tgid) {
            add_exact(wall, thread, seen);
            *seen = (struct bpf_thread){0};
            return;
        }
    }
    add_exact(wall, thread, &(struct bpf_thread){0});
}

static void take_threads(struct wall *wall)
{
    for (size_t i = 0; i < BPF_THREADS_MAX; i++) {
        struct bpf_thread thread = wall->threads[i];
        if (!thread.tid || thread.since_ns <= BPF_THREAD_UNWANTED)
            continue;
        add_exact(wall, &thread, &wall->seen[i]);
        wall->seen[i] = thread;
    }
}

/* ---- settling ---- */

static struct pool *find_pool(struct wall *wall, uint32_t labels, unsigned state)
{
    uint64_t hash = hash_word((uint64_t)labels << 8 | state);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&wall->pool_index, &probe)) != ID_NONE)
        if (wall->pools[id].labels == labels && wall->pools[id].state == state)
            return &wall->pools[id];
    array_reserve(wall->pools, wall->pool_capacity, wall->pool_count + 1);
    id_table_insert(&wall->pool_index, hash, (uint32_t)wall->pool_count);
    wall->pools[wall->pool_count] = (struct pool){.labels = labels, .state = (uint8_t)state};
    return &wall->pools[wall->pool_count++];
}

static void label_accounts(struct wall *wall)
{
    struct recorder *recorder = wall->recorder;
    for (size_t i = 0; i < wall->account_count; i++) {
        struct account *account = &wall->accounts[i];
        struct recorder_sample sample = {
            .pid = account->pid, .tid = account->tid, .comm = account->comm};
        account->labels = recorder_process(recorder, account->pid, false)
                              ? recorder_labels(recorder, &sample)
                              : CAPTURE_UNWANTED;
        if (account->labels == CAPTURE_UNWANTED)
            continue;
        struct pool *pool = find_pool(wall, account->labels, account->state);
        if (account->weight_ns > 0)
            pool->weight_ns += (double)account->exact_ns;
        else
            pool->unsampled_ns += account->exact_ns;
    }
}

static bool has_values(const struct wall *wall, unsigned state)
{
    for (size_t i = 0; i < VALUE_TYPES; i++)
        if (wall->modes & value_types[i].mode && value_types[i].states >> state & 1)
            return true;
    return false;
}

static uint32_t add_state(struct profile *profile, uint32_t labels, unsigned state)
{
    struct profile_label list[PROFILE_LABELS_MAX];
    size_t count = 0;
    const struct profile_label *base = profile_labels(profile, labels, &count);
    count = MIN(count, (size_t)PROFILE_LABELS_MAX - 1);
    memcpy(list, base, count * sizeof(*list));
    list[count++] = (struct profile_label){
        .key = profile_cstring(profile, "state"),
        .text = profile_cstring(profile, wall_state_name((enum bpf_state)state))};
    return profile_label_set(profile, list, count);
}

static void add_row(struct wall *wall, const struct pending *pending, uint32_t labels, double scale)
{
    struct profile *profile = wall->recorder->profile;
    if (!has_values(wall, pending->state))
        return;
    size_t row = profile_sample(profile, pending->node, add_state(profile, labels, pending->state),
                                0, pending->time_ns);
    for (size_t i = 0; i < VALUE_TYPES; i++) {
        const struct value_type *type = &value_types[i];
        if (wall->modes & type->mode && type->states >> pending->state & 1)
            profile_add_value(
                profile, row, wall->types[i],
                (int64_t)((type->counts ? pending->waits : pending->weight_ns) * scale + 0.5));
    }
}

/* The waits of a thread add up to what it spent; and what threads without a sample spent is
 * thought to be spent as others with the same labels did. */
static void add_sampled(struct wall *wall, const struct pending *pending)
{
    const struct account *account = &wall->accounts[pending->account];
    if (account->labels == CAPTURE_UNWANTED || !account->exact_ns)
        return;
    const struct pool *pool = find_pool(wall, account->labels, account->state);
    double scale = (double)account->exact_ns / account->weight_ns;
    add_row(wall, pending, account->labels,
            scale * (1 + (double)pool->unsampled_ns / pool->weight_ns));
}

static void add_unsampled(struct wall *wall, const struct pool *pool)
{
    struct recorder *recorder = wall->recorder;
    uint32_t frame = recorder_mark(recorder, "[not sampled]");
    add_row(wall,
            &(struct pending){.node = profile_stack(recorder->profile, &frame, 1),
                              .time_ns = (uint64_t)(monotonic_ns() + recorder->epoch_ns),
                              .state = pool->state,
                              .weight_ns = (double)pool->unsampled_ns},
            pool->labels, 1);
}

/* Threads that sleep all the time. */
static void wall_look(void *state)
{
    struct wall *wall = state;
    wall->looking = true; /* its samples come all at once and say nothing about the rate */
    if (!wall->off)
        bpf_probes_iterate(wall->probes, "assay_threads");
}

/* From now on: totals up to here are known, and left out. */
static void wall_begin(void *state)
{
    struct wall *wall = state;
    wall_look(wall);
    memcpy(wall->seen, wall->threads, BPF_THREADS_MAX * sizeof(*wall->seen));
}

static void wall_settle(void *state)
{
    struct wall *wall = state;
    wall->looking = false;
    begin_epoch(wall);
    take_threads(wall);
    if (wall->recorder->profile) {
        label_accounts(wall);
        for (size_t i = 0; i < wall->pending_count; i++)
            add_sampled(wall, &wall->pending[i]);
        for (size_t i = 0; i < wall->pool_count; i++)
            if (wall->pools[i].unsampled_ns && wall->pools[i].weight_ns <= 0)
                add_unsampled(wall, &wall->pools[i]);
    }
    wall->account_count = wall->pending_count = wall->pool_count = 0;
    id_table_clear(&wall->index);
    id_table_clear(&wall->pool_index);
}

static unsigned wall_rate(const void *state)
{
    const struct wall *wall = state;
    return wall->target_hz / wall->cpus;
}

static int wall_set_rate(void *state, unsigned rate_hz)
{
    struct wall *wall = state;
    if (!rate_hz && wall->off)
        return 0;
    if (!rate_hz) {
        wall_look(wall); /* all up to here counts */
        bpf_probes_detach(wall->probes, "assay_switch");
        wall->off = true;
        return 0;
    }
    wall->target_hz = rate_hz * wall->cpus;
    if (!wall->off)
        return 0;
    /* Nothing is known of the time in between. */
    for (size_t i = 0; i < BPF_THREADS_MAX; i++)
        wall->threads[i].since_ns = 0;
    int r = bpf_probes_attach(wall->probes, "assay_switch");
    if (!r)
        wall->off = false;
    return r;
}

static struct bpf_cost wall_cost(const void *state)
{
    const struct wall *wall = state;
    return bpf_probes_cost(wall->probes);
}

static void wall_losses(const void *state, struct capture_loss *losses, size_t *count)
{
    const struct wall *wall = state;
    const struct capture_loss all[] = {
        {"threads_refused", "context switches of threads beyond the limit", wall->shared->refused},
        {"threads_lost", "threads whose last waits found the ring buffer full", wall->shared->lost},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        if (all[i].count && *count < CAPTURE_LOSSES_MAX)
            losses[(*count)++] = all[i];
}

const struct collector_kind wall_collector = {
    .name = "wall",
    .collector = BPF_COLLECTOR_WALL,
    .modes = CAPTURE_WAITS,
    .start = wall_start,
    .stop = wall_stop,
    .take_sample = wall_take_sample,
    .take_note = wall_take_note,
    .take_tick = wall_take_tick,
    .begin = wall_begin,
    .turn = wall_turn,
    .look = wall_look,
    .settle = wall_settle,
    .rate = wall_rate,
    .set_rate = wall_set_rate,
    .cost = wall_cost,
    .losses = wall_losses,
};
