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
        cmocka_unit_test(too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
