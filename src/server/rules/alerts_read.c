// SPDX-License-Identifier: Apache-2.0
// Alerts, owners, maintenance and receivers from YAML: see rules.h.

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/regex.h"
#include "query/query.h"
#include "server/rules/rules.h"
#include "server/watch/book.h"

#define SECOND_NS 1000000000ll
#define DAY_NS (86400 * SECOND_NS)

static bool is_alert_name(const char *text)
{
    size_t length = strlen(text);
    return length && length < RULES_NAME_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == length;
}

static int find_alert(const struct rule_set *rules, const char *name)
{
    for (size_t i = 0; i < rules->alert_count; i++)
        if (!strcmp(rules->alerts[i].name, name))
            return (int)i;
    return -1;
}

static const struct yaml_node *list_of(struct settings *settings, const char *key, size_t most,
                                       const char *things)
{
    const struct yaml_node *list = settings_list(settings, key);
    if (list && list->count > most) {
        problems_add(settings->problems, list, "The limit is %zu %s", most, things);
        return NULL;
    }
    return list;
}

static bool is_http(const char *url)
{
    return !strncmp(url, "http://", 7) || !strncmp(url, "https://", 8);
}

/* ---- alerts ---- */

static void read_findings(struct settings *section, struct alert_rule *alert)
{
    const struct yaml_node *list = settings_strings(section, "findings");
    for (size_t i = 0; list && i < list->count; i++) {
        unsigned kind = 0;
        while (kind < WATCH_KINDS && strcmp(watch_kind_names[kind], list->values[i]->text))
            kind++;
        if (kind < WATCH_KINDS)
            alert->findings |= 1u << kind;
        else
            problems_add(section->problems, list->values[i],
                         "findings must be regression or leak, not \"%.40s\"",
                         list->values[i]->text);
    }
}

static void check_alert(struct problems *problems, const struct yaml_node *node,
                        const struct alert_rule *alert, const char *sli)
{
    bool limits = !isnan(alert->above) || !isnan(alert->below);
    if ((sli != NULL) == (alert->findings != 0))
        problems_add(problems, node, "An alert needs either an sli or findings");
    else if (sli && alert->sli < 0)
        problems_add(problems, node, "There is no SLI with the name %.64s", sli);
    if ((sli != NULL) != limits)
        problems_add(problems, node, "%s",
                     sli ? "An alert over an SLI needs above or below"
                         : "Only an alert over an SLI takes above and below");
    if (!isnan(alert->objective) && (!sli || !(alert->objective < 1)))
        problems_add(problems, node,
                     "The objective is the share of values of an SLI that must be good, below 1");
    if (alert->runbook && !is_http(alert->runbook) && alert->runbook[0] != '/')
        problems_add(problems, node, "The runbook must be a URL or a path of the external_url");
}

static void read_alert(struct rule_set *rules, struct problems *problems,
                       const struct yaml_node *node)
{
    struct settings section;
    struct alert_rule alert = {.severity = "ticket",
                               .sli = -1,
                               .above = NAN,
                               .below = NAN,
                               .objective = NAN,
                               .fast = 4,
                               .slow = 1.2,
                               .no_data_ns = 900 * SECOND_NS};
    const char *sli = NULL;
    settings_open(&section, problems, node, "alerts");
    settings_string(&section, "name", &alert.name);
    settings_string(&section, "sli", &sli);
    read_findings(&section, &alert);
    settings_double(&section, "above", -1e18, 1e18, &alert.above);
    settings_double(&section, "below", -1e18, 1e18, &alert.below);
    settings_duration(&section, "for", 0, DAY_NS, &alert.for_ns);
    settings_duration(&section, "resolve_after", 0, DAY_NS, &alert.resolve_ns);
    settings_duration(&section, "no_data", 0, 7 * DAY_NS, &alert.no_data_ns);
    settings_string(&section, "severity", &alert.severity);
    settings_string(&section, "runbook", &alert.runbook);
    settings_double(&section, "objective", 0, 1, &alert.objective);
    settings_double(&section, "fast", 1, 1000, &alert.fast);
    settings_double(&section, "slow", 1, 1000, &alert.slow);
    const struct yaml_node *inhibitors = settings_strings(&section, "inhibited_by");
    settings_close(&section);
    alert.sli = sli ? rule_set_find(rules, sli) : -1;
    check_alert(problems, node, &alert, sli);
    if (inhibitors && inhibitors->count > RULES_INHIBITORS_MAX)
        problems_add(problems, inhibitors, "The limit of inhibited_by is %d alerts",
                     RULES_INHIBITORS_MAX);
    for (size_t i = 0; inhibitors && i < MIN(inhibitors->count, (size_t)RULES_INHIBITORS_MAX); i++)
        alert.inhibited_by[alert.inhibitor_count++] = inhibitors->values[i]->text;
    if (!alert.name || !is_alert_name(alert.name))
        problems_add(problems, node, "An alert needs a name of at most %d letters, digits and _",
                     RULES_NAME_BYTES - 1);
    else if (find_alert(rules, alert.name) >= 0)
        problems_add(problems, node, "Two alerts have the name %s", alert.name);
    else
        rules->alerts[rules->alert_count++] = alert;
}

static void read_alerts(struct rule_set *rules, struct settings *settings)
{
    const struct yaml_node *list = list_of(settings, "alerts", RULES_ALERTS_MAX, "alerts");
    rules->alerts = memory_zalloc((list ? list->count : 0) + 1, sizeof(*rules->alerts));
    for (size_t i = 0; list && i < list->count; i++)
        read_alert(rules, settings->problems, list->values[i]);
    for (size_t i = 0; i < rules->alert_count; i++)
        for (size_t k = 0; k < rules->alerts[i].inhibitor_count; k++)
            if (find_alert(rules, rules->alerts[i].inhibited_by[k]) < 0)
                problems_add(settings->problems, list, "%s is inhibited_by %.64s, which does not exist",
                             rules->alerts[i].name, rules->alerts[i].inhibited_by[k]);
}

/* ---- owners and maintenance ---- */

static void read_service(struct settings *section, const struct yaml_node *node,
                         struct regex **ret_regex)
{
    const char *text = NULL;
    struct error error = {0};
    if (settings_string(section, "service", &text) &&
        regex_new(text, true, "service", ret_regex, &error) < 0)
        problems_add_error(section->problems, node, &error);
}

static void read_owners(struct rule_set *rules, struct settings *settings)
{
    const struct yaml_node *list = list_of(settings, "owners", RULES_OWNERS_MAX, "owners");
    rules->owners = memory_zalloc((list ? list->count : 0) + 1, sizeof(*rules->owners));
    for (size_t i = 0; list && i < list->count; i++) {
        struct settings section;
        struct owner_rule *owner = &rules->owners[rules->owner_count++];
        settings_open(&section, settings->problems, list->values[i], "owners");
        read_service(&section, list->values[i], &owner->service);
        settings_string(&section, "owner", &owner->owner);
        settings_close(&section);
        if (!owner->owner || !owner->service)
            problems_add(settings->problems, list->values[i],
                         "An owner needs service, an expression, and owner");
    }
}

static void read_moment(struct settings *section, const struct yaml_node *node, const char *key,
                        int64_t *ret_ns)
{
    const char *text = NULL;
    struct error error = {0};
    if (!settings_string(section, key, &text))
        problems_add(section->problems, node, "A maintenance window needs %s", key);
    else if (query_time(text, clock_ns(CLOCK_REALTIME), ret_ns, &error) < 0)
        problems_add_error(section->problems, node, &error);
}

static void read_maintenance(struct rule_set *rules, struct settings *settings)
{
    const struct yaml_node *list =
        list_of(settings, "maintenance", RULES_MAINTENANCE_MAX, "maintenance windows");
    rules->maintenance = memory_zalloc((list ? list->count : 0) + 1, sizeof(*rules->maintenance));
    for (size_t i = 0; list && i < list->count; i++) {
        struct settings section;
        struct maintenance *window = &rules->maintenance[rules->maintenance_count++];
        window->reason = "";
        settings_open(&section, settings->problems, list->values[i], "maintenance");
        read_moment(&section, list->values[i], "from", &window->from_ns);
        read_moment(&section, list->values[i], "to", &window->to_ns);
        read_service(&section, list->values[i], &window->service);
        settings_string(&section, "reason", &window->reason);
        settings_close(&section);
        if (window->to_ns < window->from_ns)
            problems_add(settings->problems, list->values[i],
                         "The maintenance window ends before it begins");
    }
}

/* ---- receivers ---- */

bool notify_allows(const char *entry, const char *url)
{
    size_t length = strlen(entry);
    const char *authority = strstr(url, "://");
    if (length == strlen(url) + 1 && entry[length - 1] == '/')
        length--; /* http://host is http://host/ */
    if (!authority || !is_http(url) || strncmp(url, entry, length))
        return false;
    size_t host = strcspn(authority + 3, "/?#");
    const char *scheme_end = strstr(entry, "://");
    /* All of scheme, host and port has to be in the entry, and nobody hides another host. */
    if (!scheme_end || strcspn(scheme_end + 3, "/?#") < host || memchr(authority + 3, '@', host))
        return false;
    if (strstr(url, "..") || strpbrk(url, "\\#") || strcasestr(url, "%2e"))
        return false;
    return entry[length - 1] == '/' || !url[length] || url[length] == '/' || url[length] == '?';
}

static void check_url(struct problems *problems, const struct yaml_node *node, const char *url,
                      const struct yaml_node *allow)
{
    bool allowed = false;
    for (size_t i = 0; allow && i < allow->count; i++)
        allowed |= *allow->values[i]->text && notify_allows(allow->values[i]->text, url);
    if (!is_http(url))
        problems_add(problems, node, "A receiver needs a URL that begins with http:// or https://");
    else if (!allowed)
        problems_add(problems, node, "notify.allow permits no requests to %.200s", url);
}

static void read_secret(struct problems *problems, const struct yaml_node *node, const char *path,
                        struct receiver *receiver)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct error error = {0};
    if (file_read(path, RULES_SECRET_BYTES, &text, &error) < 0) {
        problems_add_error(problems, node, &error);
        return;
    }
    while (text.length && strchr(" \t\r\n", text.data[text.length - 1]))
        text.length--;
    if (text.length < 16) {
        problems_add(problems, node, "The secret in %s must be at least 16 bytes long", path);
        return;
    }
    receiver->secret_length = text.length;
    receiver->secret = memory_strdup(buffer_text(&text));
}

static struct receiver *add_receiver(struct rule_set *rules, struct problems *problems,
                                     const struct yaml_node *node, enum receiver_kind kind)
{
    struct notify_rules *notify = &rules->notify;
    if (notify->receiver_count == RULES_RECEIVERS_MAX) {
        problems_add(problems, node, "The limit is %d receivers", RULES_RECEIVERS_MAX);
        return NULL;
    }
    struct receiver *receiver = &notify->receivers[notify->receiver_count++];
    receiver->kind = kind;
    return receiver;
}

static void read_webhook(struct rule_set *rules, struct problems *problems,
                         const struct yaml_node *node, const struct yaml_node *allow)
{
    struct settings section;
    const char *secret = NULL;
    struct receiver *receiver = add_receiver(rules, problems, node, RECEIVER_WEBHOOK);
    if (!receiver)
        return;
    settings_open(&section, problems, node, "notify.webhooks");
    if (!settings_string(&section, "url", &receiver->url))
        problems_add(problems, node, "A webhook needs a url");
    if (settings_string(&section, "secret_file", &secret))
        read_secret(problems, node, secret, receiver);
    settings_close(&section);
    if (receiver->url)
        check_url(problems, node, receiver->url, allow);
}

static void read_notify(struct rule_set *rules, struct settings *settings)
{
    struct settings section;
    struct notify_rules *notify = &rules->notify;
    *notify = (struct notify_rules){.external_url = "",
                                    .group_wait_ns = 30 * SECOND_NS,
                                    .group_interval_ns = 300 * SECOND_NS,
                                    .repeat_ns = 4 * 3600 * SECOND_NS};
    settings_open(&section, settings->problems, settings_map(settings, "notify"), "notify");
    settings_string(&section, "external_url", &notify->external_url);
    settings_duration(&section, "group_wait", 0, DAY_NS, &notify->group_wait_ns);
    settings_duration(&section, "group_interval", SECOND_NS, DAY_NS, &notify->group_interval_ns);
    settings_duration(&section, "repeat", 60 * SECOND_NS, 30 * DAY_NS, &notify->repeat_ns);
    const struct yaml_node *allow = settings_strings(&section, "allow");
    const struct yaml_node *managers = settings_strings(&section, "alertmanagers");
    for (size_t i = 0; managers && i < managers->count; i++) {
        struct receiver *receiver = add_receiver(rules, settings->problems, managers->values[i],
                                                 RECEIVER_ALERTMANAGER);
        if (!receiver)
            break;
        receiver->url = managers->values[i]->text;
        check_url(settings->problems, managers->values[i], receiver->url, allow);
    }
    const struct yaml_node *webhooks = settings_list(&section, "webhooks");
    for (size_t i = 0; webhooks && i < webhooks->count; i++)
        read_webhook(rules, settings->problems, webhooks->values[i], allow);
    settings_close(&section);
    if (*notify->external_url && !is_http(notify->external_url))
        problems_add(settings->problems, NULL, "notify.external_url must be a URL");
}

void alert_rules_read(struct rule_set *rules, struct settings *settings)
{
    read_alerts(rules, settings);
    read_owners(rules, settings);
    read_maintenance(rules, settings);
    read_notify(rules, settings);
}

void alert_rules_release(struct rule_set *rules)
{
    for (size_t i = 0; i < rules->owner_count; i++)
        regex_free(rules->owners[i].service);
    for (size_t i = 0; i < rules->maintenance_count; i++)
        regex_free(rules->maintenance[i].service);
    for (size_t i = 0; i < rules->notify.receiver_count; i++) {
        struct receiver *receiver = &rules->notify.receivers[i];
        if (receiver->secret)
            explicit_bzero(receiver->secret, receiver->secret_length);
        free(receiver->secret);
    }
    free(rules->alerts);
    free(rules->owners);
    free(rules->maintenance);
}
