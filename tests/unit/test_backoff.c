// SPDX-License-Identifier: Apache-2.0
// Exponential backoff and its random numbers.

#include "base/limits/backoff.h"
#include "base/random.h"
#include "unit.h"

static void bounds_double_up_to_the_longest(void **state)
{
    (void)state;
    const struct backoff backoff = {.first_ms = 100, .longest_ms = 5000};
    static const int64_t bounds[] = {100, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
    for (unsigned i = 0; i < sizeof(bounds) / sizeof(*bounds); i++)
        assert_int_equal(backoff_bound_ms(&backoff, i), bounds[i]);
    assert_int_equal(backoff_bound_ms(&backoff, UINT32_MAX), 5000);
    const struct backoff constant = {.first_ms = 7, .longest_ms = 7};
    assert_int_equal(backoff_bound_ms(&constant, 3), 7);
    assert_int_equal(backoff_bound_ms(&(struct backoff){.first_ms = 9, .longest_ms = 7}, 1), 7);
}

static void waits_are_random_within_the_bound(void **state)
{
    (void)state;
    const struct backoff backoff = {.first_ms = 100, .longest_ms = 5000};
    assert_int_equal(backoff_ms(&backoff, 1, -1, 0), 50);
    assert_int_equal(backoff_ms(&backoff, 1, -1, 50), 100);
    assert_int_equal(backoff_ms(&backoff, 1, -1, 51), 50);
    for (unsigned i = 0; i < 1000; i++) {
        assert_in_range(backoff_ms(&backoff, 3, -1, random_bits()), 200, 400);
        assert_in_range(backoff_ms(&backoff, UINT32_MAX, -1, random_bits()), 2500, 5000);
    }
}

static void never_before_the_server_wants_it(void **state)
{
    (void)state;
    struct backoff backoff = {.first_ms = 100, .longest_ms = 5000, .asked_longest_ms = 3600000};
    for (unsigned i = 0; i < 1000; i++) {
        assert_in_range(backoff_ms(&backoff, i, 8000, random_bits()), 8000, 8800);
        assert_in_range(backoff_ms(&backoff, 1, INT64_MAX, random_bits()), 3600000, 3960000);
        assert_in_range(backoff_ms(&backoff, 4, 1, random_bits()), 400, 800);
    }
    backoff.asked_longest_ms = 0;
    assert_in_range(backoff_ms(&backoff, 1, INT64_MAX, random_bits()), 5000, 5500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_double_up_to_the_longest),
        cmocka_unit_test(waits_are_random_within_the_bound),
        cmocka_unit_test(never_before_the_server_wants_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
