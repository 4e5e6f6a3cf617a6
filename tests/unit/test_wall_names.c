// SPDX-License-Identifier: Apache-2.0
// Names of threads and locks in wall-clock time: folded digits, limits, variables of files.

#include "capture/wall/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "elf/file.h"
#include "unit.h"

static void test_digits(void **state)
{
    static const char *const cases[][2] = {
        {"worker-12", "worker-#"}, {"worker", "worker"},    {"", ""},
        {"12-34", "#-#"},          {"a1b22c333", "a#b#c#"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char folded[32];
        wall_fold_digits(cases[i][0], folded, sizeof(folded));
        assert_string_equal(folded, cases[i][1]);
    }
    char narrow[4];
    wall_fold_digits("abcdef", narrow, sizeof(narrow));
    assert_string_equal(narrow, "abc");
}

static const char *value_of(const struct profile *profile, uint32_t labels, const char *key)
{
    size_t count = 0;
    const struct profile_label *list = profile_labels(profile, labels, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, list[i].key), key))
            return profile_text(profile, list[i].text);
    return NULL;
}

/* A program can call its threads as it likes: there is a limit. */
static void test_limit(void **state)
{
    struct profile profile;
    struct recorder recorder = {.profile = &profile};
    (void)state;
    profile_init(&profile, PROFILE_LABELS);
    struct wall_names *names = wall_names_new(&recorder);
    unsigned others = 0;
    for (unsigned i = 0; i < 100; i++) {
        const char name[] = {'t', (char)('A' + i % 26), (char)('A' + i / 26), 0};
        uint32_t labels = wall_names_add_thread(names, 0, name);
        const char *value = value_of(&profile, labels, WALL_THREAD_LABEL);
        assert_non_null(value);
        if (strcmp(value, name) != 0) {
            assert_string_equal(value, "other");
            others++;
        }
    }
    assert_int_equal(others, 100 - 64);
    wall_names_clear(names);
    uint32_t labels = wall_names_add_thread(names, 0, "again7");
    assert_string_equal(value_of(&profile, labels, WALL_THREAD_LABEL), "again#");
    wall_names_free(names);
    profile_release(&profile);
}

/* Not static: the linker may drop what nobody can see. */
int test_wall_variable[4] = {1, 2, 3, 4};

static void test_variable(void **state)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    struct error error = {0};
    char name[ELF_DATA_NAME_BYTES];
    uint64_t offset, bias = 0;
    (void)state;
    assert_int_equal(elf_open("/proc/self/exe", &file, &error), 0);
    /* The program's first mapping; a sanitizer's come before it. */
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    unsigned long start = 0, from = 1;
    assert_non_null(maps);
    while (from && fgets(line, sizeof(line), maps))
        if (strstr(line, program_invocation_short_name))
            assert_int_equal(sscanf(line, "%lx-%*x %*s %lx", &start, &from), 2);
    fclose(maps);
    assert_int_equal(from, 0);
    assert_true(elf_load_bias(&file, start, 0, &bias));
    uint64_t address = (uint64_t)(uintptr_t)&test_wall_variable[1] - bias;
    assert_true(elf_data_symbol(&file, address, name, &offset));
    assert_string_equal(name, "test_wall_variable");
    assert_int_equal(offset, sizeof(int));
    assert_false(elf_data_symbol(&file, UINT64_MAX, name, &offset));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
