/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes that the server could not take lately. Private to src/server. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "base/error.h"

#define REFUSALS_SLOTS 12 /* of five seconds */

/* Refusals that are the server's fault, of the last minute. Any thread may call. */
struct refusals {
    pthread_mutex_t lock;
    struct {
        int64_t number; /* which five seconds, since some moment */
        uint64_t count;
    } slots[REFUSALS_SLOTS];
    char latest[ERROR_TEXT_BYTES];
};

void refusals_init(struct refusals *refusals);
void refusals_release(struct refusals *refusals);
/* `now_ns` is of the monotonic clock. */
void refusals_note(struct refusals *refusals, const char *why, int64_t now_ns);

/* How many there were in the last minute, and why the latest was. */
uint64_t refusals_recent(struct refusals *refusals, int64_t now_ns,
                         char ret_latest[static ERROR_TEXT_BYTES]);
