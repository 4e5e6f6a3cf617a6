// SPDX-License-Identifier: Apache-2.0
// The reader of stackprof's JSON: real files of each mode, stacks and lines, and broken arrays.

#define READER_FORMAT format_stackprof
#define READER_FOLDER "stackprof"
#include "reader.h"

static int64_t total(const struct profile *profile, unsigned type)
{
    int64_t sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++)
        sum += profile->samples.values[type][i];
    return sum;
}

/* The name of the row's frame, `up` callers from the innermost. */
static const char *caller(const struct profile *profile, size_t row, unsigned up)
{
    uint32_t node = profile->samples.node[row];
    while (up--)
        node = profile->nodes[node].parent;
    const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
    return profile_text(profile, profile->functions[frame->function].name);
}

static void cpu(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "cpu.json");
    assert_int_equal(profile.type_count, 2);
    assert_string_equal(profile_text(&profile, profile.types[1].type), "cpu");
    assert_int_equal(total(&profile, 0), 13);
    assert_int_equal(total(&profile, 1), 13 * 1000000);
    profile_release(&profile);
}

/* make.rb's heavy() makes 6,000 strings, three times. */
static void objects(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "object.json");
    assert_string_equal(profile_text(&profile, profile.types[1].type), "alloc_objects");
    assert_int_equal(total(&profile, 1), 18000);
    assert_string_equal(caller(&profile, 0, 0), "Integer#to_s");
    profile_release(&profile);
}

static void without_stacks(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "flat.json");
    assert_string_equal(profile_text(&profile, profile.types[1].type), "wall");
    assert_int_equal(total(&profile, 0), 18);
    profile_release(&profile);
}

static void stacks_and_lines(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "{\"raw_lines\":[2,3,8,5],\"raw\":[2,11,12,5],\"mode\":\"custom\",\"interval\":7,"
              "\"frames\":{\"12\":{\"name\":\"leaf\",\"file\":\"a.rb\",\"line\":7},"
              "\"11\":{\"name\":\"main\",\"file\":\"a.rb\",\"line\":null}}}");
    assert_int_equal(profile.type_count, 1);
    assert_int_equal(profile.samples.count, 1);
    assert_int_equal(profile.samples.values[0][0], 5);
    assert_string_equal(caller(&profile, 0, 0), "leaf");
    assert_string_equal(caller(&profile, 0, 1), "main");
    const struct profile_frame *leaf =
        &profile.frames[profile.nodes[profile.samples.node[0]].frame];
    assert_int_equal(leaf->line, 8);
    assert_int_equal(leaf->kind, FRAME_RUBY);
    assert_int_equal(profile.functions[leaf->function].start_line, 7);
    profile_release(&profile);
}

#define FRAMES "\"frames\":{\"1\":{\"name\":\"f\"}}"

static void bad_input(void **state)
{
    (void)state;
    must_fail("{\"mode\":\"cpu\"}", -EBADMSG, "no \"frames\"");
    must_fail("{\"frames\":{\"x\":{}}}", -EBADMSG, "not a number");
    must_fail("{\"frames\":{\"1\":{},\"1\":{}}}", -EBADMSG, "second frame");
    must_fail("{" FRAMES ",\"raw\":[1,2,1]}", -EBADMSG, "frame 2");
    must_fail("{" FRAMES ",\"raw\":[1,1]}", -EBADMSG, "ends before its count");
    must_fail("{" FRAMES ",\"raw\":[18446744073709551615,1,1]}", -EBADMSG, "ends before");
    must_fail("{" FRAMES ",\"raw\":[1,1,1],\"raw_lines\":[1]}", -EBADMSG, "raw_lines");
    must_fail("{" FRAMES ",\"raw\":[1,1,1],\"raw\":[1,1,1]}", -EBADMSG, "second array");
    must_fail("{" FRAMES ",\"raw\":[-1]}", -EBADMSG, "");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("flat.json");
    survives_damage("cpu.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu),
        cmocka_unit_test(objects),
        cmocka_unit_test(without_stacks),
        cmocka_unit_test(stacks_and_lines),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
