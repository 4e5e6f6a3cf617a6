// SPDX-License-Identifier: Apache-2.0
// Filters, pruning and patterns.

#include "profile/filter.h"

#include "base/memory.h"
#include "profile/naming.h"
#include "profile/views/rank.h"
#include "sample_profile.h"

static struct regex *pattern(const char *expression)
{
    struct regex *result = NULL;
    struct error error = {0};
    assert_int_equal(regex_new(expression, false, "--test", &result, &error), 0);
    return result;
}

/* All stacks as "a;b 5" lines in the order of rows. */
static void assert_stacks(const struct profile *profile, const char *expected)
{
    _cleanup_buffer_ struct buffer text = {0};
    _cleanup_naming_ struct naming naming;
    naming_init(&naming, profile);
    for (size_t row = 0; row < profile->samples.count; row++) {
        const char *names[64];
        size_t depth = 0;
        for (uint32_t node = profile->samples.node[row]; node; node = profile->nodes[node].parent)
            names[depth++] = naming.entries[naming.of_frame[profile->nodes[node].frame]].name;
        while (depth--)
            buffer_printf(&text, "%s%s", names[depth], depth ? ";" : "");
        buffer_printf(&text, " %lld\n", (long long)profile->samples.values[0][row]);
    }
    assert_string_equal(buffer_text(&text), expected);
}

static void focus_ignore_hide(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "main;a;x 1", "main;b;x 2", "main;a;b;y 4", "main 8");
    _cleanup_regex_ struct regex *a = pattern("^a$"), *b = pattern("^b$"), *x = pattern("x");
    profile_filter(&profile, &(struct profile_filter){.focus = a});
    assert_stacks(&profile, "main;a;x 1\nmain;a;b;y 4\n");
    profile_filter(&profile, &(struct profile_filter){.hide = x});
    assert_stacks(&profile, "main;a 1\nmain;a;b;y 4\n");
    profile_filter(&profile, &(struct profile_filter){.ignore = b});
    assert_stacks(&profile, "main;a 1\n");
}

static void hidden_stacks_add_up_or_go(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "main;lib1;f 1", "main;lib2;f 2", "lib1;lib2 4");
    _cleanup_regex_ struct regex *lib = pattern("^lib");
    profile_filter(&profile, &(struct profile_filter){.hide = lib});
    assert_stacks(&profile, "main;f 3\n");
}

static void patterns_see_files_and_binaries(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "main 1", "0x40 2");
    _cleanup_regex_ struct regex *source = pattern("app\\.c"), *binary = pattern("bin/app");
    profile_filter(&profile, &(struct profile_filter){.ignore = source});
    assert_stacks(&profile, "app+0x40 2\n");
    profile_filter(&profile, &(struct profile_filter){.focus = binary});
    assert_stacks(&profile, "app+0x40 2\n");
    profile_filter(&profile, &(struct profile_filter){.ignore = binary});
    assert_stacks(&profile, "");
}

static void what_was_inlined_into_a_hidden_frame_stands_alone(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "main;outer;+inner 1");
    _cleanup_regex_ struct regex *outer = pattern("outer");
    profile_filter(&profile, &(struct profile_filter){.hide = outer});
    assert_stacks(&profile, "main;inner 1\n");
    assert_false(profile.frames[profile.nodes[profile.samples.node[0]].frame].inlined);
}

static void tags(void **state)
{
    (void)state;
    static const struct {
        struct tag_filter filter;
        const char *left;
    } cases[] = {
        {{.key = "k", .value = "v", .relation = TAG_IS}, "a 1\n"},
        {{.key = "k", .value = "v", .relation = TAG_IS_NOT}, "b 2\nc 4\nd 8\n"},
        {{.key = "k", .value = "va", .relation = TAG_IS}, ""},
        {{.key = "other", .value = "v", .relation = TAG_IS}, "c 4\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, PROFILE_ALL);
        add_stacks(&profile, "a 1 k=v", "b 2 k=vv", "c 4 other=v", "d 8");
        profile_filter(&profile,
                       &(struct profile_filter){.tags = &cases[i].filter, .tag_count = 1});
        assert_stacks(&profile, cases[i].left);
    }
    _cleanup_profile_ struct profile profile;
    _cleanup_regex_ struct regex *all_v = pattern("^v+$");
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "a 1 k=v", "b 2 k=vv", "c 4 other=v", "d 8");
    struct tag_filter matches = {.key = "k", .relation = TAG_MATCHES, .pattern = all_v};
    profile_filter(&profile, &(struct profile_filter){.tags = &matches, .tag_count = 1});
    assert_stacks(&profile, "a 1\nb 2\n");
}

static void number_tags(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "a 1", "a 2");
    struct profile_label label = {.key = profile_cstring(&profile, "bytes"), .number = -512};
    size_t row = profile_sample(&profile, profile.samples.node[0],
                                profile_label_set(&profile, &label, 1), 0, 0);
    profile_add_value(&profile, row, 0, 7);
    struct tag_filter tag = {.key = "bytes", .value = "-512"};
    profile_filter(&profile, &(struct profile_filter){.tags = &tag, .tag_count = 1});
    assert_stacks(&profile, "a 7\n");
}

static void rows_can_be_added_after_a_filter(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "main;a 1", "main;b 2");
    _cleanup_regex_ struct regex *a = pattern("^a$");
    profile_filter(&profile, &(struct profile_filter){.focus = a});
    add_stacks(&profile, "main;a 10", "main;c 20");
    assert_stacks(&profile, "main;a 11\nmain;c 20\n");
}

static void prune_cuts_below_boring_frames(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    add_stacks(&profile, "main;malloc;brk 1", "main;mallocator 2", "malloc;user 4",
               "main;malloc_keep;x 8");
    assert_int_equal(profile_prune(&profile, &error), 0); /* nothing to drop */
    profile.drop_frames = profile_cstring(&profile, "malloc|malloc_.*");
    profile.keep_frames = profile_cstring(&profile, "malloc_keep");
    assert_int_equal(profile_prune(&profile, &error), 0);
    assert_stacks(&profile, "main 1\nmain;mallocator 2\nmalloc;user 4\nmain;malloc_keep;x 8\n");
    profile.drop_frames = profile_cstring(&profile, "(");
    assert_true(profile_prune(&profile, &error) < 0);
    assert_says(&error, "drop_frames");
}

/* A profile's expressions come from whoever made it, and so do the names. */
static void prune_gives_up(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    char name[480];
    profile_init(&profile, PROFILE_ALL);
    memset(name, 'a', sizeof(name));
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(name + 470, 10, "%u", i);
        profile_function(&profile,
                         &(struct profile_function){.name = profile_cstring(&profile, name)});
    }
    profile.drop_frames = profile_cstring(&profile, "(a|b|ab)*(a|bc|b)*(?:a?){300}a{300}[cd]");
    assert_int_equal(profile_prune(&profile, &error), -EDOM);
    assert_says(&error, "drop_frames");
}

static void patterns_have_limits(void **state)
{
    (void)state;
    struct error error = {0};
    struct regex *none = NULL;
    assert_int_equal(regex_new("a(b", false, "--focus", &none, &error), -EINVAL);
    assert_says(&error, "--focus");
    assert_null(none);
    /* Catastrophic without a limit: must come back, and as "no". */
    _cleanup_regex_ struct regex *slow = pattern("^(a+)+$");
    char text[64];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '!';
    assert_false(regex_matches(slow, text, sizeof(text)));
    assert_true(regex_matches(slow, text, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(focus_ignore_hide),
        cmocka_unit_test(hidden_stacks_add_up_or_go),
        cmocka_unit_test(patterns_see_files_and_binaries),
        cmocka_unit_test(what_was_inlined_into_a_hidden_frame_stands_alone),
        cmocka_unit_test(tags),
        cmocka_unit_test(number_tags),
        cmocka_unit_test(rows_can_be_added_after_a_filter),
        cmocka_unit_test(prune_cuts_below_boring_frames),
        cmocka_unit_test(prune_gives_up),
        cmocka_unit_test(patterns_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
