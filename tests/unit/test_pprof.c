// SPDX-License-Identifier: Apache-2.0
// The pprof codec: both packings, inlines, links, damage, many files at once.

#include "base/file.h"
#include "format/format.h"
#include "io/wire.h"
#include "profile/address.h"
#include "profile/naming.h"
#include "profile/views/rank.h"
#include "sample_profile.h"

static char *fixture(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof(path), "%s/pprof/%s", getenv("FIXTURES"), name);
    return path;
}

static void read_fixture(struct profile *profile, const char *name)
{
    struct error error = {0};
    const struct format *format = NULL;
    if (format_read_file(fixture(name), NULL, profile, &format, &error) < 0)
        fail_msg("%s", error.text);
    assert_ptr_equal(format, &format_pprof);
}

/* Everything that matters of a profile, as text: stacks with lines, addresses, labels, values. */
static void describe(const struct profile *profile, struct buffer *out)
{
    _cleanup_naming_ struct naming naming;
    naming_init(&naming, profile);
    for (unsigned i = 0; i < profile->type_count; i++)
        buffer_printf(out, "%s/%s ", profile_text(profile, profile->types[i].type),
                      profile_text(profile, profile->types[i].unit));
    buffer_printf(out, "time %lld duration %lld period %lld default %s\n",
                  (long long)profile->time_ns, (long long)profile->duration_ns,
                  (long long)profile->period, profile_text(profile, profile->default_type));
    for (size_t i = 0; i < profile->comment_count; i++)
        buffer_printf(out, "# %s\n", profile_text(profile, profile->comments[i]));
    for (size_t row = 0; row < profile->samples.count; row++) {
        for (uint32_t node = profile->samples.node[row]; node; node = profile->nodes[node].parent) {
            const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
            buffer_printf(out, "%s%s:%u@%llx<", frame->inlined ? "+" : "",
                          naming.entries[naming.of_frame[profile->nodes[node].frame]].name,
                          frame->line, (unsigned long long)profile_frame_address(profile, frame));
        }
        size_t count;
        const struct profile_label *labels =
            profile_labels(profile, profile->samples.labels[row], &count);
        /* Ids differ between profiles, and so may the order of labels. */
        uint64_t together = 0;
        for (size_t i = 0; i < count; i++)
            together += strlen(profile_text(profile, labels[i].key)) * 1000003 +
                        strlen(profile_text(profile, labels[i].text)) * 1009 +
                        (uint64_t)labels[i].number * 31 +
                        strlen(profile_text(profile, labels[i].unit));
        buffer_printf(out, " %zu labels %llu", count, (unsigned long long)together);
        for (unsigned i = 0; i < profile->type_count; i++)
            buffer_printf(out, " %lld", (long long)profile->samples.values[i][row]);
        buffer_add_char(out, '\n');
    }
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The description with its lines sorted, so that the order of rows doesn't matter. */
static char *sorted_description(const struct profile *profile)
{
    _cleanup_buffer_ struct buffer text = {0}, sorted = {0};
    describe(profile, &text);
    buffer_text(&text);
    char *rest = text.data, *line;
    char **lines = NULL;
    size_t count = 0, capacity = 0;
    while ((line = strsep(&rest, "\n")) && rest) {
        array_reserve(lines, capacity, count + 1);
        lines[count++] = line;
    }
    qsort(lines, count, sizeof(*lines), compare_lines);
    for (size_t i = 0; i < count; i++)
        buffer_printf(&sorted, "%s\n", lines[i]);
    free(lines);
    return memory_strdup(buffer_text(&sorted));
}

static void assert_same(const struct profile *a, const struct profile *b)
{
    _cleanup_free_ char *x = sorted_description(a), *y = sorted_description(b);
    assert_string_equal(x, y);
}

static void write_and_read(const struct profile *profile, struct profile *again)
{
    _cleanup_buffer_ struct buffer content = {0};
    struct error error = {0};
    assert_int_equal(
        format_pprof.write(&content, profile, &(struct write_options){.type = -1}, &error), 0);
    if (format_read_memory("again", content.data, content.length, NULL, again, NULL, &error) < 0)
        fail_msg("%s", error.text);
}

static void round_trips(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu-labels.pb.gz", "heap.pb.gz",        "mutex.pb.gz",
                                        "packed.pb.gz",     "inlines.pb.gz",     "recursion.pb.gz",
                                        "negative.pb.gz",   "odd-names.pb.gz",   "goroutine.pb.gz",
                                        "empty.pb.gz",      "unsymbolized.pb.gz"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        _cleanup_profile_ struct profile profile, again;
        profile_init(&profile, PROFILE_ALL);
        profile_init(&again, PROFILE_ALL);
        read_fixture(&profile, names[i]);
        write_and_read(&profile, &again);
        assert_same(&profile, &again);
    }
}

/* Readers take a name that equals the system name for one that wants demangling, and cut what they
 * think are template arguments: "<module>" of Python. Empty stays empty, and the same the same. */
static void system_names_are_kept(void **state)
{
    static const char *const names[][2] = {
        {"<module>", ""}, {"main.run", "main.run"}, {"shop::run", "_ZN4shop3runEv"}};
    _cleanup_profile_ struct profile profile, again;
    (void)state;
    profile_init(&profile, PROFILE_ALL);
    profile_init(&again, PROFILE_ALL);
    unsigned type = profile_type(&profile, profile_cstring(&profile, "samples"),
                                 profile_cstring(&profile, "count"));
    uint32_t frames[3];
    for (size_t i = 0; i < 3; i++) {
        struct profile_function function = {.name = profile_cstring(&profile, names[i][0]),
                                            .system_name = profile_cstring(&profile, names[i][1])};
        frames[i] = profile_frame(
            &profile, &(struct profile_frame){.function = profile_function(&profile, &function)});
    }
    size_t row = profile_sample(&profile, profile_stack(&profile, frames, 3), 0, 0, 0);
    profile_add_value(&profile, row, type, 1);
    write_and_read(&profile, &again);
    assert_int_equal(again.function_count, 4);
    for (uint32_t i = 0; i < 3; i++) {
        const struct profile_function *function = &again.functions[i + 1];
        assert_string_equal(profile_text(&again, function->name), names[i][0]);
        assert_string_equal(profile_text(&again, function->system_name), names[i][1]);
    }
}

static void packed_or_not(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile packed, unpacked;
    profile_init(&packed, PROFILE_ALL);
    profile_init(&unpacked, PROFILE_ALL);
    read_fixture(&packed, "packed.pb.gz");
    read_fixture(&unpacked, "unpacked.pb.gz");
    assert_same(&packed, &unpacked);
    assert_true(packed.samples.count > 0);
}

static void inlined_functions_share_their_location(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile, again;
    profile_init(&profile, PROFILE_ALL);
    profile_init(&again, PROFILE_ALL);
    add_stacks(&profile, "main:1;outer:2;+middle:3;+inner:4 5", "main:1;outer:2 7");
    _cleanup_buffer_ struct buffer content = {0};
    assert_int_equal(
        format_pprof.write(&content, &profile, &(struct write_options){.type = -1}, NULL), 0);
    size_t locations = 0;
    struct wire wire = wire_of(content.data, content.length);
    struct wire_field field;
    while (wire_next(&wire, &field) > 0)
        locations += field.number == 4;
    assert_int_equal(locations, 3); /* main, outer with what is inlined, outer alone */
    write_and_read(&profile, &again);
    assert_same(&profile, &again);
}

static void links_become_labels(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile, again;
    profile_init(&profile, PROFILE_ALL);
    profile_init(&again, PROFILE_ALL);
    add_stacks(&profile, "main 1");
    struct profile_link link = {.trace_id = {1, 2, 0xab}, .span_id = {0xff}};
    size_t row =
        profile_sample(&profile, profile.samples.node[0], 0, profile_link(&profile, &link), 0);
    profile_add_value(&profile, row, 0, 9);
    write_and_read(&profile, &again);
    assert_int_equal(again.samples.count, 2);
    size_t count;
    const struct profile_label *labels = profile_labels(&again, again.samples.labels[1], &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        bool trace = !strcmp(profile_text(&again, labels[i].key), "trace_id");
        assert_string_equal(profile_text(&again, labels[i].text),
                            trace ? "0102ab00000000000000000000000000" : "ff00000000000000");
    }
}

static void runs_at_other_addresses_add_up(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile both;
    profile_init(&both, PROFILE_ALL);
    struct error error = {0};
    for (uint64_t start = 0x10000; start <= 0x20000; start += 0x10000) {
        _cleanup_profile_ struct profile one;
        _cleanup_buffer_ struct buffer content = {0};
        profile_init(&one, PROFILE_ALL);
        struct profile_mapping mapping = {.start = start,
                                          .limit = start + 0x5000,
                                          .offset = 0x1000,
                                          .file = profile_cstring(&one, "/bin/app"),
                                          .build_id = profile_cstring(&one, "abcd")};
        struct profile_frame frame = {.mapping = profile_mapping(&one, &mapping)};
        frame.address = profile_file_offset(&mapping, start + 0x40);
        uint32_t id = profile_frame(&one, &frame);
        unsigned type = profile_type(&one, profile_cstring(&one, "cpu"), 0);
        profile_add_value(&one, profile_sample(&one, profile_stack(&one, &id, 1), 0, 0, 0), type,
                          3);
        assert_int_equal(
            format_pprof.write(&content, &one, &(struct write_options){.type = -1}, &error), 0);
        assert_int_equal(
            format_read_memory("run", content.data, content.length, NULL, &both, NULL, &error), 0);
    }
    assert_int_equal(both.samples.count, 1);
    assert_int_equal(both.samples.values[0][0], 6);
    assert_int_equal(both.frames[1].address, 0x1040);
    assert_int_equal(profile_frame_address(&both, &both.frames[1]), 0x10040);
}

/* pprof has a mapping of all addresses where they are the linker's. */
static void addresses_of_the_linker(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile one, again;
    _cleanup_buffer_ struct buffer content = {0};
    struct error error = {0};
    profile_init(&one, PROFILE_ALL);
    profile_init(&again, PROFILE_ALL);
    struct profile_mapping mapping = {.start = PROFILE_BY_ADDRESS,
                                      .limit = PROFILE_BY_ADDRESS,
                                      .offset = PROFILE_BY_ADDRESS,
                                      .file = profile_cstring(&one, "/bin/app"),
                                      .build_id = profile_cstring(&one, "abcd")};
    struct profile_frame frame = {.mapping = profile_mapping(&one, &mapping), .address = 0x401136};
    uint32_t id = profile_frame(&one, &frame);
    unsigned type = profile_type(&one, profile_cstring(&one, "cpu"), 0);
    profile_add_value(&one, profile_sample(&one, profile_stack(&one, &id, 1), 0, 0, 0), type, 3);
    assert_int_equal(
        format_pprof.write(&content, &one, &(struct write_options){.type = -1}, &error), 0);
    struct wire wire = wire_of(content.data, content.length);
    struct wire_field field, part;
    bool seen = false;
    while (wire_next(&wire, &field) > 0) {
        if (field.number != 3) /* a mapping */
            continue;
        struct wire inside = wire_of(field.data, field.length);
        while (wire_next(&inside, &part) > 0) {
            assert_true(part.number != 2 && part.number != 4); /* start and offset are 0 */
            seen |= part.number == 3 && part.value == UINT64_MAX;
        }
    }
    assert_true(seen);
    assert_int_equal(
        format_read_memory("it", content.data, content.length, NULL, &again, NULL, &error), 0);
    assert_true(profile_by_address(&again.mappings[1]));
    assert_int_equal(again.frames[1].address, 0x401136);
    assert_int_equal(profile_frame_address(&again, &again.frames[1]), 0x401136);
}

/* Labels that are not wanted are not read, and rows that differ only in them are one. */
static void less_detail_is_smaller(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile all, less;
    profile_init(&all, PROFILE_ALL);
    profile_init(&less, 0);
    read_fixture(&all, "cpu-labels.pb.gz");
    read_fixture(&less, "cpu-labels.pb.gz");
    assert_true(less.samples.count < all.samples.count);
    assert_true(less.node_count < all.node_count);
    _cleanup_naming_ struct naming names_all, names_less;
    naming_init(&names_all, &all);
    naming_init(&names_less, &less);
    _cleanup_ranking_ struct ranking ranked_all = {0}, ranked_less = {0};
    rank_functions(&all, &names_all, 1, RANK_BY_FLAT, &ranked_all);
    rank_functions(&less, &names_less, 1, RANK_BY_FLAT, &ranked_less);
    assert_int_equal(ranked_all.count, ranked_less.count);
    for (size_t i = 0; i < ranked_all.count; i++) {
        assert_int_equal(ranked_all.rows[i].flat, ranked_less.rows[i].flat);
        assert_int_equal(ranked_all.rows[i].cumulative, ranked_less.rows[i].cumulative);
    }
}

static void many_files_are_read_in_order(void **state)
{
    (void)state;
    char *paths[40];
    for (size_t i = 0; i < 40; i++)
        paths[i] = memory_strdup(fixture(i % 2 ? "packed.pb.gz" : "recursion.pb.gz"));
    struct error error = {0};
    _cleanup_profile_ struct profile together, apart;
    profile_init(&together, PROFILE_ALL);
    profile_init(&apart, PROFILE_ALL);
    assert_int_equal(
        format_read_files((const char *const *)paths, 40, NULL, &together, NULL, &error), 0);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(format_read_file(paths[i], NULL, &apart, NULL, &error), 0);
    _cleanup_buffer_ struct buffer x = {0}, y = {0};
    describe(&together, &x);
    describe(&apart, &y);
    assert_string_equal(buffer_text(&x), buffer_text(&y));
    assert_int_equal(together.source_count, 40);

    /* One that cannot be read ends it, with its name, whatever the threads have begun. */
    free(paths[20]);
    paths[20] = memory_strdup("/nowhere/x.pb.gz");
    _cleanup_profile_ struct profile broken;
    profile_init(&broken, PROFILE_ALL);
    assert_true(format_read_files((const char *const *)paths, 40, NULL, &broken, NULL, &error) < 0);
    assert_says(&error, "/nowhere/x.pb.gz");
    for (size_t i = 0; i < 40; i++)
        free(paths[i]);
}

/* Cut anywhere, or with any byte changed, a file is read or refused with a sentence. */
static void damage(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer content = {0};
    profile_init(&profile, PROFILE_ALL);
    read_fixture(&profile, "packed.pb.gz");
    assert_int_equal(
        format_pprof.write(&content, &profile, &(struct write_options){.type = -1}, NULL), 0);
    size_t refused = 0;
    for (size_t at = 0; at < content.length; at++) {
        static const unsigned char changes[] = {0x01, 0x80, 0xff};
        for (size_t kind = 0; kind <= sizeof(changes); kind++) {
            _cleanup_free_ char *copy = memory_alloc(content.length);
            memcpy(copy, content.data, content.length);
            size_t length = kind ? content.length : at;
            if (kind)
                copy[at] = (char)(copy[at] ^ changes[kind - 1]);
            _cleanup_profile_ struct profile damaged;
            struct error error = {0};
            profile_init(&damaged, PROFILE_ALL);
            struct read_options options = {.format = &format_pprof};
            if (format_read_memory("damaged", copy, length, &options, &damaged, NULL, &error) < 0) {
                refused++;
                assert_true(strlen(error.text) > 20);
                assert_int_equal(error.text[strlen(error.text) - 1], '.');
            }
        }
    }
    assert_true(refused > content.length);
}

/* As in pprof: the stack counts, though nobody knows which binary the address is in. */
static void a_mapping_that_is_not_there(void **state)
{
    (void)state;
    static const uint8_t file[] = {
        0x0a, 4, 0x08, 1, 0x10, 2,             /* type 1, unit 2 */
        0x12, 6, 0x0a, 1, 9,    0x12, 1,    5, /* a sample of 5 at location 9 */
        0x22, 6, 0x08, 9, 0x10, 33,   0x18, 7, /* location 9 in mapping 33 at address 7 */
        0x32, 0, 0x32, 3, 'c',  'p',  'u',  0x32, 2, 'n', 's',
    };
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    if (format_read_memory("x", file, sizeof(file), NULL, &profile, NULL, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(profile.samples.values[0][0], 5);
    const struct profile_frame *frame = &profile.frames[profile.nodes[1].frame];
    assert_int_equal(frame->mapping, 0);
    assert_int_equal(frame->address, 7);
}

/* Samples without any location: their values count, and nothing else is known. */
static void stacks_that_are_all_empty(void **state)
{
    (void)state;
    static const uint8_t file[] = {0x0a, 4, 0x08, 1, 0x10, 2,   0x12, 3,    0x12, 1,   5,
                                   0x32, 0, 0x32, 3, 'c',  'p', 'u',  0x32, 2,    'n', 's'};
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    if (format_read_memory("x", file, sizeof(file), NULL, &profile, NULL, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(profile.samples.count, 1);
    assert_int_equal(profile.samples.node[0], 0);
    assert_int_equal(profile.samples.values[0][0], 5);
}

static void recognised_by_content(void **state)
{
    (void)state;
    static const uint8_t no_pprof[][8] = {
        "main;a 1", {0x0a, 4, 0x0a, 2, 0x0a, 0, 0, 0}, "{\"a\":1}"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(format_pprof.detect(no_pprof[i], 8), 0);
    static const uint8_t pprof[] = {0x0a, 4, 0x08, 1, 0x10, 2, 0x32, 0};
    assert_int_equal(format_pprof.detect(pprof, sizeof(pprof)), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(system_names_are_kept),
        cmocka_unit_test(packed_or_not),
        cmocka_unit_test(inlined_functions_share_their_location),
        cmocka_unit_test(links_become_labels),
        cmocka_unit_test(runs_at_other_addresses_add_up),
        cmocka_unit_test(less_detail_is_smaller),
        cmocka_unit_test(many_files_are_read_in_order),
        cmocka_unit_test(damage),
        cmocka_unit_test(addresses_of_the_linker),
        cmocka_unit_test(a_mapping_that_is_not_there),
        cmocka_unit_test(stacks_that_are_all_empty),
        cmocka_unit_test(recognised_by_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
