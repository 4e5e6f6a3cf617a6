/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that use the HTTP server in every way: for its unit test, and for other programs that
 * talk to it (peer.c). */
#pragma once

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "http/server/server.h"

/* What handlers have seen. */
struct seen {
    struct http_server *server;
    atomic_int waiting;   /* handlers in /wait now */
    atomic_int cancelled; /* that were told that their client has gone */
    atomic_int failed;    /* bodies that couldn't be read */
    atomic_int stopped;   /* streams that the client didn't take */
    atomic_int reading;   /* handlers that have begun to read a body */
    atomic_int sleeping;  /* handlers that have begun to sleep */
    atomic_int computing; /* handlers in the first part of /compute now, */
    atomic_int computed;  /* in the second, */
    atomic_int tickets;   /* how many may leave the first, */
    atomic_bool finish;   /* and whether they may leave the second */
};

static inline void sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static inline size_t wanted_bytes(const struct http_request *request)
{
    const char *bytes = http_request_query(request, "bytes");
    return bytes ? strtoull(bytes, NULL, 10) : 0;
}

static inline void handle_hello(struct http_request *request, void *userdata)
{
    (void)userdata;
    http_respond_text(request, 200, "text/plain", "hello\n");
}

static inline void handle_big(struct http_request *request, void *userdata)
{
    struct buffer body = {0};
    (void)userdata;
    for (size_t i = 0, n = wanted_bytes(request); i < n; i++)
        buffer_add_char(&body, (char)('a' + i / 64 % 26));
    http_respond(request, 200, "text/plain", &body);
}

static inline void handle_stream(struct http_request *request, void *userdata)
{
    struct seen *seen = userdata;
    char piece[1000];
    memset(piece, 'x', sizeof(piece));
    if (http_respond_stream(request, 200, "text/plain") < 0) {
        http_respond_error(request, 503, "Too many streams.");
        return;
    }
    for (size_t left = wanted_bytes(request); left;) {
        size_t length = MIN(left, sizeof(piece));
        if (http_write(request, piece, length) < 0) {
            atomic_fetch_add(&seen->stopped, 1);
            return;
        }
        left -= length;
    }
    if (http_request_query(request, "abort"))
        http_abort(request);
}

static inline void handle_file(struct http_request *request, void *userdata)
{
    (void)userdata;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    http_respond_file(request, 200, "application/octet-stream", fd, 100000);
}

static inline void handle_wait(struct http_request *request, void *userdata)
{
    struct seen *seen = userdata;
    atomic_fetch_add(&seen->waiting, 1);
    for (unsigned i = 0; i < 6000 && !http_request_cancelled(request); i++)
        sleep_ms(10);
    if (http_request_cancelled(request))
        atomic_fetch_add(&seen->cancelled, 1);
    atomic_fetch_sub(&seen->waiting, 1);
    http_respond_code(request, HTTP_CANCELED, "Nobody waits for this any more.");
}

static inline void handle_sleep(struct http_request *request, void *userdata)
{
    struct seen *seen = userdata;
    const char *ms = http_request_query(request, "ms");
    atomic_fetch_add(&seen->sleeping, 1);
    sleep_ms(ms ? (unsigned)atoi(ms) : 100);
    http_respond_text(request, 200, "text/plain", "slept\n");
}

/* Stands for one that computes, and then waits unless it is a short one. */
static inline void handle_compute(struct http_request *request, void *userdata)
{
    struct seen *seen = userdata;
    atomic_fetch_add(&seen->computing, 1);
    for (unsigned i = 0; i < 6000; i++) {
        int tickets = atomic_load(&seen->tickets);
        if (tickets && atomic_compare_exchange_strong(&seen->tickets, &tickets, tickets - 1))
            break;
        sleep_ms(10);
    }
    atomic_fetch_sub(&seen->computing, 1);
    if (!http_request_query(request, "short")) {
        http_request_computed(request);
        atomic_fetch_add(&seen->computed, 1);
        for (unsigned i = 0; i < 6000 && !atomic_load(&seen->finish); i++)
            sleep_ms(10);
    }
    http_respond_text(request, 200, "text/plain", "computed\n");
}

static inline void handle_echo(struct http_request *request, void *userdata)
{
    struct seen *seen = userdata;
    struct buffer body = {0};
    struct error error = {0};
    atomic_fetch_add(&seen->reading, 1);
    if (http_request_read_all(request, &body, &error) < 0) {
        atomic_fetch_add(&seen->failed, 1);
        http_respond_failure(request, &error);
        buffer_release(&body);
        return;
    }
    http_respond(request, 200, "application/octet-stream", &body);
}

/* Reads as readers of profiles do. */
static inline void handle_sum(struct http_request *request, void *userdata)
{
    struct seen *seen = userdata;
    struct error error = {0};
    struct http_source *body = NULL;
    uint64_t bytes = 0, sum = 0;
    int r = http_source_open(request, 1u << 30, &body, &error);
    while (r == 0) {
        struct source *source = http_source(body);
        r = source_need(source, 1, &error);
        size_t available = source_available(source);
        if (r < 0 || !available)
            break;
        for (size_t i = 0; i < available; i++)
            sum += source_data(source)[i];
        bytes += available;
        source_skip(source, available);
    }
    http_source_close(body);
    if (r < 0) {
        atomic_fetch_add(&seen->failed, 1);
        http_respond_failure(request, &error);
        return;
    }
    char text[64];
    snprintf(text, sizeof(text), "%llu %llu\n", (unsigned long long)bytes, (unsigned long long)sum);
    http_respond_text(request, 200, "text/plain", text);
}

static inline void handle_early(struct http_request *request, void *userdata)
{
    (void)userdata;
    http_respond_code(request, HTTP_INVALID_ARGUMENT, "Not even read: %s\x01.", "\"quoted\"");
}

static inline void handle_nothing(struct http_request *request, void *userdata)
{
    (void)request, (void)userdata;
}

static inline void handle_values(struct http_request *request, void *userdata)
{
    const struct http_identity *identity = http_request_identity(request);
    struct buffer body = {0};
    (void)userdata;
    buffer_printf(&body, "rest=%s tenant=%s token=%s", http_request_rest(request), identity->tenant,
                  identity->token_name ? identity->token_name : "-");
    for (size_t i = 0; i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        buffer_printf(&body, " [%s]=[%s]", name, value);
    }
    http_respond(request, 200, "text/plain", &body);
}

static inline void handle_metrics(struct http_request *request, void *userdata)
{
    struct seen *seen = userdata;
    struct buffer body = {0};
    http_server_metrics(seen->server, &body);
    http_respond(request, 200, "text/plain; version=0.0.4", &body);
}

#define MIB (1u << 20)
static const struct http_route test_routes[] = {
    {"GET", "/hello", HTTP_ROLE_ANY, handle_hello, 0, 0},
    {"GET", "/big", HTTP_ROLE_READ, handle_big, 0, 0},
    {"GET", "/stream", HTTP_ROLE_READ, handle_stream, 0, 0},
    {"GET", "/file", HTTP_ROLE_READ, handle_file, 0, 0},
    {"GET", "/wait", HTTP_ROLE_READ, handle_wait, 0, 0},
    {"GET", "/sleep", HTTP_ROLE_READ, handle_sleep, 0, 0},
    {"GET", "/compute", HTTP_ROLE_READ, handle_compute, 0, HTTP_ROUTE_COMPUTES},
    {"POST", "/echo", HTTP_ROLE_INGEST, handle_echo, 4 * MIB, 0},
    {"PUT", "/echo", HTTP_ROLE_INGEST, handle_echo, 1000, HTTP_ROUTE_PLAIN_ERRORS},
    {"POST", "/sum", HTTP_ROLE_INGEST | HTTP_ROLE_READ, handle_sum, 64 * MIB, 0},
    {"POST", "/early", HTTP_ROLE_INGEST, handle_early, 64 * MIB, 0},
    {"GET", "/nothing", HTTP_ROLE_ANY, handle_nothing, 0, 0},
    {"GET", "/label/*/values", HTTP_ROLE_READ, handle_values, 0, 0},
    {"GET", "/rest/*", HTTP_ROLE_ADMIN, handle_values, 0, 0},
    {"GET", "/metrics", HTTP_ROLE_ANY, handle_metrics, 0, 0},
};
