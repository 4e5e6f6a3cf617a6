// SPDX-License-Identifier: Apache-2.0
// The agent's settings out of YAML: see settings.h.

#include "agent/settings/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/identity/identity.h"
#include "base/memory.h"

#define POOL_BYTES_DEFAULT (16u << 20)
#define SPOOL_BYTES_DEFAULT (256ull << 20)
#define SECOND_NS 1000000000ll
#define HOUR_NS (3600 * SECOND_NS)
#define SPOOL_AGE_DEFAULT_NS (7 * 86400000000000ll)
#define CATCH_UP_DEFAULT 10

static void match_release(struct target_match *match)
{
    globs_release(&match->names);
    globs_release(&match->exes);
    globs_release(&match->cgroups);
    globs_release(&match->users);
    globs_release(&match->containers);
    for (size_t i = 0; i < match->variable_count; i++) {
        free(match->variables[i].name);
        free(match->variables[i].pattern);
    }
}

void agent_settings_release(struct agent_settings *settings)
{
    char *texts[] = {settings->server_url,  settings->token_file,
                     settings->ca_file,     settings->certificate_file,
                     settings->key_file,    settings->data,
                     settings->proxy,       settings->status,
                     settings->kubelet,     settings->off_file,
                     settings->user,        settings->pod_labels_file,
                     settings->api_server,  settings->kubelet_read_only,
                     settings->node,        settings->pods_token_file,
                     settings->pods_ca_file};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        free(texts[i]);
    labels_release(&settings->external_labels);
    globs_release(&settings->variables);
    for (size_t i = 0; i < settings->select_count; i++)
        match_release(&settings->select[i]);
    free(settings->select);
    for (size_t i = 0; i < settings->rule_count; i++) {
        match_release(&settings->rules[i].match);
        labels_release(&settings->rules[i].labels);
    }
    free(settings->rules);
    if (settings->has_label_rules)
        label_rules_release(&settings->label_rules);
    *settings = (struct agent_settings){0};
}

/* ---- matching ---- */

static bool fits(const struct globs *globs, const char *text)
{
    return !globs->count || globs_match(globs, text);
}

bool target_matches(const struct target_match *match, const struct process_facts *facts)
{
    const char *exe = facts->exe ? facts->exe : "";
    if (!fits(&match->names, facts->name) || !fits(&match->cgroups, facts->cgroup) ||
        !fits(&match->users, facts->user))
        return false;
    if (!fits(&match->exes, exe) && !globs_match(&match->exes, path_name(exe)))
        return false;
    if (match->containers.count && (!facts->identity.container_id[0] ||
                                    !globs_match(&match->containers, facts->identity.container_id)))
        return false;
    for (size_t i = 0; i < match->variable_count; i++) {
        const char *value = labels_get(&facts->environment, match->variables[i].name);
        if (!value || !glob_matches(match->variables[i].pattern, value))
            return false;
    }
    return true;
}

/* ---- reading ---- */

/* One pattern or a list of them. */
static void read_globs(struct settings *section, const char *key, struct globs *globs)
{
    const struct yaml_node *node = settings_node(section, key);
    if (!node || node->kind == YAML_NULL)
        return;
    if (node->kind == YAML_MAP) {
        problems_add(section->problems, node, "%s of %s must be a pattern or a list of patterns",
                     key, section->where);
        return;
    }
    if (node->kind == YAML_SCALAR)
        globs_add(globs, node->text);
    for (size_t i = 0; node->kind == YAML_LIST && i < node->count; i++) {
        if (node->values[i]->kind == YAML_SCALAR)
            globs_add(globs, node->values[i]->text);
        else
            problems_add(section->problems, node->values[i], "A pattern must be a string");
    }
}

static void read_variables(struct settings *section, struct target_match *match,
                           struct globs *allowed)
{
    const struct yaml_node *map = settings_map(section, "env");
    for (size_t i = 0; map && i < map->count; i++) {
        char name[160];
        if (match->variable_count == AGENT_VARIABLES_MAX || map->values[i]->kind != YAML_SCALAR) {
            problems_add(section->problems, map->values[i],
                         "env must have at most %d names of variables, each with a pattern",
                         AGENT_VARIABLES_MAX);
            return;
        }
        /* Labels that a rule refers to must be collected. */
        globs_add(allowed, map->keys[i]->text);
        snprintf(name, sizeof(name), "__meta_env_%s", map->keys[i]->text);
        match->variables[match->variable_count].name = memory_strdup(name);
        match->variables[match->variable_count++].pattern = memory_strdup(map->values[i]->text);
    }
}

static void read_match(struct problems *problems, const struct yaml_node *node,
                       struct target_match *match, struct globs *allowed)
{
    struct settings section;
    settings_open(&section, problems, node, "A process selector");
    read_globs(&section, "name", &match->names);
    read_globs(&section, "exe", &match->exes);
    read_globs(&section, "cgroup", &match->cgroups);
    read_globs(&section, "user", &match->users);
    read_globs(&section, "container", &match->containers);
    read_variables(&section, match, allowed);
    settings_close(&section);
}

static void read_labels(struct settings *section, const char *key, struct labels *labels)
{
    const struct yaml_node *map = settings_map(section, key);
    for (size_t i = 0; map && i < map->count; i++) {
        if (map->values[i]->kind != YAML_SCALAR)
            problems_add(section->problems, map->values[i],
                         "The value of the label %s must be a string", map->keys[i]->text);
        else
            labels_set(labels, map->keys[i]->text, map->values[i]->text);
    }
}

static void read_rules(struct agent_settings *settings, struct settings *top)
{
    const struct yaml_node *list = settings_list(top, "rules");
    for (size_t i = 0; list && i < list->count; i++) {
        struct target_rule rule = {0};
        struct settings section;
        if (i == AGENT_RULES_MAX) {
            problems_add(top->problems, list, "There are more than %d rules", AGENT_RULES_MAX);
            return;
        }
        settings_open(&section, top->problems, list->values[i], "A rule");
        const struct yaml_node *match = settings_map(&section, "match");
        if (!match)
            problems_add(top->problems, list->values[i],
                         "A rule requires `match`, which selects its processes");
        read_match(top->problems, match, &rule.match, &settings->variables);
        read_labels(&section, "labels", &rule.labels);
        settings_bool(&section, "drop", &rule.drop);
        settings_close(&section);
        array_reserve(settings->rules, settings->rule_capacity, settings->rule_count + 1);
        settings->rules[settings->rule_count++] = rule;
    }
}

static void read_select(struct agent_settings *settings, struct settings *top)
{
    const struct yaml_node *list = settings_list(top, "select");
    for (size_t i = 0; list && i < list->count; i++) {
        struct target_match match = {0};
        if (i == AGENT_RULES_MAX) {
            problems_add(top->problems, list, "`select` has more than %d entries", AGENT_RULES_MAX);
            return;
        }
        read_match(top->problems, list->values[i], &match, &settings->variables);
        array_reserve(settings->select, settings->select_capacity, settings->select_count + 1);
        settings->select[settings->select_count++] = match;
    }
}

static void read_text(struct settings *section, const char *key, char **text)
{
    const char *value;
    if (settings_string(section, key, &value)) {
        free(*text);
        *text = memory_strdup(value);
    }
}

static void read_server(struct agent_settings *settings, struct settings *top)
{
    static const char *const compression[] = {"zstd", "gzip"}, *const protocol[] = {"http", "grpc"};
    struct settings section;
    settings_open(&section, top->problems, settings_map(top, "server"), "server");
    read_text(&section, "url", &settings->server_url);
    read_text(&section, "token_file", &settings->token_file);
    read_text(&section, "ca_file", &settings->ca_file);
    read_text(&section, "certificate_file", &settings->certificate_file);
    read_text(&section, "key_file", &settings->key_file);
    read_text(&section, "proxy", &settings->proxy);
    settings_choice(&section, "compression", compression, ARRAY_LENGTH(compression),
                    &settings->compression);
    settings_choice(&section, "protocol", protocol, ARRAY_LENGTH(protocol), &settings->protocol);
    settings_u64(&section, "catch_up", 1, 1000, &settings->catch_up);
    settings_close(&section);
}

static void read_kubernetes(struct agent_settings *settings, struct settings *top)
{
    struct settings section;
    settings_open(&section, top->problems, settings_map(top, "kubernetes"), "kubernetes");
    read_text(&section, "kubelet", &settings->kubelet);
    read_text(&section, "api_server", &settings->api_server);
    read_text(&section, "read_only", &settings->kubelet_read_only);
    read_text(&section, "node", &settings->node);
    read_text(&section, "token_file", &settings->pods_token_file);
    read_text(&section, "ca_file", &settings->pods_ca_file);
    settings_bool(&section, "insecure_skip_verify", &settings->pods_insecure);
    read_text(&section, "labels_file", &settings->pod_labels_file);
    settings_close(&section);
}

static void read_symbols(struct agent_settings *settings, struct settings *top)
{
    static const char *const sent[] = {"debug", "whole", "none"};
    struct settings section;
    settings_open(&section, top->problems, settings_map(top, "symbols"), "symbols");
    settings_choice(&section, "upload", sent, ARRAY_LENGTH(sent), &settings->symbols);
    settings_size(&section, "file_limit", 1u << 20, 1ull << 40, &settings->symbols_file_bytes);
    settings_close(&section);
}

/* Permissions: who may turn capture off, and what the server may request. */
static void read_control(struct agent_settings *settings, struct settings *top)
{
    struct settings section;
    read_text(top, "off_file", &settings->off_file);
    settings_open(&section, top->problems, settings_map(top, "recordings"), "recordings");
    settings_bool(&section, "allowed", &settings->recordings);
    settings_u64(&section, "rate_max", 1, 10000, &settings->recording_rate_max);
    settings_u64(&section, "seconds_max", 1, 3600, &settings->recording_seconds_max);
    settings_u64(&section, "at_once_max", 1, 4, &settings->recordings_max);
    settings_close(&section);
    settings_open(&section, top->problems, settings_map(top, "sampling"), "sampling");
    settings_bool(&section, "allowed", &settings->sampling_allowed);
    settings_u64(&section, "rate_max", 1, AGENT_RATE_MAX, &settings->sampling_rate_max);
    settings_u64(&section, "wall_rate_max", 1, AGENT_RATE_MAX, &settings->sampling_wall_rate_max);
    settings_close(&section);
}

static void read_budget(struct agent_settings *settings, struct settings *top)
{
    struct settings section;
    settings_open(&section, top->problems, settings_map(top, "budget"), "budget");
    settings_double(&section, "cpu_percent", 0.001, 100, &settings->budget_cpu_percent);
    settings_size(&section, "memory", 32u << 20, UINT64_MAX, &settings->budget_memory_bytes);
    settings_size(&section, "upload", 1 << 10, UINT64_MAX, &settings->budget_upload_bytes);
    settings_size(&section, "symbols", 1u << 20, 1ull << 40, &settings->budget_symbols_bytes);
    settings_duration(&section, "patience", SECOND_NS, HOUR_NS, &settings->budget_patience_ns);
    settings_close(&section);
}

static void set_defaults(struct agent_settings *settings)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    *settings = (struct agent_settings){.rate_hz = AGENT_RATE_DEFAULT,
                                        .wall = true,
                                        .rss = true,
                                        .rss_interval_ns = 30 * SECOND_NS,
                                        .wall_rate_hz = AGENT_RATE_DEFAULT,
                                        .heap = true,
                                        .sampling_allowed = true,
                                        .sampling_rate_max = AGENT_ORDERED_RATE_MAX,
                                        .sampling_wall_rate_max = AGENT_ORDERED_RATE_MAX,
                                        .kernel_frames = true,
                                        .unwind_pool_bytes = POOL_BYTES_DEFAULT,
                                        .spool_bytes = SPOOL_BYTES_DEFAULT,
                                        .budget_cpu_percent = 1,
                                        .budget_memory_bytes = 128u << 20,
                                        .budget_upload_bytes = 1 << 20,
                                        .budget_symbols_bytes = 16u << 20,
                                        .symbols_file_bytes = 512u << 20,
                                        .budget_patience_ns = 60 * SECOND_NS,
                                        .watchdog_ns = 60 * SECOND_NS,
                                        .confine = true,
                                        .spool_age_ns = SPOOL_AGE_DEFAULT_NS,
                                        .catch_up = CATCH_UP_DEFAULT,
                                        .off_file = memory_strdup(AGENT_OFF_FILE),
                                        .recordings = true,
                                        .recording_rate_max = AGENT_RATE_MAX,
                                        .recording_seconds_max = AGENT_RECORDING_SECONDS,
                                        .recordings_max = 1};
    labels_set(&settings->external_labels, "host", host);
}

void agent_settings_read(struct agent_settings *settings, const struct yaml_node *root,
                         struct problems *problems)
{
    static const char *const symbolize[] = {"server", "host"};
    struct settings top;
    set_defaults(settings);
    settings_open(&top, problems, root, "the configuration");
    read_server(settings, &top);
    read_kubernetes(settings, &top);
    read_budget(settings, &top);
    read_symbols(settings, &top);
    settings_duration(&top, "watchdog", 0, HOUR_NS, &settings->watchdog_ns);
    read_text(&top, "user", &settings->user);
    settings_bool(&top, "confine", &settings->confine);
    read_control(settings, &top);
    read_text(&top, "data", &settings->data);
    read_text(&top, "status", &settings->status);
    settings_u64(&top, "rate", 1, AGENT_RATE_MAX, &settings->rate_hz);
    settings_bool(&top, "wall", &settings->wall);
    settings_u64(&top, "wall_rate", 1, AGENT_RATE_MAX, &settings->wall_rate_hz);
    settings_bool(&top, "heap", &settings->heap);
    settings_bool(&top, "faults", &settings->faults);
    settings_bool(&top, "rss", &settings->rss);
    settings_duration(&top, "rss_interval", 10 * SECOND_NS, HOUR_NS, &settings->rss_interval_ns);
    settings_bool(&top, "kernel_frames", &settings->kernel_frames);
    settings_bool(&top, "interpreter_frames", &settings->interpreter_frames);
    settings_size(&top, "unwind_pool", 1 << 20, 128u << 20, &settings->unwind_pool_bytes);
    settings_size(&top, "spool", 1 << 20, UINT64_MAX, &settings->spool_bytes);
    settings_duration(&top, "spool_age", 60000000000ll, 365 * 86400000000000ll,
                      &settings->spool_age_ns);
    settings_choice(&top, "symbolize", symbolize, ARRAY_LENGTH(symbolize), &settings->symbolize);
    read_labels(&top, "external_labels", &settings->external_labels);
    read_globs(&top, "environment", &settings->variables);
    read_select(settings, &top);
    read_rules(settings, &top);
    label_rules_read(&top, &settings->label_rules);
    settings->has_label_rules = true;
    settings_close(&top);
}
