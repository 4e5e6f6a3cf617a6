// SPDX-License-Identifier: Apache-2.0
// Answers: see request.h. An answer is published once; libmicrohttpd's thread takes it from there.

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/condition.h"
#include "base/text.h"
#include "format/format.h"
#include "http/access/authorize.h"
#include "http/server/internal.h"
#include "http/status.h"
#include "io/gzip.h"

#define ERROR_TEXT_LIMIT 2048

void http_respond_header(struct http_request *request, const char *name, const char *value)
{
    struct buffer clean = {0};
    for (const char *at = value; *at; at++)
        if ((uint8_t)*at >= ' ' && *at != 0x7f)
            buffer_add_char(&clean, *at);
    array_reserve(request->answer_headers, request->answer_header_room,
                  request->answer_header_count + 1);
    request->answer_headers[request->answer_header_count++] =
        (struct http_field){arena_strndup(&request->arena, name, strlen(name)),
                            arena_strndup(&request->arena, clean.data, clean.length)};
    buffer_release(&clean);
}

static bool has_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->answer_header_count; i++)
        if (!strcasecmp(request->answer_headers[i].name, name))
            return true;
    return false;
}

static void add_headers(struct http_request *request, struct MHD_Response *response,
                        const char *content_type)
{
    const char *origin = request->server->options.cors_origin;
    if (content_type && content_type[0])
        MHD_add_response_header(response, "Content-Type", content_type);
    MHD_add_response_header(response, HTTP_SERVER_HEADER, "1");
    /* What is shown in a browser came from senders: it is never guessed to be a page. */
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (origin) {
        MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
        if (strcmp(origin, "*"))
            MHD_add_response_header(response, "Vary", "Origin");
    }
    for (size_t i = 0; i < request->answer_header_count; i++)
        MHD_add_response_header(response, request->answer_headers[i].name,
                                request->answer_headers[i].value);
}

/* Gives the answer to the connection, and wakes it up. */
static void publish(struct http_request *request, unsigned status, const char *content_type,
                    struct MHD_Response *response, uint64_t length)
{
    if (!response)
        return;
    add_headers(request, response, content_type);
    pthread_mutex_lock(&request->lock);
    request->answered = true;
    request->discard = true;
    if (!request->gone) {
        request->status = status;
        request->sent = length;
        request->response = TAKE_PTR(response);
    }
    request_resume(request);
    pthread_mutex_unlock(&request->lock);
    if (response)
        MHD_destroy_response(response);
}

/* Compressing what is compressed already, or is in a picture format, is time lost. */
static bool compressible(const char *content_type, const struct buffer *body)
{
    const uint8_t *bytes = (const uint8_t *)body->data;
    if (bytes[0] == 0x1f && bytes[1] == 0x8b)
        return false;
    if (!memcmp(bytes, "\x28\xb5\x2f\xfd", 4))
        return false;
    return !content_type || strncmp(content_type, "image/", 6) || strstr(content_type, "svg");
}

static void compress(struct http_request *request, const char *content_type, struct buffer *body)
{
    const char *accepted = http_request_header(request, "Accept-Encoding");
    size_t least = MAX(request->server->options.compress_from_bytes, (size_t)16);
    if (body->length < least || has_header(request, "Content-Encoding"))
        return;
    if (!compressible(content_type, body))
        return;
    http_respond_header(request, "Vary", "Accept-Encoding");
    struct buffer small = {0};
    if (!accepted || !authorize_gzip(accepted) || format_compress_gzip(body, &small) < 0)
        return;
    if (small.length < body->length) {
        struct buffer large = *body;
        *body = small;
        small = large;
        http_respond_header(request, "Content-Encoding", "gzip");
    }
    buffer_release(&small);
}

void http_respond(struct http_request *request, unsigned status, const char *content_type,
                  struct buffer *body)
{
    if (request->answered) {
        buffer_release(body);
        *body = (struct buffer){0};
        return;
    }
    compress(request, content_type, body);
    size_t length = body->length;
    struct MHD_Response *response =
        length ? MHD_create_response_from_buffer_with_free_callback(length, body->data, free)
               : MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
    if (!length || !response)
        free(body->data);
    *body = (struct buffer){0};
    publish(request, status, content_type, response, length);
}

void http_respond_text(struct http_request *request, unsigned status, const char *content_type,
                       const char *text)
{
    struct buffer body = {0};
    buffer_add_text(&body, text);
    http_respond(request, status, content_type, &body);
}

void http_respond_file(struct http_request *request, unsigned status, const char *content_type,
                       int fd, uint64_t length)
{
    if (request->answered) {
        close(fd);
        return;
    }
    struct MHD_Response *response = MHD_create_response_from_fd64(length, fd);
    if (!response)
        close(fd);
    publish(request, status, content_type, response, length);
}

/* ---- streams ---- */

/* On libmicrohttpd's thread, when the client takes more. */
static ssize_t next_piece(void *userdata, uint64_t position, char *bytes, size_t room)
{
    struct http_request *request = userdata;
    (void)position;
    pthread_mutex_lock(&request->lock);
    ssize_t got = (ssize_t)pipe_take(&request->output, bytes, room);
    if (got) {
        request->sent += (uint64_t)got;
        connection_set_phase(request->connection, PHASE_SENDING);
        pthread_cond_broadcast(&request->changed);
    } else if (request->output_failed) {
        got = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (request->output_ended) {
        got = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        request_suspend(request, PHASE_BUSY);
    }
    pthread_mutex_unlock(&request->lock);
    return got;
}

static void stream_free(void *userdata)
{
    request_unref(userdata);
}

static bool stream_compressible(struct http_request *request, const char *content_type)
{
    const char *accepted = http_request_header(request, "Accept-Encoding");
    if (has_header(request, "Content-Encoding") || !content_type ||
        !strcmp(content_type, "application/octet-stream") ||
        (!strncmp(content_type, "image/", 6) && !strstr(content_type, "svg")))
        return false;
    http_respond_header(request, "Vary", "Accept-Encoding");
    return accepted && authorize_gzip(accepted);
}

int http_respond_stream(struct http_request *request, unsigned status, const char *content_type)
{
    struct http_server *server = request->server;
    if (request->answered)
        return 0;
    if (atomic_fetch_add(&server->stream_count, 1) >= server->options.stream_limit) {
        atomic_fetch_sub(&server->stream_count, 1);
        counters_refused(server, HTTP_REFUSED_OVERLOAD, request->peer, &request->identity, NULL);
        return -EAGAIN;
    }
    request->streaming = true;
    if (stream_compressible(request, content_type)) {
        http_respond_header(request, "Content-Encoding", "gzip");
        request->gzip = gzip_stream_new();
    }
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 64u << 10, next_piece, request_ref(request), stream_free);
    if (!response)
        request_unref(request);
    publish(request, status, content_type, response, 0);
    return 0;
}

/* With the lock held. False when the client has been waited for long enough. */
static bool wait_for_reader(struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    int64_t began_ms = http_now_ms();
    int64_t granted_ms = options->stream_wait_ms +
                         (int64_t)(request->sent * 1000 / options->stream_rate_bytes) -
                         request->waited_ms;
    int64_t until_ms = began_ms + MAX(granted_ms, 0);
    workers_away(request->server->workers, true);
    condition_wait_until(&request->changed, &request->lock, until_ms * 1000000);
    workers_away(request->server->workers, false);
    /* By our own clock: where another one is put before the system's, waits may end at once. */
    int64_t now_ms = http_now_ms();
    request->waited_ms += now_ms - began_ms;
    return now_ms < until_ms;
}

/* Into the pipe, as it is to be sent. */
static int write_out(void *context, const void *bytes, size_t length)
{
    struct http_request *request = context;
    int r = 0;
    pthread_mutex_lock(&request->lock);
    while (length) {
        if (request->gone || request->aborted || request->output_failed ||
            http_request_cancelled(request)) {
            request->output_failed = true;
            request_resume(request);
            r = -ECANCELED;
            break;
        }
        size_t taken = pipe_put(&request->output, bytes, length);
        bytes = (const char *)bytes + taken;
        length -= taken;
        /* A wake-up per piece and not per word; the end of the handler sends the rest. */
        if (length || request->output.length >= PIPE_FIRST_BYTES)
            request_resume(request);
        if (length && !wait_for_reader(request)) {
            if (!request->gone)
                connection_cut(request->connection, HTTP_REFUSED_SLOW_READER, &request->identity,
                               NULL);
            request->output_failed = true;
        }
    }
    pthread_mutex_unlock(&request->lock);
    return r;
}

int http_write(struct http_request *request, const void *bytes, size_t length)
{
    if (!request->streaming)
        return -EINVAL;
    if (request->head_only)
        return 0;
    return request->gzip ? gzip_stream_put(request->gzip, bytes, length, write_out, request)
                         : write_out(request, bytes, length);
}

void respond_end(struct http_request *request)
{
    if (request->gzip && !request->head_only)
        gzip_stream_end(request->gzip, write_out, request);
    if (request->streaming)
        atomic_fetch_sub(&request->server->stream_count, 1);
    pthread_mutex_lock(&request->lock);
    request->output_ended = true;
    request_resume(request);
    pthread_mutex_unlock(&request->lock);
}

void http_abort(struct http_request *request)
{
    pthread_mutex_lock(&request->lock);
    request->output_failed = true;
    request_resume(request);
    pthread_mutex_unlock(&request->lock);
}

/* ---- errors ---- */

static void respond_message(struct http_request *request, unsigned status, enum http_code code,
                            const char *message)
{
    struct buffer body = {0};
    bool plain = request->route && request->route->flags & HTTP_ROUTE_PLAIN_ERRORS;
    if (plain) {
        text_escape_terminal(&body, message, strlen(message));
        buffer_add_char(&body, '\n');
    } else {
        buffer_printf(&body, "{\"code\":\"%s\",\"message\":", http_code_name(code));
        text_escape_json(&body, message, strlen(message));
        buffer_add_text(&body, "}\n");
    }
    http_respond(request, status, plain ? "text/plain; charset=utf-8" : "application/json", &body);
}

void http_respond_error(struct http_request *request, unsigned status, const char *format, ...)
{
    char message[ERROR_TEXT_LIMIT];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    respond_message(request, status, http_status_code(status), message);
}

void http_respond_code(struct http_request *request, enum http_code code, const char *format, ...)
{
    char message[ERROR_TEXT_LIMIT];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    respond_message(request, http_code_status(code), code, message);
}

void http_respond_failure(struct http_request *request, const struct error *error)
{
    unsigned status = http_status_of_error(error->code);
    if (status == 503 && !has_header(request, "Retry-After"))
        http_respond_header(request, "Retry-After", "5");
    /* "the body ..." is what readers of formats call what they read, wherever it stands. */
    char message[ERROR_TEXT_BYTES];
    snprintf(message, sizeof(message), "%s", error->text);
    if (!strncmp(message, "the ", 4))
        message[0] = 'T';
    respond_message(request, status, http_status_code(status), message);
}

void request_refuse(struct http_request *request, enum http_refusal reason, unsigned status,
                    const char *format, ...)
{
    char message[ERROR_TEXT_LIMIT];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    counters_refused(request->server, reason, request->peer, &request->identity, request);
    respond_message(request, status, http_status_code(status), message);
}
