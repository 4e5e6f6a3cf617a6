// SPDX-License-Identifier: Apache-2.0
// Merging: adding one profile to another gives what reading both into one would have given.

#include "profile/profile.h"
#include "unit.h"

/* Adds a source whose content follows from `seed`; two seeds share functions, labels and types in
 * part. Ids come out in another order each time, so nothing can pass by accident. */
static void add_source(struct profile *profile, unsigned seed)
{
    char text[32];
    uint32_t frames[12];
    uint32_t file = profile_cstring(profile, "/bin/x"), id = profile_cstring(profile, "abc");
    uint32_t mapping = profile_mapping(
        profile,
        &(struct profile_mapping){
            .start = 0x1000 * seed, .limit = 0x1000 * seed + 0x800, .file = file, .build_id = id});
    for (unsigned i = 0; i < 12; i++) {
        snprintf(text, sizeof(text), "function%u", (i * 7 + seed) % 20);
        uint32_t function = profile_function(
            profile,
            &(struct profile_function){.name = profile_cstring(profile, text), .start_line = 1});
        frames[i] = profile_frame(
            profile, &(struct profile_frame){
                         .function = function, .mapping = mapping, .address = i * 16, .line = i});
    }
    snprintf(text, sizeof(text), "type%u", seed % 2);
    unsigned own = profile_type(profile, profile_cstring(profile, text), 0);
    unsigned shared = profile_type(profile, profile_cstring(profile, "cpu"),
                                   profile_cstring(profile, "nanoseconds"));
    for (unsigned i = 0; i < 200; i++) {
        struct profile_label label = {.key = profile_cstring(profile, "thread"),
                                      .number = (int64_t)(i % 3)};
        uint32_t labels = i % 4 ? profile_label_set(profile, &label, 1) : 0;
        struct profile_link link = {.trace_id = {(uint8_t)(i % 5)}};
        uint32_t node = profile_stack(profile, frames + i % 6, 1 + i % 5);
        size_t row = profile_sample(profile, node, labels, profile_link(profile, &link),
                                    i % 7 ? 0 : 1000 + i);
        profile_add_value(profile, row, own, i);
        profile_add_value(profile, row, shared, (int64_t)i * seed);
    }
    profile_note_source(profile, 100 - seed, 10);
    profile_note_period(profile, profile_cstring(profile, "cpu"), 0, seed);
    snprintf(text, sizeof(text), "comment %u", seed);
    profile_add_comment(profile, profile_cstring(profile, text));
    profile_add_comment(profile, profile_cstring(profile, "both"));
}

/* A profile as sorted lines of text, free of ids. */
static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void describe_row(const struct profile *profile, size_t row, struct buffer *out)
{
    const struct profile_samples *samples = &profile->samples;
    for (uint32_t node = samples->node[row]; node; node = profile->nodes[node].parent) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        const struct profile_mapping *mapping = &profile->mappings[frame->mapping];
        buffer_printf(out, "%s:%u@%llx/%s ",
                      profile_text(profile, profile->functions[frame->function].name), frame->line,
                      (unsigned long long)frame->address, profile_text(profile, mapping->build_id));
    }
    size_t count;
    const struct profile_label *labels = profile_labels(profile, samples->labels[row], &count);
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s=%lld ", profile_text(profile, labels[i].key),
                      (long long)labels[i].number);
    if (samples->link && samples->link[row])
        buffer_printf(out, "link=%u ", profile->links[samples->link[row]].trace_id[0]);
    if (samples->time_ns && samples->time_ns[row])
        buffer_printf(out, "time=%llu ", (unsigned long long)samples->time_ns[row]);
    for (unsigned type = 0; type < profile->type_count; type++)
        if (samples->values[type][row])
            buffer_printf(out, "%s=%lld ", profile_text(profile, profile->types[type].type),
                          (long long)samples->values[type][row]);
}

static char *describe(const struct profile *profile)
{
    size_t count = profile->samples.count;
    char **lines = memory_zalloc(count, sizeof(*lines));
    struct buffer all = {0};
    for (size_t row = 0; row < count; row++) {
        struct buffer line = {0};
        describe_row(profile, row, &line);
        buffer_text(&line);
        lines[row] = line.data;
    }
    qsort(lines, count, sizeof(*lines), compare_lines);
    for (size_t row = 0; row < count; row++) {
        buffer_printf(&all, "%s\n", lines[row]);
        free(lines[row]);
    }
    free(lines);
    buffer_printf(&all, "from %lld for %lld, period %lld, %llu sources, %zu comments\n",
                  (long long)profile->time_ns, (long long)profile->duration_ns,
                  (long long)profile->period, (unsigned long long)profile->source_count,
                  profile->comment_count);
    buffer_text(&all);
    return all.data;
}

static void check_merge(enum profile_detail detail)
{
    struct error error = {0};
    _cleanup_profile_ struct profile whole, merged;
    profile_init(&whole, detail);
    profile_init(&merged, detail);
    for (unsigned seed = 1; seed <= 5; seed++) {
        add_source(&whole, seed);
        /* The parts keep everything: what the target drops, it must drop when merging. */
        _cleanup_profile_ struct profile part;
        profile_init(&part, PROFILE_ALL);
        add_source(&part, seed);
        assert_int_equal(profile_merge(&merged, &part, &error), 0);
    }
    _cleanup_free_ char *expected = describe(&whole);
    _cleanup_free_ char *got = describe(&merged);
    assert_string_equal(got, expected);
    assert_int_equal(merged.node_count, whole.node_count);
    assert_int_equal(merged.mapping_count, 2);
    for (uint32_t i = 1; i < merged.node_count; i++)
        assert_true(merged.nodes[i].parent < i);
}

static void merging_is_reading_both(void **state)
{
    (void)state;
    check_merge(PROFILE_ALL);
}

static void merging_drops_what_the_target_drops(void **state)
{
    (void)state;
    check_merge(0);
    check_merge(PROFILE_LINES | PROFILE_LABELS);
    check_merge(PROFILE_ADDRESSES | PROFILE_TIMES);
}

static void merging_nothing_changes_nothing(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_profile_ struct profile profile, empty;
    profile_init(&profile, PROFILE_ALL);
    profile_init(&empty, PROFILE_ALL);
    add_source(&profile, 1);
    _cleanup_free_ char *before = describe(&profile);
    assert_int_equal(profile_merge(&profile, &empty, &error), 0);
    _cleanup_free_ char *after = describe(&profile);
    assert_string_equal(after, before);
    assert_int_equal(profile_merge(&empty, &profile, &error), 0);
    _cleanup_free_ char *copy = describe(&empty);
    assert_string_equal(copy, before);
}

static void merging_refuses_too_many_types(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_profile_ struct profile a, b;
    profile_init(&a, PROFILE_ALL);
    profile_init(&b, PROFILE_ALL);
    char name[16];
    for (unsigned i = 0; i < PROFILE_TYPES_MAX; i++) {
        snprintf(name, sizeof(name), "t%u", i);
        profile_type(&a, profile_cstring(&a, name), 0);
    }
    profile_type(&b, profile_cstring(&b, "one more"), 0);
    assert_int_equal(profile_merge(&a, &b, &error), -E2BIG);
    assert_says(&error, "256 sample types");
}

static void merging_saturates(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_profile_ struct profile a, b;
    profile_init(&a, PROFILE_ALL);
    profile_init(&b, PROFILE_ALL);
    profile_type(&b, 0, 0);
    profile_add_value(&b, profile_sample(&b, 0, 0, 0, 0), 0, INT64_MAX);
    assert_int_equal(profile_merge(&a, &b, &error), 0);
    assert_int_equal(profile_merge(&a, &b, &error), 0);
    assert_int_equal(a.samples.count, 1);
    assert_true(a.samples.values[0][0] == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_is_reading_both),
        cmocka_unit_test(merging_drops_what_the_target_drops),
        cmocka_unit_test(merging_nothing_changes_nothing),
        cmocka_unit_test(merging_refuses_too_many_types),
        cmocka_unit_test(merging_saturates),
    };
    return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
