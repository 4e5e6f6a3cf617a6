// SPDX-License-Identifier: Apache-2.0
// Builds that agents are asked for: one agent each, as long as it lives, and not what was refused.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/symbols/requests.h"

static struct symbol_requests symbol_requests;

static int begin(void **state)
{
    (void)state;
    symbol_requests_init(&symbol_requests);
    return 0;
}

static int end(void **state)
{
    (void)state;
    symbol_requests_release(&symbol_requests);
    return 0;
}

static void say(const char *tenant, const char *agent, const char *key,
                enum symbol_request_state state, int64_t now_s)
{
    struct symbol_request_word word = {.state = state, .reason = "because"};
    snprintf(word.key, sizeof(word.key), "%s", key);
    symbol_requests_hear(&symbol_requests, tenant, agent, &word, 1, now_s);
}

/* What an agent is told. */
static const char *told(const char *tenant, const char *agent, int64_t now_s)
{
    static char text[65536];
    struct buffer out = {0};
    symbol_requests_write(&symbol_requests, tenant, agent, now_s, &out);
    snprintf(text, sizeof(text), "%s", buffer_text(&out));
    buffer_release(&out);
    return text;
}

static void one_of_many_sends_it(void **state)
{
    (void)state;
    assert_string_equal(told("t", "a", 0), "");
    symbol_requests_add(&symbol_requests, "t", "ab01", 0);
    symbol_requests_add(&symbol_requests, "t", "ab01", 1);
    assert_string_equal(told("t", "a", 1), ",\"symbols\":{\"wanted\":[\"ab01\"],\"send\":[]}");
    say("t", "a", "ab01", SYMBOL_REQUEST_HAVE, 2);
    say("t", "b", "ab01", SYMBOL_REQUEST_HAVE, 2);
    assert_string_equal(told("t", "a", 2), ",\"symbols\":{\"wanted\":[],\"send\":[\"ab01\"]}");
    assert_string_equal(told("t", "b", 2), "");
    struct error error = {0};
    assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "b", "ab01", 3, &error), -EBUSY);
    assert_non_null(strstr(error.text, "ab01"));
    assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "a", "ab01", 3, &error), 0);
    symbol_requests_end(&symbol_requests, "t", "a", "ab01", NULL, false, 4);
    assert_string_equal(told("t", "b", 5), "");
    assert_int_equal(symbol_requests.taken, 1);
    assert_int_equal(symbol_requests.count, 0);
}

static void pending(const char *tenant, int64_t now_s, uint64_t requested, uint64_t uploading)
{
    struct symbol_requests_pending got = symbol_requests_pending(&symbol_requests, tenant, now_s);
    assert_int_equal(got.requested, requested);
    assert_int_equal(got.uploading, uploading);
}

/* Names are pending while an agent may still send them. */
static void names_are_pending(void **state)
{
    (void)state;
    pending("t", 0, 0, 0);
    symbol_requests_add(&symbol_requests, "t", "ab01", 0);
    symbol_requests_add(&symbol_requests, "t", "ab02", 0);
    pending("t", 1, 2, 0);
    pending("u", 1, 0, 0);
    say("t", "a", "ab01", SYMBOL_REQUEST_HAVE, 2);
    told("t", "a", 2);
    pending("t", 3, 1, 1);
    symbol_requests_end(&symbol_requests, "t", "a", "ab01", NULL, false, 4);
    pending("t", 5, 1, 0);
    symbol_requests_add(&symbol_requests, "t", "ab02", SYMBOL_REQUEST_PENDING_S);
    pending("t", SYMBOL_REQUEST_PENDING_S, 0, 0); /* nobody seems to have it */
}

static void tenants_are_apart(void **state)
{
    (void)state;
    symbol_requests_add(&symbol_requests, "t", "ab01", 0);
    assert_string_equal(told("u", "a", 0), "");
    say("u", "a", "ab01", SYMBOL_REQUEST_HAVE, 0);
    assert_string_equal(told("u", "a", 0), "");
    assert_int_equal(symbol_requests_begin(&symbol_requests, "u", "a", "ab01", 0, NULL), -EBUSY);
    /* The same build, and agents of the same name, in both. */
    symbol_requests_add(&symbol_requests, "u", "ab01", 0);
    say("u", "a", "ab01", SYMBOL_REQUEST_HAVE, 1);
    assert_string_equal(told("t", "a", 1), ",\"symbols\":{\"wanted\":[\"ab01\"],\"send\":[]}");
    symbol_requests_end(&symbol_requests, "u", "a", "ab01", NULL, false, 2);
    assert_int_equal(symbol_requests.count, 1); /* the other tenant still has nothing of it */
    assert_string_equal(told("t", "a", 3), ",\"symbols\":{\"wanted\":[\"ab01\"],\"send\":[]}");
}

static void who_falls_silent_loses_it(void **state)
{
    (void)state;
    symbol_requests_add(&symbol_requests, "t", "ab01", 0);
    say("t", "a", "ab01", SYMBOL_REQUEST_HAVE, 0);
    for (int64_t now = 10; now <= 200; now += 10)
        say("t", "a", "ab01", SYMBOL_REQUEST_SENDING, now);
    say("t", "b", "ab01", SYMBOL_REQUEST_HAVE, 210);
    assert_string_equal(told("t", "b", 210), "");
    int64_t later = 200 + SYMBOL_REQUEST_LEASE_S;
    assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "a", "ab01", later, NULL),
                     -EBUSY);
    say("t", "b", "ab01", SYMBOL_REQUEST_HAVE, later);
    assert_string_equal(told("t", "b", later), ",\"symbols\":{\"wanted\":[],\"send\":[\"ab01\"]}");
    /* The first one's word counts no more, and its failure isn't the other's. */
    say("t", "a", "ab01", SYMBOL_REQUEST_REFUSED, later);
    symbol_requests_end(&symbol_requests, "t", "a", "ab01", "no", true, later);
    assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "b", "ab01", later, NULL), 0);
    assert_int_equal(symbol_requests.expired, 1);
}

static void the_dearest_first_and_one_at_a_time(void **state)
{
    (void)state;
    struct symbol_request_word words[3] = {{.key = "aa01"}, {.key = "aa02"}, {.key = "aa03"}};
    for (size_t i = 0; i < 3; i++)
        symbol_requests_add(&symbol_requests, "t", words[i].key, 0);
    symbol_requests_set_value(&symbol_requests, "t", "aa02", 5);
    symbol_requests_set_value(&symbol_requests, "t", "aa03", 3);
    symbol_requests_hear(&symbol_requests, "t", "a", words, 3, 0);
    symbol_requests_hear(&symbol_requests, "t", "a", words, 3, 1);
    assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "a", "aa02", 1, NULL), 0);
    assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "a", "aa03", 1, NULL), -EBUSY);
    symbol_requests_hear(&symbol_requests, "t", "b", words, 3, 1);
    assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "b", "aa03", 1, NULL), 0);
    /* Of all agents together, only so many. */
    for (int i = 0; i < 10; i++) {
        char key[SYMBOL_KEY_BYTES], agent[16];
        snprintf(key, sizeof(key), "bb%02d", i);
        snprintf(agent, sizeof(agent), "c%d", i);
        symbol_requests_add(&symbol_requests, "t", key, 1);
        say("t", agent, key, SYMBOL_REQUEST_HAVE, 1);
    }
    size_t leases = 0;
    for (size_t i = 0; i < symbol_requests.count; i++)
        leases += *symbol_requests.list[i].agent != '\0';
    assert_int_equal(leases, SYMBOL_REQUEST_LEASES_MAX);
}

static void refusals_are_remembered(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = {0};
    symbol_requests_add(&symbol_requests, "t", "ab01", 0);
    say("t", "a", "ab01", SYMBOL_REQUEST_HAVE, 0);
    symbol_requests_end(&symbol_requests, "t", "a", "ab01", "The file's build ID is another.", true,
                        1);
    assert_string_equal(told("t", "b", 2), "");
    say("t", "b", "ab01", SYMBOL_REQUEST_HAVE, 2);
    assert_string_equal(told("t", "b", 2), "");
    assert_true(symbol_requests_say(&symbol_requests, "t", "ab01", 2, &text));
    assert_string_equal(buffer_text(&text), "Refused: The file's build ID is another.");
    /* Also when nobody asked in the meantime. */
    symbol_requests_add(&symbol_requests, "t", "ff", SYMBOL_REQUEST_REFUSED_S - 10);
    assert_non_null(strstr(told("t", "b", SYMBOL_REQUEST_REFUSED_S - 10), "[\"ff\"]"));
    assert_non_null(strstr(told("t", "b", SYMBOL_REQUEST_REFUSED_S + 1), "ab01"));
    /* Three agents that can't are enough. */
    for (int i = 0; i < SYMBOL_REQUEST_REFUSALS_MAX; i++) {
        symbol_requests_add(&symbol_requests, "t", "cd01", i);
        say("t", "a", "cd01", SYMBOL_REQUEST_HAVE, i);
        assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "a", "cd01", i, NULL), 0);
        say("t", "a", "cd01", SYMBOL_REQUEST_REFUSED, i);
    }
    say("t", "b", "cd01", SYMBOL_REQUEST_HAVE, 10);
    assert_int_equal(symbol_requests_begin(&symbol_requests, "t", "b", "cd01", 10, NULL), -EBUSY);
}

static void nobody_waits_for_ever(void **state)
{
    (void)state;
    symbol_requests_add(&symbol_requests, "t", "ab01", 0);
    say("t", "a", "none", SYMBOL_REQUEST_HAVE, SYMBOL_REQUEST_AGE_S);
    assert_int_equal(symbol_requests.count, 1);
    say("t", "a", "none", SYMBOL_REQUEST_HAVE, SYMBOL_REQUEST_AGE_S + 1);
    assert_int_equal(symbol_requests.count, 0);
    for (int i = 0; i < SYMBOL_REQUESTS_MAX + 100; i++) {
        char key[SYMBOL_KEY_BYTES];
        snprintf(key, sizeof(key), "%08x", (unsigned)i);
        symbol_requests_add(&symbol_requests, "t", key, i);
    }
    assert_int_equal(symbol_requests.count, SYMBOL_REQUESTS_MAX);
    assert_int_equal(symbol_requests.dropped, 100);
    /* Each is shown, some at a time. */
    char seen[SYMBOL_REQUESTS_MAX + 100] = {0};
    for (int round = 0; round < SYMBOL_REQUESTS_MAX / SYMBOL_REQUESTS_SHOWN; round++)
        for (const char *at = told("t", "a", 700); (at = strstr(at, "\"0000")); at++)
            seen[strtoul(at + 1, NULL, 16)] = 1;
    for (int i = 100; i < SYMBOL_REQUESTS_MAX + 100; i++)
        assert_int_equal(seen[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_of_many_sends_it, begin, end),
        cmocka_unit_test_setup_teardown(names_are_pending, begin, end),
        cmocka_unit_test_setup_teardown(tenants_are_apart, begin, end),
        cmocka_unit_test_setup_teardown(who_falls_silent_loses_it, begin, end),
        cmocka_unit_test_setup_teardown(the_dearest_first_and_one_at_a_time, begin, end),
        cmocka_unit_test_setup_teardown(refusals_are_remembered, begin, end),
        cmocka_unit_test_setup_teardown(nobody_waits_for_ever, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
