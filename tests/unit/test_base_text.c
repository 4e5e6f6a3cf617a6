// SPDX-License-Identifier: Apache-2.0
// Text from outside: what is UTF-8, and that no escape lets anything through that could drive a
// terminal, break a JSON document or open a tag.

#include "base/text.h"
#include "unit.h"

typedef void (*escape_function)(struct buffer *out, const char *text, size_t length);

static void check(escape_function escape, const char *text, size_t length, const char *expected)
{
    /* A copy of exactly that length, so that AddressSanitizer sees a read beyond it. */
    _cleanup_free_ char *exact = memory_alloc(length);
    memcpy(exact, text, length);
    _cleanup_buffer_ struct buffer out = {0};
    escape(&out, exact, length);
    buffer_text(&out);
    assert_string_equal(out.data, expected);
    assert_int_equal(out.length, strlen(expected));
}

#define check_text(escape, text, expected) check(escape, text, sizeof(text) - 1, expected)

static void knows_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t sequence; /* of the first character; 0: invalid */
    } cases[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\xc2\x80", 2},         /* U+0080, the first of two bytes */
        {"\xdf\xbf", 2},         /* U+07FF */
        {"\xe0\xa0\x80", 3},     /* U+0800 */
        {"\xed\x9f\xbf", 3},     /* U+D7FF */
        {"\xee\x80\x80", 3},     /* U+E000 */
        {"\xef\xbf\xbf", 3},     /* U+FFFF */
        {"\xf0\x90\x80\x80", 4}, /* U+10000 */
        {"\xf4\x8f\xbf\xbf", 4}, /* U+10FFFF */
        {"\x80", 0},             /* a continuation alone */
        {"\xc0\x80", 0},         /* overlong NUL */
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0}, /* overlong */
        {"\xed\xa0\x80", 0}, /* surrogate */
        {"\xed\xbf\xbf", 0},
        {"\xf0\x8f\xbf\xbf", 0}, /* overlong */
        {"\xf4\x90\x80\x80", 0}, /* beyond U+10FFFF */
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
        {"\xc3", 0}, /* cut off */
        {"\xe2\x82", 0},
        {"\xf0\x9f\x94", 0},
        {"\xe2\x28\xa1", 0}, /* a continuation that is none */
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        size_t length = strlen(cases[i].text);
        assert_int_equal(utf8_sequence(cases[i].text, length), cases[i].sequence);
        assert_int_equal(utf8_valid(cases[i].text, length), cases[i].sequence > 0);
    }
    assert_int_equal(utf8_sequence("", 0), 0);
    assert_true(utf8_valid("", 0));
    assert_true(utf8_valid("gr\xc3\xbc\xc3\x9f", 6));
    assert_false(utf8_valid("gr\xc3\xbc\xc3", 5));
    assert_int_equal(utf8_columns("gr\xc3\xbc\xc3\x9f", 6), 4);
    assert_int_equal(utf8_columns("", 0), 0);
}

static void terminal_gets_no_controls(void **state)
{
    (void)state;
    check_text(text_escape_terminal, "plain \xc3\xbc text", "plain \xc3\xbc text");
    check_text(text_escape_terminal, "\x1b[31mred\x1b]0;title\x07",
               "\\x1b[31mred\\x1b]0;title\\x07");
    check_text(text_escape_terminal, "a\nb\tc\rd\0e", "a\\x0ab\\x09c\\x0dd\\x00e");
    check_text(text_escape_terminal, "\x7f", "\\x7f");
    /* C1 controls: CSI as one code point, as UTF-8 and as a bare byte. */
    check_text(text_escape_terminal,
               "\xc2\x9b"
               "31m",
               "\\xc2\\x9b31m");
    check_text(text_escape_terminal,
               "\x9b"
               "31m",
               "\\x9b31m");
    check_text(text_escape_terminal, "\xc2\xa0|\xc2\x9f|", "\xc2\xa0|\\xc2\\x9f|");
    check_text(text_escape_terminal, "ends \xe2\x82", "ends \\xe2\\x82");
    check_text(text_escape_terminal, "", "");
}

static void every_byte_pair_is_safe_on_a_terminal(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < 65536; pair++) {
        char text[2] = {(char)(pair >> 8), (char)pair};
        _cleanup_buffer_ struct buffer out = {0};
        text_escape_terminal(&out, text, 2);
        assert_true(utf8_valid(out.data, out.length));
        for (size_t i = 0; i < out.length; i++) {
            unsigned char c = (unsigned char)out.data[i];
            assert_true(c >= 0x20 && c != 0x7f);
            assert_false(c == 0xc2 && (unsigned char)out.data[i + 1] < 0xa0);
        }
    }
}

static void json_stays_json(void **state)
{
    (void)state;
    check_text(text_escape_json, "", "\"\"");
    check_text(text_escape_json, "a\"b\\c", "\"a\\\"b\\\\c\"");
    check_text(text_escape_json, "\n\t\r\0\x1f\x7f", "\"\\n\\t\\u000d\\u0000\\u001f\\u007f\"");
    check_text(text_escape_json, "</script><!--", "\"\\u003c/script>\\u003c!--\"");
    check_text(text_escape_json, "\xff\xc3", "\"\\\\xff\\\\xc3\"");
    check_text(text_escape_json, "\xf0\x9f\x94\xa5", "\"\xf0\x9f\x94\xa5\"");
}

static void every_byte_pair_is_safe_in_json(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < 65536; pair++) {
        char text[2] = {(char)(pair >> 8), (char)pair};
        _cleanup_buffer_ struct buffer out = {0};
        text_escape_json(&out, text, 2);
        assert_true(out.length >= 3 && out.data[0] == '"' && out.data[out.length - 1] == '"');
        assert_true(utf8_valid(out.data, out.length));
        for (size_t i = 1; i < out.length - 1; i++) {
            assert_true((unsigned char)out.data[i] >= 0x20);
            assert_int_not_equal(out.data[i], '<');
            if (out.data[i] == '\\') {
                i++;
                assert_non_null(memchr("\"\\nut", out.data[i], 5));
            } else {
                assert_int_not_equal(out.data[i], '"');
            }
        }
    }
}

static void xml_stays_xml(void **state)
{
    (void)state;
    check_text(text_escape_xml, "a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;");
    check_text(text_escape_xml, "std::vector<int>", "std::vector&lt;int&gt;");
    check_text(text_escape_xml, "\0\x0b\x1b\x7f", "\\x00\\x0b\\x1b\\x7f");
    check_text(text_escape_xml, "\xff", "\\xff");
    check_text(text_escape_xml, "\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd",
               "&#xfffd;&#xfffd;\xef\xbf\xbd");
    check_text(text_escape_xml, "", "");
}

static void csv_quotes_when_it_must(void **state)
{
    (void)state;
    check_text(text_escape_csv, "plain", "plain");
    check_text(text_escape_csv, "a,b", "\"a,b\"");
    check_text(text_escape_csv, "say \"x\"", "\"say \"\"x\"\"\"");
    check_text(text_escape_csv, "\x1b[2J", "\\x1b[2J");
    check_text(text_escape_csv, "", "");
    _cleanup_buffer_ struct buffer out = {0};
    text_escape_csv(&out, "two\nlines", 9);
    assert_null(memchr(out.data, '\n', out.length));
}

static void parses_whole_numbers(void **state)
{
    (void)state;
    uint64_t u = 1;
    int64_t i = 1;
#define U64(text) text_to_u64(text, strlen(text), &u)
#define I64(text) text_to_i64(text, strlen(text), &i)
    assert_true(U64("0") && u == 0);
    assert_true(U64("18446744073709551615") && u == UINT64_MAX);
    assert_true(U64("007") && u == 7);
    assert_true(I64("-9223372036854775808") && i == INT64_MIN);
    assert_true(I64("9223372036854775807") && i == INT64_MAX);
    assert_true(I64("-0") && i == 0);
    u = 42;
    i = -42;
    assert_false(U64("18446744073709551616"));
    assert_false(U64("99999999999999999999"));
    assert_false(U64("100000000000000000000000"));
    assert_false(U64("") || U64("-1") || U64("+1") || U64(" 1") || U64("1 ") || U64("1x"));
    assert_false(I64("9223372036854775808"));
    assert_false(I64("-9223372036854775809"));
    assert_false(I64("") || I64("-") || I64("--1") || I64("1.5"));
    /* Outputs are untouched on failure. */
    assert_int_equal(u, 42);
    assert_int_equal(i, -42);
}

static void parses_decimal_numbers(void **state)
{
    (void)state;
    double d = 1;
    assert_true(text_to_double("2.5", &d) && d == 2.5);
    assert_true(text_to_double("-1e3", &d) && d == -1000);
    d = 42;
    assert_false(text_to_double("", &d));
    assert_false(text_to_double("inf", &d));
    assert_false(text_to_double("nan", &d));
    assert_false(text_to_double("1e999", &d));
    assert_false(text_to_double("1x", &d));
    assert_false(text_to_double(" 1", &d));
    assert_false(text_to_double("1 ", &d));
    assert_true(d == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_utf8),
        cmocka_unit_test(terminal_gets_no_controls),
        cmocka_unit_test(every_byte_pair_is_safe_on_a_terminal),
        cmocka_unit_test(json_stays_json),
        cmocka_unit_test(every_byte_pair_is_safe_in_json),
        cmocka_unit_test(xml_stays_xml),
        cmocka_unit_test(csv_quotes_when_it_must),
        cmocka_unit_test(parses_whole_numbers),
        cmocka_unit_test(parses_decimal_numbers),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
