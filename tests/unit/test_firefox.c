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

/* Newer files say how far back a stack's caller is, and have a table of sources. */
static void newer_tables(void **state)
{
    (void)state;
    struct profile profile;
#define NEWER(offsets)                                                                             \
    "{\"meta\":{\"interval\":1,\"preprocessedProfileVersion\":70},\"shared\":{\"stackTable\":{"    \
    "\"frame\":[0,1,1],\"prefixOffset\":[" offsets "]},\"frameTable\":{\"func\":[0,1],\"line\":"   \
    "[null,7]},\"funcTable\":{\"name\":[0,1],\"source\":[null,0]},\"sources\":{\"filename\":[2]}," \
    "\"stringArray\":[\"outer\",\"inner\",\"b.c\"]},\"threads\":[{\"samples\":{\"stack\":[0,1,1,"  \
    "2],"                                                                                          \
    "\"timeDeltas\":[1,1,1,1]}}]}"
    must_read(&profile, PROFILE_ALL, NEWER("0,1,0"));
    assert_folded(&profile, "samples", "inner 1\nouter 1\nouter;inner 2\n");
    uint32_t leaf = profile.nodes[profile.samples.node[1]].frame;
    assert_string_equal(
        profile_text(&profile, profile.functions[profile.frames[leaf].function].file), "b.c");
    profile_release(&profile);
    must_fail(NEWER("0,2,0"), -EBADMSG, "before its caller");
    must_fail(NEWER("0,-1,0"), -EBADMSG, "before its caller");
#undef NEWER
}

static void add_at(struct profile *profile, unsigned type, uint32_t node, int64_t tid,
                   uint64_t time_ns, int64_t value)
{
    struct profile_label labels[] = {
        {.key = profile_cstring(profile, "tid"), .number = tid},
        {.key = profile_cstring(profile, "pid"), .number = 7},
        {.key = profile_cstring(profile, "comm"), .text = profile_cstring(profile, "<worker>")}};
    uint32_t set = profile_label_set(profile, labels, 3);
    profile_add_value(profile, profile_sample(profile, node, set, 0, time_ns), type, value);
}

/* What is written is read back: stacks, threads, times and values, in each unit. */
static void written(void **state)
{
    (void)state;
    static const char *const units[] = {"nanoseconds", "bytes", "count"};
    static const char *const types[] = {"wall", "alloc_space", "samples"};
    for (size_t unit = 0; unit < ARRAY_LENGTH(units); unit++) {
        struct profile profile, back;
        struct error error = {0};
        _cleanup_buffer_ struct buffer out = {0};
        profile_init(&profile, PROFILE_ALL);
        unsigned type = profile_type(&profile, profile_cstring(&profile, types[unit]),
                                     profile_cstring(&profile, units[unit]));
        struct profile_function outer = {.name = profile_cstring(&profile, "outer"),
                                         .file = profile_cstring(&profile, "a\"b.c")};
        struct profile_frame frames[2] = {
            {.function = profile_function(&profile, &outer), .line = 5}, {.address = 0x1234}};
        uint32_t node = profile_child(&profile, 0, profile_frame(&profile, &frames[0]));
        uint32_t leaf = profile_child(&profile, node, profile_frame(&profile, &frames[1]));
        add_at(&profile, type, leaf, 9, 1700000000003000000, 1500001);
        add_at(&profile, type, node, 9, 1700000000001000000, 2);
        add_at(&profile, type, node, 8, 1700000000002000000, 40);
        add_at(&profile, type, node, 8, 1700000000002500000, 0);
        assert_int_equal(
            format_firefox.write(&out, &profile, &(struct write_options){.type = -1}, &error), 0);
        must_read(&back, PROFILE_ALL, buffer_text(&out));
        assert_folded(&back, types[unit], "outer 42\nouter;0x1234 1500001\n");
        /* By thread and time. */
        assert_int_equal(back.samples.count, 3);
        assert_int_equal(back.samples.time_ns[0] / 1000, 1700000000003000000 / 1000 - 2000);
        profile_release(&back);
        profile_release(&profile);
    }
}

/* A recording of old developer tools, and rows that come before their schema. */
static void old_recording(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "{\"label\":\"\",\"duration\":5,\"markers\":[],\"profile\":{\"meta\":{\"interval\":1,"
              "\"startTime\":1000},\"threads\":[{\"samples\":{\"data\":[[1,2.5],[0,3]],\"schema\":"
              "{\"stack\":0,\"time\":1}},\"stackTable\":{\"data\":[[null,0],[0,1]],\"schema\":"
              "{\"prefix\":0,\"frame\":1}},\"frameTable\":{\"schema\":{\"location\":0},\"data\":"
              "[[0],[1]]},\"stringTable\":[\"a\",\"b\"]}]}}");
    assert_folded(&profile, "samples", "a 1\na;b 1\n");
    assert_int_equal(profile.samples.time_ns[0], 1002500000);
    profile_release(&profile);
    must_fail("{\"threads\":[{\"samples\":{\"data\":[[1]],\"data\":[[1]]}}]}", -EBADMSG, "twice");
}

/* The first processed files have the place in the name; old names of entries into scripts. */
static void old_names(void **state)
{
    (void)state;
    struct profile profile;
    must_read(
        &profile, PROFILE_ALL,
        "{\"meta\":{\"interval\":1},\"threads\":[{\"samples\":{\"stack\":[1]},\"stackTable\":{"
        "\"frame\":[0,1],\"prefix\":[null,0]},\"frameTable\":{\"func\":[0,1],\"line\":[null,"
        "null]},\"funcTable\":{\"name\":[0,1]},\"stringArray\":[\"AutoEntryScript setTimeout "
        "handler\",\"f (http://x/y.js:12)\"]}]}");
    assert_folded(&profile, "samples", "setTimeout handler;f 1\n");
    const struct profile_frame *leaf =
        &profile.frames[profile.nodes[profile.samples.node[0]].frame];
    assert_string_equal(profile_text(&profile, profile.functions[leaf->function].file),
                        "http://x/y.js");
    assert_int_equal(leaf->line, 12);
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
        cmocka_unit_test(processed),    cmocka_unit_test(shared_tables),
        cmocka_unit_test(gecko),        cmocka_unit_test(written),
        cmocka_unit_test(newer_tables), cmocka_unit_test(old_recording),
        cmocka_unit_test(old_names),    cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
