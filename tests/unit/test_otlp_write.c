// SPDX-License-Identifier: Apache-2.0
// Writing OTLP: what is read back is what was written, and the message is made as OTLP wants it.

#include "test_otlp.h"

#include "io/wire.h"

static uint32_t text(struct profile *profile, const char *string)
{
    return profile_cstring(profile, string);
}

/* A profile that has everything the format can hold. */
static void make_profile(struct profile *profile, bool times)
{
    profile_init(profile, PROFILE_ALL);
    struct profile_mapping binary = {.start = 0x5000,
                                     .limit = 0x9000,
                                     .offset = 0x1000,
                                     .file = text(profile, "/bin/app"),
                                     .build_id = text(profile, "deadbeef")};
    struct profile_mapping library = {.file = text(profile, "/lib/go.so"),
                                      .build_id = text(profile, "Go/build/id")};
    uint32_t mappings[2] = {profile_mapping(profile, &binary), profile_mapping(profile, &library)};
    uint32_t frames[8];
    for (uint32_t i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        struct profile_function function = {.name = text(profile, name),
                                            .system_name = i % 2 ? text(profile, "_Zf") : 0,
                                            .file = i % 3 ? text(profile, "a.c") : 0,
                                            .start_line = i};
        struct profile_frame frame = {
            .function = i == 5 ? 0 : profile_function(profile, &function),
            .mapping = i == 6 ? 0 : mappings[i % 2],
            .address = 0x1010 + (i == 3 || i == 4 ? 2 : i) * 16, /* 3 and 4 are inlined into 2 */
            .line = i == 5 ? 0 : 100 + i,
            .column = i == 1 ? 0xffffff : 0,
            .kind = i == 3 || i == 4 ? FRAME_NATIVE
                    : i == 2         ? FRAME_NATIVE
                                     : i % FRAME_KINDS,
            .inlined = i == 3 || i == 4,
            .folded = i == 6,
        };
        if (i == 3 || i == 4)
            frame.mapping = mappings[0];
        frames[i] = profile_frame(profile, &frame);
    }
    unsigned count = profile_type(profile, text(profile, "samples"), text(profile, "count"));
    unsigned cpu = profile_type(profile, text(profile, "cpu"), text(profile, "nanoseconds"));
    profile_type(profile, text(profile, "never"), text(profile, "seen"));
    for (unsigned i = 0; i < 60; i++) {
        /* 0 1 2 3 4 5: inlined frames in the middle; cut at each length they come last. */
        uint32_t node = profile_stack(profile, frames, 1 + i % 8);
        struct profile_label labels[] = {
            {.key = text(profile, "service.name"), .text = text(profile, "shop")},
            {.key = text(profile, "pid"), .number = 0},
            {.key = text(profile, "size"), .number = -5, .unit = text(profile, "bytes")},
            {.key = text(profile, "twice"), .text = text(profile, "a")},
            {.key = text(profile, "twice"), .text = text(profile, "b")},
            {.key = text(profile, "thread"), .number = i % 3},
        };
        struct profile_link link = {.trace_id = {(uint8_t)(i % 4), 1}, .span_id = {1, 2}};
        uint32_t set = profile_label_set(profile, labels, ARRAY_LENGTH(labels));
        size_t row = profile_sample(profile, node, set, i % 4 ? profile_link(profile, &link) : 0,
                                    times && i % 5 ? 1700000000000000000 + i : 0);
        profile_add_value(profile, row, count, i % 7 ? 1 : -1);
        profile_add_value(profile, row, cpu, i % 6 ? (int64_t)i * 1000 : 0);
    }
    profile_sample(profile, 0, 0, 0, 0); /* a row of zeroes is nothing */
    profile_note_source(profile, 1700000000000000000, 5000000000);
    profile_note_period(profile, text(profile, "cpu"), text(profile, "nanoseconds"), 10000000);
    profile_add_comment(profile, text(profile, "one"));
    profile_add_comment(profile, text(profile, "two"));
    profile->doc_url = text(profile, "https://example.org");
    profile->drop_frames = text(profile, "drop");
    profile->keep_frames = text(profile, "keep");
    profile->default_type = text(profile, "samples");
}

static void write_and_read(const struct profile *profile, struct profile *again,
                           struct buffer *bytes)
{
    struct error error = {0};
    struct otlp_summary summary;
    bytes->length = 0;
    assert_int_equal(format_otlp.write(bytes, profile, NULL, &error), 0);
    profile_init(again, PROFILE_ALL);
    if (read_bytes(bytes->data, bytes->length, false, again, &summary, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(summary.profiles, profile->type_count);
    assert_int_equal(summary.by_layout[OTLP_1_8] + summary.by_layout[OTLP_1_9], 0);
    assert_int_equal(summary.guessed, 0);
    char *before = describe(profile), *after = describe(again);
    assert_string_equal(after, before);
    free(before);
    free(after);
}

static void assert_same_text(const struct profile *a, uint32_t x, const struct profile *b,
                             uint32_t y)
{
    assert_string_equal(profile_text(a, x), profile_text(b, y));
}

static void round_trip(void **state)
{
    (void)state;
    for (int times = 0; times < 2; times++) {
        _cleanup_profile_ struct profile profile, again, once_more;
        _cleanup_buffer_ struct buffer bytes = {0}, bytes_again = {0};
        make_profile(&profile, times);
        write_and_read(&profile, &again, &bytes);
        assert_int_equal(again.type_count, profile.type_count);
        for (unsigned i = 0; i < profile.type_count; i++)
            assert_same_text(&again, again.types[i].type, &profile, profile.types[i].type);
        assert_int_equal(again.time_ns, profile.time_ns);
        assert_int_equal(again.duration_ns, profile.duration_ns);
        assert_int_equal(again.period, profile.period);
        assert_same_text(&again, again.period_type.unit, &profile, profile.period_type.unit);
        assert_same_text(&again, again.doc_url, &profile, profile.doc_url);
        assert_same_text(&again, again.drop_frames, &profile, profile.drop_frames);
        assert_same_text(&again, again.keep_frames, &profile, profile.keep_frames);
        assert_int_equal(profile_default_type(&again), profile_default_type(&profile));
        assert_int_equal(again.comment_count, 2);
        assert_same_text(&again, again.comments[1], &profile, profile.comments[1]);
        assert_int_equal(again.mappings[1].start, 0x5000);
        assert_int_equal(again.mappings[1].limit, 0x9000);
        /* Written once more, it is the same again. */
        write_and_read(&again, &once_more, &bytes_again);
        assert_true(format_otlp.detect((const uint8_t *)bytes.data, MIN(bytes.length, 4096)) == 3);
    }
}

static void fixtures_round_trip(void **state)
{
    (void)state;
    static const char *const files[] = {"1.8.pb", "1.10.pb", "1.9-sums.pb", "counts.pb",
                                        "1.10.json"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        _cleanup_profile_ struct profile profile, again;
        _cleanup_buffer_ struct buffer bytes = {0};
        must_read_fixture(files[i], PROFILE_ALL, &profile, NULL);
        write_and_read(&profile, &again, &bytes);
    }
}

static void writing_is_reproducible(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile a, b;
    _cleanup_buffer_ struct buffer first = {0}, second = {0};
    make_profile(&a, true);
    make_profile(&b, true);
    otlp_write(&first, &a);
    otlp_write(&second, &b);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
}

static void empty_profile(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile, again;
    _cleanup_buffer_ struct buffer bytes = {0};
    profile_init(&profile, PROFILE_ALL);
    write_and_read(&profile, &again, &bytes);
    assert_int_equal(again.samples.count, 0);
}

/* Field `number` of a message, the nth of it. */
static struct wire nested(struct wire wire, uint32_t number, int nth)
{
    struct wire_field field;
    while (wire_next(&wire, &field) > 0)
        if (field.number == number && field.type == WIRE_BYTES && !nth--)
            return wire_of_field(&field);
    fail_msg("There is no field %u.", number);
    return wire_of("", 0);
}

static int count_fields(struct wire wire, uint32_t number)
{
    struct wire_field field;
    int count = 0;
    while (wire_next(&wire, &field) > 0)
        count += field.number == number;
    return count;
}

static void message_is_well_made(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer bytes = {0};
    make_profile(&profile, true);
    otlp_write(&bytes, &profile);
    struct wire request = wire_of(bytes.data, bytes.length), field;

    /* Index 0 of every table is its zero value. */
    struct wire dictionary = nested(request, 2, 0);
    for (uint32_t table = 1; table <= 7; table++) {
        struct wire zero = nested(dictionary, table, 0);
        assert_int_equal(zero.end - zero.at, table == 4 ? 2 + 16 + 2 + 8 : 0);
    }
    struct wire link = nested(dictionary, 4, 0);
    static const uint8_t zeroes[16];
    assert_memory_equal(nested(link, 1, 0).at, zeroes, 16);

    /* What all samples share is in the resource, what has a unit or varies is not. */
    struct wire resource = nested(nested(request, 1, 0), 1, 0);
    assert_int_equal(count_fields(resource, 1), 2);
    field = nested(nested(resource, 1, 0), 1, 0);
    assert_memory_equal(field.at, "service.name", 12);
    field = nested(nested(resource, 1, 1), 1, 0);
    assert_memory_equal(field.at, "pid", 3);

    struct wire scope = nested(nested(request, 1, 0), 2, 0);
    assert_memory_equal(nested(nested(scope, 1, 0), 1, 0).at, "assay", 5);
    assert_int_equal(count_fields(scope, 2), 3);

    /* Samples of one identity are one message; those whose value is zero are not written. */
    struct wire samples = nested(scope, 2, 0), never = nested(scope, 2, 2);
    assert_true(count_fields(samples, 2) < 60);
    assert_int_equal(count_fields(never, 2), 0);
    struct wire profile_id = nested(samples, 7, 0);
    assert_int_equal(profile_id.end - profile_id.at, 16);

    /* Frames 3 and 4 share the location of 2, and a location has the inlined ones first. */
    bool found = false;
    for (int i = 0; i < count_fields(dictionary, 2); i++)
        found |= count_fields(nested(dictionary, 2, i), 3) == 3;
    assert_true(found);
}

static void scope_is_kept(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile, again;
    _cleanup_buffer_ struct buffer bytes = {0};
    must_read_fixture("counts.pb", PROFILE_ALL, &profile, NULL);
    write_and_read(&profile, &again, &bytes);
    struct wire scope = nested(nested(wire_of(bytes.data, bytes.length), 1, 0), 2, 0);
    struct wire name = nested(nested(scope, 1, 0), 1, 0);
    assert_int_equal(name.end - name.at, 4);
    assert_memory_equal(name.at, "ebpf", 4);
}

/* Two services in one cgroup have the same memory: neither is a repetition of the other. */
static void equal_contents_of_two_services(void **state)
{
    (void)state;
    struct profile profile;
    _cleanup_profile_ struct profile again;
    _cleanup_buffer_ struct buffer bytes = {0}, same = {0};
    struct otlp_summary summary = {0};
    struct error error;
    profile_init(&profile, PROFILE_ALL);
    struct profile_function function = {.name = text(&profile, "[cgroup]")};
    struct profile_frame frame = {.function = profile_function(&profile, &function)};
    uint32_t id = profile_frame(&profile, &frame);
    unsigned type = profile_type(&profile, text(&profile, "rss_cgroup"), text(&profile, "bytes"));
    for (unsigned i = 0; i < 2; i++) {
        struct profile_label label = {.key = text(&profile, "service_name"),
                                      .text = text(&profile, i ? "a" : "b")};
        size_t row = profile_sample(&profile, profile_stack(&profile, &id, 1),
                                    profile_label_set(&profile, &label, 1), 0, 0);
        profile_add_value(&profile, row, type, 4096);
    }
    otlp_write_by_labels(&bytes, &profile);
    otlp_write_by_labels(&same, &profile);
    assert_int_equal(bytes.length, same.length);
    assert_memory_equal(bytes.data, same.data, bytes.length);
    profile_init(&again, PROFILE_ALL);
    assert_int_equal(read_bytes(bytes.data, bytes.length, false, &again, &summary, &error), 0);
    assert_int_equal(summary.repeated, 0);
    assert_int_equal(again.samples.count, 2);
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(fixtures_round_trip),
        cmocka_unit_test(writing_is_reproducible),
        cmocka_unit_test(empty_profile),
        cmocka_unit_test(message_is_well_made),
        cmocka_unit_test(scope_is_kept),
        cmocka_unit_test(equal_contents_of_two_services),
    };
    return cmocka_run_group_tests_name("otlp_write", tests, NULL, NULL);
}
