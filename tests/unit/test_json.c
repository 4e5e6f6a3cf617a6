// SPDX-License-Identifier: Apache-2.0
// The JSON pull reader: values and their limits, structure, skipping, failing, and tokens that lie
// across the edges of the source's window.

#include "unit.h"

#include "io/json.h"

struct fixture {
    struct source source;
    struct error error;
    struct json json;
    char *copy;
};

/* From a copy of exact size, so that a sanitizer sees a read past its end. */
static void start(struct fixture *fixture, const char *text, size_t length)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->copy = memory_alloc(length + !length);
    memcpy(fixture->copy, text, length);
    assert_int_equal(source_open_memory(&fixture->source, "test", fixture->copy, length, 0, NULL),
                     0);
    json_init(&fixture->json, &fixture->source, &fixture->error);
}

static void stop(struct fixture *fixture)
{
    json_release(&fixture->json);
    source_release(&fixture->source);
    free(fixture->copy);
}

static void assert_text(const struct json_string *text, const char *expected, size_t length)
{
    assert_int_equal(text->length, length);
    assert_memory_equal(text->data, expected, length);
}

static void assert_string(const char *document, const char *expected, size_t length)
{
    struct fixture f;
    struct json_string text;
    start(&f, document, strlen(document));
    assert_int_equal(json_string(&f.json, &text), 0);
    assert_text(&text, expected, length);
    assert_int_equal(json_end(&f.json), 0);
    stop(&f);
}

static void strings(void **state)
{
    (void)state;
    assert_string("\"\"", "", 0);
    assert_string(" \"plain, longer than a word\" ", "plain, longer than a word", 25);
    assert_string("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    assert_string("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00.\"",
                  "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80.", 11);
    assert_string("\"a\\u0000b\"", "a\0b", 3);
    /* Lone surrogates, in either order, and one followed by an ordinary escape. */
    assert_string("\"\\ud83d\"", "\xef\xbf\xbd", 3);
    assert_string("\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd", 6);
    assert_string("\"\\ud83d\\u0041\"",
                  "\xef\xbf\xbd"
                  "A",
                  4);
    /* Bytes that are no UTF-8, and raw control characters, come through. */
    assert_string("\"\xff\xfe\t\x01\"", "\xff\xfe\t\x01", 4);
    assert_string("\xef\xbb\xbf\"x\"", "x", 1);
}

static void assert_fails(const char *document, int code, const char *words)
{
    struct fixture f;
    start(&f, document, strlen(document));
    json_skip(&f.json); /* skipping checks less: what fails here is checked below as well */
    stop(&f);

    start(&f, document, strlen(document));
    struct json_string text;
    int r, open = 0;
    do {
        r = json_kind(&f.json);
        if (r == JSON_OBJECT)
            r = json_object(&f.json);
        else if (r == JSON_ARRAY)
            r = json_array(&f.json);
        else if (r == JSON_STRING)
            r = json_string(&f.json, &text);
        else if (r >= 0)
            r = json_skip(&f.json);
        while (r >= 0 && (open = f.json.depth)) {
            if (f.json.closers[open - 1] == '}')
                r = json_next_key(&f.json, &text);
            else
                r = json_next_element(&f.json);
            if (r)
                break;
        }
    } while (r > 0);
    if (r == 0)
        r = json_end(&f.json);
    assert_int_equal(r, code);
    assert_int_equal(f.error.code, code);
    assert_says(&f.error, words);
    assert_says(&f.error, " at offset ");
    /* Failure is sticky. */
    assert_int_equal(json_skip(&f.json), code);
    assert_int_equal(json_next_key(&f.json, &text), code);
    assert_int_equal(json_next_element(&f.json), code);
    assert_int_equal(json_end(&f.json), code);
    stop(&f);
}

static void malformed(void **state)
{
    (void)state;
    assert_fails("", -EBADMSG, "a value, but has the end of the data at offset 0 (line 1).");
    assert_fails("\n\n  x", -EBADMSG, "but has 'x' at offset 4 (line 3).");
    assert_fails("[1,]", -EBADMSG, "a value, but has ']' at offset 3");
    assert_fails("[,1]", -EBADMSG, "a value, but has ','");
    assert_fails("[1 2]", -EBADMSG, "',' or ']', but has a number");
    assert_fails("[1}", -EBADMSG, "',' or ']', but has '}'");
    assert_fails("[1", -EBADMSG, "the end of the data");
    assert_fails("{\"a\" 1}", -EBADMSG, "':' after a key, but has a number");
    assert_fails("{\"a\":}", -EBADMSG, "a value, but has '}'");
    assert_fails("{\"a\":1,}", -EBADMSG, "a key, but has '}'");
    assert_fails("{a:1}", -EBADMSG, "a key, but has 'a'");
    assert_fails("{1:1}", -EBADMSG, "a key, but has a number");
    assert_fails("{\"a\":1 \"b\":2}", -EBADMSG, "',' or '}', but has a string");
    assert_fails("{} {}", -EBADMSG, "trailing data");
    assert_fails("]", -EBADMSG, "has ']'");
    assert_fails("truth", -EBADMSG, "incomplete 'true'");
    assert_fails("nul", -EBADMSG, "incomplete 'null'");
    assert_fails("01", -EBADMSG, "malformed number");
    assert_fails("-", -EBADMSG, "malformed number");
    assert_fails("1.", -EBADMSG, "malformed number");
    assert_fails("[1.e3]", -EBADMSG, "malformed number");
    assert_fails("1e+", -EBADMSG, "malformed number");
    assert_fails("+1", -EBADMSG, "has '+'");
    assert_fails("\"abc", -EBADMSG, "ends inside the string");
    assert_fails("\"abc\\\"", -EBADMSG, "ends inside the string");
    assert_fails("\"a\nb\"", -EBADMSG, "a line break inside the string");
    assert_fails("\"\\x\"", -EBADMSG, "malformed escape");
    assert_fails("\"\\u12g4\"", -EBADMSG, "malformed escape");
    assert_fails("\"\\u12\"", -EBADMSG, "malformed escape");
    assert_fails("\x80", -EBADMSG, "an unexpected character");
}

static void wrong_kinds(void **state)
{
    (void)state;
    struct fixture f;
    int64_t number = 7;
    struct json_string text;
    start(&f, "[]", 2);
    assert_int_equal(json_object(&f.json), -EBADMSG);
    assert_string_equal(f.error.text,
                        "The JSON should have an object, but has an array at offset 0 "
                        "(line 1).");
    stop(&f);
    start(&f, "\"5\"", 3);
    assert_int_equal(json_i64(&f.json, &number), -EBADMSG);
    assert_int_equal(number, 7);
    assert_says(&f.error, "a number, but has a string");
    stop(&f);
    start(&f, "5", 1);
    assert_int_equal(json_string(&f.json, &text), -EBADMSG);
    stop(&f);
    start(&f, "5", 1);
    assert_false(json_null(&f.json));
    assert_int_equal(json_i64(&f.json, &number), 0);
    assert_int_equal(number, 5);
    /* Asking for more than there is is refused, not undefined. */
    assert_int_equal(json_i64(&f.json, &number), -EBADMSG);
    stop(&f);
    start(&f, "{}", 2);
    assert_int_equal(json_object(&f.json), 0);
    assert_int_equal(json_next_element(&f.json), -EBADMSG);
    stop(&f);
    start(&f, "5", 1);
    assert_int_equal(json_leave(&f.json), -EBADMSG);
    stop(&f);
}

static void integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_i64, is_u64;
        int64_t i;
        uint64_t u;
    } cases[] = {
        {"0", true, true, 0, 0},
        {"-0", true, true, 0, 0},
        {"12345678", true, true, 12345678, 12345678},
        {"123456789", true, true, 123456789, 123456789},
        {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
        {"9223372036854775808", false, true, 0, 1ull << 63},
        {"-9223372036854775808", true, false, INT64_MIN, 0},
        {"-9223372036854775809", false, false, 0, 0},
        {"18446744073709551615", false, true, 0, UINT64_MAX},
        {"18446744073709551616", false, false, 0, 0},
        {"184467440737095516150", false, false, 0, 0},
        {"-1", true, false, -1, 0},
        {"1.0", true, true, 1, 1},
        {"1.500e3", true, true, 1500, 1500},
        {"1200e-2", true, true, 12, 12},
        {"0e999999999999", true, true, 0, 0},
        {"1e19", false, true, 0, 10000000000000000000ull},
        {"184467440737095516150e-1", false, true, 0, UINT64_MAX},
        {"184467440737095516160e-1", false, false, 0, 0},
        {"18446744073709551615.000000000000000000000", false, true, 0, UINT64_MAX},
        {"1e20", false, false, 0, 0},
        {"1e99999999999999999999", false, false, 0, 0},
        {"1.5", false, false, 0, 0},
        {"1e-1", false, false, 0, 0},
        {"0.00000000000000000000000000000000001", false, false, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct fixture f;
        int64_t as_i64 = 77;
        uint64_t as_u64 = 77;
        start(&f, cases[i].text, strlen(cases[i].text));
        assert_int_equal(json_i64(&f.json, &as_i64), cases[i].is_i64 ? 0 : -EBADMSG);
        assert_int_equal(as_i64, cases[i].is_i64 ? cases[i].i : 77);
        stop(&f);
        start(&f, cases[i].text, strlen(cases[i].text));
        assert_int_equal(json_u64(&f.json, &as_u64), cases[i].is_u64 ? 0 : -EBADMSG);
        assert_int_equal(as_u64, cases[i].is_u64 ? cases[i].u : 77);
        stop(&f);
        /* Among others, where the short way is taken. */
        char list[256];
        int length = snprintf(list, sizeof(list), "[7,%s,7,7,7,7,7,7]", cases[i].text);
        start(&f, list, (size_t)length);
        json_array(&f.json);
        json_next_element(&f.json);
        json_u64(&f.json, &as_u64);
        assert_int_equal(as_u64, 7);
        assert_int_equal(json_next_element(&f.json), 1);
        assert_int_equal(json_u64(&f.json, &as_u64), cases[i].is_u64 ? 0 : -EBADMSG);
        assert_int_equal(as_u64, cases[i].is_u64 ? cases[i].u : 7);
        stop(&f);
    }
}

static void integers_as_text(void **state)
{
    (void)state;
    struct fixture f;
    const char *text = "[\"18446744073709551615\", 5, \"-9223372036854775808\", -6, \"x\"]";
    uint64_t u;
    int64_t i;
    start(&f, text, strlen(text));
    json_array(&f.json);
    json_next_element(&f.json);
    assert_int_equal(json_u64_or_text(&f.json, &u), 0);
    assert_true(u == UINT64_MAX);
    json_next_element(&f.json);
    assert_int_equal(json_u64_or_text(&f.json, &u), 0);
    assert_int_equal(u, 5);
    json_next_element(&f.json);
    assert_int_equal(json_i64_or_text(&f.json, &i), 0);
    assert_true(i == INT64_MIN);
    json_next_element(&f.json);
    assert_int_equal(json_i64_or_text(&f.json, &i), 0);
    assert_int_equal(i, -6);
    json_next_element(&f.json);
    assert_int_equal(json_i64_or_text(&f.json, &i), -EBADMSG);
    assert_says(&f.error, "is not a 64-bit integer");
    stop(&f);
}

static void doubles(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "0",
        "-0.0",
        "0.1",
        "1.5",
        "-2.25e-3",
        "3.141592653589793",
        "1e22",
        "1e23",
        "123456789012345678",
        "0.30000000000000004",
        "2.2250738585072014e-308",
        "5e-324",
        "1.7976931348623157e308",
        "1e400",
        "-1e400",
        "1e-400",
        "9007199254740993",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct fixture f;
        double value = 42;
        start(&f, cases[i], strlen(cases[i]));
        assert_int_equal(json_double(&f.json, &value), 0);
        assert_true(value == strtod(cases[i], NULL));
        stop(&f);
    }
}

static void scaled(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int power;
        int64_t expected;
    } cases[] = {
        {"1.5", 0, 2},
        {"-1.5", 0, -2},
        {"1.4999999999999999", 0, 1},
        {"0.5", 0, 1},
        {"0.01", 9, 10000000},
        {"1234567.891", 3, 1234567891},
        {"1e3", 3, 1000000},
        {"0.0000000001", 9, 0},
        {"0.0000000005", 9, 1},
        {"1e30", 0, INT64_MAX},
        {"-1e30", 0, INT64_MIN},
        {"9223372036854775807", 0, INT64_MAX},
        {"9223372036854775808", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775807.4", 0, INT64_MAX},
        {"0", 100, 0},
        {"0e1000", 9, 0},
        {"1e-1000000", 9, 0},
        {"18446744073709551615e-19", 0, 2},
        {"18446744073709551615e-20", 0, 0},
        /* Twenty-two digits: what 64 bits don't hold is dropped. */
        {"1.999999999999999999999", 0, 2},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct fixture f;
        struct json_number number;
        start(&f, cases[i].text, strlen(cases[i].text));
        assert_int_equal(json_number(&f.json, &number), 0);
        assert_int_equal(json_number_scaled(&number, cases[i].power), cases[i].expected);
        stop(&f);
    }
}

static void long_numbers(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t value;
    char text[JSON_NUMBER_LIMIT + 2];
    memset(text, '0', sizeof(text));
    text[0] = '1';
    text[1] = '.';
    start(&f, text, JSON_NUMBER_LIMIT);
    assert_int_equal(json_u64(&f.json, &value), 0);
    assert_int_equal(value, 1);
    stop(&f);
    start(&f, text, JSON_NUMBER_LIMIT + 1);
    assert_int_equal(json_u64(&f.json, &value), -E2BIG);
    stop(&f);
}

static void structure(void **state)
{
    (void)state;
    const char *document =
        " { \"a\" : [ 1 , [ ] , { } , 2 ] , \"b\\u0021\" : null , \"c\" : { \"d\" "
        ": \"x\" , \"e\" : [ true , false ] } , \"f\" : 1.5 } \n";
    struct fixture f;
    struct json_string text;
    uint64_t number;
    bool yes = false;
    start(&f, document, strlen(document));
    struct json *json = &f.json;
    assert_int_equal(json_kind(json), JSON_OBJECT);
    assert_int_equal(json_object(json), 0);
    assert_int_equal(json_next_key(json, &text), 1);
    assert_true(json_is(&text, "a") && !json_is(&text, "ab") && !json_is(&text, ""));
    assert_int_equal(json_array(json), 0);
    assert_int_equal(json_next_element(json), 1);
    assert_int_equal(json_u64(json, &number), 0);
    assert_int_equal(json_next_element(json), 1);
    assert_int_equal(json_array(json), 0);
    assert_int_equal(json_next_element(json), 0);
    assert_int_equal(json_next_element(json), 1); /* the object, which nobody reads */
    assert_int_equal(json_kind(json), JSON_OBJECT);
    assert_int_equal(json_next_element(json), 1);
    assert_int_equal(json_u64(json, &number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(json_next_element(json), 0);
    assert_int_equal(json_next_key(json, &text), 1);
    assert_true(json_is(&text, "b!"));
    assert_true(json_null(json));
    assert_int_equal(json_next_key(json, &text), 1);
    assert_int_equal(json_object(json), 0);
    assert_int_equal(json_next_key(json, &text), 1);
    assert_int_equal(json_next_key(json, &text), 1);
    assert_true(json_is(&text, "e"));
    assert_int_equal(json_array(json), 0);
    assert_int_equal(json_next_element(json), 1);
    assert_int_equal(json_bool(json, &yes), 0);
    assert_true(yes);
    assert_int_equal(json_leave(json), 0);
    assert_int_equal(json_leave(json), 0);
    assert_int_equal(json_next_key(json, &text), 1);
    assert_true(json_is(&text, "f"));
    assert_int_equal(json_next_key(json, &text), 0);
    assert_int_equal(json_end(json), 0);
    stop(&f);
}

static void nesting(void **state)
{
    (void)state;
    char text[2 * JSON_DEPTH_MAX + 4];
    for (int extra = 0; extra < 2; extra++) {
        size_t depth = JSON_DEPTH_MAX + (size_t)extra;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct fixture f;
        start(&f, text, 2 * depth);
        assert_int_equal(json_skip(&f.json), extra ? -E2BIG : 0);
        if (extra)
            assert_says(&f.error, "nested more than 1024 levels");
        else
            assert_int_equal(json_end(&f.json), 0);
        stop(&f);
        start(&f, text, 2 * depth);
        int r = 0, entered = 0;
        while (r >= 0 && (r = json_array(&f.json)) == 0 && (r = json_next_element(&f.json)) > 0)
            entered++;
        assert_int_equal(r, extra ? -E2BIG : 0);
        assert_int_equal(entered, JSON_DEPTH_MAX - !extra);
        stop(&f);
    }
}

static void skipping(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        uint64_t line;
    } cases[] = {
        {"{\"a\":[1,{\"b\":\"]}\\\"\"}],\n\"c\":null}", 0, 2},
        {"\"\\\\\"", 0, 1},
        {"-1.5e3", 0, 1},
        {"true", 0, 1},
        {"[}", -EBADMSG, 1},
        {"{\"a\":[", -EBADMSG, 1},
        {"[\"", -EBADMSG, 1},
        {"[\"\\", -EBADMSG, 1},
        {"[\"\\\"", -EBADMSG, 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct fixture f;
        start(&f, cases[i].text, strlen(cases[i].text));
        assert_int_equal(json_skip(&f.json), cases[i].code);
        assert_int_equal(f.json.line, cases[i].line);
        if (!cases[i].code)
            assert_int_equal(json_end(&f.json), 0);
        stop(&f);
    }
}

/* Reads all of a document in which every kind of token occurs, and gives a checksum of it. */
static uint64_t walk(struct json *json)
{
    uint64_t sum = 0, number;
    struct json_string text;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &text)) > 0) {
        for (size_t i = 0; i < text.length; i++)
            sum = sum * 31 + (uint8_t)text.data[i];
        if (json_is(&text, "numbers")) {
            r = json_array(json);
            while (r >= 0 && (r = json_next_element(json)) > 0 &&
                   (r = json_u64(json, &number)) >= 0)
                sum = sum * 31 + number;
        } else if (json_kind(json) == JSON_STRING) {
            r = json_string(json, &text);
            for (size_t i = 0; r >= 0 && i < text.length; i++)
                sum = sum * 31 + (uint8_t)text.data[i];
        } else {
            r = json_skip(json);
        }
    }
    assert_int_equal(r, 0);
    assert_int_equal(json_end(json), 0);
    return sum;
}

static void window_edges(void **state)
{
    (void)state;
    static const char document[] =
        "{\"numbers\" : [123456789,0,42,18446744073709551615, "
        "7],\"es\\u0063aped\":\"\\ud83d\\ude00\\n\","
        "\"skipped\":{\"deep\":[\"\\\\\\\"\",null,true,-1.5e3]},\"plain\":\"some words\"}";
    enum { PADDING = 300 << 10 };
    _cleanup_free_ char *text = memory_alloc(PADDING + sizeof(document));
    char path[] = "/tmp/test_json.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);

    struct fixture f;
    start(&f, document, strlen(document));
    uint64_t expected = walk(&f.json);
    stop(&f);
    /* The window holds a multiple of 64 KiB: let that edge pass through every byte. */
    for (size_t shift = 0; shift <= sizeof(document); shift++) {
        size_t padding = (256 << 10) - shift, length = padding + strlen(document);
        memset(text, ' ', padding);
        memcpy(text + padding, document, strlen(document));
        assert_int_equal(pwrite(fd, text, length, 0), length);
        assert_int_equal(ftruncate(fd, (off_t)length), 0);
        struct source source;
        struct error error = {0};
        struct json json;
        assert_int_equal(source_open(&source, path, 0, &error), 0);
        json_init(&json, &source, &error);
        assert_true(walk(&json) == expected);
        json_release(&json);
        source_release(&source);
    }
    close(fd);
    unlink(path);
}

static void long_strings(void **state)
{
    (void)state;
    size_t length = JSON_STRING_LIMIT + 2;
    _cleanup_free_ char *text = memory_alloc(length + 2);
    memset(text, 'x', length + 2);
    text[0] = text[length - 1] = '"';
    struct fixture f;
    struct json_string string;
    start(&f, text, length - 1); /* unterminated */
    assert_int_equal(json_string(&f.json, &string), -E2BIG);
    stop(&f);
    text[length - 2] = '"';
    start(&f, text, length - 1);
    assert_int_equal(json_string(&f.json, &string), 0);
    assert_int_equal(string.length, length - 3);
    stop(&f);
    text[length - 2] = 'x';
    text[length] = '"';
    text[length - 1] = 'x';
    start(&f, text, length + 1);
    assert_int_equal(json_string(&f.json, &string), -E2BIG);
    assert_says(&f.error, "longer than 16 MiB");
    stop(&f);
    /* Skipped, it may be as long as it likes. */
    start(&f, text, length + 1);
    assert_int_equal(json_skip(&f.json), 0);
    assert_int_equal(json_end(&f.json), 0);
    stop(&f);
}

static void sniffing(void **state)
{
    (void)state;
    const uint8_t *text = (const uint8_t *)"\xef\xbb\xbf { \"nodes\" :\"keys\", \"a\":{\"cut\"";
    size_t length = strlen((const char *)text);
    assert_true(json_sniff_object(text, length));
    assert_true(json_sniff_key(text, length, "nodes"));
    assert_true(json_sniff_key(text, length, "a"));
    assert_true(json_sniff_key(text, length, "cut"));
    assert_false(json_sniff_key(text, length, "keys"));
    assert_false(json_sniff_key(text, length, "node"));
    assert_false(json_sniff_key(text, length, "nodes2"));
    assert_false(json_sniff_key(text, length - 1, "cut"));
    assert_false(json_sniff_object((const uint8_t *)"[", 1));
    assert_false(json_sniff_object((const uint8_t *)"{main};x 1", 10));
    assert_false(json_sniff_object((const uint8_t *)"", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),          cmocka_unit_test(malformed),
        cmocka_unit_test(wrong_kinds),      cmocka_unit_test(integers),
        cmocka_unit_test(integers_as_text), cmocka_unit_test(doubles),
        cmocka_unit_test(scaled),           cmocka_unit_test(long_numbers),
        cmocka_unit_test(structure),        cmocka_unit_test(nesting),
        cmocka_unit_test(skipping),         cmocka_unit_test(window_edges),
        cmocka_unit_test(long_strings),     cmocka_unit_test(sniffing),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
