// SPDX-License-Identifier: Apache-2.0
// Label rules together, and out of a configuration file.

#include "label/rules/rules.h"

#include <string.h>

#include "base/memory.h"

void label_rules_init(struct label_rules *rules)
{
    struct label_policy_options options = label_policy_defaults();
    *rules = (struct label_rules){.policy = label_policy_new(&options), .redactor = redactor_new()};
}

void label_rules_release(struct label_rules *rules)
{
    relabel_release(&rules->relabel);
    label_policy_free(rules->policy);
    redactor_free(rules->redactor);
    *rules = (struct label_rules){0};
}

bool label_rules_apply(struct label_rules *rules, const char *tenant, int64_t now_ns,
                       struct labels *labels, unsigned *ret_reasons)
{
    if (!relabel_apply(&rules->relabel, labels))
        return false;
    unsigned reasons = label_policy_names(rules->policy, labels);
    redactor_labels(rules->redactor, labels);
    reasons |= label_policy_values(rules->policy, tenant, now_ns, labels);
    if (ret_reasons)
        *ret_reasons = reasons;
    return true;
}

/* The texts of a list as an array; the caller frees the array. */
static const char **texts_of(const struct yaml_node *list, size_t *ret_count)
{
    *ret_count = list ? list->count : 0;
    const char **texts = memory_zalloc(*ret_count, sizeof(char *));
    for (size_t i = 0; i < *ret_count; i++)
        texts[i] = list->values[i]->text;
    return texts;
}

static void relabel_read_rule(struct problems *problems, const struct yaml_node *node,
                              struct relabel *relabel)
{
    const char *actions[RELABEL_ACTIONS];
    struct relabel_config config = {0};
    struct settings rule;
    unsigned action = RELABEL_REPLACE;
    size_t before = problems->count;
    for (size_t i = 0; i < RELABEL_ACTIONS; i++)
        actions[i] = relabel_action_name((enum relabel_action)i);
    settings_open(&rule, problems, node, "A relabelling rule");
    _cleanup_free_ const char **sources =
        texts_of(settings_strings(&rule, "source_labels"), &config.source_count);
    config.source_labels = sources;
    settings_string(&rule, "separator", &config.separator);
    settings_string(&rule, "regex", &config.regex);
    settings_u64(&rule, "modulus", 1, UINT64_MAX, &config.modulus);
    settings_string(&rule, "target_label", &config.target_label);
    settings_string(&rule, "replacement", &config.replacement);
    settings_choice(&rule, "action", actions, RELABEL_ACTIONS, &action);
    settings_close(&rule);
    config.action = (enum relabel_action)action;
    struct error error = {0};
    if (problems->count == before && relabel_add(relabel, &config, &error) < 0)
        problems_add_error(problems, node, &error);
}

void relabel_read(struct settings *settings, const char *key, struct relabel *relabel)
{
    const struct yaml_node *list = settings_list(settings, key);
    for (size_t i = 0; list && i < list->count; i++)
        relabel_read_rule(settings->problems, list->values[i], relabel);
}

static void read_globs(struct settings *settings, const char *key, struct globs *globs)
{
    const struct yaml_node *list = settings_strings(settings, key);
    for (size_t i = 0; list && i < list->count; i++)
        globs_add(globs, list->values[i]->text);
}

static void read_number(struct settings *settings, const char *key, uint64_t min, uint64_t max,
                        size_t *ret)
{
    uint64_t value;
    if (settings_u64(settings, key, min, max, &value))
        *ret = value;
}

static void read_limit(struct settings *settings, const char *key, uint64_t max, uint32_t *ret)
{
    uint64_t value;
    if (settings_u64(settings, key, 1, max, &value))
        *ret = (uint32_t)value;
}

static struct label_policy *read_policy(struct problems *problems, const struct yaml_node *node)
{
    struct label_policy_options options = label_policy_defaults();
    struct settings labels;
    settings_open(&labels, problems, node, "labels");
    read_globs(&labels, "allow", &options.allow);
    read_globs(&labels, "unlimited", &options.unlimited);
    read_number(&labels, "max_name_length", 16, 65536, &options.name_bytes);
    read_number(&labels, "max_value_length", 16, 65536, &options.value_bytes);
    read_number(&labels, "max_count", 1, 1000, &options.count);
    read_limit(&labels, "max_values_per_name", 10000000, &options.cardinality.values);
    read_limit(&labels, "max_names", 1000000, &options.cardinality.names);
    read_limit(&labels, "max_values", 100000000, &options.cardinality.total);
    settings_duration(&labels, "values_window", 60000000000, 366 * 86400000000000,
                      &options.cardinality.window_ns);
    settings_close(&labels);
    return label_policy_new(&options);
}

static void read_detectors(struct settings *redact, struct redactor *redactor)
{
    struct settings detectors, except;
    settings_open(&detectors, redact->problems, settings_map(redact, "detectors"),
                  "detectors of redact");
    settings_open(&except, redact->problems, settings_map(redact, "except"), "except of redact");
    for (unsigned i = 0; i < DETECTORS; i++) {
        const char *name = detector_name((enum detector)i);
        bool enabled = true;
        if (settings_bool(&detectors, name, &enabled))
            redactor_enable(redactor, (enum detector)i, enabled);
        const struct yaml_node *list = settings_strings(&except, name);
        for (size_t j = 0; list && j < list->count; j++)
            redactor_except(redactor, (enum detector)i, list->values[j]->text);
    }
    settings_close(&except);
    settings_close(&detectors);
}

static void read_redact_rule(struct problems *problems, const struct yaml_node *node,
                             struct redactor *redactor)
{
    struct redact_rule_config config = {0};
    struct settings rule;
    size_t before = problems->count;
    settings_open(&rule, problems, node, "A redaction rule");
    bool named = settings_string(&rule, "name", &config.name);
    bool there = settings_string(&rule, "regex", &config.regex);
    settings_string(&rule, "replacement", &config.replacement);
    _cleanup_free_ const char **labels =
        texts_of(settings_strings(&rule, "labels"), &config.label_count);
    config.labels = labels;
    settings_close(&rule);
    struct error error = {0};
    if (problems->count != before)
        return;
    if (!named || !there)
        problems_add(problems, node, "A redaction rule requires a name and a regex");
    else if (redactor_add(redactor, &config, &error) < 0)
        problems_add_error(problems, node, &error);
}

static void read_redact(struct problems *problems, const struct yaml_node *node,
                        struct label_rules *rules)
{
    struct settings redact;
    rules->redactor = redactor_new();
    settings_open(&redact, problems, node, "redact");
    read_detectors(&redact, rules->redactor);
    settings_bool(&redact, "names", &rules->redact_names);
    const struct yaml_node *list = settings_list(&redact, "rules");
    for (size_t i = 0; list && i < list->count; i++)
        read_redact_rule(problems, list->values[i], rules->redactor);
    settings_close(&redact);
}

void label_rules_read(struct settings *settings, struct label_rules *ret_rules)
{
    struct label_rules rules = {0};
    relabel_read(settings, "relabel_configs", &rules.relabel);
    rules.policy = read_policy(settings->problems, settings_node(settings, "labels"));
    read_redact(settings->problems, settings_node(settings, "redact"), &rules);
    *ret_rules = rules;
}
