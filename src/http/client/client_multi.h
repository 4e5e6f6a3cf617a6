/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests at once from one thread: for scraping, where most of the time is spent waiting for
 * a profile to be taken. All calls are for the thread that runs it, except http_multi_wake().
 * Connections are kept for the next request to the same host.
 */
#pragma once

#include <stdatomic.h>

#include "http/client/client.h"

struct http_multi;

/* The result of a request: 0 and a reply that the callee takes over (and gives its length back to
 * the budget), or an error as http_client_call() has it, also -ENOBUFS: the budget was used up. It
 * may start other requests. */
typedef void http_multi_done(void *context, void *request, int result, struct http_reply *reply,
                             const struct error *error);

struct http_multi_options {
    http_multi_done *done;
    void *context;
    size_t connections;    /* that are kept; 0 is 256 */
    atomic_size_t *budget; /* bytes that all answers together may hold; NULL: no such limit */
};

int http_multi_new(const struct http_multi_options *options, struct http_multi **ret_multi,
                   struct error *error);

/* Ends what is under way without a word. Takes NULL. */
void http_multi_free(struct http_multi *multi);

/* Starts a request; all texts are copied but for a body, which must live on. After a failure here
 * `done` is not called. */
int http_multi_start(struct http_multi *multi, const struct http_client_options *options,
                     const struct http_call *call, void *request, struct error *error);

/* Does what can be done, and waits up to `wait_ms` for there to be something. */
void http_multi_run(struct http_multi *multi, unsigned wait_ms);

/* Ends a request that was started; `done` is not called for it any more. */
void http_multi_cancel(struct http_multi *multi, const void *request);

size_t http_multi_active(const struct http_multi *multi);

/* http_multi_run() returns at once. From any thread. */
void http_multi_wake(struct http_multi *multi);
