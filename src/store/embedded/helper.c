// SPDX-License-Identifier: Apache-2.0
// Threads that lend a hand to a query.

#include "store/embedded/helper.h"

#include <unistd.h>

#include "base/memory.h"

void helpers_init(struct helpers *helpers)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    *helpers = (struct helpers){.count = (unsigned)MAX(1, MIN(cpus - 1, HELPERS_MAX))};
    pthread_mutex_init(&helpers->lock, NULL);
    pthread_cond_init(&helpers->changed, NULL);
}

void helpers_release(struct helpers *helpers)
{
    pthread_mutex_lock(&helpers->lock);
    helpers->stopping = true;
    pthread_cond_broadcast(&helpers->changed);
    pthread_mutex_unlock(&helpers->lock);
    for (unsigned i = 0; i < helpers->count; i++)
        if (helpers->list[i].state != HELPER_NONE)
            pthread_join(helpers->list[i].thread, NULL);
    pthread_cond_destroy(&helpers->changed);
    pthread_mutex_destroy(&helpers->lock);
}

static void *run_helper(void *context)
{
    struct helper *helper = context;
    struct helpers *helpers = helper->helpers;
    pthread_mutex_lock(&helpers->lock);
    while (!helpers->stopping) {
        if (helper->state != HELPER_CALLED) {
            pthread_cond_wait(&helpers->changed, &helpers->lock);
            continue;
        }
        helper->state = HELPER_AT_WORK;
        pthread_mutex_unlock(&helpers->lock);
        helper->run(helper->context);
        pthread_mutex_lock(&helpers->lock);
        helper->state = HELPER_IDLE;
        pthread_cond_broadcast(&helpers->changed);
    }
    pthread_mutex_unlock(&helpers->lock);
    return NULL;
}

static bool is_free(struct helpers *helpers, struct helper *helper)
{
    if (helper->state != HELPER_NONE)
        return helper->state == HELPER_IDLE;
    helper->helpers = helpers;
    if (pthread_create(&helper->thread, NULL, run_helper, helper))
        return false; /* the caller can do without */
    helper->state = HELPER_IDLE;
    return true;
}

struct helper *helpers_call(struct helpers *helpers, void (*run)(void *context), void *context)
{
    struct helper *called = NULL;
    pthread_mutex_lock(&helpers->lock);
    for (unsigned i = 0; !called && i < helpers->count; i++)
        if (is_free(helpers, &helpers->list[i]))
            called = &helpers->list[i];
    if (called) {
        called->run = run;
        called->context = context;
        called->state = HELPER_CALLED;
        pthread_cond_broadcast(&helpers->changed);
    }
    pthread_mutex_unlock(&helpers->lock);
    return called;
}

void helper_wait(struct helper *helper)
{
    if (!helper)
        return;
    struct helpers *helpers = helper->helpers;
    pthread_mutex_lock(&helpers->lock);
    if (helper->state == HELPER_CALLED)
        helper->state = HELPER_IDLE;
    while (helper->state == HELPER_AT_WORK)
        pthread_cond_wait(&helpers->changed, &helpers->lock);
    pthread_mutex_unlock(&helpers->lock);
}
