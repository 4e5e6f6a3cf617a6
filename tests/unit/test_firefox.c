// SPDX-License-Identifier: Apache-2.0
// The reader of the format firefox: its fixtures, wrong input, and damage.

#define READER_FORMAT format_firefox
#define READER_FOLDER "firefox"
#include "reader.h"

static void processed(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "processed.json");
    assert_folded(&profile, "samples", "main;heavy 2\nmain;light 1\nwork 3\n");
    assert_int_equal(total_of(&profile, "wall"), 12000000);
    assert_int_equal(total_of(&profile, "cpu"), 3500000);
    assert_int_equal(profile.samples.time_ns[0], 1700000000001000000);
    profile_release(&profile);
}

static void shared_tables(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "shared.json");
    assert_folded(&profile, "samples", "outer 1\nouter;inner 5\n");
    profile_release(&profile);
}

static void gecko(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "gecko.json");
    assert_folded(&profile, "samples", "(root);0x7f0012 2\n(root);f 1\ncontent 1\n");
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("{\"meta\":{}}", -EBADMSG, "no threads");
    must_fail("[]", -EBADMSG, "not an object");
    must_fail("{\"threads\":[{\"samples\":{\"stack\":[3]}}]}", -EBADMSG, "not there");
    must_fail("{\"threads\":[{\"samples\":{\"stack\":[0]},\"stackTable\":{\"frame\":[0],"
              "\"prefix\":[0]}}]}",
              -EBADMSG, "before its caller");
    must_fail("{\"threads\":[{\"samples\":{\"stack\":[0]},\"stackTable\":{\"frame\":[5],"
              "\"prefix\":[null]}}]}",
              -EBADMSG, "no frame");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("processed.json");
    survives_damage("shared.json");
    survives_damage("gecko.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processed), cmocka_unit_test(shared_tables), cmocka_unit_test(gecko),
        cmocka_unit_test(bad_input), cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
