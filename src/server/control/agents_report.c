// SPDX-License-Identifier: Apache-2.0
// Reads an agent's report from JSON. Keeps all simple values of its stats under their names, so
// that a newer agent can report more than this server knows.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/json.h"
#include "server/control/agents.h"
#include "server/handler/handler.h"

#define STATUS_KEY_BYTES 48
#define STATUS_TEXT_BYTES 512
#define LABEL_NAME_BYTES_MAX 128
#define LABEL_VALUE_BYTES_MAX 512

void agent_report_release(struct agent_report *report)
{
    fleet_agent_release(&report->agent);
}

/* As much of a text as fits, never half a character; what is not UTF-8 becomes a query mark. */
static void copy_text(char *to, size_t room, const struct json_string *text)
{
    size_t used = 0;
    for (size_t i = 0; i < text->length;) {
        size_t length = utf8_sequence(text->data + i, text->length - i);
        bool plain = length && (unsigned char)text->data[i] >= ' ' && text->data[i] != 0x7f;
        size_t taken = plain ? length : 1;
        if (used + taken >= room)
            break;
        if (plain)
            memcpy(to + used, text->data + i, taken);
        else
            to[used] = '?';
        used += taken;
        i += length ? length : 1;
    }
    to[used] = 0;
}

static int read_text(struct json *json, char *to, size_t room)
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r >= 0)
        copy_text(to, room, &text);
    return r;
}

/* ---- stats ---- */

static bool is_key(const struct json_string *key)
{
    if (!key->length || key->length > STATUS_KEY_BYTES)
        return false;
    for (size_t i = 0; i < key->length; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", key->data[i]) || !key->data[i])
            return false;
    return true;
}

/* A number, a text or a truth under `key`. Others are left out. */
static int copy_value(struct json *json, const char *key, struct json_writer *out)
{
    char text[STATUS_TEXT_BYTES];
    double number;
    bool truth;
    int kind = json_kind(json), r = kind;
    if (kind == JSON_NUMBER) {
        r = json_double(json, &number);
        if (r >= 0)
            json_member_digits(out, key, isfinite(number) ? number : 0, 15);
    } else if (kind == JSON_BOOL) {
        r = json_bool(json, &truth);
        if (r >= 0)
            json_member_bool(out, key, truth);
    } else if (kind == JSON_STRING) {
        r = read_text(json, text, sizeof(text));
        if (r >= 0)
            json_member_text(out, key, text);
    } else if (kind >= 0) {
        return json_skip(json);
    }
    return r;
}

/* The members of an object, and of those that are objects, theirs. A member that doesn't fit any
 * more is left out. */
static int copy_status(struct json *json, struct json_writer *out, bool inner)
{
    struct json_string key;
    json_write_object(out);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        size_t length = out->out->length;
        bool comma = out->comma;
        char name[STATUS_KEY_BYTES + 1];
        if (!is_key(&key)) {
            r = json_skip(json);
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)key.length, key.data);
        if (!inner && json_kind(json) == JSON_OBJECT) {
            json_write_key(out, name);
            r = copy_status(json, out, true);
        } else {
            r = copy_value(json, name, out);
        }
        if (out->out->length > AGENT_STATUS_BYTES) {
            out->out->length = length;
            out->comma = comma;
        }
    }
    json_write_object_end(out);
    return r;
}

static int read_status(struct json *json, struct fleet_agent *agent)
{
    struct buffer out = {0};
    struct json_writer writer = json_writer(&out);
    int r = copy_status(json, &writer, false);
    if (r >= 0) {
        free(agent->status);
        agent->status = memory_strndup(out.data, out.length);
    }
    buffer_release(&out);
    return r;
}

/* ---- the rest ---- */

static int read_labels(struct json *json, struct labels *labels)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        char name[LABEL_NAME_BYTES_MAX + 1], value[LABEL_VALUE_BYTES_MAX + 1];
        copy_text(name, sizeof(name), &key);
        r = read_text(json, value, sizeof(value));
        if (r >= 0 && labels->count < AGENT_LABELS_MAX)
            labels_set(labels, name, value);
    }
    return r;
}

static int read_update(struct json *json, struct agent_update *update)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "id"))
            r = read_text(json, update->id, sizeof(update->id));
        else if (json_is(&key, "state"))
            r = read_text(json, update->state, sizeof(update->state));
        else if (json_is(&key, "reason"))
            r = read_text(json, update->reason, sizeof(update->reason));
        else if (json_is(&key, "samples"))
            r = json_u64(json, &update->samples);
    return r;
}

static int read_updates(struct json *json, struct agent_report *report)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        if (report->update_count == AGENT_UPDATES_MAX)
            return json_fail(json, "A report has more than %d recordings", AGENT_UPDATES_MAX);
        r = read_update(json, &report->updates[report->update_count++]);
    }
    return r;
}

static int read_word(struct json *json, struct agent_report *report)
{
    static const char *const states[] = {"have", "sending", "refused"};
    struct json_string key;
    struct symbol_request_word word = {0};
    char build_id[SYMBOL_KEY_BYTES] = "", state[16] = "";
    size_t i = 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "build_id"))
            r = read_text(json, build_id, sizeof(build_id));
        else if (json_is(&key, "state"))
            r = read_text(json, state, sizeof(state));
        else if (json_is(&key, "reason"))
            r = read_text(json, word.reason, sizeof(word.reason));
    while (i < ARRAY_LENGTH(states) && strcmp(state, states[i]))
        i++;
    word.state = (enum symbol_request_state)i;
    /* A newer agent may say more than is known of here. */
    if (r >= 0 && i < ARRAY_LENGTH(states) && symbol_key(build_id, word.key))
        report->words[report->word_count++] = word;
    return r;
}

static int read_words(struct json *json, struct agent_report *report)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        if (report->word_count == SYMBOL_REQUEST_WORDS_MAX)
            return json_fail(json, "A report has more than %d builds", SYMBOL_REQUEST_WORDS_MAX);
        r = read_word(json, report);
    }
    return r;
}

static int read_report(struct json *json, struct agent_report *report)
{
    struct json_string key;
    struct fleet_agent *agent = &report->agent;
    char capture[8] = "";
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "agent"))
            r = read_text(json, agent->id, sizeof(agent->id));
        else if (json_is(&key, "host"))
            r = read_text(json, agent->host, sizeof(agent->host));
        else if (json_is(&key, "version"))
            r = read_text(json, agent->version, sizeof(agent->version));
        else if (json_is(&key, "capture"))
            r = read_text(json, capture, sizeof(capture));
        else if (json_is(&key, "sent_at"))
            r = json_double(json, &report->sent_at_s);
        else if (json_is(&key, "labels"))
            r = read_labels(json, &agent->labels);
        else if (json_is(&key, "status"))
            r = read_status(json, agent);
        else if (json_is(&key, "recordings"))
            r = read_updates(json, report);
        else if (json_is(&key, "symbols"))
            r = read_words(json, report);
    agent->off = !strcmp(capture, "off");
    return r < 0 ? r : json_end(json);
}

int agent_report_parse(const char *text, size_t length, struct agent_report *ret_report,
                       struct error *error)
{
    _cleanup_agent_report_ struct agent_report report = {0};
    struct source source;
    struct json json;
    int r = source_open_memory(&source, "the report", text, length, AGENT_REPORT_BYTES, error);
    if (r < 0)
        return r;
    json_init(&json, &source, error);
    r = read_report(&json, &report);
    json_release(&json);
    source_release(&source);
    if (r < 0)
        return r;
    if (!agent_id_valid(report.agent.id))
        return error_set(error, -EINVAL,
                         "A report requires an agent id: 1 to %d letters, digits, dashes, dots, "
                         "colons and underscores.",
                         AGENT_ID_BYTES - 1);
    if (!isfinite(report.sent_at_s))
        report.sent_at_s = 0;
    labels_set(&report.agent.labels, "agent", report.agent.id);
    labels_set(&report.agent.labels, "host", report.agent.host);
    *ret_report = report;
    report = (struct agent_report){0};
    return 0;
}
