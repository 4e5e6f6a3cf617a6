// SPDX-License-Identifier: Apache-2.0
// What nghttp2 calls, and with which settings it runs. See internal.h.

#include <errno.h>

#include "base/log.h"
#include "http/server/h2/internal.h"

#define ACKS_MAX 100     /* answers to pings and settings that may wait */
#define SETTINGS_MAX 16  /* in one frame */
#define LIST_OVERHEAD 32 /* what RFC 7541 adds for each header */

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

/* ---- heads ---- */

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
    struct h2_connection *connection = userdata;
    int32_t id = frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    /* Requests that were cancelled count until their handlers have ended. */
    if (atomic_load(&connection->load->unfinished) >= H2_STREAMS_MAX) {
        counters_refused(connection->loop->server, HTTP_REFUSED_OVERLOAD,
                         connection->connection->peer, NULL, NULL);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    nghttp2_session_set_stream_user_data(session, id, h2_stream_new(connection, id));
    return 0;
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                       void *userdata)
{
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    const struct h2_connection *connection = userdata;
    (void)flags;
    if (!stream || stream->begun || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    stream->head_bytes += name_length + value_length + LIST_OVERHEAD;
    if (stream->head_bytes > connection->loop->server->options.head_limit_bytes)
        stream->head_too_large = true;
    else
        h2_stream_field(stream, (const char *)name, name_length, (const char *)value, value_length);
    return 0;
}

/* ---- frames ---- */

/* From now on the windows of streams are ours, and so may that of the connection be. */
static void settings_known(struct h2_connection *connection)
{
    if (connection->settings_known)
        return;
    connection->settings_known = true;
    for (struct h2_stream *at = connection->streams; at; at = at->next)
        at->window -= H2_WINDOW_UNTOLD - (int64_t)H2_WINDOW_BYTES;
    /* Those that had sent more than that wait for us now. */
    for (struct h2_stream *at = connection->streams; at; at = at->next)
        h2_stream_process(at);
    nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                          H2_CONNECTION_WINDOW);
}

static int take_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK)
            settings_known(userdata);
        break;
    case NGHTTP2_HEADERS:
        if (stream && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
            h2_stream_begin(stream, ended);
        else if (stream && ended)
            h2_stream_end(stream);
        break;
    case NGHTTP2_DATA:
        if (stream && ended)
            h2_stream_end(stream);
        break;
    }
    return 0;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                     size_t length, void *userdata)
{
    struct h2_stream *stream = stream_of(session, id);
    (void)flags, (void)userdata;
    /* A stream's window is as large as the room for it; the connection's is not needed. */
    nghttp2_session_consume_connection(session, length);
    if (stream && stream->begun)
        h2_stream_data(stream, bytes, length);
    return 0;
}

/* nghttp2 says goodbye by itself to those that break the rules. */
static const char *problem_of(uint32_t code)
{
    switch (code) {
    case NGHTTP2_FLOW_CONTROL_ERROR:
        return "broke the flow control of HTTP/2";
    case NGHTTP2_SETTINGS_TIMEOUT:
        return "didn't acknowledge the settings of HTTP/2";
    case NGHTTP2_FRAME_SIZE_ERROR:
        return "sent an HTTP/2 frame of a wrong size";
    case NGHTTP2_COMPRESSION_ERROR:
        return "sent headers that can't be decoded";
    default:
        return "broke the rules of HTTP/2";
    }
}

static int frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    const struct h2_connection *connection = userdata;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR &&
        !connection->left)
        h2_connection_blame(userdata, HTTP_REFUSED_MALFORMED, problem_of(frame->goaway.error_code));
    if (!stream || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
        return 0;
    stream->complete = true;
    /* The rest of the body isn't needed. */
    pthread_mutex_lock(&stream->request->lock);
    bool body_ended = stream->request->body_ended;
    pthread_mutex_unlock(&stream->request->lock);
    if (!body_ended)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    return 0;
}

static int stream_closed(nghttp2_session *session, int32_t id, uint32_t code, void *userdata)
{
    struct h2_stream *stream = stream_of(session, id);
    struct h2_connection *connection = userdata;
    (void)code;
    if (!stream)
        return 0;
    if (stream->complete)
        h2_frames_request(&connection->frames);
    nghttp2_session_set_stream_user_data(session, id, NULL);
    h2_stream_free(stream);
    return 0;
}

/* More streams than the settings allow, by a client that hasn't seen them yet; or the goodbye of
 * gRPC's client in Go, which names its own last stream in it instead of ours. It is about to close
 * the connection, and nghttp2 does so now: nothing to complain about. */
static int invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error_code,
                         void *userdata)
{
    struct h2_connection *connection = userdata;
    (void)session;
    connection->left |= frame->hd.type == NGHTTP2_GOAWAY;
    if (error_code == NGHTTP2_ERR_REFUSED_STREAM)
        counters_refused(connection->loop->server, HTTP_REFUSED_OVERLOAD,
                         connection->connection->peer, NULL, NULL);
    return 0;
}

/* ---- the session ---- */

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *callbacks = NULL;
    if (nghttp2_session_callbacks_new(&callbacks))
        return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
    return callbacks;
}

static nghttp2_option *make_option(void)
{
    nghttp2_option *option = NULL;
    if (nghttp2_option_new(&option))
        return NULL;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, ACKS_MAX);
    nghttp2_option_set_max_settings(option, SETTINGS_MAX);
    /* Answers' headers are few; a table for each connection costs more than it saves. */
    nghttp2_option_set_max_deflate_dynamic_table_size(option, 0);
    return option;
}

int h2_session_open(struct h2_connection *connection)
{
    const struct http_server_options *options = &connection->loop->server->options;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)options->head_limit_bytes},
    };
    nghttp2_session_callbacks *callbacks = make_callbacks();
    nghttp2_option *option = make_option();
    int r = callbacks && option
                ? nghttp2_session_server_new2(&connection->session, callbacks, connection, option)
                : NGHTTP2_ERR_NOMEM;
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    if (!r)
        r = nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
                                    ARRAY_LENGTH(settings));
    h2_frames_init(&connection->frames, (uint32_t)options->head_limit_bytes * 2, http_now_ms());
    connection->opened_ms = http_now_ms();
    return r ? -ENOMEM : 0;
}

int h2_session_take(struct h2_connection *connection, const uint8_t *bytes, size_t length)
{
    const char *problem = h2_frames_scan(&connection->frames, bytes, length, http_now_ms());
    if (problem) {
        h2_connection_blame(connection, HTTP_REFUSED_FLOOD, problem);
        nghttp2_session_terminate_session(connection->session, NGHTTP2_ENHANCE_YOUR_CALM);
        return -EPROTO;
    }
    ssize_t taken = nghttp2_session_mem_recv(connection->session, bytes, length);
    if (taken >= 0)
        return 0;
    if (taken == NGHTTP2_ERR_FLOODED) {
        h2_connection_blame(connection, HTTP_REFUSED_FLOOD,
                            "sent too many frames that ask for an answer");
        nghttp2_session_terminate_session(connection->session, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    h2_connection_blame(connection, HTTP_REFUSED_MALFORMED, "broke the rules of HTTP/2");
    log_debug("%s: HTTP/2: %s", connection->connection->peer, nghttp2_strerror((int)taken));
    return -EPROTO;
}
