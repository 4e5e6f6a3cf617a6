// SPDX-License-Identifier: Apache-2.0
// The HTTP client against our server, against servers that misbehave, and against none.

#include "http/client/client.h"

#include <pthread.h>

#include "../http/routes.h"
#include "http_socket.h"

static struct seen seen;
static char base[64];

static int start(void **state)
{
    static const char *const listen[] = {"127.0.0.1:0"};
    struct http_server_options options = {.listen = listen,
                                          .listen_count = 1,
                                          .routes = test_routes,
                                          .route_count = ARRAY_LENGTH(test_routes),
                                          .userdata = &seen};
    struct error error = {0};
    (void)state;
    if (http_server_start(&options, &seen.server, &error) < 0)
        return -1;
    snprintf(base, sizeof(base), "http://%s", http_server_address(seen.server, 0));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    http_server_stop(seen.server, 10000);
    return 0;
}

static struct http_client *client_with(struct http_client_options options)
{
    struct http_client *client;
    struct error error = {0};
    if (http_client_new(&options, &client, &error) < 0)
        fail_msg("%s", error.text);
    return client;
}

static const char *url(const char *path)
{
    static char text[2][256];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof(text[turn]), "%s%s", base, path);
    return text[turn];
}

static void test_calls(void **state)
{
    (void)state;
    struct http_client *client = client_with((struct http_client_options){0});
    struct http_reply reply;
    struct error error = {0};
    for (int i = 0; i < 10; i++) {
        struct http_call get = {.url = url("/hello")};
        assert_int_equal(http_client_call(client, &get, &reply, &error), 0);
        assert_int_equal(reply.status, 200);
        assert_buffer(&reply.body, "hello\n");
        assert_string_equal(reply.content_type, "text/plain");
        assert_int_equal(reply.retry_after_ms, -1);
        http_reply_release(&reply);
        struct http_call post = {.url = url("/echo"), .body = "bytes", .body_length = 5};
        assert_int_equal(http_client_call(client, &post, &reply, &error), 0);
        assert_buffer(&reply.body, "bytes");
        http_reply_release(&reply);
    }
    assert_int_equal(http_server_connections(seen.server), 1); /* all over one connection */
    struct http_call head = {.url = url("/hello"), .method = "HEAD"};
    assert_int_equal(http_client_call(client, &head, &reply, &error), 0);
    assert_int_equal(reply.body.length, 0);
    http_reply_release(&reply);
    struct http_call get = {.url = url("/hello")};
    assert_int_equal(http_client_call(client, &get, &reply, &error), 0);
    assert_buffer(&reply.body, "hello\n");
    http_reply_release(&reply);

    const char *headers[] = {"Content-Encoding: br"};
    struct http_call refused = {.url = url("/sum?secret=1"),
                                .body = "x",
                                .body_length = 1,
                                .headers = headers,
                                .header_count = 1};
    assert_int_equal(http_client_call(client, &refused, &reply, &error), 0);
    assert_int_equal(reply.status, 415);
    assert_int_equal(http_reply_error(&refused, &reply, &error), -EIO);
    assert_says(&error, " answered 415: ");
    assert_says(&error, "The encoding br is not supported");
    assert_null(strstr(error.text, "secret"));
    http_reply_release(&reply);
    /* Asked for compressed, given as it was. */
    struct http_call big = {.url = url("/big?bytes=100000")};
    assert_int_equal(http_client_call(client, &big, &reply, &error), 0);
    assert_int_equal(reply.body.length, 100000);
    http_reply_release(&reply);
    http_client_free(client);
}

static void test_files(void **state)
{
    (void)state;
    struct http_client *client = client_with((struct http_client_options){0});
    struct http_reply reply;
    struct error error = {0};
    FILE *file = tmpfile();
    for (int i = 0; i < 100000; i++)
        fprintf(file, "%d\n", i);
    fflush(file);
    size_t length = (size_t)ftell(file);
    struct http_call call = {.url = url("/echo"),
                             .method = "POST",
                             .body_from_file = true,
                             .body_fd = fileno(file),
                             .body_length = length};
    assert_int_equal(http_client_call(client, &call, &reply, &error), 0);
    assert_int_equal(reply.body.length, length);
    assert_memory_equal(reply.body.data + length - 6, "99999\n", 6);
    http_reply_release(&reply);
    call.body_length = length + 1; /* the file has become shorter */
    assert_true(http_client_call(client, &call, &reply, &error) < 0);
    fclose(file);
    http_client_free(client);
}

/* Twenty bytes that are made up as they are asked for; none after the tenth for who wants that. */
static ssize_t count_up(void *context, uint64_t at, void *bytes, size_t length)
{
    const uint64_t *end = context;
    if (at >= *end)
        return -ENODATA;
    size_t given = length < 3 ? length : 3;
    for (size_t i = 0; i < given; i++)
        ((char *)bytes)[i] = (char)('a' + at + i);
    return (ssize_t)given;
}

static void test_bodies_that_are_given(void **state)
{
    (void)state;
    struct http_client *client = client_with((struct http_client_options){0});
    struct http_reply reply;
    struct error error = {0};
    uint64_t end = 20;
    struct http_call call = {.url = url("/echo"),
                             .give = count_up,
                             .give_context = &end,
                             .body_length = 20,
                             .send_rate_bytes = 1u << 20};
    assert_int_equal(http_client_call(client, &call, &reply, &error), 0);
    assert_int_equal(reply.body.length, 20);
    assert_memory_equal(reply.body.data, "abcdefghijklmnopqrst", 20);
    http_reply_release(&reply);
    end = 10;
    assert_true(http_client_call(client, &call, &reply, &error) < 0);
    http_client_free(client);
}

static void test_failures(void **state)
{
    (void)state;
    struct http_client *client =
        client_with((struct http_client_options){.answer_limit_bytes = 1000});
    struct http_reply reply;
    struct error error = {0};
    struct http_call big = {.url = url("/big?bytes=1001")};
    assert_int_equal(http_client_call(client, &big, &reply, &error), -E2BIG);
    assert_says(&error, "larger than 1000 bytes");
    struct http_call slow = {.url = url("/sleep?ms=2000"), .timeout_ms = 100};
    assert_int_equal(http_client_call(client, &slow, &reply, &error), -ETIME);
    assert_says(&error, "didn't answer in time");
    assert_says(&error, strstr(base, "://") + 3);
    struct http_call cut = {.url = url("/stream?bytes=100&abort=1")};
    assert_int_equal(http_client_call(client, &cut, &reply, &error), -EIO);
    struct http_call nobody = {.url = "http://user:secret@127.0.0.1:1/x?secret"};
    assert_int_equal(http_client_call(client, &nobody, &reply, &error), -ECONNREFUSED);
    assert_says(&error, "Failed to connect to 127.0.0.1:1");
    assert_null(strstr(error.text, "secret"));
    struct http_call nowhere = {.url = "http://nowhere.invalid/"};
    assert_int_equal(http_client_call(client, &nowhere, &reply, &error), -EHOSTUNREACH);
    struct http_call scheme = {.url = "file:///etc/passwd"};
    assert_int_equal(http_client_call(client, &scheme, &reply, &error), -EINVAL);
    http_client_free(client);
    struct http_client_options missing = {.ca_file = "/nowhere/ca.pem"};
    assert_int_equal(http_client_new(&missing, &client, &error), -ENOENT);
    struct http_client_options both = {.bearer = "a", .password = "b"};
    assert_int_equal(http_client_new(&both, &client, &error), -EINVAL);
}

static void *cancel_soon(void *argument)
{
    while (!seen.waiting)
        sleep_ms(5);
    http_client_cancel(argument);
    return NULL;
}

static void test_cancel(void **state)
{
    (void)state;
    struct http_client *client = client_with((struct http_client_options){.timeout_ms = 55000});
    struct http_reply reply;
    struct error error = {0};
    pthread_t thread;
    pthread_create(&thread, NULL, cancel_soon, client);
    struct http_call call = {.url = url("/wait")};
    struct http_retry retry = {.first_ms = 60000};
    assert_int_equal(http_client_call_retrying(client, &call, &retry, &reply, &error), -ECANCELED);
    pthread_join(thread, NULL);
    http_client_free(client);
}

/* A server that gives each connection the next of some answers. */
struct script {
    int fd;
    const char *const *answers;
    size_t count;
};

static void *play(void *argument)
{
    struct script *script = argument;
    for (size_t i = 0; i < script->count; i++) {
        int fd = accept(script->fd, NULL, NULL);
        struct buffer got = {0};
        socket_read(fd, &got, "\r\n\r\n");
        socket_say(fd, script->answers[i]);
        buffer_release(&got);
        close(fd);
    }
    return NULL;
}

static pthread_t start_script(struct script *script, char address[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);
    script->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(script->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(script->fd, 8), 0);
    getsockname(script->fd, (struct sockaddr *)&at, &length);
    snprintf(address, 64, "http://127.0.0.1:%u/", ntohs(at.sin_port));
    pthread_t thread;
    pthread_create(&thread, NULL, play, script);
    return thread;
}

static void test_retries(void **state)
{
    (void)state;
#define CLOSE "Connection: close\r\nContent-Length: 0\r\n\r\n"
    static const char *const answers[] = {
        "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\n" CLOSE, "HTTP/1.1 429 Slow\r\n" CLOSE,
        "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\n" CLOSE, "HTTP/1.1 400 Bad\r\n" CLOSE};
    struct script script = {.answers = answers, .count = 5};
    char address[64];
    pthread_t thread = start_script(&script, address);
    struct http_client *client = client_with((struct http_client_options){0});
    struct http_reply reply;
    struct error error = {0};
    struct http_call call = {.url = address};
    struct http_retry retry = {.first_ms = 5, .longest_ms = 20};
    assert_int_equal(http_client_call_retrying(client, &call, &retry, &reply, &error), 0);
    assert_int_equal(reply.status, 200);
    http_reply_release(&reply);
    assert_int_equal(http_client_call_retrying(client, &call, &retry, &reply, &error), 0);
    assert_int_equal(reply.status, 400); /* not tried again */
    http_reply_release(&reply);
    pthread_join(thread, NULL);
    close(script.fd);
    http_client_free(client);

    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 1000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        struct http_retry standard = {0};
        unsigned first = http_retry_wait_ms(&standard, 1, -1, random);
        assert_true(first >= 250 && first <= 500);
        unsigned third = http_retry_wait_ms(&standard, 3, -1, random);
        assert_true(third >= 1000 && third <= 2000);
        unsigned late = http_retry_wait_ms(&standard, 4000000000u, -1, random);
        assert_true(late >= 15000 && late <= 30000);
        unsigned told = http_retry_wait_ms(&standard, 1, 10000, random);
        assert_true(told >= 10000 && told <= 11000);
        unsigned most = http_retry_wait_ms(&standard, 1, 86400000, random);
        assert_true(most >= 30000 && most <= 33000);
    }
    assert_int_equal(http_parse_retry_after(" 120\r\n", 0), 120000);
    assert_int_equal(http_parse_retry_after("99999999999999999", 0), 86400000);
    assert_int_equal(http_parse_retry_after("Thu, 01 Jan 1970 00:02:00 GMT\r\n", 60), 60000);
    assert_int_equal(http_parse_retry_after("Thu, 01 Jan 1970 00:02:00 GMT", 500), 0);
    assert_int_equal(http_parse_retry_after("soon", 0), -1);
    assert_int_equal(http_parse_retry_after("", 0), -1);
}

static void test_redirects(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n" CLOSE,
        "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n" CLOSE};
    struct script script = {.answers = answers, .count = 2};
    char address[64];
    pthread_t thread = start_script(&script, address);
    struct http_reply reply;
    struct error error = {0};
    struct http_call call = {.url = address};
    struct http_client *client = client_with((struct http_client_options){.redirects = 3});
    assert_int_equal(http_client_call(client, &call, &reply, &error), -EINVAL);
    http_client_free(client);
    client = client_with((struct http_client_options){0});
    assert_int_equal(http_client_call(client, &call, &reply, &error), 0);
    assert_int_equal(reply.status, 302);
    http_reply_release(&reply);
    http_client_free(client);
    pthread_join(thread, NULL);
    close(script.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls, start, stop),
        cmocka_unit_test_setup_teardown(test_files, start, stop),
        cmocka_unit_test_setup_teardown(test_bodies_that_are_given, start, stop),
        cmocka_unit_test_setup_teardown(test_failures, start, stop),
        cmocka_unit_test_setup_teardown(test_cancel, start, stop),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_redirects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
