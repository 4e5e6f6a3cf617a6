/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that run handlers: started as they are needed, up to a limit. Requests whose bodies are
 * still coming may take half of them at most, so that there is always room for complete ones; and
 * those that wait for their client to read don't count.
 *
 * Of complete requests that do nothing but compute until they say otherwise, only about as many run
 * at once as there are processors: more would take turns, with what each other needs in the cache
 * thrown out and a lock held while its holder waits for its turn.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_request;
struct workers;

struct workers *workers_new(unsigned limit, void (*run)(struct http_request *request));

/* Runs what is queued, waits for all threads, and frees. Nothing may be submitted any more. Takes
 * NULL. */
void workers_free(struct workers *workers);

/* How a request is taken. */
enum work {
    WORK_COMING,   /* the handler will have to wait for the body */
    WORK_COMPLETE, /* it won't */
    WORK_COMPUTES, /* and will do nothing but compute until workers_computed */
    WORK_KINDS,
};
void workers_submit(struct workers *workers, struct http_request *request, enum work work);

/* The caller's request no longer computes, if it ever did, but waits: another worker
 * may. */
void workers_computed(struct workers *workers);

/* The calling thread, one of them, waits for a reader from now on, or does so no longer. */
void workers_away(struct workers *workers, bool away);

/* Requests that no thread has taken yet. */
size_t workers_queued(struct workers *workers);
