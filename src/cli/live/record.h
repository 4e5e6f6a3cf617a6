/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of `assay record`: the target (record_target.c) and the summary
 * (record_report.c). */
#pragma once

#include <sys/types.h>

#include "capture/capture.h"
#include "cli/options.h"
#include "symbol/naming/symbolizer.h"

struct record_options {
    uint64_t frequency_hz;
    const char *output, *format, *pids, *tids, *cgroup;
    struct option_list pid_list, tid_list; /* as they were given */
    double duration_s;                     /* 0: until the end */
    double naming_timeout_s;               /* 0: no limit */
    bool all, user, kernel, interpreter_frames, open, quiet;
    const char *mode, *event_names, *min_block, *idle, *idle_rules_file;
    bool idle_fold;
    struct idle_rules *idle_rules; /* NULL: those that come with assay */
    int64_t min_block_ns;
    struct perf_events events;
    unsigned modes;          /* enum capture_mode; 0: the default */
    double max_slowdown;     /* CAPTURE_HEAP by traps: percent; 0: the default */
    uint64_t interval_bytes; /* CAPTURE_HEAP: mean between samples; 0: the default */
};

/* Target: our own child, or existing processes. */
/* CPU time, with what of it was spent in the kernel. */
struct cpu_time {
    int64_t all_ns, kernel_ns;
};

struct target {
    pid_t command;                /* 0: none */
    struct heap_preload *preload; /* what the command runs under; NULL: nothing */
    int gate;                     /* a byte lets the command go; its end without one ends it */
    int failure; /* gives an errno when the command could not be run, else the end */
    bool ended;  /* the command has */
    int status;  /* of the command, as waitpid gives it */
    pid_t *pids;
    size_t pid_count, pid_capacity;
    int64_t began_ns;           /* when the recording did, */
    struct cpu_time cpu_before; /* and what the processes had used by then */
    struct cpu_time cpu;        /* that they used during the recording; 0: not known */
    bool cpu_estimated;
    bool machine; /* all processes */
    int priority; /* our own, before target_raise_priority */
    bool raised;
};

int target_open(const struct record_options *options, char *const argv[], struct target *target,
                struct error *error);
/* When nothing can be recorded: the command never ran. */
void target_abandon(struct target *target);
void target_release(struct target *target);

/* As root, and unless the user has lowered it: so that we run in time on a machine that has no CPU
 * time to spare. The command and what we start later have the one from before. */
void target_raise_priority(struct target *target);
void target_restore_priority(struct target *target);

/* From here on signals end the recording instead of us, or are passed to the command. */
void target_take_signals(const struct target *target);
/* Signals that have come since then. */
unsigned target_signals(void);
/* Whether signals demand the end of the recording. */
bool target_is_interrupted(const struct target *target);

/* The recording begins, and lets a command go. */
void target_begin(struct target *target, const struct capture *capture);
/* At the end of the recording: finds the CPU time that was used in it, if known. */
void target_measure(struct target *target, int64_t duration_ns);

/* Whether the command has ended, as the capture knows. */
bool target_has_ended(struct target *target, struct capture *capture);
/* The command could not be run: says why. */
bool target_failed(const struct target *target, const char *name);
/* Waits for a command that goes on; one that two signals did not end is ended. The exit code. */
int target_wait(struct target *target, struct capture *capture);

/* Whether the heap of a JVM is to be recorded, by its own flight recorder; then that. */
bool record_jvm_wanted(const struct record_options *options, pid_t *ret_pid);
struct format;
int record_jvm(const struct record_options *options, const struct format *format, pid_t pid);

/* The closing lines of a heap profile with names: sites that hold and that allocate most. */
void report_heap(const struct profile *profile);
/* The closing lines. `kept`: the samples of the threads that were asked for, or UINT64_MAX when all
 * were kept; `late_files`: whose functions were not named in time. */
void report_recording(const struct record_options *options, struct capture *capture,
                      const struct target *target, uint64_t kept, uint64_t late_files);
