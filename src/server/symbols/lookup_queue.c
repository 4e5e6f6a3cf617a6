// SPDX-License-Identifier: Apache-2.0
// The queue of builds to look up: see lookup_queue.h.

#include "server/symbols/lookup_queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/condition.h"
#include "base/memory.h"

#define QUEUE_MAX 256
#define TRIED_MAX 4096 /* builds that were looked up, and when */
#define AGAIN_S 600    /* builds that weren't found are looked up again after this */

struct lookup_queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    /* Others append under the lock. Only the worker removes, so that it may read entries that it
     * has seen under the lock without it. */
    struct lookup list[QUEUE_MAX];
    size_t count;
    struct {
        uint64_t hash;
        int64_t when_s;
    } tried[TRIED_MAX];
    uint64_t dropped;
};

struct lookup_queue *lookup_queue_new(void)
{
    struct lookup_queue *queue = memory_zalloc(1, sizeof(*queue));
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->more, NULL);
    return queue;
}

void lookup_queue_free(struct lookup_queue *queue)
{
    if (!queue)
        return;
    for (size_t i = 0; i < queue->count; i++)
        free(queue->list[i].file);
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->more);
    free(queue);
}

void lookup_queue_add(struct lookup_queue *queue, const char *tenant, const char *key,
                      const char *file, int64_t now_s)
{
    uint64_t hash = XXH3_64bits_withSeed(key, strlen(key), XXH3_64bits(tenant, strlen(tenant)));
    size_t slot = hash % TRIED_MAX;
    pthread_mutex_lock(&queue->lock);
    bool tried = queue->tried[slot].hash == hash && now_s - queue->tried[slot].when_s < AGAIN_S;
    if (!tried && queue->count == QUEUE_MAX) {
        queue->dropped++;
    } else if (!tried) {
        struct lookup *added = &queue->list[queue->count++];
        snprintf(added->key, sizeof(added->key), "%s", key);
        snprintf(added->tenant, sizeof(added->tenant), "%s", tenant);
        added->file = memory_strdup(file);
        added->bytes = -1;
        queue->tried[slot].hash = hash;
        queue->tried[slot].when_s = now_s;
        pthread_cond_signal(&queue->more);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool lookup_queue_take(struct lookup_queue *queue, bool measure, int64_t wait_ns,
                       struct lookup *ret_lookup)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->count)
        condition_wait_for(&queue->more, &queue->lock, wait_ns);
    size_t count = queue->count, best = 0;
    pthread_mutex_unlock(&queue->lock);
    if (!count)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct lookup *lookup = &queue->list[i];
        struct stat status;
        if (lookup->bytes < 0)
            lookup->bytes = measure && lookup->file[0] == '/' && stat(lookup->file, &status) == 0
                                ? status.st_size
                                : 0;
        if (lookup->bytes < queue->list[best].bytes)
            best = i;
    }
    pthread_mutex_lock(&queue->lock);
    *ret_lookup = queue->list[best];
    memmove(queue->list + best, queue->list + best + 1,
            (--queue->count - best) * sizeof(*queue->list));
    pthread_mutex_unlock(&queue->lock);
    return true;
}

void lookup_queue_wake(struct lookup_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

uint64_t lookup_queue_dropped(struct lookup_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t dropped = queue->dropped;
    pthread_mutex_unlock(&queue->lock);
    return dropped;
}
