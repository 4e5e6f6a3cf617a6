// SPDX-License-Identifier: Apache-2.0
// The reader of the format heaptrack: its fixtures, wrong input, and damage.

#define READER_FORMAT format_heaptrack
#define READER_FOLDER "heaptrack"
#include "reader.h"

static void heap(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "small.txt");
    assert_int_equal(total_of(&profile, "alloc_objects"), 4);
    assert_int_equal(total_of(&profile, "alloc_space"), 1300);
    assert_int_equal(total_of(&profile, "inuse_objects"), 2);
    assert_folded(&profile, "inuse_space", "_start;main;outer;inner 200\n");
    assert_folded(&profile, "peak_space",
                  "_start;main;outer;inner 200\n_start;main;outer;inner;libother.so 1000\n");
    profile_release(&profile);
}

/* Lengths of texts came with the third version of the file. */
static void second_version(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_LABELS,
              "v 10250 2\nX ./x\ns /lib/x\ns main\ns a b\ni 10 1 2\ni 20 1 3\nt 1 0\nt 2 1\n"
              "a 64 2\n+ 0\n");
    assert_folded(&profile, "alloc_space", "main;a b 100\n");
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("v 10400 9\nX ./x\n", -ENOTSUP, "version 9");
    must_fail("v 10400 3\nt 1 0\n", -EBADMSG, "Malformed trace in line 2");
    must_fail("v 10400 3\n+ 0\n", -EBADMSG, "not known");
    must_fail("v 10400 3\na 10 5\n", -EBADMSG, "Malformed allocation");
    must_fail("v 10400 3\ni 10 5\n", -EBADMSG, "Malformed instruction pointer");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("small.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap),
        cmocka_unit_test(second_version),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
