// SPDX-License-Identifier: Apache-2.0
// The fuzzer of HTTP/2: a connection whose frames are the input, up to handlers and back; the cost
// of frames, cut in any way; TLS's first message; and what gRPC has in headers. The first byte
// chooses.

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server/h2/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* ---- a connection ---- */

static void echo(struct http_request *request, void *userdata)
{
    struct buffer body = {0};
    struct error error = {0};
    (void)userdata;
    if (http_request_read_all(request, &body, &error) < 0) {
        http_respond_failure(request, &error);
        buffer_release(&body);
        return;
    }
    http_respond(request, 200, "application/octet-stream", &body);
}

static void converse(struct http_request *request, void *userdata)
{
    struct buffer message = {0};
    struct error error = {0};
    int r;
    (void)userdata;
    while ((r = http_message_read(request, 1 << 16, &message, &error)) > 0)
        if (http_message_write(request, message.data, message.length) < 0)
            break;
    if (r < 0)
        http_respond_failure(request, &error);
    else
        http_message_end(request);
    buffer_release(&message);
}

static const struct http_route routes[] = {
    {"GET", "/", HTTP_ROLE_ANY, echo, 0, 0},
    {"POST", "/a.B/Echo", HTTP_ROLE_ANY, echo, 1 << 16, HTTP_ROUTE_RPC},
    {"POST", "/a.B/Converse", HTTP_ROLE_ANY, converse, 1 << 16,
     HTTP_ROUTE_RPC | HTTP_ROUTE_MESSAGES},
};

static void check_connection(const uint8_t *bytes, size_t length)
{
    static struct route_counters counters[ARRAY_LENGTH(routes) + 1];
    struct http_server server = {.counters = counters};
    static struct h2_loop loop;
    int pair[2];
    server.options = (struct http_server_options){.routes = routes,
                                                  .route_count = ARRAY_LENGTH(routes),
                                                  .connection_limit = 100,
                                                  .request_limit = 100,
                                                  .head_limit_bytes = 16u << 10,
                                                  .body_buffer_bytes = 64u << 10,
                                                  .idle_timeout_ms = 60000,
                                                  .rate_window_ms = 60000,
                                                  .minimum_rate_bytes = 1,
                                                  .stream_limit = 64,
                                                  .stream_wait_ms = 60000,
                                                  .stream_rate_bytes = 1,
                                                  .compress_from_bytes = 1024};
    server.budget.limit = 1 << 20;
    pthread_mutex_init(&server.lock, NULL);
    pthread_cond_init(&server.changed, NULL);
    server.workers = workers_new(2, request_run);
    memset(&loop, 0, sizeof(loop));
    loop.server = &server;
    loop.thread = pthread_self();
    loop.epoll_fd = epoll_create1(0);
    loop.event_fd = eventfd(0, EFD_NONBLOCK);
    pthread_mutex_init(&loop.lock, NULL);
    require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));

    struct h2_connection *connection = h2_connection_open(&loop, NULL, pair[0], NULL);
    require(h2_open_session(connection));
    int r = h2_session_take(connection, (const uint8_t *)H2_PREFACE, H2_PREFACE_BYTES);
    /* Pieces of any size, so that frames are cut everywhere. */
    for (size_t at = 0, step; r >= 0 && at < length; at += step) {
        char scratch[4096];
        step = MIN(length - at, (size_t)1 + bytes[at] * 7);
        r = h2_session_take(connection, bytes + at, step);
        if (r >= 0)
            r = h2_flush(connection);
        while (read(pair[1], scratch, sizeof(scratch)) > 0)
            ;
    }
    int64_t now_ms = http_now_ms();
    for (struct h2_stream *at = connection->streams, *next; r >= 0 && at; at = next) {
        next = at->next;
        h2_stream_process(at);
        h2_stream_check(at, now_ms + 100000);
        h2_stream_check(at, now_ms + 200000);
    }
    h2_flush(connection);
    h2_connection_close(connection);
    workers_free(server.workers);
    require(!server.active && !atomic_load(&server.budget.used));
    require(!loop.first_woken && !atomic_load(&server.h2_streams));
    close(pair[1]);
    close(loop.epoll_fd);
    close(loop.event_fd);
}

/* ---- parts ---- */

static void check_frames(const uint8_t *bytes, size_t length)
{
    struct h2_frames whole, cut;
    h2_frames_init(&whole, 32768, 0);
    h2_frames_init(&cut, 32768, 0);
    const char *problem = h2_frames_scan(&whole, bytes, length, 0), *other = NULL;
    for (size_t at = 0; !other && at < length; at++)
        other = h2_frames_scan(&cut, bytes + at, 1, 0);
    require(problem == other);
    require(problem || (whole.left == cut.left && whole.allowance == cut.allowance));
}

static void check_hello(const uint8_t *bytes, size_t length)
{
    int offers = h2_hello_offers(bytes, length);
    /* More bytes never take back what was found. */
    for (size_t i = 0; i < length; i++) {
        int part = h2_hello_offers(bytes, i);
        require(part == -EAGAIN || part == offers);
    }
}

static void check_grpc(const char *text, size_t length)
{
    struct buffer out = {0};
    bool json;
    char *copy = memory_strndup(text, length);
    grpc_protocol_of(copy, &json);
    require(grpc_timeout_ms(copy) >= -1);
    require(grpc_retry_ms(text, length) >= -1);
    grpc_put_message(&out, copy);
    char *back = memory_strdup(buffer_text(&out));
    grpc_message_decode(back);
    require(!strcmp(back, copy));
    out.length = 0;
    grpc_put_details(&out, HTTP_UNAVAILABLE, copy, (int64_t)length * 10);
    require(out.length > 8192 || grpc_retry_ms(out.data, out.length) == (int64_t)length * 10);
    buffer_release(&out);
    free(copy);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (!length)
        return 0;
    uint8_t kind = *data++ & 3;
    length = MIN(length - 1, kind == 1 ? (size_t)600 : (size_t)1 << 16);
    if (kind == 0)
        check_frames(data, length);
    else if (kind == 1)
        check_hello(data, length);
    else if (kind == 2)
        check_grpc((const char *)data, length);
    else
        check_connection(data, length);
    return 0;
}
