// SPDX-License-Identifier: Apache-2.0
// The reader of the format macos-sample: its fixtures, wrong input, and damage.

#define READER_FORMAT format_macos_sample
#define READER_FOLDER "macos-sample"
#include "reader.h"

static void call_graph(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "sample.txt");
    assert_folded(&profile, "samples",
                  "start;main;heavy 70\nstart;main;light 20\nstart;main;light;??? 10\n"
                  "start_wqthread;__workq_kernreturn 50\n");
    assert_int_equal(total_of(&profile, "wall"), 300000000);
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("Analysis of sampling x every 1 millisecond\n", -EBADMSG, "No call graph");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("sample.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_graph),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
