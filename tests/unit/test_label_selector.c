// SPDX-License-Identifier: Apache-2.0
// Label sets and selectors: order, removal, PromQL's syntax and semantics, and where errors are.

#include "label/labels.h"
#include "label/quote.h"
#include "label/selector.h"
#include "unit.h"

static void keeps_sets_sorted(void **state)
{
    (void)state;
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "b", "2");
    labels_set(&labels, "ab", "3");
    labels_set(&labels, "a", "1");
    labels_set(&labels, "c", "");
    labels_set(&labels, "", "x");
    _cleanup_buffer_ struct buffer out = {0};
    labels_write(&out, &labels);
    assert_buffer(&out, "{a=\"1\",ab=\"3\",b=\"2\"}");
    assert_string_equal(labels_get(&labels, "ab"), "3");
    assert_null(labels_get(&labels, "abc"));
    assert_null(labels_get(&labels, ""));

    const char *before = labels_get(&labels, "b");
    labels_set(&labels, "b", before); /* a text of its own */
    labels_set(&labels, "b", "4");
    assert_string_equal(before, "2");
    assert_string_equal(labels_get(&labels, "b"), "4");
    labels_remove(&labels, "ab");
    labels_remove(&labels, "never");
    assert_int_equal(labels.count, 2);
    labels_clear(&labels);
    assert_int_equal(labels.count, 0);
    labels_set(&labels, "z", "1");
    assert_string_equal(labels_get(&labels, "z"), "1");
}

static void takes_lengths(void **state)
{
    (void)state;
    _cleanup_labels_ struct labels labels = {0};
    labels_set_n(&labels, "nameX", 4, "valueX", 5);
    labels_set_n(&labels, "na\0me", 5, "va\0lue", 6);
    _cleanup_buffer_ struct buffer out = {0};
    labels_write(&out, &labels);
    assert_buffer(&out, "{na=\"va\",name=\"value\"}");
}

static void compares_sets(void **state)
{
    (void)state;
    _cleanup_labels_ struct labels a = {0}, b = {0};
    assert_true(labels_equal(&a, &b));
    assert_int_equal(labels_hash(&a), labels_hash(&b));
    labels_set(&a, "x", "1");
    labels_set(&a, "y", "2");
    labels_set(&b, "y", "2");
    assert_int_equal(labels_compare(&a, &b), -1);
    labels_set(&b, "x", "1");
    assert_true(labels_equal(&a, &b));
    assert_int_equal(labels_hash(&a), labels_hash(&b));
    labels_set(&b, "z", "");
    assert_true(labels_equal(&a, &b));
    labels_set(&b, "z", "3");
    assert_int_equal(labels_compare(&a, &b), -1);
    assert_int_equal(labels_compare(&b, &a), 1);
    /* What moves from one text to the next is another set. */
    labels_clear(&a);
    labels_clear(&b);
    labels_set(&a, "ab", "c");
    labels_set(&b, "a", "bc");
    assert_true(labels_hash(&a) != labels_hash(&b));
    labels_copy(&b, &a);
    assert_true(labels_equal(&a, &b));
    labels_set(&a, "ab", "d");
    assert_string_equal(labels_get(&b, "ab"), "c");
}

/* Stored data is found again by it, also by other versions: it may not change. */
static void hashes_as_ever(void **state)
{
    (void)state;
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "service_name", "checkout");
    labels_set(&labels, "region", "eu");
    assert_int_equal(labels_hash(&labels), 0xc0f029c8c0566871);
}

static void names_names(void **state)
{
    (void)state;
    assert_true(label_name_plain("a_1", 3));
    assert_false(label_name_plain("1a", 2));
    assert_false(label_name_plain("a.b", 3));
    assert_false(label_name_plain("", 0));
    assert_true(label_name_valid("ü b", 4));
    assert_false(label_name_valid("\xff", 1));
    assert_false(label_name_valid("a\0b", 3));
    static const char *const cases[][2] = {
        {"service.name", "service_name"},
        {"9lives", "_9lives"},
        {"", "_"},
        {"fine_1", "fine_1"},
        {"größe", "gr__e"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_buffer_ struct buffer out = {0};
        label_name_sanitize(&out, cases[i][0]);
        assert_buffer(&out, cases[i][1]);
    }
}

static void reads_selectors(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "{}"},
        {" \n", "{}"},
        {"{}", "{}"},
        {" { } ", "{}"},
        {"{a=\"b\"}", "{a=\"b\"}"},
        {"{a=\"b\",}", "{a=\"b\"}"},
        {"{a = 'b' , c != `d` , }", "{a=\"b\",c!=\"d\"}"},
        {"{a=~\"x|y\",b!~\"z.*\"}", "{a=~\"x|y\",b!~\"z.*\"}"},
        {"{\"service.name\"=\"x\"}", "{\"service.name\"=\"x\"}"},
        {"{'größe'=\"x\"}", "{\"größe\"=\"x\"}"},
        {"{\"up\"}", "{__name__=\"up\"}"},
        {"{\"up\",a=\"b\"}", "{__name__=\"up\",a=\"b\"}"},
        {"{by=\"x\",on=\"y\"}", "{by=\"x\",on=\"y\"}"}, /* words of PromQL are names like any */
        {"{a=\"b\",a=\"c\"}", "{a=\"b\",a=\"c\"}"},
        {"{a=\"\"}", "{a=\"\"}"},
        {"{ # why\n a=\"b\" # because\n}# end", "{a=\"b\"}"},
        {"{a=\"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\"}",
         "{a=\"\\x07\\x08\\x0c\\n\\x0d\\x09\\x0b\\\\\\\"\"}"},
        {"{a='\\''}", "{a=\"'\"}"},
        {"{a=\"\\x41\\101\\u00e9\\U0001F525\"}", "{a=\"AAé🔥\"}"},
        {"{a=\"\\xc3\\xa9\"}", "{a=\"é\"}"},
        {"{a=~`\\d+\n\"'`}", "{a=~\"\\\\d+\\n\\\"'\"}"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_selector_ struct selector selector = {0};
        _cleanup_selector_ struct selector again = {0};
        _cleanup_buffer_ struct buffer out = {0};
        _cleanup_buffer_ struct buffer twice = {0};
        struct error error = {0};
        if (selector_parse(cases[i][0], strlen(cases[i][0]), &selector, &error) < 0)
            fail_msg("%s: %s", cases[i][0], error.text);
        selector_write(&out, &selector);
        assert_string_equal(buffer_text(&out), cases[i][1]);
        /* What is written is read as the same. */
        assert_int_equal(selector_parse(out.data, out.length, &again, &error), 0);
        selector_write(&twice, &again);
        assert_string_equal(buffer_text(&twice), cases[i][1]);
    }
}

static void refuses_what_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t at; /* the character, from 1 */
        const char *says;
    } cases[] = {
        {"a", 1, "expected {"},
        {"{", 2, "the text ends"},
        {"{,}", 2, "name of a label"},
        {"{a=\"b\",,}", 8, "name of a label"},
        {"{a}", 3, "one of = != =~ !~"},
        {"{a!\"b\"}", 3, "one of = != =~ !~"},
        {"{a==\"b\"}", 4, "a value in quotes"},
        {"{a=b}", 4, "a value in quotes"},
        {"{a=\"b\" c=\"d\"}", 8, "a comma or }"},
        {"{a=\"b\"", 7, "the text ends"},
        {"{a=\"b\"}}", 8, "after the closing }"},
        {"{a=\"b\"} x", 9, "after the closing }"},
        {"{.a=\"c\"}", 2, "name of a label"},
        {"{a.b}", 5, "one of = != =~ !~"},
        {"{a:b=\"c\"}", 3, "one of = != =~ !~"},
        {"{1a=\"c\"}", 2, "name of a label"},
        {"{a=\"b}", 7, "unterminated string"},
        {"{a=`b}", 7, "unterminated string"},
        {"{a=\"b\n\"}", 6, "line break"},
        {"{a=\"\\d\"}", 5, "escape"},
        {"{a=\"\\'\"}", 5, "escape"},
        {"{a=\"\\x4\"}", 5, "digits"},
        {"{a=\"\\u12\"}", 5, "digits"},
        {"{a=\"\\777\"}", 5, "doesn't exist"},
        {"{a=\"\\ud800\"}", 5, "doesn't exist"},
        {"{a=\"\\U00110000\"}", 5, "doesn't exist"},
        {"{a=\"\\x00\"}", 5, "NUL"},
        {"{a=\"\\xff\"}", 4, "not UTF-8"},
        {"{a=\"\xff\"}", 4, "not UTF-8"},
        {"{\"\"=\"b\"}", 2, "empty"},
        {"{a=~\"(\"}", 5, "closing parenthesis"},
        /* Anchors are not put around the text, so this can't get out of them. */
        {"{a=~\"a)|(b\"}", 5, "parenthesis"},
        {"{a=~\"\\\\C\"}", 5, "\\C"},
        {"{[", 2, "got ["},
        {"{\x01", 2, "got \\x01"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct selector selector = {0};
        struct error error = {0};
        char where[64];
        snprintf(where, sizeof(where), "at character %zu:", cases[i].at);
        if (selector_parse(cases[i].text, strlen(cases[i].text), &selector, &error) != -EINVAL)
            fail_msg("%s was taken", cases[i].text);
        assert_null(selector.matchers);
        assert_says(&error, where);
        assert_says(&error, cases[i].says);
    }
}

static void refuses_too_much(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = {0};
    struct selector selector = {0};
    struct error error = {0};
    buffer_add_char(&text, '{');
    for (int i = 0; i <= SELECTOR_MATCHERS_MAX; i++)
        buffer_add_text(&text, "a=\"b\",");
    buffer_add_char(&text, '}');
    assert_int_equal(selector_parse(text.data, text.length, &selector, &error), -E2BIG);
    assert_says(&error, "128 matchers");
    text.length = 0;
    for (int i = 0; i <= SELECTOR_BYTES_MAX; i++)
        buffer_add_char(&text, ' ');
    assert_int_equal(selector_parse(text.data, text.length, &selector, &error), -E2BIG);
}

/* At every length, and with the end of memory right behind. */
static void reads_cut_text(void **state)
{
    (void)state;
    static const char text[] = "{a=\"b\\u00e9\", \"c.d\"!~`x+`, e=~'\\x41' # f\n}";
    for (size_t length = 0; length < sizeof(text) - 1; length++) {
        _cleanup_free_ char *exact = memory_alloc(length);
        memcpy(exact, text, length);
        struct selector selector = {0};
        struct error error = {0};
        int result = selector_parse(exact, length, &selector, &error);
        assert_int_equal(result, length ? -EINVAL : 0);
        selector_release(&selector);
    }
}

static bool selects(const char *text, const struct labels *labels)
{
    _cleanup_selector_ struct selector selector = {0};
    struct error error = {0};
    if (selector_parse(text, strlen(text), &selector, &error) < 0)
        fail_msg("%s: %s", text, error.text);
    return selector_matches(&selector, labels);
}

static void selects_as_prometheus(void **state)
{
    (void)state;
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "job", "api-server");
    labels_set(&labels, "text", "two\nlines");
    static const struct {
        const char *text;
        bool matches;
    } cases[] = {
        {"{}", true},
        {"{job=\"api-server\"}", true},
        {"{job=\"api\"}", false},
        {"{job!=\"api\"}", true},
        {"{job=~\"api\"}", false}, /* anchored */
        {"{job=~\"api.*\"}", true},
        {"{job=~\"server|api\"}", false}, /* both sides of a choice are */
        {"{job=~\"server|api-.*\"}", true},
        {"{job!~\"api\"}", true},
        {"{job!~\".+\"}", false},
        {"{nothing=\"\"}", true}, /* a missing label is an empty one */
        {"{nothing!=\"\"}", false},
        {"{nothing=~\".*\"}", true},
        {"{nothing=~\".+\"}", false},
        {"{nothing!~\".+\"}", true},
        {"{nothing!=\"x\"}", true},
        {"{job=~\"api.*\",nothing=\"x\"}", false}, /* all have to match */
        {"{job=~\".*\",job!=\"api-server\"}", false},
        {"{text=~\"two.lines\"}", true}, /* a dot is any character */
        {"{text=~\"two\"}", false},
        {"{text=~\"two$\"}", false},
        {"{job=~\"(?i)API-SERVER\"}", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        if (selects(cases[i].text, &labels) != cases[i].matches)
            fail_msg("%s should %smatch", cases[i].text, cases[i].matches ? "" : "not ");
    }
}

/* The longest values are within the limits of ordinary expressions. */
static void matches_long_values(void **state)
{
    (void)state;
    _cleanup_labels_ struct labels labels = {0};
    char value[4097];
    for (size_t i = 0; i < sizeof(value) - 1; i++)
        value[i] = i % 3 ? 'a' : 'b';
    value[sizeof(value) - 1] = '\0';
    labels_set(&labels, "a", value);
    assert_true(selects("{a=~\"(a|b)*\"}", &labels));
    assert_true(selects("{a=~\".*a.*\"}", &labels));
    assert_true(selects("{a!~\"(a|b)*c\"}", &labels));
}

/* An expression that would take years ends, and neither =~ nor !~ is true then. */
static void gives_up_in_time(void **state)
{
    (void)state;
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    assert_false(selects("{a=~\"(a+)+(a+)+(a+)+c\"}", &labels));
    assert_false(selects("{a=~\"(.|a)*(.|a)*(.|a)*\\\\1\\\\2c\"}", &labels));
    assert_false(selects("{a!~\"((a|aa)+)+[^b]\"}", &labels));
}

/* What a query gets to hear instead of an answer that leaves something out. */
static void reports_what_costs_too_much(void **state)
{
    (void)state;
    _cleanup_selector_ struct selector selector = {0};
    const char *text = "{a=~\"((a|aa)+)+[^b]\",b=~\"x.*\"}";
    atomic_bool cancelled = false;
    struct match_budget budget = {.limit_ns = 1, .cancelled = &cancelled};
    struct matching matching;
    struct error error = {0};
    bool matches = false;
    assert_int_equal(selector_parse(text, strlen(text), &selector, &error), 0);
    matching_begin(&matching, NULL);
    assert_int_equal(matching_test(&matching, &selector.matchers[0],
                                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", &matches, &error),
                     -EDOM);
    assert_says(&error, "takes too many steps for a value of a");
    assert_int_equal(matching_test(&matching, &selector.matchers[1], "xy", &matches, &error), 0);
    assert_true(matches);
    matching_end(&matching);
    /* Many that are cheap by themselves: the budget is looked at once a millisecond. */
    int r = 0;
    unsigned tried = 0;
    matching_begin(&matching, &budget);
    for (; !r && tried < 100000000; tried++)
        r = matching_test(&matching, &selector.matchers[1], "xyz", &matches, &error);
    matching_end(&matching);
    assert_int_equal(r, -EDOM);
    assert_says(&error, "took more than 0 ms of CPU time");
    assert_true(budget.used_ns > budget.limit_ns);
    cancelled = true;
    matching_begin(&matching, &budget);
    assert_int_equal(matching_test(&matching, &selector.matchers[1], "xyz", &matches, &error),
                     -ECANCELED);
    matching_end(&matching);
}

/* Lists of words are compared, not matched, with the same result. */
static void knows_lists_of_words(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *value;
        bool matches;
    } cases[] = {
        {"one|two", "one", true},
        {"one|two", "two", true},
        {"one|two", "one|two", false},
        {"one|two", "on", false},
        {"one|two", "onetwo", false},
        {"one|two", "", false},
        {"one|", "", true},
        {"one|", "one", true},
        {"|one", "", true},
        {"", "", true},
        {"", "x", false},
        {"a\\.b|c\\|d", "a.b", true},
        {"a\\.b|c\\|d", "axb", false},
        {"a\\.b|c\\|d", "c|d", true},
        {"a.b", "axb", true},
        {"a||b", "", true},
        {"a||b", "b", true},
        {"w\\d", "w1", true},
        {"w\\d", "wd", false},
        {"x\\", "x", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_selector_ struct selector selector = {0};
        int r = selector_add(&selector, MATCH_REGEX, "a", cases[i].expression, NULL);
        if ((r == 0 && matcher_matches(&selector.matchers[0], cases[i].value)) != cases[i].matches)
            fail_msg("%s should %smatch \"%s\"", cases[i].expression,
                     cases[i].matches ? "" : "not ", cases[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_sets_sorted),
        cmocka_unit_test(takes_lengths),
        cmocka_unit_test(compares_sets),
        cmocka_unit_test(hashes_as_ever),
        cmocka_unit_test(names_names),
        cmocka_unit_test(reads_selectors),
        cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(refuses_too_much),
        cmocka_unit_test(reads_cut_text),
        cmocka_unit_test(selects_as_prometheus),
        cmocka_unit_test(matches_long_values),
        cmocka_unit_test(gives_up_in_time),
        cmocka_unit_test(reports_what_costs_too_much),
        cmocka_unit_test(knows_lists_of_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
