/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds whose symbols are to be looked up on this host or upstream. Any thread adds; one worker
 * takes. A build is looked up again only after some minutes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/symbols/requests.h"
#include "symbol/store/store.h"

struct lookup {
    char key[SYMBOL_KEY_BYTES];
    char tenant[SYMBOL_REQUEST_TENANT_BYTES];
    char *file;    /* as the sender named it */
    int64_t bytes; /* of that file here; 0: not stored; -1: not measured yet */
};

struct lookup_queue;

struct lookup_queue *lookup_queue_new(void);
void lookup_queue_free(struct lookup_queue *queue); /* takes NULL */

/* Drops the build when the queue is full, and counts that. */
void lookup_queue_add(struct lookup_queue *queue, const char *tenant, const char *key,
                      const char *file, int64_t now_s);

/*
 * The build with the smallest file first, so that one of a gigabyte doesn't delay all others; waits
 * at most `wait_ns` for one. With `measure` it finds the files' sizes, without holding the lock:
 * paths come from senders, and a path on a slow file system must not block them. The caller frees
 * `file`. For the worker.
 */
bool lookup_queue_take(struct lookup_queue *queue, bool measure, int64_t wait_ns,
                       struct lookup *ret_lookup);

/* Ends a wait of the worker. */
void lookup_queue_wake(struct lookup_queue *queue);

uint64_t lookup_queue_dropped(struct lookup_queue *queue);
