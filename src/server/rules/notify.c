// SPDX-License-Identifier: Apache-2.0
// Receivers of alerts: see notify.h.

#include "server/rules/notify.h"

#include <gnutls/crypto.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "http/client/client.h"
#include "io/json_write.h"
#include "server/rules/live.h"

#define SECOND_NS 1000000000ll
#define TIMEOUT_MS 10000
#define CONNECT_TIMEOUT_MS 5000
#define ANSWER_BYTES (64u << 10)
#define RESEND_NS (60 * SECOND_NS)  /* an Alertmanager forgets alerts in its restart */
#define FIRES_NS (1800 * SECOND_NS) /* that long an alert fires without being sent again */
#define ENDED_NS (1800 * SECOND_NS) /* that long a resolved one is sent */
#define BATCH_MAX 500
#define SLICE_NS 50000000l

struct notifier {
    struct rules *rules;
    struct rule_set *set;
    const struct receiver *receiver;
    struct http_client *client;
    atomic_bool stopping;
    uint64_t version;  /* of the alerts that an Alertmanager was told of */
    int64_t told_ns;   /* when, by the monotonic clock; 0: never */
    int64_t later_ns;  /* not before, after a failure */
    unsigned failures; /* in a row */
    pthread_t thread;
};

/* ---- requests ---- */

void notify_sign(const char *secret, size_t secret_length, int64_t time_s, const char *body,
                 size_t length, char ret_signature[128])
{
    _cleanup_buffer_ struct buffer text = {0}, hex = {0};
    unsigned char digest[32];
    buffer_printf(&text, "%lld.", (long long)time_s);
    buffer_add(&text, body, length);
    ret_signature[0] = 0;
    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret, secret_length, text.data, text.length, digest) <
        0)
        return;
    buffer_add_hex(&hex, digest, sizeof(digest));
    snprintf(ret_signature, 128, "t=%lld,v1=%s", (long long)time_s, buffer_text(&hex));
}

static bool post(struct notifier *notifier, const char *path, const struct buffer *body,
                 uint64_t delivery)
{
    const struct receiver *receiver = notifier->receiver;
    _cleanup_buffer_ struct buffer url = {0};
    _cleanup_http_reply_ struct http_reply reply = {0};
    struct error error = {0};
    char signature[128], signature_line[192], delivery_line[64];
    const char *headers[3] = {"Content-Type: application/json"};
    size_t count = 1;
    buffer_printf(&url, "%s%s", receiver->url, path);
    if (delivery) {
        snprintf(delivery_line, sizeof(delivery_line), "X-Assay-Delivery: %016llx",
                 (unsigned long long)delivery);
        headers[count++] = delivery_line;
    }
    if (receiver->secret) {
        notify_sign(receiver->secret, receiver->secret_length, clock_ns(CLOCK_REALTIME) / SECOND_NS,
                    body->data, body->length, signature);
        snprintf(signature_line, sizeof(signature_line), "X-Assay-Signature: %s", signature);
        headers[count++] = signature_line;
    }
    struct http_call call = {.method = "POST",
                             .url = buffer_text(&url),
                             .headers = headers,
                             .header_count = count,
                             .body = body->data,
                             .body_length = body->length};
    int r = http_client_call(notifier->client, &call, &reply, &error);
    if (r >= 0 && reply.status / 100 == 2) {
        atomic_fetch_add(&notifier->rules->notify_stats.sent, 1);
        notifier->failures = 0;
        return true;
    }
    if (atomic_load(&notifier->stopping))
        return false;
    if (r >= 0)
        error_set(&error, -1, "%s answered with the status %u.", receiver->url, reply.status);
    atomic_fetch_add(&notifier->rules->notify_stats.failed, 1);
    unsigned wait_ms =
        http_retry_wait_ms(&(struct http_retry){.first_ms = 1000, .longest_ms = 60000},
                           MIN(++notifier->failures, 10u), reply.retry_after_ms, random_bits());
    notifier->later_ns = monotonic_ns() + wait_ms * 1000000ll;
    if (notifier->failures == 1)
        log_warning("Failed to send alerts, which is tried again: %s", error.text);
    return false;
}

static void put_url(struct json_writer *json, const char *key, const struct notify_rules *notify,
                    const char *path)
{
    _cleanup_buffer_ struct buffer url = {0};
    if (*path == '/')
        buffer_add_text(&url, notify->external_url);
    buffer_add_text(&url, path);
    json_member_text(json, key, buffer_text(&url));
}

static void put_time(struct json_writer *json, const char *key, int64_t ns)
{
    char text[40];
    time_t seconds = (time_t)(ns / SECOND_NS);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    json_member_text(json, key, text);
}

/* ---- Alertmanager ---- */

static void put_label_names(struct json_writer *json, const struct labels *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        char name[256];
        size_t length = 0;
        for (const char *c = labels->list[i].name; *c && length < sizeof(name) - 1; c++) {
            bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                        (*c >= '0' && *c <= '9' && length);
            name[length++] = fits ? *c : '_';
        }
        name[length] = 0;
        if (strcmp(name, "alertname") && strcmp(name, "tenant"))
            json_member_text(json, name, labels->list[i].value);
    }
}

static void put_for_manager(struct json_writer *json, const struct alert *alert,
                            const struct notify_rules *notify, int64_t now_ns)
{
    json_write_object(json);
    json_write_key(json, "labels");
    json_write_object(json);
    json_member_text(json, "alertname", alert->name);
    json_member_text(json, "tenant", alert->tenant);
    put_label_names(json, &alert->labels);
    json_write_object_end(json);
    json_write_key(json, "annotations");
    json_write_object(json);
    json_member_text(json, "summary", alert->summary);
    put_url(json, "link", notify, alert->link);
    if (*alert->runbook)
        put_url(json, "runbook_url", notify, alert->runbook);
    json_write_object_end(json);
    put_time(json, "startsAt", alert->fired_ns);
    put_time(json, "endsAt", alert->ended_ns ? alert->ended_ns : now_ns + FIRES_NS);
    if (*notify->external_url)
        put_url(json, "generatorURL", notify, "/alerts");
    json_write_object_end(json);
}

/* Writes alerts from `from` on, at most a batch; returns where the next batch begins. */
static size_t write_batch(const struct notifier *notifier, const struct alerts *alerts, size_t from,
                          int64_t now_ns, struct buffer *out, size_t *ret_count)
{
    struct json_writer json = json_writer(out);
    size_t count = 0, i = from;
    json_write_array(&json);
    for (; i < alerts->count && count < BATCH_MAX; i++) {
        const struct alert *alert = &alerts->list[i];
        bool ended = alert->state == ALERT_RESOLVED && alert->fired_ns && !alert->muted &&
                     !alert->inhibited && alert->ended_ns > now_ns - ENDED_NS;
        if (!ended && !alert_is_sent(alert))
            continue;
        put_for_manager(&json, alert, &notifier->set->notify, now_ns);
        count++;
    }
    json_write_array_end(&json);
    *ret_count = count;
    return i;
}

static void tell_manager(struct notifier *notifier)
{
    struct rules *rules = notifier->rules;
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    size_t at = 0, count;
    uint64_t version;
    bool more = true;
    pthread_mutex_lock(&rules->lock);
    version = rules->alerts.version;
    pthread_mutex_unlock(&rules->lock);
    if (notifier->told_ns && version == notifier->version &&
        monotonic_ns() - notifier->told_ns < RESEND_NS)
        return;
    while (more) {
        _cleanup_buffer_ struct buffer body = {0};
        pthread_mutex_lock(&rules->lock);
        at = write_batch(notifier, &rules->alerts, at, now_ns, &body, &count);
        more = at < rules->alerts.count;
        pthread_mutex_unlock(&rules->lock);
        if (count && !post(notifier, "/api/v2/alerts", &body, 0))
            return;
    }
    notifier->version = version;
    notifier->told_ns = monotonic_ns();
}

/* ---- webhooks ---- */

struct message {
    struct buffer body;
    uint64_t hash, delivery;
    char *tenant, *service, *version;
};

static bool in_group(const struct alert *alert, const struct alert_group *group)
{
    return !strcmp(alert->tenant, group->tenant) &&
           !strcmp(alert_label(alert, LABEL_SERVICE_NAME), group->service) &&
           !strcmp(alert_label(alert, "version"), group->version);
}

/* The same whatever their order; 0: none. */
static uint64_t hash_of(const struct alerts *alerts, const struct alert_group *group)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < alerts->count; i++)
        if (alert_is_sent(&alerts->list[i]) && in_group(&alerts->list[i], group))
            hash += XXH3_64bits(alerts->list[i].id, strlen(alerts->list[i].id)) | 1;
    return hash;
}

/* The same for a message that is sent again, by a restarted server, too, although values in its
 * text change: what fires since when, and what the receiver was told before. */
static uint64_t delivery_of(const struct alerts *alerts, const struct alert_group *group,
                            uint64_t hash)
{
    uint64_t since = 0;
    for (size_t i = 0; i < alerts->count; i++)
        if (alert_is_sent(&alerts->list[i]) && in_group(&alerts->list[i], group))
            since += XXH3_64bits_withSeed(alerts->list[i].id, strlen(alerts->list[i].id),
                                          (uint64_t)alerts->list[i].fired_ns);
    uint64_t parts[] = {hash,
                        since,
                        group->sent,
                        (uint64_t)group->sent_ns,
                        XXH3_64bits(group->tenant, strlen(group->tenant)),
                        XXH3_64bits(group->service, strlen(group->service)),
                        XXH3_64bits(group->version, strlen(group->version))};
    return XXH3_64bits(parts, sizeof(parts)) | 1;
}

static void put_for_webhook(struct json_writer *json, const struct alert *alert,
                            const struct notify_rules *notify)
{
    json_write_object(json);
    json_member_text(json, "id", alert->id);
    json_member_text(json, "name", alert->name);
    json_member_text(json, "state", alert_state_names[alert->state]);
    json_write_key(json, "labels");
    labels_write_json(&alert->labels, json);
    if (isfinite(alert->value))
        json_member_number(json, "value", alert->value);
    json_member_text(json, "summary", alert->summary);
    put_url(json, "link", notify, alert->link);
    if (*alert->runbook)
        put_url(json, "runbook", notify, alert->runbook);
    put_time(json, "since", alert->fired_ns);
    if (alert->ended_ns) {
        put_time(json, "ended", alert->ended_ns);
        json_member_text(json, "reason", alert->reason);
    }
    json_write_object_end(json);
}

static void write_message(const struct notifier *notifier, const struct alerts *alerts,
                          const struct alert_group *group, uint64_t hash, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    size_t firing = 0;
    char title[1024];
    for (size_t i = 0; i < alerts->count; i++)
        firing += alert_is_sent(&alerts->list[i]) && in_group(&alerts->list[i], group);
    snprintf(title, sizeof(title), "%.400s%s%.400s: %zu alert%s firing",
             *group->service ? group->service : "assay", *group->version ? " " : "", group->version,
             firing, firing == 1 ? "" : "s");
    json_write_object(&json);
    json_member_unsigned(&json, "version", 1);
    json_member_text(&json, "status", hash ? "firing" : "resolved");
    json_member_text(&json, "title", title);
    json_member_text(&json, "tenant", group->tenant);
    json_write_key(&json, "group");
    json_write_object(&json);
    json_member_text(&json, LABEL_SERVICE_NAME, group->service);
    json_member_text(&json, "version", group->version);
    json_write_object_end(&json);
    json_write_key(&json, "alerts");
    json_write_array(&json);
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->list[i];
        bool ended = alert->state == ALERT_RESOLVED && alert->fired_ns &&
                     alert->ended_ns >= group->sent_ns && group->sent_ns;
        if (in_group(alert, group) && (ended || alert_is_sent(alert)))
            put_for_webhook(&json, alert, &notifier->set->notify);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

static bool is_due(const struct notify_rules *notify, struct alert_group *group, uint64_t hash,
                   int64_t now_ns)
{
    bool changed = hash != group->sent;
    if (!changed) {
        group->changed_ns = 0;
        return hash && now_ns - group->sent_ns >= notify->repeat_ns;
    }
    /* A clock that went back doesn't hold anything up. */
    if (!group->changed_ns || group->changed_ns > now_ns)
        group->changed_ns = now_ns;
    bool recent = group->sent_ns && group->sent_ns <= now_ns &&
                  now_ns - group->sent_ns < notify->group_interval_ns;
    return !recent && now_ns - group->changed_ns >= (group->sent ? 0 : notify->group_wait_ns);
}

/* The first message that is due; false: none. */
static bool next_message(struct notifier *notifier, struct message *message)
{
    struct rules *rules = notifier->rules;
    struct alerts *alerts = &rules->alerts;
    const char *url = notifier->receiver->url;
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    bool found = false;
    pthread_mutex_lock(&rules->lock);
    for (size_t i = 0; i < alerts->count; i++)
        if (alert_is_sent(&alerts->list[i]))
            alerts_group(alerts, url, &alerts->list[i]);
    for (size_t i = 0; !found && i < alerts->group_count; i++) {
        struct alert_group *group = &alerts->groups[i];
        if (strcmp(group->url, url))
            continue;
        uint64_t hash = hash_of(alerts, group);
        if (!is_due(&notifier->set->notify, group, hash, now_ns))
            continue;
        write_message(notifier, alerts, group, hash, &message->body);
        message->hash = hash;
        message->delivery = delivery_of(alerts, group, hash);
        message->tenant = memory_strdup(group->tenant);
        message->service = memory_strdup(group->service);
        message->version = memory_strdup(group->version);
        found = true;
    }
    pthread_mutex_unlock(&rules->lock);
    return found;
}

static void note_sent(struct notifier *notifier, const struct message *message)
{
    struct rules *rules = notifier->rules;
    pthread_mutex_lock(&rules->lock);
    for (size_t i = 0; i < rules->alerts.group_count; i++) {
        struct alert_group *group = &rules->alerts.groups[i];
        if (strcmp(group->url, notifier->receiver->url) || strcmp(group->tenant, message->tenant) ||
            strcmp(group->service, message->service) || strcmp(group->version, message->version))
            continue;
        group->sent = message->hash;
        group->sent_ns = clock_ns(CLOCK_REALTIME);
        group->changed_ns = 0;
        rules->alerts.unsaved = true;
    }
    pthread_mutex_unlock(&rules->lock);
    rules_save_alerts(rules);
}

static void tell_webhook(struct notifier *notifier)
{
    bool going = true;
    while (going && !atomic_load(&notifier->stopping)) {
        struct message message = {0};
        going = next_message(notifier, &message);
        if (going) {
            going = post(notifier, "", &message.body, message.delivery);
            if (going)
                note_sent(notifier, &message);
        }
        buffer_release(&message.body);
        free(message.tenant);
        free(message.service);
        free(message.version);
    }
}

/* ---- threads ---- */

static void *run(void *userdata)
{
    struct notifier *notifier = userdata;
    pthread_setname_np(pthread_self(), "alerts");
    while (!atomic_load(&notifier->stopping)) {
        if (monotonic_ns() >= notifier->later_ns) {
            if (notifier->receiver->kind == RECEIVER_ALERTMANAGER)
                tell_manager(notifier);
            else
                tell_webhook(notifier);
        }
        nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
    }
    return NULL;
}

struct notifier *notifier_start(struct rules *rules, struct rule_set *set, size_t receiver)
{
    struct notifier *notifier = memory_zalloc(1, sizeof(*notifier));
    struct error error = {0};
    struct http_client_options options = {.timeout_ms = TIMEOUT_MS,
                                          .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                          .answer_limit_bytes = ANSWER_BYTES,
                                          .redirects = 0};
    notifier->rules = rules;
    notifier->set = rule_set_ref(set);
    notifier->receiver = &set->notify.receivers[receiver];
    int r = http_client_new(&options, &notifier->client, &error);
    if (!r && (r = -pthread_create(&notifier->thread, NULL, run, notifier)) < 0)
        error_set_errno(&error, r, "Failed to start sending alerts");
    if (!r)
        return notifier;
    log_error("%s", error.text);
    http_client_free(notifier->client);
    rule_set_unref(notifier->set);
    free(notifier);
    return NULL;
}

void notifier_stop(struct notifier *notifier)
{
    if (!notifier)
        return;
    atomic_store(&notifier->stopping, true);
    http_client_cancel(notifier->client);
    pthread_join(notifier->thread, NULL);
    http_client_free(notifier->client);
    rule_set_unref(notifier->set);
    free(notifier);
}
