// SPDX-License-Identifier: Apache-2.0
// The reader of the format callgrind: its fixtures, wrong input, and damage.

#define READER_FORMAT format_callgrind
#define READER_FOLDER "callgrind"
#include "reader.h"

static void costs_and_calls(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "small.out");
    assert_folded(&profile, "Ir",
                  "exit'2 200\nmain 100\nmain;heavy 500\nmain;heavy;light 100\nmain;light 100\n");
    assert_int_equal(total_of(&profile, "Dr"), 100);
    assert_string_equal(profile_text(&profile, profile.default_type), "Ir");
    profile_release(&profile);
}

/* Positions are relative to the line before, also of calls. */
static void lines(void **state)
{
    (void)state;
    struct profile profile;
    bool found = false;
    read_fixture(&profile, PROFILE_ALL, "small.out");
    for (uint32_t i = 1; i < profile.frame_count; i++) {
        const struct profile_function *function = &profile.functions[profile.frames[i].function];
        if (!strcmp(profile_text(&profile, function->name), "main") && profile.frames[i].line == 13)
            found = true;
        if (!strcmp(profile_text(&profile, function->name), "light"))
            assert_string_equal(profile_text(&profile, function->file), "other.c");
    }
    assert_true(found);
    profile_release(&profile);
}

static void circles(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "events: Ir\nfn=a\n1 10\ncfn=b\ncalls=1 1\n1 90\nfn=b\n1 20\ncfn=a\ncalls=1 1\n"
              "1 70\ncfn=b\ncalls=1 1\n1 5\n");
    assert_int_equal(total_of(&profile, "Ir"), 30);
    profile_release(&profile);
}

/* Valgrind numbers all functions that it has seen, and leaves out those without costs. A part of a
 * longer file has numbers that were defined before. */
static void sparse_numbers(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_LABELS, "events: Ir\nfn=(68330) f\n1 2\n\nfn=(68330)\n1 3\n");
    assert_folded(&profile, "Ir", "f 5\n");
    profile_release(&profile);
    must_read(&profile, PROFILE_LABELS, "events: Ir\nob=(9)\nfl=(8)\nfn=(7)\n1 2\n");
    assert_folded(&profile, "Ir", "(7) 2\n");
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("fn=a\n1 2\n", -EBADMSG, "before the line of events");
    must_fail("fn=a\n", -EBADMSG, "no line of events");
    must_fail("events: Ir\nfn=(99999999999) a\n", -EBADMSG, "invalid number");
    must_fail("events: Ir\nfn=(16000000) a\n", -EBADMSG, "invalid number");
    must_fail("events: Ir\nfn=a\n1 x\n", -EBADMSG, "Malformed cost in line 3");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("small.out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_and_calls), cmocka_unit_test(lines),     cmocka_unit_test(circles),
        cmocka_unit_test(sparse_numbers),  cmocka_unit_test(bad_input), cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
