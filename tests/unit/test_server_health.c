// SPDX-License-Identifier: Apache-2.0
// What health counts: refusals of the last minute, and no others.

#include "server/ingest/refusals.h"
#include "unit.h"

#define SECOND_NS 1000000000ll

static void a_burst_is_over_after_a_minute(void **state)
{
    (void)state;
    struct refusals refusals = {0};
    char latest[ERROR_TEXT_BYTES];
    int64_t now = 7001 * SECOND_NS;
    refusals_init(&refusals);
    assert_int_equal(refusals_recent(&refusals, now, latest), 0);
    for (unsigned i = 0; i < 1000; i++)
        refusals_note(&refusals, "It was too much.", now);
    now += 30 * SECOND_NS;
    refusals_note(&refusals, "The disk is full.", now);
    assert_int_equal(refusals_recent(&refusals, now, latest), 1001);
    assert_string_equal(latest, "The disk is full.");
    now += 35 * SECOND_NS;
    assert_int_equal(refusals_recent(&refusals, now, latest), 1);
    /* A place that is used again doesn't count what was there before. */
    refusals_note(&refusals, "Again.", now);
    assert_int_equal(refusals_recent(&refusals, now, latest), 2);
    assert_int_equal(refusals_recent(&refusals, now + 3600 * SECOND_NS, latest), 0);
    refusals_release(&refusals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_over_after_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
