// SPDX-License-Identifier: Apache-2.0
// The model: interning, the stack tree, what detail flags drop, rows, saturation.

#include "profile/profile.h"
#include "unit.h"

static void id_zero_means_none(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(profile_string(&profile, "", 0), 0);
    assert_int_equal(profile_cstring(&profile, ""), 0);
    assert_int_equal(profile_stack(&profile, NULL, 0), 0);
    assert_int_equal(profile_label_set(&profile, NULL, 0), 0);
    assert_int_equal(profile_link(&profile, &(struct profile_link){0}), 0);
    size_t count = 1;
    profile_labels(&profile, 0, &count);
    assert_int_equal(count, 0);
    /* Nothing else has an id yet, so the first of everything is 1. */
    uint32_t name = profile_cstring(&profile, "main");
    uint32_t function = profile_function(&profile, &(struct profile_function){.name = name});
    uint32_t mapping = profile_mapping(&profile, &(struct profile_mapping){.file = name});
    uint32_t frame = profile_frame(&profile, &(struct profile_frame){.function = function});
    assert_int_equal(name, 1);
    assert_int_equal(function, 1);
    assert_int_equal(mapping, 1);
    assert_int_equal(frame, 1);
    assert_int_equal(profile_child(&profile, 0, frame), 1);
    assert_false(profile_full(&profile));
}

static void interns_equal_strings_once(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t a = profile_string(&profile, "ab\0c", 4);
    assert_int_equal(profile_string(&profile, "ab\0c", 4), a);
    assert_int_not_equal(profile_string(&profile, "ab", 2), a);
    assert_int_not_equal(profile_string(&profile, "ab\0d", 4), a);
    assert_int_equal(profile.strings[a].length, 4);
    assert_memory_equal(profile.strings[a].data, "ab\0c", 5);

    char text[32];
    for (int i = 0; i < 50000; i++)
        profile_string(&profile, text, (size_t)snprintf(text, sizeof(text), "s%d", i));
    uint32_t count = profile.string_count;
    for (int i = 0; i < 50000; i++) {
        size_t length = (size_t)snprintf(text, sizeof(text), "s%d", i);
        uint32_t id = profile_string(&profile, text, length);
        assert_string_equal(profile_text(&profile, id), text);
    }
    assert_int_equal(profile.string_count, count);
    assert_true(profile_memory(&profile) > 50000 * sizeof(struct profile_string));
}

static void functions_differ_by_every_member(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    struct profile_function function = {.name = profile_cstring(&profile, "f"),
                                        .file = profile_cstring(&profile, "f.c"),
                                        .start_line = 3};
    uint32_t id = profile_function(&profile, &function);
    assert_int_equal(profile_function(&profile, &function), id);
    struct profile_function other = function;
    other.start_line = 4;
    assert_int_not_equal(profile_function(&profile, &other), id);
    other = function;
    other.file = 0;
    assert_int_not_equal(profile_function(&profile, &other), id);
    other = function;
    other.system_name = profile_cstring(&profile, "_Z1fv");
    assert_int_not_equal(profile_function(&profile, &other), id);
    /* Readers of pprof treat an empty system name in another way than one that is the same. */
    other.system_name = function.name;
    assert_int_not_equal(profile_function(&profile, &other), id);
}

static uint32_t add_mapping(struct profile *profile, const char *build_id, const char *file,
                            uint64_t start, uint64_t size, uint64_t offset)
{
    return profile_mapping(
        profile, &(struct profile_mapping){.start = start,
                                           .limit = start + size,
                                           .offset = offset,
                                           .file = profile_cstring(profile, file),
                                           .build_id = profile_cstring(profile, build_id)});
}

static void mappings_are_the_same_at_other_addresses(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t a = add_mapping(&profile, "abc", "/bin/x", 0x1000, 0x500, 0);
    assert_int_equal(add_mapping(&profile, "abc", "/bin/x", 0x7000, 0x500, 0), a);
    assert_int_equal(add_mapping(&profile, "abc", "/other/x", 0x8000, 0x800, 0), a);
    /* The first's addresses are kept, the largest size is. */
    assert_int_equal(profile.mappings[a].start, 0x1000);
    assert_int_equal(profile.mappings[a].limit, 0x1800);
    assert_int_not_equal(add_mapping(&profile, "abc", "/bin/x", 0x1000, 0x500, 0x4000), a);
    assert_int_not_equal(add_mapping(&profile, "abd", "/bin/x", 0x1000, 0x500, 0), a);
    assert_int_not_equal(add_mapping(&profile, "", "/bin/x", 0x1000, 0x500, 0), a);

    uint32_t by_name = add_mapping(&profile, "", "/lib/y", 0x1000, 0x500, 0);
    assert_int_equal(add_mapping(&profile, "", "/lib/y", 0x9000, 0x500, 0), by_name);
    assert_int_not_equal(add_mapping(&profile, "", "/lib/z", 0x1000, 0x500, 0), by_name);

    uint32_t nameless = add_mapping(&profile, "", "", 0x1000, 0x500, 0);
    assert_int_equal(add_mapping(&profile, "", "", 0x1000, 0x500, 0), nameless);
    assert_int_not_equal(add_mapping(&profile, "", "", 0x2000, 0x500, 0), nameless);
}

static void addresses_and_file_offsets_are_inverse(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t id = add_mapping(&profile, "abc", "/bin/x", 0x400000, 0x5000, 0x1000);
    struct profile_frame frame = {.mapping = id,
                                  .address = profile_file_offset(&profile.mappings[id], 0x400123)};
    assert_int_equal(frame.address, 0x1123);
    assert_int_equal(profile_frame_address(&profile, &frame), 0x400123);
    frame = (struct profile_frame){.address = 0x400123};
    assert_int_equal(profile_frame_address(&profile, &frame), 0x400123);
}

static void detail_flags_drop_what_is_not_wanted(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile all, some;
    profile_init(&all, PROFILE_ALL);
    profile_init(&some, 0);
    struct profile *both[] = {&all, &some};
    for (int i = 0; i < 2; i++) {
        struct profile *profile = both[i];
        bool keeps = profile == &all;
        uint32_t function = profile_function(
            profile, &(struct profile_function){.name = profile_cstring(profile, "f")});
        struct profile_frame a = {.function = function, .line = 1, .column = 2, .address = 3};
        struct profile_frame b = {.function = function, .line = 9, .column = 8, .address = 7};
        assert_int_equal(profile_frame(profile, &a) != profile_frame(profile, &b), keeps);
        /* Without a function the address is all there is. */
        a.function = b.function = 0;
        assert_int_not_equal(profile_frame(profile, &a), profile_frame(profile, &b));

        struct profile_label label = {.key = profile_cstring(profile, "k"), .number = 1};
        assert_int_equal(profile_label_set(profile, &label, 1) != 0, keeps);
        struct profile_link link = {.trace_id = {1}};
        assert_int_equal(profile_link(profile, &link) != 0, keeps);

        size_t first = profile_sample(profile, 0, 0, 0, 5);
        size_t second = profile_sample(profile, 0, 0, 0, 6);
        assert_int_equal(first != second, keeps);
        assert_int_equal(profile->samples.time_ns != NULL, keeps);
    }
}

static void stacks_share_their_callers(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t frames[8];
    for (uint32_t i = 0; i < 8; i++)
        frames[i] = profile_frame(&profile, &(struct profile_frame){.address = i + 1});
    uint32_t deep = profile_stack(&profile, frames, 8);
    assert_int_equal(profile.node_count, 9);
    uint32_t shallow = profile_stack(&profile, frames, 3);
    assert_int_equal(profile.node_count, 9);
    assert_int_equal(profile_stack(&profile, frames, 8), deep);
    assert_int_equal(profile_stack(&profile, frames + 1, 3), 11);
    assert_int_equal(profile.node_count, 12);

    /* From the leaf to the root: outermost caller first was how it went in. */
    uint32_t node = deep;
    for (int i = 7; i >= 0; i--, node = profile.nodes[node].parent) {
        assert_int_equal(profile.nodes[node].frame, frames[i]);
        assert_true(node != shallow || i == 2);
    }
    assert_int_equal(node, 0);
}

static void children_come_after_their_parents(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t frames[40], seed = 1;
    for (uint32_t i = 0; i < 40; i++)
        frames[i] = profile_frame(&profile, &(struct profile_frame){.address = i + 1});
    for (int stack = 0; stack < 3000; stack++) {
        uint32_t walk[20];
        size_t count = 0;
        do {
            seed = seed * 1664525 + 1013904223;
            walk[count++] = frames[(seed >> 16) % 40];
        } while (count < 20 && seed >> 29);
        uint32_t node = profile_stack(&profile, walk, count);
        for (; count; node = profile.nodes[node].parent)
            assert_int_equal(profile.nodes[node].frame, walk[--count]);
        assert_int_equal(node, 0);
    }
    for (uint32_t i = 1; i < profile.node_count; i++)
        assert_true(profile.nodes[i].parent < i);
}

static void label_sets_have_no_order(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t key = profile_cstring(&profile, "thread"), text = profile_cstring(&profile, "gc"),
             bytes = profile_cstring(&profile, "bytes");
    struct profile_label ab[] = {{.key = key, .text = text},
                                 {.key = bytes, .number = 64, .unit = bytes}};
    struct profile_label ba[] = {{.key = bytes, .number = 64, .unit = bytes},
                                 {.key = key, .text = text, .number = 77, .unused = 5},
                                 {.key = key, .text = text}};
    uint32_t set = profile_label_set(&profile, ab, 2);
    assert_int_not_equal(set, 0);
    assert_int_equal(profile_label_set(&profile, ba, 3), set);
    size_t count;
    const struct profile_label *labels = profile_labels(&profile, set, &count);
    assert_int_equal(count, 2);
    assert_int_equal(labels[0].key, key);
    assert_int_equal(labels[0].text, text);
    assert_int_equal(labels[1].number, 64);
    assert_int_equal(labels[1].unit, bytes);
    struct profile_label other = {.key = bytes, .number = 65, .unit = bytes};
    assert_int_not_equal(profile_label_set(&profile, &other, 1), set);
    assert_int_equal(profile_label_set_count(&profile), 3);
}

static void rows_are_found_again(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = profile_type(&profile, profile_cstring(&profile, "cpu"),
                                 profile_cstring(&profile, "nanoseconds"));
    uint32_t node =
        profile_child(&profile, 0, profile_frame(&profile, &(struct profile_frame){.address = 1}));
    struct profile_label label = {.key = profile_cstring(&profile, "k"), .number = 1};
    uint32_t labels = profile_label_set(&profile, &label, 1);
    uint32_t link = profile_link(&profile, &(struct profile_link){.span_id = {9}});

    size_t plain = profile_sample(&profile, node, 0, 0, 0);
    assert_null(profile.samples.link);
    assert_null(profile.samples.time_ns);
    size_t labelled = profile_sample(&profile, node, labels, 0, 0);
    size_t linked = profile_sample(&profile, node, 0, link, 0);
    size_t timed = profile_sample(&profile, node, 0, 0, 5);
    assert_int_equal(profile.samples.count, 4);
    assert_int_equal(profile_sample(&profile, node, 0, 0, 0), plain);
    assert_int_equal(profile_sample(&profile, node, labels, 0, 0), labelled);
    assert_int_equal(profile_sample(&profile, node, 0, link, 0), linked);
    /* One row per event, even at the same time. */
    assert_int_not_equal(profile_sample(&profile, node, 0, 0, 5), timed);
    assert_int_equal(profile.samples.count, 5);
    assert_int_equal(profile.samples.link[plain], 0);
    assert_int_equal(profile.samples.time_ns[plain], 0);
    assert_int_equal(profile.samples.time_ns[timed], 5);
    for (size_t row = 0; row < 5; row++)
        assert_int_equal(profile.samples.values[type][row], 0);
}

static void values_stop_at_the_ends_of_the_range(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = profile_type(&profile, 0, 0);
    size_t row = profile_sample(&profile, 0, 0, 0, 0);
    int64_t *value = &profile.samples.values[type][row];
    profile_add_value(&profile, row, type, INT64_MAX);
    profile_add_value(&profile, row, type, INT64_MAX);
    assert_true(*value == INT64_MAX);
    profile_add_value(&profile, row, type, -1);
    assert_true(*value == INT64_MAX - 1);
    *value = -5;
    profile_add_value(&profile, row, type, INT64_MIN);
    assert_true(*value == INT64_MIN);
}

static void types_may_come_later(void **state)
{
    (void)state;
    enum { ROWS = 1000 };
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t samples = profile_cstring(&profile, "samples"), cpu = profile_cstring(&profile, "cpu"),
             count = profile_cstring(&profile, "count"), ns = profile_cstring(&profile, "ns");
    unsigned first = profile_type(&profile, samples, count);
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t frame = profile_frame(&profile, &(struct profile_frame){.address = i + 1});
        size_t row = profile_sample(&profile, profile_child(&profile, 0, frame), 0, 0, 0);
        profile_add_value(&profile, row, first, i);
    }
    unsigned second = profile_type(&profile, cpu, ns);
    assert_int_equal(second, 1);
    assert_int_equal(profile_type(&profile, samples, count), first);
    assert_int_equal(profile_type(&profile, samples, ns), 2);
    for (size_t row = 0; row < ROWS; row++)
        assert_int_equal(profile.samples.values[second][row], 0);
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t frame = profile_frame(&profile, &(struct profile_frame){.address = ROWS + i + 1});
        size_t row = profile_sample(&profile, profile_child(&profile, 0, frame), 0, 0, 0);
        assert_int_equal(profile.samples.values[first][row], 0);
        profile_add_value(&profile, row, second, -(int64_t)i);
    }
    for (int64_t i = 0; i < ROWS; i++) {
        assert_int_equal(profile.samples.values[first][i], i);
        assert_int_equal(profile.samples.values[second][ROWS + i], -i);
    }
}

static void types_have_a_limit(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    char name[16];
    for (unsigned i = 0; i < PROFILE_TYPES_MAX; i++) {
        snprintf(name, sizeof(name), "t%u", i);
        assert_int_equal(profile_type(&profile, profile_cstring(&profile, name), 0), i);
    }
    uint32_t extra = profile_cstring(&profile, "extra");
    assert_int_equal(profile_type(&profile, extra, 0), PROFILE_TYPES_MAX);
    assert_int_equal(profile.type_count, PROFILE_TYPES_MAX);
}

static void types_are_found_by_name_and_index(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(profile_find_type(&profile, "cpu"), PROFILE_TYPES_MAX);
    uint32_t samples = profile_cstring(&profile, "samples"), cpu = profile_cstring(&profile, "cpu"),
             count = profile_cstring(&profile, "count"),
             ns = profile_cstring(&profile, "nanoseconds");
    profile_type(&profile, samples, count);
    profile_type(&profile, cpu, ns);
    profile_type(&profile, cpu, count);
    assert_int_equal(profile_find_type(&profile, "samples"), 0);
    assert_int_equal(profile_find_type(&profile, "cpu"), 1);
    assert_int_equal(profile_find_type(&profile, "cpu/count"), 2);
    assert_int_equal(profile_find_type(&profile, "cpu/bytes"), PROFILE_TYPES_MAX);
    assert_int_equal(profile_find_type(&profile, "2"), 2);
    assert_int_equal(profile_find_type(&profile, "3"), PROFILE_TYPES_MAX);
    assert_int_equal(profile_find_type(&profile, "-1"), PROFILE_TYPES_MAX);
    assert_int_equal(profile_find_type(&profile, ""), PROFILE_TYPES_MAX);
    assert_int_equal(profile_default_type(&profile), 2);
    profile.default_type = samples;
    assert_int_equal(profile_default_type(&profile), 0);
    profile.default_type = ns; /* names no type: the last is shown */
    assert_int_equal(profile_default_type(&profile), 2);
}

static void sources_combine(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    profile_note_source(&profile, 500, 10);
    profile_note_source(&profile, 300, 20);
    profile_note_source(&profile, 0, -5);
    assert_int_equal(profile.time_ns, 300);
    assert_int_equal(profile.duration_ns, 30);
    assert_int_equal(profile.source_count, 3);
    profile_note_source(&profile, 0, INT64_MAX);
    assert_true(profile.duration_ns == INT64_MAX);

    uint32_t cpu = profile_cstring(&profile, "cpu"), ns = profile_cstring(&profile, "ns");
    profile_note_period(&profile, cpu, ns, 100);
    profile_note_period(&profile, cpu, ns, 50);
    assert_int_equal(profile.period, 100);
    assert_int_equal(profile.period_type.type, cpu);

    profile_add_comment(&profile, cpu);
    profile_add_comment(&profile, ns);
    profile_add_comment(&profile, cpu);
    assert_int_equal(profile.comment_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_zero_means_none),
        cmocka_unit_test(interns_equal_strings_once),
        cmocka_unit_test(functions_differ_by_every_member),
        cmocka_unit_test(mappings_are_the_same_at_other_addresses),
        cmocka_unit_test(addresses_and_file_offsets_are_inverse),
        cmocka_unit_test(detail_flags_drop_what_is_not_wanted),
        cmocka_unit_test(stacks_share_their_callers),
        cmocka_unit_test(children_come_after_their_parents),
        cmocka_unit_test(label_sets_have_no_order),
        cmocka_unit_test(rows_are_found_again),
        cmocka_unit_test(values_stop_at_the_ends_of_the_range),
        cmocka_unit_test(types_may_come_later),
        cmocka_unit_test(types_have_a_limit),
        cmocka_unit_test(types_are_found_by_name_and_index),
        cmocka_unit_test(sources_combine),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
