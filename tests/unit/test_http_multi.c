// SPDX-License-Identifier: Apache-2.0
// Many requests at once: all answered, all failures told apart, and no more memory than was given.

#include "http/client/client_multi.h"

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

/* What became of a request. */
struct result {
    unsigned done;
    int code;
    struct http_reply reply;
    struct error error;
};

struct run {
    struct http_multi *multi;
    atomic_size_t budget;
    size_t done;
};

static void note(void *context, void *request, int code, struct http_reply *reply,
                 const struct error *error)
{
    struct run *run = context;
    struct result *result = request;
    result->done++;
    result->code = code;
    result->reply = *reply;
    result->error = *error;
    run->done++;
}

static void open_run(struct run *run, size_t budget)
{
    struct error error = {0};
    *run = (struct run){0};
    atomic_init(&run->budget, budget);
    struct http_multi_options options = {
        .done = note, .context = run, .connections = 20, .budget = &run->budget};
    if (http_multi_new(&options, &run->multi, &error) < 0)
        fail_msg("%s", error.text);
}

static void ask(struct run *run, const struct http_client_options *options, const char *path,
                struct result *result)
{
    static const struct http_client_options none;
    char url[256], header[32];
    struct error error = {0};
    snprintf(url, sizeof(url), "%s%s", *path == '/' ? base : "", path);
    snprintf(header, sizeof(header), "X-Test: yes");
    const char *const headers[] = {header};
    struct http_call call = {.url = url, .headers = headers, .header_count = 1};
    *result = (struct result){0};
    if (http_multi_start(run->multi, options ? options : &none, &call, result, &error) < 0)
        fail_msg("%s", error.text);
    /* All was copied. */
    memset(url, 'x', sizeof(url) - 1);
    memset(header, 'x', sizeof(header) - 1);
}

static void finish(struct run *run, size_t count)
{
    for (int rounds = 0; run->done < count; rounds++) {
        assert_true(rounds < 100000);
        http_multi_run(run->multi, 100);
    }
    assert_int_equal(run->done, count);
}

static void test_many(void **state)
{
    (void)state;
    static struct result results[300];
    struct run run;
    open_run(&run, 1 << 20);
    for (int round = 0; round < 2; round++) {
        run.done = 0;
        for (size_t i = 0; i < ARRAY_LENGTH(results); i++)
            ask(&run, NULL, "/hello", &results[i]);
        assert_int_equal(http_multi_active(run.multi), ARRAY_LENGTH(results));
        finish(&run, ARRAY_LENGTH(results));
        assert_int_equal(http_multi_active(run.multi), 0);
        for (size_t i = 0; i < ARRAY_LENGTH(results); i++) {
            assert_int_equal(results[i].done, 1);
            assert_int_equal(results[i].code, 0);
            assert_int_equal(results[i].reply.status, 200);
            assert_buffer(&results[i].reply.body, "hello\n");
            atomic_fetch_add(&run.budget, results[i].reply.body.length);
            http_reply_release(&results[i].reply);
        }
        assert_int_equal(atomic_load(&run.budget), 1 << 20);
    }
    http_multi_free(run.multi);
}

static void test_failures(void **state)
{
    (void)state;
    struct run run;
    struct result results[6];
    struct http_client_options small = {.answer_limit_bytes = 100};
    struct http_client_options short_time = {.timeout_ms = 200};
    open_run(&run, 1 << 20);
    ask(&run, NULL, "http://127.0.0.1:1/", &results[0]);
    ask(&run, &short_time, "/wait", &results[1]);
    ask(&run, &small, "/big?bytes=10000", &results[2]);
    ask(&run, NULL, "gopher://127.0.0.1/", &results[3]);
    ask(&run, NULL, "/nowhere", &results[4]);
    ask(&run, NULL, "/hello", &results[5]);
    finish(&run, 6);
    assert_int_equal(results[0].code, -ECONNREFUSED);
    assert_says(&results[0].error, "Failed to connect to 127.0.0.1:1");
    assert_int_equal(results[1].code, -ETIME);
    assert_int_equal(results[2].code, -E2BIG);
    assert_says(&results[2].error, "larger than 100 bytes");
    assert_int_equal(results[3].code, -EINVAL);
    assert_int_equal(results[4].reply.status, 404);
    assert_int_equal(results[5].reply.status, 200);
    size_t held = results[4].reply.body.length + results[5].reply.body.length;
    assert_int_equal(atomic_load(&run.budget), (1 << 20) - held);
    http_reply_release(&results[4].reply);
    http_reply_release(&results[5].reply);
    http_multi_free(run.multi);

    struct http_client_options bad = {.ca_file = "/nowhere/ca.pem"};
    struct http_call call = {.url = base};
    struct error error = {0};
    open_run(&run, 1000);
    assert_int_equal(http_multi_start(run.multi, &bad, &call, &results[0], &error), -ENOENT);
    assert_says(&error, "/nowhere/ca.pem");
    bad = (struct http_client_options){.server_name = "a b"};
    call.url = "https://127.0.0.1:1/";
    assert_int_equal(http_multi_start(run.multi, &bad, &call, &results[0], &error), -EINVAL);
    assert_int_equal(http_multi_active(run.multi), 0);
    http_multi_free(run.multi);
}

static void test_budget(void **state)
{
    (void)state;
    struct run run;
    struct result results[10];
    size_t fine = 0, held = 0, refused = 0;
    open_run(&run, 250000);
    for (size_t i = 0; i < 10; i++)
        ask(&run, NULL, "/big?bytes=100000", &results[i]);
    finish(&run, 10);
    for (size_t i = 0; i < 10; i++) {
        if (!results[i].code) {
            fine++;
            held += results[i].reply.body.length;
            http_reply_release(&results[i].reply);
        } else {
            assert_int_equal(results[i].code, -ENOBUFS);
            assert_says(&results[i].error, "Not enough memory");
            refused++;
        }
    }
    /* Two fit; when several start together they may be in each other's way. */
    assert_true(fine <= 2 && fine + refused == 10 && held == fine * 100000);
    assert_int_equal(atomic_load(&run.budget), 250000 - held);
    atomic_fetch_add(&run.budget, held);
    run.done = 0;
    ask(&run, NULL, "/big?bytes=250000", &results[0]);
    finish(&run, 1);
    assert_int_equal(results[0].code, 0);
    http_reply_release(&results[0].reply);
    http_multi_free(run.multi);
}

static void test_cancel(void **state)
{
    (void)state;
    struct run run;
    struct result results[3];
    open_run(&run, 1000);
    for (size_t i = 0; i < 3; i++)
        ask(&run, NULL, "/wait", &results[i]);
    http_multi_run(run.multi, 10);
    http_multi_cancel(run.multi, &results[1]);
    http_multi_cancel(run.multi, &run); /* nobody's */
    assert_int_equal(http_multi_active(run.multi), 2);
    http_multi_wake(run.multi);
    http_multi_free(run.multi); /* with two under way */
    assert_int_equal(run.done, 0);
    http_multi_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
