// SPDX-License-Identifier: Apache-2.0
// The reader of the format pstats: its fixtures, wrong input, and damage.

#define READER_FORMAT format_pstats
#define READER_FOLDER "pstats"
#include "reader.h"

static void statistics(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "small.pstats");
    assert_folded(&profile, "wall",
                  "main 1000000\nmain;heavy 499000000\nmain;heavy;light 240000000\n"
                  "main;heavy;light;<built-in method builtins.len> 60000000\n"
                  "main;light 160000000\n"
                  "main;light;<built-in method builtins.len> 40000000\n");
    assert_int_equal(total_of(&profile, "calls"), 16);
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("", -EBADMSG, "Not a dictionary");
    must_fail("{", -EBADMSG, "ends before a value");
    must_fail("{i\1\1\1\1", -EBADMSG, "not a function");
    must_fail("{(\3\1\1\1", -EBADMSG, "longer");
    must_fail("{r\1\1\1\1", -EBADMSG, "leads nowhere");
    must_fail("{?", -EBADMSG, "doesn't write");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("small.pstats");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
