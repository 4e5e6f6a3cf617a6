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
#include "capture/ptrace_sampler.h"

#define PERF_STACK_BYTES 32768 /* of each sample; deeper stacks are cut and say so */
#define GONE_WAIT_US 10000
#define FIRST_PID_NAMESPACE 0xeffffffc /* its inode, on all kernels */
#define TIDY_NS 2000000000

struct capture {
    enum capture_means means;
    struct recorder recorder;
    struct bpf_recorder bpf;
    struct perf_sampler *perf;
    struct ptrace_sampler *ptrace;
    pid_t *pids;
    size_t pid_count;
    bool kernel_hidden;
    struct error no_bpf; /* why there is no BPF, where there is none */
    char shortcoming[sizeof(((struct error *)0)->text) + 64];
    int64_t tidied_ns;
    char path[MODULE_PATH_BYTES]; /* what capture_locate gave last */
};

static const char *const means_names[] = {
    [CAPTURE_ANY] = "any means",
    [CAPTURE_BPF] = "BPF",
    [CAPTURE_PERF] = "perf events",
    [CAPTURE_PTRACE] = "ptrace",
};

const char *capture_means_name(enum capture_means means)
{
    return means_names[means];
}

/* All threads that the processes have now. */
static int threads_of(const struct capture_options *options, pid_t **ret_threads, size_t *ret_count)
{
    size_t capacity = 0;
    *ret_threads = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < options->pid_count; i++) {
        int r = perf_threads_of(options->pids[i], ret_threads, ret_count, &capacity);
        if (r < 0)
            return r;
    }
    return 0;
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
                                         .check = options->check};
    if (!is_first_pid_namespace())
        return error_set(error, -ENOTSUP,
                         "BPF works with the machine's process ids, and this pid namespace has "
                         "others: share the host's (docker run --pid=host).");
    if (options->cgroup) {
        wanted.cgroup = open(options->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (wanted.cgroup < 0)
            return error_set_errno(error, -errno, "The cgroup %s cannot be opened",
                                   options->cgroup);
    }
    int r = bpf_recorder_init(&capture->bpf, &capture->recorder, &wanted, error);
    if (wanted.cgroup >= 0)
        close(wanted.cgroup);
    if (!r && options->stacks_bytes)
        capture->bpf.stacks_bytes = options->stacks_bytes;
    /* What a command or its children do is told by events; nobody else is known yet. */
    for (size_t i = 0; !r && i < options->pid_count; i++)
        processes_get(&capture->recorder.processes, (uint32_t)options->pids[i]);
    return r;
}

static int start_perf(struct capture *capture, const struct capture_options *options,
                      struct error *error)
{
    _cleanup_free_ pid_t *threads = NULL;
    size_t count = 0;
    pid_t everybody = -1;
    if (options->cgroup)
        return error_set(error, -ENOTSUP,
                         "A cgroup can be looked at by BPF only, which takes root, or CAP_BPF and "
                         "CAP_PERFMON.");
    int r = threads_of(options, &threads, &count);
    if (r < 0)
        return error_set_errno(error, r, "The process cannot be looked at");
    struct perf_options wanted = {.threads = options->all ? &everybody : threads,
                                  .thread_count = options->all ? 1 : count,
                                  .frequency_hz = options->frequency_hz,
                                  .kernel = options->kernel,
                                  .enable_on_exec = options->at_exec,
                                  .stack_bytes = PERF_STACK_BYTES};
    r = perf_sampler_new(&wanted, &capture->perf, error);
    if (!r)
        capture->kernel_hidden = options->kernel && !perf_sampler_sees_kernel(capture->perf);
    return r;
}

static int start_ptrace(struct capture *capture, const struct capture_options *options,
                        struct error *error)
{
    if (!options->at_exec || options->pid_count != 1)
        return error_set(error, -ENOTSUP,
                         "By ptrace, only a command that is started for it can be looked at.");
    int r = ptrace_sampler_new(options->pids[0], options->frequency_hz, &capture->ptrace, error);
    if (!r)
        capture->recorder.period_ns = (int64_t)ptrace_sampler_period_ns(capture->ptrace);
    return r;
}

static int start(struct capture *capture, enum capture_means means,
                 const struct capture_options *options, struct error *error)
{
    capture->means = means;
    switch (means) {
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
    int r = start(capture, CAPTURE_BPF, options, error);
    if (!r || options->cgroup)
        return r;
    capture->no_bpf = *error;
    r = start(capture, CAPTURE_PERF, options, error);
    if ((r == -EACCES || r == -EPERM || r == -ENOENT || r == -ENOSYS) && options->at_exec)
        r = start(capture, CAPTURE_PTRACE, options, &ignored);
    return r;
}

int capture_new(const struct capture_options *options, struct capture **ret_capture,
                struct error *error)
{
    for (size_t i = 0; i < options->pid_count; i++)
        if (kill(options->pids[i], 0) < 0 && errno == ESRCH)
            return error_set(error, -ESRCH, "There is no process %d.", (int)options->pids[i]);
    struct capture *capture = memory_zalloc(1, sizeof(*capture));
    recorder_init(&capture->recorder, options->frequency_hz);
    capture->recorder.label = options->label;
    capture->recorder.label_context = options->label_context;
    pace_init(&capture->recorder.modules.pace, options->learning_share, monotonic_ns());
    capture->recorder.processes.no_thread_names = options->label != NULL;
    capture->recorder.root_by_process = options->root_by_process;
    if (options->pid_count) {
        capture->pids = memory_zalloc(options->pid_count, sizeof(*capture->pids));
        memcpy(capture->pids, options->pids, options->pid_count * sizeof(*capture->pids));
        capture->pid_count = options->pid_count;
    }
    int r = options->means == CAPTURE_ANY ? start_any(capture, options, error)
                                          : start(capture, options->means, options, error);
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
    r = capture->means == CAPTURE_BPF    ? bpf_sampler_set_rate(capture->bpf.sampler, frequency_hz)
        : capture->means == CAPTURE_PERF ? perf_sampler_set_rate(capture->perf, frequency_hz)
                                         : -ENOTSUP;
    if (r < 0)
        return error_set_errno(error, r, "Samples cannot be taken %u times a second", frequency_hz);
    /* What was taken since the last look stands for what it stood for. */
    recorder_set_rate(&capture->recorder, frequency_hz, (uint64_t)monotonic_ns());
    capture->recorder.period_set = true;
    return 0;
}

int capture_pause(struct capture *capture, bool pause, struct error *error)
{
    int r = capture->means == CAPTURE_BPF    ? bpf_sampler_pause(capture->bpf.sampler, pause)
            : capture->means == CAPTURE_PERF ? perf_sampler_pause(capture->perf, pause)
                                             : -ENOTSUP;
    if (r < 0)
        return error_set_errno(error, r, "Sampling cannot be turned %s", pause ? "off" : "on");
    /* By perf events, samples and what happens to processes come from the same source. */
    if (capture->means == CAPTURE_PERF && !pause)
        processes_doubt(&capture->recorder.processes, monotonic_ns());
    return 0;
}

int capture_narrow(struct capture *capture, const uint32_t *pids, size_t count, struct error *error)
{
    bool can = capture->means == CAPTURE_BPF && !capture->pid_count;
    int r = can ? bpf_sampler_narrow(capture->bpf.sampler, pids, count) : -ENOTSUP;
    return r < 0 ? error_set_errno(error, r, "Processes cannot be left out") : 0;
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
    if (capture->means == CAPTURE_BPF)
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
    if (capture->means == CAPTURE_BPF) {
        r = bpf_recorder_read(&capture->bpf, all ? 0 : timeout_ms);
        if (!r)
            r = all_gone(capture);
    } else if (capture->means == CAPTURE_PERF) {
        r = perf_sampler_read(capture->perf, all ? 0 : timeout_ms, all, recorder_take,
                              &capture->recorder);
        /* Rings without processes say "hang-up" at once: callers shall not spin. */
        if (r == 1)
            usleep(GONE_WAIT_US);
    } else {
        r = ptrace_sampler_read(capture->ptrace, all ? 0 : timeout_ms, recorder_take,
                                &capture->recorder);
    }
    if (monotonic_ns() - capture->tidied_ns > TIDY_NS) {
        capture->tidied_ns = monotonic_ns();
        processes_tidy(&capture->recorder.processes, capture->tidied_ns);
        modules_tidy(&capture->recorder.modules);
        /* With BPF the kernel has to be told, too: bpf_recorder.c does. */
        if (capture->means != CAPTURE_BPF && capture->recorder.modules.refused)
            recorder_forget_modules(&capture->recorder);
    }
    return r < 0 ? error_set_errno(error, r, "Samples cannot be read") : r;
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
    return module ? module_open_path(module, capture->path) : NULL;
}

struct shared_fd *capture_hold(struct capture *capture, const struct profile *from,
                               uint32_t mapping_id)
{
    const struct module *module = find_module(capture, from, mapping_id);
    return module && module->readable ? shared_fd_ref(module->held) : NULL;
}

enum capture_means capture_means(const struct capture *capture)
{
    return capture->means;
}

const char *capture_shortcoming(struct capture *capture)
{
    /* Who could have had BPF wants to know why not. */
    if (capture->no_bpf.text[0] && capture->no_bpf.code != -EPERM &&
        capture->no_bpf.code != -EACCES) {
        snprintf(capture->shortcoming, sizeof(capture->shortcoming), "%s Samples are taken by %s.",
                 capture->no_bpf.text, capture_means_name(capture->means));
        return capture->shortcoming;
    }
    if (capture->means == CAPTURE_PTRACE)
        return "Without privilege: at most 49 samples a second, no kernel frames, only commands "
               "that are started for it (`assay doctor` says more).";
    if (capture->kernel_hidden)
        return "Without privilege: no kernel frames, and no processes of others (`assay doctor` "
               "says more).";
    return NULL;
}

/* ---- figures ---- */

struct capture_figures capture_figures(const struct capture *capture)
{
    const struct recorder *recorder = &capture->recorder;
    struct capture_figures figures = {.samples = recorder->samples,
                                      .cpu_ns = recorder->cpu_ns,
                                      .processes = recorder->sampled_processes,
                                      .walks = recorder->walks,
                                      .unwanted = recorder->unwanted,
                                      .tracked = recorder->processes.count,
                                      .bpf_ns = -1};
    memcpy(figures.ends, recorder->ends, sizeof(figures.ends));
    if (capture->means == CAPTURE_BPF) {
        uint64_t counters[BPF_COUNTERS];
        bpf_sampler_counters(capture->bpf.sampler, counters);
        figures.lost = counters[BPF_COUNT_RING_FULL] + counters[BPF_COUNT_STACK_LOST];
        figures.copies = counters[BPF_COUNT_COPIES];
        figures.bpf_ns = bpf_sampler_run_ns(capture->bpf.sampler);
        figures.checked = capture->bpf.checked;
        figures.different = capture->bpf.different;
    } else {
        figures.lost = recorder->lost_events;
    }
    return figures;
}

static void note_loss(struct capture_loss *losses, size_t *count, const char *reason,
                      const char *what, uint64_t number)
{
    if (number && *count < CAPTURE_LOSSES_MAX)
        losses[(*count)++] = (struct capture_loss){.reason = reason, .what = what, .count = number};
}

size_t capture_losses(const struct capture *capture, struct capture_loss *losses)
{
    const struct recorder *recorder = &capture->recorder;
    const struct bpf_recorder *bpf = &capture->bpf;
    size_t count = 0;
    if (capture->means == CAPTURE_BPF) {
        uint64_t counters[BPF_COUNTERS];
        bpf_sampler_counters(bpf->sampler, counters);
        note_loss(losses, &count, "ring_full", "samples lost: the ring buffer was full",
                  counters[BPF_COUNT_RING_FULL]);
        note_loss(losses, &count, "stack_ring_full",
                  "samples lost: no room for a new stack in the ring buffer",
                  counters[BPF_COUNT_STACK_LOST]);
        note_loss(losses, &count, "copies_refused",
                  "stacks cut: too many at once that the kernel could not walk",
                  counters[BPF_COUNT_COPY_REFUSED]);
        note_loss(losses, &count, "left_out",
                  "samples of processes that were left out, since they were not the busiest",
                  counters[BPF_COUNT_LEFT_OUT]);
        note_loss(losses, &count, "unknown_stacks", "stacks without callers: these never came",
                  bpf->unknown_stacks);
        note_loss(losses, &count, "kernel_tables_full",
                  "processes that the kernel's tables had no room for",
                  bpf_sampler_fork_full(bpf->sampler) + bpf->installer.refused);
        note_loss(losses, &count, "resets", "times the kernel's tables were full and built anew",
                  bpf->resets);
        note_loss(losses, &count, "events_lost", "events of processes lost", recorder->lost_events);
    } else {
        note_loss(losses, &count, "records_lost", "records lost: the ring buffer was full",
                  recorder->lost_events);
    }
    if (capture->ptrace) {
        note_loss(losses, &count, "too_short_ms", "ms of CPU in processes too short to be met",
                  ptrace_sampler_unsettled_ns(capture->ptrace) / 1000000);
        note_loss(losses, &count, "threads_refused", "threads beyond the limit",
                  ptrace_sampler_refused(capture->ptrace));
    }
    note_loss(
        losses, &count, "rows_postponed",
        "times that stacks were cut to save CPU time: the unwind rows of a large file have to "
        "wait",
        recorder->modules.postponed);
    note_loss(losses, &count, "tables_full", "processes, threads or mappings beyond the limits",
              recorder->processes.refused + recorder->modules.refused);
    return count;
}
