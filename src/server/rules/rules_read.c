// SPDX-License-Identifier: Apache-2.0
// Rules from YAML: see rules.h.

#include <string.h>

#include "base/memory.h"
#include "query/query.h"
#include "server/rules/rules.h"

#define SECOND_NS 1000000000ll
#define DAY_NS (86400 * SECOND_NS)

const char *const sli_kind_names[SLI_KINDS] = {
    "share", "rate",    "per_request",    "level", "growth",        "quantile",
    "ratio", "unnamed", "agent_overhead", "cost",  "upload_success"};

static bool is_name(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!(text[i] == '_' || (text[i] >= 'a' && text[i] <= 'z') ||
              (text[i] >= 'A' && text[i] <= 'Z') || (i && text[i] >= '0' && text[i] <= '9')))
            return false;
    return length && length < RULES_NAME_BYTES;
}

static bool needs_query(enum sli_kind kind)
{
    return kind != SLI_AGENT_OVERHEAD && kind != SLI_UPLOAD_SUCCESS;
}

static void check_query(struct problems *problems, const struct yaml_node *node, const char *key,
                        const char *text)
{
    struct query query = {0};
    struct error error = {0};
    if (query_parse(text, &query, &error) < 0)
        problems_add(problems, node, "%s: %s", key, error.text);
    query_release(&query);
}

static void read_by(struct settings *section, struct sli_rule *sli)
{
    const struct yaml_node *list = settings_strings(section, "by");
    if (!list)
        sli->by[sli->by_count++] = LABEL_SERVICE_NAME;
    for (size_t i = 0; list && i < list->count; i++) {
        const char *label = list->values[i]->text;
        if (sli->by_count == RULES_BY_MAX) {
            problems_add(section->problems, list, "The limit of by is %d labels", RULES_BY_MAX);
            return;
        }
        sli->by[sli->by_count++] = strcmp(label, "service") ? label : LABEL_SERVICE_NAME;
    }
}

static void check_sli(struct problems *problems, const struct yaml_node *node,
                      const struct sli_rule *sli)
{
    const char *kind = sli_kind_names[sli->kind];
    if (needs_query(sli->kind) != (sli->query != NULL))
        problems_add(problems, node, "An SLI of the kind %s %s a query", kind,
                     sli->query ? "doesn't take" : "needs");
    if ((sli->kind == SLI_RATIO) != (sli->of != NULL))
        problems_add(problems, node, "%s",
                     sli->of ? "Only an SLI of the kind ratio takes of"
                             : "An SLI of the kind ratio needs of, the query to divide by");
    if (sli->kind == SLI_SHARE && !sli->function)
        problems_add(problems, node, "An SLI of the kind share needs a function");
    if (sli->function && (sli->kind == SLI_GROWTH || sli->kind == SLI_UNNAMED ||
                          sli->kind == SLI_RATIO || !needs_query(sli->kind)))
        problems_add(problems, node, "An SLI of the kind %s doesn't take a function", kind);
    if ((sli->kind == SLI_QUANTILE) != (sli->per != NULL))
        problems_add(problems, node, "%s",
                     sli->per ? "Only an SLI of the kind quantile takes per"
                              : "An SLI of the kind quantile needs per, the label of processes");
    if (sli->query)
        check_query(problems, node, "query", sli->query);
    if (sli->of)
        check_query(problems, node, "of", sli->of);
}

static void read_sli(struct rule_set *rules, struct problems *problems,
                     const struct yaml_node *node)
{
    struct settings section;
    struct sli_rule sli = {.window_ns = 300 * SECOND_NS, .quantile = 0.95, .limit = 1};
    unsigned kind = SLI_RATE;
    sli.line = node->line;
    settings_open(&section, problems, node, "slis");
    settings_string(&section, "name", &sli.name);
    settings_choice(&section, "kind", sli_kind_names, SLI_KINDS, &kind);
    settings_string(&section, "query", &sli.query);
    settings_string(&section, "of", &sli.of);
    settings_string(&section, "function", &sli.function);
    settings_duration(&section, "window", 10 * SECOND_NS, DAY_NS, &sli.window_ns);
    settings_string(&section, "per", &sli.per);
    settings_double(&section, "quantile", 0, 1, &sli.quantile);
    settings_double(&section, "limit", 1e-9, 1e18, &sli.limit);
    sli.kind = (enum sli_kind)kind;
    if (needs_query(sli.kind) && sli.kind != SLI_UNNAMED)
        read_by(&section, &sli);
    settings_close(&section);
    if (!sli.name || !is_name(sli.name))
        problems_add(problems, node, "An SLI needs a name of at most %d letters, digits and _",
                     RULES_NAME_BYTES - 1);
    else if (rule_set_find(rules, sli.name) >= 0)
        problems_add(problems, node, "Two SLIs have the name %s", sli.name);
    check_sli(problems, node, &sli);
    if (sli.name)
        rules->slis[rules->sli_count++] = sli;
}

static void read_slis(struct rule_set *rules, struct settings *settings)
{
    const struct yaml_node *list = settings_list(settings, "slis");
    if (list && list->count > RULES_SLIS_MAX) {
        problems_add(settings->problems, list, "The limit is %d SLIs", RULES_SLIS_MAX);
        return;
    }
    rules->slis = memory_zalloc((list ? list->count : 0) + 1, sizeof(*rules->slis));
    for (size_t i = 0; list && i < list->count; i++)
        read_sli(rules, settings->problems, list->values[i]);
}

struct rule_set *rule_set_read(const char *path, struct problems *problems)
{
    struct rule_set *rules = memory_zalloc(1, sizeof(*rules));
    struct settings settings;
    struct error error = {0};
    size_t before = problems->count;
    rules->interval_ns = 60 * SECOND_NS;
    rules->delay_ns = 60 * SECOND_NS;
    atomic_init(&rules->references, 1);
    if (yaml_tree_read_file(path, &rules->tree, &error) < 0) {
        problems_add_error(problems, NULL, &error);
    } else {
        settings_open(&settings, problems, rules->tree.root, "the rules");
        settings_duration(&settings, "interval", SECOND_NS, 3600 * SECOND_NS, &rules->interval_ns);
        settings_duration(&settings, "delay", 0, 3600 * SECOND_NS, &rules->delay_ns);
        read_slis(rules, &settings);
        alert_rules_read(rules, &settings);
        settings_close(&settings);
    }
    if (problems->count == before)
        return rules;
    rule_set_unref(rules);
    return NULL;
}

struct rule_set *rule_set_ref(struct rule_set *rules)
{
    atomic_fetch_add(&rules->references, 1);
    return rules;
}

void rule_set_unref(struct rule_set *rules)
{
    if (!rules || atomic_fetch_sub(&rules->references, 1) != 1)
        return;
    free(rules->slis);
    alert_rules_release(rules);
    yaml_tree_release(&rules->tree);
    free(rules);
}

int rule_set_find(const struct rule_set *rules, const char *sli)
{
    for (size_t i = 0; i < rules->sli_count; i++)
        if (!strcmp(rules->slis[i].name, sli))
            return (int)i;
    return -1;
}
