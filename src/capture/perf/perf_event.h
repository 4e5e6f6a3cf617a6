/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples through perf_event_open: of chosen threads and what they start, with a copy of the top of
 * each stack. It needs no privilege for one's own processes where kernel.perf_event_paranoid is at
 * most 2. Records of all CPUs come in the
 * order of their times.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/perf/events.h"

struct perf_options {
    const pid_t *threads; /* they, and all that they start from now on; -1 is everything */
    size_t thread_count;
    unsigned frequency_hz;            /* 0: no samples, only what happens to processes */
    const struct perf_events *events; /* that are sampled; NULL: the CPU clock alone */
    bool kernel;                      /* kernel frames too, where the user may see them */
    bool enable_on_exec;              /* start when the process executes another program */
    uint32_t stack_bytes;
    bool deep_buffers; /* room for seconds in which nobody reads */
};

enum perf_kind { PERF_SAMPLE, PERF_MAPPED, PERF_NAMED, PERF_STARTED, PERF_ENDED, PERF_LOST };

/* One record; pointers live until the callback returns. */
struct perf_record {
    enum perf_kind kind;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t pid, tid, cpu;

    /* PERF_SAMPLE */
    unsigned event;  /* 0: the CPU clock; from 1 on, options.events->list[event - 1] */
    uint64_t period; /* nanoseconds of CPU, or how many events it stands for */
    bool inherited;  /* by a thread that was started later: other rates don't reach it */
    const uint64_t *kernel_frames; /* innermost first */
    size_t kernel_count;
    bool has_user; /* the registers below are there */
    bool in_kernel;
    uint64_t ip, sp, fp, base, argument; /* registers: src/arch/x86_64/registers.h */
    const uint8_t *stack;                /* from sp on */
    size_t stack_bytes;
    const void *frames; /* of the process's interpreter, as who took the sample has them; NULL: not
                           known */
    size_t frame_bytes;

    /* PERF_MAPPED: executable memory */
    uint64_t start, length, offset;
    uint64_t device, inode; /* of the file; 0 when not known */
    const char *path;       /* also of PERF_NAMED: the thread's name */

    bool executed;       /* PERF_NAMED: the process runs another program now */
    uint32_t parent_pid; /* PERF_STARTED */
    uint64_t lost;       /* PERF_LOST: records */
};

typedef void (*perf_record_fn)(void *context, const struct perf_record *record);

struct perf_sampler;

/* Opens events on every CPU. The error says what stands in the way and how to get it out. */
int perf_sampler_new(const struct perf_options *options, struct perf_sampler **ret_sampler,
                     struct error *error);
void perf_sampler_free(struct perf_sampler *sampler);

/* False when kernel frames were wanted and may not be seen. */
bool perf_sampler_sees_kernel(const struct perf_sampler *sampler);

/* Records that didn't fit into a ring so far. A record of the kind PERF_LOST comes only when there
 * is room again and something else happens. 0 where the kernel doesn't count them (before 6.0). */
uint64_t perf_sampler_lost(const struct perf_sampler *sampler);

/* Of events with a fixed period, what came after the last sample of each thread on each CPU, where
 * that is 1% or more: many threads or processes may each have too few for a sample. */
uint64_t perf_sampler_unsampled(const struct perf_sampler *sampler);

/* See perf_event_uncounted_percent: the largest of all. */
unsigned perf_sampler_uncounted_percent(const struct perf_sampler *sampler);

/* Appends the threads that a process has now to a growing list. -ESRCH when there is none. */
int perf_threads_of(pid_t pid, pid_t **threads, size_t *count, size_t *capacity);

/* Takes samples at another rate; or nothing at all, until it is called with false. */
int perf_sampler_set_rate(struct perf_sampler *sampler, unsigned frequency_hz);
int perf_sampler_pause(struct perf_sampler *sampler, bool pause);

/* Waits for records, at most `timeout_ms`, and hands over those whose turn it is; all of them when
 * `all` is set. Returns 0, 1 when the events' processes are gone, or a negative code. */
int perf_sampler_read(struct perf_sampler *sampler, int timeout_ms, bool all,
                      perf_record_fn callback, void *context);

/* The same in two steps, for who has other sources to keep in order: takes what is in the rings,
 * and hands over what happened until some time. */
void perf_sampler_collect(struct perf_sampler *sampler);
void perf_sampler_deliver(struct perf_sampler *sampler, uint64_t until_ns, perf_record_fn callback,
                          void *context);
/* How many were collected and not delivered. */
size_t perf_sampler_waiting(const struct perf_sampler *sampler);
/* Drops what is in the rings and what was collected, and says whose more than half of the latter
 * was (0: nobody's). Returns how many records that were. */
size_t perf_sampler_discard(struct perf_sampler *sampler, uint32_t *ret_pid);
/* When the first of what was collected and not delivered happened; UINT64_MAX: there is none. */
uint64_t perf_sampler_next(const struct perf_sampler *sampler);

/* Descriptors to poll, at most `limit`. Returns how many. */
struct pollfd;
size_t perf_sampler_descriptors(const struct perf_sampler *sampler, struct pollfd *ret_polls,
                                size_t limit);
