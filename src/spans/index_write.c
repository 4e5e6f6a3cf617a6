// SPDX-License-Identifier: Apache-2.0
// Writes spans. Threads that come while one writes wait for it; the first of them then writes for
// all of them, so that a disk that takes its time gets fewer and larger writes.

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/memory.h"
#include "spans/index_parts.h"

#define GATHER_NS 20000000ll /* for others to join */
#define GATHER_SPANS 16384   /* enough not to wait */

/* The segment of a tenant that is written to; the lock is held. */
static struct segment *current_segment(struct span_index *index, const char *name, int64_t now_ns,
                                       struct error *error)
{
    struct span_tenant *tenant = index_tenant(index, name);
    struct segment *last = tenant->count ? &tenant->segments[tenant->count - 1] : NULL;
    if (last && !last->full && last->spans < index->options.segment_spans &&
        now_ns - last->begun_ns < SEGMENT_AGE_NS)
        return last;
    struct segment segment = {.number = index->next_number, .fd = -1, .begun_ns = now_ns};
    if (segment_create(index, name, &segment, error) < 0)
        return NULL;
    index->next_number++;
    if (last && !last->full) {
        last->full = true;
        if (index->directory) {
            close(last->fd);
            last->fd = -1;
        }
    }
    array_reserve(tenant->segments, tenant->capacity, tenant->count + 1);
    tenant->segments[tenant->count] = segment;
    return &tenant->segments[tenant->count++];
}

static void count_spans(struct segment *segment, const struct span_batch *batch, uint64_t blocks)
{
    for (size_t i = 0; i < batch->count; i++) {
        int64_t start = batch->list[i].start_ns;
        segment->first_ns = segment->spans + i ? MIN(segment->first_ns, start) : start;
        segment->last_ns = segment->spans + i ? MAX(segment->last_ns, start) : start;
    }
    segment->spans += batch->count;
    segment->blocks += blocks;
}

/* Appends with the lock released: only one thread writes, and it alone adds or fills segments. */
static int commit(struct span_index *index, const char *tenant, const struct span_batch *batch,
                  struct error *error)
{
    _cleanup_buffer_ struct buffer blocks = {0};
    span_block_encode(batch, &blocks);
    pthread_mutex_lock(&index->lock);
    struct segment *segment = current_segment(index, tenant, index_now(index), error);
    struct segment copy = segment ? *segment : (struct segment){0};
    pthread_mutex_unlock(&index->lock);
    int r = segment ? segment_append(&copy, &blocks, error) : error->code;
    pthread_mutex_lock(&index->lock);
    index->stats.writes++;
    if (r < 0) {
        index->stats.write_failures++;
        index->failed_ns = monotonic_ns();
        snprintf(index->failure, sizeof(index->failure), "%s", error->text);
    } else {
        count_spans(&copy, batch, (batch->count - 1) / SPAN_BLOCK_SPANS + 1);
        *index_segment(index_tenant(index, tenant), copy.number) = copy;
        index->stats.written += batch->count;
    }
    pthread_mutex_unlock(&index->lock);
    return r;
}

static bool is_of(const struct pending *job, const char *tenant)
{
    return !job->taken && !strcmp(job->tenant, tenant);
}

/* All that one tenant has among the jobs. */
static void write_tenant(struct span_index *index, struct pending *first)
{
    struct span_batch all = {0};
    const struct span_batch *batch = first->batch;
    const char *tenant = first->tenant;
    struct error error = {0};
    for (struct pending *job = first->next; job; job = job->next)
        if (is_of(job, tenant)) {
            if (batch != &all)
                span_batch_append(&all, first->batch);
            batch = &all;
            span_batch_append(&all, job->batch);
        }
    int r = commit(index, tenant, batch, &error);
    for (struct pending *job = first; job; job = job->next)
        if (is_of(job, tenant)) {
            job->taken = true;
            job->result = r < 0 ? error_set(job->error, -EAGAIN, "%s", error.text) : 0;
        }
    span_batch_release(&all);
}

/* Writes what is pending; the lock is held before and after. */
static void write_pending(struct span_index *index)
{
    index->writing = true;
    if (index->pending_spans < GATHER_SPANS)
        condition_wait_for(&index->changed, &index->lock, GATHER_NS);
    struct pending *jobs = index->pending;
    index->pending = NULL;
    index->pending_end = &index->pending;
    index->pending_spans = 0;
    pthread_mutex_unlock(&index->lock);
    for (struct pending *job = jobs; job; job = job->next)
        if (!job->taken)
            write_tenant(index, job);
    pthread_mutex_lock(&index->lock);
    for (struct pending *job = jobs, *next; job; job = next) {
        next = job->next; /* its thread may go on at once */
        job->done = true;
    }
    index->writing = false;
    pthread_cond_broadcast(&index->changed);
}

static int write_batch(struct span_index *index, const char *tenant, const struct span_batch *batch,
                       struct error *error)
{
    struct pending job = {.tenant = tenant, .batch = batch, .error = error};
    pthread_mutex_lock(&index->lock);
    *index->pending_end = &job;
    index->pending_end = &job.next;
    index->pending_spans += batch->count;
    if (index->pending_spans >= GATHER_SPANS)
        pthread_cond_broadcast(&index->changed);
    while (!job.done)
        if (index->writing)
            pthread_cond_wait(&index->changed, &index->lock);
        else
            write_pending(index);
    pthread_mutex_unlock(&index->lock);
    return job.result;
}

/* Senders repeat a push whose answer they didn't get. */
static bool is_repeated(struct span_index *index, uint64_t digest)
{
    bool found = false;
    pthread_mutex_lock(&index->lock);
    for (size_t i = 0; digest && !found && i < RECENT_PUSHES; i++)
        found = index->recent[i] == digest;
    index->stats.repeated += found;
    pthread_mutex_unlock(&index->lock);
    return found;
}

static void note_push(struct span_index *index, uint64_t digest, const struct span_written *written)
{
    pthread_mutex_lock(&index->lock);
    if (digest)
        index->recent[index->recent_at++ % RECENT_PUSHES] = digest;
    index->stats.too_old += written->too_old;
    index->stats.too_new += written->too_new;
    pthread_mutex_unlock(&index->lock);
}

/* Leaves the spans of times that can be kept. */
static void choose(struct span_index *index, struct span_batch *batch, struct span_written *written)
{
    int64_t now = index_now(index), oldest;
    size_t kept = 0;
    pthread_mutex_lock(&index->lock);
    oldest = now - index->options.retention_ns;
    pthread_mutex_unlock(&index->lock);
    for (size_t i = 0; i < batch->count; i++) {
        const struct span *span = &batch->list[i];
        written->too_old += span->start_ns < oldest;
        written->too_new += span->start_ns > now + SPAN_FUTURE_NS;
        if (span->start_ns >= oldest && span->start_ns <= now + SPAN_FUTURE_NS)
            batch->list[kept++] = *span;
    }
    written->stored = batch->count = kept;
}

int span_index_write(struct span_index *index, const char *tenant, struct span_batch *batch,
                     uint64_t digest, void (*ready)(void *context), void *context,
                     struct span_written *ret_written, struct error *error)
{
    struct span_written written = {0};
    if (digest) /* what another tenant has sent is not a repetition */
        digest = XXH3_64bits_withSeed(tenant, strlen(tenant), digest);
    if (is_repeated(index, digest)) {
        *ret_written = (struct span_written){.repeated = true};
        return 0;
    }
    choose(index, batch, &written);
    if (ready)
        ready(context);
    int r = batch->count ? write_batch(index, tenant, batch, error) : 0;
    if (!r) {
        note_push(index, digest, &written);
        *ret_written = written;
    }
    return r;
}
