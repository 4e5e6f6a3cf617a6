// SPDX-License-Identifier: Apache-2.0
// The conditions of alerts: values of SLIs beyond a limit, budgets that burn, and findings. See
// live.h.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "label/quote.h"
#include "query/query.h"
#include "server/rules/live.h"
#include "server/watch/watch.h"

#define HOUR_NS 3600000000000ll
#define MINUTE_NS 60000000000ll

/* The long window says that it matters, the short one that it still goes on. */
static const struct burn {
    const char *severity, *word;
    int64_t long_ns, short_ns;
} burns[] = {{"page", "fast", HOUR_NS, 5 * MINUTE_NS},
             {"ticket", "slowly", 24 * HOUR_NS, 2 * HOUR_NS}};

struct round {
    struct rules *rules;
    int64_t time_ns, elapsed_ns;
};

static bool is_bad(const struct alert_rule *rule, double value)
{
    return (!isnan(rule->above) && value > rule->above) ||
           (!isnan(rule->below) && value < rule->below);
}

/* Of a window's values, times that are missing among the good ones. */
static double bad_share(const struct round *round, const struct alert_rule *rule,
                        const struct history_series *series, int64_t window_ns)
{
    int64_t from_s = (round->time_ns - window_ns) / 1000000000;
    int64_t to_s = round->time_ns / 1000000000;
    size_t bad = 0;
    for (size_t i = series->count; i-- > 0 && series->points[i].time_s > from_s;)
        bad += series->points[i].time_s <= to_s && is_bad(rule, (double)series->points[i].value);
    return (double)bad * (double)round->rules->set->interval_ns / (double)window_ns;
}

/* From now back to when it was well, compared with the hour before. */
static void write_link(const struct round *round, const struct sli_rule *sli,
                       const struct labels *labels, struct buffer *link)
{
    _cleanup_buffer_ struct buffer query = {0};
    if (!sli->query) {
        buffer_add_text(link, sli->kind == SLI_AGENT_OVERHEAD ? "/agents" : "/");
        return;
    }
    buffer_add(&query, sli->query, strcspn(sli->query, "{"));
    buffer_add_char(&query, '{');
    for (size_t i = 0; i < labels->count; i++) {
        buffer_printf(&query, "%s", i ? "," : "");
        label_write_quoted(&query, labels->list[i].name);
        buffer_add_char(&query, '=');
        label_write_quoted(&query, labels->list[i].value);
    }
    buffer_add_char(&query, '}');
    int64_t from_ns = round->time_ns - MAX(sli->window_ns, 5 * MINUTE_NS);
    watch_write_comparison(link, buffer_text(&query), from_ns, round->time_ns, buffer_text(&query),
                           from_ns - HOUR_NS, from_ns);
}

static void note(const struct round *round, const char *tenant, const struct alert_rule *rule,
                 const struct sli_value *value, const char *severity, bool active,
                 const char *summary)
{
    _cleanup_buffer_ struct buffer link = {0};
    struct rules *rules = round->rules;
    if (active)
        write_link(round, &rules->set->slis[rule->sli], &value->labels, &link);
    struct alert_candidate candidate = {.tenant = tenant,
                                        .rule = rule,
                                        .labels = &value->labels,
                                        .severity = severity,
                                        .active = active,
                                        .value = value->value,
                                        .summary = summary,
                                        .link = buffer_text(&link)};
    alerts_note(&rules->alerts, rules->set, &candidate, round->time_ns, round->elapsed_ns);
}

static const char *service_of(const struct labels *labels)
{
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    return service ? service : "all services";
}

static void note_limit(const struct round *round, const char *tenant, const struct alert_rule *rule,
                       const struct sli_value *value)
{
    char summary[ALERT_TEXT_BYTES];
    bool above = !isnan(rule->above) && value->value > rule->above;
    snprintf(summary, sizeof(summary), "%s of %.1000s is %.4g, %s %.4g",
             round->rules->set->slis[rule->sli].name, service_of(&value->labels), value->value,
             above ? "above" : "below", above ? rule->above : rule->below);
    note(round, tenant, rule, value, NULL, is_bad(rule, value->value), summary);
}

static void note_burns(const struct round *round, const char *tenant, const struct alert_rule *rule,
                       const struct sli_value *value)
{
    struct rules *rules = round->rules;
    const char *sli = rules->set->slis[rule->sli].name;
    const struct history_series *series =
        history_find(&rules->history, tenant, sli, &value->labels, false, 0);
    bool fast = false;
    for (size_t i = 0; series && i < ARRAY_LENGTH(burns); i++) {
        char summary[ALERT_TEXT_BYTES];
        double limit = i ? rule->slow : rule->fast, budget = 1 - rule->objective;
        double burn = bad_share(round, rule, series, burns[i].long_ns) / budget;
        double still = bad_share(round, rule, series, burns[i].short_ns) / budget;
        bool active = burn >= limit && still >= limit;
        snprintf(summary, sizeof(summary),
                 "%.1000s burns the budget of %s %s: %.2g times as fast as it may",
                 service_of(&value->labels), sli, burns[i].word, burn);
        /* A page says it all. */
        note(round, tenant, rule, value, burns[i].severity, active && !fast, summary);
        fast |= active;
    }
}

static void note_sli(const struct round *round, const struct sli_state *state,
                     const struct alert_rule *rule)
{
    /* SLIs that were not evaluated in this round have no value. */
    if (state->time_s[rule->sli] != round->time_ns / 1000000000)
        return;
    const struct sli_values *values = &state->values[rule->sli];
    for (size_t i = 0; i < values->count; i++)
        if (isnan(rule->objective))
            note_limit(round, state->tenant, rule, &values->list[i]);
        else
            note_burns(round, state->tenant, rule, &values->list[i]);
}

static void note_finding(const struct round *round, const char *tenant,
                         const struct alert_rule *rule, const struct watch_finding *finding)
{
    _cleanup_buffer_ struct buffer link = {0};
    _cleanup_labels_ struct labels labels = {0};
    struct rules *rules = round->rules;
    char summary[ALERT_TEXT_BYTES];
    bool leak = finding->kind == WATCH_LEAK;
    if (leak)
        snprintf(summary, sizeof(summary), "Memory of %.2000s in %s climbs by %.3g MiB an hour",
                 finding->function, finding->service, finding->slope / 1048576);
    else if (finding->kind == WATCH_CHANGE)
        snprintf(summary, sizeof(summary), "%.2000s in %s %s grew by %.1f%% within the version",
                 finding->function, finding->service, finding->version, finding->growth * 100);
    else if (isfinite(finding->growth))
        snprintf(summary, sizeof(summary), "%.2000s in %s %s grew by %.1f%% since %s",
                 finding->function, finding->service, finding->version, finding->growth * 100,
                 finding->base_version);
    else
        snprintf(summary, sizeof(summary), "%.2000s in %s %s is new since %s", finding->function,
                 finding->service, finding->version, finding->base_version);
    labels_set(&labels, LABEL_SERVICE_NAME, finding->service);
    labels_set(&labels, "version", finding->version);
    labels_set(&labels, "function", finding->function);
    labels_set(&labels, "finding", finding->id);
    watch_write_link(&link, finding);
    struct alert_candidate candidate = {.tenant = tenant,
                                        .rule = rule,
                                        .labels = &labels,
                                        .active = true,
                                        .value = leak ? finding->slope : finding->growth,
                                        .summary = summary,
                                        .link = buffer_text(&link)};
    alerts_note(&rules->alerts, rules->set, &candidate, round->time_ns, round->elapsed_ns);
}

static void note_findings(const struct round *round)
{
    struct rules *rules = round->rules;
    struct watch *watch = rules->server->watch;
    if (!watch)
        return;
    pthread_mutex_lock(&watch->book.lock);
    for (size_t t = 0; t < watch->book.tenant_count; t++) {
        const struct watch_tenant *tenant = &watch->book.tenants[t];
        for (size_t i = 0; i < tenant->finding_count; i++)
            for (size_t k = 0; k < rules->set->alert_count; k++)
                if (!tenant->findings[i].closed &&
                    rules->set->alerts[k].findings >> tenant->findings[i].kind & 1)
                    note_finding(round, tenant->name, &rules->set->alerts[k], &tenant->findings[i]);
    }
    pthread_mutex_unlock(&watch->book.lock);
}

void rules_alerts(struct rules *rules, int64_t time_ns)
{
    struct round round = {.rules = rules, .time_ns = time_ns};
    pthread_mutex_lock(&rules->lock);
    alerts_begin(&rules->alerts, time_ns, rules->set->interval_ns, &round.elapsed_ns);
    for (size_t i = 0; i < rules->state_count; i++)
        for (size_t k = 0; k < rules->set->alert_count; k++)
            if (rules->set->alerts[k].sli >= 0)
                note_sli(&round, &rules->states[i], &rules->set->alerts[k]);
    note_findings(&round);
    alerts_end(&rules->alerts, rules->set, time_ns, round.elapsed_ns);
    pthread_mutex_unlock(&rules->lock);
}
