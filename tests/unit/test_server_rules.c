// SPDX-License-Identifier: Apache-2.0
// Rules: files of them, and the values of SLIs over profiles whose truth is known.

#include "server/rules/live.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "server/admission/admission.h"
#include "server/compare/compared.h"
#include "store/store.h"
#include "unit.h"

#define SECOND 1000000000ll
#define START (1700000000 * SECOND / 86400 / SECOND * 86400 * SECOND + 43200 * SECOND)
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define INUSE "memory:inuse_space:bytes:space:bytes"
#define ALLOC "memory:alloc_space:bytes:space:bytes"
#define REQUESTS "http:requests:count:requests:count"
#define LOCK "mutex:delay:nanoseconds:contentions:count"

struct fixture {
    struct server server;
    struct admissions admissions;
    struct comparisons comparisons;
    struct rules *rules;
};

static void fixture_open(struct fixture *fixture, const char *directory)
{
    static const struct store_class keep = {.name = "default"};
    struct store_options store = {.classes = &keep, .class_count = 1};
    struct error error = {0};
    *fixture = (struct fixture){0};
    admissions_init(&fixture->admissions, 64u << 20);
    atomic_store(&fixture->admissions.query_memory_bytes, 8u << 20);
    fixture->server.admissions = &fixture->admissions;
    fixture->server.comparisons = &fixture->comparisons;
    assert_int_equal(store_open_memory(&store, &fixture->server.store, &error), 0);
    assert_int_equal(rules_open(&fixture->server, directory, &fixture->rules, &error), 0);
}

static void fixture_close(struct fixture *fixture)
{
    assert_int_equal(budget_stats(&fixture->admissions.memory).used_bytes, 0);
    rules_close(fixture->rules);
    store_close(fixture->server.store);
    admissions_release(&fixture->admissions);
}

/* main -> parse has `parse`, main -> other has the rest; a window of 10 s. */
static void write_window(struct fixture *fixture, const char *service, const char *pod,
                         const char *type, int64_t at_s, double parse, double other)
{
    _cleanup_profile_ struct profile profile;
    _cleanup_labels_ struct labels labels = {0};
    static const char *const names[] = {"main", "parse", "other"};
    uint32_t frames[3];
    struct store_row rows[2];
    profile_init(&profile, PROFILE_ALL);
    for (size_t i = 0; i < 3; i++) {
        uint32_t function = profile_function(
            &profile, &(struct profile_function){.name = profile_cstring(&profile, names[i])});
        frames[i] = profile_frame(&profile, &(struct profile_frame){.function = function});
    }
    rows[0] = (struct store_row){profile_stack(&profile, (uint32_t[]){frames[0], frames[1]}, 2),
                                 (int64_t)parse};
    rows[1] = (struct store_row){profile_stack(&profile, (uint32_t[]){frames[0], frames[2]}, 2),
                                 (int64_t)other};
    labels_set(&labels, "service_name", service);
    if (pod)
        labels_set(&labels, "pod", pod);
    struct store_profile written = {.labels = &labels,
                                    .type = type,
                                    .time_ns = START + at_s * SECOND,
                                    .duration_ns = 10 * SECOND,
                                    .profile = &profile,
                                    .rows = rows,
                                    .row_count = 2};
    struct store_batch batch = {.tenant = "t", .profiles = &written, .count = 1};
    struct error error = {0};
    assert_int_equal(store_write(fixture->server.store, &batch, &error), 0);
}

static struct rule_set *read_rules(const char *text, char problems_text[4096])
{
    struct problems problems = {.file = "rules.yaml"};
    struct error error = {0};
    assert_int_equal(file_write_atomic("rules.yaml", text, strlen(text), &error), 0);
    struct rule_set *set = rule_set_read("rules.yaml", &problems);
    assert_int_equal(set == NULL, problems.count > 0);
    snprintf(problems_text, 4096, "%s", buffer_text(&problems.text));
    problems_release(&problems);
    return set;
}

static void set_rules(struct fixture *fixture, const char *text)
{
    char problems[4096];
    struct rule_set *set = read_rules(text, problems);
    if (!set)
        fail_msg("%s", problems);
    rules_set(fixture->rules, set);
}

/* NAN: absent. */
static double value_of(const struct fixture *fixture, const char *sli, const char *service)
{
    const struct rules *rules = fixture->rules;
    int index = rule_set_find(rules->set, sli);
    assert_true(index >= 0);
    assert_int_equal(rules->state_count, 1);
    const struct sli_values *values = &rules->states[0].values[index];
    for (size_t i = 0; i < values->count; i++) {
        const char *name = labels_get(&values->list[i].labels, "service_name");
        if (!service || (name && !strcmp(name, service)))
            return values->list[i].value;
    }
    return NAN;
}

static const char *reason_of(const struct fixture *fixture, const char *sli)
{
    return fixture->rules->states[0].values[rule_set_find(fixture->rules->set, sli)].reason;
}

static bool near(double value, double wanted)
{
    if (fabs(value - wanted) <= 0.01 * fabs(wanted))
        return true;
    print_message("%g instead of %g\n", value, wanted);
    return false;
}

static const char *const all_kinds =
    "interval: 1m\n"
    "delay: 0s\n"
    "slis:\n"
    "- {name: parse_share, kind: share, query: cpu, function: parse}\n"
    "- {name: missing_share, kind: share, query: cpu, function: nowhere}\n"
    "- {name: cores, query: cpu}\n"
    "- {name: parse_cores, query: cpu, function: parse}\n"
    "- {name: cpu_per_request, kind: per_request, query: cpu}\n"
    "- {name: bytes_per_request, kind: per_request, query: '" ALLOC "'}\n"
    "- {name: lock_wait, query: '" LOCK "'}\n"
    "- {name: heap, kind: level, query: '" INUSE "'}\n"
    "- {name: heap_growth, kind: growth, query: '" INUSE "'}\n"
    "- {name: busiest_pod, kind: quantile, query: cpu, per: pod, quantile: 0.95, limit: 2}\n"
    "- {name: retention, kind: ratio, query: '" INUSE "', of: '" ALLOC "'}\n"
    "- {name: unnamed, kind: unnamed, query: cpu}\n"
    "- {name: overhead, kind: agent_overhead}\n"
    "- {name: uploads, kind: upload_success}\n"
    "- {name: wrong_kind, kind: rate, query: '" INUSE "'}\n"
    "- {name: no_type, query: block}\n"
    "- {name: by_colour, query: cpu, by: [service, colour]}\n";

static void every_kind_has_its_value(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, NULL);
    for (int at = 0; at < 300; at += 10) {
        write_window(&fixture, "shop", "a", CPU, at, 2e9, 6e9);
        write_window(&fixture, "shop", "b", CPU, at, 1e9, 1e9);
        write_window(&fixture, "shop", "a", REQUESTS, at, 0, 400);
        write_window(&fixture, "shop", "a", ALLOC, at, 0, 4000 * 400);
        write_window(&fixture, "shop", "a", LOCK, at, 5e8, 0);
        write_window(&fixture, "shop", "a", INUSE, at, 1e6 + 1000 * at, 2e6);
        write_window(&fixture, "till", "c", CPU, at, 0, 5e9);
    }
    set_rules(&fixture, all_kinds);
    assert_true(rules_round(fixture.rules, START + 300 * SECOND));
    assert_false(rules_round(fixture.rules, START + 301 * SECOND));
    assert_true(near(value_of(&fixture, "parse_share", "shop"), 0.3));
    assert_true(near(value_of(&fixture, "parse_share", "till"), 0));
    assert_true(near(value_of(&fixture, "missing_share", "shop"), 0));
    assert_true(near(value_of(&fixture, "cores", "shop"), 1.0));
    assert_true(near(value_of(&fixture, "cores", "till"), 0.5));
    assert_true(near(value_of(&fixture, "parse_cores", "shop"), 0.3));
    assert_true(near(value_of(&fixture, "cpu_per_request", "shop"), 10.0 / 400));
    assert_true(near(value_of(&fixture, "bytes_per_request", "shop"), 4000));
    assert_true(near(value_of(&fixture, "lock_wait", "shop"), 0.05));
    assert_true(near(value_of(&fixture, "heap", "shop"), 3.145e6));
    assert_true(near(value_of(&fixture, "heap_growth", "shop"), 1000 * 3600.0));
    assert_true(near(value_of(&fixture, "busiest_pod", "shop"), (0.8 * 0.95 + 0.2 * 0.05) / 2));
    assert_true(near(value_of(&fixture, "retention", "shop"), 3.145e6 / (30 * 4000 * 400.0)));
    assert_true(near(value_of(&fixture, "unnamed", NULL), 0));
    /* What can't be evaluated says why, and is absent. */
    assert_true(isnan(value_of(&fixture, "cpu_per_request", "till")));
    assert_true(isnan(value_of(&fixture, "overhead", NULL)));
    assert_string_equal(reason_of(&fixture, "overhead"), "No agent has reported its CPU time.");
    assert_string_equal(reason_of(&fixture, "uploads"), "There were no pushes in the window.");
    assert_non_null(strstr(reason_of(&fixture, "wrong_kind"), "is a level: use the kind level."));
    assert_true(isnan(value_of(&fixture, "no_type", NULL)) && *reason_of(&fixture, "no_type"));
    assert_string_equal(reason_of(&fixture, "by_colour"),
                        "No series that the query selects has the label colour.");
    assert_true(near(value_of(&fixture, "by_colour", "till"), 0.5));

    _cleanup_buffer_ struct buffer metrics = {0};
    rules_write_metrics(fixture.rules, "t", &metrics);
    assert_non_null(strstr(buffer_text(&metrics),
                           "assay_sli{sli=\"cores\",tenant=\"t\",service_name=\"till\"} 0.5\n"));
    assert_non_null(
        strstr(buffer_text(&metrics), "assay_sli_absent{sli=\"no_type\",tenant=\"t\"} 1\n"));
    assert_null(strstr(buffer_text(&metrics), "assay_sli{sli=\"no_type\""));
    fixture_close(&fixture);
}

/* Requests that are counted, but are 0: no value, and no infinity. */
static void division_by_zero(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, NULL);
    write_window(&fixture, "shop", "a", CPU, 0, 2e9, 6e9);
    write_window(&fixture, "shop", "a", REQUESTS, 0, 0, 0);
    write_window(&fixture, "shop", "a", INUSE, 0, 1, 1);
    write_window(&fixture, "shop", "a", ALLOC, 0, 0, 0);
    set_rules(&fixture, all_kinds);
    rules_round(fixture.rules, START + 60 * SECOND);
    assert_true(isnan(value_of(&fixture, "cpu_per_request", NULL)));
    assert_string_equal(reason_of(&fixture, "cpu_per_request"), "There were no requests.");
    assert_true(isnan(value_of(&fixture, "retention", NULL)));
    assert_string_equal(reason_of(&fixture, "retention"), "The divisor of the ratio is zero.");
    assert_string_equal(reason_of(&fixture, "heap_growth"),
                        "There are too few snapshots in the window.");
    fixture_close(&fixture);
}

/* Times that are evaluated, whatever the clock does; the history outlives a restart. */
static void clocks_and_restarts(void **state)
{
    (void)state;
    struct fixture fixture;
    char directory[] = "rules.XXXXXX";
    struct error error = {0};
    double value;
    assert_non_null(mkdtemp(directory));
    fixture_open(&fixture, directory);
    for (int at = 0; at < 600; at += 10)
        write_window(&fixture, "shop", "a", CPU, at, 0, 5e9);
    set_rules(&fixture, "interval: 1m\ndelay: 30s\nslis: [{name: cores, query: cpu}]\n");
    for (int at = 95; at < 600; at += 10)
        rules_round(fixture.rules, START + at * SECOND);
    assert_int_equal(atomic_load(&fixture.rules->stats.rounds), 9);
    assert_false(rules_round(fixture.rules, START + 300 * SECOND)); /* back by five minutes */
    assert_int_equal(fixture.rules->history.count, 1);
    assert_int_equal(fixture.rules->history.list[0]->count, 9);
    rules_close(fixture.rules);
    assert_int_equal(rules_open(&fixture.server, directory, &fixture.rules, &error), 0);
    assert_int_equal(fixture.rules->history.list[0]->count, 9);
    assert_true(history_at(fixture.rules->history.list[0], (START / SECOND) + 300, &value));
    assert_true(near(value, 0.5));
    assert_false(history_at(fixture.rules->history.list[0], (START / SECOND) + 301, &value));
    set_rules(&fixture, "interval: 1m\ndelay: 30s\nslis: [{name: cores, query: cpu}]\n");
    assert_true(rules_round(fixture.rules, START + 7200 * SECOND)); /* ahead */
    assert_true(isnan(value_of(&fixture, "cores", NULL)));
    assert_true(rules_round(fixture.rules, START + 600 * SECOND)); /* back by a lot: anew */
    assert_int_equal(fixture.rules->history.list[0]->count, 1);
    fixture_close(&fixture);
}

/* What arrives late neither changes what was evaluated nor makes a value jump: until it is there,
 * the value is that of the time that is covered. */
static void late_profiles(void **state)
{
    (void)state;
    struct fixture fixture;
    double before, after;
    fixture_open(&fixture, NULL);
    set_rules(&fixture,
              "interval: 1m\ndelay: 30s\nslis: [{name: cores, query: cpu, window: 2m}]\n");
    for (int at = 0; at < 300; at += 10)
        write_window(&fixture, "shop", "a", CPU, at, 0, 5e9);
    assert_true(rules_round(fixture.rules, START + 390 * SECOND)); /* 240 s to 360 s, half of it */
    assert_true(near(value_of(&fixture, "cores", NULL), 0.5));
    assert_true(history_at(fixture.rules->history.list[0], (START / SECOND) + 360, &before));
    for (int at = 300; at < 420; at += 10)
        write_window(&fixture, "shop", "a", CPU, at, 0, at < 360 ? 10e9 : 5e9);
    assert_false(rules_round(fixture.rules, START + 391 * SECOND));
    assert_true(history_at(fixture.rules->history.list[0], (START / SECOND) + 360, &after));
    assert_true(before == after);
    assert_true(rules_round(fixture.rules, START + 450 * SECOND)); /* 300 s to 420 s */
    assert_true(near(value_of(&fixture, "cores", NULL), 0.75));
    fixture_close(&fixture);
}

static void wrong_rules(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"slis: [{query: cpu}]", "needs a name"},
        {"slis: [{name: a b, query: cpu}]", "needs a name"},
        {"slis: [{name: a, query: cpu}, {name: a, query: cpu}]", "Two SLIs have the name a"},
        {"slis: [{name: a}]", "An SLI of the kind rate needs a query"},
        {"slis: [{name: a, kind: upload_success, query: cpu}]", "doesn't take a query"},
        {"slis: [{name: a, kind: share, query: cpu}]", "needs a function"},
        {"slis: [{name: a, kind: ratio, query: cpu}]", "needs of"},
        {"slis: [{name: a, kind: quantile, query: cpu}]", "needs per"},
        {"slis: [{name: a, kind: speed, query: cpu}]", "speed"},
        {"slis: [{name: a, query: 'cpu{'}]", "query: "},
        {"slis: [{name: a, query: cpu, windw: 5m}]", "windw"},
        {"slis: [{name: a, query: cpu, window: 1s}]", "window"},
        {"slis: [{name: a, query: cpu, by: [a, b, c, d, e]}]", "The limit of by is 4 labels"},
        {"slis: 5", "slis"},
        {"interval: 0s", "interval"},
        {"sli: []", "sli"},
        {"- a", "rules"},
        {"slis: [", "rules.yaml"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        char problems[4096];
        assert_null(read_rules(wrong[i].text, problems));
        if (!strstr(problems, wrong[i].said))
            fail_msg("%s: %s", wrong[i].text, problems);
    }
    char problems[4096];
    rule_set_unref(read_rules("", problems));
}

static void damaged_history(void **state)
{
    (void)state;
    struct history history = {0};
    struct labels labels = {0};
    struct error error = {0};
    _cleanup_buffer_ struct buffer file = {0};
    labels_set(&labels, "service_name", "a\"b");
    struct history_series *series = history_find(&history, "t", "cores", &labels, true, 0);
    for (int i = 0; i < 20; i++)
        history_add(&history, series, 1000 + 60 * i, 0.5 * i);
    history_write(&history, &file);
    history_release(&history);
    for (size_t i = 0; i <= file.length; i++)
        for (int flip = i < file.length ? 8 : 0; flip >= 0; flip--) {
            _cleanup_buffer_ struct buffer damaged = {0};
            buffer_add(&damaged, file.data, flip < 8 ? file.length : i);
            if (flip < 8 && i < file.length)
                damaged.data[i] = (char)(damaged.data[i] ^ 1 << flip);
            error = (struct error){0};
            int r = history_read(&history, damaged.data, damaged.length, &error);
            assert_true(r >= 0 || *error.text);
            if (i == file.length) {
                assert_int_equal(r, 0);
                assert_int_equal(history.list[0]->count, 20);
                assert_true(labels_equal(&history.list[0]->labels, &labels));
            }
            history_release(&history);
        }
    labels_release(&labels);
}

/* The series that ended first make room; points are bounded. */
static void histories_are_bounded(void **state)
{
    (void)state;
    struct history history = {0};
    char name[32];
    for (int i = 0; i < HISTORY_SERIES_MAX + 5; i++) {
        struct labels labels = {0};
        snprintf(name, sizeof(name), "s%d", i);
        labels_set(&labels, "service_name", name);
        struct history_series *series = history_find(&history, "t", "x", &labels, true, 10000);
        assert_int_equal(series != NULL, i < HISTORY_SERIES_MAX + 1);
        if (series)
            history_add(&history, series, i ? 9000 : 100, 1);
        labels_release(&labels);
    }
    assert_int_equal(history.dropped, 4);
    for (int i = 0; i < HISTORY_POINTS_MAX * 2; i++)
        history_add(&history, history.list[3], 10000 + i, i);
    assert_true(history.list[3]->count <= HISTORY_POINTS_MAX);
    assert_int_equal(history.list[3]->points[history.list[3]->count - 1].time_s,
                     10000 + HISTORY_POINTS_MAX * 2 - 1);
    history_trim(&history, 9500);
    assert_int_equal(history.count, 1);
    history_release(&history);
}

/* ---- alerts ---- */

struct alerting {
    struct alerts alerts;
    struct rule_set *set;
    int64_t elapsed_ns;
};

static void alerting_open(struct alerting *alerting, const char *text)
{
    char problems[4096];
    *alerting = (struct alerting){.set = read_rules(text, problems)};
    if (!alerting->set)
        fail_msg("%s", problems);
}

static void alerting_close(struct alerting *alerting)
{
    alerts_release(&alerting->alerts);
    rule_set_unref(alerting->set);
}

/* A round in which alert n has a value; NAN: it is not known. */
static void alert_round(struct alerting *alerting, int minute, const char *service,
                        const double *values, size_t count)
{
    _cleanup_labels_ struct labels labels = {0};
    int64_t time_ns = START + minute * 60 * SECOND;
    labels_set(&labels, "service_name", service);
    alerts_begin(&alerting->alerts, time_ns, alerting->set->interval_ns, &alerting->elapsed_ns);
    for (size_t i = 0; i < count; i++) {
        const struct alert_rule *rule = &alerting->set->alerts[i];
        struct alert_candidate candidate = {.tenant = "t",
                                            .rule = rule,
                                            .labels = &labels,
                                            .active = values[i] > rule->above,
                                            .value = values[i],
                                            .summary = "s",
                                            .link = "/l"};
        if (!isnan(values[i]))
            alerts_note(&alerting->alerts, alerting->set, &candidate, time_ns,
                        alerting->elapsed_ns);
    }
    alerts_end(&alerting->alerts, alerting->set, time_ns, alerting->elapsed_ns);
}

#define SLI "slis: [{name: x, query: cpu}]\n"

static enum alert_state state_of(const struct alerting *alerting)
{
    assert_int_equal(alerting->alerts.count, 1);
    return alerting->alerts.list[0].state;
}

static void an_alert_waits_fires_and_resolves(void **state)
{
    (void)state;
    struct alerting alerting;
    const double good = 0, bad = 2, unknown = NAN;
    alerting_open(&alerting, SLI "alerts: [{name: A, sli: x, above: 1, for: 2m, resolve_after: 2m, "
                                 "no_data: 5m, runbook: /r}]\n"
                                 "owners: [{service: sh.*, owner: us}]");
    alert_round(&alerting, 0, "shop", &bad, 1);
    assert_int_equal(state_of(&alerting), ALERT_PENDING);
    alert_round(&alerting, 1, "shop", &good, 1); /* not for long enough */
    assert_int_equal(alerting.alerts.count, 0);
    for (int minute = 2; minute < 5; minute++) {
        alert_round(&alerting, minute, "shop", &bad, 1);
        assert_int_equal(state_of(&alerting), minute < 4 ? ALERT_PENDING : ALERT_FIRING);
    }
    const struct alert *alert = &alerting.alerts.list[0];
    assert_string_equal(alert_label(alert, "owner"), "us");
    assert_string_equal(alert_label(alert, "severity"), "ticket");
    assert_string_equal(alert->runbook, "/r");
    assert_true(alert_is_sent(alert));
    /* Flapping, and times without data, resolve nothing. */
    alert_round(&alerting, 5, "shop", &good, 1);
    alert_round(&alerting, 6, "shop", &bad, 1);
    for (int minute = 7; minute < 11; minute++)
        alert_round(&alerting, minute, "shop", &unknown, 1);
    alert_round(&alerting, 11, "shop", &good, 1);
    assert_int_equal(state_of(&alerting), ALERT_FIRING);
    alert_round(&alerting, 12, "shop", &good, 1);
    assert_int_equal(state_of(&alerting), ALERT_RESOLVED);
    assert_string_equal(alerting.alerts.list[0].reason, "condition no longer holds");
    for (int minute = 13; minute < 16; minute++)
        alert_round(&alerting, minute, "shop", &bad, 1);
    assert_int_equal(alerting.alerts.count, 2); /* another one */
    for (int minute = 16; minute < 22; minute++)
        alert_round(&alerting, minute, "shop", &unknown, 1);
    assert_string_equal(alerting.alerts.list[1].reason, "no data");
    alert_round(&alerting, 24 * 60 + 60, "shop", &unknown, 1);
    assert_int_equal(alerting.alerts.count, 0);
    alerting_close(&alerting);
}

/* A clock that jumps ahead or back makes nothing fire or resolve. */
static void clocks_dont_flap(void **state)
{
    (void)state;
    struct alerting alerting;
    const double good = 0, bad = 2;
    alerting_open(&alerting, SLI "alerts: [{name: A, sli: x, above: 1, for: 10m, resolve_after: "
                                 "10m}]");
    alert_round(&alerting, 0, "shop", &bad, 1);
    alert_round(&alerting, 600, "shop", &bad, 1);
    assert_int_equal(state_of(&alerting), ALERT_PENDING);
    alert_round(&alerting, 10, "shop", &bad, 1);
    assert_int_equal(state_of(&alerting), ALERT_PENDING);
    for (int minute = 11; minute < 20; minute++)
        alert_round(&alerting, minute, "shop", &bad, 1);
    assert_int_equal(state_of(&alerting), ALERT_FIRING);
    alert_round(&alerting, 900, "shop", &good, 1);
    assert_int_equal(state_of(&alerting), ALERT_FIRING);
    alerting_close(&alerting);
}

static void inhibition_and_maintenance(void **state)
{
    (void)state;
    struct alerting alerting;
    char text[1024];
    snprintf(text, sizeof(text),
             SLI "alerts:\n- {name: A, sli: x, above: 1}\n"
                 "- {name: B, sli: x, above: 1, inhibited_by: [A]}\n"
                 "maintenance: [{from: '%lld', to: '%lld', service: till}]\n",
             START / SECOND + 600, START / SECOND + 1200);
    alerting_open(&alerting, text);
    alert_round(&alerting, 0, "shop", (const double[]){0, 2}, 2);
    assert_true(alert_is_sent(&alerting.alerts.list[0]));
    uint64_t version = alerting.alerts.version;
    alert_round(&alerting, 1, "shop", (const double[]){2, 2}, 2);
    assert_int_equal(alerting.alerts.count, 2);
    assert_true(alerting.alerts.list[0].inhibited && !alerting.alerts.list[1].inhibited);
    assert_true(alerting.alerts.version > version);
    alert_round(&alerting, 2, "shop", (const double[]){0, 2}, 2);
    assert_true(alert_is_sent(&alerting.alerts.list[0]));
    alert_round(&alerting, 11, "till", (const double[]){2, NAN}, 2);
    assert_true(alerting.alerts.list[alerting.alerts.count - 1].muted);
    alert_round(&alerting, 21, "till", (const double[]){2, NAN}, 2);
    assert_false(alerting.alerts.list[alerting.alerts.count - 1].muted);
    alerting_close(&alerting);
}

/* Budgets: one value in five minutes is bad, with 1% permitted: 20 times as fast as it may. */
static void budgets_burn(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, NULL);
    for (int at = 0; at < 7200; at += 10)
        write_window(&fixture, "shop", "a", CPU, at, 0, at >= 3600 && at % 300 < 60 ? 9e9 : 5e9);
    set_rules(&fixture, "interval: 1m\ndelay: 0s\n"
                        "slis: [{name: cores, query: cpu, window: 1m}]\n"
                        "alerts: [{name: A, sli: cores, above: 0.7, objective: 0.99}]");
    int fired = 0;
    for (int at = 60; at <= 7200; at += 60) {
        rules_round(fixture.rules, START + at * SECOND);
        const struct alerts *alerts = &fixture.rules->alerts;
        if (!fired && alerts->count)
            fired = at;
        if (at < 3600)
            assert_int_equal(alerts->count, 0);
    }
    const struct alerts *alerts = &fixture.rules->alerts;
    assert_int_equal(alerts->count, 1);
    assert_int_equal(alerts->list[0].state, ALERT_FIRING);
    assert_string_equal(alert_label(&alerts->list[0], "severity"), "page");
    /* 4% of an hour are 2.4 minutes: the third bad one. */
    assert_int_equal(fired, 3600 + 60 + 600);
    assert_true(strstr(alerts->list[0].link, "/compare?query=cpu%7B") != NULL);
    fixture_close(&fixture);
}

static void damaged_alerts(void **state)
{
    (void)state;
    struct alerting alerting;
    const double bad = 2;
    _cleanup_buffer_ struct buffer file = {0};
    alerting_open(&alerting, SLI "alerts: [{name: A, sli: x, above: 1}]");
    alert_round(&alerting, 0, "sh\"op", &bad, 1);
    alerts_group(&alerting.alerts, "http://h/", &alerting.alerts.list[0])->sent = 77;
    alerts_write(&alerting.alerts, &file);
    for (size_t i = 0; i <= file.length; i++)
        for (int flip = i < file.length ? 8 : 0; flip >= 0; flip--) {
            _cleanup_buffer_ struct buffer damaged = {0};
            struct alerts alerts = {0};
            struct error error = {0};
            buffer_add(&damaged, file.data, flip < 8 ? file.length : i);
            if (flip < 8 && i < file.length)
                damaged.data[i] = (char)(damaged.data[i] ^ 1 << flip);
            int r = alerts_read(&alerts, damaged.data, damaged.length, &error);
            assert_true(r >= 0 || *error.text);
            if (i == file.length) {
                assert_int_equal(r, 0);
                assert_string_equal(alerts.list[0].id, alerting.alerts.list[0].id);
                assert_int_equal(alerts.list[0].state, ALERT_FIRING);
                assert_true(labels_equal(&alerts.list[0].labels, &alerting.alerts.list[0].labels));
                assert_int_equal(alerts.groups[0].sent, 77);
            }
            alerts_release(&alerts);
        }
    alerting_close(&alerting);
}

static void alerts_are_bounded(void **state)
{
    (void)state;
    struct alerting alerting;
    char service[32];
    alerting_open(&alerting, SLI "alerts: [{name: A, sli: x, above: 1}]");
    for (int i = 0; i < ALERTS_MAX + 3; i++) {
        snprintf(service, sizeof(service), "s%d", i);
        alert_round(&alerting, 0, service, (const double[]){2}, 1);
        for (size_t k = 0; k < alerting.alerts.count; k++)
            alerting.alerts.list[k].absent_ns = 0;
    }
    assert_int_equal(alerting.alerts.count, ALERTS_MAX);
    assert_int_equal(alerting.alerts.dropped, 3);
    alerting.alerts.list[5].state = ALERT_RESOLVED;
    alert_round(&alerting, 1, "one more", (const double[]){2}, 1);
    assert_int_equal(alerting.alerts.dropped, 3);
    alerting_close(&alerting);
}

static void urls_are_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *entry, *url;
        bool allowed;
    } cases[] = {
        {"http://h:1", "http://h:1", true},
        {"http://h:1", "http://h:1/a?b", true},
        {"http://h:1/", "http://h:1/a", true},
        {"http://h", "http://h.evil/", false},
        {"http://h", "http://h:81/", false},
        {"http://h", "http://h@evil/", false},
        {"http://h/", "http://h@evil/", false},
        {"http://h:1", "http://h:11", false},
        {"https://h/", "http://h/", false},
        {"http://h/a", "http://h/ab", false},
        {"http://h/a", "http://h/a/b", true},
        {"http://h/a/", "http://h/a/../b", false},
        {"http://h/a/", "http://h/a/%2E%2e/b", false},
        {"http://h/a/", "http://h/a/\\..", false},
        {"http://h:1/", "http://h:1", true},
        {"http://", "http://h/", false},
        {"http:/", "http://h/", false},
        {"file:///", "file:///etc/passwd", false},
        {"h", "http://h/", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        if (notify_allows(cases[i].entry, cases[i].url) != cases[i].allowed)
            fail_msg("%s with %s", cases[i].url, cases[i].entry);
}

/* As computed with `printf 17.body | openssl dgst -sha256 -hmac secret`. */
static void bodies_are_signed(void **state)
{
    (void)state;
    char signature[128];
    notify_sign("secret", 6, 17, "body", 4, signature);
    assert_string_equal(signature,
                        "t=17,v1=f18ccc91fb6b657e2c05d0ac01f32eafd8d15f9a2b19aa502d67d9d0f976b898");
}

static void wrong_alerts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"alerts: [{name: A}]", "either an sli or findings"},
        {"alerts: [{name: A, sli: y, above: 1}]", "There is no SLI with the name y"},
        {"alerts: [{name: A, sli: x}]", "needs above or below"},
        {"alerts: [{name: A, findings: [leak], above: 1}]", "Only an alert over an SLI"},
        {"alerts: [{name: A, findings: [fire]}]", "regression or leak"},
        {"alerts: [{name: A, sli: x, above: 1, objective: 1}]", "below 1"},
        {"alerts: [{name: a-b, sli: x, above: 1}]", "needs a name"},
        {"alerts: [{name: A, sli: x, above: 1}, {name: A, sli: x, above: 1}]", "Two alerts"},
        {"alerts: [{name: A, sli: x, above: 1, inhibited_by: [B]}]", "which does not exist"},
        {"alerts: [{name: A, sli: x, above: 1, runbook: 'javascript:x'}]", "runbook"},
        {"owners: [{service: '('}]", "service"},
        {"owners: [{owner: a}]", "An owner needs"},
        {"maintenance: [{from: 2026-01-02, to: 2026-01-01}]", "ends before it begins"},
        {"maintenance: [{from: never, to: 2026-01-01}]", "never"},
        {"notify: {alertmanagers: ['http://h:9093']}", "notify.allow permits no requests"},
        {"notify: {alertmanagers: ['ftp://h'], allow: ['ftp://h']}", "http://"},
        {"notify: {webhooks: [{url: 'http://h', secret_file: /nowhere}], allow: ['http://h']}",
         "/nowhere"},
        {"notify: {webhooks: [{}]}", "needs a url"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        char text[1024], problems[4096];
        snprintf(text, sizeof(text), SLI "%s", wrong[i].text);
        assert_null(read_rules(text, problems));
        if (!strstr(problems, wrong[i].said))
            fail_msg("%s: %s", wrong[i].text, problems);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_value),
        cmocka_unit_test(division_by_zero),
        cmocka_unit_test(clocks_and_restarts),
        cmocka_unit_test(late_profiles),
        cmocka_unit_test(wrong_rules),
        cmocka_unit_test(damaged_history),
        cmocka_unit_test(histories_are_bounded),
        cmocka_unit_test(an_alert_waits_fires_and_resolves),
        cmocka_unit_test(clocks_dont_flap),
        cmocka_unit_test(inhibition_and_maintenance),
        cmocka_unit_test(budgets_burn),
        cmocka_unit_test(damaged_alerts),
        cmocka_unit_test(alerts_are_bounded),
        cmocka_unit_test(urls_are_allowed),
        cmocka_unit_test(bodies_are_signed),
        cmocka_unit_test(wrong_alerts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
