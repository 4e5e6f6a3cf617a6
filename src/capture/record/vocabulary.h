/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of capture: modes, processes, limits, statistics. capture/capture.h uses it
 * towards its callers, the recorder and the collectors among themselves. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/events.h"
#include "elf/unwind/unwind.h"
#include "profile/profile.h"

/* Collectors. All but cpu, events and heap need BPF. */
enum capture_mode {
    CAPTURE_CPU = 1,          /* samples/count, cpu/nanoseconds */
    CAPTURE_WALL = 2,         /* wall/nanoseconds, with the label `state` */
    CAPTURE_OFF_CPU = 4,      /* off_cpu/nanoseconds: all of that but running */
    CAPTURE_LOCK = 8,         /* contentions/count, delay/nanoseconds */
    CAPTURE_IO = 16,          /* io/nanoseconds: disk, network and pipes */
    CAPTURE_RUN_QUEUE = 32,   /* runq/nanoseconds: waiting for a CPU */
    CAPTURE_EVENTS = 128,     /* NAME/count of each of collect.events; by perf events, too */
    CAPTURE_GOROUTINES = 256, /* goroutine_wall/nanoseconds, with the label `state` */
    CAPTURE_FAULTS = 512,     /* faulted_anon, faulted_file, faulted_shmem/bytes */
    CAPTURE_RSS = 1024,       /* rss, rss_pss, rss_swap and others/bytes: levels */
    CAPTURE_HEAP = 64, /* alloc_objects, alloc_space, inuse_objects, inuse_space; by itself */
};
#define CAPTURE_WAITS                                                                              \
    (CAPTURE_WALL | CAPTURE_OFF_CPU | CAPTURE_LOCK | CAPTURE_IO | CAPTURE_RUN_QUEUE)

/* Settings of collectors. */
struct capture_collect {
    const pid_t *pids; /* capture_new sets it: the processes that were asked for, if any were */
    size_t pid_count;
    const struct perf_events *events; /* CAPTURE_EVENTS: they outlive the capture */
    unsigned frequency_hz;            /* capture_new sets it */
    uint64_t mean_bytes;              /* between samples of memory; 0: the default */
    const char *heap_library;         /* CAPTURE_HEAP: the file with the probes of a command that
                                         has not started; NULL: they are in the processes */
    int64_t min_block_ns;             /* waits that are shorter are left out; 0: none */
    unsigned waits_hz;                /* with their stacks, per second and CPU; 0: the default */
    double slowdown_max;              /* of processes whose allocations trap; 0: the default */
    int64_t rss_interval_ns; /* between levels of memory; recordings have one, at the end */
    double cost_share;       /* of all CPUs that programs may take, where it is measured; 0: any */
};

/* Cost of a collector. */
#define CAPTURE_COLLECTORS_MAX 8
struct capture_cost {
    const char *name; /* "cpu", "wall" */
    bool on;
    uint64_t run_ns, runs; /* of its BPF programs, while the kernel measures */
};

/* An attribute of the resource that a process publishes: "service.name". */
struct capture_attribute {
    const char *key, *value;
};

/* A process as whoever labels its samples sees it. It may have ended by then. */
struct capture_process {
    uint32_t pid;
    uint64_t number;      /* of this process and the program that it runs: never comes again */
    uint64_t parent;      /* the number of whom it came from or of what it ran before; 0: unknown */
    const char *name;     /* as its main thread calls itself */
    const char *program;  /* the file that it runs, as it sees it; NULL: not known */
    const char *build_id; /* that file's, or "" */
    const char *runtime;  /* "python", or "" */
    const char *runtime_version; /* "3.11.2", or "" */
    uint64_t published;          /* another with each change of what it publishes; 0: nothing */
    const struct capture_attribute *attributes;
    size_t attribute_count;
};

/* The label set in `profile` of a process's samples, or CAPTURE_UNWANTED; asked for once per
 * process and profile, at its first sample. */
typedef uint32_t (*capture_label_fn)(void *context, const struct capture_process *process,
                                     struct profile *profile);
#define CAPTURE_UNWANTED UINT32_MAX

/* For whoever looks at all processes of a machine all the time, and can't trust them; each 0: none.
 */
struct capture_limits {
    unsigned events;           /* of processes in a second, beyond which they are not followed */
    unsigned forks;            /* likewise, processes that one cgroup starts in a second */
    unsigned process_mappings; /* of one process */
    unsigned mappings;         /* of all, shared by users */
    int64_t lookup_ns;         /* of CPU time for reading /proc in ten seconds, shared by users */
};

/* How it went, from the beginning on. */
struct capture_stats {
    uint64_t samples;
    int64_t cpu_ns;                  /* that they stand for */
    uint64_t processes;              /* that were sampled */
    uint64_t walks;                  /* of user stacks */
    uint64_t ends[UNWIND_END_KINDS]; /* how they ended */
    uint64_t lost;                   /* samples that are not in the profile, for any reason */
    uint64_t unplaced;               /* samples with a frame in an unknown mapping */
    uint64_t unwanted;               /* samples that options.label didn't want */
    int64_t bpf_ns;                  /* that BPF programs ran; -1: the kernel doesn't say */
    uint64_t tracked;                /* processes that are known now */
    uint64_t copies;                 /* BPF: samples that were walked in user space */
    uint64_t checked, different;     /* with options.check */
};

/* A reason why something is missing, and how often. */
#define CAPTURE_LOSSES_MAX 32
struct capture_loss {
    const char *reason; /* "ring_full": for metrics */
    const char *what;   /* "samples that found the ring buffer full" */
    uint64_t count;
};

/* Somebody who made so much of something that it was not followed any more. */
#define CAPTURE_CGROUP_BYTES 256
#define CAPTURE_EXCESS_MAX 16
#define CAPTURE_USER_UNKNOWN UINT32_MAX
struct capture_excess {
    char cgroup[CAPTURE_CGROUP_BYTES]; /* with _ for all but plain characters; "": not known */
    uint32_t user;                     /* or CAPTURE_USER_UNKNOWN */
    const char *what;                  /* "events", "processes started", "mappings", "lookups" */
    uint64_t count;
};
