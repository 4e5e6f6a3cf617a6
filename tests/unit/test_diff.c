// SPDX-License-Identifier: Apache-2.0
// The plain difference of two profiles.

#include "profile/views/diff.h"

#include "sample_profile.h"

struct pair {
    struct profile profiles[2];
    struct naming namings[2];
    struct diff_side sides[2];
};

static void pair_init(struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        profile_init(&pair->profiles[i], PROFILE_ALL);
}

static void pair_ready(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        naming_init(&pair->namings[i], &pair->profiles[i]);
        pair->sides[i] =
            (struct diff_side){.profile = &pair->profiles[i], .naming = &pair->namings[i]};
    }
}

static void pair_release(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        profile_release(&pair->profiles[i]);
        naming_release(&pair->namings[i]);
    }
}

static void growth_first_shrinkage_last(void **state)
{
    (void)state;
    _cleanup_(pair_release) struct pair pair = {0};
    pair_init(&pair);
    add_stacks(&pair.profiles[0], "main;a 10", "main;b 20", "main;gone 5");
    add_stacks(&pair.profiles[1], "main;a 30", "main;b 12", "main;new 1");
    pair_ready(&pair);
    _cleanup_diff_ struct diff diff = {0};
    diff_functions(&pair.sides[0], &pair.sides[1], 1, RANK_BY_FLAT, &diff);
    assert_int_equal(diff.base_total, 35);
    assert_int_equal(diff.new_total, 43);
    assert_int_equal(diff.count, 5);
    static const struct {
        const char *name;
        int64_t change, base, now;
    } expected[] = {{"a", 20, 10, 30},
                    {"new", 1, 0, 1},
                    {"main", 0, 0, 0},
                    {"gone", -5, 5, 0},
                    {"b", -8, 20, 12}};
    for (size_t i = 0; i < diff.count; i++) {
        assert_string_equal(diff.rows[i].entry->name, expected[i].name);
        assert_int_equal(diff.rows[i].flat_change, expected[i].change);
        assert_int_equal(diff.rows[i].base_flat, expected[i].base);
        assert_int_equal(diff.rows[i].new_flat, expected[i].now);
    }
    assert_int_equal(diff.rows[2].cumulative_change, 8);
}

static void scaling(void **state)
{
    (void)state;
    _cleanup_(pair_release) struct pair pair = {0};
    pair_init(&pair);
    add_stacks(&pair.profiles[0], "a 10", "b 10");
    add_stacks(&pair.profiles[1], "a 20", "b 20");
    pair.profiles[0].duration_ns = 1000;
    pair.profiles[1].duration_ns = 4000;
    pair_ready(&pair);
    assert_true(diff_scale(&pair.sides[0], &pair.sides[1], DIFF_BY_TOTAL) == 2);
    assert_true(diff_scale(&pair.sides[0], &pair.sides[1], DIFF_BY_DURATION) == 4);
    assert_true(diff_scale(&pair.sides[0], &pair.sides[1], DIFF_ABSOLUTE) == 1);
    _cleanup_diff_ struct diff diff = {0};
    diff_functions(&pair.sides[0], &pair.sides[1], 2, RANK_BY_FLAT, &diff);
    for (size_t i = 0; i < diff.count; i++)
        assert_int_equal(diff.rows[i].flat_change, 0);
}

static void a_side_without_the_type_or_samples(void **state)
{
    (void)state;
    _cleanup_(pair_release) struct pair pair = {0};
    pair_init(&pair);
    add_stacks(&pair.profiles[1], "a 20");
    pair_ready(&pair);
    pair.sides[0].type = PROFILE_TYPES_MAX;
    assert_true(diff_scale(&pair.sides[0], &pair.sides[1], DIFF_BY_TOTAL) == 1);
    _cleanup_diff_ struct diff diff = {0};
    diff_functions(&pair.sides[0], &pair.sides[1], 1, RANK_BY_FLAT, &diff);
    assert_int_equal(diff.count, 1);
    assert_int_equal(diff.rows[0].flat_change, 20);
}

static void the_ends_of_the_range(void **state)
{
    (void)state;
    _cleanup_(pair_release) struct pair pair = {0};
    pair_init(&pair);
    add_stacks(&pair.profiles[0], "a -9223372036854775808", "b 9223372036854775807");
    add_stacks(&pair.profiles[1], "a 9223372036854775807", "b -9223372036854775808");
    pair_ready(&pair);
    for (int i = 1; i <= 3; i++) {
        _cleanup_diff_ struct diff diff = {0};
        diff_functions(&pair.sides[0], &pair.sides[1], i, RANK_BY_FLAT, &diff);
        assert_true(diff.rows[0].flat_change == INT64_MAX);
        assert_true(diff.rows[1].flat_change == INT64_MIN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_first_shrinkage_last),
        cmocka_unit_test(scaling),
        cmocka_unit_test(a_side_without_the_type_or_samples),
        cmocka_unit_test(the_ends_of_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
