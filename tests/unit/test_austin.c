// SPDX-License-Identifier: Apache-2.0
// The reader of the format austin: its fixtures, wrong input, and damage.

#define READER_FORMAT format_austin
#define READER_FOLDER "austin"
#include "reader.h"

static void wall(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "wall.austin");
    assert_folded(&profile, "wall", "<module>;work 500000\nThread._bootstrap 100000\n");
    assert_int_equal(total_of(&profile, "samples"), 3);
    profile_release(&profile);
}

static void full(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "full.austin");
    assert_int_equal(total_of(&profile, "wall"), 500000);
    assert_int_equal(total_of(&profile, "alloc_space"), 4096);
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("# austin: 3.6.0\nnonsense\n", -EBADMSG, "line 2");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("wall.austin");
    survives_damage("full.austin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wall),
        cmocka_unit_test(full),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
