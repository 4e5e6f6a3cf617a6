// SPDX-License-Identifier: Apache-2.0
// The reader of flamebearer JSON: rows of bars become stacks, and bars that stand on nothing fail.

#define READER_FORMAT format_flamebearer
#define READER_FOLDER "flamebearer"
#include "reader.h"

/* Every row as "a;b value", in the order of rows. */
static void assert_rows(const struct profile *profile, const char *expected)
{
    struct buffer out = {0};
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t path[16];
        size_t depth = 0;
        for (uint32_t node = profile->samples.node[i]; node; node = profile->nodes[node].parent)
            path[depth++] = profile->nodes[node].frame;
        while (depth) {
            uint32_t function = profile->frames[path[--depth]].function;
            buffer_printf(&out, "%s%s", profile_text(profile, profile->functions[function].name),
                          depth ? ";" : "");
        }
        buffer_printf(&out, " %lld\n", (long long)profile->samples.values[0][i]);
    }
    assert_string_equal(buffer_text(&out), expected);
    buffer_release(&out);
}

static void bars_become_stacks(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "cpu.json");
    assert_int_equal(profile.type_count, 1);
    assert_string_equal(profile_text(&profile, profile.types[0].type), "cpu");
    assert_string_equal(profile_text(&profile, profile.types[0].unit), "nanoseconds");
    assert_rows(&profile, "gc 100000000\nmain 50000000\nmain;parse 250000000\n"
                          "main;handle;parse 200000000\nmain;handle;render 400000000\n");
    assert_int_equal(profile.time_ns, 1700000000000000000);
    assert_int_equal(profile.duration_ns, 20000000000);
    profile_release(&profile);
}

#define FLAME(levels) "{\"flamebearer\":{\"names\":[\"total\",\"f\"],\"levels\":" levels "}}"

static void other_units(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "{\"metadata\":{\"units\":\"bytes\",\"sampleRate\":100},\"flamebearer\":{\"names\":"
              "[\"total\",\"f\"],\"levels\":[[0,8,0,0],[0,8,8,1]]}}");
    assert_string_equal(profile_text(&profile, profile.types[0].unit), "bytes");
    assert_rows(&profile, "f 8\n");
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("{}", -EBADMSG, "no \"flamebearer\"");
    must_fail(FLAME("[[0,8,0]]"), -EBADMSG, "multiple");
    must_fail(FLAME("[[0,8,0,7]]"), -EBADMSG, "name");
    must_fail(FLAME("[[0,8,0,-1]]"), -EBADMSG, "name");
    must_fail(FLAME("[[0,8,9,0]]"), -EBADMSG, "can't be drawn");
    must_fail(FLAME("[[-1,8,0,0]]"), -EBADMSG, "can't be drawn");
    must_fail(FLAME("[[9223372036854775807,8,0,0]]"), -EBADMSG, "can't be drawn");
    must_fail(FLAME("[[0,8,0,0],[4,8,8,1]]"), -EBADMSG, "stands on no bar");
    must_fail(FLAME("[[0,8,0,0],[8,1,1,1]]"), -EBADMSG, "stands on no bar");
    must_fail("{\"metadata\":{\"format\":\"double\"},\"flamebearer\":{}}", -ENOTSUP,
              "two profiles");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("cpu.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_become_stacks),
        cmocka_unit_test(other_units),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
