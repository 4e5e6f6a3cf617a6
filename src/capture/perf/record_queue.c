// SPDX-License-Identifier: Apache-2.0
// Records between two threads: see record_queue.h.

#include "capture/perf/record_queue.h"

#include <string.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/memory.h"

struct queued_record {
    struct queued_record *next;
    struct perf_record record;
    _Alignas(8) char data[]; /* the frames, the path or the stack */
};

void record_queue_init(struct record_queue *queue)
{
    *queue = (struct record_queue){.lock = PTHREAD_MUTEX_INITIALIZER,
                                   .changed = PTHREAD_COND_INITIALIZER};
    queue->last = &queue->first;
}

void record_queue_release(struct record_queue *queue)
{
    for (struct queued_record *next, *at = queue->first; at; at = next) {
        next = at->next;
        free(at);
    }
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->changed);
}

static struct queued_record *copy_record(const struct perf_record *record)
{
    size_t path_bytes = record->path ? strlen(record->path) + 1 : 0;
    size_t frame_bytes = record->frames ? record->frame_bytes : 0;
    size_t before = frame_bytes + path_bytes;
    struct queued_record *copy =
        memory_alloc(sizeof(*copy) + before + (record->stack ? record->stack_bytes : 0));
    *copy = (struct queued_record){.record = *record};
    if (record->frames)
        copy->record.frames = memcpy(copy->data, record->frames, frame_bytes);
    if (path_bytes)
        copy->record.path = memcpy(copy->data + frame_bytes, record->path, path_bytes);
    if (record->stack)
        copy->record.stack = memcpy(copy->data + before, record->stack, record->stack_bytes);
    return copy;
}

void record_queue_add(struct record_queue *queue, const struct perf_record *record)
{
    struct queued_record *copy = copy_record(record);
    pthread_mutex_lock(&queue->lock);
    while (queue->count >= RECORD_QUEUE_MAX && !queue->no_reader)
        pthread_cond_wait(&queue->changed, &queue->lock);
    if (!queue->no_reader) {
        *queue->last = copy;
        queue->last = &TAKE_PTR(copy)->next;
        queue->count++;
        queue->stack_bytes += record->stack_bytes + record->frame_bytes;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    free(copy);
}

bool record_queue_busy(struct record_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool busy = queue->stack_bytes >= RECORD_QUEUE_SAMPLE_BYTES;
    pthread_mutex_unlock(&queue->lock);
    return busy;
}

static void set_flag(struct record_queue *queue, bool *flag)
{
    pthread_mutex_lock(&queue->lock);
    *flag = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void record_queue_end(struct record_queue *queue)
{
    set_flag(queue, &queue->no_writer);
}

void record_queue_stop(struct record_queue *queue)
{
    set_flag(queue, &queue->no_reader);
}

/* The first record, which is the caller's now; NULL when there is none. */
static struct queued_record *take_first(struct record_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct queued_record *first = queue->first;
    if (first) {
        queue->first = first->next;
        if (!queue->first)
            queue->last = &queue->first;
        queue->count--;
        queue->stack_bytes -= first->record.stack_bytes + first->record.frame_bytes;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return first;
}

int record_queue_read(struct record_queue *queue, int timeout_ms, perf_record_fn callback,
                      void *context)
{
    int64_t until_ns = monotonic_ns() + timeout_ms * 1000000ll;
    pthread_mutex_lock(&queue->lock);
    int r = 0;
    while (!queue->first && !queue->no_writer && !r)
        r = condition_wait_until(&queue->changed, &queue->lock, until_ns);
    size_t count = queue->count; /* no more than these: a reader must come back */
    bool ended = !queue->first && queue->no_writer;
    pthread_mutex_unlock(&queue->lock);
    while (count-- > 0) {
        _cleanup_free_ struct queued_record *first = take_first(queue);
        callback(context, &first->record);
    }
    return ended ? 1 : 0;
}
