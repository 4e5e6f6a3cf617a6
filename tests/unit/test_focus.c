// SPDX-License-Identifier: Apache-2.0
// Parts of the call tree: which stacks begin with given frames.

#include "query/focus.h"

#include "sample_profile.h"

static int64_t sum(const struct profile *profile)
{
    int64_t total = 0;
    for (size_t row = 0; row < profile->samples.count; row++)
        total += profile->samples.values[0][row];
    return total;
}

/* The sum of what is left below a path; -1 when there is no such path. */
static int64_t below(const char *const *names, size_t count)
{
    struct profile profile;
    struct naming naming = {0};
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "main;a;b 1", "main;a;+c 2", "main;b;a 4", "a;main 8", "main 16",
               "main;a;b:3;d 32", "0x40;a 64");
    naming_init(&naming, &profile);
    int64_t all = sum(&profile);
    int64_t left = focus_below(&profile, &naming, names, count) ? sum(&profile) : -1;
    if (left < 0)
        assert_int_equal(sum(&profile), all); /* untouched */
    naming_release(&naming);
    profile_release(&profile);
    return left;
}

#define assert_below(expected, ...)                                                                \
    do {                                                                                           \
        const char *const names_[] = {__VA_ARGS__};                                                \
        assert_int_equal(below(names_, sizeof(names_) / sizeof(names_[0])), expected);             \
    } while (0)

static void test_paths(void **state)
{
    (void)state;
    assert_below(1 + 2 + 4 + 16 + 32, "main");
    assert_below(1 + 2 + 32, "main", "a");
    /* Lines are no part of a name, and a path ends anywhere above a leaf. */
    assert_below(1 + 32, "main", "a", "b");
    assert_below(32, "main", "a", "b", "d");
    assert_below(2, "main", "a", "c");
    assert_below(8, "a");
    assert_below(64, "app+0x40");
    assert_int_equal(below(NULL, 0), 127);
}

static void test_no_such_path(void **state)
{
    (void)state;
    assert_below(-1, "b");
    assert_below(-1, "main", "d");
    assert_below(-1, "main", "a", "b", "d", "e");
    assert_below(-1, "");
    assert_below(-1, "mai");
    assert_below(-1, "a", "a");
}

static void test_empty_profile(void **state)
{
    (void)state;
    struct profile profile;
    struct naming naming = {0};
    profile_init(&profile, 0);
    naming_init(&naming, &profile);
    const char *const names[] = {"main"};
    assert_false(focus_below(&profile, &naming, names, 1));
    assert_false(focus_below(&profile, &naming, NULL, 0));
    naming_release(&naming);
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_no_such_path),
        cmocka_unit_test(test_empty_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
