// SPDX-License-Identifier: Apache-2.0
// The reader of the format chrome-trace: its fixtures, wrong input, and damage.

#define READER_FORMAT format_chrome_trace
#define READER_FOLDER "chrome-trace"
#include "reader.h"

static void chunks(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_LABELS, "trace.json");
    assert_folded(&profile, "samples", "main 3\nmain;heavy 2\nworker 1\n");
    assert_folded(&profile, "wall", "main 1500000\nmain;heavy 900000\n");
    profile_release(&profile);
}

static void list_of_events(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "[{\"ph\":\"I\",\"pid\":1,\"name\":\"CpuProfile\",\"args\":{\"data\":{\"cpuProfile\":"
              "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"}}],\"samples\":[1],"
              "\"timeDeltas\":[5],\"startTime\":1,\"endTime\":9}}}}]");
    assert_int_equal(total_of(&profile, "samples"), 1);
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("{\"traceEvents\":[{\"ph\":\"X\"}]}", -ENOTSUP, "no CPU profile");
    must_fail("{\"a\":1}", -EBADMSG, "no \"traceEvents\"");
    must_fail("{\"traceEvents\":[", -EBADMSG, "");
    must_fail(
        "[{\"name\":\"ProfileChunk\",\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":[{\"id\":1,"
        "\"callFrame\":{}}],\"samples\":[7]},\"timeDeltas\":[1]}}}]",
        -EBADMSG, "node 7");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("trace.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks),
        cmocka_unit_test(list_of_events),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
