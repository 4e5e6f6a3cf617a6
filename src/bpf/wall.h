/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the kernel side (wall.bpf.c) and the user side (capture/wall/) of the collector of
 * wall-clock time. */
#pragma once

#include "bpf/shared.h"

/* State of a thread. */
enum bpf_state {
    BPF_STATE_RUNNING,
    BPF_STATE_RUNNABLE, /* waits for a CPU */
    BPF_STATE_LOCK,
    BPF_STATE_DISK,
    BPF_STATE_NETWORK,
    BPF_STATE_SLEEP,
    BPF_STATE_PIPE, /* and other ways to wait for another process */
    BPF_STATE_CHILD,
    BPF_STATE_IO_URING,
    BPF_STATE_OTHER,
    BPF_STATE_DESCRIPTOR, /* read or write: what the descriptor is tells disk, network, pipe */
    BPF_STATES,
};
#define BPF_STATES_ROOM 16 /* a power of two */

/* A wait, as the detail of its sample. The sample's value is how long it was blocked, its id the
 * system call's first argument: of a futex, the lock. */
struct bpf_wait {
    unsigned long long queued_ns; /* after that, waiting for a CPU */
    unsigned int rate;            /* 2^32 / T: with which probability it was chosen */
    unsigned char state, account; /* enum bpf_state; and as the thread's totals have it */
    unsigned short unused;
    unsigned int waker_tid; /* the thread of the second stack */
    unsigned int unused_word;
};
_Static_assert(sizeof(struct bpf_wait) == BPF_DETAIL_WORDS * 8, "a wait is the detail of a sample");

/* State of a thread, and the event of its end. Times are of the scheduler's clock. */
#define BPF_THREADS_MAX 32768
#define BPF_THREAD_WAYS 4
#define BPF_THREAD_UNWANTED 1 /* as since_ns: nobody asked for this one */
struct bpf_thread {
    struct bpf_note note; /* of its end */
    unsigned int tid;     /* 0: the place is free */
    unsigned int tgid;
    char comm[16];
    unsigned long long since_ns;        /* it last got a CPU; 0: it is new */
    unsigned long long unwanted_groups; /* its cgroups when nobody asked for it */
    unsigned long long run_ns;          /* that it had run by then */
    unsigned long long queued_ns;       /* ... and waited for a CPU */
    unsigned long long preempted;       /* how often */
    unsigned long long voluntary;       /* how often it left the CPU by itself */
    long long gap;                      /* until its next wait that is sent */
    unsigned long long ns[BPF_STATES];  /* in each state, since the beginning */
    /* The thread that ended the wait that is about to be sent: see second_leaf of a sample. */
    unsigned int waker_pid, waker_tid;
    unsigned long long waker_leaf, waker_callers;
};

/* By system call, one byte each. */
#define BPF_SYSTEM_CALLS 512

#define BPF_GAPS 1024
struct bpf_wall {
    unsigned int rate; /* 2^32 / T, in ns */
    unsigned int unused;
    long long clock_ns;         /* CLOCK_MONOTONIC less the scheduler's clock; 0: not known yet */
    unsigned long long refused; /* threads without a place */
    unsigned long long lost;    /* ends of threads that found no room in the ring buffer */
    unsigned long long gaps[BPF_GAPS + 1]; /* quantiles of the exponential distribution, by 2^-32 */
};

struct bpf_wall_constants {
    unsigned char system_call_states[BPF_SYSTEM_CALLS]; /* enum bpf_state by number */
    unsigned long long min_block_ns;                    /* waits that are shorter are not counted */
    unsigned long long cgroup; /* only threads in this one, by its id; 0: any */
    unsigned int wakers;       /* waits for locks are sent with the stack of their waker */
    unsigned int unused;
};
