/* SPDX-License-Identifier: Apache-2.0 */
/* Which events are sampled: names as perf's, and which of them this machine counts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PERF_EVENTS_MAX 8

struct perf_event_choice {
    const char *name;            /* "page-faults": the sample type's name */
    uint32_t type;               /* as in struct perf_event_attr */
    uint64_t config;             /* likewise */
    bool user_only, kernel_only; /* :u, :k */
    bool in_kernel;              /* it never happens in user code */
    /* A sample is taken after so many; 0: after as many as it takes for a frequency. Frequencies of
     * software events don't work: the kernel's control of their period can run away, and a sample
     * says the period that follows it. BPF has a control of its own. */
    unsigned period;
};

struct perf_events {
    struct perf_event_choice list[PERF_EVENTS_MAX];
    size_t count;
    bool cpu; /* the CPU clock too, as CPU time */
};

/* 0, or a negative code: this machine doesn't count the event. -EACCES and -EPERM say nothing about
 * the machine. */
typedef int (*perf_event_try_fn)(const struct perf_event_choice *choice);
int perf_event_try(const struct perf_event_choice *choice);

/*
 * "cycles,page-faults:u" as people write it. An event that the machine doesn't count is replaced by
 * the CPU clock, and `ret_note` (of at least PERF_NOTE_BYTES) says which and why; else it is "".
 */
#define PERF_NOTE_BYTES 512
int perf_events_parse(const char *text, perf_event_try_fn try, struct perf_events *ret_events,
                      char *ret_note, struct error *error);

/* For how long the event was meant to count, and for how long the CPU had a counter free for it;
 * how many there were, and how many records of them were lost where the kernel counts that. */
struct perf_event_times {
    uint64_t enabled_ns, running_ns, count, lost;
};
struct perf_event_times perf_event_times(int fd);
/* The share of the time without a counter, where it is worth a word. */
unsigned perf_event_uncounted_percent(struct perf_event_times times);
#define PERF_EVENT_READ_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
#define PERF_EVENTS_UNSAMPLED "events not sampled: they came after the last sample of their thread"
#define PERF_EVENTS_UNCOUNTED                                                                      \
    "% of the time, an event was not counted: the CPU has fewer counters than events were asked "  \
    "for"
