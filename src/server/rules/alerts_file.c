// SPDX-License-Identifier: Apache-2.0
// Alerts on disk: JSON, written whole. docs/formats/alerts.md describes it.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/document.h"
#include "io/json_write.h"
#include "server/rules/alerts.h"

#define FILE_VERSION 1
#define FILE_BYTES_MAX (64u << 20)
#define LINK_BYTES 65536

static const char *const reasons[] = {"", "condition no longer holds", "no data", "rule removed",
                                      "finding closed"};

/* ---- writing ---- */

static void write_alert(const struct alert *alert, struct json_writer *json)
{
    json_write_line(json);
    json_write_object(json);
    json_member_text(json, "id", alert->id);
    json_member_text(json, "tenant", alert->tenant);
    json_member_text(json, "name", alert->name);
    json_member_text(json, "state", alert_state_names[alert->state]);
    json_write_key(json, "labels");
    json_write_object(json);
    for (size_t i = 0; i < alert->labels.count; i++)
        json_member_text(json, alert->labels.list[i].name, alert->labels.list[i].value);
    json_write_object_end(json);
    json_member_signed(json, "since", alert->since_ns);
    json_member_signed(json, "fired", alert->fired_ns);
    json_member_signed(json, "ended", alert->ended_ns);
    json_member_signed(json, "pending_for", alert->pending_ns);
    json_member_signed(json, "quiet_for", alert->quiet_ns);
    json_member_signed(json, "absent_for", alert->absent_ns);
    json_member_number(json, "value", alert->value);
    json_member_text(json, "summary", alert->summary ? alert->summary : "");
    json_member_text(json, "link", alert->link ? alert->link : "");
    json_member_text(json, "runbook", alert->runbook ? alert->runbook : "");
    json_member_text(json, "reason", alert->reason);
    json_member_bool(json, "muted", alert->muted);
    json_member_bool(json, "inhibited", alert->inhibited);
    json_write_object_end(json);
}

static void write_group(const struct alert_group *group, struct json_writer *json)
{
    char sent[32];
    snprintf(sent, sizeof(sent), "%016llx", (unsigned long long)group->sent);
    json_write_line(json);
    json_write_object(json);
    json_member_text(json, "url", group->url);
    json_member_text(json, "tenant", group->tenant);
    json_member_text(json, "service", group->service);
    json_member_text(json, "version", group->version);
    json_member_text(json, "sent", sent);
    json_member_signed(json, "sent_at", group->sent_ns);
    json_member_signed(json, "changed_at", group->changed_ns);
    json_write_object_end(json);
}

void alerts_write(const struct alerts *alerts, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_signed(&json, "version", FILE_VERSION);
    json_member_signed(&json, "time", alerts->last_ns);
    json_write_key(&json, "alerts");
    json_write_array(&json);
    for (size_t i = 0; i < alerts->count; i++)
        write_alert(&alerts->list[i], &json);
    json_write_array_end(&json);
    json_write_key(&json, "groups");
    json_write_array(&json);
    for (size_t i = 0; i < alerts->group_count; i++)
        write_group(&alerts->groups[i], &json);
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

/* ---- reading ---- */

static int read_labels(struct json *json, struct labels *labels)
{
    _cleanup_buffer_ struct buffer name = {0}, value = {0};
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (labels->count >= 64 || !utf8_valid(key.data, key.length))
            return json_fail(json, "An alert has too many labels, or one that is not text");
        name.length = 0;
        buffer_add(&name, key.data, key.length);
        r = document_text_buffer(json, &value, ALERT_TEXT_BYTES - 1);
        if (r >= 0)
            labels_set_n(labels, name.data, name.length, value.data, value.length);
    }
    return r;
}

static int read_word(struct json *json, const char *const *words, size_t count, size_t *ret_index)
{
    _cleanup_buffer_ struct buffer word = {0};
    int r = document_text_buffer(json, &word, 64);
    for (size_t i = 0; r >= 0 && i < count; i++)
        if (!strcmp(words[i], buffer_text(&word))) {
            *ret_index = i;
            return 0;
        }
    return r < 0 ? r : json_fail(json, "\"%s\" is not a state or reason", buffer_text(&word));
}

static int read_value(struct json *json, double *value)
{
    if (json_null(json)) {
        *value = NAN;
        return 0;
    }
    return json_double(json, value);
}

static int read_owned(struct json *json, char **text, size_t most)
{
    _cleanup_buffer_ struct buffer buffer = {0};
    int r = document_text_buffer(json, &buffer, most);
    if (r < 0)
        return r;
    free(*text);
    *text = memory_strdup(buffer_text(&buffer));
    return 0;
}

static int read_number(struct json *json, const struct json_string *key, struct alert *alert)
{
    const struct {
        const char *key;
        int64_t *to;
    } numbers[] = {{"since", &alert->since_ns},     {"fired", &alert->fired_ns},
                   {"ended", &alert->ended_ns},     {"pending_for", &alert->pending_ns},
                   {"quiet_for", &alert->quiet_ns}, {"absent_for", &alert->absent_ns}};
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        if (json_is(key, numbers[i].key))
            return json_i64(json, numbers[i].to);
    return 0;
}

static int read_member(struct json *json, const struct json_string *key, struct alert *alert)
{
    _cleanup_buffer_ struct buffer text = {0};
    size_t index = 0;
    int r;
    if (json_is(key, "id")) {
        r = document_text_buffer(json, &text, ALERT_ID_BYTES - 1);
        if (r >= 0)
            snprintf(alert->id, sizeof(alert->id), "%s", buffer_text(&text));
        return r;
    }
    if (json_is(key, "tenant"))
        return read_owned(json, &alert->tenant, 256);
    if (json_is(key, "name"))
        return read_owned(json, &alert->name, 256);
    if (json_is(key, "summary"))
        return read_owned(json, &alert->summary, 2 * ALERT_TEXT_BYTES);
    if (json_is(key, "link"))
        return read_owned(json, &alert->link, LINK_BYTES);
    if (json_is(key, "runbook"))
        return read_owned(json, &alert->runbook, ALERT_TEXT_BYTES);
    if (json_is(key, "labels"))
        return read_labels(json, &alert->labels);
    if (json_is(key, "value"))
        return read_value(json, &alert->value);
    if (json_is(key, "muted"))
        return json_bool(json, &alert->muted);
    if (json_is(key, "inhibited"))
        return json_bool(json, &alert->inhibited);
    if (json_is(key, "state")) {
        r = read_word(json, alert_state_names, ALERT_STATES, &index);
        alert->state = (enum alert_state)index;
        return r;
    }
    if (json_is(key, "reason")) {
        r = read_word(json, reasons, ARRAY_LENGTH(reasons), &index);
        alert->reason = reasons[index];
        return r;
    }
    return read_number(json, key, alert);
}

/* Into a slot of its own, so that whatever was read is released with all others. */
static int read_alert(struct json *json, void *context)
{
    struct alerts *alerts = context;
    struct json_string key;
    if (alerts->count >= ALERTS_MAX)
        return json_fail(json, "There are more than %d alerts", ALERTS_MAX);
    array_reserve(alerts->list, alerts->capacity, alerts->count + 1);
    struct alert *alert = &alerts->list[alerts->count++];
    *alert = (struct alert){.reason = ""};
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = read_member(json, &key, alert);
    if (r >= 0 && (!alert->tenant || !alert->name || !*alert->id))
        r = json_fail(json, "An alert has no id, tenant or name");
    char **texts[] = {&alert->summary, &alert->link, &alert->runbook};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        if (!*texts[i])
            *texts[i] = memory_strdup("");
    return r;
}

static int read_hash(struct json *json, uint64_t *hash)
{
    _cleanup_buffer_ struct buffer text = {0};
    int r = document_text_buffer(json, &text, 16);
    unsigned long long value = 0;
    if (r >= 0 && sscanf(buffer_text(&text), "%16llx", &value) != 1)
        return json_fail(json, "A hash makes no sense");
    *hash = value;
    return r;
}

static int read_group(struct json *json, void *context)
{
    struct alerts *alerts = context;
    struct json_string key;
    if (alerts->group_count >= ALERT_GROUPS_MAX)
        return json_fail(json, "There are more than %d groups", ALERT_GROUPS_MAX);
    array_reserve(alerts->groups, alerts->group_capacity, alerts->group_count + 1);
    struct alert_group *group = &alerts->groups[alerts->group_count++];
    *group = (struct alert_group){0};
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "url"))
            r = read_owned(json, &group->url, ALERT_TEXT_BYTES);
        else if (json_is(&key, "tenant"))
            r = read_owned(json, &group->tenant, 256);
        else if (json_is(&key, "service"))
            r = read_owned(json, &group->service, ALERT_TEXT_BYTES);
        else if (json_is(&key, "version"))
            r = read_owned(json, &group->version, ALERT_TEXT_BYTES);
        else if (json_is(&key, "sent"))
            r = read_hash(json, &group->sent);
        else if (json_is(&key, "sent_at"))
            r = json_i64(json, &group->sent_ns);
        else if (json_is(&key, "changed_at"))
            r = json_i64(json, &group->changed_ns);
    if (r >= 0 && (!group->url || !group->tenant || !group->service || !group->version))
        r = json_fail(json, "A group has no url, tenant, service or version");
    return r;
}

static int read_time(struct json *json, void *context)
{
    return json_i64(json, &((struct alerts *)context)->last_ns);
}

int alerts_read(struct alerts *alerts, const char *text, size_t length, struct error *error)
{
    static const struct document_member members[] = {{"time", false, read_time},
                                                     {"alerts", true, read_alert},
                                                     {"groups", true, read_group},
                                                     {0}};
    return document_read(text, length, FILE_BYTES_MAX, FILE_VERSION, members, alerts, error);
}
