// SPDX-License-Identifier: Apache-2.0
// The collector of wall-clock time: its programs, how much they send, and how much they cost. What
// they say becomes rows in accounts.c.

#include "capture/wall/wall.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "arch/system_calls.h"
#include "base/clock.h"
#include "base/memory.h"
#include "capture/bpf/object.h"
#include "capture/bpf/sampler.h"
#include "capture/record/vocabulary.h"
#include "capture/wall/accounts.h"
#include "capture/wall/pace.h"

#define UNIT 1099511627776.0 /* of rates and gaps in the kernel: 2^40 */
#define ALL 4294967296.0     /* threads, of shares: 2^32 */
#define MEAN_WAIT_NS_START 10e6
#define CHANCE_START 0.1 /* of a wait, where that is decided when it begins */
#define MEAN_WAIT_NS_MIN 100e3
#define MEAN_WAIT_NS_MAX 1000e9
/* Ends of threads that lived for less than this are told in part; more of it when they are many. */
#define MEAN_LIFE_NS_MIN 1e6
#define MEAN_LIFE_NS_MAX 10e9
#define ENDS_PER_SECOND 1000
#define TUNE_NS 1000000000ll
#define CLOCK_TRIES 200
#define WAITS_HZ 99 /* with their stacks, per CPU */
/* Stacks of threads that sleep, at one look; each is a copy. */
#define SLEEPERS_MIN 64
/* Where cost is limited: what they and all else at the end of a profile may take of it. Their
 * stacks are walked in user space, by rows that may have to be read for it. */
#define SLEEPERS_SHARE 0.25
#define SLEEPERS_START 16
#define SLEEPERS_LEAST 4
#define SLEEPERS_GROWTH 1.5
#define TURN_MIN 8
/* Programs follow fewer threads by themselves when they have cost what they may in this time, and
 * this thread has not had a CPU to do better. */
#define STARVED_NS 4e9
#define STARVED_SWITCHES_MIN 1000
#define PROFILE_NS 10e9 /* of an agent */
#define WEIGHT_MAX 256  /* of a slice */
#define MEASURED_ALL 0.999

/* Without mode lock these are left out: they take time at each contended lock. */
static const char *const lock_programs[] = {"assay_waking", "assay_contention_begin",
                                            "assay_contention_end"};

/* Switches come last: everything that they need is there by then. The second way is for kernels
 * before 6.16. */
#define THREAD_PROGRAMS 4
static const char *const thread_programs[2][THREAD_PROGRAMS] = {
    {"assay_wall_fork", "assay_wall_exec", "assay_wall_exit", "assay_switch"},
    {"assay_wall_fork", "assay_wall_exec", "assay_wall_exit", "assay_switch_early"}};

struct wall {
    struct wall_accounts accounts;
    struct bpf_probes *probes;
    struct bpf_wall *shared;
    struct bpf_thread *threads;
    struct bpf_wall_cpu *per_cpu;
    bool locks; /* the programs above are there */
    bool early; /* the hook is before the switch, not behind it */
    bool off;
    struct bpf_thread *seen; /* as they were at the last look */
    unsigned cpus, target_hz;
    uint64_t tuned_waits;
    uint64_t ends, tuned_ends;
    uint64_t looked_sleepers; /* of shared->sleepers, before the last look */
    double sleepers_most;     /* that their cost permits, where that is limited */
    int64_t look_cpu_ns;      /* CPU time of this thread when the last look began */
    int64_t tuned_ns;

    struct wall_pace pace;
    double cost_most;  /* that programs may take of all CPUs, by the settings; 0: any */
    bool resting;      /* not in this slice */
    int64_t slice_ns;  /* since when it is measured */
    int64_t span_ns;   /* ... and what that stands for */
    int64_t rested_ns; /* the end of the last slice */
    struct bpf_cost tuned;
    int64_t edges_ns;              /* CPU time of this thread for the edges of the last slice */
    int64_t edge_ns;               /* ... for the last of them */
    int64_t all_edges_ns;          /* ... for all so far */
    int64_t epoch_ns;              /* the profile's beginning */
    int64_t measured_ns, spans_ns; /* time in slices before this one, and what they stand for */
    int64_t off_since_ns, off_ns;  /* since when it is off; how long it was, before that */
};

/* ---- the kernel side ---- */

static void set_mean(struct wall *wall, double mean_ns)
{
    mean_ns = fmin(fmax(mean_ns, MEAN_WAIT_NS_MIN), MEAN_WAIT_NS_MAX);
    wall->shared->rate = (unsigned)fmax(UNIT / mean_ns, 1);
}

static void set_chance(struct wall *wall, double chance)
{
    wall->shared->chance = (unsigned)fmin(fmax(chance * ALL, 1), ALL - 1);
}

/* So many stacks a second, four times as many in a moment. */
static void set_target(struct wall *wall, unsigned rate_hz)
{
    wall->target_hz = rate_hz * wall->cpus;
    wall->shared->turn_sent_max =
        MAX(rate_hz * 4 / (1000000000u / BPF_WALL_TURN_NS), (unsigned)TURN_MIN);
}

static void set_mean_life(struct wall *wall, double mean_ns)
{
    mean_ns = fmin(fmax(mean_ns, MEAN_LIFE_NS_MIN), MEAN_LIFE_NS_MAX);
    wall->shared->end_rate = (unsigned)fmax(UNIT / mean_ns, 1);
}

static uint32_t draw(void)
{
    uint32_t random = 0;
    return getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0 ? (uint32_t)monotonic_ns()
                                                                 : random;
}

/* The part of the threads that is followed; programs lower it, too. */
static double followed(const struct wall *wall)
{
    return wall->shared->follow == BPF_FOLLOW_ALL ? 1 : wall->shared->follow / ALL;
}

static void set_follow(struct wall *wall, double follow)
{
    follow = fmin(fmax(follow, WALL_PACE_FOLLOW_MIN), 1);
    wall->shared->salt = draw();
    wall->shared->follow = follow >= 1 ? BPF_FOLLOW_ALL : (unsigned)(follow * (ALL - 1));
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

/* One of the two hooks; -ENOTSUP: this kernel doesn't have it, or something else that is needed. */
static int try_hook(struct wall *wall, const struct collector_setup *setup, bool early,
                    struct error *error)
{
    struct bpf_wall_constants constants = {.early = early};
    memcpy(constants.system_call_states, system_call_states, sizeof(system_call_states));
    wall->early = wall->accounts.begun = early;
    int r = set_cgroup(setup->cgroup, &constants, error);
    if (!r)
        r = bpf_probes_open(setup->sampler, "assay_wall", bpf_wall_object, bpf_wall_object_length,
                            &wall->probes, error);
    if (r < 0)
        return r;
    for (size_t i = 0; !wall->locks && i < ARRAY_LENGTH(lock_programs); i++)
        bpf_probes_leave_out(wall->probes, lock_programs[i]);
    bpf_probes_leave_out(wall->probes, thread_programs[!early][THREAD_PROGRAMS - 1]);
    if (!early)
        bpf_probes_set_entries(wall->probes, "begun", 1);
    r = bpf_probes_set_constants(wall->probes, ".rodata.wall", &constants, sizeof(constants));
    if (!r)
        r = bpf_probes_load(wall->probes, error);
    if (r < 0)
        bpf_probes_free(TAKE_PTR(wall->probes));
    if (r == -ENOENT || r == -ESRCH || r == -EINVAL)
        return error_set(
            error, -ENOTSUP,
            "This kernel cannot measure waits: it lacks a tracepoint of the scheduler, "
            "its type information, or a helper of BPF (Linux 5.18 has all). --mode "
            "cpu works without them.");
    return r;
}

static int load_probes(struct wall *wall, const struct collector_setup *setup, struct error *error)
{
    int r = bpf_sampler_without(WALL_LATE_HOOK) ? -ENOTSUP : try_hook(wall, setup, false, error);
    if (r == -ENOTSUP)
        r = try_hook(wall, setup, true, error);
    if (r < 0)
        return r;
    wall->shared = bpf_probes_table(wall->probes, "wall");
    wall->threads = bpf_probes_table(wall->probes, "threads");
    wall->per_cpu = bpf_probes_table(wall->probes, "wall_cpus");
    return wall->shared && wall->threads && wall->per_cpu
               ? 0
               : error_set_errno(error, -ENOMEM, "Cannot map the table of threads");
}

static int attach_probes(struct wall *wall, struct error *error)
{
    int r = bpf_probes_attach(wall->probes, "assay_threads");
    for (size_t i = 0; !r && i < THREAD_PROGRAMS; i++)
        r = bpf_probes_attach(wall->probes, thread_programs[wall->early][i]);
    if (!r && wall->locks)
        r = bpf_probes_attach(wall->probes, lock_programs[0]);
    /* Locks of the kernel are told where it has their tracepoints. */
    for (size_t i = 1; !r && wall->locks && i < ARRAY_LENGTH(lock_programs); i++)
        bpf_probes_attach(wall->probes, lock_programs[i]);
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
    wall_accounts_release(&wall->accounts);
    free(wall);
}

static int wall_start(const struct collector_setup *setup, void **ret_state, struct error *error)
{
    struct wall *wall = memory_zalloc(1, sizeof(*wall));
    unsigned waits_hz = setup->collect->waits_hz ? setup->collect->waits_hz : WAITS_HZ;
    wall_accounts_init(&wall->accounts, setup->recorder, setup->modes);
    wall->locks = setup->modes & CAPTURE_LOCK;
    wall->seen = memory_zalloc(BPF_THREADS_MAX, sizeof(*wall->seen));
    wall->cpus = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    wall->tuned_ns = wall->epoch_ns = wall->slice_ns = wall->span_ns = monotonic_ns();
    wall->cost_most = setup->collect->cost_share;
    wall_pace_init(&wall->pace, wall->cpus, wall->cost_most, wall->tuned_ns, 0);
    wall->sleepers_most = SLEEPERS_START;
    int r = load_probes(wall, setup, error);
    if (!r) {
        wall->shared->min_block_ns = (uint64_t)MAX(setup->collect->min_block_ns, 0);
        wall->shared->sleeper_chance = UINT32_MAX;
        set_target(wall, waits_hz);
        set_gaps(wall->shared);
        set_mean(wall, MEAN_WAIT_NS_START);
        set_chance(wall, CHANCE_START);
        set_mean_life(wall, MEAN_LIFE_NS_MIN);
        set_follow(wall, 1);
        r = attach_probes(wall, error);
    }
    if (r < 0) {
        wall_stop(wall);
        return r;
    }
    *ret_state = wall;
    return 0;
}

/* ---- events ---- */

static void wall_take_tick(void *state, const struct recorder_sample *sample)
{
    struct wall *wall = state;
    if (bpf_wall_follows(wall->shared->follow, wall->shared->salt, sample->tid))
        wall_accounts_tick(&wall->accounts, sample, 1 / followed(wall));
}

static void wall_take_sample(void *context, const struct recorder_sample *sample,
                             const struct bpf_sample_event *event)
{
    struct wall *wall = context;
    wall_accounts_wait(&wall->accounts, sample, event, 1 / followed(wall));
}

/* The end of a thread. */
static void wall_take_note(void *state, const struct bpf_note *note)
{
    struct wall *wall = state;
    const struct bpf_thread_end *end = (const struct bpf_thread_end *)note;
    const struct bpf_thread *thread = &end->thread;
    struct bpf_thread *before = NULL;
    double life_ns = 0;
    if (note->bytes < sizeof(*end))
        return;
    for (unsigned i = 0; i < BPF_STATES; i++)
        life_ns += (double)thread->ns[i];
    double chance = life_ns > BPF_WAIT_NS_MAX ? 1 : -expm1(-life_ns * end->rate / UNIT);
    if (chance <= 0)
        return;
    wall->ends++;
    for (size_t way = 0; way < BPF_THREAD_WAYS && !before; way++) {
        struct bpf_thread *seen =
            &wall->seen[((size_t)thread->tid * BPF_THREAD_WAYS + way) & (BPF_THREADS_MAX - 1)];
        if (seen->tid == thread->tid && seen->tgid == thread->tgid)
            before = seen;
    }
    wall_accounts_exact(&wall->accounts, thread, before, 1 / followed(wall) / chance);
    if (before)
        before->tid = 0;
}

static void take_threads(struct wall *wall)
{
    for (size_t i = 0; i < BPF_THREADS_MAX; i++) {
        const struct bpf_thread *thread = &wall->threads[i];
        if (!thread->tid || thread->since_ns <= BPF_THREAD_UNWANTED ||
            !bpf_wall_follows(wall->shared->follow, wall->shared->salt, thread->tid))
            continue;
        struct bpf_thread now = *thread;
        wall_accounts_exact(&wall->accounts, &now, &wall->seen[i], 1 / followed(wall));
        wall->seen[i] = now;
    }
}

/* ---- how much is measured ---- */

/* Nothing is known of the time before: threads are met as they are now. Totals so far are in. */
static void meet_again(struct wall *wall)
{
    for (size_t i = 0; i < BPF_THREADS_MAX; i++)
        if (wall->threads[i].tid)
            wall->threads[i].since_ns = 0;
}

/* ... nor which threads have ended; and totals begin at 0. */
static void forget_threads(struct wall *wall)
{
    for (size_t i = 0; i < BPF_THREADS_MAX; i++) {
        if (wall->threads[i].tid)
            wall->threads[i] = (struct bpf_thread){0};
        if (wall->seen[i].tid)
            wall->seen[i] = (struct bpf_thread){0};
    }
}

/* Returns when that was: what is known of threads begins or ends there. */
static int64_t look_at_threads(struct wall *wall)
{
    int64_t began_ns = monotonic_ns();
    bpf_probes_iterate(wall->probes, "assay_threads");
    return began_ns + (monotonic_ns() - began_ns) / 2;
}

/* Threads that sleep all the time, this part of as many as may be sent in a profile. */
static int64_t look_for_sleepers(struct wall *wall, double part)
{
    uint64_t sleepers = wall->shared->sleepers - wall->looked_sleepers;
    double most = MAX(2 * wall->target_hz, (unsigned)SLEEPERS_MIN), left = 2 * most;
    if (wall->pace.cost_share > 0)
        most = left = fmax(fmin(most, wall->sleepers_most) * part, 1);
    wall->shared->sleeper_chance =
        (double)sleepers <= most ? UINT32_MAX : (unsigned)(most / (double)sleepers * (ALL - 1));
    wall->shared->sleepers_left = (long long)left;
    wall->looked_sleepers = wall->shared->sleepers;
    return look_at_threads(wall);
}

static void wall_look(void *state)
{
    struct wall *wall = state;
    if (wall->off || wall->resting)
        return;
    wall->look_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    look_for_sleepers(wall, 1);
}

/* Other threads are followed from now on. What those until now did is in. */
static void follow_others(struct wall *wall, double follow)
{
    set_follow(wall, follow);
    meet_again(wall);
    look_at_threads(wall);
}

/* A part of the threads that are followed, as programs do it themselves: no look at all threads,
 * which would cost most when there is least to spend. */
static void follow_fewer(struct wall *wall, double follow)
{
    wall->shared->follow = (unsigned)(fmax(follow, WALL_PACE_FOLLOW_MIN) * (ALL - 1));
}

/* All up to now counts, and stands for what passes until `until_ns`. */
static void end_slice(struct wall *wall, int64_t now_ns, int64_t until_ns)
{
    int64_t length_ns = now_ns - wall->slice_ns, span_ns = until_ns - wall->span_ns;
    double weight = length_ns > 0 && wall->pace.cost_share > 0
                        ? fmin(fmax((double)span_ns / (double)length_ns, 1), WEIGHT_MAX)
                        : 1;
    wall_accounts_weigh(&wall->accounts, weight);
    take_threads(wall);
    wall_accounts_end_slice(&wall->accounts, length_ns);
    wall->measured_ns += length_ns;
    wall->spans_ns += (int64_t)((double)length_ns * weight);
    wall->span_ns = until_ns;
}

static void end_measuring(struct wall *wall, int64_t until_ns)
{
    double part = fmin((double)wall->pace.slice_ns / wall->pace.share / PROFILE_NS, 1);
    int64_t now_ns = look_for_sleepers(wall, part);
    end_slice(wall, now_ns, MAX(until_ns, now_ns));
    wall->rested_ns = now_ns;
    for (size_t i = (size_t)THREAD_PROGRAMS; i-- > 0;)
        bpf_probes_detach(wall->probes, thread_programs[wall->early][i]);
    forget_threads(wall);
}

static int begin_measuring(struct wall *wall)
{
    int r = 0;
    for (size_t i = 0; !r && i < THREAD_PROGRAMS; i++)
        r = bpf_probes_attach(wall->probes, thread_programs[wall->early][i]);
    if (!r)
        wall->slice_ns = look_at_threads(wall);
    return r;
}

/* Nothing runs in the kernel, or everything. */
static int rest(struct wall *wall, bool resting, int64_t until_ns)
{
    int64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int r = 0;
    if (resting)
        end_measuring(wall, until_ns);
    else
        r = begin_measuring(wall);
    if (!r)
        wall->resting = resting;
    int64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
    wall->edges_ns = wall->edge_ns + took_ns;
    wall->edge_ns = took_ns;
    wall->all_edges_ns += took_ns;
    return r;
}

static void follow_more(struct wall *wall, double follow)
{
    int64_t now_ns = look_for_sleepers(wall, 1);
    end_slice(wall, now_ns, now_ns);
    wall->slice_ns = now_ns;
    follow_others(wall, follow);
}

static uint64_t spent_ns(const struct wall *wall)
{
    return bpf_probes_cost(wall->probes).run_ns + (uint64_t)wall->all_edges_ns;
}

/* Does what the pace says. A failed attempt is repeated at the next turn. */
static void keep_pace(struct wall *wall, int64_t now_ns)
{
    struct wall_pace *pace = &wall->pace;
    double before = followed(wall);
    if (wall->off || pace->cost_share <= 0 || now_ns - pace->turned_ns < WALL_PACE_TURN_NS)
        return;
    for (size_t i = 0; i < BPF_WALL_CPUS; i++)
        if (wall->per_cpu[i].turn_switches)
            wall->per_cpu[i].turn_switches = 0;
    wall_pace_turn(pace, now_ns, spent_ns(wall), before, wall->edges_ns, draw() / ALL);
    if (pace->resting != wall->resting)
        rest(wall, pace->resting, pace->until_ns);
    if (pace->follow < before)
        follow_fewer(wall, pace->follow);
    else if (pace->follow > before && !wall->resting)
        follow_more(wall, pace->follow);
}

/* How many switches are too many while this thread is starved. */
static void tune_starved(struct wall *wall)
{
    struct bpf_cost now = bpf_probes_cost(wall->probes);
    double run_ns = (double)(now.run_ns - wall->tuned.run_ns);
    double runs = (double)(now.runs - wall->tuned.runs);
    wall->tuned = now;
    if (wall->pace.cost_share > 0 && runs > 0)
        wall->shared->turn_switches_max = (unsigned)fmax(
            STARVED_NS * wall->pace.cost_share / (run_ns / runs), STARVED_SWITCHES_MIN);
}

/* Waits that were sent when they ended; those of a look say nothing about the rate. */
static uint64_t count_waits(const struct wall *wall)
{
    uint64_t waits = 0;
    for (size_t i = 0; i < BPF_WALL_CPUS; i++)
        waits += wall->per_cpu[i].sent;
    return waits;
}

static void wall_turn(void *state, int64_t now_ns)
{
    struct wall *wall = state;
    int64_t passed_ns = now_ns - wall->tuned_ns;
    keep_pace(wall, now_ns);
    if (passed_ns < TUNE_NS)
        return;
    double seconds = (double)passed_ns / 1e9;
    uint64_t waits = count_waits(wall);
    double wanted = wall->target_hz * seconds, got = (double)(waits - wall->tuned_waits);
    /* Halfway, since load comes and goes. */
    set_mean(wall, UNIT / wall->shared->rate * sqrt((got + 1) / (wanted + 1)));
    set_chance(wall, wall->shared->chance / ALL * sqrt((wanted + 1) / (got + 1)));
    double ends = (double)(wall->ends - wall->tuned_ends);
    set_mean_life(wall, UNIT / wall->shared->end_rate *
                            sqrt((ends + 1) / (ENDS_PER_SECOND * seconds + 1)));
    if (!wall->off)
        tune_starved(wall);
    wall->tuned_waits = waits;
    wall->tuned_ends = wall->ends;
    wall->tuned_ns = now_ns;
}

/* From now on: totals up to here are known, and left out. */
static void wall_begin(void *state)
{
    struct wall *wall = state;
    wall_look(wall);
    memcpy(wall->seen, wall->threads, BPF_THREADS_MAX * sizeof(*wall->seen));
    wall->epoch_ns = wall->slice_ns = wall->span_ns = monotonic_ns();
    wall->measured_ns = wall->spans_ns = 0;
}

/* By what the look and all that it sent have cost. */
static void tune_sleepers(struct wall *wall, int64_t profile_ns)
{
    double cost_ns = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - wall->look_cpu_ns);
    double allowed_ns = wall->pace.cost_share * wall->cpus * (double)profile_ns * SLEEPERS_SHARE;
    if (wall->pace.cost_share <= 0 || wall->off || wall->resting || allowed_ns <= 0)
        return;
    double growth = fmin(allowed_ns / fmax(cost_ns, 1), SLEEPERS_GROWTH);
    double most = MAX(2 * wall->target_hz, (unsigned)SLEEPERS_MIN);
    wall->sleepers_most = fmin(fmax(wall->sleepers_most * growth, SLEEPERS_LEAST), most);
}

static void wall_settle(void *state)
{
    struct wall *wall = state;
    int64_t now_ns = monotonic_ns();
    tune_sleepers(wall, now_ns - wall->epoch_ns);
    if (!wall->resting)
        end_slice(wall, now_ns, now_ns);
    if (wall->off) {
        wall->off_ns += now_ns - wall->off_since_ns;
        wall->off_since_ns = now_ns;
    }
    /* Measured time stands for the whole period that its slice was drawn from. */
    double on_ns = (double)(now_ns - wall->epoch_ns - wall->off_ns);
    double factor =
        wall->measured_ns && wall->pace.cost_share > 0 ? on_ns / (double)wall->spans_ns : 1;
    double measured =
        on_ns > 0 && wall->pace.cost_share > 0 ? (double)wall->measured_ns / on_ns : 1;
    wall_accounts_settle(&wall->accounts, factor, measured > MEASURED_ALL ? 1 : measured);
    wall->epoch_ns = wall->slice_ns = now_ns;
    wall->span_ns = MAX(wall->span_ns, now_ns);
    wall->measured_ns = wall->spans_ns = wall->off_ns = 0;
    if (followed(wall) < 1 && !wall->off && !wall->resting)
        follow_others(wall, followed(wall));
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
        wall->off_since_ns = monotonic_ns();
        if (!wall->resting) {
            rest(wall, true, 0);
            wall->off_since_ns = wall->rested_ns;
        }
        wall->off = true;
        return 0;
    }
    set_target(wall, rate_hz);
    if (!wall->off)
        return 0;
    int r = rest(wall, false, 0);
    if (r)
        return r;
    wall->off = false;
    wall->span_ns = wall->slice_ns;
    wall->off_ns += wall->slice_ns - wall->off_since_ns;
    wall_pace_resume(&wall->pace, monotonic_ns(), spent_ns(wall));
    return 0;
}

static void wall_limit(void *state, double cost_share)
{
    struct wall *wall = state;
    if (wall->cost_most > 0 && cost_share > 0)
        wall->pace.cost_share = fmin(cost_share, wall->cost_most);
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
    .limit = wall_limit,
    .cost = wall_cost,
    .losses = wall_losses,
};
