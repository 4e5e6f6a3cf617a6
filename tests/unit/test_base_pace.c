// SPDX-License-Identifier: Apache-2.0
// CPU time that is saved up, owed and paid back.

#include "base/limits/pace.h"
#include "unit.h"

#define SECOND 1000000000ll

static void pays_back(void **state)
{
    (void)state;
    struct pace pace;
    pace_init(&pace, 0.01, 5 * SECOND);
    assert_int_equal(pace_owed_ns(&pace, 5 * SECOND), 0);
    /* A tenth of a second of CPU time, at a hundredth of a CPU, takes ten seconds. */
    pace_spend(&pace, SECOND / 10);
    assert_in_range(pace_owed_ns(&pace, 5 * SECOND), 10 * SECOND - 1000, 10 * SECOND + 1000);
    assert_in_range(pace_owed_ns(&pace, 9 * SECOND), 6 * SECOND - 1000, 6 * SECOND + 1000);
    assert_int_equal(pace_owed_ns(&pace, 15 * SECOND + 1000), 0);
}

static void saves_for_ten_seconds(void **state)
{
    (void)state;
    struct pace pace;
    pace_init(&pace, 0.01, 0);
    /* An hour without work is worth ten seconds: a tenth of a second of CPU time. */
    assert_int_equal(pace_owed_ns(&pace, 3600 * SECOND), 0);
    pace_spend(&pace, SECOND / 10);
    assert_int_equal(pace_owed_ns(&pace, 3600 * SECOND), 0);
    pace_spend(&pace, SECOND / 10);
    assert_in_range(pace_owed_ns(&pace, 3600 * SECOND), 10 * SECOND - 1000, 10 * SECOND + 1000);
}

static void earns_besides_its_share(void **state)
{
    (void)state;
    struct pace pace;
    pace_init(&pace, 0.01, 0);
    pace_spend(&pace, SECOND);
    pace_earn(&pace, SECOND / 2);
    assert_in_range(pace_owed_ns(&pace, 0), 50 * SECOND - 1000, 50 * SECOND + 1000);
    pace_earn(&pace, 100 * SECOND); /* saved no longer than the share's */
    assert_int_equal(pace_owed_ns(&pace, 0), 0);
    pace_spend(&pace, SECOND);
    assert_in_range(pace_owed_ns(&pace, 0), 90 * SECOND - 1000, 90 * SECOND + 1000);
}

static void odd_input(void **state)
{
    (void)state;
    struct pace pace;
    /* Without a share there is nothing to wait for; a clock that goes back pays nothing. */
    pace_init(&pace, 0, 0);
    pace_spend(&pace, SECOND);
    assert_int_equal(pace_owed_ns(&pace, SECOND), 0);
    pace_init(&pace, 0.5, 10 * SECOND);
    pace_spend(&pace, SECOND);
    pace_spend(&pace, -5 * SECOND);
    assert_in_range(pace_owed_ns(&pace, 2 * SECOND), 2 * SECOND - 1000, 2 * SECOND + 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pays_back),
        cmocka_unit_test(saves_for_ten_seconds),
        cmocka_unit_test(earns_besides_its_share),
        cmocka_unit_test(odd_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
