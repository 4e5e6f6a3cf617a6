/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF sampler's events into a recorder: stacks that came once are remembered by their hash,
 * samples that the kernel could not walk are walked here, and what that took is given to the
 * kernel, so that it can walk the next. Events of processes come beside, by perf events in the
 * order of time.
 */
#pragma once

#include "capture/bpf/collector.h"
#include "capture/bpf/installer.h"
#include "capture/bpf/known_stacks.h"
#include "capture/bpf/long_stacks.h"
#include "capture/record/excess.h"
#include "capture/record/flood.h"
#include "capture/record/recorder.h"

/* A collector at work. */
struct collector {
    const struct collector_kind *kind;
    void *state;
    bool off; /* its rate is 0 */
};

struct bpf_recorder {
    struct recorder *recorder;
    struct collector collectors[CAPTURE_COLLECTORS_MAX - 1];
    size_t collector_count;
    bool paused;          /* no more samples come */
    struct error missing; /* why a collector that may be missing is; empty: none is */
    struct bpf_sampler *sampler;
    struct perf_sampler *events; /* of processes */
    uint64_t collected_ns; /* those that happened until then have been taken from the kernel */
    int64_t requests_ns;   /* when to read counters of requests again */
    uint64_t taken_ns;     /* the time of the last sample that was read */
    struct installer installer;
    struct long_stacks long_stacks;
    struct known_stacks stacks;
    uint64_t stacks_bytes; /* beyond it all stacks are forgotten, here and in the kernel */
    bool changes;          /* some process has mapped something since the last look */
    uint64_t resets;
    struct flood flood;          /* of events of processes */
    unsigned forks_limit;        /* that one cgroup may start in a second; 0: any */
    int64_t doubted_ns;          /* when all that is known of processes last was, in a flood */
    int64_t cgroups_ns;          /* when cgroups were last looked at */
    struct excess_list *excess;  /* who caused what was not followed; the owner's */
    uint64_t checked, different; /* walks of the kernel, compared with our own */
};

struct bpf_recorder_options {
    struct bpf_sampler_options sampler;
    unsigned modes, optional_modes; /* enum capture_mode */
    const struct capture_collect *collect;
    bool learn_all; /* every process that exists is known before the first sample is taken; else
                       only those of the sampler's options are */
};
int bpf_recorder_init(struct bpf_recorder *bpf, struct recorder *recorder,
                      const struct bpf_recorder_options *options, struct error *error);
void bpf_recorder_release(struct bpf_recorder *bpf);

/* Beyond so many events of processes, and processes that a cgroup starts, in a second, they are not
 * followed any more. Who it was goes to `excess`, which outlives this. */
void bpf_recorder_limit(struct bpf_recorder *bpf, unsigned events, unsigned forks,
                        struct excess_list *excess);

/* With all that can be known up to now. */
void bpf_recorder_settle(struct bpf_recorder *bpf);

/* Discards all measurements so far. */
void bpf_recorder_begin(struct bpf_recorder *bpf);

/* No more samples until it is called with false. */
int bpf_recorder_pause(struct bpf_recorder *bpf, bool pause);

/* See capture_set_collector. */
int bpf_recorder_set_collector(struct bpf_recorder *bpf, const char *name, unsigned rate_hz);
/* See capture_limit_collector. */
void bpf_recorder_limit_collector(struct bpf_recorder *bpf, const char *name, double cost_share);

/* Waits, at most so long, and takes what has come. */
int bpf_recorder_read(struct bpf_recorder *bpf, int timeout_ms);
