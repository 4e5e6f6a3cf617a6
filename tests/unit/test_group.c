// SPDX-License-Identifier: Apache-2.0
// Samples by label: the three forms, labels that are missing, keys that make no sense; and the
// distance of words.

#define READER_FORMAT format_perf_data
#define READER_FOLDER "perf-data"
#include "base/text.h"
#include "profile/group.h"
#include "reader.h"

static void group(struct profile *profile, const char *by, enum profile_group_form form)
{
    struct profile_group_keys keys = {0};
    struct error error = {0};
    read_fixture(profile, PROFILE_LABELS, "file.data");
    assert_int_equal(profile_group_parse(by, &keys, &error), 0);
    profile_group(profile, &keys, form);
    profile_group_release(&keys);
}

static void forms(void **state)
{
    (void)state;
    struct profile profile;
    group(&profile, "comm,pid", PROFILE_GROUP_ROOTS);
    assert_folded(&profile, "page-faults",
                  "comm first;pid 101;program+0x1b00;program+0x1123 7\n"
                  "comm second thread;pid 100;anon+0x7f0000000100 3\n");
    profile_release(&profile);
    group(&profile, "comm,pid", PROFILE_GROUP_ONLY);
    assert_folded(&profile, "page-faults",
                  "comm first, pid 101 7\ncomm second thread, pid 100 3\n");
    profile_release(&profile);
    group(&profile, "tid", PROFILE_GROUP_UNDER_ROOT);
    assert_folded(&profile, "page-faults",
                  "anon+0x7f0000000100;tid 102 3\nprogram+0x1b00;tid 101 7\n");
    profile_release(&profile);
}

static void missing(void **state)
{
    (void)state;
    struct profile profile;
    struct profile_group_keys keys = {0};
    struct error error = {0};
    read_fixture(&profile, PROFILE_LABELS, "file.data");
    assert_int_equal(profile_group_parse("comm,binary,colour,size", &keys, &error), 0);
    assert_string_equal(profile_group_missing(&profile, &keys), "colour");
    keys.count = 2;
    assert_null(profile_group_missing(&profile, &keys));
    profile_group_release(&keys);
    profile_release(&profile);
    group(&profile, "colour,binary", PROFILE_GROUP_ONLY);
    assert_folded(
        &profile, "samples",
        "(no colour), [kernel.kallsyms] 1\n(no colour), anon 1\n(no colour), program 2\n");
    profile_release(&profile);
}

static void bad_keys(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", ",", "a,", ",a", "a,,b", "a,b,c,d,e,f,g,h,i"};
    struct profile_group_keys keys = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        struct error error = {0};
        assert_int_equal(profile_group_parse(wrong[i], &keys, &error), -EINVAL);
        assert_says(&error, "--by");
    }
}

static void distances(void **state)
{
    (void)state;
#define DISTANCE(a, b) text_distance(a, strlen(a), b, strlen(b))
    assert_int_equal(DISTANCE("", "abc"), 3);
    assert_int_equal(DISTANCE("report", "report"), 0);
    assert_int_equal(DISTANCE("repotr", "report"), 1);
    assert_int_equal(DISTANCE("stak", "stacks"), 2);
    assert_int_equal(DISTANCE("kitten", "sitting"), 3);
    assert_int_equal(DISTANCE("a", "0123456789012345678901234567890123456789"), UINT32_MAX);
    assert_false(text_similar(DISTANCE("xyzzy", "query"), 5));
    assert_false(text_similar(DISTANCE("a", "b"), 1));
#undef DISTANCE
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(missing),
        cmocka_unit_test(bad_keys),
        cmocka_unit_test(distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
