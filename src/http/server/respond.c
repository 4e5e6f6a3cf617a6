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
#include "io/json_write.h"

#define ERROR_TEXT_LIMIT 2048
#define ANSWER_SMALL_BYTES 4096u /* the limit on requests bounds these */

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

bool respond_has_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->answer_header_count; i++)
        if (!strcasecmp(request->answer_headers[i].name, name))
            return true;
    return false;
}

void respond_each_header(const struct http_request *request, const char *content_type,
                         void (*add)(void *context, const char *name, const char *value),
                         void *context)
{
    const char *origin = request->server->options.cors_origin;
    if (content_type && content_type[0])
        add(context, "Content-Type", content_type);
    add(context, HTTP_SERVER_HEADER, "1");
    /* Content comes from senders, so browsers must not guess that it is a page. */
    add(context, "X-Content-Type-Options", "nosniff");
    if (origin) {
        add(context, "Access-Control-Allow-Origin", origin);
        if (strcmp(origin, "*"))
            add(context, "Vary", "Origin");
    }
    for (size_t i = 0; i < request->answer_header_count; i++)
        add(context, request->answer_headers[i].name, request->answer_headers[i].value);
}

static void add_header(void *response, const char *name, const char *value)
{
    MHD_add_response_header(response, name, value);
}

static ssize_t next_piece(void *userdata, uint64_t position, char *bytes, size_t room);
static void stream_free(void *userdata);

/* The same as libmicrohttpd has it. Takes over what the reply holds. */
static struct MHD_Response *make_response(struct http_request *request, struct reply *reply)
{
    struct MHD_Response *response = NULL;
    size_t length = reply->whole.length;
    switch (reply->kind) {
    case REPLY_WHOLE:
        if (reply->constant) {
            response =
                MHD_create_response_from_buffer(length, reply->whole.data, MHD_RESPMEM_PERSISTENT);
            break;
        }
        response = length ? MHD_create_response_from_buffer_with_free_callback(
                                length, reply->whole.data, free)
                          : MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
        if (!length || !response)
            free(reply->whole.data);
        break;
    case REPLY_FILE:
        response = MHD_create_response_from_fd64(reply->length, reply->fd);
        if (!response)
            close(reply->fd);
        break;
    case REPLY_STREAM:
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64u << 10, next_piece,
                                                     request_ref(request), stream_free);
        if (!response)
            request_unref(request);
        break;
    }
    if (response)
        respond_each_header(request, reply->content_type, add_header, response);
    *reply = (struct reply){0};
    return response;
}

void respond_publish(struct http_request *request, unsigned status, struct reply *reply)
{
    struct MHD_Response *response = NULL;
    uint64_t length = reply->kind == REPLY_WHOLE  ? reply->whole.length
                      : reply->kind == REPLY_FILE ? reply->length
                                                  : 0;
    if (!request->stream && !(response = make_response(request, reply)))
        return;
    pthread_mutex_lock(&request->lock);
    request->answered = true;
    request->discard = !request->rpc.messages; /* of which more may come */
    if (!request->gone) {
        request->status = status;
        request->sent = length;
        request->response = TAKE_PTR(response);
    }
    if (request->stream) {
        request->reply = *reply; /* released with the request */
        request->published = true;
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

/* Where it pays and the client takes it, `body` is a compressed copy from then on; who had the
 * other bytes still has them. */
static bool compressed_copy(struct http_request *request, const char *content_type,
                            struct buffer *body)
{
    const char *accepted = http_request_header(request, "Accept-Encoding");
    size_t least = MAX(request->server->options.compress_from_bytes, (size_t)16);
    if (body->length < least || respond_has_header(request, "Content-Encoding"))
        return false;
    if (!compressible(content_type, body))
        return false;
    http_respond_header(request, "Vary", "Accept-Encoding");
    struct buffer small = {0};
    if (!accepted || !authorize_gzip(accepted) || format_compress_gzip(body, &small) < 0)
        return false;
    if (small.length >= body->length) {
        buffer_release(&small);
        return false;
    }
    *body = small;
    http_respond_header(request, "Content-Encoding", "gzip");
    return true;
}

static void compress(struct http_request *request, const char *content_type, struct buffer *body)
{
    struct buffer large = *body;
    if (compressed_copy(request, content_type, body))
        buffer_release(&large);
}

static const char *keep_type(struct http_request *request, const char *content_type)
{
    return content_type && request->stream ? head_keep(request, content_type) : content_type;
}

bool respond_hold(struct http_request *request, size_t length)
{
    struct http_server *server = request->server;
    if (length <= ANSWER_SMALL_BYTES)
        return true;
    size_t before = atomic_fetch_add(&server->answer_bytes, length);
    if (!before || before + length <= server->options.answer_limit_bytes) {
        request->held += length;
        return true;
    }
    atomic_fetch_sub(&server->answer_bytes, length);
    counters_refused(server, HTTP_REFUSED_OVERLOAD, request->peer, &request->identity, NULL);
    http_respond_header(request, "Retry-After", "1");
    http_respond_error(request, 503,
                       "Too many answers are waiting for their clients; try again later.");
    return false;
}

void http_respond(struct http_request *request, unsigned status, const char *content_type,
                  struct buffer *body)
{
    if (request->answered) {
        buffer_release(body);
        *body = (struct buffer){0};
        return;
    }
    if (request->rpc.protocol) {
        grpc_respond(request, status, body);
        return;
    }
    size_t headers = request->answer_header_count;
    compress(request, content_type, body);
    if (body->length > ANSWER_SMALL_BYTES) {
        size_t with_compression = request->answer_header_count;
        request->answer_header_count = headers; /* those of a refusal */
        if (!respond_hold(request, body->length)) {
            buffer_release(body);
            *body = (struct buffer){0};
            return;
        }
        request->answer_header_count = with_compression;
    }
    struct reply reply = {.kind = REPLY_WHOLE, .content_type = keep_type(request, content_type)};
    reply.whole = (struct buffer){.data = body->data, .length = body->length};
    *body = (struct buffer){0};
    respond_publish(request, status, &reply);
}

void http_respond_constant(struct http_request *request, unsigned status, const char *content_type,
                           const void *bytes, size_t length)
{
    struct buffer body = {0};
    if (request->answered)
        return;
    if (request->rpc.protocol) {
        buffer_add(&body, bytes, length);
        grpc_respond(request, status, &body);
        return;
    }
    /* As large as it is; compressing gives bytes of our own, and far fewer. */
    body = (struct buffer){.data = (char *)bytes, .length = length};
    bool constant = !compressed_copy(request, content_type, &body);
    struct reply reply = {.kind = REPLY_WHOLE,
                          .content_type = keep_type(request, content_type),
                          .whole = body,
                          .constant = constant};
    respond_publish(request, status, &reply);
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
    if (request->rpc.protocol) {
        close(fd);
        grpc_respond_error(request, 501, HTTP_UNIMPLEMENTED, "This answer is not a message.");
        return;
    }
    struct reply reply = {.kind = REPLY_FILE,
                          .content_type = keep_type(request, content_type),
                          .fd = fd,
                          .length = length};
    respond_publish(request, status, &reply);
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
    if (respond_has_header(request, "Content-Encoding") || !content_type ||
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
    if (request->rpc.protocol && !request->rpc.messages)
        return grpc_gather(request, status, content_type);
    if (atomic_fetch_add(&server->stream_count, 1) >= server->options.stream_limit) {
        atomic_fetch_sub(&server->stream_count, 1);
        counters_refused(server, HTTP_REFUSED_OVERLOAD, request->peer, &request->identity, NULL);
        return -EAGAIN;
    }
    request->streaming = true;
    if (!request->rpc.protocol && stream_compressible(request, content_type)) {
        http_respond_header(request, "Content-Encoding", "gzip");
        request->gzip = gzip_stream_new();
    }
    struct reply reply = {.kind = REPLY_STREAM, .content_type = keep_type(request, content_type)};
    respond_publish(request, status, &reply);
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
            if (!request->gone && request->stream)
                counters_refused(request->server, HTTP_REFUSED_SLOW_READER, request->peer,
                                 &request->identity, NULL);
            else if (!request->gone)
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
    if (request->rpc.gathering)
        return grpc_gather_more(request, bytes, length);
    if (!request->streaming)
        return -EINVAL;
    if (request->head_only)
        return 0;
    return request->gzip ? gzip_stream_put(request->gzip, bytes, length, write_out, request)
                         : write_out(request, bytes, length);
}

void respond_end(struct http_request *request)
{
    if (request->rpc.gathering)
        grpc_gather_end(request);
    if (request->rpc.messages)
        grpc_messages_end(request);
    if (request->gzip && !request->head_only)
        gzip_stream_end(request->gzip, write_out, request);
    if (request->streaming)
        atomic_fetch_sub(&request->server->stream_count, 1);
    pthread_mutex_lock(&request->lock);
    request->output_ended = true;
    request_resume(request);
    pthread_mutex_unlock(&request->lock);
}

bool http_message_wait(struct http_request *request, int wait_ms)
{
    int64_t until_ms = http_now_ms() + wait_ms;
    pthread_mutex_lock(&request->lock);
    workers_away(request->server->workers, true);
    while (!request->gone && !http_request_cancelled(request) && http_now_ms() < until_ms)
        condition_wait_until(&request->changed, &request->lock, until_ms * 1000000);
    workers_away(request->server->workers, false);
    bool there = !request->gone && !http_request_cancelled(request);
    pthread_mutex_unlock(&request->lock);
    return there;
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
    if (request->rpc.protocol) {
        grpc_respond_error(request, status, code, message);
        return;
    }
    bool plain = request->route && request->route->flags & HTTP_ROUTE_PLAIN_ERRORS;
    if (plain) {
        text_escape_terminal(&body, message, strlen(message));
        buffer_add_char(&body, '\n');
    } else {
        struct json_writer json = json_writer(&body);
        json_write_object(&json);
        json_member_text(&json, "code", http_code_name(code));
        json_member_text(&json, "message", message);
        json_write_object_end(&json);
        buffer_add_char(&body, '\n');
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
    if (status == 503 && !respond_has_header(request, "Retry-After"))
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
