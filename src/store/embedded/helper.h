/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that lend a hand to a query: a few for the whole store, made when they are first wanted.
 * A query asks for one and does its work alone when all are busy, so nobody ever waits for one.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#define HELPERS_MAX 3

struct helpers;

struct helper {
    struct helpers *helpers;
    pthread_t thread;
    enum { HELPER_NONE, HELPER_IDLE, HELPER_CALLED, HELPER_AT_WORK } state;
    void (*run)(void *context);
    void *context;
};

struct helpers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct helper list[HELPERS_MAX];
    unsigned count; /* that may be: one less than CPUs, and one at least */
    bool stopping;
};

void helpers_init(struct helpers *helpers);
void helpers_release(struct helpers *helpers); /* none may be at work */

/* Has one run `run(context)`; NULL when none is free. */
struct helper *helpers_call(struct helpers *helpers, void (*run)(void *context), void *context);

/* Waits until it is done, or calls it off when it hasn't begun. Takes NULL. */
void helper_wait(struct helper *helper);
