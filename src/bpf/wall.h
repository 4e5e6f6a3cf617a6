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
enum {
    BPF_WAIT_SLEEPS = 1, /* it has not ended yet */
    BPF_WAIT_KERNEL = 2, /* for a lock of the kernel; the id is its address */
    BPF_WAIT_BEGUN = 4,  /* chosen when it began: `rate` is the probability, times 2^32 */
};
struct bpf_wait {
    unsigned long long queued_ns; /* after that, waiting for a CPU */
    unsigned int rate;            /* 2^40 / T: with which probability it was chosen */
    unsigned char state, account; /* enum bpf_state; and as the thread's totals have it */
    unsigned short flags;
    unsigned int waker_tid; /* the thread of the second stack */
    unsigned int other;     /* of a wait that ended: the process that had the CPU before;
                               of one for a lock that has not: the owner's tid in the memory of a
                               mutex of glibc, as its process numbers it; 0: not known */
};
_Static_assert(sizeof(struct bpf_wait) == BPF_DETAIL_WORDS * 8, "a wait is the detail of a sample");

/* State of a thread. Times are of the scheduler's clock. A switch touches the first two lines of
 * the cache, and none of the others but for the rarest states. */
#define BPF_THREADS_MAX 32768
#define BPF_THREAD_WAYS 4
#define BPF_THREAD_UNWANTED 1 /* as since_ns: nobody asked for this one */
enum {
    BPF_THREAD_WOKEN = 1,  /* the waker is known */
    BPF_THREAD_KERNEL = 2, /* waits for a lock of the kernel */
    BPF_THREAD_BEGUN = 4,  /* its stack was taken when it left the CPU */
};
struct bpf_thread {
    unsigned int tid; /* 0: the place is free */
    unsigned int flags;
    unsigned long long since_ns;       /* it last got a CPU; 0: it is new */
    unsigned long long run_ns;         /* that it had run by then */
    unsigned long long queued_ns;      /* ... and waited for a CPU */
    unsigned int preempted;            /* how often */
    unsigned int voluntary;            /* how often it left the CPU by itself */
    long long gap;                     /* until its next wait that is sent */
    unsigned long long ns[BPF_STATES]; /* in each state, since the beginning */
    unsigned int tgid;
    unsigned int waker_pid, waker_tid;
    unsigned int unused;
    char comm[16];
    unsigned long long unwanted_groups; /* its cgroups when nobody asked for it */
    /* The thread that ended the wait that is about to be sent: see second_leaf of a sample. */
    unsigned long long waker_leaf, waker_callers;
    unsigned long long kernel_lock; /* its address */
    unsigned long long padding[7];
};
_Static_assert(sizeof(struct bpf_thread) == 256, "four lines of the cache");

/* The end of a thread. Of those that lived for long each is told, of the others some: one that has
 * lived for l with probability 1 - exp(-l/T). */
struct bpf_thread_end {
    struct bpf_note note;
    unsigned int rate; /* 2^40 / T */
    unsigned int unused;
    struct bpf_thread thread;
};

/* The state of a CPU: a cache line each. */
#define BPF_WALL_CPUS 1024
struct bpf_wall_cpu {
    unsigned int tgid;                /* of the thread that it runs; 0: it is idle */
    unsigned int busiest;             /* ... of the one that has run for long lately */
    long long end_gap;                /* until the next end of a thread that is told */
    unsigned long long sent, sent_ns; /* waits with their stacks, and the time that this took */
    unsigned long long turn_ns;       /* since when `turn_sent` counts */
    unsigned int turn_sent;
    unsigned int turn_switches;
    unsigned long long since_ns;   /* when its thread got it; 0: it was idle */
    unsigned long long busiest_ns; /* how long that ran, and less with each switch since */
};
_Static_assert(sizeof(struct bpf_wall_cpu) == 64, "a line of the cache");

/* Stacks of waits that have begun, where they are taken then. */
#define BPF_BEGUN_MAX 8192

/* By system call, one byte each. */
#define BPF_SYSTEM_CALLS 512

/* Load can change at once, and user space may be starved then. When a CPU sends so many waits
 * within this time, T doubles; when it has so many switches of threads that are followed before
 * user space clears the count, half of these go. User space does the rest. */
#define BPF_WALL_TURN_NS 100000000
#define BPF_WAIT_NS_MAX (1ull << 38) /* longer ones are sent for certain */
#define BPF_FOLLOW_MIN (1u << 26)    /* 1 of 64 */
#define BPF_GAPS 1024
#define BPF_FOLLOW_ALL 0xffffffffu
struct bpf_wall {
    unsigned int rate;     /* 2^40 / T, in ns */
    unsigned int end_rate; /* likewise, of ends of threads */
    unsigned int follow;   /* of 2^32 threads so many are followed, chosen by number and salt */
    unsigned int salt;
    unsigned long long min_block_ns; /* waits that are shorter are not counted */
    long long clock_ns;          /* CLOCK_MONOTONIC less the scheduler's clock; 0: not known yet */
    unsigned int sleeper_chance; /* of threads that sleep at a look, 2^32: all may be sent */
    unsigned int turn_sent_max;  /* of a CPU in BPF_WALL_TURN_NS */
    unsigned int turn_switches_max; /* before user space comes; 0: any */
    unsigned int chance; /* of a wait to be sent, 2^32: where that is decided when it begins */
    unsigned long long sleepers; /* threads that might have been sent at looks */
    long long sleepers_left;     /* that may be, at this one */
    unsigned long long refused;  /* threads without a place */
    unsigned long long lost;     /* ends of threads that found no room in the ring buffer */
    unsigned long long gaps[BPF_GAPS + 1]; /* quantiles of the exponential distribution, by 2^-40 */
};

struct bpf_wall_constants {
    unsigned char system_call_states[BPF_SYSTEM_CALLS]; /* enum bpf_state by number */
    unsigned long long cgroup; /* only threads in this one, by its id; 0: any */
    unsigned int early;        /* the hook is before the switch: see wall_early.bpf.h */
    unsigned int unused;
};

/* Whether a thread is one of those that are followed: the same on both sides. */
static inline int bpf_wall_follows(unsigned int follow, unsigned int salt, unsigned int tid)
{
    return follow == BPF_FOLLOW_ALL || (tid * 0x9e3779b1u + salt) * 0x85ebca6bu < follow;
}
