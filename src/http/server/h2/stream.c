// SPDX-License-Identifier: Apache-2.0
// A stream of HTTP/2 and its request: the head becomes a request like any other's, data goes into
// its pipe, as much as there is room for, and its answer into frames.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "http/server/h2/internal.h"

#define WINDOW_STEP (4u << 10) /* less room isn't worth a frame */
#define DEADLINE_MAX_MS (24 * 3600 * 1000ll)

/* ---- lifecycle ---- */

void h2_load_release(struct h2_load *load)
{
    if (load && atomic_fetch_sub(&load->references, 1) == 1)
        free(load);
}

void h2_load_finish(struct h2_load *load)
{
    atomic_fetch_sub(&load->unfinished, 1);
    h2_load_release(load);
}

struct h2_stream *h2_stream_new(struct h2_connection *connection, int32_t id)
{
    struct http_server *server = connection->loop->server;
    struct h2_stream *stream = memory_zalloc(1, sizeof(*stream));
    stream->connection = connection;
    stream->id = id;
    stream->window = connection->settings_known ? (int64_t)H2_WINDOW_BYTES : H2_WINDOW_UNTOLD;
    stream->request = request_new(server, connection->connection, NULL);
    stream->request->stream = stream;
    stream->request->load = connection->load;
    atomic_fetch_add(&connection->load->references, 1);
    atomic_fetch_add(&connection->load->unfinished, 1);
    stream->next = connection->streams;
    if (stream->next)
        stream->next->previous = stream;
    connection->streams = stream;
    if (!connection->stream_count++)
        connection_set_phase(connection->connection, PHASE_BUSY);
    atomic_fetch_add(&server->h2_streams, 1);
    return stream;
}

static void unlink_woken(struct h2_stream *stream)
{
    struct h2_loop *loop = stream->connection->loop;
    pthread_mutex_lock(&loop->lock);
    if (stream->woken) {
        *(stream->previous_woken ? &stream->previous_woken->next_woken : &loop->first_woken) =
            stream->next_woken;
        *(stream->next_woken ? &stream->next_woken->previous_woken : &loop->last_woken) =
            stream->previous_woken;
        stream->woken = false;
    }
    pthread_mutex_unlock(&loop->lock);
}

void h2_stream_free(struct h2_stream *stream)
{
    struct h2_connection *connection = stream->connection;
    struct http_request *request = stream->request;
    if (stream->begun) {
        request_gone(request, stream->complete && !stream->expired);
    } else {
        request->stream = NULL;
        request_unref(request);
    }
    unlink_woken(stream); /* nobody wakes what is gone */
    if (stream->next)
        stream->next->previous = stream->previous;
    *(stream->previous ? &stream->previous->next : &connection->streams) = stream->next;
    if (!--connection->stream_count)
        connection_set_phase(connection->connection, PHASE_HEAD);
    atomic_fetch_sub(&connection->loop->server->h2_streams, 1);
    free(stream);
}

/* ---- the head ---- */

void h2_stream_field(struct h2_stream *stream, const char *name, size_t name_length,
                     const char *value, size_t value_length)
{
    struct http_request *request = stream->request;
    const struct {
        const char *name;
        const char **member;
    } pseudo[] = {
        {":method", &request->method},
        {":path", &stream->target},
        {":authority", &stream->authority},
        {":scheme", &stream->scheme},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(pseudo); i++)
        if (name_length == strlen(pseudo[i].name) && !memcmp(name, pseudo[i].name, name_length)) {
            *pseudo[i].member = arena_strndup(&request->arena, value, value_length);
            return;
        }
    if (memchr(value, 0, value_length))
        request->problem = "has a NUL in a header";
    head_add_field(request, name, name_length, value, value_length);
}

/* The target as HTTP/1.1's is read: escapes undone, and the query apart from it. */
static void read_target(struct h2_stream *stream)
{
    struct http_request *request = stream->request;
    char *path = arena_strndup(&request->arena, stream->target ? stream->target : "",
                               stream->target ? strlen(stream->target) : 0);
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            request->problem = "has a control character in its address";
    if (strstr(path, "%00"))
        request->problem = "has a control character in its address";
    char *query = strchr(path, '?');
    free(request->connection->query);
    request->connection->query = query ? memory_strdup(query + 1) : NULL;
    if (query)
        *query = 0;
    head_unescape(NULL, NULL, path);
    request->path = path;
}

static void read_head(struct h2_stream *stream, bool ended)
{
    struct http_request *request = stream->request;
    const char *host = http_request_header(request, "Host");
    if (!request->method)
        request->method = "";
    if (stream->head_too_large)
        request->problem = "has headers that are too large";
    if (stream->authority && host && strcasecmp(host, stream->authority))
        request->problem = "has a Host and another :authority";
    if (stream->authority && !host)
        head_add_field(request, "Host", 4, stream->authority, strlen(stream->authority));
    read_target(stream);
    head_read_fields(request);
    if (ended)
        request->content_length = 0;
    else if (!http_request_header(request, "Content-Length"))
        request->content_length = -1;
}

static void read_deadline(struct h2_stream *stream)
{
    const char *timeout = http_request_header(stream->request, "grpc-timeout");
    if (!timeout || !stream->request->rpc.protocol)
        return;
    int64_t wait_ms = grpc_timeout_ms(timeout);
    if (wait_ms >= 0 && wait_ms < DEADLINE_MAX_MS)
        stream->deadline_ms = http_now_ms() + wait_ms;
}

void h2_stream_begin(struct h2_stream *stream, bool ended)
{
    struct http_request *request = stream->request;
    read_head(stream, ended);
    read_deadline(stream);
    request->body.expected = (size_t)MAX(request->content_length, 0);
    stream->begun = true;
    request_link(request);
    head_check(request);
    if (ended)
        h2_stream_end(stream);
}

/* ---- the body ---- */

/* Lets the client send what there is room for. */
static void open_window(struct h2_stream *stream)
{
    struct http_request *request = stream->request;
    pthread_mutex_lock(&request->lock);
    bool open = !request->discard && !request->body_ended && !request->body_error;
    int64_t more = open ? (int64_t)pipe_room(&request->body) - stream->window : 0;
    bool full = open && more <= 0 && stream->window <= 0;
    bool submit = full && !request->aborted && request_await_handler(request);
    pthread_mutex_unlock(&request->lock);
    if (submit)
        workers_submit(request->server->workers, request, WORK_COMING);
    if (!stream->connection->settings_known || more < (int64_t)WINDOW_STEP)
        return;
    if (!nghttp2_submit_window_update(stream->connection->session, NGHTTP2_FLAG_NONE, stream->id,
                                      (int32_t)more))
        stream->window += more;
}

/* gRPC says how long the message is; nobody says how long the body is. */
static void expect(struct http_request *request, const uint8_t *bytes, size_t length)
{
    if (!request->rpc.protocol || request->received || request->body.expected ||
        length < GRPC_PREFIX_BYTES)
        return;
    request->body.expected = (size_t)grpc_prefix_length(bytes) + GRPC_PREFIX_BYTES;
}

/* With the lock held. A client that waits for an answer to its first message doesn't end its body;
 * one that hasn't begun a message costs no thread. */
static bool begins_messages(struct http_request *request)
{
    return request->route->flags & HTTP_ROUTE_MESSAGES && request->received >= GRPC_PREFIX_BYTES &&
           !request->aborted && request_await_handler(request);
}

void h2_stream_data(struct h2_stream *stream, const void *bytes, size_t length)
{
    struct http_request *request = stream->request;
    bool lost = false, submit = false;
    stream->window -= (int64_t)length;
    pthread_mutex_lock(&request->lock);
    if (!request->discard && request->received + length > route_body_limit(request->route))
        request_too_large(request);
    if (request->discard) {
        request->discarded += length;
    } else {
        expect(request, bytes, length);
        lost = !pipe_put_all(&request->body, bytes, length);
        pthread_cond_broadcast(&request->changed);
    }
    request->received += length;
    if (!lost && !request->discard)
        submit = begins_messages(request);
    pthread_mutex_unlock(&request->lock);
    if (submit)
        workers_submit(request->server->workers, request, WORK_COMING);
    if (lost)
        nghttp2_submit_rst_stream(stream->connection->session, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_ENHANCE_YOUR_CALM);
    else
        open_window(stream);
}

void h2_stream_end(struct h2_stream *stream)
{
    struct http_request *request = stream->request;
    if (!stream->begun)
        return;
    pthread_mutex_lock(&request->lock);
    request->body_ended = true;
    pthread_cond_broadcast(&request->changed);
    bool submit = !request->published && !request->discard && !request->aborted &&
                  !stream->expired && request_await_handler(request);
    pthread_mutex_unlock(&request->lock);
    if (submit)
        request_submit_whole(request);
}

/* ---- the answer ---- */

#define FIELDS_MAX 64

struct fields {
    struct arena arena;
    nghttp2_nv list[FIELDS_MAX];
    size_t count;
};

static void add_field(void *context, const char *name, const char *value)
{
    struct fields *fields = context;
    if (fields->count == FIELDS_MAX || !strcasecmp(name, "Connection"))
        return;
    size_t name_length = strlen(name), value_length = strlen(value);
    fields->list[fields->count++] = (nghttp2_nv){
        .name = (uint8_t *)arena_strndup(&fields->arena, name, name_length),
        .namelen = name_length,
        .value = (uint8_t *)arena_strndup(&fields->arena, value, value_length),
        .valuelen = value_length,
    };
}

static void add_date(struct fields *fields)
{
    char text[64];
    struct tm parts;
    time_t now = time(NULL);
    gmtime_r(&now, &parts);
    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    add_field(fields, "Date", text);
}

static void submit_trailers(struct h2_stream *stream)
{
    struct fields fields = {0};
    grpc_each_trailer(stream->request, add_field, &fields);
    nghttp2_submit_trailer(stream->connection->session, stream->id, fields.list, fields.count);
    arena_release(&fields.arena);
}

/* With the lock held: what comes next of the answer; 0 at the end, -EAGAIN when there is nothing
 * yet, or -EIO. */
static ssize_t next_bytes(struct h2_stream *stream, uint8_t *bytes, size_t room)
{
    struct http_request *request = stream->request;
    struct reply *reply = &request->reply;
    ssize_t got = 0;
    switch (reply->kind) {
    case REPLY_WHOLE:
        got = (ssize_t)MIN(room, reply->whole.length - stream->position);
        if (got)
            memcpy(bytes, reply->whole.data + stream->position, (size_t)got);
        break;
    case REPLY_FILE:
        got = (ssize_t)MIN((uint64_t)room, reply->length - stream->position);
        if (got)
            got = pread(reply->fd, bytes, (size_t)got, (off_t)stream->position);
        if (got < 0 || (!got && stream->position < reply->length))
            return -EIO;
        break;
    case REPLY_STREAM:
        got = (ssize_t)pipe_take(&request->output, bytes, room);
        request->sent += (uint64_t)got;
        if (got)
            pthread_cond_broadcast(&request->changed);
        else if (request->output_failed)
            return -EIO;
        else if (!request->output_ended)
            return -EAGAIN;
        break;
    }
    stream->position += (size_t)got;
    return got;
}

static bool at_end(const struct h2_stream *stream)
{
    const struct reply *reply = &stream->request->reply;
    return reply->kind == REPLY_WHOLE  ? stream->position == reply->whole.length
           : reply->kind == REPLY_FILE ? stream->position == reply->length
                                       : false;
}

static ssize_t give_data(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
    struct h2_stream *stream = source->ptr;
    struct h2_connection *connection = userdata;
    (void)session, (void)id;
    pthread_mutex_lock(&stream->request->lock);
    ssize_t got = next_bytes(stream, bytes, room);
    bool ended = !got || (got > 0 && at_end(stream));
    pthread_mutex_unlock(&stream->request->lock);
    if (got == -EAGAIN) {
        stream->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (got < 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    stream->taken += (uint64_t)got;
    h2_frames_sent(&connection->frames, (size_t)got);
    if (ended) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (stream->request->rpc.protocol == GRPC_HTTP2) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            submit_trailers(stream);
        }
    }
    return got;
}

static bool has_body(const struct http_request *request)
{
    const struct reply *reply = &request->reply;
    if (request->head_only || request->status == 204 || request->status == 304)
        return false;
    return reply->kind == REPLY_STREAM || reply->length || reply->whole.length;
}

static void submit_answer(struct h2_stream *stream)
{
    struct http_request *request = stream->request;
    struct reply *reply = &request->reply;
    struct fields fields = {0};
    char number[32];
    bool grpc = request->rpc.protocol == GRPC_HTTP2, body = has_body(request);
    snprintf(number, sizeof(number), "%u", request->rpc.protocol ? 200 : request->status);
    add_field(&fields, ":status", number);
    add_date(&fields);
    respond_each_header(request, reply->content_type, add_field, &fields);
    if (!grpc && reply->kind != REPLY_STREAM && request->status != 204 && request->status != 304) {
        snprintf(
            number, sizeof(number), "%llu",
            (unsigned long long)(reply->kind == REPLY_FILE ? reply->length : reply->whole.length));
        add_field(&fields, "Content-Length", number);
    }
    if (grpc && !body)
        grpc_each_trailer(request, add_field, &fields);
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = give_data};
    stream->responded = true;
    stream->rate_ms = 0;
    nghttp2_submit_response(stream->connection->session, stream->id, fields.list, fields.count,
                            body ? &provider : NULL);
    arena_release(&fields.arena);
}

void h2_stream_process(struct h2_stream *stream)
{
    struct http_request *request = stream->request;
    if (!stream->begun)
        return;
    pthread_mutex_lock(&request->lock);
    bool answer = request->published && !stream->responded;
    if (answer)
        request->queued = true;
    pthread_mutex_unlock(&request->lock);
    if (answer) {
        submit_answer(stream);
    } else if (stream->deferred) {
        stream->deferred = false;
        nghttp2_session_resume_data(stream->connection->session, stream->id);
    }
    if (!stream->responded || request->rpc.messages)
        open_window(stream);
}

/* ---- time ---- */

/* The client has its answer, and the handler, if there is one, works for nobody. */
static void expire(struct h2_stream *stream)
{
    struct http_request *request = stream->request;
    struct fields fields = {0};
    pthread_mutex_lock(&request->lock);
    bool answered = request->published;
    if (!answered) {
        stream->expired = stream->responded = true;
        request->queued = true;
        request->status = 504;
        request->discard = true;
        if (!request->body_ended && !request->body_error)
            request->body_error = -ETIME;
        atomic_store(&request->cancelled, true);
        pthread_cond_broadcast(&request->changed);
    }
    pthread_mutex_unlock(&request->lock);
    stream->deadline_ms = 0;
    if (answered)
        return;
    char number[16];
    snprintf(number, sizeof(number), "%u", grpc_status_of(HTTP_DEADLINE_EXCEEDED));
    add_field(&fields, ":status", "200");
    add_field(&fields, "content-type", request->rpc.content_type);
    add_field(&fields, "grpc-status", number);
    add_field(&fields, "grpc-message", "The deadline of the call has passed.");
    nghttp2_submit_response(stream->connection->session, stream->id, fields.list, fields.count,
                            NULL);
    arena_release(&fields.arena);
}

static void end_slow_head(struct h2_connection *connection)
{
    h2_connection_blame(connection, HTTP_REFUSED_SLOW_HEAD, "sent headers too slowly");
    nghttp2_session_terminate_session(connection->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* A body that came too slowly. */
static void end_slow_body(struct h2_stream *stream)
{
    struct http_request *request = stream->request;
    pthread_mutex_lock(&request->lock);
    bool submitted = request->submitted;
    if (submitted && !request->body_error)
        request->body_error = -ETIME;
    request->discard = true;
    pthread_cond_broadcast(&request->changed);
    pthread_mutex_unlock(&request->lock);
    if (submitted)
        counters_refused(request->server, HTTP_REFUSED_SLOW_BODY, request->peer, &request->identity,
                         NULL);
    else
        request_refuse(request, HTTP_REFUSED_SLOW_BODY, 408,
                       "The body of the request arrived too slowly.");
}

static void end_slow_reader(struct h2_stream *stream)
{
    counters_refused(stream->request->server, HTTP_REFUSED_SLOW_READER, stream->request->peer,
                     &stream->request->identity, NULL);
    nghttp2_submit_rst_stream(stream->connection->session, NGHTTP2_FLAG_NONE, stream->id,
                              NGHTTP2_CANCEL);
}

/* Bytes since the window of rates began are enough, or it is not the client's turn. */
static void check_rate(struct h2_stream *stream, bool sends, uint64_t bytes, int64_t now_ms)
{
    const struct http_server_options *options = &stream->request->server->options;
    if (!stream->rate_ms || stream->rate_sends != sends) {
        stream->rate_ms = now_ms;
        stream->rate_bytes = bytes;
        stream->rate_sends = sends;
        return;
    }
    int64_t passed_ms = now_ms - stream->rate_ms;
    if (passed_ms < (sends ? options->stream_wait_ms : options->rate_window_ms))
        return;
    if (bytes - stream->rate_bytes < (uint64_t)passed_ms * options->minimum_rate_bytes / 1000) {
        if (sends)
            end_slow_reader(stream);
        else
            end_slow_body(stream);
    }
    stream->rate_ms = now_ms;
    stream->rate_bytes = bytes;
}

void h2_stream_check(struct h2_stream *stream, int64_t now_ms)
{
    struct http_request *request = stream->request;
    if (!stream->begun) {
        /* nghttp2 takes no other frames before the head has ended: all of it has to come soon. */
        if (!stream->rate_ms)
            stream->rate_ms = now_ms;
        else if (now_ms - stream->rate_ms > request->server->options.rate_window_ms)
            end_slow_head(stream->connection);
        return;
    }
    if (stream->deadline_ms && now_ms >= stream->deadline_ms)
        expire(stream);
    pthread_mutex_lock(&request->lock);
    bool messages = request->route && request->route->flags & HTTP_ROUTE_MESSAGES;
    bool whole = request->body.expected && request->received >= request->body.expected;
    bool receives = !request->body_ended && !request->discard && !request->body_error &&
                    stream->window > 0 && (!stream->responded || request->rpc.messages) &&
                    /* After a message it is our turn until the handler wants the next. */
                    (!messages || !whole || request->awaits_body);
    bool sends = stream->responded && !stream->complete && !stream->deferred && !receives;
    uint64_t received = request->received;
    pthread_mutex_unlock(&request->lock);
    if (receives || sends)
        check_rate(stream, sends, sends ? stream->taken : received, now_ms);
    else
        stream->rate_ms = 0;
}
