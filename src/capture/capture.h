/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking samples, by the best means that this kernel and this user have: BPF with stacks walked and
 * interned in the kernel; perf events with copied stacks; ptrace for a command of our own; for its
 * allocations, a library that is loaded into it. What
 * comes in is added to a profile whose frames are addresses; symbol/naming/naming.h names them. One
 * thread at a time.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/process/shared_fd.h"
#include "capture/record/vocabulary.h"
#include "profile/profile.h"

/* "cpu,wall" as people write it. */
int capture_modes_parse(const char *text, unsigned *ret_modes, struct error *error);

enum capture_backend { CAPTURE_ANY, CAPTURE_BPF, CAPTURE_PERF, CAPTURE_PTRACE, CAPTURE_PRELOAD };

struct heap_preload;

struct capture_options {
    /* Target: one of these three. */
    bool all;
    const char *cgroup; /* a directory of a cgroup file system, and all below it */
    const pid_t *pids;  /* these processes and all that they start from now on */
    size_t pid_count;
    bool at_exec; /* the one process waits to execute a program: begin then */

    unsigned frequency_hz;
    bool kernel;    /* kernel frames, where the user may see them */
    bool user;      /* user frames */
    unsigned modes; /* what is collected: bits of enum capture_mode; 0: CAPTURE_CPU */
    enum capture_backend backend;
    bool learn_all;             /* every process is known before the first sample is taken */
    bool deep_buffers;          /* for a reader that may not run for seconds */
    bool root_by_process;       /* stacks begin with a frame that is called as the process is */
    uint64_t unwind_pool_bytes; /* of unwind rows that the kernel holds; 0: the default */
    uint64_t stacks_bytes;      /* of known stacks in user space; 0: the default */
    double learning_share;      /* of one CPU, for unwind rows of large files; 0: at once */
    capture_label_fn label;     /* NULL: samples have the labels comm, pid and tid */
    void *label_context;
    bool thread_labels; /* with `label`, samples have the labels thread and tid, too */
    struct capture_limits limits;
    struct capture_collect collect;
    unsigned optional_modes; /* of them, those that may be missing: capture_shortcoming says why */
    struct heap_preload *preload; /* CAPTURE_HEAP of the command that runs under it, which needs
                                     its ring unless BPF works; it outlives the capture */
    bool interpreter_frames;      /* native frames of interpreters are kept */
    bool check;                   /* BPF: walks are repeated in user space and compared */
};

struct capture;

/* The error says what stands in the way and how to get it out. Samples are kept by the kernel from
 * here on, and taken by capture_read. */
int capture_new(const struct capture_options *options, struct capture **ret_capture,
                struct error *error);
void capture_free(struct capture *capture);

/* Samples go to this profile from now on: empty, with its own choice of detail, it outlives its
 * use. The sample types samples/count and cpu/nanoseconds are added to it. */
void capture_into(struct capture *capture, struct profile *profile);

/* Another rate from now on: samples before and after stand for different times, and say so. */
int capture_set_rate(struct capture *capture, unsigned frequency_hz, struct error *error);
/* No more samples until it is called with false. The state of processes is kept. */
int capture_pause(struct capture *capture, bool pause, struct error *error);
/* Only samples between these times (CLOCK_MONOTONIC) count, however late capture_read is called.
 * The kernel takes none after the second; 0: there is no end. */
void capture_set_span(struct capture *capture, int64_t from_ns, int64_t until_ns);
/* Only these processes and what they start from now on are sampled, of all that were; all again
 * with none. By BPF alone: else -ENOTSUP. */
int capture_narrow(struct capture *capture, const uint32_t *pids, size_t count,
                   struct error *error);
/* The processes with the most samples since the last call, the busiest first. */
size_t capture_busiest(struct capture *capture, uint32_t *ret_pids, size_t room);
/* Has the kernel measure all BPF programs for as long as the descriptor is open; -1: it takes
 * CAP_SYS_ADMIN. */
int capture_measure_all(void);
/* Has the kernel measure the time that BPF programs take; it costs each of them a little. */
void capture_measure(struct capture *capture);

/* Waits for samples, at most `timeout_ms`, and adds what has come; everything when `all` is set.
 * Returns 0, 1 when all that was looked at has ended, or a negative code. */
int capture_read(struct capture *capture, int timeout_ms, bool all, struct error *error);

/* Whether the child that was looked at (options.at_exec) has ended, and its status as waitpid gives
 * it. Nobody else may wait for it. */
bool capture_child_ended(struct capture *capture, pid_t child, int *ret_status);

/* A symbol_locate_fn (symbol/naming/naming.h) with the capture as its context: where a mapping's
 * file can be opened now, also when it was deleted or is in another mount namespace. "" when the
 * file is gone and has no build ID: then whatever has its name now is another file. */
const char *capture_locate(void *capture, const struct profile *from, uint32_t mapping_id);
/* The same file, where the capture has it open, for as long as the caller holds it, also when the
 * capture is gone. NULL: it hasn't. */
struct shared_fd *capture_hold(struct capture *capture, const struct profile *from,
                               uint32_t mapping_id);

enum capture_backend capture_backend(const struct capture *capture);
/* "BPF", "perf events", "ptrace", "libassay_heap" */
const char *capture_backend_name(enum capture_backend backend);
/* Whether time in the kernel is not sampled at all because this user may not see it. */
bool capture_kernel_hidden(const struct capture *capture);
/* Limitations for lack of privileges or kernel features, in a sentence or two; NULL if there are
 * none. */
const char *capture_shortcoming(struct capture *capture);

/* Another rate for one collector, by its name: samples with stacks a second and CPU; 0 turns it off
 * until another is set. -ENOENT: it is not there. */
int capture_set_collector(struct capture *capture, const char *name, unsigned rate_hz);
/* Limits a collector's programs to a share of all CPUs, if it can measure less, within its
 * settings.
 */
void capture_limit_collector(struct capture *capture, const char *name, double cost_share);
/* Cost of each collector; "cpu" first. Returns how many of CAPTURE_COLLECTORS_MAX. */
size_t capture_costs(const struct capture *capture, struct capture_cost *ret_costs);

struct capture_stats capture_stats(const struct capture *capture);
/* Every kind of loss that happened, for printing. Returns how many; `losses` has room for
 * CAPTURE_LOSSES_MAX. */
size_t capture_losses(const struct capture *capture, struct capture_loss *losses);

/* Users and cgroups that exceeded a limit in the last minutes. Returns how many of
 * CAPTURE_EXCESS_MAX. */
size_t capture_excess(const struct capture *capture, struct capture_excess *ret_list);
