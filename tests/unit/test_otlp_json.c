// SPDX-License-Identifier: Apache-2.0
// Reading OTLP profiles from JSON: what protobuf's JSON mapping allows, and what OTLP changes in
// it. That whole requests give the same as protobuf is in test_otlp.c.

#include "test_otlp.h"

/* A request around a list of samples and whatever a dictionary has besides its strings. */
static void wrap(struct buffer *out, const char *samples, const char *attributes, const char *links)
{
    buffer_printf(out,
                  "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"
                  "\"samples\":[%s],\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2}}]}]}],"
                  "\"dictionary\":{\"stringTable\":[\"\",\"events\",\"count\",\"key\"],"
                  "\"attributeTable\":[{},{\"keyStrindex\":3,\"value\":%s}],"
                  "\"linkTable\":[{},%s],\"stackTable\":[{}]}}",
                  samples, attributes, links);
}

static int read_text(const struct buffer *json, struct profile *profile, struct error *error)
{
    profile_init(profile, PROFILE_ALL);
    return read_bytes(json->data, json->length, true, profile, NULL, error);
}

static void must_read(const struct buffer *json, struct profile *profile)
{
    struct error error = {0};
    if (read_text(json, profile, &error) < 0)
        fail_msg("%s", error.text);
}

static void numbers_as_text(void **state)
{
    (void)state;
    static const char *const samples[] = {
        "{\"values\":[\"7\"]}",
        "{\"values\":[7],\"unknown\":{\"a\":[1,{}]},\"linkIndex\":null}",
        "{\"stack_index\":0,\"values\":[\"3\",4.0]}",
        "{\"timestampsUnixNano\":[\"1\",2,\"3\",4,5,6,7]}",
        "{\"timestamps_unix_nano\":[\"1700000000000000001\",5],\"values\":[\"-1\",8]}",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
        _cleanup_profile_ struct profile profile;
        _cleanup_buffer_ struct buffer json = {0};
        wrap(&json, samples[i], "{}", "{}");
        must_read(&json, &profile);
        assert_int_equal(total_of(&profile, "events/count"), 7);
    }
}

static void ids(void **state)
{
    (void)state;
    static const char *const links[] = {
        "{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"a1a2a3a4A5A6A7A8\"}",
        "{\"trace_id\":\"AQIDBAUGBwgJCgsMDQ4PEA==\",\"span_id\":\"oaKjpKWmp6g=\"}",
        "{\"traceId\":\"AQIDBAUGBwgJCgsMDQ4PEA\",\"spanId\":\"oaKjpKWmp6g\"}",
    };
    static const struct profile_link expected = {
        .trace_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        .span_id = {0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8}};
    for (size_t i = 0; i < ARRAY_LENGTH(links); i++) {
        _cleanup_profile_ struct profile profile;
        _cleanup_buffer_ struct buffer json = {0};
        wrap(&json, "{\"values\":[1],\"linkIndex\":1}", "{}", links[i]);
        must_read(&json, &profile);
        assert_int_equal(profile.link_count, 2);
        assert_memory_equal(&profile.links[1], &expected, sizeof(expected));
    }
}

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *text; /* NULL: the label is the number; "": there is none */
        int64_t number;
    } cases[] = {
        {"{\"stringValue\":\"caf\\u00e9\"}", "caf\xc3\xa9", 0},
        {"{\"string_value\":\"\"}", "", 0},
        {"{}", "", 0},
        {"null", "", 0},
        {"{\"intValue\":\"-9223372036854775808\"}", NULL, INT64_MIN},
        {"{\"intValue\":0}", NULL, 0},
        {"{\"boolValue\":false}", "false", 0},
        {"{\"doubleValue\":2.5}", "2.5", 0},
        {"{\"doubleValue\":\"-Infinity\"}", "-inf", 0},
        {"{\"bytesValue\":\"_-8=\"}", "ffef", 0},
        {"{\"stringValueStrindex\":3}", "key", 0},
        {"{\"arrayValue\":{}}", "[]", 0},
        {"{\"arrayValue\":{\"values\":[{\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":"
         "{\"intValue\":1}},{\"key\":\"b\"}]}},{\"stringValue\":\"\\\"\"}]}}",
         "[{\"a\":1,\"b\":null},\"\\\"\"]", 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_profile_ struct profile profile;
        _cleanup_buffer_ struct buffer json = {0};
        wrap(&json, "{\"values\":[1],\"attributeIndices\":[1]}", cases[i].json, "{}");
        must_read(&json, &profile);
        size_t count;
        const struct profile_label *labels =
            profile_labels(&profile, profile.samples.labels[0], &count);
        if (cases[i].text && !*cases[i].text) {
            assert_int_equal(count, 0);
            continue;
        }
        assert_int_equal(count, 1);
        assert_string_equal(profile_text(&profile, labels[0].key), "key");
        assert_string_equal(profile_text(&profile, labels[0].text),
                            cases[i].text ? cases[i].text : "");
        assert_int_equal(labels[0].number, cases[i].number);
    }
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *samples, *attribute, *link, *words;
    } cases[] = {
        {"{\"values\":[\"x\"]}", "{}", "{}", "(line 1)"},
        {"{\"values\":{}}", "{}", "{}", "(line 1)"},
        {"{\"values\":[1],\"linkIndex\":2}", "{}", "{}",
         "entry 2 of the link table, which has 2 entries"},
        {"{\"values\":[1],\"stackIndex\":-1}", "{}", "{}", "has the invalid index -1"},
        {"{\"values\":[1],\"attributeIndices\":[5]}", "{}", "{}",
         "entry 5 of the attribute table, which has 2 entries"},
        {"{\"locations_start_index\":1}", "{}", "{}", "1.7 or older"},
        {"", "{}", "{\"traceId\":\"0102030405060708090a0b0c0d0e0fXX\"}", "isn't hexadecimal"},
        {"", "{\"bytesValue\":\"***\"}", "{}", "base64"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_profile_ struct profile profile;
        _cleanup_buffer_ struct buffer json = {0};
        struct error error = {0};
        wrap(&json, cases[i].samples, cases[i].attribute, cases[i].link);
        assert_int_equal(read_text(&json, &profile, &error), -EBADMSG);
        assert_says(&error, cases[i].words);
    }
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer value = {0}, json = {0};
    for (int i = 0; i < 60; i++)
        buffer_add_text(&value, "{\"arrayValue\":{\"values\":[");
    for (int i = 0; i < 60; i++)
        buffer_add_text(&value, "]}}");
    wrap(&json, "{\"values\":[1],\"attributeIndices\":[1]}", buffer_text(&value), "{}");
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    assert_int_equal(read_text(&json, &profile, &error), -EBADMSG);
    assert_says(&error, "nested too deeply");
}

static void truncated(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer content = {0};
    load_fixture("1.8.json", &content);
    while (content.length > 1 && content.data[content.length - 1] != '}')
        content.length--;
    for (size_t length = content.length - 1; length; length--) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        struct buffer cut = {.data = content.data, .length = length};
        if (read_text(&cut, &profile, &error) >= 0)
            fail_msg("%zu of %zu bytes were read as if whole", length, content.length);
        assert_int_not_equal(error.text[0], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_as_text),
        cmocka_unit_test(ids),
        cmocka_unit_test(values),
        cmocka_unit_test(refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(truncated),
    };
    return cmocka_run_group_tests_name("otlp_json", tests, NULL, NULL);
}
