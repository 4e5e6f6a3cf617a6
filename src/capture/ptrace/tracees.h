/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that a tracer holds, and the accounts of their CPU time: what each has used that no
 * sample stands for yet. What a thread still has on its account when it ends goes to its process,
 * and from a process that ends to the next one of the same name, so that many short ones count for
 * what they use. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TRACEES_MAX 65536
#define TRACEE_NAME_BYTES 16
#define TRACEE_NAMES_MAX 1024 /* names of processes with something left on their account */

/* Executable memory that has been reported. */
struct tracee_mapping {
    uint64_t start, end, offset;
    uint64_t path; /* a hash */
};

struct tracee_process {
    pid_t pid;
    size_t threads; /* entries that refer to it */
    size_t living;  /* those that have not begun to end */
    char name[TRACEE_NAME_BYTES];
    uint64_t owed_ns;    /* CPU time of threads that have ended */
    uint64_t clock_ns;   /* its CPU clock at the last look */
    uint64_t looked_at;  /* which look that was */
    bool active;         /* and whether the clock had moved */
    uint64_t size_pages; /* of its memory, when the mappings were read */
    int64_t reread_ns;   /* not before */
    struct tracee_mapping *mappings;
    size_t mapping_count, mapping_capacity;
};

struct tracee {
    pid_t tid;
    struct tracee_process *process;
    char name[TRACEE_NAME_BYTES];
    uint64_t paid_ns;                  /* CPU time that samples stand for */
    bool interrupted;                  /* we wait for it to stop */
    bool ending;                       /* it is on its way out */
    char seen_name[TRACEE_NAME_BYTES]; /* at the last look; "" before */

    /* tracee_asking.h */
    uint64_t resumed_ns;   /* by its clock: when it last went on after a stop */
    uint64_t wait_ns;      /* how long it had waited for CPUs when we last asked it to stop */
    int64_t again_ns;      /* when to see whether to ask again; 0: not before the next look */
    uint64_t again_cpu_ns; /* its clock must say so much */
    unsigned again_looks, again_count;
    unsigned idle_looks, rest; /* looks that found it asleep; looks to leave out */
};

struct tracee_account {
    char name[TRACEE_NAME_BYTES];
    uint64_t owed_ns;
};

struct tracees {
    struct tracee **list; /* by tid */
    size_t count, capacity;
    struct tracee_account *accounts;
    size_t account_count, account_capacity;
    uint64_t written_off_ns; /* beyond TRACEE_NAMES_MAX */
    uint64_t refused;        /* threads beyond TRACEES_MAX */
    bool coarse;             /* the kernel counts no nanoseconds per thread: ticks must do */
};

void tracees_init(struct tracees *tracees);
void tracees_release(struct tracees *tracees);

struct tracee *tracees_find(const struct tracees *tracees, pid_t tid);

/* A thread of the process `pid`, which begins as a copy of `parent` (NULL: of nothing) when it is
 * new. NULL beyond the limit. */
struct tracee *tracees_add(struct tracees *tracees, pid_t tid, pid_t pid,
                           const struct tracee_process *parent);
void tracees_remove(struct tracees *tracees, struct tracee *tracee);

/* The CPU time that a thread has used in all. *ret_wait_ns, which may be NULL, is how long it had
 * to wait for CPUs until it last got one; 0 where the kernel doesn't say. */
uint64_t tracee_cpu_ns(const struct tracees *tracees, const struct tracee *tracee,
                       uint64_t *ret_wait_ns);

/* The same up to this moment, where that can be known; for comparison with itself only. */
uint64_t tracee_clock_ns(const struct tracees *tracees, const struct tracee *tracee);

/* Has any thread of the process run since the look before? Each look has a number of its own. */
bool tracee_process_active(struct tracee_process *process, uint64_t look);

/* Time that a sample of the thread stands for now: all accounts that it can settle. */
uint64_t tracees_settle(struct tracees *tracees, struct tracee *tracee);

/* The thread ends. True when it was the last of its process. */
bool tracees_end(struct tracees *tracees, struct tracee *tracee);

/* Time left by ended threads of the process and of its namesakes. */
uint64_t tracees_owed_ns(const struct tracees *tracees, const struct tracee_process *process);

/* Moves the time of the process to the account of its name. */
void tracees_bequeath(struct tracees *tracees, struct tracee_process *process);

/* CPU time that no sample stands for. */
uint64_t tracees_unsettled_ns(const struct tracees *tracees);
