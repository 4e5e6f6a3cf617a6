/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples to a profile: each copied stack is walked by its binaries' unwind rows as it comes,
 * and added up. Frames are addresses; naming is the caller's (profile/rename.h).
 */
#pragma once

#include "capture/perf_event.h"
#include "capture/processes.h"
#include "elf/unwind.h"
#include "profile/profile.h"

#define RECORDER_FRAMES_MAX 1024

struct recorder {
    struct profile *profile;
    struct modules modules;
    struct processes processes;
    int64_t epoch_ns; /* of CLOCK_MONOTONIC's zero */
    unsigned samples_type, cpu_type;
    uint32_t kernel_mapping;
    bool root_by_process; /* stacks begin with a frame that is called as the process is */

    uint64_t samples;
    uint64_t lost;                   /* records that the kernel had no room for */
    uint64_t ends[UNWIND_END_KINDS]; /* how walks of user stacks ended */
    uint64_t walks;
};

/* `profile` outlives the recorder; samples/count and cpu/nanoseconds are added to it. */
void recorder_init(struct recorder *recorder, struct profile *profile, unsigned frequency_hz);
void recorder_release(struct recorder *recorder);

/* A perf_record_fn. */
void recorder_take(void *recorder, const struct perf_record *record);
