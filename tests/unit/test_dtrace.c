// SPDX-License-Identifier: Apache-2.0
// The reader of the format dtrace: its fixtures, wrong input, and damage.

#define READER_FORMAT format_dtrace
#define READER_FOLDER "dtrace"
#include "reader.h"

static void aggregation(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "stacks.txt");
    assert_folded(&profile, "samples", "main;uv__io_poll;read;_read 12\ntaskq_thread;cv_wait 3\n");
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("   a`b\n   a`c\n", -EBADMSG, "No stack with a count");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("stacks.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aggregation),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
