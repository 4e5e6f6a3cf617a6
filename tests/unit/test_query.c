// SPDX-License-Identifier: Apache-2.0
// Queries and times as text, and which types answer to short names.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "query/query.h"
#include "query/types.h"

#define NOW 1800000000000000000ll
#define SECOND 1000000000ll

static int64_t at(const char *text)
{
    int64_t ns = -1;
    struct error error = {0};
    int r = query_time(text, NOW, &ns, &error);
    assert_int_equal(r, r < 0 ? error.code : 0);
    if (r < 0)
        assert_int_equal(ns, -1); /* untouched */
    return ns;
}

static void times(void **state)
{
    (void)state;
    assert_int_equal(at("now"), NOW);
    assert_int_equal(at("now-1h30m"), NOW - 5400 * SECOND);
    assert_int_equal(at("now+5m"), NOW + 300 * SECOND);
    assert_int_equal(at("1794716627"), 1794716627 * SECOND);
    assert_int_equal(at("1794716627.5"), 1794716627 * SECOND + SECOND / 2);
    assert_int_equal(at("1794716627017"), 1794716627017 * 1000000);
    assert_int_equal(at("1794716627017003"), 1794716627017003 * 1000);
    assert_int_equal(at("1794716627017003001"), 1794716627017003001);
    assert_int_equal(at("2026-11-15T04:23:47Z"), 1794716627 * SECOND);
    assert_int_equal(at("2026-11-15T05:23:47.25+01:00"), 1794716627 * SECOND + SECOND / 4);
    assert_int_equal(at("2026-11-15"), 1794700800 * SECOND);
    assert_int_equal(at("1970-01-01"), 0);
}

static void bad_times(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "soon",
                                      "now-",
                                      "now-1",
                                      "now+14293w",
                                      "now1h",
                                      "-5",
                                      "2026-02-30",
                                      "2026-13-01",
                                      "2026-1-1",
                                      "2026-11-15T25:00:00Z",
                                      "2026-11-15T04",
                                      "2026-11-15T04:23:47Q",
                                      "2026-11-15x",
                                      "99999999999999999999",
                                      "nan",
                                      "1e300",
                                      "now-9999999y"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (at(bad[i]) != -1)
            fail_msg("\"%s\" was taken for a time", bad[i]);
}

static void queries(void **state)
{
    (void)state;
    struct query query;
    struct error error = {0};
    assert_int_equal(query_parse("cpu{service=\"x\", a!=\"b\"}", &query, &error), 0);
    assert_string_equal(query.type, "cpu");
    assert_int_equal(query.selector.count, 2);
    assert_string_equal(query.selector.matchers[0].name, "service_name");
    query_release(&query);

    assert_int_equal(query_parse(" memory:inuse_space:bytes:space:bytes:delta {}", &query, &error),
                     0);
    assert_string_equal(query.type, "memory:inuse_space:bytes:space:bytes");
    query_release(&query);

    assert_int_equal(query_parse("{__profile_type__=\"a:b:c:d:e\",k=\"v\"}", &query, &error), 0);
    assert_string_equal(query.type, "a:b:c:d:e");
    assert_int_equal(query.selector.count, 1);
    assert_string_equal(query.selector.matchers[0].name, "k");
    query_release(&query);

    assert_int_equal(query_parse("", &query, &error), 0);
    assert_string_equal(query.type, "");
    query_release(&query);
}

static void bad_queries(void **state)
{
    (void)state;
    static const char *const bad[] = {"cpu{",
                                      "cpu}",
                                      "cpu{a=}",
                                      "a:b",
                                      "a:b:c:d:e:f:g",
                                      "cpu{a=\"b\"}x",
                                      "cpu{a=~\"(\"}",
                                      "c\"pu",
                                      "x{__profile_type__=\"a:b:c:d:e\"}",
                                      "{__profile_type__=~\"a\"}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct query query = {.type = "untouched"};
        struct error error = {0};
        if (query_parse(bad[i], &query, &error) == 0)
            fail_msg("\"%s\" was taken for a query", bad[i]);
        assert_true(error.code < 0);
        assert_true(strlen(error.text) > 10);
        assert_string_equal(query.type, "untouched");
    }
    /* Cut off anywhere, it is a query or it isn't, and nothing worse. */
    char text[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds{a=\"b\",\"c.d\"=~`e|f`}";
    for (size_t length = sizeof(text) - 1; length--;) {
        struct query query = {0};
        text[length] = 0;
        if (!query_parse(text, &query, NULL))
            query_release(&query);
    }
}

static void short_names(void **state)
{
    (void)state;
    const char *cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    const char *samples = "process_cpu:samples:count:cpu:nanoseconds";
    const char *inuse = "memory:inuse_space:bytes:space:bytes";
    const char *objects = "memory:inuse_objects:count:space:bytes";
    assert_true(query_type_fits(cpu, "cpu") > query_type_fits(samples, "cpu"));
    assert_true(query_type_fits(samples, "cpu") > 0);
    assert_int_equal(query_type_fits(inuse, "cpu"), 0);
    assert_true(query_type_fits(inuse, "inuse") > query_type_fits(objects, "inuse"));
    assert_int_equal(query_type_fits(inuse, "alloc"), 0);
    assert_true(query_type_fits("mutex:delay:nanoseconds:contentions:count", "lock") >
                query_type_fits("mutex:contentions:count:contentions:count", "lock"));
    assert_true(query_type_fits("off_cpu:off_cpu:nanoseconds::", "offcpu") > 0);
    assert_true(query_type_fits("wall:wall:nanoseconds:wall:nanoseconds", "wall") > 0);
    assert_true(query_type_fits(objects, "inuse_objects") > query_type_fits(objects, "memory"));
    assert_true(query_type_fits(objects, "memory") > 0);
    assert_int_equal(query_type_fits(objects, ""), 0);
    assert_int_equal(query_type_fits("", "cpu"), 0);
}

static void types_as_labels(void **state)
{
    (void)state;
    static const char id[] = "memory:inuse_space:bytes:space:b";
    static const char *const wanted[QUERY_TYPE_LABELS] = {"memory", "space",       "b",
                                                          id,       "inuse_space", "bytes"};
    size_t length;
    for (size_t i = 0; i < QUERY_TYPE_LABELS; i++) {
        const char *value = query_type_value(id, query_type_labels[i], &length);
        assert_int_equal(length, strlen(wanted[i]));
        assert_memory_equal(value, wanted[i], length);
    }
    assert_null(query_type_value(id, "service_name", &length));
    static const struct {
        const char *selector;
        bool selected, matches;
    } cases[] = {{"{}", false, true},
                 {"{pod=\"x\"}", false, true},
                 {"{__name__=\"memory\",pod=\"x\"}", true, true},
                 {"{__name__=\"memo\"}", true, false},
                 {"{__name__!=\"memory\"}", true, false},
                 {"{__type__=~\"inuse_.*\",__unit__=\"bytes\"}", true, true},
                 {"{__type__=~\"inuse_.*\",__unit__=\"count\"}", true, false},
                 {"{__period_type__!~\"space\"}", true, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_selector_ struct selector selector = {0};
        const char *text = cases[i].selector;
        assert_int_equal(selector_parse(text, strlen(text), &selector, NULL), 0);
        assert_int_equal(query_types_selected(&selector), cases[i].selected);
        assert_int_equal(query_type_matches(&selector, id), cases[i].matches);
        query_types_settle(&selector);
        assert_int_equal(selector.count, strstr(text, "pod") ? 1 : 0);
        assert_true(query_type_matches(&selector, id));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),       cmocka_unit_test(bad_times),
        cmocka_unit_test(queries),     cmocka_unit_test(bad_queries),
        cmocka_unit_test(short_names), cmocka_unit_test(types_as_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
