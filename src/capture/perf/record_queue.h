/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records from the thread that takes samples to the one that adds them up, in order. One writer and
 * one reader; each record is copied, with its path or its stack.
 */
#pragma once

#include <pthread.h>

#include "capture/perf/perf_event.h"

#define RECORD_QUEUE_MAX 65536                /* records; then the writer waits */
#define RECORD_QUEUE_SAMPLE_BYTES (16u << 20) /* of stacks; then record_queue_busy says so */

struct record_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct queued_record *first, **last;
    size_t count;
    size_t stack_bytes;
    bool no_writer, no_reader;
};

void record_queue_init(struct record_queue *queue);
void record_queue_release(struct record_queue *queue);

/* The writer's. Records after record_queue_stop are dropped. */
void record_queue_add(struct record_queue *queue, const struct perf_record *record);
bool record_queue_busy(struct record_queue *queue);
void record_queue_end(struct record_queue *queue);

/* The reader's: waits for a record, then hands over all that are there. Returns 1 when there are
 * none and the writer has ended, else 0. */
int record_queue_read(struct record_queue *queue, int timeout_ms, perf_record_fn callback,
                      void *context);
/* Frees a writer that waits. */
void record_queue_stop(struct record_queue *queue);
