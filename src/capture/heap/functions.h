/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations of a running process without probes: by uprobes at its allocator's functions, each of
 * which traps twice. So what that costs the process is measured before anything is sampled, and
 * again while it is.
 */
#pragma once

#include "capture/heap/attach.h"

/* A sum over calls, and the CPU time that they would have taken without us. */
struct heap_slowdown {
    double calls, releases; /* a second */
    double call_ns, release_ns;
    double share; /* that the process takes longer; 0.5: half as long again */
};

struct heap_functions {
    struct heap_attach *attach;
    struct bpf_heap_state *state;
    const pid_t *pids;
    size_t pid_count;
    double call_ns, release_ns; /* one trap of each kind, measured here */
    int64_t looked_ns, cpu_ns;  /* the last measurement */
    uint64_t calls, releases;
};

/* Whether a file that the process has mapped has the probes, so that nothing of this is needed. */
bool heap_functions_needless(pid_t pid);

/* Attaches to the functions of the processes; nothing is sampled yet. The pids outlive it. */
int heap_functions_attach(struct heap_functions *functions, struct heap_attach *attach,
                          struct bpf_heap_state *state, const pid_t *pids, size_t pid_count,
                          struct error *error);

/* Since the last time. False: too little time has passed. */
bool heap_functions_measure(struct heap_functions *functions, int64_t now_ns,
                            struct heap_slowdown *ret_slowdown);
