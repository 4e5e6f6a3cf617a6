// SPDX-License-Identifier: Apache-2.0
// The HTTP server against clients that behave, and against those that don't.

#include "http/server/server.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "http_server.h"
#include "io/base64.h"

static void test_routes_and_errors(void **state)
{
    (void)state;
    const char *at = start();
    assert_answers(at, HEAD("GET /hello") "\r\n", "200 OK\r\n");
    assert_answers(at, HEAD("GET /hello") "\r\n", "\r\n\r\nhello\n");
    assert_answers(at, HEAD("HEAD /hello") "\r\n", "Content-Length: 6\r\n");
    assert_answers(at, HEAD("GET /") "\r\n", "404 Not Found");
    assert_answers(at, HEAD("GET /nope") "\r\n", "{\"code\":\"not_found\",");
    assert_answers(at, HEAD("POST /hello") "\r\n", "405 ");
    assert_answers(at, HEAD("POST /hello") "\r\n", "Allow: GET\r\n");
    assert_answers(at, HEAD("DELETE /echo") "\r\n", "Allow: POST, PUT\r\n");
    assert_answers(at, HEAD("OPTIONS /hello") "\r\n", "405 ");
    assert_answers(at, HEAD("GET /nothing") "\r\n", "500 ");
    assert_answers(at, HEAD("GET /label/x%20y/values?a=1&b&a=%26") "\r\n",
                   "rest=x y tenant=anonymous token=- [a]=[1] [b]=[] [a]=[&]");
    assert_answers(at, HEAD("GET /label//values") "\r\n", "404 ");
    assert_answers(at, HEAD("GET /label/values") "\r\n", "404 ");
    assert_answers(at, HEAD("GET /rest/a/b%0%2500c") "\r\n", "rest=a/b%0%00c ");
    assert_answers(at, HEAD("GET /rest/") "\r\n", "404 ");
    char *head = socket_ask(at, HEAD("HEAD /hello") "\r\n");
    assert_null(strstr(head, "hello"));
    free(head);
    stop();
}

static void test_bodies(void **state)
{
    (void)state;
    const char *at = start();
    assert_answers(at, HEAD("POST /echo") "Content-Length: 5\r\n\r\nbytes", "\r\n\r\nbytes");
    assert_answers(at, HEAD("POST /echo") "Content-Length: 0\r\n\r\n", "Content-Length: 0\r\n");
    assert_answers(at, HEAD("POST /sum") "Content-Length: 3\r\n\r\nabc", "\r\n\r\n3 294\n");
    assert_answers(at, HEAD("POST /sum") "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
                   "\r\n\r\n3 294\n");
    assert_answers(at, HEAD("POST /sum") "Content-Length: 4\r\n\r\n\x1f\x8b\x08\x01",
                   "400 Bad Request");
    assert_answers(at,
                   HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\n"
                                      "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: x\r\n\r\n",
                   "\r\n\r\nabcdefg");
    assert_answers(at, HEAD("POST /echo") "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
                   "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK");
    assert_answers(at, HEAD("PUT /early") "Content-Length: 3\r\n\r\nabc", "405 ");
    struct buffer large = {0};
    buffer_add_text(&large, HEAD("PUT /echo") "Content-Length: 1001\r\n\r\n");
    memset(buffer_reserve(&large, 1001), 'x', 1001);
    large.length += 1001;
    char *refused = socket_exchange(at, large.data, large.length);
    assert_non_null(strstr(refused, "HTTP/1.1 413 "));
    free(refused);
    buffer_release(&large);
    /* Refused before it is sent: no leave to send it. */
    char *answer =
        socket_ask(at, HEAD("PUT /echo") "Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
    assert_non_null(strstr(answer, "HTTP/1.1 413 "));
    assert_null(strstr(answer, "100 Continue"));
    assert_non_null(strstr(answer, "\r\n\r\nThe body is 1001 bytes; the limit of /echo is 1000"));
    free(answer);
    assert_answers(at, HEAD("GET /hello") "Content-Length: 3\r\n\r\nabc", "413 ");
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_TOO_LARGE), 3);
    stop();
}

/* Larger than any buffer: through the pipe while it comes, byte for byte. */
static void test_large_bodies(void **state)
{
    (void)state;
    const char *at = start_with((struct http_server_options){.body_buffer_bytes = 20000});
    size_t length = 3000000;
    struct buffer request = {0};
    buffer_printf(&request, HEAD("POST /echo") "Content-Length: %zu\r\n\r\n", length);
    size_t head = request.length;
    for (size_t i = 0; i < length; i++)
        buffer_add_char(&request, (char)(i * 2654435761u >> 24));
    int fd = socket_connect(at);
    assert_true(socket_send(fd, request.data, request.length));
    struct buffer got = {0};
    socket_read(fd, &got, NULL);
    const char *body = strstr(buffer_text(&got), "\r\n\r\n");
    assert_non_null(body);
    assert_int_equal(got.length - (size_t)(body + 4 - got.data), length);
    assert_memory_equal(body + 4, request.data + head, length);
    close(fd);
    buffer_release(&got);

    /* Chunked and over the limit: the answer comes after a part of it has been read for nothing. */
    fd = socket_connect(at);
    socket_say(fd, HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\n");
    char chunk[65536 + 16] = "10000\r\n";
    memset(chunk + 7, 'x', 65536);
    memcpy(chunk + 7 + 65536, "\r\n", 2);
    for (size_t i = 0; i < 80; i++)
        assert_true(socket_send(fd, chunk, 7 + 65536 + 2));
    socket_say(fd, "0\r\n\r\n");
    assert_non_null(strstr(socket_read(fd, &got, NULL), "413 "));
    close(fd);
    buffer_release(&got);
    buffer_release(&request);
    stop();
}

static void test_answers(void **state)
{
    (void)state;
    const char *at = start();
    assert_answers(at, HEAD("GET /big?bytes=5000") "\r\n", "Content-Length: 5000\r\n");
    assert_answers(at, HEAD("GET /big?bytes=5000") "Accept-Encoding: br, gzip;q=0.5\r\n\r\n",
                   "Content-Encoding: gzip\r\n");
    char *plain = socket_ask(at, HEAD("GET /big?bytes=5000") "Accept-Encoding: gzip;q=0\r\n\r\n");
    assert_null(strstr(plain, "Content-Encoding"));
    free(plain);
    assert_answers(at, HEAD("GET /stream?bytes=100000") "\r\n", "Transfer-Encoding: chunked\r\n");
    assert_answers(at, HEAD("GET /stream?bytes=100000") "\r\n", "xxx\r\n0\r\n\r\n");
    char *cut = socket_ask(at, HEAD("GET /stream?bytes=100000&abort=1") "\r\n");
    assert_null(strstr(cut, "\r\n0\r\n\r\n"));
    free(cut);
    assert_answers(at, HEAD("HEAD /stream?bytes=100000") "\r\n", "200 OK");
    assert_answers(at, HEAD("HEAD /stream?bytes=100000") "Accept-Encoding: gzip\r\n\r\n",
                   "Content-Encoding: gzip\r\n");
    assert_answers(at, "GET /stream?bytes=10 HTTP/1.0\r\n\r\n", "\r\n\r\nxxxxxxxxxx");
    assert_answers(at, HEAD("GET /file") "\r\n",
                   "\x7f"
                   "ELF");
    assert_answers(at, HEAD("POST /early") "Content-Length: 3\r\n\r\nabc",
                   "{\"code\":\"invalid_argument\",\"message\":\"Not even read: \\\"quoted\\\"");
    stop();
}

/* Several requests before the first answer, and a connection that is kept. */
static void test_pipelining(void **state)
{
    (void)state;
    const char *at = start();
    int fd = socket_connect(at);
    struct buffer got = {0};
    for (int i = 0; i < 20; i++) {
        got.length = 0;
        socket_say(fd, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nok");
        socket_read(fd, &got, "\r\n\r\nok");
    }
    assert_int_equal(http_server_connections(seen.server), 1);
    socket_say(fd, "GET /sleep?ms=20 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                   "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\none" HEAD(
                       "GET /hello") "\r\n");
    got.length = 0;
    const char *answers = socket_read(fd, &got, NULL);
    const char *first = strstr(answers, "slept\n");
    const char *second = first ? strstr(first, "\r\n\r\none") : NULL;
    assert_non_null(second);
    assert_non_null(strstr(second, "\r\n\r\nhello\n"));
    close(fd);
    buffer_release(&got);
    stop();
}

/* None of these may do more than earn a 4xx, or lose the connection. */
static void test_malformed(void **state)
{
    (void)state;
    const char *at = start();
    static const char *const bad[] = {
        "GARBAGE\r\n\r\n",
        "GET\r\n\r\n",
        "\r\n\r\n\r\n\r\nGET\r\n\r\n",
        "GET /hello HTTP/9.9\r\nHost: x\r\n\r\n",
        "GET /hello HTTP/1.1\r\n\r\n", /* no Host */
        "GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        "GET /hello world HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET  /hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
        HEAD("POST /echo") "Content-Length:\r\n\r\n",
        HEAD("POST /echo") "Content-Length:  \r\n\r\na",
        HEAD("POST /echo") "Content-Length: -1\r\n\r\n",
        HEAD("POST /echo") "Content-Length: 1x\r\n\r\na",
        HEAD("POST /echo") "Content-Length: 99999999999999999999999\r\n\r\n",
        HEAD("POST /echo") "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        HEAD("POST /echo") "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD("POST /echo") "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        HEAD("POST /echo") "Transfer-Encoding: identity\r\n\r\n",
        HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n",
        HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc",
        HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        int fd = socket_connect(at);
        struct buffer got = {0};
        socket_say(fd, bad[i]);
        shutdown(fd, SHUT_WR);
        const char *answer = socket_read(fd, &got, NULL);
        if (answer[0] && strncmp(answer, "HTTP/1.1 4", 10) && strncmp(answer, "HTTP/1.0 4", 10))
            fail_msg("%zu: \"%s\" was answered \"%s\"", i, bad[i], answer);
        if (answer[0] && strstr(answer + 1, "HTTP/1."))
            fail_msg("%zu: \"%s\" got two answers: \"%s\"", i, bad[i], answer);
        close(fd);
        buffer_release(&got);
        assert_answers(at, HEAD("GET /hello") "\r\n", "hello");
    }
    assert_int_equal(http_server_refused(seen.server, HTTP_REFUSED_MALFORMED), 11);
    assert_int_equal(seen.failed, 0);
    stop();
}

/* A request cut off at every byte, and one with every byte changed. */
static void test_cut_and_flipped(void **state)
{
    (void)state;
    static const char whole[] = "POST /echo?a=%41 HTTP/1.1\r\nHost: localhost\r\n"
                                "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                                "3\r\nabc\r\n0\r\n\r\n";
    const char *at = start();
    size_t count = sizeof(whole) - 1;
    int sockets[2 * (sizeof(whole) - 1)];
    for (size_t i = 0; i < 2 * count; i++) {
        char changed[sizeof(whole)];
        memcpy(changed, whole, sizeof(whole));
        if (i >= count)
            changed[i - count] ^= (char)(1 << i % 8);
        sockets[i] = socket_connect(at);
        socket_send(sockets[i], changed, i < count ? i : count);
        shutdown(sockets[i], SHUT_WR);
    }
    for (size_t i = 0; i < 2 * count; i++) {
        struct buffer got = {0};
        const char *answer = socket_read(sockets[i], &got, NULL);
        assert_true(i >= count || !strstr(answer, "200 OK"));
        close(sockets[i]);
        buffer_release(&got);
    }
    assert_answers(at, whole, "\r\n\r\nabc");
    wait_until(http_server_connections(seen.server) == 0);
    stop();
}

/* What two readers of one stream could understand in two ways is refused, and by us: these are all
 * things that libmicrohttpd takes. */
static void test_strict(void **state)
{
    (void)state;
#define BYTES(text) text, sizeof(text) - 1
#define WITH(lines) BYTES(HEAD("GET /hello") lines "\r\n")
#define CHUNKS(chunks) BYTES(HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\n" chunks)
    static const struct {
        const char *bytes;
        size_t length;
    } bad[] = {
        {BYTES("GET /hello HTTP/1.1\nHost: localhost\nConnection: close\n\n")},
        {BYTES("GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\n")},
        {BYTES("GET /hello HTTP/1.1\nHost: localhost\r\nConnection: close\r\n\r\n")},
        {WITH("X: y\nZ: w\r\n")},
        {WITH("X: y\rZ: w\r\n")},
        {WITH("X: y\r\r\n")},
        {WITH("X\r: y\r\n")},
        {WITH("X: a\0b\r\n")},
        {WITH("X: a\0\r\n")},
        {WITH("X: \0\r\n")},
        {WITH("X: a\0\0Y: b\r\n")},
        {WITH("X\0Y: b\r\n")},
        {WITH("X: a\x01\r\n")},
        {WITH("X: a\x7f\r\n")},
        {WITH("X: a\r\n b\r\n")},
        {WITH("X: a\r\n\tb\r\nY: c\r\n")},
        {WITH("X: a\r\n b\r\n c\r\n")},
        {BYTES("GET /hello HTTP/1.1\r\n X: y\r\nHost: localhost\r\n\r\n")},
        {BYTES("GET /hello\0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")},
        {BYTES("GET /hello\0x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")},
        {BYTES("GET /hello\0HTTP/1.1\0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")},
        {BYTES("GE\0T /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")},
        {BYTES("GET  /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")},
        {BYTES("GET /hello?a=\0b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")},
        {BYTES(HEAD("GET /hello\r") "\r\n")},
        {BYTES(HEAD("GET /rest/a%00") "\r\n")},
        {BYTES(HEAD("GET /rest/a?b=%00") "\r\n")},
        {BYTES(HEAD("GET /rest/\x1b[31m") "\r\n")},
        {BYTES("\0\0\0\0 nonsense\r\n" HEAD("GET /hello") "\r\n")},
        {BYTES("\r\n\r\n" HEAD("GET /hello") "\r\n")},
        {BYTES("\n" HEAD("GET /hello") "\r\n")},
        {WITH("Content-Length: +0\r\n")},
        {WITH("Content-Length: 0,0\r\n")},
        {BYTES("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
        {CHUNKS("3\nabc\r\n0\r\n\r\n")},
        {CHUNKS("3;a\nabc\r\n0\r\n\r\n")},
        {CHUNKS("3;\0\r\nabc\r\n0\r\n\r\n")},
        {CHUNKS("3\r\nabc\n0\r\n\r\n")},
        {CHUNKS("3\r\nabc\r\n0\n\n")},
        {CHUNKS("3\r\nabc\r\n0\r\nX: y\n\n")},
        {CHUNKS("3\r\nabc\r\n0\r\nX: y\r\n z\r\n\r\n")},
    };
    const char *at = start();
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        char *answer = socket_exchange(at, bad[i].bytes, bad[i].length);
        const char *first = strstr(answer, "HTTP/1.1 400 ");
        if (!first || strstr(first + 1, "HTTP/1.1") || !strstr(first, "{\"code\":"))
            fail_msg("%zu: \"%s\" was answered \"%s\"", i, bad[i].bytes, answer);
        free(answer);
    }
    /* And what is fine stays so, also when it comes in pieces and fills the buffer nearly. */
    assert_answers(at, HEAD("GET /hello") "X:y\r\nZ: \t w \r\nEmpty:\r\nU: \xc3\xa4\r\n\r\n",
                   "hello");
    assert_answers(at, "GET /hello HTTP/1.0\r\n\r\n", "hello");
    struct buffer large = {0};
    buffer_add_text(&large, "GET /hello?");
    for (int i = 0; i < 100; i++)
        buffer_printf(&large, "%sparameter%d=%032d", i ? "&" : "", i, i);
    buffer_add_text(&large, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (int i = 0; i < 40; i++)
        buffer_printf(&large, "X-%d: %064d\r\n", i, i);
    buffer_add_text(&large, "\r\n");
    int fd = socket_connect(at);
    for (size_t sent = 0; sent < large.length; sent += 100) {
        assert_true(socket_send(fd, large.data + sent, MIN(large.length - sent, (size_t)100)));
        if (sent % 1000 == 0)
            sleep_ms(1);
    }
    struct buffer got = {0};
    assert_non_null(strstr(socket_read(fd, &got, NULL), "\r\n\r\nhello"));
    close(fd);
    buffer_release(&got);
    buffer_release(&large);
    stop();
}

/* Chunks put together. */
static struct buffer unchunk(const struct buffer *got)
{
    struct buffer body = {0};
    const char *at = strstr(got->data, "\r\n\r\n"), *end = got->data + got->length;
    assert_non_null(at);
    for (at += 4;;) {
        char *data;
        size_t length = strtoul(at, &data, 16);
        data += 2;
        assert_true(length <= (size_t)(end - data));
        if (!length)
            return body;
        buffer_add(&body, data, length);
        at = data + length + 2;
    }
}

static void test_compressed_stream(void **state)
{
    (void)state;
    const char *at = start();
    int fd = socket_connect(at);
    struct buffer got = {0};
    socket_say(fd, HEAD("GET /stream?bytes=3000000") "Accept-Encoding: gzip\r\n\r\n");
    socket_read(fd, &got, NULL);
    close(fd);
    buffer_text(&got);
    assert_non_null(strstr(got.data, "Content-Encoding: gzip\r\n"));
    struct buffer body = unchunk(&got);
    assert_true(body.length < 30000);
    struct source source;
    struct error error = {0};
    assert_int_equal(source_open_memory(&source, "x", body.data, body.length, 0, &error), 0);
    size_t length = 0;
    while (source_need(&source, 1, &error) == 0 && source_available(&source)) {
        assert_int_equal(source_data(&source)[0], 'x');
        length += source_available(&source);
        source_skip(&source, source_available(&source));
    }
    assert_int_equal(length, 3000000);
    source_release(&source);
    buffer_release(&body);
    buffer_release(&got);
    stop();
}

/* Pages of other sites, seen by a browser on this machine. */
static void test_browsers(void **state)
{
    (void)state;
    static const char *const names[] = {"profiles.example"};
    const char *at =
        start_with((struct http_server_options){.host_names = names, .host_name_count = 1});
#define FOR(host, more) "POST /echo HTTP/1.1\r\nConnection: close\r\nHost: " host "\r\n" more "\r\n"
    assert_answers(at, FOR("profiles.example:4040", ""), "200 OK");
    assert_answers(at, FOR("[::1]:4040", ""), "200 OK");
    assert_answers(at, FOR("evil.example", ""), "403 ");
    assert_answers(at, FOR("127.0.0.1.evil.example", ""), "403 ");
    assert_answers(at, FOR("localhost:1", "Origin: http://localhost:1\r\n"), "200 OK");
    assert_answers(at, FOR("localhost:1", "Origin: http://evil.example\r\n"), "403 ");
    assert_answers(at, FOR("localhost:1", "Origin: null\r\n"), "403 ");
    stop();
    at = start_with((struct http_server_options){.cors_origin = "http://ui.example"});
    assert_answers(at, FOR("localhost:1", "Origin: http://ui.example\r\n"),
                   "Access-Control-Allow-Origin: http://ui.example\r\n");
    assert_answers(at, HEAD("OPTIONS /echo") "\r\n", "Access-Control-Allow-Methods: POST, PUT\r\n");
    stop();
}

/* With tokens, a browser adds the password that it was told; a page of another site must not use
 * that. */
static void test_browsers_with_tokens(void **state)
{
    (void)state;
    struct tokens *tokens;
    struct token token;
    struct error error = {0};
    struct buffer basic = {0}, bearer = {0};
    char text[TOKEN_TEXT_BYTES], plain[TOKEN_TEXT_BYTES + 2];
    assert_int_equal(token_create("tokens", "all", HTTP_ROLE_ADMIN, "t", 0, text, &token, &error),
                     0);
    assert_int_equal(tokens_open("tokens", &tokens, &error), 0);
    snprintf(plain, sizeof(plain), "u:%s", text);
    buffer_add_text(&basic, "Authorization: Basic ");
    base64_encode(plain, strlen(plain), &basic);
    buffer_printf(&bearer, "Authorization: Bearer %s", text);
    static const struct {
        const char *cors, *headers, *basic, *bearer;
    } cases[] = {
        {NULL, "", "200", "200"},
        {NULL, "Origin: http://localhost:1\r\n", "200", "200"},
        {NULL, "Origin: http://evil.example\r\n", "403", "200"},
        {NULL, "Origin: http://localhost:2\r\n", "403", "200"},
        {NULL, "Origin: null\r\n", "403", "200"},
        {NULL, "Sec-Fetch-Site: cross-site\r\n", "403", "200"},
        {NULL, "Sec-Fetch-Site: same-site\r\n", "403", "200"},
        {NULL, "Sec-Fetch-Site: same-origin\r\n", "200", "200"},
        {"*", "Origin: http://evil.example\r\n", "403", "200"},
        {"http://ui.example", "Origin: http://ui.example\r\n", "200", "200"},
        {"http://ui.example", "Origin: http://evil.example\r\n", "403", "200"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const char *at = start_with(
            (struct http_server_options){.tokens = tokens, .cors_origin = cases[i].cors});
        for (int k = 0; k < 2; k++) {
            struct buffer request = {0};
            char wanted[32];
            buffer_printf(&request,
                          "POST /echo HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n"
                          "%s%s\r\n\r\n",
                          cases[i].headers, buffer_text(k ? &bearer : &basic));
            snprintf(wanted, sizeof(wanted), "HTTP/1.1 %s ", k ? cases[i].bearer : cases[i].basic);
            assert_answers(at, buffer_text(&request), wanted);
            buffer_release(&request);
        }
        stop();
    }
    buffer_release(&basic);
    buffer_release(&bearer);
    tokens_free(tokens);
}

/* Nothing that runs is lost, and nothing waits for ever. */
static void test_stop(void **state)
{
    (void)state;
    const char *at = start();
    int slow = socket_connect(at), idle = socket_connect(at);
    int before = atomic_load(&seen.sleeping);
    socket_say(slow, HEAD("GET /sleep?ms=1000") "\r\n");
    struct buffer got = {0};
    wait_until(atomic_load(&seen.sleeping) > before);
    http_server_metrics(seen.server, &got);
    assert_non_null(strstr(buffer_text(&got), "assay_http_requests_active 1\n"));
    stop();
    got.length = 0;
    assert_non_null(strstr(socket_read(slow, &got, NULL), "slept"));
    got.length = 0;
    assert_string_equal(socket_read(idle, &got, NULL), "");
    close(slow);
    close(idle);

    /* No grace: handlers are told, bodies and readers given up. */
    at = start();
    int wait = socket_connect(at), body = socket_connect(at), stream = socket_connect(at);
    int small = socket_connect(at);
    char filler[400000] = {0};
    socket_say(wait, HEAD("GET /wait") "\r\n");
    socket_say(body, HEAD("POST /echo") "Content-Length: 1000000\r\n\r\n");
    socket_send(body, filler, sizeof(filler));
    socket_say(small, HEAD("POST /echo") "Content-Length: 10\r\n\r\nabc");
    socket_say(stream, HEAD("GET /stream?bytes=100000000") "\r\n");
    wait_until(seen.waiting == 1 && seen.reading == 1);
    got.length = 0;
    socket_read(stream, &got, "200 OK");
    http_server_stop(seen.server, 0);
    assert_int_equal(seen.cancelled, 1);
    assert_int_equal(seen.failed, 1);
    assert_int_equal(seen.stopped, 1);
    close(wait);
    close(body);
    close(stream);
    close(small);
    buffer_release(&got);
}

static void test_metrics(void **state)
{
    (void)state;
    const char *at = start();
    assert_answers(at, HEAD("POST /echo") "Content-Length: 5\r\n\r\nbytes", "bytes");
    wait_until(http_server_connections(seen.server) == 0);
    /* The worker may still hold the request, and its buffer, for a moment. */
    struct buffer text = {0};
    wait_until((text.length = 0, http_server_metrics(seen.server, &text),
                strstr(buffer_text(&text), "assay_http_buffer_bytes 0\n")));
    const char *metrics = buffer_text(&text);
    assert_non_null(
        strstr(metrics, "assay_http_received_bytes_total{method=\"POST\",route=\"/echo\"} 5\n"));
    assert_non_null(strstr(metrics, "assay_http_refused_total{reason=\"slow_body\"} 0\n"));
    buffer_release(&text);
    stop();
    struct http_access access = {.peer = "::1",
                                 .method = "GET",
                                 .path = "/a\nb",
                                 .status = 200,
                                 .bytes_received = 1,
                                 .bytes_sent = 2,
                                 .duration_us = 1500};
    http_access_line(&text, &access);
    assert_buffer(&text, "::1 - \"GET /a\\x0ab\" 200 1 2 1.5 ms");
    buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes_and_errors),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_large_bodies),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_pipelining),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_cut_and_flipped),
        cmocka_unit_test(test_strict),
        cmocka_unit_test(test_compressed_stream),
        cmocka_unit_test(test_browsers),
        cmocka_unit_test_setup_teardown(test_browsers_with_tokens, enter_folder, leave_folder),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
