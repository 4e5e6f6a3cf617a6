// SPDX-License-Identifier: Apache-2.0
// Orders and agents on disk: JSON, written whole. docs/formats/control.md describes both files.

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/document.h"
#include "io/json_write.h"
#include "server/control/control.h"
#include "server/handler/handler.h"

#define FILE_BYTES_MAX (256u << 20)
#define FILE_VERSION 1

/* ---- writing ---- */

static void write_rules(const struct control_tenant *tenant, struct json_writer *json)
{
    json_write_key(json, "rules");
    json_write_array(json);
    for (size_t i = 0; i < tenant->rule_count; i++) {
        const struct control_rule *rule = &tenant->rules[i];
        json_write_line(json);
        json_write_object(json);
        json_member_bool(json, "on", rule->on);
        json_member_signed(json, "since", rule->since_ns);
        json_member_text(json, "selector", rule->text);
        json_member_text(json, "by", rule->by);
        json_member_text(json, "reason", rule->reason);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void write_recording(const struct recording *recording, struct json_writer *json)
{
    json_write_object(json);
    json_member_text(json, "id", recording->id);
    json_member_text(json, "name", recording->name);
    json_member_text(json, "by", recording->by);
    json_member_text(json, "service", recording->service);
    json_member_text(json, "selector", recording->selector);
    json_member_unsigned(json, "rate", recording->rate_hz);
    json_member_unsigned(json, "seconds", recording->seconds);
    json_member_signed(json, "created", recording->created_ns);
    json_member_signed(json, "expires", recording->expires_ns);
    json_member_bool(json, "stopped", recording->stopped);
    recording_write_parts(recording, "parts", json);
    json_write_object_end(json);
}

static void write_agent(const struct fleet_agent *agent, struct json_writer *json)
{
    json_write_object(json);
    json_member_text(json, "id", agent->id);
    json_member_text(json, "host", agent->host);
    json_member_text(json, "version", agent->version);
    json_member_signed(json, "first", agent->first_ns);
    json_member_signed(json, "last", agent->last_ns);
    json_member_bool(json, "off", agent->off);
    json_write_key(json, "labels");
    labels_write_json(&agent->labels, json);
    json_write_object_end(json);
}

static void begin_file(struct json_writer *json)
{
    json_write_object(json);
    json_member_signed(json, "version", FILE_VERSION);
    json_write_key(json, "tenants");
    json_write_array(json);
}

static void begin_tenant(struct json_writer *json, const struct control_tenant *tenant)
{
    json_write_line(json);
    json_write_object(json);
    json_member_text(json, "name", tenant->name);
}

static void end_file(struct json_writer *json)
{
    json_write_array_end(json);
    json_write_object_end(json);
    buffer_add_char(json->out, '\n');
}

void control_write_file(const struct control *control, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    begin_file(&json);
    for (size_t i = 0; i < control->tenant_count; i++) {
        const struct control_tenant *tenant = control->tenants[i];
        begin_tenant(&json, tenant);
        write_rules(tenant, &json);
        json_write_key(&json, "sampling");
        sampling_rules_write(&tenant->sampling, true, &json);
        json_write_key(&json, "recordings");
        json_write_array(&json);
        for (size_t k = 0; k < tenant->book.count; k++) {
            json_write_line(&json);
            write_recording(tenant->book.list[k], &json);
        }
        json_write_array_end(&json);
        json_write_object_end(&json);
    }
    end_file(&json);
}

void control_write_agents(const struct control *control, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    begin_file(&json);
    for (size_t i = 0; i < control->tenant_count; i++) {
        const struct control_tenant *tenant = control->tenants[i];
        begin_tenant(&json, tenant);
        json_write_key(&json, "agents");
        json_write_array(&json);
        for (size_t k = 0; k < tenant->agents.count; k++) {
            json_write_line(&json);
            write_agent(tenant->agents.list[k], &json);
        }
        json_write_array_end(&json);
        json_write_object_end(&json);
    }
    end_file(&json);
}

/* ---- reading: our own files, but disks and people have had them since ---- */

static int read_copy(struct json *json, char **text)
{
    struct json_string found;
    int r = json_string(json, &found);
    if (r < 0)
        return r;
    if (!document_is_text(&found))
        return json_fail(json, "A value is not a string");
    free(*text);
    *text = memory_strndup(found.data, found.length);
    return 0;
}

static int read_rule(struct json *json, struct control *control, struct control_tenant *tenant)
{
    char by[CONTROL_NAME_BYTES] = "", reason[CONTROL_TEXT_BYTES] = "";
    _cleanup_free_ char *selector = memory_strdup("");
    struct json_string key;
    bool on = true;
    int64_t since_ns = 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "on"))
            r = json_bool(json, &on);
        else if (json_is(&key, "since"))
            r = json_i64(json, &since_ns);
        else if (json_is(&key, "selector"))
            r = read_copy(json, &selector);
        else if (json_is(&key, "by"))
            r = document_text(json, by, sizeof(by));
        else if (json_is(&key, "reason"))
            r = document_text(json, reason, sizeof(reason));
    if (r < 0)
        return r;
    return control_set(control, tenant, on, selector, by, reason, since_ns, json->error);
}

static int read_part(struct json *json, struct recording_part *part)
{
    struct json_string key;
    char state[16] = "";
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "agent"))
            r = document_text(json, part->agent, sizeof(part->agent));
        else if (json_is(&key, "host"))
            r = read_copy(json, &part->host);
        else if (json_is(&key, "reason"))
            r = read_copy(json, &part->reason);
        else if (json_is(&key, "state"))
            r = document_text(json, state, sizeof(state));
        else if (json_is(&key, "samples"))
            r = json_u64(json, &part->samples);
    part->state = recording_state_parse(state);
    if (r >= 0 && part->state == RECORDING_STATES)
        return json_fail(json, "\"%s\" is not a state of a recording", state);
    return r;
}

static int read_parts(struct json *json, struct recording *recording)
{
    size_t capacity = 0;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        if (recording->part_count == RECORDING_PARTS_MAX)
            return json_fail(json, "A recording has more than %d agents", RECORDING_PARTS_MAX);
        array_reserve(recording->parts, capacity, recording->part_count + 1);
        struct recording_part *part = &recording->parts[recording->part_count++];
        *part = (struct recording_part){.host = memory_strdup(""), .reason = memory_strdup("")};
        r = read_part(json, part);
    }
    return r;
}

static int read_members(struct json *json, struct recording *recording)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "id"))
            r = document_text(json, recording->id, sizeof(recording->id));
        else if (json_is(&key, "name"))
            r = document_text(json, recording->name, sizeof(recording->name));
        else if (json_is(&key, "by"))
            r = document_text(json, recording->by, sizeof(recording->by));
        else if (json_is(&key, "service"))
            r = read_copy(json, &recording->service);
        else if (json_is(&key, "selector"))
            r = read_copy(json, &recording->selector);
        else if (json_is(&key, "rate"))
            r = json_u64(json, &recording->rate_hz);
        else if (json_is(&key, "seconds"))
            r = json_u64(json, &recording->seconds);
        else if (json_is(&key, "created"))
            r = json_i64(json, &recording->created_ns);
        else if (json_is(&key, "expires"))
            r = json_i64(json, &recording->expires_ns);
        else if (json_is(&key, "stopped"))
            r = json_bool(json, &recording->stopped);
        else if (json_is(&key, "parts"))
            r = read_parts(json, recording);
    if (r >= 0 && (recording->seconds > RECORDING_SECONDS_MAX || recording->expires_ns < 0 ||
                   recording->expires_ns > INT64_MAX / 2))
        return json_fail(json, "Invalid times of a recording");
    return r;
}

static int read_recording(struct json *json, struct recording_book *book)
{
    struct recording *recording = memory_zalloc(1, sizeof(*recording));
    recording->service = memory_strdup("");
    recording->selector = memory_strdup("");
    int r = book->count >= RECORDINGS_MAX
                ? json_fail(json, "There are more than %d recordings", RECORDINGS_MAX)
                : read_members(json, recording);
    if (r < 0) {
        recording_free(recording);
        return r;
    }
    array_reserve(book->list, book->capacity, book->count + 1);
    book->list[book->count++] = recording;
    return 0;
}

static int read_labels(struct json *json, struct labels *labels)
{
    struct json_string key;
    _cleanup_buffer_ struct buffer name = {0};
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        struct json_string value;
        if (!document_is_text(&key))
            return json_fail(json, "A label's name is not a string");
        name.length = 0;
        buffer_add(&name, key.data, key.length);
        r = json_string(json, &value);
        if (r >= 0 && !document_is_text(&value))
            return json_fail(json, "A label's value is not a string");
        if (r >= 0 && labels->count < AGENT_LABELS_MAX + 2)
            labels_set_n(labels, buffer_text(&name), name.length, value.data, value.length);
    }
    return r;
}

static int read_agent(struct json *json, struct control *control, struct control_tenant *tenant)
{
    struct fleet_agent agent = {0};
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "id"))
            r = document_text(json, agent.id, sizeof(agent.id));
        else if (json_is(&key, "host"))
            r = document_text(json, agent.host, sizeof(agent.host));
        else if (json_is(&key, "version"))
            r = document_text(json, agent.version, sizeof(agent.version));
        else if (json_is(&key, "first"))
            r = json_i64(json, &agent.first_ns);
        else if (json_is(&key, "last"))
            r = json_i64(json, &agent.last_ns);
        else if (json_is(&key, "off"))
            r = json_bool(json, &agent.off);
        else if (json_is(&key, "labels"))
            r = read_labels(json, &agent.labels);
    bool good = r >= 0 && agent_id_valid(agent.id) && !agent_table_find(&tenant->agents, agent.id);
    if (good && tenant->agents.count < AGENTS_MAX)
        control_put_agent(control, tenant, &agent);
    fleet_agent_release(&agent);
    return r;
}

/* One list of a tenant, whichever this is. */
static int read_list(struct json *json, struct control *control, struct control_tenant *tenant,
                     const char *kind)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        r = !strcmp(kind, "rules")        ? read_rule(json, control, tenant)
            : !strcmp(kind, "sampling")   ? sampling_rule_read(json, &tenant->sampling)
            : !strcmp(kind, "recordings") ? read_recording(json, &tenant->book)
                                          : read_agent(json, control, tenant);
    return r;
}

static int read_tenant(struct json *json, void *context)
{
    struct control *control = context;
    static const char *const kinds[] = {"rules", "sampling", "recordings", "agents"};
    struct control_tenant *tenant = NULL;
    char name[CONTROL_NAME_BYTES];
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        const char *kind = NULL;
        for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
            kind = json_is(&key, kinds[i]) ? kinds[i] : kind;
        if (json_is(&key, "name") && (r = document_text(json, name, sizeof(name))) >= 0)
            tenant = control_tenant(control, name);
        else if (kind && !tenant)
            r = json_fail(json, "A tenant must begin with its name");
        else if (kind)
            r = read_list(json, control, tenant, kind);
    }
    return r;
}

int control_read_file(struct control *control, const char *text, size_t length, struct error *error)
{
    static const struct document_member members[] = {{"tenants", true, read_tenant}, {0}};
    return document_read(text, length, FILE_BYTES_MAX, FILE_VERSION, members, control, error);
}

int control_read_agents(struct control *control, const char *text, size_t length,
                        struct error *error)
{
    return control_read_file(control, text, length, error);
}
