// SPDX-License-Identifier: Apache-2.0
// The HTTP server against clients that send too much, too slowly or too often, and that don't read
// their answers.

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "http_server.h"
#include "io/base64.h"

/* What doesn't fit libmicrohttpd's memory is refused at once: parameters, cookies, lines of chunks.
 */
static void test_too_much(void **state)
{
    (void)state;
    const char *at = start();
    static const size_t counts[] = {129, 200, 1000, 5000};
    for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
        struct buffer request = {0};
        buffer_add_text(&request, "GET /rest/x?");
        for (size_t k = 0; k < counts[i]; k++)
            buffer_add_text(&request, k ? "&a" : "a");
        buffer_add_text(&request, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_answers(at, buffer_text(&request), "HTTP/1.1 414 ");
        buffer_release(&request);
    }
    struct buffer request = {0};
    buffer_add_text(&request, HEAD("GET /hello") "Cookie: a=b");
    for (int i = 0; i < 300; i++)
        buffer_printf(&request, "; c%d=d", i);
    buffer_add_text(&request, "\r\n\r\n");
    assert_answers(at, buffer_text(&request), "hello"); /* nobody reads them */
    request.length = 0;
    buffer_add_text(&request, HEAD("GET /hello") "Cookie: a=b");
    for (int i = 0; i < 3000; i++)
        buffer_printf(&request, "; c%d=d", i);
    buffer_add_text(&request, "\r\n\r\n");
    assert_answers(at, buffer_text(&request), "HTTP/1.1 431 ");
    request.length = 0;
    buffer_add_text(&request, HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\n3;");
    for (int i = 0; i < 40000; i++)
        buffer_add_char(&request, 'x');
    buffer_add_text(&request, "\r\nabc\r\n0\r\n\r\n");
    assert_answers(at, buffer_text(&request), "HTTP/1.1 400 ");
    buffer_release(&request);
    /* A handler's own 500 stays what it is. */
    assert_answers(at, HEAD("GET /nothing") "\r\n", "HTTP/1.1 500 ");
    assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    stop();
}

static void test_header_flood(void **state)
{
    (void)state;
    const char *at = start();
    struct buffer flood = {0};
    buffer_add_text(&flood, "GET /hello HTTP/1.1\r\nHost: localhost\r\n");
    for (int i = 0; i < 100000; i++)
        buffer_printf(&flood, "X-%d: y\r\n", i);
    int fd = socket_connect(at);
    socket_send(fd, flood.data, flood.length);
    struct buffer got = {0};
    const char *answer = socket_read(fd, &got, NULL);
    assert_true(!answer[0] || strstr(answer, " 431 ") || strstr(answer, " 413 "));
    close(fd);
    buffer_release(&got);
    buffer_release(&flood);
    assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    stop();
}

static atomic_uint unseen; /* bodies that no handler has seen anything of */

static void count_unseen(void *userdata, enum http_refusal reason, const char *peer,
                         const struct http_identity *identity, const struct http_request *request)
{
    (void)userdata;
    (void)peer;
    if (reason == HTTP_REFUSED_SLOW_BODY && request && !strcmp(http_request_path(request), "/echo"))
        atomic_fetch_add(&unseen, identity != NULL);
}

/* Senders that stall: in the head, in the body, and after having promised more than they send. */
static void test_slow_senders(void **state)
{
    (void)state;
    const char *at = start_with((struct http_server_options){.idle_timeout_ms = 1000,
                                                             .rate_window_ms = 1000,
                                                             .workers = 4,
                                                             .body_buffer_bytes = 16384,
                                                             .on_refusal = count_unseen});
    int silent = socket_connect(at), head = socket_connect(at), body = socket_connect(at);
    int streamed[8];
    socket_say(head, "GET /hello HTTP/1.1\r\nHo");
    socket_say(body, HEAD("POST /echo") "Content-Length: 1000\r\n\r\nabc");
    /* More senders with large bodies than there are workers: they get half of them. */
    char filler[40000];
    memset(filler, 'x', sizeof(filler));
    for (size_t i = 0; i < ARRAY_LENGTH(streamed); i++) {
        streamed[i] = socket_connect(at);
        socket_say(streamed[i], HEAD("POST /echo") "Content-Length: 100000\r\n\r\n");
        assert_true(socket_send(streamed[i], filler, sizeof(filler)));
    }
    wait_until(seen.reading == 2);
    for (int i = 0; i < 20; i++)
        assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    struct buffer got = {0};
    assert_string_equal(socket_read(silent, &got, NULL), "");
    assert_string_equal(socket_read(head, &got, NULL), "");
    assert_non_null(strstr(socket_read(body, &got, NULL), "408 Request Timeout"));
    for (size_t i = 0; i < ARRAY_LENGTH(streamed); i++) {
        socket_read(streamed[i], &got, NULL);
        close(streamed[i]);
    }
    close(silent);
    close(head);
    close(body);
    buffer_release(&got);
    wait_until(http_server_connections(seen.server) == 0);
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_SLOW_HEAD), 2);
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_SLOW_BODY), 9);
    assert_int_equal(unseen, 1); /* of the others, the handler hears */
    wait_until(seen.failed == 8);
    stop();
}

static void test_slow_reader(void **state)
{
    (void)state;
    const char *at = start_with((struct http_server_options){.stream_wait_ms = 1000});
    int stream = socket_connect(at), buffer = socket_connect(at);
    socket_say(stream, HEAD("GET /stream?bytes=100000000") "\r\n");
    socket_say(buffer, HEAD("GET /big?bytes=50000000") "\r\n");
    wait_until(http_server_refused(seen.server, HTTP_REFUSED_SLOW_READER) == 2);
    wait_until(seen.stopped == 1);
    assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    close(stream);
    close(buffer);
    stop();
}

/* One that pauses for longer than a sender may gets all of it. */
static void test_pausing_reader(void **state)
{
    (void)state;
    const char *at = start_with((struct http_server_options){.rate_window_ms = 500});
    int streams[2];
    struct buffer got = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(streams); i++) {
        streams[i] = socket_connect(at);
        socket_say(streams[i], i ? HEAD("GET /big?bytes=20000000") "Connection: close\r\n\r\n"
                                 : HEAD("GET /stream?bytes=20000000") "Connection: close\r\n\r\n");
    }
    usleep(3500000); /* the watcher looks once a second */
    for (size_t i = 0; i < ARRAY_LENGTH(streams); i++) {
        got.length = 0;
        socket_read(streams[i], &got, NULL);
        assert_true(got.length > 20000000);
        close(streams[i]);
    }
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_SLOW_READER), 0);
    buffer_release(&got);
    stop();
}

/* Readers that stall hold up neither other requests nor, for ever, what their answers are made of.
 * There are only so many of them. */
static void test_stalled_readers(void **state)
{
    (void)state;
    const char *at = start_with((struct http_server_options){.workers = 2,
                                                             .stream_limit = 4,
                                                             .stream_wait_ms = 3000,
                                                             .stream_rate_bytes = 1u << 30,
                                                             .rate_window_ms = 1000000});
    int stalled[4];
    for (size_t i = 0; i < ARRAY_LENGTH(stalled); i++) {
        stalled[i] = socket_connect(at);
        socket_say(stalled[i], HEAD("GET /stream?bytes=100000000") "\r\n");
    }
    struct buffer metrics = {0};
    wait_until((metrics.length = 0, http_server_metrics(seen.server, &metrics),
                strstr(buffer_text(&metrics), "assay_http_streams 4\n")));
    assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    assert_answers(at, HEAD("GET /stream?bytes=10") "\r\n", "503 ");
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_OVERLOAD), 1);
    wait_until(seen.stopped == 4);
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_SLOW_READER), 4);
    assert_answers(at, HEAD("GET /stream?bytes=10") "\r\n", "xxxxxxxxxx");
    /* What they read in the end isn't whole, and they see that. */
    for (size_t i = 0; i < ARRAY_LENGTH(stalled); i++) {
        struct buffer got = {0};
        socket_read(stalled[i], &got, NULL);
        assert_true(got.length > 100000 && got.length < 100000000);
        assert_null(strstr(buffer_text(&got), "\r\n0\r\n\r\n"));
        close(stalled[i]);
        buffer_release(&got);
    }
    buffer_release(&metrics);
    stop();
}

/* Answers that are sent whole are held until they are read: only so many bytes of them. */
static bool is_answered(const char *at, const char *request, const char *with)
{
    char *answer = socket_ask(at, request);
    bool found = strstr(answer, with);
    free(answer);
    return found;
}

static void test_unread_answers(void **state)
{
    (void)state;
    const char *at = start_with(
        (struct http_server_options){.answer_limit_bytes = 100u << 20, .stream_wait_ms = 1000000});
    int stalled[2];
    struct buffer got = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(stalled); i++) {
        stalled[i] = socket_connect(at);
        socket_say(stalled[i], HEAD("GET /big?bytes=40000000") "\r\n");
        got.length = 0;
        socket_read(stalled[i], &got, "200 OK");
    }
    assert_answers(at, HEAD("GET /big?bytes=40000000") "Accept-Encoding: identity\r\n\r\n", "503 ");
    assert_answers(at, HEAD("GET /big?bytes=40000000") "\r\n", "Retry-After: 1\r\n");
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_OVERLOAD), 2);
    assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    /* What is read, or given up, makes room. */
    close(stalled[0]);
    bool answered = false;
    wait_until((answered = is_answered(at, HEAD("GET /big?bytes=40000000") "\r\n", "200 OK")));
    assert_true(answered);
    close(stalled[1]);
    buffer_release(&got);
    stop();
}

/* A client that goes away while its request is being worked on. */
static void test_leaving(void **state)
{
    (void)state;
    const char *at = start();
    int closes = socket_connect(at), resets = socket_connect(at), half = socket_connect(at);
    socket_say(closes, HEAD("GET /wait") "\r\n");
    socket_say(resets, HEAD("GET /wait") "\r\n");
    socket_say(half, HEAD("GET /wait") "\r\n");
    wait_until(seen.waiting == 3);
    close(closes);
    wait_until(seen.cancelled == 1);
    struct linger now = {.l_onoff = 1};
    setsockopt(resets, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(resets);
    wait_until(seen.cancelled == 2);
    /* One that only stops sending is told so, and gets its answer. */
    shutdown(half, SHUT_WR);
    struct buffer got = {0};
    assert_non_null(strstr(socket_read(half, &got, NULL), "{\"code\":\"canceled\""));
    close(half);
    buffer_release(&got);
    assert_int_equal(seen.cancelled, 3);

    int body = socket_connect(at), stream = socket_connect(at);
    socket_say(body, HEAD("POST /echo") "Content-Length: 1000000\r\n\r\n");
    char filler[400000] = {0};
    socket_send(body, filler, sizeof(filler));
    wait_until(seen.reading == 1);
    close(body);
    wait_until(seen.failed == 1);
    socket_say(stream, HEAD("GET /stream?bytes=100000000") "\r\n");
    socket_read(stream, &got, "200 OK");
    close(stream);
    wait_until(seen.stopped == 1);
    buffer_release(&got);
    stop();
}

static void test_overload(void **state)
{
    (void)state;
    const char *at = start_with(
        (struct http_server_options){.workers = 2, .request_limit = 4, .connection_limit = 100});
    int waiting[4];
    for (int i = 0; i < 4; i++) {
        waiting[i] = socket_connect(at);
        socket_say(waiting[i], HEAD("GET /wait") "\r\n");
    }
    wait_until(seen.waiting == 2);
    struct buffer metrics = {0};
    wait_until((metrics.length = 0, http_server_metrics(seen.server, &metrics),
                strstr(buffer_text(&metrics), "assay_http_requests_queued 2\n")));
    buffer_release(&metrics);
    assert_answers(at, HEAD("GET /hello") "\r\n", "503 ");
    assert_answers(at, HEAD("GET /hello") "\r\n", "Retry-After: 1\r\n");
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_OVERLOAD), 2);
    for (int i = 0; i < 4; i++)
        close(waiting[i]);
    wait_until(seen.cancelled == 4);
    assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    stop();
}

/* Those that compute wait for each other and for nobody else, until they wait for something. */
static void test_computing(void **state)
{
    (void)state;
    enum { MORE = 6 };
    int limit = (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1) + 1, all = limit + MORE;
    const char *at = start_with((struct http_server_options){.workers = (unsigned)all + 4});
    int *asking = memory_zalloc((size_t)all, sizeof(*asking));
    for (int i = 0; i < all; i++) {
        asking[i] = socket_connect(at);
        socket_say(asking[i],
                   i % 2 ? HEAD("GET /compute?short") "\r\n" : HEAD("GET /compute") "\r\n");
    }
    wait_until(seen.computing == limit);
    struct buffer metrics = {0};
    wait_until((metrics.length = 0, http_server_metrics(seen.server, &metrics),
                strstr(buffer_text(&metrics), "assay_http_requests_queued 6\n")));
    buffer_release(&metrics);
    assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    assert_int_equal(seen.computing, limit);
    for (int i = 1; i <= MORE; i++) { /* each that ends, or waits, lets the next one begin */
        seen.tickets = 1;
        wait_until(!seen.tickets && seen.computing == limit);
    }
    assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    seen.tickets = limit;
    wait_until(seen.computed == (all + 1) / 2);
    seen.finish = true;
    for (int i = 0; i < all; i++) {
        struct buffer got = {0};
        socket_read(asking[i], &got, "computed\n");
        buffer_release(&got);
        close(asking[i]);
    }
    free(asking);
    stop();
}

static void test_rate_limit(void **state)
{
    (void)state;
    const char *at =
        start_with((struct http_server_options){.requests_per_second = 0.001, .request_burst = 3});
    for (int i = 0; i < 3; i++)
        assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    assert_answers(at, HEAD("GET /hello") "\r\n", "429 ");
    assert_answers(at, HEAD("GET /hello") "\r\n", "{\"code\":\"resource_exhausted\"");
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_RATE), 2);
    stop();
}

/* Wrong tokens are counted; a good one is let in whatever others try. */
static void test_guessing(void **state)
{
    (void)state;
    struct tokens *tokens;
    struct token token;
    struct error error = {0};
    struct buffer request = {0};
    char text[TOKEN_TEXT_BYTES];
    assert_int_equal(token_create("tokens", "all", HTTP_ROLE_ADMIN, "t", 0, text, &token, &error),
                     0);
    assert_int_equal(tokens_open("tokens", &tokens, &error), 0);
    const char *at = start_with((struct http_server_options){.tokens = tokens});
    for (int i = 0; i < 20; i++)
        assert_answers(at, HEAD("POST /echo") "Authorization: Bearer wrong\r\n\r\n", "401 ");
    char *answer = socket_ask(at, HEAD("POST /echo") "Authorization: Bearer wrong\r\n\r\n");
    assert_non_null(strstr(answer, "HTTP/1.1 429 "));
    assert_non_null(strstr(answer, "Retry-After: "));
    free(answer);
    assert_answers(at, HEAD("POST /echo") "Authorization: Basic d3Jvbmc6d3Jvbmc=\r\n\r\n", "429 ");
    assert_answers(at, HEAD("POST /echo") "\r\n", "401 "); /* no guess */
    buffer_printf(&request, HEAD("POST /echo") "Authorization: Bearer %s\r\n\r\n", text);
    assert_answers(at, buffer_text(&request), "200 OK");
    assert_answers(at, HEAD("POST /echo") "Authorization: Bearer wrong\r\n\r\n", "429 ");
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_GUESSING), 3);
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_UNAUTHENTICATED), 21);
    stop();
    buffer_release(&request);
    tokens_free(tokens);
}

/* Connects `count` times in another process, so that each has enough files; returns its pid when
 * all are connected. They stay until `*ret_hold` is closed. */
static pid_t connect_many(const char *address, size_t count, int *ret_hold)
{
    int ready[2], hold[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(hold), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit files;
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        close(hold[1]);
        for (size_t i = 0; i < count; i++) {
            int fd = socket_connect(address);
            if (i % 3 == 1)
                socket_say(fd, "GET /hello HTTP/1.1\r\nHo");
            else if (i % 3 == 2)
                socket_say(fd, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
        }
        if (write(ready[1], &byte, 1) == 1 && read(hold[0], &byte, 1) >= 0)
            _exit(0);
        _exit(1);
    }
    assert_true(pid > 0);
    close(ready[1]);
    close(hold[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    *ret_hold = hold[1];
    return pid;
}

static void test_many_connections(void **state)
{
    (void)state;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    size_t count = files.rlim_max < 11000 ? (size_t)files.rlim_max / 2 : 10000;
    const char *at = start_with((struct http_server_options){.connection_limit = count * 5 / 4});
    int hold, status;
    pid_t pid = connect_many(at, count, &hold);
    wait_until(http_server_connections(seen.server) == count);
    for (int i = 0; i < 100; i++)
        assert_answers(at, HEAD("POST /echo") "Content-Length: 2\r\n\r\nok", "\r\n\r\nok");
    close(hold);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    wait_until(http_server_connections(seen.server) == 0);
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_IDLE), 0);
    stop();
}

static bool says_hello(const char *at)
{
    char *answer = socket_ask(at, HEAD("GET /hello") "\r\n");
    bool hello = strstr(answer, "hello");
    free(answer);
    return hello;
}

/* Idle connections make room for those that want something. */
static void test_crowd(void **state)
{
    (void)state;
    const char *at = start_with((struct http_server_options){.connection_limit = 160});
    int first = socket_connect(at);
    struct buffer got = {0};
    int crowd[300];
    for (size_t i = 0; i < ARRAY_LENGTH(crowd); i++) {
        crowd[i] = socket_connect(at);
        if (i % 10 == 0)
            sleep_ms(20);
    }
    wait_until(http_server_refused(seen.server, HTTP_REFUSED_IDLE) > 0);
    wait_until(http_server_connections(seen.server) <= 155);
    assert_string_equal(socket_read(first, &got, NULL), "");
    /* Some of the crowd may only come in now, and fill it up for another moment. */
    wait_until(says_hello(at));
    for (size_t i = 0; i < ARRAY_LENGTH(crowd); i++)
        close(crowd[i]);
    close(first);
    buffer_release(&got);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_header_flood),
        cmocka_unit_test(test_slow_senders),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_pausing_reader),
        cmocka_unit_test(test_stalled_readers),
        cmocka_unit_test(test_unread_answers),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_overload),
        cmocka_unit_test(test_computing),
        cmocka_unit_test(test_rate_limit),
        cmocka_unit_test_setup_teardown(test_guessing, enter_folder, leave_folder),
        cmocka_unit_test(test_many_connections),
        cmocka_unit_test(test_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
