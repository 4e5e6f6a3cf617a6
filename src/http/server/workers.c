// SPDX-License-Identifier: Apache-2.0
// Threads that run handlers: see workers.h.

#include "http/server/workers.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/condition.h"
#include "base/memory.h"
#include "http/server/internal.h"

#define STACK_BYTES (2u << 20)
#define IDLE_SECONDS 10

struct queue {
    struct http_request *first, **last;
    size_t count;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t changed, ended;
    struct queue queues[WORK_KINDS];
    unsigned limit, threads, idle;
    unsigned reading;   /* threads with a request whose body is still coming */
    unsigned computing; /* threads with a request that computes, */
    unsigned computing_limit;
    unsigned away; /* threads that wait for a reader */
    bool stopping;
    void (*run)(struct http_request *request);
};

static _Thread_local bool computes; /* this thread is one of workers->computing */
static _Thread_local bool reads;    /* ... of workers->reading, unless it is away */

struct workers *workers_new(unsigned limit, void (*run)(struct http_request *request))
{
    struct workers *workers = memory_zalloc(1, sizeof(*workers));
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->changed, NULL);
    pthread_cond_init(&workers->ended, NULL);
    for (int i = 0; i < WORK_KINDS; i++)
        workers->queues[i].last = &workers->queues[i].first;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    workers->limit = MAX(limit, 2u);
    workers->computing_limit = (unsigned)MAX(processors, 1) + 1; /* one may wait for a lock */
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

/* Requests that there are places for, as far as threads go. */
static size_t runnable(const struct workers *workers)
{
    size_t places = workers->computing_limit - MIN(workers->computing, workers->computing_limit);
    return workers->queues[WORK_COMING].count + workers->queues[WORK_COMPLETE].count +
           MIN(workers->queues[WORK_COMPUTES].count, places);
}

/* Those that need reading go first while they have places left: they are fewer and have waited
 * with their sender held up. Of the others the first that came. */
static struct http_request *take(struct workers *workers, enum work *ret_work)
{
    const struct http_request *plain = workers->queues[WORK_COMPLETE].first;
    const struct http_request *computing = workers->queues[WORK_COMPUTES].first;
    if (workers->computing >= workers->computing_limit)
        computing = NULL;
    if (workers->queues[WORK_COMING].first &&
        (workers->reading < workers->limit / 2 || workers->stopping))
        *ret_work = WORK_COMING;
    else if (computing && !(plain && plain->began_us < computing->began_us))
        *ret_work = WORK_COMPUTES;
    else
        *ret_work = WORK_COMPLETE;
    return take_from(&workers->queues[*ret_work]);
}

static bool wait_for_more(struct workers *workers)
{
    workers->idle++;
    int r = condition_wait_for(&workers->changed, &workers->lock, IDLE_SECONDS * 1000000000ll);
    workers->idle--;
    return r == 0;
}

static bool start_thread(struct workers *workers);

/* With the lock held: somebody takes what has become runnable. */
static void call(struct workers *workers)
{
    if (workers->idle < runnable(workers) && workers->threads < workers->limit + workers->away) {
        workers->threads++;
        if (!start_thread(workers))
            workers->threads--; /* one of the others will take it */
    }
    pthread_cond_signal(&workers->changed);
}

static void run(struct workers *workers, struct http_request *request, enum work work)
{
    computes = work == WORK_COMPUTES;
    reads = work == WORK_COMING;
    workers->reading += reads;
    workers->computing += computes;
    pthread_mutex_unlock(&workers->lock);
    workers->run(request);
    pthread_mutex_lock(&workers->lock);
    workers->reading -= reads;
    reads = false;
    workers->computing -= computes;
    /* This thread takes the next, but perhaps not one that computes. */
    if (computes && workers->queues[WORK_COMPUTES].first && runnable(workers) > 1)
        call(workers);
    computes = false;
}

static void *work(void *argument)
{
    struct workers *workers = argument;
    pthread_setname_np(pthread_self(), "http-worker");
    pthread_mutex_lock(&workers->lock);
    for (bool stay = true;;) {
        enum work work;
        struct http_request *request = take(workers, &work);
        if (request) {
            run(workers, request, work);
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

void workers_submit(struct workers *workers, struct http_request *request, enum work work)
{
    pthread_mutex_lock(&workers->lock);
    struct queue *queue = &workers->queues[work];
    size_t before = runnable(workers);
    request->next = NULL;
    *queue->last = request;
    queue->last = &request->next;
    queue->count++;
    if (runnable(workers) > before)
        call(workers);
    pthread_mutex_unlock(&workers->lock);
}

void workers_computed(struct workers *workers)
{
    if (!computes)
        return;
    computes = false;
    pthread_mutex_lock(&workers->lock);
    workers->computing--;
    if (workers->queues[WORK_COMPUTES].first)
        call(workers);
    pthread_mutex_unlock(&workers->lock);
}

void workers_away(struct workers *workers, bool away)
{
    pthread_mutex_lock(&workers->lock);
    workers->away += away ? 1u : -1u;
    workers->reading += reads ? (away ? -1u : 1u) : 0;
    if (away && runnable(workers))
        call(workers);
    pthread_mutex_unlock(&workers->lock);
}

size_t workers_queued(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    size_t count = 0;
    for (int i = 0; i < WORK_KINDS; i++)
        count += workers->queues[i].count;
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
