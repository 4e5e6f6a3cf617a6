// SPDX-License-Identifier: Apache-2.0
// The reader of the format massif: its fixtures, wrong input, and damage.

#define READER_FORMAT format_massif
#define READER_FOLDER "massif"
#include "reader.h"

static void peak(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "small.out");
    assert_folded(&profile, "inuse_space", "helper 100\nmain;large 900\n");
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("desc: x\ncmd: y\ntime_unit: i\n", -EBADMSG, "no snapshot");
    must_fail("mem_heap_B=x\n", -EBADMSG, "Malformed heap size in line 1");
    must_fail("heap_tree=peak\nn1: 10 x\n   n0: 5 y\n", -EBADMSG, "too far to the right");
    must_fail("heap_tree=peak\nn1: x y\n", -EBADMSG, "no size");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("small.out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
