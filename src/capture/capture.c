// SPDX-License-Identifier: Apache-2.0
// One way to take samples over all means: see capture.h.

#include "capture/capture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/bpf_recorder.h"
#include "capture/heap/preload.h"
#include "capture/ptrace/sampler.h"

/* Of each sample; deeper stacks are cut and say so. The kernel copies less than 64 KiB, and the
 * rings of users without privilege hold too few such copies. */
#define PERF_STACK_BYTES_ROOT 65528
#define PERF_STACK_BYTES_USER 32768
#define GONE_WAIT_US 10000
#define FIRST_PID_NAMESPACE 0xeffffffc /* its inode, on all kernels */
#define TIDY_NS 2000000000

struct capture {
    enum capture_backend backend;
    struct recorder recorder;
    struct bpf_recorder bpf;
    struct perf_sampler *perf;
    struct ptrace_sampler *ptrace;
    struct heap_preload *preload; /* the caller's */
    pid_t *pids;
    size_t pid_count;
    bool kernel_hidden;
    bool others_hidden;  /* what processes of other users have mapped can't be read */
    struct error no_bpf; /* why there is no BPF, where there is none */
    char shortcoming[sizeof(((struct error *)0)->text) + 64];
    struct excess_list excess;
    int64_t tidied_ns;
    char path[MODULE_PATH_BYTES]; /* what capture_locate gave last */
};

static const char *const backend_names[] = {
    [CAPTURE_ANY] = "any backend",       [CAPTURE_BPF] = "BPF",
    [CAPTURE_PERF] = "perf events",      [CAPTURE_PTRACE] = "ptrace",
    [CAPTURE_PRELOAD] = "libassay_heap",
};

const char *capture_backend_name(enum capture_backend backend)
{
    return backend_names[backend];
}

/* All threads that the processes have now. One of several may have ended since it was listed;
 * -ESRCH when all have. */
static int threads_of(const struct capture_options *options, pid_t **ret_threads, size_t *ret_count)
{
    size_t capacity = 0;
    *ret_threads = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < options->pid_count; i++) {
        int r = perf_threads_of(options->pids[i], ret_threads, ret_count, &capacity);
        if (r < 0 && r != -ESRCH && r != -ENOENT)
            return r;
    }
    return options->pid_count && !*ret_count ? -ESRCH : 0;
}

/* BPF programs see the process ids of the machine. */
static bool is_first_pid_namespace(void)
{
    struct stat found;
    return stat("/proc/self/ns/pid", &found) == 0 && found.st_ino == FIRST_PID_NAMESPACE;
}

static int start_bpf(struct capture *capture, const struct capture_options *options,
                     struct error *error)
{
    struct bpf_sampler_options wanted = {.all = options->all,
                                         .cgroup = -1,
                                         .pids = options->pids,
                                         .pid_count = options->pid_count,
                                         .enable_on_exec = options->at_exec,
                                         .frequency_hz = options->frequency_hz,
                                         .kernel = options->kernel,
                                         .user = options->user,
                                         .pool_bytes = options->unwind_pool_bytes,
                                         .deep_buffers = options->deep_buffers,
                                         .ticks = options->modes & (CAPTURE_CPU | CAPTURE_WALL),
                                         .interpreter_frames = options->interpreter_frames,
                                         .check = options->check};
    if (!is_first_pid_namespace())
        return error_set(error, -ENOTSUP,
                         "BPF uses the host's process ids, but this pid namespace has its own: "
                         "share the host's (docker run --pid=host).");
    if (options->cgroup) {
        wanted.cgroup = open(options->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (wanted.cgroup < 0)
            return error_set_errno(error, -errno, "Failed to open the cgroup %s", options->cgroup);
    }
    struct bpf_recorder_options all = {.sampler = wanted,
                                       .modes = options->modes,
                                       .optional_modes = options->optional_modes,
                                       .collect = &options->collect,
                                       .learn_all = options->learn_all};
    int r = bpf_recorder_init(&capture->bpf, &capture->recorder, &all, error);
    if (wanted.cgroup >= 0)
        close(wanted.cgroup);
    capture->recorder.processes.excess = &capture->excess;
    if (!r)
        bpf_recorder_limit(&capture->bpf, options->limits.events, options->limits.forks,
                           &capture->excess);
    if (!r && options->stacks_bytes)
        capture->bpf.stacks_bytes = options->stacks_bytes;
    return r;
}

static int start_perf(struct capture *capture, const struct capture_options *options,
                      struct error *error)
{
    _cleanup_free_ pid_t *threads = NULL;
    size_t count = 0;
    pid_t everybody = -1;
    if (options->cgroup)
        return error_set(
            error, -ENOTSUP,
            "Recording a cgroup requires BPF, which needs root, or CAP_BPF and CAP_PERFMON.");
    int r = threads_of(options, &threads, &count);
    if (r < 0)
        return error_set_errno(error, r, "Failed to inspect the process");
    struct perf_options wanted = {.threads = options->all ? &everybody : threads,
                                  .thread_count = options->all ? 1 : count,
                                  .frequency_hz = options->frequency_hz,
                                  .events = options->collect.events,
                                  .kernel = options->kernel,
                                  .enable_on_exec = options->at_exec,
                                  .stack_bytes = geteuid() == 0 ? PERF_STACK_BYTES_ROOT
                                                                : PERF_STACK_BYTES_USER};
    r = perf_sampler_new(&wanted, &capture->perf, error);
    if (r < 0)
        return r;
    capture->kernel_hidden = options->kernel && !perf_sampler_sees_kernel(capture->perf);
    capture->others_hidden = options->all && geteuid() != 0;
    for (size_t i = 0; capture->kernel_hidden && wanted.events && i < wanted.events->count; i++)
        if (wanted.events->list[i].in_kernel)
            return error_set(error, -EPERM,
                             "Permission denied: %s happen in the kernel, which only root can "
                             "sample (kernel.perf_event_paranoid).",
                             wanted.events->list[i].name);
    processes_learn(&capture->recorder.processes, options->at_exec ? NULL : options->pids,
                    options->at_exec ? 0 : options->pid_count, options->learn_all);
    return 0;
}

static void read_runtime(void *context, uint32_t pid, const struct interpreter *interpreter)
{
    ptrace_sampler_read_runtime(context, (pid_t)pid, interpreter);
}

static int start_ptrace(struct capture *capture, const struct capture_options *options,
                        struct error *error)
{
    if (options->modes & CAPTURE_EVENTS)
        return error_set(error, -ENOTSUP, "ptrace can't sample events, only CPU time.");
    if (!options->at_exec || options->pid_count != 1)
        return error_set(error, -ENOTSUP, "ptrace can only record a command that assay starts.");
    int r = ptrace_sampler_new(options->pids[0], options->frequency_hz, &capture->ptrace, error);
    if (r < 0)
        return r;
    capture->recorder.period_ns = (int64_t)ptrace_sampler_period_ns(capture->ptrace);
    capture->recorder.read_runtime = read_runtime;
    capture->recorder.runtime_context = capture->ptrace;
    return 0;
}

static int start(struct capture *capture, enum capture_backend backend,
                 const struct capture_options *options, struct error *error)
{
    capture->backend = backend;
    switch (backend) {
    case CAPTURE_PRELOAD:
        capture->preload = options->preload;
        capture->recorder.period_ns = 0; /* no CPU time is sampled */
        heap_preload_into(capture->preload, &capture->recorder);
        return 0;
    case CAPTURE_BPF:
        return start_bpf(capture, options, error);
    case CAPTURE_PERF:
        return start_perf(capture, options, error);
    default:
        return start_ptrace(capture, options, error);
    }
}

/* The best that works. What stands in the way of perf events is what a user can change. */
static int start_any(struct capture *capture, const struct capture_options *options,
                     struct error *error)
{
    struct error ignored = {0};
    if (options->preload) {
        bool tries = options->backend == CAPTURE_ANY || options->backend == CAPTURE_BPF;
        return tries && !start(capture, CAPTURE_BPF, options, &ignored)
                   ? 0
                   : start(capture, CAPTURE_PRELOAD, options, error);
    }
    int r = start(capture, CAPTURE_BPF, options, error);
    if (!r || options->cgroup ||
        options->modes & ~options->optional_modes & ~(CAPTURE_CPU | CAPTURE_EVENTS))
        return r;
    capture->no_bpf = *error;
    r = start(capture, CAPTURE_PERF, options, error);
    if ((r == -EACCES || r == -EPERM || r == -ENOENT || r == -ENOSYS) && options->at_exec &&
        !(options->modes & CAPTURE_EVENTS))
        r = start(capture, CAPTURE_PTRACE, options, &ignored);
    return r;
}

int capture_modes_parse(const char *text, unsigned *ret_modes, struct error *error)
{
    static const struct {
        const char *name;
        unsigned mode;
    } names[] = {{"cpu", CAPTURE_CPU},        {"wall", CAPTURE_WALL},
                 {"offcpu", CAPTURE_OFF_CPU}, {"lock", CAPTURE_LOCK},
                 {"io", CAPTURE_IO},          {"runq", CAPTURE_RUN_QUEUE},
                 {"heap", CAPTURE_HEAP},      {"goroutine", CAPTURE_GOROUTINES},
                 {"faults", CAPTURE_FAULTS},  {"rss", CAPTURE_RSS}};
    unsigned modes = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < ARRAY_LENGTH(names) &&
               (strlen(names[i].name) != length || memcmp(names[i].name, at, length) != 0))
            i++;
        if (i == ARRAY_LENGTH(names))
            return error_set(error, -EINVAL,
                             "\"%.*s\" is not a mode; the modes are cpu, wall, offcpu, lock, io, "
                             "runq, goroutine, faults, rss and heap.",
                             (int)length, at);
        modes |= names[i].mode;
        at += length + (at[length] == ',');
    }
    if (!modes)
        return error_set(error, -EINVAL, "--mode requires at least one mode.");
    if (modes & CAPTURE_HEAP && modes != CAPTURE_HEAP)
        return error_set(error, -EINVAL, "Mode heap cannot be combined with other modes.");
    *ret_modes = modes;
    return 0;
}

int capture_new(const struct capture_options *given, struct capture **ret_capture,
                struct error *error)
{
    struct capture_options normal = *given, *options = &normal;
    if (!normal.modes)
        normal.modes = CAPTURE_CPU;
    normal.collect.pids = normal.pids;
    normal.collect.pid_count = normal.pid_count;
    normal.collect.frequency_hz = normal.frequency_hz;
    if (!(normal.modes & CAPTURE_EVENTS))
        normal.collect.events = NULL;
    for (size_t i = 0; i < options->pid_count; i++)
        if (kill(options->pids[i], 0) < 0 && errno == ESRCH)
            return error_set(error, -ESRCH, "No process %d.", (int)options->pids[i]);
    struct capture *capture = memory_zalloc(1, sizeof(*capture));
    recorder_init(&capture->recorder, options->frequency_hz);
    capture->recorder.no_cpu = !(options->modes & CAPTURE_CPU);
    capture->recorder.events = options->collect.events;
    capture->recorder.label = options->label;
    capture->recorder.label_context = options->label_context;
    capture->recorder.thread_labels = options->thread_labels;
    pace_init(&capture->recorder.modules.pace, options->learning_share, monotonic_ns());
    capture->recorder.processes.no_thread_names = options->label != NULL;
    capture->recorder.root_by_process = options->root_by_process;
    capture->recorder.interpreter_frames = options->interpreter_frames;
    processes_limit(&capture->recorder.processes,
                    &(struct processes_limits){options->limits.process_mappings,
                                               options->limits.mappings,
                                               options->limits.lookup_ns});
    if (options->pid_count) {
        capture->pids = memory_zalloc(options->pid_count, sizeof(*capture->pids));
        memcpy(capture->pids, options->pids, options->pid_count * sizeof(*capture->pids));
        capture->pid_count = options->pid_count;
    }
    int r = options->preload || options->backend == CAPTURE_ANY
                ? start_any(capture, options, error)
                : start(capture, options->backend, options, error);
    if (r < 0) {
        capture_free(capture);
        return r;
    }
    *ret_capture = capture;
    return 0;
}

void capture_free(struct capture *capture)
{
    if (!capture)
        return;
    bpf_recorder_release(&capture->bpf);
    perf_sampler_free(capture->perf);
    ptrace_sampler_free(capture->ptrace);
    recorder_release(&capture->recorder);
    free(capture->pids);
    free(capture);
}

void capture_into(struct capture *capture, struct profile *profile)
{
    recorder_into(&capture->recorder, profile);
}

int capture_set_rate(struct capture *capture, unsigned frequency_hz, struct error *error)
{
    int r = capture_read(capture, 0, true, error);
    if (r < 0)
        return r;
    r = capture->backend == CAPTURE_BPF ? bpf_sampler_set_rate(capture->bpf.sampler, frequency_hz)
        : capture->backend == CAPTURE_PERF ? perf_sampler_set_rate(capture->perf, frequency_hz)
                                           : -ENOTSUP;
    if (r < 0)
        return error_set_errno(error, r, "Failed to set the sampling rate to %u Hz", frequency_hz);
    /* Samples taken so far keep the period that they were taken with. */
    recorder_set_rate(&capture->recorder, frequency_hz, (uint64_t)monotonic_ns());
    capture->recorder.period_set = true;
    return 0;
}

int capture_pause(struct capture *capture, bool pause, struct error *error)
{
    int r = capture->backend == CAPTURE_BPF    ? bpf_recorder_pause(&capture->bpf, pause)
            : capture->backend == CAPTURE_PERF ? perf_sampler_pause(capture->perf, pause)
                                               : -ENOTSUP;
    if (r < 0)
        return error_set_errno(error, r, "Failed to turn sampling %s", pause ? "off" : "on");
    /* By perf events, samples and what happens to processes come from the same source. */
    if (capture->backend == CAPTURE_PERF && !pause)
        processes_doubt(&capture->recorder.processes, monotonic_ns());
    return 0;
}

void capture_set_span(struct capture *capture, int64_t from_ns, int64_t until_ns)
{
    capture->recorder.from_ns = (uint64_t)from_ns;
    capture->recorder.until_ns = (uint64_t)until_ns;
    if (capture->backend != CAPTURE_BPF)
        return;
    bpf_recorder_begin(&capture->bpf);
    bpf_sampler_set_deadline(capture->bpf.sampler, (uint64_t)until_ns);
}

int capture_narrow(struct capture *capture, const uint32_t *pids, size_t count, struct error *error)
{
    bool can = capture->backend == CAPTURE_BPF && !capture->pid_count;
    int r = can ? bpf_sampler_narrow(capture->bpf.sampler, pids, count) : -ENOTSUP;
    return r < 0 ? error_set_errno(error, r, "Failed to exclude processes") : 0;
}

static int busier_first(const void *first, const void *second)
{
    const struct process *a = *(struct process *const *)first;
    const struct process *b = *(struct process *const *)second;
    return (a->samples < b->samples) - (a->samples > b->samples);
}

size_t capture_busiest(struct capture *capture, uint32_t *ret_pids, size_t room)
{
    const struct processes *processes = &capture->recorder.processes;
    _cleanup_free_ struct process **busy = memory_zalloc(processes->count + 1, sizeof(*busy));
    size_t count = 0;
    for (size_t i = 0; i < processes->count; i++)
        if (processes->list[i]->samples && !processes->list[i]->ended_ns)
            busy[count++] = processes->list[i];
    qsort(busy, count, sizeof(*busy), busier_first);
    for (size_t i = 0; i < MIN(count, room); i++)
        ret_pids[i] = busy[i]->pid;
    for (size_t i = 0; i < processes->count; i++)
        processes->list[i]->samples = 0;
    return MIN(count, room);
}

int capture_measure_all(void)
{
    return bpf_sampler_measure_all();
}

void capture_measure(struct capture *capture)
{
    if (capture->backend == CAPTURE_BPF)
        bpf_sampler_measure(capture->bpf.sampler);
}

static bool all_gone(const struct capture *capture)
{
    for (size_t i = 0; i < capture->pid_count; i++)
        if (kill(capture->pids[i], 0) == 0 || errno != ESRCH)
            return false;
    return capture->pid_count > 0;
}

int capture_read(struct capture *capture, int timeout_ms, bool all, struct error *error)
{
    int r;
    if (capture->backend == CAPTURE_BPF) {
        r = bpf_recorder_read(&capture->bpf, all ? 0 : timeout_ms);
        if (!r && all)
            bpf_recorder_settle(&capture->bpf);
        if (!r)
            r = all_gone(capture);
    } else if (capture->backend == CAPTURE_PERF) {
        r = perf_sampler_read(capture->perf, all ? 0 : timeout_ms, all, recorder_take,
                              &capture->recorder);
        /* Rings without processes say "hang-up" at once: callers shall not spin. */
        if (r == 1)
            usleep(GONE_WAIT_US);
    } else if (capture->backend == CAPTURE_PRELOAD) {
        heap_preload_read(capture->preload, all ? 0 : timeout_ms);
        if (all)
            heap_preload_settle(capture->preload);
        r = 0;
    } else {
        r = ptrace_sampler_read(capture->ptrace, all ? 0 : timeout_ms, recorder_take,
                                &capture->recorder);
    }
    if (monotonic_ns() - capture->tidied_ns > TIDY_NS) {
        capture->tidied_ns = monotonic_ns();
        if (capture->bpf.flood.deaf)
            processes_suspect(&capture->recorder.processes, capture->tidied_ns);
        processes_tidy(&capture->recorder.processes, capture->tidied_ns);
        modules_tidy(&capture->recorder.modules);
        /* With BPF the kernel has to be told, too: bpf_recorder.c does. */
        if (capture->backend != CAPTURE_BPF && capture->recorder.modules.refused)
            recorder_forget_modules(&capture->recorder);
    }
    return r < 0 ? error_set_errno(error, r, "Failed to read samples") : r;
}

bool capture_child_ended(struct capture *capture, pid_t child, int *ret_status)
{
    if (capture->ptrace)
        return ptrace_sampler_exit_status(capture->ptrace, ret_status);
    return waitpid(child, ret_status, WNOHANG) == child;
}

static const struct module *find_module(const struct capture *capture, const struct profile *from,
                                        uint32_t mapping_id)
{
    const struct segments *segments = &capture->recorder.segments;
    const struct profile_mapping *mapping = &from->mappings[mapping_id];
    const char *file = profile_text(from, mapping->file);
    const char *build_id = profile_text(from, mapping->build_id);
    for (size_t i = 1; i < segments->count; i++) {
        const struct module *module = segments->list[i].module;
        if (segments->list[i].offset == mapping->offset && !strcmp(module->path, file) &&
            !strcmp(module->build_id, build_id))
            return module;
    }
    return NULL;
}

const char *capture_locate(void *context, const struct profile *from, uint32_t mapping_id)
{
    struct capture *capture = context;
    const struct module *module = find_module(capture, from, mapping_id);
    const char *path = module ? module_open_path(module, capture->path) : NULL;
    const struct profile_mapping *mapping = &from->mappings[mapping_id];
    bool is_file = profile_text(from, mapping->file)[0] == '/';
    /* Where its path leads now is another file, such as the host's of a container's name; only a
     * build ID would tell. */
    return path || !is_file || profile_text(from, mapping->build_id)[0] ? path : "";
}

struct shared_fd *capture_hold(struct capture *capture, const struct profile *from,
                               uint32_t mapping_id)
{
    const struct module *module = find_module(capture, from, mapping_id);
    return module && module->readable ? shared_fd_ref(module->held) : NULL;
}

enum capture_backend capture_backend(const struct capture *capture)
{
    return capture->backend;
}

bool capture_kernel_hidden(const struct capture *capture)
{
    return capture->kernel_hidden;
}

const char *capture_shortcoming(struct capture *capture)
{
    /* Explains to privileged users why BPF isn't used. */
    if (capture->no_bpf.text[0] && capture->no_bpf.code != -EPERM &&
        capture->no_bpf.code != -EACCES) {
        snprintf(capture->shortcoming, sizeof(capture->shortcoming), "%s Sampling by %s instead.",
                 capture->no_bpf.text, capture_backend_name(capture->backend));
        return capture->shortcoming;
    }
    if (capture->bpf.missing.text[0])
        return capture->bpf.missing.text;
    if (capture->backend == CAPTURE_PTRACE)
        return "Without privileges: at most 49 samples a second, no kernel frames, and only "
               "commands that assay starts (see `assay doctor`).";
    if (capture->others_hidden)
        return "Without root, stacks of other users' processes are unavailable and show as "
               "[unknown mapping]. Run as root for the whole machine.";
    if (capture->kernel_hidden)
        return "Without privileges: no kernel frames, and no processes of other users (see `assay "
               "doctor`).";
    return NULL;
}

/* ---- stats ---- */

int capture_set_collector(struct capture *capture, const char *name, unsigned rate_hz)
{
    return capture->backend == CAPTURE_BPF
               ? bpf_recorder_set_collector(&capture->bpf, name, rate_hz)
               : -ENOENT;
}

void capture_limit_collector(struct capture *capture, const char *name, double cost_share)
{
    if (capture->backend == CAPTURE_BPF)
        bpf_recorder_limit_collector(&capture->bpf, name, cost_share);
}

size_t capture_costs(const struct capture *capture, struct capture_cost *ret_costs)
{
    const struct bpf_recorder *bpf = &capture->bpf;
    if (capture->backend != CAPTURE_BPF)
        return 0;
    struct bpf_cost cost = bpf_sampler_cost(bpf->sampler);
    ret_costs[0] =
        (struct capture_cost){.name = "cpu", .on = true, .run_ns = cost.run_ns, .runs = cost.runs};
    for (size_t i = 0; i < bpf->collector_count; i++) {
        const struct collector *collector = &bpf->collectors[i];
        cost =
            collector->kind->cost ? collector->kind->cost(collector->state) : (struct bpf_cost){0};
        ret_costs[i + 1] = (struct capture_cost){.name = collector->kind->name,
                                                 .on = !collector->off,
                                                 .run_ns = cost.run_ns,
                                                 .runs = cost.runs};
    }
    return bpf->collector_count + 1;
}

/* Run time of the programs, all together; -1 if nobody has the kernel measure it. */
static int64_t bpf_ns(const struct capture *capture)
{
    struct capture_cost costs[CAPTURE_COLLECTORS_MAX];
    size_t count = capture_costs(capture, costs);
    int64_t total_ns = 0;
    for (size_t i = 0; i < count; i++)
        if (!i || capture->bpf.collectors[i - 1].kind->collector != BPF_COLLECTOR_NONE)
            total_ns += (int64_t)costs[i].run_ns;
    return total_ns || bpf_sampler_is_measuring(capture->bpf.sampler) ? total_ns : -1;
}

/* By perf events: those that a record told of, and at the end also those that none has. */
static uint64_t lost_records(const struct capture *capture)
{
    uint64_t counted = capture->perf ? perf_sampler_lost(capture->perf) : 0;
    return MAX(capture->recorder.lost_events, counted);
}

struct capture_stats capture_stats(const struct capture *capture)
{
    const struct recorder *recorder = &capture->recorder;
    struct capture_stats stats = {.samples = recorder->samples,
                                  .cpu_ns = recorder->cpu_ns,
                                  .processes = recorder->sampled_processes,
                                  .walks = recorder->walks,
                                  .unwanted = recorder->unwanted,
                                  .unplaced = recorder->unplaced,
                                  .tracked = recorder->processes.count,
                                  .bpf_ns = -1};
    memcpy(stats.ends, recorder->ends, sizeof(stats.ends));
    if (capture->backend == CAPTURE_BPF) {
        uint64_t counters[BPF_COUNTERS];
        bpf_sampler_counters(capture->bpf.sampler, counters);
        stats.lost = counters[BPF_COUNT_RING_FULL] + counters[BPF_COUNT_STACK_LOST] +
                     counters[BPF_COUNT_NESTED];
        stats.copies = counters[BPF_COUNT_COPIES];
        stats.bpf_ns = bpf_ns(capture);
        stats.checked = capture->bpf.checked;
        stats.different = capture->bpf.different;
    } else if (capture->backend == CAPTURE_PRELOAD) {
        struct heap_preload_stats heap = heap_preload_stats(capture->preload);
        stats.lost = heap.lost_allocs + heap.damaged;
    } else {
        stats.lost = lost_records(capture);
    }
    return stats;
}

static void note_loss(struct capture_loss *losses, size_t *count, const char *reason,
                      const char *what, uint64_t number)
{
    if (number && *count < CAPTURE_LOSSES_MAX)
        losses[(*count)++] = (struct capture_loss){.reason = reason, .what = what, .count = number};
}

static size_t note_heap(struct heap_preload_stats heap, struct capture_loss *losses)
{
    size_t count = 0;
    note_loss(losses, &count, "heap_allocs_lost", "allocations lost: the ring was full",
              heap.lost_allocs);
    note_loss(losses, &count, "heap_frees_lost",
              "releases lost: as many samples count as live that are not", heap.lost_frees);
    note_loss(losses, &count, "heap_live_full",
              "allocations don't count as live: too many were live at once", heap.live_refused);
    note_loss(losses, &count, "heap_damaged", "damaged records in the ring", heap.damaged);
    note_loss(losses, &count, "heap_waits", "times that the program waited for a full ring",
              heap.waits);
    return count;
}

size_t capture_losses(const struct capture *capture, struct capture_loss *losses)
{
    const struct recorder *recorder = &capture->recorder;
    const struct bpf_recorder *bpf = &capture->bpf;
    size_t count = 0;
    if (capture->backend == CAPTURE_BPF) {
        uint64_t counters[BPF_COUNTERS];
        bpf_sampler_counters(bpf->sampler, counters);
        note_loss(losses, &count, "ring_full", "samples lost: the ring buffer was full",
                  counters[BPF_COUNT_RING_FULL]);
        note_loss(losses, &count, "stack_ring_full",
                  "samples lost: no space for a new stack in the ring buffer",
                  counters[BPF_COUNT_STACK_LOST]);
        note_loss(losses, &count, "copies_refused",
                  "stacks truncated: too many at once that the kernel could not walk",
                  counters[BPF_COUNT_COPY_REFUSED]);
        note_loss(losses, &count, "nested",
                  "samples lost: too many BPF programs interrupted each other",
                  counters[BPF_COUNT_NESTED]);
        for (size_t i = 0; i < bpf->collector_count; i++)
            if (bpf->collectors[i].kind->losses)
                bpf->collectors[i].kind->losses(bpf->collectors[i].state, losses, &count);
        note_loss(losses, &count, "contexts_torn",
                  "samples without their context: it was being written",
                  counters[BPF_COUNT_CONTEXT_TORN]);
        note_loss(losses, &count, "contexts_unread",
                  "samples without their context: it is not valid, or can't be read",
                  counters[BPF_COUNT_CONTEXT_UNREAD]);
        note_loss(losses, &count, "contexts_full", "processes whose contexts are not read",
                  capture->recorder.contexts.places_full);
        note_loss(losses, &count, "left_out",
                  "samples of excluded processes, which were not the busiest",
                  counters[BPF_COUNT_LEFT_OUT]);
        note_loss(losses, &count, "unknown_stacks", "stacks without callers: the chains were lost",
                  bpf->stacks.unknown);
        note_loss(losses, &count, "kernel_tables_full",
                  "processes that didn't fit the kernel's tables",
                  bpf_sampler_fork_full(bpf->sampler) + bpf->installer.refused);
        note_loss(losses, &count, "resets", "times the kernel's tables were full and rebuilt",
                  bpf->resets);
        note_loss(losses, &count, "floods", "times that process events exceeded their limit",
                  bpf->flood.times);
        note_loss(losses, &count, "events_lost", "process events lost", recorder->lost_events);
    } else if (capture->backend == CAPTURE_PRELOAD) {
        count += note_heap(heap_preload_stats(capture->preload), losses);
    } else {
        note_loss(losses, &count, "records_lost", "records lost: the ring buffer was full",
                  lost_records(capture));
        note_loss(losses, &count, "events_uncounted", PERF_EVENTS_UNCOUNTED,
                  capture->perf ? perf_sampler_uncounted_percent(capture->perf) : 0);
        note_loss(losses, &count, "events_unsampled", PERF_EVENTS_UNSAMPLED,
                  capture->perf ? perf_sampler_unsampled(capture->perf) : 0);
    }
    if (capture->ptrace) {
        note_loss(losses, &count, "too_short_ms",
                  "ms of CPU in processes that ended before they were sampled",
                  ptrace_sampler_unsettled_ns(capture->ptrace) / 1000000);
        note_loss(losses, &count, "threads_refused", "threads above the limit",
                  ptrace_sampler_refused(capture->ptrace));
    }
    note_loss(losses, &count, "rows_postponed",
              "times that stacks were truncated to save CPU time: unwind rows of a large file were "
              "postponed",
              recorder->modules.postponed);
    note_loss(losses, &count, "runtime_unread",
              "frames of interpreters without a name: their code was gone when it was read",
              recorder->unread);
    note_loss(losses, &count, "runtime_refused",
              "interpreters and virtual machines whose structures could not be recognised",
              recorder->interpreters.refused);
    note_loss(
        losses, &count, "unplaced",
        capture->others_hidden
            ? "samples in an [unknown mapping]: the process belongs to another user, or ended "
              "before its mappings were read"
            : "samples in an [unknown mapping]: the process ended, or replaced its code, "
              "before its mappings were read",
        recorder->unplaced);
    note_loss(losses, &count, "lookups_postponed",
              "times that a process lookup was skipped to save CPU time",
              recorder->processes.postponed);
    note_loss(losses, &count, "tables_full", "processes, threads or mappings above the limits",
              recorder->processes.refused + recorder->modules.refused);
    return count;
}

/* Users to whom something was refused, with the cgroup of the last one where it was noted. */
static size_t add_refused(const struct shares *shares, const struct excess_list *noted,
                          const char *what, struct capture_excess *ret_list, size_t count)
{
    for (size_t i = 1; i < shares->count && count < CAPTURE_EXCESS_MAX; i++) {
        const struct share *share = &shares->list[i];
        if (!share->refused)
            continue;
        ret_list[count] =
            (struct capture_excess){.user = share->owner, .what = what, .count = share->refused};
        snprintf(ret_list[count].cgroup, sizeof(ret_list[count].cgroup), "%s",
                 excess_cgroup(noted, what, share->owner));
        count++;
    }
    return count;
}

size_t capture_excess(const struct capture *capture, struct capture_excess *ret_list)
{
    const struct processes *processes = &capture->recorder.processes;
    const struct excess_list *noted = &capture->excess;
    size_t count = 0;
    for (size_t i = 0; i < noted->count; i++)
        if (strcmp(noted->list[i].excess.what, EXCESS_MAPPINGS))
            ret_list[count++] = noted->list[i].excess;
    count = add_refused(&processes->mappings, noted, EXCESS_MAPPINGS, ret_list, count);
    return add_refused(&processes->lookups, noted, "lookups", ret_list, count);
}
