// SPDX-License-Identifier: Apache-2.0
// Allow-list, limits and the counting of values; and all label rules together, out of YAML.

#include "base/memory.h"
#include "label/rules/rules.h"
#include "unit.h"

#define SECOND 1000000000ll

static const char *shown(const struct labels *labels)
{
    static struct buffer out;
    out.length = 0;
    labels_write(&out, labels);
    return buffer_text(&out);
}

static void globs(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "a", true},
        {"a", "", false},
        {"*", "", true},
        {"*", "abc", true},
        {"a*", "abc", true},
        {"a*", "bc", false},
        {"*c", "abc", true},
        {"*c", "abcd", false},
        {"a*c", "abcbc", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"k8s.*", "k8s.pod", true},
        {"k8s.*", "k8sXpod", false},
        {"*a*b*", "xxaxxbxx", true},
        {"*a*b*", "xxbxxaxx", false},
        {"**", "x", true},
        {"a*b*c*d*e", "aXbXcXdX", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        if (glob_matches(cases[i].pattern, cases[i].text) != cases[i].matches)
            fail_msg("%s and %s", cases[i].pattern, cases[i].text);
    /* Many stars on a text that fails at its very end. */
    char text[4097];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_false(glob_matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void limits_names(void **state)
{
    (void)state;
    struct label_policy_options options = label_policy_defaults();
    options.name_bytes = 20;
    globs_add(&options.allow, "region");
    globs_add(&options.allow, "k8s.*");
    struct label_policy *policy = label_policy_new(&options);
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "service_name", "x");
    labels_set(&labels, "__name__", "x");
    labels_set(&labels, "region", "x");
    labels_set(&labels, "k8s.pod", "x");
    labels_set(&labels, "k8s.a_name_that_is_too_long", "x");
    labels_set(&labels, "k8s.\xff", "x");
    labels_set(&labels, "k8s.\n", "x");
    labels_set(&labels, "user", "x");
    assert_int_equal(label_policy_names(policy, &labels),
                     1 << LABEL_NOT_ALLOWED | 1 << LABEL_NAME_INVALID | 1 << LABEL_NAME_TOO_LONG);
    assert_string_equal(shown(&labels),
                        "{__name__=\"x\",\"k8s.pod\"=\"x\",region=\"x\",service_name=\"x\"}");
    uint64_t counts[LABEL_REASONS];
    label_policy_counts(policy, counts);
    assert_int_equal(counts[LABEL_NOT_ALLOWED], 1);
    assert_int_equal(counts[LABEL_NAME_INVALID], 2);
    assert_int_equal(counts[LABEL_NAME_TOO_LONG], 1);
    for (unsigned i = 0; i < LABEL_REASONS; i++)
        assert_non_null(label_reason_name((enum label_reason)i));
    label_policy_free(policy);
}

static void limits_values(void **state)
{
    (void)state;
    struct label_policy_options options = label_policy_defaults();
    options.value_bytes = 5;
    options.count = 3;
    struct label_policy *policy = label_policy_new(&options);
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "a", "12345");
    labels_set(&labels, "b", "1234\xc3\xa4"); /* not cut within a character */
    labels_set(&labels, "c", "1");
    labels_set(&labels, "d", "1");
    labels_set(&labels, "service_name",
               "\xff"
               "a"); /* last by name, and never dropped */
    assert_int_equal(label_policy_values(policy, "t", 0, &labels),
                     1 << LABEL_TOO_MANY | 1 << LABEL_VALUE_INVALID | 1 << LABEL_VALUE_TOO_LONG);
    assert_string_equal(shown(&labels), "{a=\"12345\",b=\"1234\",service_name=\"\xef\xbf\xbd"
                                        "a\"}");
    uint64_t counts[LABEL_REASONS];
    label_policy_counts(policy, counts);
    assert_int_equal(counts[LABEL_TOO_MANY], 2);
    label_policy_free(policy);
}

static void puts_the_rest_into_other(void **state)
{
    (void)state;
    struct label_policy_options options = label_policy_defaults();
    options.cardinality = (struct cardinality_limits){
        .values = 3, .names = 2, .total = 100, .window_ns = 10 * SECOND};
    globs_add(&options.unlimited, "free");
    struct label_policy *policy = label_policy_new(&options);
    for (int i = 0; i < 6; i++) {
        char value[8];
        snprintf(value, sizeof(value), "v%d", i % 5);
        _cleanup_labels_ struct labels labels = {0};
        labels_set(&labels, "a", value);
        labels_set(&labels, "free", value);
        unsigned done = label_policy_values(policy, "t", SECOND, &labels);
        assert_int_equal(done, i % 5 < 3 ? 0 : 1 << LABEL_TOO_MANY_VALUES);
        assert_string_equal(labels_get(&labels, "a"), i % 5 < 3 ? value : "other");
        assert_string_equal(labels_get(&labels, "free"), value);
    }
    /* The third name is one too many; service_name stays, without its value. */
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "a", "v0");
    labels_set(&labels, "b", "1");
    labels_set(&labels, "c", "1");
    labels_set(&labels, "service_name", "x");
    assert_int_equal(label_policy_values(policy, "t", SECOND, &labels), 1 << LABEL_TOO_MANY_NAMES);
    assert_string_equal(shown(&labels), "{a=\"v0\",b=\"1\",service_name=\"other\"}");
    /* Another tenant has its own. */
    labels_clear(&labels);
    labels_set(&labels, "c", "v9");
    assert_int_equal(label_policy_values(policy, "u", SECOND, &labels), 0);
    label_policy_free(policy);
}

static enum cardinality_answer note(struct cardinality *cardinality, const char *value, int64_t at)
{
    return cardinality_note(cardinality, "t", "n", value, at * SECOND);
}

static void look(void *context, const struct cardinality_stats *stats)
{
    assert_string_equal(stats->tenant, "t");
    assert_string_equal(stats->name, "n");
    *(struct cardinality_stats *)context = *stats;
}

static void forgets_what_stays_away(void **state)
{
    (void)state;
    const struct cardinality_limits limits = {
        .values = 2, .names = 1, .total = 100, .window_ns = 10 * SECOND};
    struct cardinality *cardinality = cardinality_new(&limits);
    assert_int_equal(note(cardinality, "a", 0), CARDINALITY_NEW);
    assert_int_equal(note(cardinality, "b", 1), CARDINALITY_NEW);
    assert_int_equal(note(cardinality, "c", 2), CARDINALITY_FULL);
    assert_int_equal(note(cardinality, "a", 3), CARDINALITY_KNOWN);
    /* In the second window both are known still, and newcomers don't get their places. */
    assert_int_equal(note(cardinality, "c", 11), CARDINALITY_FULL);
    assert_int_equal(note(cardinality, "a", 12), CARDINALITY_KNOWN);
    assert_int_equal(note(cardinality, "a", 5), CARDINALITY_KNOWN); /* a clock that steps back */
    struct cardinality_stats stats = {0};
    cardinality_each(cardinality, look, &stats);
    assert_int_equal(stats.values, 2);
    assert_int_equal(stats.refused, 2);
    /* In the third, b has stayed away for a whole window. */
    assert_int_equal(note(cardinality, "c", 22), CARDINALITY_NEW);
    assert_int_equal(note(cardinality, "b", 23), CARDINALITY_FULL);
    /* After a long silence everything is forgotten, names too. */
    assert_int_equal(cardinality_note(cardinality, "t", "m", "x", 24 * SECOND), CARDINALITY_NAMES);
    assert_int_equal(cardinality_note(cardinality, "t", "m", "x", 99 * SECOND), CARDINALITY_NEW);
    cardinality_free(cardinality);
}

static void counts_many(void **state)
{
    (void)state;
    const struct cardinality_limits limits = {
        .values = 5000, .names = 10, .total = 7000, .window_ns = 10 * SECOND};
    struct cardinality *cardinality = cardinality_new(&limits);
    size_t admitted[2] = {0};
    for (int round = 0; round < 2; round++)
        for (int name = 0; name < 2; name++)
            for (int i = 0; i < 10000; i++) {
                char value[16];
                snprintf(value, sizeof(value), "value-%d", i);
                enum cardinality_answer answer =
                    cardinality_note(cardinality, "t", name ? "b" : "a", value, SECOND);
                admitted[name] += answer == CARDINALITY_NEW;
                if (round)
                    assert_int_equal(answer, i < (name ? 2000 : 5000) ? CARDINALITY_KNOWN
                                                                      : CARDINALITY_FULL);
            }
    assert_int_equal(admitted[0], 5000);
    assert_int_equal(admitted[1], 2000); /* of all no more than 7,000 */
    cardinality_free(cardinality);
}

static void read_rules(const char *text, struct problems *problems, struct label_rules *rules)
{
    struct yaml_tree tree;
    struct error error = {0};
    struct settings settings;
    if (yaml_tree_read("c.yaml", text, strlen(text), &tree, &error) < 0)
        fail_msg("%s", error.text);
    problems->file = "c.yaml";
    settings_open(&settings, problems, tree.root, "The file");
    label_rules_read(&settings, rules);
    settings_close(&settings);
    yaml_tree_release(&tree);
}

static void reads_rules(void **state)
{
    (void)state;
    struct problems problems = {0};
    struct label_rules rules;
    read_rules("relabel_configs:\n"
               "- source_labels: [__meta_pod, env]\n"
               "  separator: '-'\n"
               "  target_label: pod\n"
               "- {source_labels: [env], regex: test, action: Drop}\n"
               "- {action: labeldrop, regex: __meta_.*}\n"
               "labels:\n"
               "  allow: [pod, env, 'a*']\n"
               "  max_values_per_name: 2\n"
               "redact:\n"
               "  names: yes\n"
               "  detectors: {ip: false}\n"
               "  except: {email: [abuse]}\n"
               "  rules:\n"
               "  - {name: ticket, regex: 'T-\\d+', labels: [a]}\n",
               &problems, &rules);
    assert_string_equal(buffer_text(&problems.text), "");
    assert_true(rules.redact_names);
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "__meta_pod", "p1");
    labels_set(&labels, "env", "10.0.0.1");
    labels_set(&labels, "a", "T-1 x@y.org");
    labels_set(&labels, "abuse", "x@y.org");
    labels_set(&labels, "other", "x");
    unsigned reasons;
    assert_true(label_rules_apply(&rules, "t", SECOND, &labels, &reasons));
    assert_int_equal(reasons, 1 << LABEL_NOT_ALLOWED);
    assert_string_equal(shown(&labels), "{a=\"[ticket] [email]\",abuse=\"x@y.org\","
                                        "env=\"10.0.0.1\",pod=\"p1-10.0.0.1\"}");
    labels_set(&labels, "env", "test");
    assert_false(label_rules_apply(&rules, "t", SECOND, &labels, NULL));
    label_rules_release(&rules);
    problems_release(&problems);
}

/* Redaction sees values before they are cut: no half of a secret stays. */
static void redacts_before_cutting(void **state)
{
    (void)state;
    struct problems problems = {0};
    struct label_rules rules;
    read_rules("labels: {max_value_length: 16}", &problems, &rules);
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "a", "a.rather.long.name@example.com");
    assert_true(label_rules_apply(&rules, "t", SECOND, &labels, NULL));
    assert_string_equal(shown(&labels), "{a=\"[email]\"}");
    label_rules_release(&rules);
    label_rules_init(&rules);
    labels_set(&labels, "a", "b@example.com");
    assert_true(label_rules_apply(&rules, "t", SECOND, &labels, NULL));
    assert_string_equal(shown(&labels), "{a=\"[email]\"}");
    label_rules_release(&rules);
    problems_release(&problems);
}

static void tells_all_problems(void **state)
{
    (void)state;
    struct problems problems = {0};
    struct label_rules rules;
    read_rules("relabel_configs:\n"
               "- {action: replace}\n"
               "- {action: explode}\n"
               "- {regex: '('}\n"
               "- {source_label: [a]}\n"
               "- nothing\n"
               "- {source_labels: a, target_label: b}\n"
               "labels: {max_count: 0, alow: []}\n"
               "redact:\n"
               "  detectors: {email: maybe, mail: true}\n"
               "  rules: [{name: x}, {name: y, regex: '['}]\n"
               "lables: {}\n",
               &problems, &rules);
    static const char *const expected[] = {
        "c.yaml:2: The action replace requires a target_label.\n",
        "c.yaml:3: \"action\" of A relabelling rule must be one of replace, keep,",
        "c.yaml:4: The action replace requires a target_label.\n",
        "c.yaml:5: A relabelling rule has no key \"source_label\": did you mean "
        "\"source_labels\"?\n",
        "c.yaml:6: A relabelling rule must be a map",
        "c.yaml:7: \"source_labels\" of A relabelling rule must be a list of strings",
        "c.yaml:8: \"max_count\" of labels must be a whole number from 1 to 1000, not \"0\".\n",
        "c.yaml:8: labels has no key \"alow\": did you mean \"allow\"?\n",
        "c.yaml:10: \"email\" of detectors of redact must be true or false, not \"maybe\".\n",
        "c.yaml:10: detectors of redact has no key \"mail\": did you mean \"email\"?\n",
        "c.yaml:11: A redaction rule requires a name and a regex.\n",
        "c.yaml:11: The expression \"[\" of the redaction rule y is not valid at character 2",
        "c.yaml:12: The file has no key \"lables\": did you mean \"labels\"?\n",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(expected); i++)
        if (!strstr(buffer_text(&problems.text), expected[i]))
            fail_msg("%s\nis missing in\n%s", expected[i], buffer_text(&problems.text));
    assert_int_equal(problems.count, ARRAY_LENGTH(expected));
    label_rules_release(&rules);
    problems_release(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs),
        cmocka_unit_test(limits_names),
        cmocka_unit_test(limits_values),
        cmocka_unit_test(puts_the_rest_into_other),
        cmocka_unit_test(forgets_what_stays_away),
        cmocka_unit_test(counts_many),
        cmocka_unit_test(reads_rules),
        cmocka_unit_test(redacts_before_cutting),
        cmocka_unit_test(tells_all_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
