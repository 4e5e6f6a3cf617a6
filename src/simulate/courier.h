/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries requests to a server over many kept connections, on one thread: what a fleet of agents
 * looks like from the other side. Without TLS each connection is one agent's, stays open between
 * its requests, and carries one at a time; with it, agents share connections.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct courier;

/* `url` is http[s]://HOST[:PORT][/]; `token` may be NULL. Connections are made when first used. */
int courier_new(const char *url, const char *token, uint32_t connections,
                struct courier **ret_courier, struct error *error);
void courier_free(struct courier *courier); /* takes NULL */

struct courier_load {
    const char *target, *content_type, *content_coding, *batch_id; /* coding may be NULL */
    const void *body; /* kept by the caller until the answer is there */
    size_t length;
};

/* Starts a request on an idle connection. */
void courier_send(struct courier *courier, uint32_t connection, const struct courier_load *load);

struct courier_answer {
    uint32_t connection;
    unsigned status;        /* 0: the connection broke before an answer came */
    int64_t retry_after_ms; /* -1: the server doesn't say */
    int64_t latency_ns;     /* from courier_send to the end of the answer */
    char text[256];         /* beginning of its body, or what broke */
};

/* Waits up to `timeout_ms` and gives an answer; false: none came. Call until false, then send. */
bool courier_wait(struct courier *courier, int timeout_ms, struct courier_answer *ret_answer);
