// SPDX-License-Identifier: Apache-2.0
// Pushes that the server could not take, counted over the last minute: see refusals.h.

#include "server/ingest/refusals.h"

#include <stdio.h>

#define SLOT_NS 5000000000ll

void refusals_init(struct refusals *refusals)
{
    pthread_mutex_init(&refusals->lock, NULL);
}

void refusals_release(struct refusals *refusals)
{
    pthread_mutex_destroy(&refusals->lock);
}

void refusals_note(struct refusals *refusals, const char *why, int64_t now_ns)
{
    int64_t number = now_ns / SLOT_NS;
    pthread_mutex_lock(&refusals->lock);
    size_t at = (size_t)(number % REFUSALS_SLOTS);
    if (refusals->slots[at].number != number) {
        refusals->slots[at].number = number;
        refusals->slots[at].count = 0;
    }
    refusals->slots[at].count++;
    snprintf(refusals->latest, sizeof(refusals->latest), "%s", why);
    pthread_mutex_unlock(&refusals->lock);
}

uint64_t refusals_recent(struct refusals *refusals, int64_t now_ns,
                         char ret_latest[static ERROR_TEXT_BYTES])
{
    int64_t since = now_ns / SLOT_NS - REFUSALS_SLOTS;
    uint64_t count = 0;
    pthread_mutex_lock(&refusals->lock);
    for (size_t i = 0; i < REFUSALS_SLOTS; i++)
        if (refusals->slots[i].number > since)
            count += refusals->slots[i].count;
    snprintf(ret_latest, ERROR_TEXT_BYTES, "%s", refusals->latest);
    pthread_mutex_unlock(&refusals->lock);
    return count;
}
