// SPDX-License-Identifier: Apache-2.0
// The parts of the HTTP server that need no socket: pipes, rates, addresses, texts of headers.

#include <arpa/inet.h>
#include <netinet/in.h>

#include "http/access/authorize.h"
#include "http/server/internal.h"
#include "unit.h"

static void test_pipe(void **state)
{
    (void)state;
    struct pipe_budget budget = {.limit = 40000};
    struct pipe pipe = {.budget = &budget, .limit = 100000};
    uint8_t in[5000], out[5000];
    uint32_t put = 0, taken = 0;
    unsigned seed = 1;
    /* In and out at different paces, round and round. */
    for (int round = 0; round < 5000; round++) {
        seed = seed * 1664525 + 1013904223;
        size_t length = seed >> 8 & 4095;
        for (size_t i = 0; i < length; i++)
            in[i] = (uint8_t)((put + i) * 167 >> 3);
        put += (uint32_t)pipe_put(&pipe, in, length);
        size_t got = pipe_take(&pipe, out, seed >> 20 & 4095);
        for (size_t i = 0; i < got; i++)
            assert_int_equal(out[i], (uint8_t)((taken + i) * 167 >> 3));
        taken += (uint32_t)got;
        assert_int_equal(pipe.length, put - taken);
        assert_true(pipe.capacity <= 32768 && budget.used == pipe.capacity);
    }
    assert_true(taken > 1000000);
    /* A second pipe gets its first piece although the budget is used up. */
    struct pipe other = {.budget = &budget, .limit = 100000};
    assert_int_equal(pipe_put(&other, in, 5000), 5000);
    pipe_release(&other);
    pipe_release(&pipe);
    assert_int_equal(budget.used, 0);
    struct pipe small = {.budget = &budget, .limit = 10};
    assert_int_equal(pipe_put(&small, in, 5000), 10);
    assert_int_equal(pipe_put(&small, in, 1), 0);
    assert_int_equal(pipe_take(&small, out, 4), 4);
    assert_int_equal(pipe_put(&small, in, 5000), 4);
    pipe_release(&small);
}

/* What is said to come is believed in part, and only while the budget lasts. */
static void test_pipe_expects(void **state)
{
    (void)state;
    struct pipe_budget budget = {.limit = 200000};
    struct pipe pipe = {.budget = &budget, .limit = 1 << 20, .expected = 1 << 20};
    static const uint8_t in[20000];
    size_t length = 0;
    assert_null(pipe_take_whole(&pipe, &length));
    assert_int_equal(pipe_put(&pipe, in, 10000), 10000);
    assert_int_equal(pipe.capacity, 16384);
    assert_int_equal(pipe_put(&pipe, in, 10000), 10000);
    assert_int_equal(pipe.capacity, 131072);
    assert_int_equal(pipe_put(&pipe, in, 20000), 20000);
    assert_int_equal(budget.used, 131072);
    struct pipe other = {.budget = &budget, .limit = 1 << 20, .expected = 1 << 20};
    assert_int_equal(pipe_put(&other, in, 16000), 16000);
    assert_int_equal(pipe_put(&other, in, 16000), 16000); /* less than expected, but enough */
    assert_int_equal(other.capacity, 32768);
    pipe_release(&other);
    const void *whole = pipe_take_whole(&pipe, &length);
    assert_ptr_equal(whole, pipe.data);
    assert_int_equal(length, 40000);
    assert_int_equal(pipe.length, 0);
    /* Around the end of the ring it isn't in one piece. */
    uint8_t out[5000];
    assert_int_equal(pipe_put(&pipe, in, 20000), 20000);
    while (pipe.start + pipe.length < pipe.capacity) {
        pipe_take(&pipe, out, sizeof(out));
        pipe_put(&pipe, in, sizeof(out));
    }
    pipe_put(&pipe, in, sizeof(out));
    assert_null(pipe_take_whole(&pipe, &length));
    pipe_release(&pipe);
    assert_int_equal(budget.used, 0);
}

/* So many in a minute that begins with the first, for all addresses that one sender has. */
static void test_windows(void **state)
{
    (void)state;
    struct rates *rates = rates_new_windows(20, 60000);
    int64_t wait = 0;
    for (int i = 0; i < 20; i++)
        assert_true(rates_allow(rates, "a", 1000 + 1000 * i, &wait));
    assert_false(rates_allow(rates, "a", 31000, &wait));
    assert_int_equal(wait, 30000);
    assert_true(rates_allow(rates, "b", 31000, &wait));
    assert_false(rates_allow(rates, "a", 60999, &wait));
    for (int i = 0; i < 20; i++)
        assert_true(rates_allow(rates, "a", 61000, &wait));
    assert_false(rates_allow(rates, "a", 61000, &wait));
    rates_free(rates);
    static const struct {
        const char *address, *network;
    } cases[] = {{"192.0.2.7", "192.0.2.7"},
                 {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
                 {"2001:db8:1:2::9", "2001:db8:1:2::"},
                 {"2001:db8:1:3::9", "2001:db8:1:3::"},
                 {"::ffff:192.0.2.7", "192.0.2.7"}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char network[64];
        struct sockaddr_in v4 = {.sin_family = AF_INET};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
        bool is_v4 = inet_pton(AF_INET, cases[i].address, &v4.sin_addr) == 1;
        assert_true(is_v4 || inet_pton(AF_INET6, cases[i].address, &v6.sin6_addr) == 1);
        rates_network(is_v4 ? (void *)&v4 : (void *)&v6, network, sizeof(network));
        assert_string_equal(network, cases[i].network);
    }
}

static void test_rates(void **state)
{
    (void)state;
    struct rates *rates = rates_new(2, 4);
    int64_t wait = 0;
    for (int i = 0; i < 4; i++)
        assert_true(rates_allow(rates, "a", 1000, &wait));
    assert_false(rates_allow(rates, "a", 1000, &wait));
    assert_int_equal(wait, 500);
    assert_true(rates_allow(rates, "b", 1000, &wait));
    assert_false(rates_allow(rates, "a", 1499, &wait));
    assert_true(rates_allow(rates, "a", 1500, &wait));
    assert_false(rates_allow(rates, "a", 1500, &wait));
    /* More senders than there is room for: each is known or new, none is refused for another. */
    for (int i = 0; i < 100000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%d", i);
        assert_true(rates_allow(rates, key, 2000 + i, &wait));
    }
    rates_free(rates);
}

static void test_addresses(void **state)
{
    (void)state;
    struct listen_address found[4];
    struct error error = {0};
    size_t count = 0;
    char text[LISTEN_TEXT_BYTES];
    static const struct {
        const char *text, *shown;
        bool local;
    } good[] = {
        {"127.0.0.1:4040", "127.0.0.1:4040", true},
        {"127.8.9.1:0", "127.8.9.1:0", true},
        {"[::1]:4040", "[::1]:4040", true},
        {"0.0.0.0:80", "0.0.0.0:80", false},
        {"[::]:80", "[::]:80", false},
        {"192.0.2.1:80", "192.0.2.1:80", false},
        {"unix:/tmp/x", "unix:/tmp/x", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(good); i++) {
        assert_int_equal(listen_parse(good[i].text, found, 4, &count, &error), 0);
        assert_true(count >= 1);
        assert_string_equal(listen_text(&found[0], -1, text), good[i].shown);
        assert_int_equal(found[0].local, good[i].local);
    }
    assert_int_equal(listen_parse(":4040", found, 4, &count, &error), 0);
    assert_false(found[0].local);
    static const char *const bad[] = {"",      "127.0.0.1",    "127.0.0.1:", "127.0.0.1:65536",
                                      "::1:1", "[::1:4040",    "[]:1",       "127.0.0.1:x",
                                      "unix:", "127.0.0.1:-1", "1.2.3:4:5"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_true(listen_parse(bad[i], found, 4, &count, &error) < 0);
    char path[200] = "unix:";
    memset(path + 5, 'x', 150);
    assert_int_equal(listen_parse(path, found, 4, &count, &error), -EINVAL);

    assert_int_equal(listen_parse("0.0.0.0:4040", found, 4, &count, &error), 0);
    assert_int_equal(listen_check_exposure(found, 1, true, true, false, &error), 0);
    assert_int_equal(listen_check_exposure(found, 1, false, false, true, &error), 0);
    assert_int_equal(listen_check_exposure(found, 1, true, false, false, &error), -EPERM);
    assert_says(&error, "the server has no tokens: configure tokens");
    assert_int_equal(listen_check_exposure(found, 1, false, true, false, &error), -EPERM);
    assert_says(&error, "no TLS: configure a certificate and its key");
    assert_int_equal(listen_check_exposure(found, 1, false, false, false, &error), -EPERM);
    assert_says(&error, "0.0.0.0:4040 is reachable from other machines");
}

static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } escapes[] = {{"a%20b", "a b"}, {"%", "%"},         {"%4", "%4"}, {"%zz%41", "%zzA"},
                   {"%00", "%00"},   {"%e2%82%ac", "€"}, {"", ""},     {"%%41", "%A"}};
    for (size_t i = 0; i < ARRAY_LENGTH(escapes); i++) {
        char text[32];
        strcpy(text, escapes[i].in);
        assert_int_equal(head_unescape(NULL, NULL, text), strlen(escapes[i].out));
        assert_string_equal(text, escapes[i].out);
    }
    assert_true(authorize_gzip("gzip"));
    assert_true(authorize_gzip("deflate, GZIP;q=1.0, *;q=0.5"));
    assert_true(authorize_gzip("br;q=1.0, *"));
    assert_false(authorize_gzip(""));
    assert_false(authorize_gzip("identity, gzipped"));
    assert_false(authorize_gzip("gzip; q=0, br"));
    assert_false(authorize_gzip("gzip;q=0.000"));
    static const char *const names[] = {"a.example"};
    assert_true(authorize_host("A.example.:80", names, 1));
    assert_true(authorize_host("x.localhost", names, 1));
    assert_true(authorize_host("10.0.0.1:80", NULL, 0));
    assert_true(authorize_host("[fe80::1]", NULL, 0));
    assert_false(authorize_host("[fe80::1]x", NULL, 0));
    assert_false(authorize_host("[a.example]", names, 1));
    assert_false(authorize_host("[", names, 1));
    assert_false(authorize_host("", names, 1));
    assert_false(authorize_host("localhost.evil", names, 1));
    assert_int_equal(http_status_of_error(-E2BIG), 413);
    assert_int_equal(http_status_of_error(-ENOSYS), 501);
    assert_int_equal(http_status_of_error(-EIO), 500);
    for (int code = HTTP_CANCELED; code <= HTTP_UNAUTHENTICATED; code++)
        assert_true(http_code_name(code)[0] && http_code_status(code) >= 400);
    assert_int_equal(http_status_code(413), HTTP_RESOURCE_EXHAUSTED);
    assert_int_equal(http_status_code(418), HTTP_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),      cmocka_unit_test(test_pipe_expects),
        cmocka_unit_test(test_rates),     cmocka_unit_test(test_windows),
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
