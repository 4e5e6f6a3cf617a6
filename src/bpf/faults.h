/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the program of new memory and user space. */
#pragma once

#include "bpf/shared.h"

/* The kernel's counters of a process's resident memory, which its ABI of tracing numbers so. */
enum bpf_faults_kind {
    BPF_FAULTS_FILE,
    BPF_FAULTS_ANON,
    BPF_FAULTS_SWAPPED, /* not resident */
    BPF_FAULTS_SHMEM,
    BPF_FAULTS_KINDS,
};

#define BPF_FAULTS_PROCESSES_MAX 8192
#define BPF_FAULTS_CPUS_MAX                                                                        \
    64 /* whose parts of a counter are added up; of more, those behind are not */

/* A process as it was at its last event, by pid. */
struct bpf_faults_process {
    unsigned long long memory; /* the kernel's struct of it: another one is another program's */
    long long pages[BPF_FAULTS_KINDS];
};

struct bpf_faults_settings {
    unsigned int page_bytes;
    unsigned int cpus;
};

struct bpf_faults_state {
    unsigned long long mean_bytes; /* between samples; may change at any time */
    unsigned long long
        offsets[BPF_FAULTS_CPUS_MAX]; /* of what each CPU has for itself; 0: unknown */
};

/* A sample: `id` is the kind, `value` the bytes that it grew by, detail[0] the chance of that. */
