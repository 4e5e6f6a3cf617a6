// SPDX-License-Identifier: Apache-2.0
// The reader of V8's .heapprofile: a real file, keys in any order, and broken trees.

#define READER_FORMAT format_heapprofile
#define READER_FOLDER "heapprofile"
#include "reader.h"

static int64_t value_of(const struct profile *profile, const char *function)
{
    int64_t sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t node = profile->samples.node[i];
        uint32_t frame = profile->nodes[node].frame;
        uint32_t name = profile->functions[profile->frames[frame].function].name;
        if (node && !strcmp(profile_text(profile, name), function))
            sum += profile->samples.values[0][i];
    }
    return sum;
}

/* make.js keeps 40 arrays of 20,000 elements of 8 bytes in large(), and 20,000 small objects. */
static void real_file(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "node20.heapprofile");
    assert_int_equal(profile.type_count, 1);
    assert_string_equal(profile_text(&profile, profile.types[0].type), "inuse_space");
    assert_string_equal(profile_text(&profile, profile.types[0].unit), "bytes");
    int64_t large = value_of(&profile, "large");
    assert_true(large > 5600000 && large < 7200000);
    assert_true(value_of(&profile, "small") > 500000);
    profile_release(&profile);
}

static void keys_in_any_order(void **state)
{
    (void)state;
    struct profile profile;
    must_read(&profile, PROFILE_ALL,
              "{\"samples\":[1],\"head\":{\"children\":[{\"children\":[],\"id\":2,\"selfSize\":7,"
              "\"callFrame\":{\"functionName\":\"f\",\"lineNumber\":3}}],\"id\":1,"
              "\"callFrame\":{\"functionName\":\"(root)\"}}}");
    assert_int_equal(profile.samples.count, 1);
    assert_int_equal(value_of(&profile, "f"), 7);
    const struct profile_node *node = &profile.nodes[profile.samples.node[0]];
    assert_int_equal(node->parent, 0); /* without (root) */
    assert_int_equal(profile.frames[node->frame].line, 4);
    profile_release(&profile);
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("{}", -EBADMSG, "no \"head\"");
    must_fail("{\"head\":{\"selfSize\":-1}}", -EBADMSG, "at offset");
    must_fail("{\"head\":{},\"head\":{}}", -EBADMSG, "second tree");
    must_fail("{\"head\":{\"id\":1,\"children\":[{\"id\":1}]}}", -EBADMSG, "second node");
    must_fail("{\"head\":{\"children\":[", -EBADMSG, "");
}

static void damage(void **state)
{
    (void)state;
    survives_damage("node20.heapprofile");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_file),
        cmocka_unit_test(keys_in_any_order),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
