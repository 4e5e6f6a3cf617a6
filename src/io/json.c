// SPDX-License-Identifier: Apache-2.0
// The JSON pull reader's structure: objects, arrays, skipping and failing. Strings and numbers are
// in jsonvalue.c. See json.h.

#include "io/json.h"

#include <stdarg.h>
#include <stdio.h>

#include "io/jsonscan.h"

void json_init(struct json *json, struct source *source, struct error *error)
{
    *json = (struct json){.source = source, .error = error, .pending = true, .line = 1};
    int r = source_need(source, 3, error);
    if (r < 0)
        json->failed = r;
    else if (source_available(source) >= 3 && !memcmp(source_data(source), "\xef\xbb\xbf", 3))
        source_skip(source, 3);
}

void json_release(struct json *json)
{
    buffer_release(&json->text);
}

/* ---- failing ---- */

static int fail_with(struct json *json, int code, const char *format, va_list args)
{
    char text[256];
    if (json->failed)
        return json->failed;
    vsnprintf(text, sizeof(text), format, args);
    json->failed = code;
    return error_set(json->error, code, "%s at offset %llu (line %llu).", text,
                     (unsigned long long)source_offset(json->source),
                     (unsigned long long)json->line);
}

int json_fail(struct json *json, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int r = fail_with(json, -EBADMSG, format, args);
    va_end(args);
    return r;
}

int json_fail_limit(struct json *json, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int r = fail_with(json, -E2BIG, format, args);
    va_end(args);
    return r;
}

int json_unexpected(struct json *json, const char *wanted, int byte)
{
    const char *there = "an unexpected character";
    if (byte < 0)
        there = "the end of the data";
    else if (byte == '{')
        there = "an object";
    else if (byte == '[')
        there = "an array";
    else if (byte == '"')
        there = "a string";
    else if (byte == '-' || (byte >= '0' && byte <= '9'))
        there = "a number";
    else if (byte == 't' || byte == 'f' || byte == 'n')
        there = "true, false or null";
    else if (byte > ' ' && byte < 0x7f)
        return json_fail(json, "The JSON should have %s, but has '%c'", wanted, byte);
    return json_fail(json, "The JSON should have %s, but has %s", wanted, there);
}

/* ---- white space ---- */

int json_next_byte(struct json *json)
{
    struct source *source = json->source;
    for (;;) {
        const uint8_t *at = source_data(source), *end = source->window + source->length;
        for (; at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'); at++)
            json->line += *at == '\n';
        source->position = (size_t)(at - source->window);
        if (at < end)
            return *at;
        if (source->ended)
            return JSON_END;
        int r = source_need(source, 1, json->error);
        if (r < 0) {
            json->failed = r;
            return JSON_END;
        }
    }
}

int json_value_byte(struct json *json)
{
    if (json->failed)
        return json->failed;
    if (!json->pending)
        return json_fail(json, "The reader requested a value where none comes next");
    int byte = json_next_byte(json);
    if (json->colon) {
        if (byte != ':')
            return json_unexpected(json, "':' after a key", byte);
        source_skip(json->source, 1);
        json->colon = false;
        byte = json_next_byte(json);
    }
    return byte == JSON_END ? json_unexpected(json, "a value", byte) : byte;
}

/* ---- objects and arrays ---- */

int json_kind(struct json *json)
{
    int byte = json_value_byte(json);
    if (byte < 0)
        return byte;
    switch (byte) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    case '-':
    case '0' ... '9':
        return JSON_NUMBER;
    default:
        return json_unexpected(json, "a value", byte);
    }
}

static int push(struct json *json, char closer)
{
    if (json->depth == JSON_DEPTH_MAX)
        return json_fail_limit(json, "The JSON is nested more than %d levels deep", JSON_DEPTH_MAX);
    json->closers[json->depth++] = closer;
    json->fresh = true;
    json->pending = false;
    source_skip(json->source, 1);
    return 0;
}

static void pop(struct json *json)
{
    source_skip(json->source, 1);
    json->depth--;
    json->fresh = false;
    json->pending = false;
}

int json_object(struct json *json)
{
    int byte = json_value_byte(json);
    if (byte < 0)
        return byte;
    return byte == '{' ? push(json, '}') : json_unexpected(json, "an object", byte);
}

int json_array(struct json *json)
{
    int byte = json_value_byte(json);
    if (byte < 0)
        return byte;
    return byte == '[' ? push(json, ']') : json_unexpected(json, "an array", byte);
}

/* Reads a separator. 1 when another element follows, 0 when the closing bracket was consumed. */
static int next_item(struct json *json, char closer)
{
    if (json->failed)
        return json->failed;
    if (!json->depth || json->closers[json->depth - 1] != closer)
        return json_fail(json, "The reader requested an element outside of an object or array");
    if (json->pending) {
        int r = json_skip(json);
        if (r < 0)
            return r;
    }
    int byte = json_next_byte(json);
    if (byte == closer) {
        pop(json);
        return 0;
    }
    if (json->fresh && byte != JSON_END) {
        json->fresh = false;
        return 1;
    }
    if (byte != ',')
        return json_unexpected(json, closer == '}' ? "',' or '}'" : "',' or ']'", byte);
    source_skip(json->source, 1);
    return 1;
}

int json_next_key(struct json *json, struct json_string *ret_key)
{
    int r = next_item(json, '}');
    if (r <= 0)
        return r;
    int byte = json_next_byte(json);
    if (byte != '"')
        return json_unexpected(json, "a key", byte);
    r = json_read_string(json, ret_key);
    if (r < 0)
        return r;
    /* Looking for the colon now could move the window under the key. */
    json->colon = json->pending = true;
    return 1;
}

int json_next_element_slow(struct json *json)
{
    int r = next_item(json, ']');
    if (r > 0)
        json->pending = true;
    return r;
}

int json_leave(struct json *json)
{
    if (!json->depth)
        return json_fail(json, "The reader is not inside an object or array");
    if (json->closers[json->depth - 1] == ']') {
        int r;
        while ((r = json_next_element(json)) > 0)
            ;
        return r;
    }
    struct json_string key;
    int r;
    while ((r = json_next_key(json, &key)) > 0)
        ;
    return r;
}

int json_end(struct json *json)
{
    if (json->failed)
        return json->failed;
    if (json->pending || json->depth)
        return json_fail(json, "The JSON was not read to its end");
    int byte = json_next_byte(json);
    if (json->failed)
        return json->failed;
    return byte == JSON_END ? 0 : json_fail(json, "The JSON has trailing data");
}

/* ---- skipping ---- */

/* Classes of bytes, for skipping to the end of an object or array. */
enum skip_class { SKIP_PLAIN, SKIP_NEWLINE, SKIP_QUOTE, SKIP_OPEN, SKIP_CLOSE };
static const uint8_t skip_classes[256] = {
    ['\n'] = SKIP_NEWLINE, ['"'] = SKIP_QUOTE, ['{'] = SKIP_OPEN,
    ['['] = SKIP_OPEN,     ['}'] = SKIP_CLOSE, [']'] = SKIP_CLOSE,
};

/* A string of any length, passing through the window. */
static int skip_string(struct json *json)
{
    struct source *source = json->source;
    source_skip(source, 1);
    for (;;) {
        /* Two, so that an escape's second byte is there. */
        int r = source_need(source, 2, json->error);
        if (r < 0)
            return json->failed = r;
        const uint8_t *data = source_data(source);
        size_t available = source_available(source);
        size_t at = json_scan_string(data, 0, available);
        if (at < available && data[at] == '"') {
            source_skip(source, at + 1);
            return 0;
        }
        if (at < available && data[at] == '\n')
            json->line++;
        /* An escape at the window's very end is looked at again with what follows it. */
        bool split = at + 1 == available && data[at] == '\\';
        if (source->ended && (at >= available || split))
            return json_fail(json, "The JSON ends inside a string");
        if (at >= available || split)
            source_skip(source, at);
        else
            source_skip(source, at + (data[at] == '\\' ? 2 : 1));
    }
}

static int skip_nested(struct json *json)
{
    struct source *source = json->source;
    int outside = json->depth;
    do {
        const uint8_t *at = source_data(source), *end = source->window + source->length;
        while (at < end && skip_classes[*at] == SKIP_PLAIN)
            at++;
        source->position = (size_t)(at - source->window);
        if (at == end) {
            int r = source_need(source, 1, json->error);
            if (r < 0)
                return json->failed = r;
            if (!source_available(source))
                return json_fail(json, "The JSON ends inside an object or array");
            continue;
        }
        int r = 0;
        switch (skip_classes[*at]) {
        case SKIP_NEWLINE:
            json->line++;
            source_skip(source, 1);
            break;
        case SKIP_QUOTE:
            r = skip_string(json);
            break;
        case SKIP_OPEN:
            r = push(json, *at == '{' ? '}' : ']');
            break;
        default:
            if (json->closers[json->depth - 1] != *at)
                return json_fail(json, "The JSON has an unmatched bracket '%c'", *at);
            pop(json);
        }
        if (r < 0)
            return r;
    } while (json->depth > outside);
    return 0;
}

int json_skip(struct json *json)
{
    int kind = json_kind(json), r;
    if (kind < 0)
        return kind;
    switch (kind) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        r = skip_nested(json);
        break;
    case JSON_STRING:
        r = skip_string(json);
        break;
    case JSON_NUMBER: {
        struct json_number number;
        return json_number(json, &number);
    }
    case JSON_BOOL: {
        bool value;
        return json_bool(json, &value);
    }
    default:
        return json_read_null(json);
    }
    json->pending = false;
    return r;
}

/* ---- detecting ---- */

static size_t skip_space(const uint8_t *bytes, size_t at, size_t length)
{
    while (at < length && (bytes[at] == ' ' || (bytes[at] >= '\t' && bytes[at] <= '\r')))
        at++;
    return at;
}

bool json_sniff_object(const uint8_t *bytes, size_t length)
{
    bool mark = length >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3);
    size_t at = skip_space(bytes, mark ? 3 : 0, length);
    if (at == length || bytes[at] != '{')
        return false;
    at = skip_space(bytes, at + 1, length);
    return at == length || bytes[at] == '"' || bytes[at] == '}';
}

bool json_sniff_key(const uint8_t *bytes, size_t length, const char *key)
{
    size_t key_length = strlen(key);
    const uint8_t *end = bytes + length;
    for (const uint8_t *at = bytes; (at = memmem(at, (size_t)(end - at), key, key_length)); at++) {
        const uint8_t *after = at + key_length;
        if (at == bytes || at[-1] != '"' || after == end || *after != '"')
            continue;
        size_t colon = skip_space(bytes, (size_t)(after + 1 - bytes), length);
        if (colon == length || bytes[colon] == ':')
            return true;
    }
    return false;
}
