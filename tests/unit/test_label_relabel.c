// SPDX-License-Identifier: Apache-2.0
// Relabelling: each action as Prometheus documents it, its defaults and refusals, and the shards
// that its hash gives.

#include "base/memory.h"
#include "label/rules/relabel.h"
#include "unit.h"

/* "a=1,b=2" */
static void set_all(struct labels *labels, const char *pairs)
{
    _cleanup_free_ char *copy = memory_strdup(pairs);
    for (char *save, *pair = strtok_r(copy, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
        char *value = strchr(pair, '=');
        *value++ = '\0';
        labels_set(labels, pair, value);
    }
}

struct rule_case {
    const char *sources; /* names with commas between */
    struct relabel_config config;
    const char *before, *after; /* NULL: dropped */
};

static void check(const struct rule_case *test)
{
    struct relabel relabel = {0};
    struct relabel_config config = test->config;
    struct error error = {0};
    const char *sources[8];
    _cleanup_free_ char *names = memory_strdup(test->sources ? test->sources : "");
    for (char *save, *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save))
        sources[config.source_count++] = name;
    config.source_labels = sources;
    if (relabel_add(&relabel, &config, &error) < 0)
        fail_msg("%s", error.text);
    _cleanup_labels_ struct labels labels = {0}, expected = {0};
    set_all(&labels, test->before);
    bool kept = relabel_apply(&relabel, &labels);
    relabel_release(&relabel);
    if (kept != (test->after != NULL))
        fail_msg("%s was %s", test->before, kept ? "kept" : "dropped");
    if (!kept)
        return;
    set_all(&expected, test->after);
    _cleanup_buffer_ struct buffer got = {0};
    _cleanup_buffer_ struct buffer wanted = {0};
    labels_write(&got, &labels);
    labels_write(&wanted, &expected);
    assert_string_equal(buffer_text(&got), buffer_text(&wanted));
}

#define CONFIG(...)                                                                                \
    (struct relabel_config)                                                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void replaces(void **state)
{
    (void)state;
    const struct rule_case cases[] = {
        {"a", CONFIG(.target_label = "d", .regex = "f(.*)", .replacement = "<${1}|${1}>"),
         "a=foo,b=bar", "a=foo,b=bar,d=<oo|oo>"},
        {"a,b", CONFIG(.target_label = "a", .regex = "f(.*);(.*)r", .replacement = "${2}+${1}"),
         "a=foo,b=bar", "a=ba+oo,b=bar"},
        /* Without a match nothing changes. */
        {"a", CONFIG(.target_label = "d", .regex = "o", .replacement = "x"), "a=foo", "a=foo"},
        {"a", CONFIG(.target_label = "d", .regex = "fo"), "a=foo", "a=foo"},
        /* Defaults: all of it, $1, ";". */
        {"a", CONFIG(.target_label = "d"), "a=foo", "a=foo,d=foo"},
        {"a,b", CONFIG(.target_label = "d"), "a=foo,b=bar", "a=foo,b=bar,d=foo;bar"},
        {"a,b", CONFIG(.target_label = "d", .separator = ""), "a=foo,b=bar",
         "a=foo,b=bar,d=foobar"},
        {"a,missing", CONFIG(.target_label = "d"), "a=foo", "a=foo,d=foo;"},
        {NULL, CONFIG(.target_label = "d", .replacement = "fixed"), "a=foo", "a=foo,d=fixed"},
        /* An empty result removes. */
        {NULL, CONFIG(.target_label = "a", .replacement = ""), "a=foo,b=bar", "b=bar"},
        {"missing", CONFIG(.target_label = "a"), "a=foo,b=bar", "b=bar"},
        /* The target's name can come from the value. */
        {"a", CONFIG(.target_label = "${1}", .regex = "set (\\w+) to (.+)", .replacement = "${2}"),
         "a=set zone to north", "a=set zone to north,zone=north"},
        {"a", CONFIG(.target_label = "$1", .regex = "x(.*)", .replacement = "y"), "a=x", "a=x"},
        {"a", CONFIG(.target_label = "d.e", .regex = "(?P<first>.).*", .replacement = "$first."),
         "a=foo", "a=foo,d.e=f."},
        /* Go's references: as long as they can be, unknown ones empty, $$ a dollar sign. */
        {"a", CONFIG(.target_label = "d", .replacement = "$1x|${1}x|$$1|$9|$|${1|${}$"), "a=foo",
         "a=foo,d=|foox|$1||$|${1|${}$"},
        {"a", CONFIG(.target_label = "d", .regex = "(x)?(.*)", .replacement = "[$1$2]"), "a=foo",
         "a=foo,d=[foo]"},
        /* A dot is any character. */
        {"a", CONFIG(.target_label = "d", .regex = "(.*)b"), "a=a\nb", "a=a\nb,d=a\n"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        check(&cases[i]);
}

static void keeps_and_drops(void **state)
{
    (void)state;
    const struct rule_case cases[] = {
        {"a", CONFIG(.action = RELABEL_DROP, .regex = ".*o.*"), "a=foo", NULL},
        {"a", CONFIG(.action = RELABEL_DROP, .regex = "o"), "a=foo", "a=foo"},
        {"a", CONFIG(.action = RELABEL_DROP, .regex = "no-match"), "a=foo", "a=foo"},
        {"a,b", CONFIG(.action = RELABEL_DROP, .regex = "f;b|foo;bar"), "a=foo,b=bar", NULL},
        {"a", CONFIG(.action = RELABEL_KEEP, .regex = "no-match"), "a=foo", NULL},
        {"a", CONFIG(.action = RELABEL_KEEP, .regex = "f.*"), "a=foo", "a=foo"},
        {"missing", CONFIG(.action = RELABEL_KEEP, .regex = ".+"), "a=foo", NULL},
        {"a", CONFIG(.action = RELABEL_KEEP), "b=foo", "b=foo"}, /* the default matches all */
        {"a", CONFIG(.action = RELABEL_KEEPEQUAL, .target_label = "b"), "a=1,b=1", "a=1,b=1"},
        {"a", CONFIG(.action = RELABEL_KEEPEQUAL, .target_label = "b"), "a=1,b=2", NULL},
        {"a", CONFIG(.action = RELABEL_KEEPEQUAL, .target_label = "x"), "b=2", "b=2"},
        {"a", CONFIG(.action = RELABEL_DROPEQUAL, .target_label = "b"), "a=1,b=1", NULL},
        {"a,b", CONFIG(.action = RELABEL_DROPEQUAL, .target_label = "c"), "a=1,b=2,c=1;2", NULL},
        {"a", CONFIG(.action = RELABEL_DROPEQUAL, .target_label = "b"), "a=1,b=2", "a=1,b=2"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        check(&cases[i]);
}

static void works_on_names(void **state)
{
    (void)state;
    const struct rule_case cases[] = {
        {NULL, CONFIG(.action = RELABEL_LABELMAP, .regex = "(b.*)", .replacement = "copy_${1}"),
         "a=foo,b1=bar,b2=baz", "a=foo,b1=bar,b2=baz,copy_b1=bar,copy_b2=baz"},
        {NULL, CONFIG(.action = RELABEL_LABELMAP, .regex = "__meta_(our.*)"),
         "a=foo,__meta_our_zone=aaa,__meta_other=bbb",
         "a=foo,__meta_our_zone=aaa,__meta_other=bbb,our_zone=aaa"},
        /* Names are those from before the rule: what it adds it doesn't map again. */
        {NULL, CONFIG(.action = RELABEL_LABELMAP, .regex = "(.*)", .replacement = "x$1"), "a=1",
         "a=1,xa=1"},
        {NULL, CONFIG(.action = RELABEL_LABELDROP, .regex = "(b.*)"), "a=foo,b1=bar,b2=baz",
         "a=foo"},
        {NULL, CONFIG(.action = RELABEL_LABELDROP, .regex = "b"), "a=foo,b1=bar", "a=foo,b1=bar"},
        {NULL, CONFIG(.action = RELABEL_LABELKEEP, .regex = "b.*"), "a=foo,b1=bar,c=baz", "b1=bar"},
        {"a", CONFIG(.action = RELABEL_UPPERCASE, .target_label = "up"), "a=fooÄß1é",
         "a=fooÄß1é,up=FOOÄß1É"},
        {"a,b", CONFIG(.action = RELABEL_LOWERCASE, .target_label = "a", .separator = "-"),
         "a=EU-West1,b=Ω", "a=eu-west1-ω,b=Ω"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        check(&cases[i]);
}

/* The first two are in Prometheus's own tests, the others are md5sum's: the last 8 bytes, big end
 * first. */
static void hashes_as_prometheus(void **state)
{
    (void)state;
    const struct rule_case cases[] = {
        {"c", CONFIG(.action = RELABEL_HASHMOD, .target_label = "d", .modulus = 1000),
         "a=foo,b=bar,c=baz", "a=foo,b=bar,c=baz,d=976"},
        {"a", CONFIG(.action = RELABEL_HASHMOD, .target_label = "b", .modulus = 1000), "a=foo\nbar",
         "a=foo\nbar,b=734"},
        {"a,b", CONFIG(.action = RELABEL_HASHMOD, .target_label = "m", .modulus = 97),
         "a=foo,b=bar", "a=foo,b=bar,m=92"},
        {"missing", CONFIG(.action = RELABEL_HASHMOD, .target_label = "m", .modulus = UINT64_MAX),
         "a=foo", "a=foo,m=16825458760271544958"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        check(&cases[i]);
}

static void refuses(void **state)
{
    (void)state;
    static const char *const bad_source[] = {""};
    const struct {
        struct relabel_config config;
        const char *says;
    } cases[] = {
        {CONFIG(.action = RELABEL_REPLACE), "requires a target_label"},
        {CONFIG(.action = RELABEL_LOWERCASE), "requires a target_label"},
        {CONFIG(.action = RELABEL_HASHMOD, .target_label = "a"), "modulus"},
        {CONFIG(.action = RELABEL_REPLACE, .target_label = "\xff"), "not a valid target_label"},
        {CONFIG(.action = RELABEL_UPPERCASE, .target_label = "a", .replacement = "x"),
         "accepts no replacement"},
        {CONFIG(.action = RELABEL_KEEPEQUAL, .target_label = "a", .regex = "x"), "accepts only"},
        {CONFIG(.action = RELABEL_DROPEQUAL, .target_label = "a", .separator = ","),
         "accepts only"},
        {CONFIG(.action = RELABEL_LABELDROP, .target_label = "a"), "accepts only a regex"},
        {CONFIG(.action = RELABEL_LABELKEEP, .replacement = "a"), "accepts only a regex"},
        {CONFIG(.action = RELABEL_LABELMAP, .replacement = ""), "name of a label"},
        {CONFIG(.action = RELABEL_KEEP, .regex = "("), "not valid at character"},
        {CONFIG(.action = RELABEL_KEEP, .source_labels = bad_source, .source_count = 1),
         "not a valid name"},
    };
    struct relabel relabel = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct error error = {0};
        assert_int_equal(relabel_add(&relabel, &cases[i].config, &error), -EINVAL);
        assert_says(&error, cases[i].says);
    }
    assert_int_equal(relabel.count, 0);
}

/* In order, each on what the one before left; a drop ends it. Doubling has an end, too. */
static void applies_in_order(void **state)
{
    (void)state;
    struct relabel relabel = {0};
    struct error error = {0};
    static const char *const a[] = {"a"};
    const struct relabel_config twice =
        CONFIG(.source_labels = a, .source_count = 1, .target_label = "a", .replacement = "$1$1");
    const struct relabel_config drop =
        CONFIG(.source_labels = a, .source_count = 1, .regex = "x{8}", .action = RELABEL_DROP);
    for (int i = 0; i < 3; i++)
        assert_int_equal(relabel_add(&relabel, &twice, &error), 0);
    assert_int_equal(relabel_add(&relabel, &drop, &error), 0);
    for (int i = 0; i < 40; i++)
        assert_int_equal(relabel_add(&relabel, &twice, &error), 0);
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "a", "x");
    assert_false(relabel_apply(&relabel, &labels));
    labels_set(&labels, "a", "y");
    assert_true(relabel_apply(&relabel, &labels));
    assert_int_equal(strlen(labels_get(&labels, "a")), RELABEL_VALUE_BYTES_MAX);
    relabel_release(&relabel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces),       cmocka_unit_test(keeps_and_drops),
        cmocka_unit_test(works_on_names), cmocka_unit_test(hashes_as_prometheus),
        cmocka_unit_test(refuses),        cmocka_unit_test(applies_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
