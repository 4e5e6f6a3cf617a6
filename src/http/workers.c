// SPDX-License-Identifier: Apache-2.0
// Threads that run handlers: see workers.h.

#include "http/workers.h"

#include <pthread.h>
#include <signal.h>

#include "base/memory.h"
#include "http/internal.h"

#define STACK_BYTES (2u << 20)
#define IDLE_SECONDS 10

struct queue {
    struct http_request *first, **last;
    size_t count;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t changed, ended;
    struct queue complete, coming;
    unsigned limit, threads, idle;
    unsigned reading; /* threads with a request whose body is still coming */
    unsigned away;    /* threads that wait for a reader */
    bool stopping;
    void (*run)(struct http_request *request);
};

struct workers *workers_new(unsigned limit, void (*run)(struct http_request *request))
{
    struct workers *workers = memory_zalloc(1, sizeof(*workers));
    pthread_mutex_init(&workers->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&workers->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_cond_init(&workers->ended, NULL);
    workers->complete.last = &workers->complete.first;
    workers->coming.last = &workers->coming.first;
    workers->limit = MAX(limit, 2u);
    workers->run = run;
    return workers;
}

static struct http_request *take_from(struct queue *queue)
{
    struct http_request *request = queue->first;
    if (!request)
        return NULL;
    queue->first = request->next;
    if (!queue->first)
        queue->last = &queue->first;
    queue->count--;
    return request;
}

/* Those that need reading go first while they have places left: they are fewer and have waited
 * with their sender held up. */
static struct http_request *take(struct workers *workers, bool *ret_reading)
{
    bool may_read = workers->reading < workers->limit / 2 || workers->stopping;
    struct http_request *request = may_read ? take_from(&workers->coming) : NULL;
    *ret_reading = request;
    return request ? request : take_from(&workers->complete);
}

static bool wait_for_more(struct workers *workers)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    workers->idle++;
    int r = pthread_cond_timedwait(&workers->changed, &workers->lock, &until);
    workers->idle--;
    return r == 0;
}

static void *work(void *argument)
{
    struct workers *workers = argument;
    pthread_setname_np(pthread_self(), "http-worker");
    pthread_mutex_lock(&workers->lock);
    for (bool stay = true;;) {
        bool reading;
        struct http_request *request = take(workers, &reading);
        if (request) {
            workers->reading += reading;
            pthread_mutex_unlock(&workers->lock);
            workers->run(request);
            pthread_mutex_lock(&workers->lock);
            workers->reading -= reading;
            stay = true;
        } else if (workers->stopping || !stay) {
            break;
        } else {
            stay = wait_for_more(workers);
        }
    }
    if (--workers->threads == 0)
        pthread_cond_signal(&workers->ended);
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* Signals are for the main thread. */
static bool start_thread(struct workers *workers)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int r = pthread_create(&thread, &attributes, work, workers);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r == 0;
}

static void add_thread(struct workers *workers)
{
    workers->threads++;
    if (!start_thread(workers))
        workers->threads--; /* one of the others will take it */
}

void workers_submit(struct workers *workers, struct http_request *request, bool complete)
{
    pthread_mutex_lock(&workers->lock);
    struct queue *queue = complete ? &workers->complete : &workers->coming;
    request->next = NULL;
    *queue->last = request;
    queue->last = &request->next;
    queue->count++;
    size_t waiting = workers->complete.count + workers->coming.count;
    if (workers->idle < waiting && workers->threads < workers->limit + workers->away)
        add_thread(workers);
    pthread_cond_signal(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
}

void workers_away(struct workers *workers, bool away)
{
    pthread_mutex_lock(&workers->lock);
    workers->away += away ? 1u : -1u;
    size_t waiting = workers->complete.count + workers->coming.count;
    if (away && waiting && !workers->idle && workers->threads < workers->limit + workers->away)
        add_thread(workers);
    pthread_mutex_unlock(&workers->lock);
}

size_t workers_queued(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    size_t count = workers->complete.count + workers->coming.count;
    pthread_mutex_unlock(&workers->lock);
    return count;
}

void workers_free(struct workers *workers)
{
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->changed);
    while (workers->threads)
        pthread_cond_wait(&workers->ended, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
    pthread_mutex_destroy(&workers->lock);
    pthread_cond_destroy(&workers->changed);
    pthread_cond_destroy(&workers->ended);
    free(workers);
}
