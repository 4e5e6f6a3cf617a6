// SPDX-License-Identifier: Apache-2.0
// Builds that agents are asked for: one agent each, as long as it lives, and not what was refused.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/wishes.h"

static struct wishes wishes;

static int begin(void **state)
{
    (void)state;
    wishes_init(&wishes);
    return 0;
}

static int end(void **state)
{
    (void)state;
    wishes_release(&wishes);
    return 0;
}

static void say(const char *tenant, const char *agent, const char *key, enum wish_state state,
                int64_t now_s)
{
    struct wish_word word = {.state = state, .reason = "because"};
    snprintf(word.key, sizeof(word.key), "%s", key);
    wishes_hear(&wishes, tenant, agent, &word, 1, now_s);
}

/* What an agent is told. */
static const char *told(const char *tenant, const char *agent, int64_t now_s)
{
    static char text[65536];
    struct buffer out = {0};
    wishes_write(&wishes, tenant, agent, now_s, &out);
    snprintf(text, sizeof(text), "%s", buffer_text(&out));
    buffer_release(&out);
    return text;
}

static void one_of_many_sends_it(void **state)
{
    (void)state;
    assert_string_equal(told("t", "a", 0), "");
    wishes_add(&wishes, "t", "ab01", 0);
    wishes_add(&wishes, "t", "ab01", 1);
    assert_string_equal(told("t", "a", 1), ",\"symbols\":{\"wanted\":[\"ab01\"],\"send\":[]}");
    say("t", "a", "ab01", WISH_HAVE, 2);
    say("t", "b", "ab01", WISH_HAVE, 2);
    assert_string_equal(told("t", "a", 2), ",\"symbols\":{\"wanted\":[],\"send\":[\"ab01\"]}");
    assert_string_equal(told("t", "b", 2), "");
    struct error error = {0};
    assert_int_equal(wishes_begin(&wishes, "t", "b", "ab01", 3, &error), -EBUSY);
    assert_non_null(strstr(error.text, "ab01"));
    assert_int_equal(wishes_begin(&wishes, "t", "a", "ab01", 3, &error), 0);
    wishes_end(&wishes, "t", "a", "ab01", NULL, false, 4);
    assert_string_equal(told("t", "b", 5), "");
    assert_int_equal(wishes.taken, 1);
    assert_int_equal(wishes.count, 0);
}

static void tenants_are_apart(void **state)
{
    (void)state;
    wishes_add(&wishes, "t", "ab01", 0);
    assert_string_equal(told("u", "a", 0), "");
    say("u", "a", "ab01", WISH_HAVE, 0);
    assert_string_equal(told("u", "a", 0), "");
    assert_int_equal(wishes_begin(&wishes, "u", "a", "ab01", 0, NULL), -EBUSY);
    /* The same build, and agents of the same name, in both. */
    wishes_add(&wishes, "u", "ab01", 0);
    say("u", "a", "ab01", WISH_HAVE, 1);
    assert_string_equal(told("t", "a", 1), ",\"symbols\":{\"wanted\":[\"ab01\"],\"send\":[]}");
    wishes_end(&wishes, "u", "a", "ab01", NULL, false, 2);
    assert_int_equal(wishes.count, 0); /* it is there for all */
}

static void who_falls_silent_loses_it(void **state)
{
    (void)state;
    wishes_add(&wishes, "t", "ab01", 0);
    say("t", "a", "ab01", WISH_HAVE, 0);
    for (int64_t now = 10; now <= 200; now += 10)
        say("t", "a", "ab01", WISH_SENDING, now);
    say("t", "b", "ab01", WISH_HAVE, 210);
    assert_string_equal(told("t", "b", 210), "");
    int64_t later = 200 + WISH_LEASE_S;
    assert_int_equal(wishes_begin(&wishes, "t", "a", "ab01", later, NULL), -EBUSY);
    say("t", "b", "ab01", WISH_HAVE, later);
    assert_string_equal(told("t", "b", later), ",\"symbols\":{\"wanted\":[],\"send\":[\"ab01\"]}");
    /* The first one's word counts no more, and its failure isn't the other's. */
    say("t", "a", "ab01", WISH_REFUSED, later);
    wishes_end(&wishes, "t", "a", "ab01", "no", true, later);
    assert_int_equal(wishes_begin(&wishes, "t", "b", "ab01", later, NULL), 0);
    assert_int_equal(wishes.expired, 1);
}

static void the_dearest_first_and_one_at_a_time(void **state)
{
    (void)state;
    struct wish_word words[3] = {{.key = "aa01"}, {.key = "aa02"}, {.key = "aa03"}};
    for (size_t i = 0; i < 3; i++)
        wishes_add(&wishes, "t", words[i].key, 0);
    wishes_set_value(&wishes, "t", "aa02", 5);
    wishes_set_value(&wishes, "t", "aa03", 3);
    wishes_hear(&wishes, "t", "a", words, 3, 0);
    wishes_hear(&wishes, "t", "a", words, 3, 1);
    assert_int_equal(wishes_begin(&wishes, "t", "a", "aa02", 1, NULL), 0);
    assert_int_equal(wishes_begin(&wishes, "t", "a", "aa03", 1, NULL), -EBUSY);
    wishes_hear(&wishes, "t", "b", words, 3, 1);
    assert_int_equal(wishes_begin(&wishes, "t", "b", "aa03", 1, NULL), 0);
    /* Of all agents together, only so many. */
    for (int i = 0; i < 10; i++) {
        char key[SYMBOL_KEY_BYTES], agent[16];
        snprintf(key, sizeof(key), "bb%02d", i);
        snprintf(agent, sizeof(agent), "c%d", i);
        wishes_add(&wishes, "t", key, 1);
        say("t", agent, key, WISH_HAVE, 1);
    }
    size_t leases = 0;
    for (size_t i = 0; i < wishes.count; i++)
        leases += *wishes.list[i].agent != '\0';
    assert_int_equal(leases, WISH_LEASES_MAX);
}

static void refusals_are_remembered(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = {0};
    wishes_add(&wishes, "t", "ab01", 0);
    say("t", "a", "ab01", WISH_HAVE, 0);
    wishes_end(&wishes, "t", "a", "ab01", "The file's build ID is another.", true, 1);
    assert_string_equal(told("t", "b", 2), "");
    say("t", "b", "ab01", WISH_HAVE, 2);
    assert_string_equal(told("t", "b", 2), "");
    assert_true(wishes_say(&wishes, "t", "ab01", 2, &text));
    assert_string_equal(buffer_text(&text), "Refused: The file's build ID is another.");
    /* Also when nobody asked in the meantime. */
    wishes_add(&wishes, "t", "ff", WISH_REFUSED_S - 10);
    assert_non_null(strstr(told("t", "b", WISH_REFUSED_S - 10), "[\"ff\"]"));
    assert_non_null(strstr(told("t", "b", WISH_REFUSED_S + 1), "ab01"));
    /* Three agents that can't are enough. */
    for (int i = 0; i < WISH_REFUSALS_MAX; i++) {
        wishes_add(&wishes, "t", "cd01", i);
        say("t", "a", "cd01", WISH_HAVE, i);
        assert_int_equal(wishes_begin(&wishes, "t", "a", "cd01", i, NULL), 0);
        say("t", "a", "cd01", WISH_REFUSED, i);
    }
    say("t", "b", "cd01", WISH_HAVE, 10);
    assert_int_equal(wishes_begin(&wishes, "t", "b", "cd01", 10, NULL), -EBUSY);
}

static void nobody_waits_for_ever(void **state)
{
    (void)state;
    wishes_add(&wishes, "t", "ab01", 0);
    say("t", "a", "none", WISH_HAVE, WISH_AGE_S);
    assert_int_equal(wishes.count, 1);
    say("t", "a", "none", WISH_HAVE, WISH_AGE_S + 1);
    assert_int_equal(wishes.count, 0);
    for (int i = 0; i < WISHES_MAX + 100; i++) {
        char key[SYMBOL_KEY_BYTES];
        snprintf(key, sizeof(key), "%08x", (unsigned)i);
        wishes_add(&wishes, "t", key, i);
    }
    assert_int_equal(wishes.count, WISHES_MAX);
    assert_int_equal(wishes.dropped, 100);
    /* Each is shown, some at a time. */
    char seen[WISHES_MAX + 100] = {0};
    for (int round = 0; round < WISHES_MAX / WISHES_SHOWN; round++)
        for (const char *at = told("t", "a", 700); (at = strstr(at, "\"0000")); at++)
            seen[strtoul(at + 1, NULL, 16)] = 1;
    for (int i = 100; i < WISHES_MAX + 100; i++)
        assert_int_equal(seen[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_of_many_sends_it, begin, end),
        cmocka_unit_test_setup_teardown(tenants_are_apart, begin, end),
        cmocka_unit_test_setup_teardown(who_falls_silent_loses_it, begin, end),
        cmocka_unit_test_setup_teardown(the_dearest_first_and_one_at_a_time, begin, end),
        cmocka_unit_test_setup_teardown(refusals_are_remembered, begin, end),
        cmocka_unit_test_setup_teardown(nobody_waits_for_ever, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
