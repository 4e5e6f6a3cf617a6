// SPDX-License-Identifier: Apache-2.0
// Requests: their life between libmicrohttpd's threads and a worker's, what handlers ask of them,
// and their bodies. See request.h and internal.h.

#include "http/server/request.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "http/server/internal.h"
#include "io/gzip.h"

struct http_request *request_new(struct http_server *server, struct connection *connection,
                                 struct MHD_Connection *mhd)
{
    struct http_request *request = memory_zalloc(1, sizeof(*request));
    atomic_init(&request->references, 1);
    request->server = server;
    request->connection = connection;
    request->mhd = mhd;
    request->began_us = http_now_us();
    request->peer = arena_strndup(&request->arena, connection->peer, strlen(connection->peer));
    request->body =
        (struct pipe){.budget = &server->budget, .limit = server->options.body_buffer_bytes};
    request->output = request->body;
    pthread_mutex_init(&request->lock, NULL);
    pthread_cond_init(&request->changed, NULL);
    return request;
}

struct http_request *request_ref(struct http_request *request)
{
    atomic_fetch_add(&request->references, 1);
    return request;
}

void request_unref(struct http_request *request)
{
    if (!request || atomic_fetch_sub(&request->references, 1) > 1)
        return;
    pipe_release(&request->body);
    pipe_release(&request->output);
    grpc_release_state(request);
    if (request->load)
        h2_load_finish(request->load);
    atomic_fetch_sub(&request->server->answer_bytes, request->held);
    if (!request->reply.constant)
        buffer_release(&request->reply.whole);
    if (request->reply.kind == REPLY_FILE)
        close(request->reply.fd);
    pthread_mutex_destroy(&request->lock);
    pthread_cond_destroy(&request->changed);
    arena_release(&request->arena);
    free(request->headers);
    free(request->query);
    free(request->answer_headers);
    gzip_stream_free(request->gzip);
    explicit_bzero(&request->token, sizeof(request->token));
    free(request);
}

void request_suspend(struct http_request *request, enum connection_phase phase)
{
    connection_set_phase(request->connection, phase);
    request->suspended = true;
    MHD_suspend_connection(request->mhd);
}

void request_resume(struct http_request *request)
{
    if (request->stream) {
        if (!request->gone)
            h2_wake(request);
    } else if (request->suspended && !request->gone) {
        request->suspended = false;
        MHD_resume_connection(request->mhd);
    }
}

void request_abort(struct http_request *request)
{
    atomic_store(&request->cancelled, true);
    pthread_mutex_lock(&request->lock);
    request->aborted = true;
    if (!request->body_ended && !request->body_error)
        request->body_error = -ESHUTDOWN;
    pthread_cond_broadcast(&request->changed);
    pthread_mutex_unlock(&request->lock);
}

/* Of HTTP/2 a client can cancel any number of requests cheaply; those that no worker has taken yet
 * end here. */
static bool was_cancelled(struct http_request *request)
{
    pthread_mutex_lock(&request->lock);
    bool cancelled = request->stream && request->gone;
    pthread_mutex_unlock(&request->lock);
    return cancelled;
}

void request_run(struct http_request *request)
{
    if (!was_cancelled(request))
        request->route->handle(request, request->server->options.userdata);
    if (!request->answered)
        http_respond_error(request, 500, "The server produced no answer to this request.");
    respond_end(request);
    request_unref(request);
}

/* ---- what was asked ---- */

const struct http_route *http_request_route(const struct http_request *request)
{
    return request->route;
}

const char *http_request_method(const struct http_request *request)
{
    return request->method;
}

const char *http_request_path(const struct http_request *request)
{
    return request->path;
}

const char *http_request_rest(const struct http_request *request)
{
    return request->rest;
}

const char *http_request_peer(const struct http_request *request)
{
    return request->peer;
}

const struct http_identity *http_request_identity(const struct http_request *request)
{
    return &request->identity;
}

const char *http_request_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (!strcasecmp(request->headers[i].name, name))
            return request->headers[i].value;
    return NULL;
}

const char *http_request_query(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->query_count; i++)
        if (!strcmp(request->query[i].name, name))
            return request->query[i].value;
    return NULL;
}

size_t http_request_query_count(const struct http_request *request)
{
    return request->query_count;
}

void http_request_query_at(const struct http_request *request, size_t index, const char **ret_name,
                           const char **ret_value)
{
    *ret_name = request->query[index].name;
    *ret_value = request->query[index].value;
}

int64_t http_request_content_length(const struct http_request *request)
{
    struct http_request *own = (struct http_request *)request;
    if (request->content_length >= 0 || !request->stream)
        return request->content_length;
    /* gRPC's clients don't say, but the first message does; and most bodies have come before their
     * handler runs. */
    pthread_mutex_lock(&own->lock);
    int64_t length = request->body_ended      ? (int64_t)request->received
                     : request->body.expected ? (int64_t)request->body.expected
                                              : -1;
    pthread_mutex_unlock(&own->lock);
    return length;
}

uint64_t http_request_received(const struct http_request *request)
{
    return request->received;
}

bool http_request_is_type(const struct http_request *request, const char *type)
{
    const char *header = http_request_header(request, "Content-Type");
    size_t length = header ? strcspn(header, "; \t") : 0;
    return header && length == strlen(type) && !strncasecmp(header, type, length);
}

bool http_request_cancelled(const struct http_request *request)
{
    return atomic_load_explicit(&request->cancelled, memory_order_relaxed);
}

const atomic_bool *http_request_cancel_flag(const struct http_request *request)
{
    return &request->cancelled;
}

void http_request_computed(struct http_request *request)
{
    workers_computed(request->server->workers);
}

/* ---- the body ---- */

static int body_failure(struct http_request *request, int code, struct error *error)
{
    switch (code) {
    case -E2BIG:
        return error_set(error, code, "The body is larger than the limit of %zu bytes for %s.",
                         route_body_limit(request->route), request->route->pattern);
    case -ESHUTDOWN:
        return error_set(error, code, "The server is shutting down.");
    case -EBADMSG:
        return error_set(error, code, "The body's chunks are malformed.");
    default:
        return error_set(error, code,
                         "%s disconnected, or was too slow, after %llu bytes of its body.",
                         request->peer, (unsigned long long)request->received);
    }
}

ssize_t http_request_read(struct http_request *request, void *bytes, size_t room,
                          struct error *error)
{
    return request->rpc.protocol ? grpc_read_body(request, bytes, room, error)
                                 : request_read_raw(request, bytes, room, error);
}

/* With the lock held. A client that has a part of our answer is given its time to think; its thread
 * is made up for by another meanwhile, as in http_write(). */
static void wait_for_body(struct http_request *request)
{
    bool answers = request->rpc.messages;
    if (answers)
        workers_away(request->server->workers, true);
    pthread_cond_wait(&request->changed, &request->lock);
    if (answers)
        workers_away(request->server->workers, false);
}

ssize_t request_read_raw(struct http_request *request, void *bytes, size_t room,
                         struct error *error)
{
    pthread_mutex_lock(&request->lock);
    while (!request->body.length && !request->body_ended && !request->body_error && room) {
        request->awaits_body = true;
        wait_for_body(request);
    }
    request->awaits_body = false;
    ssize_t got;
    if (request->body_error) {
        got = body_failure(request, request->body_error, error);
    } else {
        got = (ssize_t)pipe_take(&request->body, bytes, room);
        /* Held up since the pipe was full; half of it is worth waking somebody for. */
        if (!request->body_ended && request->body.length <= request->body.capacity / 2)
            request_resume(request);
    }
    pthread_mutex_unlock(&request->lock);
    return got;
}

int http_request_read_all(struct http_request *request, struct buffer *body, struct error *error)
{
    for (;;) {
        ssize_t got = http_request_read(request, buffer_reserve(body, 65536), 65536, error);
        if (got <= 0)
            return (int)got;
        body->length += (size_t)got;
    }
}

struct http_source {
    struct http_request *request;
    struct source outer; /* as Content-Encoding says */
    struct source inner; /* a compressed file in it; open when there is one */
    bool has_inner;
};

static ssize_t read_body(void *userdata, void *bytes, size_t room, struct error *error)
{
    return http_request_read(userdata, bytes, room, error);
}

static ssize_t read_outer(void *userdata, void *bytes, size_t room, struct error *error)
{
    struct source *outer = userdata;
    int r = source_need(outer, 1, error);
    if (r < 0)
        return r;
    size_t count = MIN(source_available(outer), room);
    memcpy(bytes, source_data(outer), count);
    source_skip(outer, count);
    return (ssize_t)count;
}

/* The body where it lies, when all of it has come already, as most have before their handler runs.
 * It stays until the request goes. */
static const void *whole_body(struct http_request *request, size_t *ret_length)
{
    const void *data = NULL;
    pthread_mutex_lock(&request->lock);
    if (request->body_ended && !request->body_error)
        data = pipe_take_whole(&request->body, ret_length);
    pthread_mutex_unlock(&request->lock);
    return data;
}

static const char *content_coding(const struct http_request *request)
{
    const char *coding = http_request_header(request, "Content-Encoding");
    return coding && coding[0] && strcasecmp(coding, "identity") ? coding : NULL;
}

int http_source_open(struct http_request *request, uint64_t expansion_limit,
                     struct http_source **ret_source, struct error *error)
{
    const char *coding = NULL;
    if (request->rpc.protocol) {
        int opened = grpc_open_body(request, &coding, error);
        if (opened < 0)
            return opened;
    } else {
        coding = content_coding(request);
    }
    if (coding && strcasecmp(coding, "gzip") && strcasecmp(coding, "x-gzip") &&
        strcasecmp(coding, "zstd"))
        return error_set(error, -ENOTSUP, "The encoding %s is not supported: send gzip or zstd.",
                         coding);
    struct http_source *source = memory_zalloc(1, sizeof(*source));
    source->request = request;
    size_t length = 0;
    const void *whole = whole_body(request, &length);
    int r = whole ? source_open_memory(&source->outer, "the body", whole, length, expansion_limit,
                                       error)
                  : source_open_reader(&source->outer, "the body", read_body, request,
                                       expansion_limit, error);
    if (r == 0 && coding)
        r = source_need(&source->outer, SOURCE_MAGIC_BYTES, error);
    if (r == 0 && coding && source_is_compressed(&source->outer)) {
        r = source_open_reader(&source->inner, "the body", read_outer, &source->outer,
                               expansion_limit, error);
        source->has_inner = r == 0;
    }
    if (r < 0) {
        http_source_close(source);
        return r;
    }
    *ret_source = source;
    return 0;
}

struct source *http_source(struct http_source *source)
{
    return source->has_inner ? &source->inner : &source->outer;
}

void http_source_close(struct http_source *source)
{
    if (!source)
        return;
    source_release(&source->inner);
    source_release(&source->outer);
    free(source);
}
