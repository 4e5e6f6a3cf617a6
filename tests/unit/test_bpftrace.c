// SPDX-License-Identifier: Apache-2.0
// The reader of the format bpftrace: its fixtures, wrong input, and damage.

#define READER_FORMAT format_bpftrace
#define READER_FOLDER "bpftrace"
#include "reader.h"

static void maps(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "stacks.txt");
    assert_folded(&profile, "samples",
                  "[no stack] 2\nmain;__read;do_syscall_64;ksys_read;vfs_read 7\n"
                  "schedule;finish_task_switch 3\n");
    assert_folded(&profile, "bytes", "__libc_pread;read_zero 4096\n");
    assert_int_equal(total_of(&profile, "samples"), 12);
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("@[\n    f+1\n", -EBADMSG, "No map of stacks");
    must_fail("nothing\n", -EBADMSG, "No map of stacks");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("stacks.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
