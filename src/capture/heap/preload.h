/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap profiles of a command that runs with libassay_heap.so preloaded. Without privilege the
 * library writes what it samples, with copies of the stacks, to a ring (ring.h) that is drained
 * here; with BPF, its probes are enough (collector.h), and the kernel walks the stacks, those of
 * interpreters included. One thread at a time.
 */
#pragma once

#include "base/error.h"
#include "capture/heap/heap.h"

struct heap_preload;

/* Creates the ring and finds the library. `mean_bytes` between samples; 0: the default. The error
 * says where the library was looked for. */
int heap_preload_new(uint64_t mean_bytes, struct heap_preload **ret_preload, struct error *error);
void heap_preload_free(struct heap_preload *preload);

/* The file of the library; it lives as long as `preload`. */
const char *heap_preload_library(const struct heap_preload *preload);

/* Called in the child before it executes the command: samples go to the probes alone, or to the
 * ring. */
void heap_preload_enter(const struct heap_preload *preload, bool probes);

/* From here on, allocations go to this recorder's profile. */
void heap_preload_into(struct heap_preload *preload, struct recorder *recorder);
/* Waits at most `timeout_ms` for something, and takes all there is. */
void heap_preload_read(struct heap_preload *preload, int timeout_ms);
/* Adds what is live to the profile: at the end. */
void heap_preload_settle(struct heap_preload *preload);

struct heap_preload_stats {
    uint64_t allocs, frees; /* that were read */
    uint64_t processes;     /* that announced themselves */
    uint64_t lost_allocs;   /* the ring was full */
    uint64_t lost_frees;    /* likewise: as many samples count as live that are not */
    uint64_t live_refused;  /* allocated samples that no table had room for */
    uint64_t damaged;       /* records that can't be */
    uint64_t waits;         /* times that the program waited for us */
};
struct heap_preload_stats heap_preload_stats(const struct heap_preload *preload);
