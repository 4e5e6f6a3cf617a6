// SPDX-License-Identifier: Apache-2.0
// States of alerts: see alerts.h.

#include "server/rules/alerts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "io/regex.h"

const char *const alert_state_names[ALERT_STATES] = {"pending", "firing", "resolved"};

static void alert_release(struct alert *alert)
{
    labels_release(&alert->labels);
    free(alert->tenant);
    free(alert->name);
    free(alert->summary);
    free(alert->link);
    free(alert->runbook);
}

static void group_release(struct alert_group *group)
{
    free(group->url);
    free(group->tenant);
    free(group->service);
    free(group->version);
}

void alerts_release(struct alerts *alerts)
{
    for (size_t i = 0; i < alerts->count; i++)
        alert_release(&alerts->list[i]);
    for (size_t i = 0; i < alerts->group_count; i++)
        group_release(&alerts->groups[i]);
    free(alerts->list);
    free(alerts->groups);
    *alerts = (struct alerts){0};
}

const char *alert_label(const struct alert *alert, const char *name)
{
    const char *value = labels_get(&alert->labels, name);
    return value ? value : "";
}

bool alert_is_sent(const struct alert *alert)
{
    return alert->state == ALERT_FIRING && !alert->muted && !alert->inhibited;
}

static void remove_at(struct alerts *alerts, size_t position)
{
    alert_release(&alerts->list[position]);
    memmove(alerts->list + position, alerts->list + position + 1,
            (--alerts->count - position) * sizeof(*alerts->list));
    alerts->unsaved = true;
}

static bool make_room(struct alerts *alerts)
{
    size_t oldest = SIZE_MAX;
    for (size_t i = 0; i < alerts->count; i++)
        if (alerts->list[i].state == ALERT_RESOLVED &&
            (oldest == SIZE_MAX || alerts->list[i].ended_ns < alerts->list[oldest].ended_ns))
            oldest = i;
    if (oldest == SIZE_MAX)
        return false;
    remove_at(alerts, oldest);
    return true;
}

/* ---- groups ---- */

struct alert_group *alerts_group(struct alerts *alerts, const char *url, const struct alert *alert)
{
    const char *service = alert_label(alert, LABEL_SERVICE_NAME);
    const char *version = alert_label(alert, "version");
    for (size_t i = 0; i < alerts->group_count; i++) {
        struct alert_group *group = &alerts->groups[i];
        if (!strcmp(group->url, url) && !strcmp(group->tenant, alert->tenant) &&
            !strcmp(group->service, service) && !strcmp(group->version, version))
            return group;
    }
    if (alerts->group_count >= ALERT_GROUPS_MAX)
        return NULL;
    array_reserve(alerts->groups, alerts->group_capacity, alerts->group_count + 1);
    struct alert_group *group = &alerts->groups[alerts->group_count++];
    *group = (struct alert_group){.url = memory_strdup(url),
                                  .tenant = memory_strdup(alert->tenant),
                                  .service = memory_strdup(service),
                                  .version = memory_strdup(version)};
    return group;
}

/* Those that were told of everything, and of whose alerts none is left. */
static void forget_groups(struct alerts *alerts, int64_t time_ns)
{
    for (size_t i = 0; i < alerts->group_count;) {
        struct alert_group *group = &alerts->groups[i];
        if (!group->sent && !group->changed_ns && group->sent_ns < time_ns - ALERTS_KEPT_NS) {
            group_release(group);
            *group = alerts->groups[--alerts->group_count];
        } else {
            i++;
        }
    }
}

/* ---- rounds ---- */

void alerts_begin(struct alerts *alerts, int64_t time_ns, int64_t interval_ns,
                  int64_t *ret_elapsed_ns)
{
    int64_t elapsed_ns = alerts->last_ns ? time_ns - alerts->last_ns : interval_ns;
    *ret_elapsed_ns = MIN(MAX(elapsed_ns, (int64_t)0), 2 * interval_ns);
    alerts->last_ns = time_ns;
    for (size_t i = 0; i < alerts->count; i++)
        alerts->list[i].seen = false;
}

static struct alert *find(struct alerts *alerts, const struct alert_candidate *candidate,
                          const struct labels *labels)
{
    for (size_t i = 0; i < alerts->count; i++) {
        struct alert *alert = &alerts->list[i];
        if (alert->state != ALERT_RESOLVED && !strcmp(alert->name, candidate->rule->name) &&
            !strcmp(alert->tenant, candidate->tenant) && labels_equal(&alert->labels, labels))
            return alert;
    }
    return NULL;
}

static void complete_labels(struct labels *labels, const struct rule_set *rules,
                            const struct alert_candidate *candidate)
{
    labels_copy(labels, candidate->labels);
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    labels_set(labels, "severity",
               candidate->severity ? candidate->severity : candidate->rule->severity);
    for (size_t i = 0; service && i < rules->owner_count; i++)
        if (regex_matches(rules->owners[i].service, service, strlen(service))) {
            labels_set(labels, "owner", rules->owners[i].owner);
            return;
        }
}

static void replace_text(char **text, const char *with)
{
    if (*text && !strcmp(*text, with))
        return;
    free(*text);
    *text = memory_strdup(with);
}

static struct alert *add(struct alerts *alerts, const struct alert_candidate *candidate,
                         struct labels *labels, int64_t time_ns)
{
    if (alerts->count >= ALERTS_MAX && !make_room(alerts)) {
        alerts->dropped++;
        return NULL;
    }
    array_reserve(alerts->list, alerts->capacity, alerts->count + 1);
    struct alert *alert = &alerts->list[alerts->count++];
    *alert = (struct alert){.tenant = memory_strdup(candidate->tenant),
                            .name = memory_strdup(candidate->rule->name),
                            .labels = *labels,
                            .since_ns = time_ns,
                            .reason = ""};
    *labels = (struct labels){0};
    snprintf(alert->id, sizeof(alert->id), "a%010llx",
             (unsigned long long)(random_bits() & 0xffffffffffu));
    return alert;
}

static void resolve(struct alerts *alerts, struct alert *alert, const char *reason, int64_t time_ns)
{
    alert->state = ALERT_RESOLVED;
    alert->ended_ns = time_ns;
    alert->reason = reason;
    alerts->version++;
    alerts->unsaved = true;
    log_info("Alert %s of %s resolved (%s).", alert->name, alert_label(alert, LABEL_SERVICE_NAME),
             reason);
}

static void holds(struct alerts *alerts, struct alert *alert,
                  const struct alert_candidate *candidate, int64_t time_ns, int64_t elapsed_ns)
{
    alert->value = candidate->value;
    alert->quiet_ns = alert->absent_ns = 0;
    replace_text(&alert->summary, candidate->summary);
    replace_text(&alert->link, candidate->link);
    replace_text(&alert->runbook, candidate->rule->runbook ? candidate->rule->runbook : "");
    if (alert->state == ALERT_PENDING && alert->since_ns < time_ns)
        alert->pending_ns += elapsed_ns;
    if (alert->state == ALERT_PENDING && alert->pending_ns >= candidate->rule->for_ns) {
        alert->state = ALERT_FIRING;
        alert->fired_ns = time_ns;
        alerts->version++;
        log_info("Alert %s of %s fires: %s", alert->name, alert_label(alert, LABEL_SERVICE_NAME),
                 alert->summary);
    }
    alerts->unsaved = true;
}

void alerts_note(struct alerts *alerts, const struct rule_set *rules,
                 const struct alert_candidate *candidate, int64_t time_ns, int64_t elapsed_ns)
{
    struct labels labels = {0};
    complete_labels(&labels, rules, candidate);
    struct alert *alert = find(alerts, candidate, &labels);
    if (!alert && candidate->active)
        alert = add(alerts, candidate, &labels, time_ns);
    labels_release(&labels);
    if (!alert)
        return;
    alert->seen = true;
    if (candidate->active) {
        holds(alerts, alert, candidate, time_ns, elapsed_ns);
        return;
    }
    alert->value = candidate->value;
    alert->absent_ns = 0;
    alert->quiet_ns += elapsed_ns;
    alerts->unsaved = true;
    if (alert->state == ALERT_PENDING)
        remove_at(alerts, (size_t)(alert - alerts->list));
    else if (alert->quiet_ns >= candidate->rule->resolve_ns)
        resolve(alerts, alert, "condition no longer holds", time_ns);
}

static const struct alert_rule *rule_of(const struct rule_set *rules, const char *name)
{
    for (size_t i = 0; i < rules->alert_count; i++)
        if (!strcmp(rules->alerts[i].name, name))
            return &rules->alerts[i];
    return NULL;
}

/* Alerts without a candidate. Findings are all known: a missing one is closed. */
static void not_seen(struct alerts *alerts, const struct rule_set *rules, size_t *position,
                     int64_t time_ns, int64_t elapsed_ns)
{
    struct alert *alert = &alerts->list[*position];
    const struct alert_rule *rule = rule_of(rules, alert->name);
    alert->absent_ns += elapsed_ns;
    const char *reason = !rule                                  ? "rule removed"
                         : rule->sli < 0                        ? "finding closed"
                         : alert->absent_ns >= rule->no_data_ns ? "no data"
                                                                : NULL;
    alerts->unsaved = true;
    if (reason && alert->state == ALERT_FIRING) {
        resolve(alerts, alert, reason, time_ns);
    } else if (reason) {
        remove_at(alerts, *position);
        return;
    }
    ++*position;
}

static bool in_maintenance(const struct rule_set *rules, const char *service, int64_t time_ns)
{
    for (size_t i = 0; i < rules->maintenance_count; i++) {
        const struct maintenance *window = &rules->maintenance[i];
        if (time_ns >= window->from_ns && time_ns < window->to_ns &&
            (!window->service || regex_matches(window->service, service, strlen(service))))
            return true;
    }
    return false;
}

/* By an alert of the same tenant that fires, of the same service or of none. */
static bool is_inhibited(const struct alerts *alerts, const struct alert_rule *rule,
                         const struct alert *alert)
{
    const char *service = alert_label(alert, LABEL_SERVICE_NAME);
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *other = &alerts->list[i];
        const char *others = alert_label(other, LABEL_SERVICE_NAME);
        if (other->state != ALERT_FIRING || other == alert ||
            strcmp(other->tenant, alert->tenant) || (*others && strcmp(others, service)))
            continue;
        for (size_t k = 0; k < rule->inhibitor_count; k++)
            if (!strcmp(rule->inhibited_by[k], other->name))
                return true;
    }
    return false;
}

void alerts_end(struct alerts *alerts, const struct rule_set *rules, int64_t time_ns,
                int64_t elapsed_ns)
{
    for (size_t i = 0; i < alerts->count;) {
        struct alert *alert = &alerts->list[i];
        if (alert->state == ALERT_RESOLVED && alert->ended_ns < time_ns - ALERTS_KEPT_NS)
            remove_at(alerts, i);
        else if (alert->state != ALERT_RESOLVED && !alert->seen)
            not_seen(alerts, rules, &i, time_ns, elapsed_ns);
        else
            i++;
    }
    for (size_t i = 0; i < alerts->count; i++) {
        struct alert *alert = &alerts->list[i];
        const struct alert_rule *rule = rule_of(rules, alert->name);
        if (alert->state != ALERT_FIRING || !rule)
            continue;
        bool was_sent = alert_is_sent(alert);
        alert->muted = in_maintenance(rules, alert_label(alert, LABEL_SERVICE_NAME), time_ns);
        alert->inhibited = is_inhibited(alerts, rule, alert);
        alerts->version += was_sent != alert_is_sent(alert);
    }
    forget_groups(alerts, time_ns);
}
