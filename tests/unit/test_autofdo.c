// SPDX-License-Identifier: Apache-2.0
// AutoFDO's files: inlined functions inside their callers, the busiest instruction of a line, names
// without suffixes, and profiles that say too little.

#include "format/format.h"
#include "unit.h"

static uint32_t frame_of(struct profile *profile, const char *name, uint32_t start, uint32_t line,
                         uint64_t address, bool inlined)
{
    struct profile_function function = {.name = profile_cstring(profile, name),
                                        .start_line = start};
    return profile_frame(profile,
                         &(struct profile_frame){.function = profile_function(profile, &function),
                                                 .line = line,
                                                 .address = address,
                                                 .kind = FRAME_NATIVE,
                                                 .inlined = inlined});
}

static void add(struct profile *profile, const uint32_t *frames, size_t count, int64_t value)
{
    unsigned type = profile_type(profile, profile_cstring(profile, "samples"),
                                 profile_cstring(profile, "count"));
    uint32_t node = profile_stack(profile, frames, count);
    profile_add_value(profile, profile_sample(profile, node, 0, 0, 0), type, value);
}

static void fill(struct profile *profile)
{
    profile_init(profile, PROFILE_ALL);
    uint32_t caller = frame_of(profile, "main", 1, 5, 0x100, false);
    uint32_t work = frame_of(profile, "work.constprop.0", 10, 12, 0x200, false);
    uint32_t again = frame_of(profile, "work.constprop.0", 10, 12, 0x204, false);
    uint32_t first = frame_of(profile, "work.constprop.0", 10, 10, 0x1f0, false);
    uint32_t inner = frame_of(profile, "inner", 30, 33, 0x200, true);
    uint32_t nameless = profile_frame(profile, &(struct profile_frame){.address = 0x999});
    add(profile, (uint32_t[]){caller, work}, 2, 40);
    add(profile, (uint32_t[]){caller, again}, 2, 25);
    add(profile, (uint32_t[]){caller, first}, 2, 3);
    add(profile, (uint32_t[]){caller, work, inner}, 3, 100);
    add(profile, (uint32_t[]){caller}, 1, 7);
    add(profile, (uint32_t[]){caller, nameless}, 2, 9);
}

static void for_clang(void **state)
{
    (void)state;
    struct profile profile;
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0};
    fill(&profile);
    assert_int_equal(
        format_autofdo.write(&out, &profile, &(struct write_options){.type = -1}, &error), 0);
    assert_string_equal(buffer_text(&out), "work:168:3\n"
                                           " 0: 3\n"
                                           " 2: 40\n"
                                           " 2: inner:100\n"
                                           "  3: 100\n"
                                           "main:7:7\n"
                                           " 4: 7\n");
    profile_release(&profile);
}

static void for_gcc(void **state)
{
    (void)state;
    struct profile profile;
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0};
    fill(&profile);
    assert_int_equal(
        format_autofdo_gcc.write(&out, &profile, &(struct write_options){.type = -1}, &error), 0);
    uint32_t words[3];
    memcpy(words, out.data, sizeof(words));
    assert_int_equal(words[0], 0x67636461);
    assert_int_equal(words[1], 2);
    /* Names, functions, modules: each section has its tag. */
    uint32_t tag = 0xac000000;
    assert_non_null(memmem(out.data, out.length, "work\0", 5));
    assert_non_null(memmem(out.data, out.length, &tag, sizeof(tag)));
    uint32_t end[3];
    memcpy(end, out.data + out.length - sizeof(end), sizeof(end));
    assert_int_equal(end[0], 0xae000000);
    assert_int_equal(end[1] | end[2], 0);
    profile_release(&profile);
}

static void add_to(struct profile *profile, const char *name, const uint32_t *frames, size_t count,
                   int64_t value)
{
    unsigned type =
        profile_type(profile, profile_cstring(profile, name), profile_cstring(profile, "count"));
    uint32_t node = profile_stack(profile, frames, count);
    profile_add_value(profile, profile_sample(profile, node, 0, 0, 0), type, value);
}

/* Executions replace samples, branches to an entry are calls, others are not. */
static void branch_stacks(void **state)
{
    (void)state;
    struct profile profile;
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0}, binary = {0};
    fill(&profile);
    uint32_t entry = frame_of(&profile, "work", 10, 10, 0x1f0, false);
    uint32_t body = frame_of(&profile, "work", 10, 12, 0x1f8, false);
    uint32_t body_tail = frame_of(&profile, "work", 10, 12, 0x1f9, false);
    uint32_t call = frame_of(&profile, "main", 1, 5, 0x100, false);
    uint32_t after = frame_of(&profile, "main", 1, 5, 0x105, false);
    add_to(&profile, "executions", &entry, 1, 20);
    add_to(&profile, "executions", &body, 1, 60);
    add_to(&profile, "executions", &body_tail, 1, 60);
    add_to(&profile, "executions", &call, 1, 21);
    add_to(&profile, "executions", &after, 1, 19);
    add_to(&profile, "taken_branches", (uint32_t[]){call, entry}, 2, 20);
    add_to(&profile, "taken_branches", (uint32_t[]){body_tail, body}, 2, 40);
    add_to(&profile, "taken_branches", (uint32_t[]){body_tail, after}, 2, 19);
    assert_int_equal(
        format_autofdo.write(&out, &profile, &(struct write_options){.type = -1}, &error), 0);
    assert_string_equal(buffer_text(&out), "work:80:20\n"
                                           " 0: 20\n"
                                           " 2: 60\n"
                                           "main:21:21\n"
                                           " 4: 21 work:20\n");
    assert_int_equal(
        format_autofdo_gcc.write(&binary, &profile, &(struct write_options){.type = -1}, &error),
        0);
    /* A line's head is its offset, how many targets it has and its count; then come the targets. */
    const struct __attribute__((packed)) {
        uint32_t offset, targets;
        uint64_t count;
        uint32_t kind;
        uint64_t target, calls;
    } line = {4 << 16, 1, 21, 0, 2, 20};
    assert_non_null(memmem(binary.data, binary.length, &line, sizeof(line)));
    /* Samples are still there for those who ask. */
    out.length = 0;
    int samples = (int)profile_find_type(&profile, "samples");
    assert_int_equal(
        format_autofdo.write(&out, &profile, &(struct write_options){.type = samples}, &error), 0);
    assert_non_null(strstr(buffer_text(&out), "work:168:3\n"));
    profile_release(&profile);
}

static void too_little(void **state)
{
    (void)state;
    struct profile profile;
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0};
    profile_init(&profile, PROFILE_ALL);
    uint32_t no_start = frame_of(&profile, "f", 0, 5, 0x100, false);
    uint32_t before = frame_of(&profile, "g", 50, 5, 0x100, false);
    add(&profile, &no_start, 1, 5);
    add(&profile, &before, 1, 5);
    assert_int_equal(
        format_autofdo.write(&out, &profile, &(struct write_options){.type = -1}, &error), -EINVAL);
    assert_says(&error, "debug information");
    assert_int_equal(
        format_autofdo_gcc.write(&out, &profile, &(struct write_options){.type = -1}, &error),
        -EINVAL);
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(for_clang),
        cmocka_unit_test(for_gcc),
        cmocka_unit_test(branch_stacks),
        cmocka_unit_test(too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
