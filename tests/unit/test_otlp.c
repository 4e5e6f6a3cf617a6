// SPDX-License-Identifier: Apache-2.0
// Reading OTLP profiles: all layouts and encodings of one request give the same profile, what is
// derived is right, and what cannot be read is refused with a sentence that helps.

#include "test_otlp.h"

#include "io/wire.h"

#define SUMS (PROFILE_ALL & ~PROFILE_TIMES)

static void assert_described(const struct profile *profile, const char *golden)
{
    _cleanup_buffer_ struct buffer expected = {0};
    load_fixture(golden, &expected);
    char *text = describe(profile);
    assert_string_equal(text, buffer_text(&expected));
    free(text);
}

static void layouts_give_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum otlp_layout layout;
        bool sums;
    } files[] = {
        {"1.8.pb", OTLP_1_8, false},
        {"1.8-sums.pb", OTLP_1_8, true},
        {"1.8-unpacked.pb", OTLP_1_8, true},
        {"1.9.pb", OTLP_1_9, false},
        {"1.9-sums.pb", OTLP_1_9, true},
        {"1.9-unpacked.pb", OTLP_1_9, true},
        {"1.10.pb", OTLP_1_10, false},
        {"1.10-sums.pb", OTLP_1_10, true},
        {"1.10-unpacked.pb", OTLP_1_10, true},
        {"1.10-dictionary-first.pb", OTLP_1_10, false},
        {"1.8.json", OTLP_1_8, false},
        {"1.10.json", OTLP_1_10, false},
        {"1.10-sorted-snake.json", OTLP_1_10, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        _cleanup_profile_ struct profile profile, summed;
        struct otlp_summary summary;
        must_read_fixture(files[i].name, PROFILE_ALL, &profile, &summary);
        assert_described(&profile, files[i].sums ? "expected-sums.txt" : "expected.txt");
        assert_int_equal(summary.by_layout[files[i].layout], 3);
        assert_int_equal(summary.profiles, 3);
        assert_int_equal(summary.samples, 7);
        assert_int_equal(summary.resources, 2);
        assert_int_equal(summary.guessed, 0);
        /* Without times, values of one sample add up to what the other file has summed. */
        must_read_fixture(files[i].name, SUMS, &summed, NULL);
        assert_described(&summed, "expected-sums.txt");
    }
}

static void whole_profile(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    must_read_fixture("1.8.pb", PROFILE_ALL, &profile, NULL);
    assert_int_equal(profile.source_count, 1);
    assert_int_equal(profile.time_ns, 1700000000000000000);
    /* From the first Profile's start to the last one's end. */
    assert_int_equal(profile.duration_ns, 7000000000);
    assert_int_equal(profile.period, 10000000);
    assert_string_equal(profile_text(&profile, profile.period_type.type), "cpu");
    assert_int_equal(profile.comment_count, 1);
    assert_string_equal(profile_text(&profile, profile.comments[0]), "a comment");
    assert_int_equal(profile_default_type(&profile), profile_find_type(&profile, "cpu"));
    assert_int_equal(profile.mapping_count, 2);
    assert_int_equal(profile.mappings[1].start, 0x400000);
    assert_int_equal(profile.mappings[1].limit, 0x500000);
    assert_int_equal(profile.mappings[1].offset, 0x1000);
}

static void adds_to_what_is_there(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer content = {0};
    struct error error = {0};
    must_read_fixture("1.9.pb", SUMS, &profile, NULL);
    size_t rows = profile.samples.count;
    load_fixture("1.10.pb", &content);
    assert_int_equal(read_bytes(content.data, content.length, false, &profile, NULL, &error), 0);
    assert_int_equal(profile.samples.count, rows);
    assert_int_equal(total_of(&profile, "cpu"), 2 * 172);
    assert_int_equal(total_of(&profile, "alloc_space"), 2 * 1324);
    assert_int_equal(profile.source_count, 2);
}

static void detail_is_dropped(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    must_read_fixture("1.10.pb", PROFILE_LINES, &profile, NULL);
    assert_int_equal(profile_label_set_count(&profile), 1);
    assert_null(profile.samples.link);
    assert_int_equal(profile.samples.count, 3); /* one per stack */
    assert_int_equal(total_of(&profile, "cpu"), 172);
}

static void counts_become_time(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile, ambiguous;
    struct otlp_summary summary;
    must_read_fixture("counts.pb", PROFILE_ALL, &profile, &summary);
    assert_int_equal(summary.by_layout[OTLP_1_10], 1);
    assert_int_equal(profile.samples.count, 4);
    assert_int_equal(total_of(&profile, "samples/count"), 4);
    assert_int_equal(total_of(&profile, "cpu/nanoseconds"), 4 * 50000000);

    /* Each sample fits both layouts; the indexes of one of them don't exist. */
    must_read_fixture("1.9-ambiguous.pb", PROFILE_ALL, &ambiguous, &summary);
    assert_int_equal(summary.by_layout[OTLP_1_9], 1);
    assert_int_equal(summary.guessed, 0);
    assert_int_equal(total_of(&ambiguous, "samples/count"), 1 + 2);
    assert_int_equal(total_of(&ambiguous, "cpu/nanoseconds"), 3 * 50000000);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int code;
        const char *words;
    } files[] = {
        {"bad/1.5.pb", -ENOTSUP, "OTLP profiles 1.7 or older; supported are 1.8 to 1.11"},
        {"bad/1.7.pb", -ENOTSUP, "OTLP profiles 1.7 or older; supported are 1.8 to 1.11"},
        {"bad/1.7.json", -EBADMSG, "belongs to OTLP profiles 1.7 or older"},
        {"bad/function-index.pb", -EBADMSG,
         "A location refers to entry 99 of the function table, which has 5 entries."},
        {"bad/string-index.pb", -EBADMSG,
         "A function refers to entry 1000 of the string table, which has 29 entries."},
        {"bad/negative-index.pb", -EBADMSG, "has the invalid index -1"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        assert_int_equal(read_fixture(files[i].name, PROFILE_ALL, &profile, NULL, &error),
                         files[i].code);
        assert_says(&error, files[i].words);
    }
}

static void detection(void **state)
{
    (void)state;
    static const char *const certain[] = {
        "1.8.pb", "1.9-sums.pb", "1.10.pb", "counts.pb", "1.10-dictionary-first.pb", "bad/1.7.pb"};
    _cleanup_buffer_ struct buffer content = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(certain); i++) {
        load_fixture(certain[i], &content);
        const uint8_t *bytes = (const uint8_t *)content.data;
        assert_int_equal(format_otlp.detect(bytes, content.length), 3);
        assert_int_equal(format_otlp_json.detect(bytes, content.length), 0);
        /* A sniff may end anywhere: it is never taken for something else. */
        for (size_t cut = 1; cut < content.length; cut++)
            assert_true(format_otlp.detect(bytes, cut) > 0);
    }
    load_fixture("1.10.json", &content);
    assert_int_equal(format_otlp_json.detect((const uint8_t *)content.data, content.length), 3);
    load_fixture("1.10-sorted-snake.json", &content);
    assert_int_equal(format_otlp_json.detect((const uint8_t *)content.data, content.length), 3);

    /* pprof: sample_type {1, 2}; samples first; and texts that begin with a newline. */
    static const uint8_t pprof[] = {0x0a, 4, 8, 1, 16, 2, 0x12, 6, 0x0a, 1, 1, 0x12, 1, 5};
    static const uint8_t samples[] = {0x12, 6, 0x0a, 1, 1, 0x12, 1, 5,
                                      0x12, 6, 0x0a, 1, 2, 0x12, 1, 5};
    assert_int_equal(format_otlp.detect(pprof, sizeof(pprof)), 0);
    assert_int_equal(format_otlp.detect(samples, sizeof(samples)), 0);
    assert_int_equal(format_otlp.detect((const uint8_t *)"\n\n\n\n\n\n\n\n\n\n\n\n", 12), 0);
    assert_int_equal(format_otlp.detect((const uint8_t *)"\nmain;work 5\n", 13), 0);
    assert_int_equal(format_otlp_json.detect((const uint8_t *)"{\"nodes\":[]}", 12), 0);
    assert_int_equal(format_otlp_json.detect((const uint8_t *)"{\"dictionary\":{}}", 17), 1);
}

/* ---- requests made here ---- */

struct request {
    struct buffer samples, dictionary;
};

static void add_text(struct request *request, const char *text)
{
    wire_put_bytes(&request->dictionary, 5, text, strlen(text));
}

static void finish_request(struct request *request, struct buffer *out)
{
    _cleanup_buffer_ struct buffer profile = {0}, scope = {0}, resource = {0};
    buffer_add(&profile, "\x0a\x04\x08\x01\x10\x02", 6);
    buffer_add(&profile, request->samples.data, request->samples.length);
    wire_put_bytes(&scope, 2, profile.data, profile.length);
    wire_put_bytes(&resource, 2, scope.data, scope.length);
    wire_put_bytes(out, 1, resource.data, resource.length);
    add_text(request, "");
    add_text(request, "events");
    add_text(request, "count");
    wire_put_bytes(out, 2, request->dictionary.data, request->dictionary.length);
    buffer_release(&request->samples);
    buffer_release(&request->dictionary);
}

static void add_raw_sample(struct request *request, const char *bytes, size_t length)
{
    wire_put_bytes(&request->samples, 2, bytes, length);
}

static int64_t total_of_request(struct request *request, struct otlp_summary *summary)
{
    _cleanup_buffer_ struct buffer bytes = {0};
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    finish_request(request, &bytes);
    profile_init(&profile, SUMS);
    if (read_bytes(bytes.data, bytes.length, false, &profile, summary, &error) < 0)
        fail_msg("%s", error.text);
    return profile.type_count ? total_of(&profile, "events") : 0;
}

static void layout_by_majority(void **state)
{
    (void)state;
    struct otlp_summary summary;
    /* {stack, 2: [3]}: a value in 1.9; attributes and no value at all in 1.10. */
    struct request alone = {0};
    add_raw_sample(&alone, "\x08\x00\x12\x01\x03", 5);
    assert_int_equal(total_of_request(&alone, &summary), 3);
    assert_int_equal(summary.by_layout[OTLP_1_9], 1);

    /* Beside samples that have values in field 4, it is one without a value. */
    struct request outvoted = {0};
    wire_put_bytes(&outvoted.dictionary, 6, "", 0);
    add_raw_sample(&outvoted, "\x08\x00\x12\x01\x00", 5);
    add_raw_sample(&outvoted, "\x08\x00\x22\x01\x07", 5);
    add_raw_sample(&outvoted, "\x08\x00\x22\x01\x08", 5);
    assert_int_equal(total_of_request(&outvoted, &summary), 15);
    assert_int_equal(summary.by_layout[OTLP_1_10], 1);

    /* Plain numbers in 2 and 4: async-profiler's attribute and value, since links are none. */
    struct request plain = {0};
    wire_put_bytes(&plain.dictionary, 6, "", 0);
    wire_put_bytes(&plain.dictionary, 6, "", 0);
    add_raw_sample(&plain, "\x08\x00\x10\x01\x20\x09", 6);
    assert_int_equal(total_of_request(&plain, &summary), 9);
    assert_int_equal(summary.by_layout[OTLP_1_10], 1);

    /* A value, an attribute or a link, and a time: nothing tells, so it counts as the newest. */
    struct request unknown = {0};
    wire_put_bytes(&unknown.dictionary, 6, "", 0);
    wire_put_bytes(&unknown.dictionary, 6, "", 0);
    add_raw_sample(&unknown, "\x10\x01\x29\x01\0\0\0\0\0\0\0", 11);
    assert_int_equal(total_of_request(&unknown, &summary), 1);
    assert_int_equal(summary.guessed, 1);
}

static void many_samples_are_added_up(void **state)
{
    (void)state;
    /* More than what is kept before equal rows are merged; in an order that changes layouts' doubt
     * from sample to sample. */
    struct request request = {0};
    struct otlp_summary summary;
    for (int i = 0; i < 300000; i++) {
        static const char packed[] = "\x08\x00\x22\x01\x02", plain[] = "\x08\x00\x20\x02";
        add_raw_sample(&request, i % 2 ? packed : plain, i % 2 ? 5 : 4);
    }
    assert_int_equal(total_of_request(&request, &summary), 600000);
    assert_int_equal(summary.samples, 300000);
}

static void values_stop_at_the_end(void **state)
{
    (void)state;
    struct request request = {0};
    for (int i = 0; i < 3; i++)
        add_raw_sample(&request, "\x22\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11);
    assert_int_equal(total_of_request(&request, NULL), INT64_MAX);
}

static void growth_is_bounded(void **state)
{
    (void)state;
    /* A location of 4,000 lines, 4,000 times on a stack: 16 million frames in 30 kB. */
    struct request request = {0};
    _cleanup_buffer_ struct buffer location = {0}, stack = {0}, indexes = {0}, bytes = {0};
    for (int i = 0; i < 4000; i++) {
        buffer_add(&location, "\x1a\x02\x08\x01", 4);
        buffer_add_char(&indexes, 1);
    }
    wire_put_bytes(&stack, 1, indexes.data, indexes.length);
    wire_put_bytes(&request.dictionary, 2, "", 0);
    wire_put_bytes(&request.dictionary, 2, location.data, location.length);
    wire_put_bytes(&request.dictionary, 3, "", 0);
    wire_put_bytes(&request.dictionary, 3, "\x08\x01", 2);
    wire_put_bytes(&request.dictionary, 7, "", 0);
    wire_put_bytes(&request.dictionary, 7, stack.data, stack.length);
    add_raw_sample(&request, "\x08\x01\x22\x01\x02", 5);
    finish_request(&request, &bytes);
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(read_bytes(bytes.data, bytes.length, false, &profile, NULL, &error), -E2BIG);
    assert_says(&error, "The stacks exceed the limit for an input of");
}

/* ---- damage ---- */

static void try_reading(const struct buffer *content, size_t length, bool json)
{
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    int r = read_bytes(content->data, length, json, &profile, NULL, &error);
    if (r < 0) {
        assert_int_equal(error.code, r);
        assert_int_not_equal(error.text[0], 0);
    }
}

static void damage_is_survived(void **state)
{
    (void)state;
    static const char *const files[] = {"1.8.pb",    "1.9-unpacked.pb",  "1.10.pb",
                                        "counts.pb", "1.9-ambiguous.pb", "1.10-sorted-snake.json"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        _cleanup_buffer_ struct buffer content = {0};
        bool json = is_json(files[i]);
        load_fixture(files[i], &content);
        for (size_t length = 0; length < content.length; length++)
            try_reading(&content, length, json);
        for (size_t at = 0; at < content.length; at++) {
            for (int bit = 0; bit < 8; bit++) {
                content.data[at] ^= (char)(1 << bit);
                try_reading(&content, content.length, json);
                content.data[at] ^= (char)(1 << bit);
            }
        }
    }
}

static void truncation_is_an_error(void **state)
{
    (void)state;
    /* A cut between the two top-level messages leaves samples without tables. */
    _cleanup_buffer_ struct buffer content = {0};
    load_fixture("1.10.pb", &content);
    for (size_t length = 1; length < content.length; length++) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        profile_init(&profile, PROFILE_ALL);
        int r = read_bytes(content.data, length, false, &profile, NULL, &error);
        if (r >= 0)
            fail_msg("%zu of %zu bytes were read as if whole", length, content.length);
    }
}

static void summary_text(void **state)
{
    (void)state;
    struct otlp_summary summary = {.profiles = 1, .samples = 120, .by_layout = {[OTLP_1_9] = 1}};
    _cleanup_buffer_ struct buffer text = {0};
    otlp_summary_text(&summary, &text);
    assert_buffer(&text, "OTLP 1.9 layout, 1 profile, 120 samples");
}

/* Real profiles of OpenTelemetry's host profiler, where they are at hand. */
static void real_profile(void **state)
{
    (void)state;
    const char *folder = getenv("ASSAY_DATA");
    char path[512];
    snprintf(path, sizeof(path), "%s/otlp/otel-ebpf-profile.pb", folder ? folder : "");
    if (!folder || access(path, R_OK) < 0) {
        print_message("# There is no real profile: ASSAY_DATA names no folder with "
                      "otlp/otel-ebpf-profile.pb.\n");
        skip();
    }
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    const struct format *format;
    profile_init(&profile, PROFILE_ALL);
    assert_int_equal(format_read_file(path, NULL, &profile, &format, &error), 0);
    assert_ptr_equal(format, &format_otlp);
    assert_int_equal(total_of(&profile, "off_cpu/nanoseconds"), 267302249331);
    assert_int_equal(total_of(&profile, "samples/count"), 10);
    assert_int_equal(total_of(&profile, "cpu/nanoseconds"), 500000000);
    assert_int_equal(profile.samples.count, 5321);
    assert_int_equal(profile.node_count, 923);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_give_the_same),
        cmocka_unit_test(whole_profile),
        cmocka_unit_test(adds_to_what_is_there),
        cmocka_unit_test(detail_is_dropped),
        cmocka_unit_test(counts_become_time),
        cmocka_unit_test(refusals),
        cmocka_unit_test(detection),
        cmocka_unit_test(layout_by_majority),
        cmocka_unit_test(many_samples_are_added_up),
        cmocka_unit_test(values_stop_at_the_end),
        cmocka_unit_test(growth_is_bounded),
        cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(truncation_is_an_error),
        cmocka_unit_test(summary_text),
        cmocka_unit_test(real_profile),
    };
    return cmocka_run_group_tests_name("otlp", tests, NULL, NULL);
}
