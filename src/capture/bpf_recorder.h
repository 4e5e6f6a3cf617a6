/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF sampler's events into a recorder: stacks that came once are remembered by their hash,
 * samples that the kernel could not walk are walked here, and what that took is given to the
 * kernel, so that it can walk the next. Events of processes come beside, by perf events in the
 * order of time.
 */
#pragma once

#include "capture/installer.h"
#include "capture/recorder.h"

/* A chain of callers, and its frames in the profile of some epoch. */
struct known_stack {
    uint64_t hash;
    const uint64_t *words; /* innermost first, as the kernel sent them */
    uint32_t *frames; /* outermost first; of `epoch` and, where `pid` is not 0, of that process */
    uint32_t count;
    uint32_t epoch;
    uint32_t pid;
    uint8_t end;  /* enum unwind_end */
    bool has_raw; /* with code of no file: what it is depends on the process */
};

struct bpf_recorder {
    struct recorder *recorder;
    struct bpf_sampler *sampler;
    struct perf_sampler *events; /* of processes */
    uint64_t collected_ns; /* those that happened until then have been taken from the kernel */
    struct installer installer;
    struct known_stack *stacks;
    size_t stack_count, stack_capacity;
    struct id_table index;   /* of stacks, by hash */
    struct arena arena;      /* of their words and frames */
    uint64_t stacks_bytes;   /* beyond it all stacks are forgotten, here and in the kernel */
    unsigned copies;         /* that are allowed at a time */
    int64_t allowed_ns;      /* when they last were */
    bool changes;            /* some process has mapped something since the last look */
    uint64_t unknown_stacks; /* samples whose stack never came */
    uint64_t resets;
    uint64_t checked, different; /* walks of the kernel, compared with our own */
};

int bpf_recorder_init(struct bpf_recorder *bpf, struct recorder *recorder,
                      const struct bpf_sampler_options *options, struct error *error);
void bpf_recorder_release(struct bpf_recorder *bpf);

/* Waits, at most so long, and takes what has come. */
int bpf_recorder_read(struct bpf_recorder *bpf, int timeout_ms);
