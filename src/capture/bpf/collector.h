/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector: something that is measured in the kernel and becomes rows of a profile. Each has a
 * directory under src/capture/, a number in enum bpf_collector, programs that use
 * src/bpf/emit.bpf.h, and one struct collector_kind in the table of src/capture/collectors.c. The
 * recorder knows collectors by this interface alone.
 *
 * All functions are called by the capture's one thread. Those that a collector has no use for are
 * NULL, but for start and stop.
 */
#pragma once

#include "bpf/shared.h"
#include "capture/bpf/probes.h"
#include "capture/record/recorder.h"
#include "capture/record/vocabulary.h"

/* All of it outlives the collector. */
struct collector_setup {
    struct recorder *recorder;
    struct bpf_sampler *sampler;
    unsigned modes; /* enum capture_mode: what was asked for */
    int cgroup;     /* a descriptor of its directory, for as long as start runs; -1: none */
    const struct capture_collect *collect; /* settings of collectors */
};

struct collector_kind {
    const char *name;             /* "wall": in settings, status and metrics */
    enum bpf_collector collector; /* events with this number are its own */
    unsigned modes;               /* enum capture_mode: any of them asks for it */

    /* Loads its programs and begins to measure. The error says what is missing; nothing is left
     * behind then. */
    int (*start)(const struct collector_setup *setup, void **ret_state, struct error *error);
    void (*stop)(void *state); /* takes NULL */

    /* A sample of its own, with its frames. */
    void (*take_sample)(void *state, const struct recorder_sample *sample,
                        const struct bpf_sample_event *event);
    /* A note of its own, whose bytes are there. */
    void (*take_note)(void *state, const struct bpf_note *note);
    /* A tick of the CPU clock. */
    void (*take_tick)(void *state, const struct recorder_sample *sample);

    /* Discards all measurements so far. */
    void (*begin)(void *state);
    /* Now and then, at least a few times a second. */
    void (*turn)(void *state, int64_t now_ns);
    /* A profile is about to end: has the kernel send what is still missing; then, when that has
     * been taken, adds everything up. */
    void (*look)(void *state);
    void (*settle)(void *state);

    /* So many samples with stacks a second and CPU, in the mean; 0: it stops measuring, which keeps
     * what it has. */
    int (*set_rate)(void *state, unsigned rate_hz);
    unsigned (*rate)(const void *state); /* the one that was set last, but for 0 */

    /* Its programs may take this part of all CPUs, but never more than its settings permit. */
    void (*limit)(void *state, double cost_share);

    /* CPU time of its programs so far. */
    struct bpf_cost (*cost)(const void *state);
    /* Losses by reason: adds to the list of CAPTURE_LOSSES_MAX. */
    void (*losses)(const void *state, struct capture_loss *losses, size_t *count);
};

/* The table, which ends with NULL. */
extern const struct collector_kind *const collector_kinds[];
