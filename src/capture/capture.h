/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking samples, by the best means that this kernel and this user have: BPF with stacks walked and
 * interned in the kernel; perf events with copied stacks; ptrace for a command of our own. What
 * comes in is added to a profile whose frames are addresses; symbol/naming.h names them. One thread
 * at a time.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/shared_fd.h"
#include "elf/unwind.h"
#include "profile/profile.h"

enum capture_means { CAPTURE_ANY, CAPTURE_BPF, CAPTURE_PERF, CAPTURE_PTRACE };

/* A process as whoever labels its samples sees it. It may have ended by then. */
struct capture_process {
    uint32_t pid;
    uint64_t number;      /* of this process and the program that it runs: never comes again */
    uint64_t parent;      /* the number of whom it came from or of what it ran before; 0: unknown */
    const char *name;     /* as its main thread calls itself */
    const char *program;  /* the file that it runs, as it sees it; NULL: not known */
    const char *build_id; /* that file's, or "" */
};

/* The label set in `profile` of a process's samples, or CAPTURE_UNWANTED; asked for once per
 * process and profile, at its first sample. */
typedef uint32_t (*capture_label_fn)(void *context, const struct capture_process *process,
                                     struct profile *profile);
#define CAPTURE_UNWANTED UINT32_MAX

struct capture_options {
    /* What is looked at: one of these three. */
    bool all;
    const char *cgroup; /* a folder of a cgroup file system, and all below it */
    const pid_t *pids;  /* these processes and all that they start from now on */
    size_t pid_count;
    bool at_exec; /* the one process waits to execute a program: begin then */

    unsigned frequency_hz;
    bool kernel; /* kernel frames, where the user may see them */
    bool user;   /* user frames */
    enum capture_means means;
    bool root_by_process;       /* stacks begin with a frame that is called as the process is */
    uint64_t unwind_pool_bytes; /* of unwind rows that the kernel holds; 0: the default */
    uint64_t stacks_bytes;      /* of known stacks in user space; 0: the default */
    double learning_share;      /* of one CPU, for unwind rows of large files; 0: at once */
    capture_label_fn label;     /* NULL: samples have the labels comm, pid and tid */
    void *label_context;
    bool check; /* BPF: walks are repeated in user space and compared */
};

/* How it went, from the beginning on. */
struct capture_figures {
    uint64_t samples;
    int64_t cpu_ns;                  /* that they stand for */
    uint64_t processes;              /* that were sampled */
    uint64_t walks;                  /* of user stacks */
    uint64_t ends[UNWIND_END_KINDS]; /* how they ended */
    uint64_t lost;                   /* samples that are not in the profile, for any reason */
    uint64_t unwanted;               /* samples that options.label didn't want */
    int64_t bpf_ns;                  /* that BPF programs ran; -1: the kernel doesn't say */
    uint64_t tracked;                /* processes that are known now */
    uint64_t copies;                 /* BPF: samples that were walked in user space */
    uint64_t checked, different;     /* with options.check */
};

/* A reason why something is missing, and how often. */
struct capture_loss {
    const char *reason; /* "ring_full": for metrics */
    const char *what;   /* "samples that found the ring buffer full" */
    uint64_t count;
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
/* No more samples until it is called with false. What is known of processes stays. */
int capture_pause(struct capture *capture, bool pause, struct error *error);
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

/* A symbol_locate_fn (symbol/naming.h) with the capture as its context: where a mapping's file can
 * be opened now, also when it was deleted or is in another mount namespace. */
const char *capture_locate(void *capture, const struct profile *from, uint32_t mapping_id);
/* The same file, where the capture has it open, for as long as the caller holds it, also when the
 * capture is gone. NULL: it hasn't. */
struct shared_fd *capture_hold(struct capture *capture, const struct profile *from,
                               uint32_t mapping_id);

enum capture_means capture_means(const struct capture *capture);
/* "BPF", "perf events", "ptrace" */
const char *capture_means_name(enum capture_means means);
/* What is missing for want of privilege or of something in the kernel, in a sentence or two; NULL
 * when nothing is. */
const char *capture_shortcoming(struct capture *capture);

struct capture_figures capture_figures(const struct capture *capture);
/* Every kind of loss that happened, for printing. Returns how many; `losses` has room for
 * CAPTURE_LOSSES_MAX. */
#define CAPTURE_LOSSES_MAX 16
size_t capture_losses(const struct capture *capture, struct capture_loss *losses);
