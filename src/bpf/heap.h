/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the programs of heap profiles and user space. */
#pragma once

#include "bpf/shared.h"

#define BPF_HEAP_PLACES 256 /* probes; a program's cookie says which it is at */
#define BPF_HEAP_ARGUMENTS 4

enum bpf_heap_kind { BPF_HEAP_CONSTANT, BPF_HEAP_REGISTER, BPF_HEAP_MEMORY };

/* Where an argument is when the probe is passed. */
struct bpf_heap_argument {
    unsigned int kind;
    unsigned int number; /* the register's, in DWARF */
    unsigned int bytes;  /* 1, 2, 4 or 8 */
    unsigned int is_signed;
    long long offset;
};

struct bpf_heap_place {
    struct bpf_heap_argument arguments[BPF_HEAP_ARGUMENTS];
};

/* A process that has passed a probe lately, by pid. */
#define BPF_HEAP_PROCESSES_MAX 4096
#define BPF_HEAP_TURN_NS 1000000000ull
struct bpf_heap_process {
    unsigned long long turn_ns;  /* since when `events` counts */
    unsigned long long unwanted; /* the program (process_started) that nobody wants; 0: none */
    unsigned int events;         /* in this turn */
    unsigned int lost;           /* releases that user space doesn't know of */
};

/* All processes of a user, and all of the machine, may have so many times as many events as one. */
#define BPF_HEAP_USERS_MAX 1024
#define BPF_HEAP_USER_TIMES 4
#define BPF_HEAP_TOTAL_TIMES 16
struct bpf_heap_user {
    unsigned long long turn_ns;
    unsigned int events;
    unsigned int unused;
};

/* An allocator's own functions, where nothing has probes: each call traps twice. The first argument
 * of a place is the size, the second a factor of it, the third what is released (realloc), the
 * fourth where the address is stored (posix_memalign). */
#define BPF_HEAP_CALLS_MAX 16384
#define BPF_HEAP_SAMPLED_MAX 131072
struct bpf_heap_call {
    unsigned long long stack; /* the stack pointer when it began; 0: none is under way */
    unsigned long long size, chance, stored_at;
};
struct bpf_heap_pointer {
    unsigned long long pointer;
    unsigned int pid, unused;
};

struct bpf_heap_state {
    unsigned int events_max;    /* of a process in a turn; 0: any */
    unsigned int events;        /* of all in this turn, */
    unsigned long long turn_ns; /* which began then */
    unsigned long long refused; /* allocations beyond that */
    unsigned long long
        lost_frees;            /* releases beyond four times that, or without room in the ring */
    unsigned int targets_only; /* the probes are in processes that nobody asked for, too */
    unsigned int unused;
    unsigned long long mean_bytes;      /* of samples of calls; 0: they are only counted */
    unsigned long long calls, releases; /* of functions */
};

/* A sample is an allocation: `id` is its address, `value` what it stands for, detail[0] its size,
 * detail[1] its program (process_started). A note is a release. */
struct bpf_heap_free {
    struct bpf_note note;
    unsigned int pid, unused;
    unsigned long long pointer;
};
