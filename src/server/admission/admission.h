/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for what others send. It is taken from the server's account before reading begins, by the
 * length that is known, and while reading shows that it takes more; what finds none left is
 * refused. Private to src/server.
 */
#pragma once

#include "base/error.h"
#include "base/limits/budget.h"
#include "base/memory.h"
#include "http/server/request.h"

/* The server's account. Any thread may use it. */
struct admissions {
    struct budget memory;                /* of pushes, queries and maintenance */
    struct budget starters;              /* of queries, not bytes: see admission.c */
    _Atomic uint64_t query_memory_bytes; /* of each profile that a query merges */
    _Atomic uint64_t pushes_refused;     /* for want of memory */
};

void admissions_init(struct admissions *admissions, size_t memory_bytes);
void admissions_release(struct admissions *admissions);

/* The memory that a route's requests need before their handler runs. */
enum admission_class {
    ADMIT_FREELY,           /* little memory, or the handler takes it */
    ADMIT_PUSH,             /* by the length of the body */
    ADMIT_QUERY,            /* a part of what one profile and its picture may take, then all */
    ADMIT_COMPARISON,       /* the same for two profiles */
    ADMIT_QUERY_WHOLE,      /* all of it at once */
    ADMIT_COMPARISON_WHOLE, /* the same for two profiles */
};

/* Runs the handler with what its class needs. False when that isn't to be had within some time: the
 * caller answers. `push_limit_bytes` is the most that a push may send. */
bool admissions_run(struct admissions *admissions, enum admission_class class,
                    uint64_t push_limit_bytes, struct http_request *request,
                    void (*handler)(struct http_request *request, void *userdata), void *userdata);

/* The same for a job of the server itself, which makes queries in a thread that serves no request.
 * `class` is one of queries or comparisons. False when the memory isn't free within some time, or
 * `cancelled` is set: the job hasn't run. */
bool admissions_run_job(struct admissions *admissions, enum admission_class class,
                        const atomic_bool *cancelled, void (*job)(void *context), void *context);

struct admission {
    struct memory_meter meter; /* of the thread, from begin to end */
    struct budget *budget;
    const atomic_bool *cancelled;
    size_t taken_bytes;
    bool too_large; /* it needs more than there is in all */
};

/* False when there isn't so much within a moment: nothing was taken. */
bool admission_begin(struct admission *admission, struct budget *budget, size_t bytes,
                     unsigned wait_ms, const atomic_bool *cancelled);
void admission_end(struct admission *admission);

/* One of several things has been read: of what was noted since `before`, only so much is kept. */
static inline size_t admission_noted(void)
{
    return memory_meter ? memory_meter->used_bytes : 0;
}
void admission_kept(size_t before, size_t bytes);

/* ---- queries ---- */

struct store_limits;

/* The memory that each profile which this thread's query merges may take so far. */
size_t admit_profile_bytes(struct admissions *admissions);

/* Sets what it may take, and how the store asks for more when that is to be had at once. */
void admit_limits(struct admissions *admissions, struct store_limits *limits);

/* Whether it may take more, and taking all of that: -EAGAIN when there isn't so much within some
 * seconds. Not with a lock held. */
bool admit_is_part(void);
int admit_rest(struct error *error);

/* A query has made what it needs and begins to wait for its client: of what was taken for it from
 * the server's account, it keeps so much (0: half) until it ends. */
void admit_keep(size_t bytes);

/* ---- pushes ---- */

/* Why reading ended: what it says when there wasn't enough memory is replaced by why, with another
 * code if it may be tried again. `r` otherwise. */
int admission_explain(int r, struct error *error);
