// SPDX-License-Identifier: Apache-2.0
// Checks and builds relabelling rules. Rejects the same rules as Prometheus.

#include "label/rules/relabel_rule.h"

#include <string.h>

#include "base/memory.h"
#include "label/quote.h"

#define SEPARATOR ";"
#define REGEX "(.*)"
#define REPLACEMENT "$1"

static const char *const action_names[RELABEL_ACTIONS] = {
    [RELABEL_REPLACE] = "replace",     [RELABEL_KEEP] = "keep",
    [RELABEL_DROP] = "drop",           [RELABEL_HASHMOD] = "hashmod",
    [RELABEL_LABELMAP] = "labelmap",   [RELABEL_LABELDROP] = "labeldrop",
    [RELABEL_LABELKEEP] = "labelkeep", [RELABEL_LOWERCASE] = "lowercase",
    [RELABEL_UPPERCASE] = "uppercase", [RELABEL_KEEPEQUAL] = "keepequal",
    [RELABEL_DROPEQUAL] = "dropequal"};

const char *relabel_action_name(enum relabel_action action)
{
    return action_names[action];
}

static void release_rule(struct relabel_rule *rule)
{
    for (size_t i = 0; i < rule->source_count; i++)
        free(rule->sources[i]);
    free(rule->sources);
    free(rule->separator);
    free(rule->target);
    free(rule->replacement);
    regex_free(rule->regex);
}

void relabel_release(struct relabel *relabel)
{
    for (size_t i = 0; i < relabel->count; i++)
        release_rule(&relabel->rules[i]);
    free(relabel->rules);
    *relabel = (struct relabel){0};
}

/* Which fields an action takes, beside source_labels and separator. */
static bool takes_target(enum relabel_action action)
{
    return action == RELABEL_REPLACE || action == RELABEL_HASHMOD || action == RELABEL_LOWERCASE ||
           action == RELABEL_UPPERCASE || action == RELABEL_KEEPEQUAL ||
           action == RELABEL_DROPEQUAL;
}

static int check_target(const struct relabel_config *config, struct error *error)
{
    const char *target = config->target_label ? config->target_label : "";
    const char *action = action_names[config->action];
    if (!takes_target(config->action))
        return 0;
    if (!*target)
        return error_set(error, -EINVAL, "The action %s requires a target_label.", action);
    if (!label_name_valid(target, strlen(target)))
        return error_set(error, -EINVAL,
                         "\"%.100s\" is not a valid target_label for the action %s.", target,
                         action);
    return 0;
}

/* Is there something else than the default? */
static bool differs(const char *text, const char *otherwise)
{
    return text && strcmp(text, otherwise) != 0;
}

static int check_fields(const struct relabel_config *config, struct error *error)
{
    const char *action = action_names[config->action];
    bool regex = differs(config->regex, REGEX), separator = differs(config->separator, SEPARATOR);
    bool replacement = differs(config->replacement, REPLACEMENT);
    switch (config->action) {
    case RELABEL_HASHMOD:
        if (!config->modulus)
            return error_set(error, -EINVAL, "The action hashmod requires a modulus other than 0.");
        return 0;
    case RELABEL_LOWERCASE:
    case RELABEL_UPPERCASE:
        if (replacement)
            return error_set(error, -EINVAL, "The action %s accepts no replacement.", action);
        return 0;
    case RELABEL_KEEPEQUAL:
    case RELABEL_DROPEQUAL:
        if (regex || separator || replacement || config->modulus)
            return error_set(error, -EINVAL,
                             "The action %s accepts only source_labels and target_label.", action);
        return 0;
    case RELABEL_LABELDROP:
    case RELABEL_LABELKEEP:
        if (separator || replacement || config->source_count || config->target_label ||
            config->modulus)
            return error_set(error, -EINVAL, "The action %s accepts only a regex.", action);
        return 0;
    case RELABEL_LABELMAP:
        if (config->replacement &&
            !label_name_valid(config->replacement, strlen(config->replacement)))
            return error_set(error, -EINVAL,
                             "\"%.100s\" is not a valid replacement for the action labelmap: it "
                             "must be the name of a label.",
                             config->replacement);
        return 0;
    default:
        return 0;
    }
}

static int check_sources(const struct relabel_config *config, struct error *error)
{
    if (config->source_count > RELABEL_SOURCES_MAX)
        return error_set(error, -E2BIG, "A relabelling rule has more than %d source_labels.",
                         RELABEL_SOURCES_MAX);
    for (size_t i = 0; i < config->source_count; i++)
        if (!label_name_valid(config->source_labels[i], strlen(config->source_labels[i])))
            return error_set(error, -EINVAL, "\"%.100s\" in source_labels is not a valid name.",
                             config->source_labels[i]);
    return 0;
}

static char *copy_or(const char *text, const char *otherwise)
{
    return memory_strdup(text ? text : otherwise);
}

int relabel_add(struct relabel *relabel, const struct relabel_config *config, struct error *error)
{
    struct regex *regex;
    if (relabel->count == RELABEL_RULES_MAX)
        return error_set(error, -E2BIG, "There are more than %d relabelling rules.",
                         RELABEL_RULES_MAX);
    int result = check_sources(config, error);
    if (result == 0)
        result = check_target(config, error);
    if (result == 0)
        result = check_fields(config, error);
    if (result == 0)
        result = regex_new(config->regex ? config->regex : REGEX, true, "a relabelling rule",
                           &regex, error);
    if (result < 0)
        return result;
    struct relabel_rule rule = {
        .action = config->action,
        .sources = memory_zalloc(config->source_count, sizeof(char *)),
        .source_count = config->source_count,
        .separator = copy_or(config->separator, SEPARATOR),
        .target = copy_or(config->target_label, ""),
        .replacement = copy_or(config->replacement, REPLACEMENT),
        .regex = regex,
        .modulus = config->modulus,
    };
    for (size_t i = 0; i < config->source_count; i++)
        rule.sources[i] = memory_strdup(config->source_labels[i]);
    array_reserve(relabel->rules, relabel->capacity, relabel->count + 1);
    relabel->rules[relabel->count++] = rule;
    return 0;
}
