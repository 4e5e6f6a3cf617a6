// SPDX-License-Identifier: Apache-2.0
// The reader of perf.data: files, pipes and compressed records of the same recording, copied
// stacks, and damage of every kind.

#define READER_FORMAT format_perf_data
#define READER_FOLDER "perf-data"
#include "format/perfdata/walker.h"
#include "reader.h"

#define STACKS(anonymous)                                                                          \
    anonymous "+0x7f0000000100 1\n"                                                                \
              "program+0x1a00;program+0x1123 1\n"                                                  \
              "program+0x1a00;program+0x1123;[kernel.kallsyms]+0xffffffff81000455;"                \
              "[kernel.kallsyms]+0xffffffff81000123 1\n"                                           \
              "program+0x1b00;program+0x1123 1\n"

static bool has_label(const struct profile *profile, const char *key, const char *text)
{
    for (uint32_t set = 1; set < profile_label_set_count(profile); set++) {
        size_t count;
        const struct profile_label *labels = profile_labels(profile, set, &count);
        for (size_t i = 0; i < count; i++)
            if (!strcmp(profile_text(profile, labels[i].key), key) &&
                !strcmp(profile_text(profile, labels[i].text), text))
                return true;
    }
    return false;
}

static void same_recording(const char *name, const char *anonymous_stacks)
{
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, name);
    assert_folded(&profile, "samples", anonymous_stacks);
    assert_int_equal(total_of(&profile, "cpu"), 20000);
    assert_int_equal(total_of(&profile, "page-faults"), 10);
    assert_string_equal(profile_text(&profile, profile.default_type), "cpu");
    assert_true(has_label(&profile, "comm", "first"));
    assert_true(has_label(&profile, "comm", "second thread"));
    profile_release(&profile);
}

/* Records are out of order in the file: each sample comes before the mappings it needs would, if
 * they were taken as they come. */
static void file(void **state)
{
    (void)state;
    same_recording("file.data", STACKS("anon"));
    same_recording("packed.data", STACKS("anon"));
}

static void pipe_of_records(void **state)
{
    (void)state;
    same_recording("pipe.data", STACKS("[jit 100]"));
}

static void identity(void **state)
{
    (void)state;
    struct profile profile;
    bool found = false;
    read_fixture(&profile, PROFILE_ALL, "file.data");
    for (uint32_t i = 1; i < profile.mapping_count; i++)
        if (!strcmp(profile_text(&profile, profile.mappings[i].file), "/nowhere/program")) {
            found = true;
            assert_string_equal(profile_text(&profile, profile.mappings[i].build_id),
                                "000102030405060708090a0b0c0d0e0f10111213");
            assert_int_equal(profile.mappings[i].offset, 0x1000);
        }
    assert_true(found);
    /* By the feature that relates perf's clock to the time of day. */
    assert_int_equal(profile.time_ns, 1700000000000001000);
    profile_release(&profile);
}

/* ---- copied stacks ---- */

static int walks;

static void *walk_start(void)
{
    return &walks;
}

static void walk_stop(void *walker)
{
    assert_ptr_equal(walker, &walks);
}

static enum perf_walk_end walk(void *walker, const struct perf_walk_request *request,
                               struct perf_walk_frame *frames, size_t limit, size_t *ret_count)
{
    struct perf_walk_place place;
    assert_ptr_equal(walker, &walks);
    walks++;
    assert_int_equal(request->registers[16], 0x400123);
    assert_int_equal(request->registers[6], 0x7ffe0000);
    assert_int_equal(request->registers[7], 0x7ffe0000);
    assert_int_equal(request->known, 1 << 6 | 1 << 7 | 1 << 16);
    assert_int_equal(request->stack_bytes, 64);
    assert_true(limit >= 2);
    assert_false(request->find(request->context, 0x1000, &place));
    assert_true(request->find(request->context, 0x400123, &place));
    assert_string_equal(place.path, "/nowhere/program");
    assert_int_equal(place.start, 0x400000);
    frames[0].address = 0x400123;
    memcpy(&frames[1].address, request->stack + 8, 8);
    *ret_count = 2;
    return PERF_WALK_TRUNCATED;
}

static const char *running_kernel(void *walker)
{
    (void)walker;
    return "";
}

static void copied_stacks(void **state)
{
    (void)state;
    static const struct perf_walker walker = {walk_start, walk_stop, walk, running_kernel};
    struct profile profile;
    perf_data_set_walker(NULL);
    read_fixture(&profile, PROFILE_ALL, "stack.data");
    assert_folded(&profile, "samples", "program+0x123 1\n");
    profile_release(&profile);
    perf_data_set_walker(&walker);
    read_fixture(&profile, PROFILE_ALL, "stack.data");
    perf_data_set_walker(NULL);
    assert_folded(&profile, "samples", "[truncated];program+0xa01;program+0x123 1\n");
    assert_int_equal(walks, 1);
    profile_release(&profile);
}

/* ---- damage ---- */

static int64_t value_at(const struct profile *profile, const char *type, uint64_t from, uint64_t to)
{
    unsigned column = profile_find_type(profile, type);
    assert_true(column < profile->type_count);
    for (size_t row = 0; row < profile->samples.count; row++) {
        const struct profile_node *leaf = &profile->nodes[profile->samples.node[row]];
        uint64_t parent =
            leaf->parent ? profile->frames[profile->nodes[leaf->parent].frame].address : 0;
        if (profile->frames[leaf->frame].address == to && parent == from &&
            profile->samples.values[column][row])
            return profile->samples.values[column][row];
    }
    return 0;
}

/* Between two branches, all addresses were executed; offsets are those of the file. */
static void branches(void **state)
{
    (void)state;
    struct profile profile;
    read_fixture(&profile, PROFILE_ALL, "branches.data");
    assert_int_equal(total_of(&profile, "samples"), 3);
    assert_int_equal(total_of(&profile, "cycles"), 3000);
    assert_string_equal(profile_text(&profile, profile.default_type), "cycles");
    assert_int_equal(value_at(&profile, "executions", 0, 0x1100), 1);
    assert_int_equal(value_at(&profile, "executions", 0, 0x1104), 1);
    assert_int_equal(value_at(&profile, "executions", 0, 0x1105), 0);
    assert_int_equal(value_at(&profile, "executions", 0, 0x1109), 1);
    assert_int_equal(value_at(&profile, "executions", 0, 0x110e), 1);
    assert_int_equal(value_at(&profile, "executions", 0, 0x110f), 0);
    assert_int_equal(value_at(&profile, "executions", 0, 0x1200), 2);
    assert_int_equal(value_at(&profile, "executions", 0, 0x1203), 2);
    /* 5 + 6 bytes of the loop, and 4 of the function twice. */
    assert_int_equal(total_of(&profile, "executions"), 5 + 6 + 8);
    assert_int_equal(value_at(&profile, "taken_branches", 0x1104, 0x1200), 3);
    assert_int_equal(value_at(&profile, "taken_branches", 0x1203, 0x1109), 2);
    assert_int_equal(value_at(&profile, "taken_branches", 0x110e, 0x1100), 2);
    assert_int_equal(total_of(&profile, "taken_branches"), 7); /* without the kernel's */
    profile_release(&profile);
    /* Who doesn't look at lines has no use for them. */
    read_fixture(&profile, PROFILE_LABELS, "branches.data");
    assert_int_equal(profile_find_type(&profile, "executions"), PROFILE_TYPES_MAX);
    profile_release(&profile);
}

/* perf was killed in the middle of a record. */
static void unfinished(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer content = {0};
    char path[512];
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/perf-data/pipe.data", getenv("FIXTURES"));
    assert_int_equal(file_read(path, 1 << 20, &content, &error), 0);
    static const char rest[] = "[ perf record: Woken up 1 times to write data ]";
    buffer_add(&content, rest, strlen(rest));
    struct profile profile;
    struct source source;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(source_open_memory(&source, "test", content.data, content.length, 0, &error),
                     0);
    assert_int_equal(format_perf_data.read(&source, &profile, &error), 0);
    assert_non_null(strstr(source.warning, "record is incomplete"));
    source_release(&source);
    assert_folded(&profile, "samples", STACKS("[jit 100]"));
    profile_release(&profile);
}

static void put(struct buffer *content, size_t at, uint64_t value, size_t length)
{
    assert_true(at + length <= content->length);
    memcpy(content->data + at, &value, length);
}

static void read_changed(struct profile *profile, const struct buffer *content, char warning[256])
{
    struct error error = {0};
    struct source source;
    profile_init(profile, PROFILE_ALL);
    assert_int_equal(source_open_memory(&source, "test", content->data, content->length, 0, &error),
                     0);
    if (format_perf_data.read(&source, profile, &error) < 0)
        fail_msg("%s", error.text);
    snprintf(warning, 256, "%s", source.warning);
    source_release(&source);
}

/* perf was killed between two records: the size of all is not there, nor what follows them. */
static void without_size(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer content = {0};
    char path[512], warning[256];
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/perf-data/file.data", getenv("FIXTURES"));
    assert_int_equal(file_read(path, 1 << 20, &content, &error), 0);
    uint64_t offset, size;
    memcpy(&offset, content.data + 40, 8);
    memcpy(&size, content.data + 48, 8);
    content.length = (size_t)(offset + size);
    put(&content, 48, 0, 8);
    struct profile profile;
    read_changed(&profile, &content, warning);
    assert_string_equal(warning, "perf did not end in order: the last samples may be missing, "
                                 "5 events were lost while recording.");
    assert_int_equal(total_of(&profile, "cpu"), 20000);
    profile_release(&profile);
}

/* cpu-clock and task-clock measure the same time: only one of them is "cpu". */
static void two_clocks(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer content = {0};
    char path[512], warning[256];
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/perf-data/file.data", getenv("FIXTURES"));
    assert_int_equal(file_read(path, 1 << 20, &content, &error), 0);
    uint64_t attrs, bytes, entry;
    memcpy(&entry, content.data + 16, 8);
    memcpy(&attrs, content.data + 24, 8);
    memcpy(&bytes, content.data + 32, 8);
    bool changed = false;
    for (uint64_t at = attrs; at < attrs + bytes; at += entry) {
        uint64_t config;
        memcpy(&config, content.data + at + 8, 8);
        if (config == 2) { /* page-faults */
            put(&content, (size_t)at + 8, 1, 8);
            changed = true;
        }
    }
    assert_true(changed);
    struct profile profile;
    read_changed(&profile, &content, warning);
    assert_int_equal(total_of(&profile, "cpu"), 20000);
    assert_int_equal(total_of(&profile, "page-faults"), 10); /* by its recorded name */
    unsigned type = profile_find_type(&profile, "page-faults");
    assert_string_equal(profile_text(&profile, profile.types[type].unit), "nanoseconds");
    assert_string_equal(profile_text(&profile, profile.default_type), "cpu");
    profile_release(&profile);
}

static void damage(void **state)
{
    (void)state;
    survives_damage("file.data");
    survives_damage("pipe.data");
    survives_damage("branches.data");
    survives_damage("packed.data");
    survives_damage("stack.data");
}

static void bad_input(void **state)
{
    (void)state;
    must_fail("PERFILE2", -EBADMSG, "Not a perf.data file");
    must_fail("PERFILE2\x68zzzzzzzz", -EBADMSG, "ends before its header");
    must_fail("no recording at all", -EBADMSG, "Not a perf.data file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file),         cmocka_unit_test(pipe_of_records),
        cmocka_unit_test(identity),     cmocka_unit_test(copied_stacks),
        cmocka_unit_test(branches),     cmocka_unit_test(unfinished),
        cmocka_unit_test(without_size), cmocka_unit_test(two_clocks),
        cmocka_unit_test(damage),       cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
