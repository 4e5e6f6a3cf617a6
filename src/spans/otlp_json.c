// SPDX-License-Identifier: Apache-2.0
// OTLP's traces in JSON: ids in hexadecimal digits, 64-bit numbers as text or as numbers, names of
// fields in camel case or, as some senders write them, with underscores.

#include <string.h>

#include "base/hex.h"
#include "io/json.h"
#include "spans/otlp_parts.h"

static bool is(const struct json_string *key, const char *camel, const char *snake)
{
    return json_is(key, camel) || json_is(key, snake);
}

static int read_value(struct json *json, struct span_text *to)
{
    struct json_string key, text;
    int64_t number;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (is(&key, "stringValue", "string_value")) {
            if ((r = json_string(json, &text)) >= 0)
                span_text_set(to, text.data, text.length);
        } else if (is(&key, "intValue", "int_value")) {
            if ((r = json_i64_or_text(json, &number)) >= 0)
                span_text_number(to, number);
        }
    return r;
}

static int read_attributes(struct json *json, struct span_text *attributes)
{
    struct json_string key, name;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        struct span_text value = {0};
        enum span_attribute which = SPAN_ATTRIBUTES;
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0)
            if (json_is(&key, "key")) {
                if ((r = json_string(json, &name)) >= 0)
                    which = span_attribute_of(name.data, name.length);
            } else if (json_is(&key, "value") && json_kind(json) == JSON_OBJECT) {
                r = read_value(json, &value);
            }
        if (r >= 0 && which != SPAN_ATTRIBUTES && value.length)
            attributes[which] = value;
    }
    return r;
}

static int read_id(struct json *json, uint8_t *id, size_t length, bool *bad)
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r >= 0)
        *bad = text.length && !hex_decode(text.data, text.length, id, length);
    return r;
}

/* Enumerations are numbers, or names that end in one of these words. */
static int read_word(struct json *json, const char *const *words, unsigned count, uint8_t *value)
{
    struct json_string text;
    uint64_t number;
    if (json_kind(json) == JSON_NUMBER) {
        int r = json_u64(json, &number);
        if (r >= 0 && number < count)
            *value = (uint8_t)number;
        return r;
    }
    int r = json_string(json, &text);
    for (unsigned i = 0; r >= 0 && i < count; i++) {
        size_t length = strlen(words[i]);
        if (text.length > length && text.data[text.length - length - 1] == '_' &&
            !strncasecmp(text.data + text.length - length, words[i], length))
            *value = (uint8_t)i;
    }
    return r;
}

static int read_status(struct json *json, struct span *span)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "code"))
            r = read_word(json, span_status_names, SPAN_STATUSES, &span->status);
    return r;
}

static int read_name(struct json *json, struct span_text *to)
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r >= 0)
        span_text_set(to, text.data, text.length);
    return r;
}

static int read_member(struct json *json, const struct json_string *key, struct span_sent *sent)
{
    struct span *span = &sent->span;
    if (is(key, "traceId", "trace_id"))
        return read_id(json, span->trace_id, SPAN_TRACE_BYTES, &sent->bad_trace);
    if (is(key, "spanId", "span_id"))
        return read_id(json, span->span_id, SPAN_ID_BYTES, &sent->bad_span);
    if (is(key, "parentSpanId", "parent_span_id"))
        return read_id(json, span->parent_id, SPAN_ID_BYTES, &sent->bad_parent);
    if (json_is(key, "name"))
        return read_name(json, &sent->name);
    if (json_is(key, "kind"))
        return read_word(json, span_kind_names, SPAN_KINDS, &span->kind);
    if (is(key, "startTimeUnixNano", "start_time_unix_nano"))
        return json_i64_or_text(json, &span->start_ns);
    if (is(key, "endTimeUnixNano", "end_time_unix_nano"))
        return json_u64_or_text(json, &sent->end_ns);
    if (json_is(key, "attributes") && json_kind(json) == JSON_ARRAY)
        return read_attributes(json, sent->attributes);
    if (json_is(key, "status") && json_kind(json) == JSON_OBJECT)
        return read_status(json, span);
    return 0;
}

static int read_span(struct span_reader *reader, struct json *json, struct span_batch *batch)
{
    struct span_sent sent = {0};
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = read_member(json, &key, &sent);
    return r < 0 ? r : span_sent_add(reader, &sent, batch, json->error);
}

static int read_scopes(struct span_reader *reader, struct json *json, struct span_batch *batch)
{
    struct json_string key;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
            if (!json_is(&key, "spans"))
                continue;
            r = json_array(json);
            while (r >= 0 && (r = json_next_element(json)) > 0)
                r = read_span(reader, json, batch);
        }
    }
    return r;
}

static int read_resource(struct json *json, struct span_text *attributes)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "attributes") && json_kind(json) == JSON_ARRAY)
            r = read_attributes(json, attributes);
    return r;
}

static int read_resource_spans(struct span_reader *reader, struct json *json,
                               struct span_batch *batch)
{
    struct span_text attributes[SPAN_ATTRIBUTES] = {0};
    struct json_string key;
    size_t first = batch->count;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "resource") && json_kind(json) == JSON_OBJECT)
            r = read_resource(json, attributes);
        else if (is(&key, "scopeSpans", "scope_spans"))
            r = read_scopes(reader, json, batch);
    span_batch_set_service(batch, first, &attributes[SPAN_ATTRIBUTE_SERVICE]);
    return r;
}

static int read_request(struct span_reader *reader, struct json *json, struct span_batch *batch)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (!is(&key, "resourceSpans", "resource_spans"))
            continue;
        r = json_array(json);
        while (r >= 0 && (r = json_next_element(json)) > 0)
            r = read_resource_spans(reader, json, batch);
    }
    return r < 0 ? r : json_end(json);
}

int span_read_otlp_json(struct span_reader *reader, struct source *source, struct span_batch *batch,
                        struct error *error)
{
    _cleanup_json_ struct json json;
    json_init(&json, source, error);
    int r = read_request(reader, &json, batch);
    return r > 0 ? 0 : r;
}
