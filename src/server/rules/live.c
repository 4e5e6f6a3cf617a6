// SPDX-License-Identifier: Apache-2.0
// Rounds of rules: see live.h.

#include "server/rules/live.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/regex.h"
#include "store/store.h"

#define RULES_THREAD "rules"
#define SLICE_NS 50000000l
#define SAVE_NS 300000000000ll /* between saves of the history */
#define FILE_BYTES_MAX (64u << 20)
#define BACK_NS 3600000000000ll /* a clock that went back by less catches up */
#define CPU 0.05                /* of a core, on average */
#define TENANTS_MAX 1000

/* ---- states; with the lock held ---- */

static void release_states(struct rules *rules)
{
    size_t slis = rules->set ? rules->set->sli_count : 0;
    for (size_t i = 0; i < rules->state_count; i++) {
        for (size_t k = 0; k < slis; k++)
            sli_values_release(&rules->states[i].values[k]);
        free(rules->states[i].values);
        free(rules->states[i].time_s);
        free(rules->states[i].tenant);
    }
    free(rules->states);
    rules->states = NULL;
    rules->state_count = rules->state_capacity = 0;
}

static struct sli_state *state_of(struct rules *rules, const char *tenant)
{
    for (size_t i = 0; i < rules->state_count; i++)
        if (!strcmp(rules->states[i].tenant, tenant))
            return &rules->states[i];
    if (rules->state_count >= TENANTS_MAX)
        return NULL;
    array_reserve(rules->states, rules->state_capacity, rules->state_count + 1);
    struct sli_state *state = &rules->states[rules->state_count++];
    *state = (struct sli_state){
        .tenant = memory_strdup(tenant),
        .values = memory_zalloc(rules->set->sli_count + 1, sizeof(struct sli_values)),
        .time_s = memory_zalloc(rules->set->sli_count + 1, sizeof(int64_t))};
    return state;
}

static void stop_notifiers(struct rules *rules)
{
    for (size_t i = 0; i < RULES_RECEIVERS_MAX; i++) {
        notifier_stop(rules->notifiers[i]);
        rules->notifiers[i] = NULL;
    }
}

static void start_notifiers(struct rules *rules)
{
    for (size_t i = 0; rules->set && i < rules->set->notify.receiver_count; i++)
        rules->notifiers[i] = notifier_start(rules, rules->set, i);
}

bool rules_owner(struct rules *rules, const char *service, struct buffer *out)
{
    bool found = false;
    pthread_mutex_lock(&rules->lock);
    for (size_t i = 0; rules->set && !found && i < rules->set->owner_count; i++)
        if ((found = regex_matches(rules->set->owners[i].service, service, strlen(service))))
            buffer_add_text(out, rules->set->owners[i].owner);
    pthread_mutex_unlock(&rules->lock);
    return found;
}

void rules_set(struct rules *rules, struct rule_set *set)
{
    pthread_mutex_lock(&rules->round);
    stop_notifiers(rules);
    pthread_mutex_lock(&rules->lock);
    release_states(rules);
    struct rule_set *old = rules->set;
    rules->set = set;
    pthread_mutex_unlock(&rules->lock);
    if (rules->running)
        start_notifiers(rules);
    pthread_mutex_unlock(&rules->round);
    rule_set_unref(old);
}

/* ---- the history's file ---- */

static void history_path(const struct rules *rules, struct buffer *path)
{
    buffer_printf(path, "%s/" HISTORY_FILE, rules->directory);
}

/* Numbers of the past aren't worth a server that doesn't start. */
static void load(struct rules *rules)
{
    _cleanup_buffer_ struct buffer path = {0}, text = {0};
    struct error error = {0};
    if (!rules->directory)
        return;
    history_path(rules, &path);
    if (access(buffer_text(&path), F_OK) < 0 && errno == ENOENT)
        return;
    if (file_read(buffer_text(&path), FILE_BYTES_MAX, &text, &error) < 0 ||
        history_read(&rules->history, text.data, text.length, &error) < 0) {
        history_release(&rules->history);
        log_warning("Failed to read %s, so the history of SLIs begins anew: %s",
                    buffer_text(&path), error.text);
    }
    rules->history.unsaved = false;
}

static void save(struct rules *rules)
{
    _cleanup_buffer_ struct buffer path = {0}, text = {0};
    struct error error = {0};
    pthread_mutex_lock(&rules->lock);
    bool wanted = rules->history.unsaved && rules->directory;
    rules->history.unsaved = false;
    if (wanted)
        history_write(&rules->history, &text);
    pthread_mutex_unlock(&rules->lock);
    rules->saved_ns = monotonic_ns();
    if (!wanted)
        return;
    history_path(rules, &path);
    if (file_write_atomic(buffer_text(&path), text.data, text.length, &error) >= 0)
        return;
    log_debug("%s", error.text); /* a full disk is the store's to complain about */
    pthread_mutex_lock(&rules->lock);
    rules->history.unsaved = true;
    pthread_mutex_unlock(&rules->lock);
}

/* ---- the alerts' file ---- */

/* It says what receivers were told: without it, everything would be sent again. */
static int load_alerts(struct rules *rules, struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0}, text = {0};
    struct error found = {0};
    if (!rules->directory)
        return 0;
    buffer_printf(&path, "%s/" ALERTS_FILE, rules->directory);
    if (access(buffer_text(&path), F_OK) < 0 && errno == ENOENT)
        return 0;
    int r = file_read(buffer_text(&path), FILE_BYTES_MAX, &text, &found);
    if (r >= 0)
        r = alerts_read(&rules->alerts, text.data, text.length, &found);
    if (r < 0)
        return error_set(error, r,
                         "Failed to read the file %s: %s Repair it, or move it away: then alerts "
                         "begin anew, and those that fire are sent again.",
                         buffer_text(&path), found.text);
    rules->last_ns = rules->alerts.last_ns;
    rules->alerts.unsaved = false;
    return 0;
}

void rules_save_alerts(struct rules *rules)
{
    _cleanup_buffer_ struct buffer path = {0}, text = {0};
    struct error error = {0};
    pthread_mutex_lock(&rules->saving);
    pthread_mutex_lock(&rules->lock);
    bool wanted = rules->alerts.unsaved && rules->directory;
    rules->alerts.unsaved = false;
    if (wanted)
        alerts_write(&rules->alerts, &text);
    pthread_mutex_unlock(&rules->lock);
    if (wanted) {
        buffer_printf(&path, "%s/" ALERTS_FILE, rules->directory);
        if (file_write_atomic(buffer_text(&path), text.data, text.length, &error) < 0) {
            log_debug("%s", error.text);
            pthread_mutex_lock(&rules->lock);
            rules->alerts.unsaved = true;
            pthread_mutex_unlock(&rules->lock);
        }
    }
    pthread_mutex_unlock(&rules->saving);
}

/* ---- rounds ---- */

static void rest(struct rules *rules, int64_t begun_ns)
{
    int64_t busy_ns = monotonic_ns() - begun_ns;
    atomic_fetch_add(&rules->stats.busy_ns, (uint64_t)busy_ns);
    int64_t until_ns = monotonic_ns() + (int64_t)((double)busy_ns * (1 / CPU - 1));
    while (rules->rests && monotonic_ns() < until_ns && !atomic_load(&rules->server->stopping))
        nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
}

/* Takes the values over. */
static void keep(struct rules *rules, const char *tenant, size_t sli, int64_t time_s,
                 struct sli_values *values)
{
    pthread_mutex_lock(&rules->lock);
    struct sli_state *state = state_of(rules, tenant);
    for (size_t i = 0; i < values->count; i++) {
        struct history_series *series =
            history_find(&rules->history, tenant, rules->set->slis[sli].name,
                         &values->list[i].labels, true, time_s);
        if (series)
            history_add(&rules->history, series, time_s, values->list[i].value);
    }
    if (state) {
        sli_values_release(&state->values[sli]);
        state->values[sli] = *values;
        state->time_s[sli] = time_s;
        *values = (struct sli_values){0};
    }
    pthread_mutex_unlock(&rules->lock);
    sli_values_release(values);
}

static void evaluate_tenant(struct rules *rules, const char *tenant, int64_t time_ns)
{
    for (size_t i = 0; i < rules->set->sli_count && !atomic_load(&rules->server->stopping); i++) {
        struct sli_values values = {0};
        struct error error = {0};
        int64_t begun_ns = monotonic_ns();
        int r = sli_evaluate(rules->server, tenant, &rules->set->slis[i], time_ns, &values, &error);
        atomic_fetch_add(r < 0 ? &rules->stats.failed : &rules->stats.evaluations, 1);
        if (r >= 0)
            keep(rules, tenant, i, time_ns / 1000000000, &values);
        rest(rules, begun_ns);
    }
}

struct names {
    char **list;
    size_t count, capacity;
};

static int note_name(void *context, const char *text)
{
    struct names *names = context;
    array_reserve(names->list, names->capacity, names->count + 1);
    names->list[names->count++] = memory_strdup(text);
    return 0;
}

static void evaluate_all(struct rules *rules, int64_t time_ns)
{
    struct names tenants = {0};
    struct error error = {0};
    if (store_tenants(rules->server->store, note_name, &tenants, &error) < 0)
        atomic_fetch_add(&rules->stats.failed, 1);
    for (size_t i = 0; i < tenants.count; i++) {
        if (!atomic_load(&rules->server->stopping))
            evaluate_tenant(rules, tenants.list[i], time_ns);
        free(tenants.list[i]);
    }
    free(tenants.list);
}

/* The clock went back by a lot: what was evaluated is in the future now. */
static void begin_anew(struct rules *rules)
{
    log_warning("The clock went back; the history of SLIs begins anew.");
    pthread_mutex_lock(&rules->lock);
    history_release(&rules->history);
    rules->history.unsaved = true;
    rules->alerts.last_ns = 0;
    pthread_mutex_unlock(&rules->lock);
}

bool rules_round(struct rules *rules, int64_t now_ns)
{
    pthread_mutex_lock(&rules->round);
    bool due = false;
    if (rules->set) {
        int64_t interval_ns = rules->set->interval_ns;
        int64_t time_ns = (now_ns - rules->set->delay_ns) / interval_ns * interval_ns;
        if (time_ns < rules->last_ns - BACK_NS) {
            begin_anew(rules);
            rules->last_ns = 0;
        }
        due = time_ns > rules->last_ns;
        if (due) {
            if (rules->last_ns && time_ns > rules->last_ns + interval_ns)
                atomic_fetch_add(&rules->stats.late, 1);
            evaluate_all(rules, time_ns);
            if (!atomic_load(&rules->server->stopping))
                rules_alerts(rules, time_ns);
            rules_save_alerts(rules);
            rules->last_ns = time_ns;
            atomic_fetch_add(&rules->stats.rounds, 1);
        }
    }
    pthread_mutex_unlock(&rules->round);
    return due;
}

static void *run(void *userdata)
{
    struct rules *rules = userdata;
    pthread_setname_np(pthread_self(), RULES_THREAD);
    while (!atomic_load(&rules->server->stopping)) {
        rules_round(rules, clock_ns(CLOCK_REALTIME));
        if (monotonic_ns() - rules->saved_ns > SAVE_NS)
            save(rules);
        nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
    }
    return NULL;
}

/* ---- life ---- */

int rules_open(struct server *server, const char *directory, struct rules **ret_rules,
               struct error *error)
{
    struct rules *rules = memory_zalloc(1, sizeof(*rules));
    rules->server = server;
    rules->directory = directory ? memory_strdup(directory) : NULL;
    pthread_mutex_init(&rules->round, NULL);
    pthread_mutex_init(&rules->lock, NULL);
    pthread_mutex_init(&rules->saving, NULL);
    rules->saved_ns = monotonic_ns();
    load(rules);
    int r = load_alerts(rules, error);
    if (r < 0) {
        free(rules->directory);
        rules->directory = NULL;
        rules_close(rules);
        return r;
    }
    *ret_rules = rules;
    return 0;
}

int rules_start(struct rules *rules, struct error *error)
{
    rules->running = rules->rests = true;
    int r = -pthread_create(&rules->thread, NULL, run, rules);
    if (r < 0) {
        rules->running = false;
        error_set_errno(error, r, "Failed to start the evaluation of rules");
    } else {
        pthread_mutex_lock(&rules->round);
        start_notifiers(rules);
        pthread_mutex_unlock(&rules->round);
    }
    return r;
}

void rules_close(struct rules *rules)
{
    if (!rules)
        return;
    if (rules->running)
        pthread_join(rules->thread, NULL);
    stop_notifiers(rules);
    save(rules);
    rules_save_alerts(rules);
    release_states(rules);
    rule_set_unref(rules->set);
    history_release(&rules->history);
    alerts_release(&rules->alerts);
    pthread_mutex_destroy(&rules->saving);
    pthread_mutex_destroy(&rules->lock);
    pthread_mutex_destroy(&rules->round);
    free(rules->directory);
    free(rules);
}

/* ---- metrics ---- */

static void put_label(struct buffer *out, const char *name, const char *value)
{
    if (!strcmp(name, "sli") || !strcmp(name, "tenant"))
        buffer_add_text(out, "label_");
    for (const char *c = name; *c; c++)
        buffer_add_char(out, (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                                     (*c >= '0' && *c <= '9' && c > name)
                                 ? *c
                                 : '_');
    buffer_add_text(out, "=\"");
    text_escape_metric(out, value);
    buffer_add_char(out, '"');
}

static void write_values(const struct rule_set *set, const struct sli_state *state,
                         struct buffer *out)
{
    for (size_t i = 0; i < set->sli_count; i++)
        for (size_t k = 0; k < state->values[i].count; k++) {
            const struct sli_value *value = &state->values[i].list[k];
            buffer_printf(out, "assay_sli{sli=\"%s\",tenant=\"", set->slis[i].name);
            text_escape_metric(out, state->tenant);
            buffer_add_char(out, '"');
            for (size_t n = 0; n < value->labels.count; n++) {
                buffer_add_char(out, ',');
                put_label(out, value->labels.list[n].name, value->labels.list[n].value);
            }
            buffer_printf(out, "} %.9g\n", value->value);
        }
}

static void write_absent(const struct rule_set *set, const struct sli_state *state,
                         struct buffer *out)
{
    for (size_t i = 0; i < set->sli_count; i++)
        if (state->time_s[i] && !state->values[i].count) {
            buffer_printf(out, "assay_sli_absent{sli=\"%s\",tenant=\"", set->slis[i].name);
            text_escape_metric(out, state->tenant);
            buffer_add_text(out, "\"} 1\n");
        }
}

static void metric(struct buffer *out, const char *name, const char *kind, const char *help,
                   double value)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, kind, name,
                  value);
}

void rules_write_metrics(struct rules *rules, const char *tenant, struct buffer *out)
{
    struct rules_stats *stats = &rules->stats;
    pthread_mutex_lock(&rules->lock);
    buffer_add_text(out, "# HELP assay_sli Service level indicators, by rule.\n"
                         "# TYPE assay_sli gauge\n");
    for (size_t i = 0; i < rules->state_count; i++)
        if (!tenant || !strcmp(tenant, rules->states[i].tenant))
            write_values(rules->set, &rules->states[i], out);
    buffer_add_text(out, "# HELP assay_sli_absent 1 for rules without any value; the reason is in GET "
                         "/api/v1/slis.\n# TYPE assay_sli_absent gauge\n");
    for (size_t i = 0; i < rules->state_count; i++)
        if (!tenant || !strcmp(tenant, rules->states[i].tenant))
            write_absent(rules->set, &rules->states[i], out);
    size_t alerts[ALERT_STATES] = {0};
    for (size_t i = 0; i < rules->alerts.count; i++)
        alerts[rules->alerts.list[i].state]++;
    buffer_add_text(out, "# HELP assay_alerts Alerts of all tenants, by state.\n"
                         "# TYPE assay_alerts gauge\n");
    for (size_t i = 0; i < ALERT_STATES; i++)
        buffer_printf(out, "assay_alerts{state=\"%s\"} %zu\n", alert_state_names[i], alerts[i]);
    uint64_t dropped_alerts = rules->alerts.dropped;
    uint64_t dropped = rules->history.dropped;
    size_t series = rules->history.count;
    pthread_mutex_unlock(&rules->lock);
    metric(out, "assay_rules_rounds_total", "counter", "Evaluations of all rules.",
           (double)atomic_load(&stats->rounds));
    metric(out, "assay_rules_late_total", "counter",
           "Evaluations that skipped a time, because the server was busy or down, or the clock "
           "was set.",
           (double)atomic_load(&stats->late));
    metric(out, "assay_rules_evaluations_total", "counter", "Evaluations of one rule.",
           (double)atomic_load(&stats->evaluations));
    metric(out, "assay_rules_failed_total", "counter",
           "Evaluations that failed for lack of memory.", (double)atomic_load(&stats->failed));
    metric(out, "assay_rules_seconds_total", "counter", "Time spent on rules.",
           (double)atomic_load(&stats->busy_ns) / 1e9);
    metric(out, "assay_alerts_dropped_total", "counter", "Alerts dropped for want of room.",
           (double)dropped_alerts);
    metric(out, "assay_notifications_sent_total", "counter", "Requests that receivers accepted.",
           (double)atomic_load(&rules->notify_stats.sent));
    metric(out, "assay_notifications_failed_total", "counter",
           "Requests to receivers that failed, and are tried again.",
           (double)atomic_load(&rules->notify_stats.failed));
    metric(out, "assay_sli_series", "gauge", "Series of SLIs that are kept.", (double)series);
    metric(out, "assay_sli_series_dropped_total", "counter",
           "Values of series that were not kept for want of room.", (double)dropped);
}
