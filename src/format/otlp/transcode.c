// SPDX-License-Identifier: Apache-2.0
// OTLP messages from JSON to protobuf, driven by a table of their fields: see otlp_transcode.h.

#include "format/otlp/transcode.h"
#include "base/hex.h"

#include <ctype.h>
#include <math.h>

enum kind { END, INT, UINT, FIXED64, DOUBLE, BOOL, STRING, BYTES, ID, MESSAGE };

struct field {
    const char *name;
    uint8_t number;
    uint8_t kind;
    bool repeated;
    uint8_t message; /* enum otlp_message, for MESSAGE */
};

static const struct field any_value[] = {
    {"stringValue", 1, STRING, false, 0},
    {"boolValue", 2, BOOL, false, 0},
    {"intValue", 3, INT, false, 0},
    {"doubleValue", 4, DOUBLE, false, 0},
    {"arrayValue", 5, MESSAGE, false, OTLP_ARRAY},
    {"kvlistValue", 6, MESSAGE, false, OTLP_KEY_VALUE_LIST},
    {"bytesValue", 7, BYTES, false, 0},
    {"stringValueStrindex", 8, INT, false, 0},
    {0},
};
static const struct field array[] = {{"values", 1, MESSAGE, true, OTLP_ANY_VALUE}, {0}};
static const struct field key_value_list[] = {{"values", 1, MESSAGE, true, OTLP_KEY_VALUE}, {0}};
static const struct field key_value[] = {
    {"key", 1, STRING, false, 0},
    {"value", 2, MESSAGE, false, OTLP_ANY_VALUE},
    {"keyStrindex", 3, INT, false, 0},
    {0},
};
static const struct field resource[] = {{"attributes", 1, MESSAGE, true, OTLP_KEY_VALUE}, {0}};
static const struct field scope[] = {
    {"name", 1, STRING, false, 0},
    {"version", 2, STRING, false, 0},
    {"attributes", 3, MESSAGE, true, OTLP_KEY_VALUE},
    {0},
};
static const struct field value_type[] = {
    {"typeStrindex", 1, INT, false, 0},
    {"unitStrindex", 2, INT, false, 0},
    {0},
};
static const struct field sample[] = {
    {"stackIndex", 1, INT, false, 0},
    {"attributeIndices", 2, INT, true, 0},
    {"linkIndex", 3, INT, false, 0},
    {"values", 4, INT, true, 0},
    {"timestampsUnixNano", 5, FIXED64, true, 0},
    {0},
};
static const struct field mapping[] = {
    {"memoryStart", 1, UINT, false, 0},    {"memoryLimit", 2, UINT, false, 0},
    {"fileOffset", 3, UINT, false, 0},     {"filenameStrindex", 4, INT, false, 0},
    {"attributeIndices", 5, INT, true, 0}, {0},
};
static const struct field location[] = {
    {"mappingIndex", 1, INT, false, 0},
    {"address", 2, UINT, false, 0},
    {"lines", 3, MESSAGE, true, OTLP_LINE},
    {"line", 3, MESSAGE, true, OTLP_LINE}, /* its name in 1.8 */
    {"attributeIndices", 4, INT, true, 0},
    {0},
};
static const struct field line[] = {
    {"functionIndex", 1, INT, false, 0},
    {"line", 2, INT, false, 0},
    {"column", 3, INT, false, 0},
    {0},
};
static const struct field function[] = {
    {"nameStrindex", 1, INT, false, 0},
    {"systemNameStrindex", 2, INT, false, 0},
    {"filenameStrindex", 3, INT, false, 0},
    {"startLine", 4, INT, false, 0},
    {0},
};
static const struct field link[] = {
    {"traceId", 1, ID, false, 0},
    {"spanId", 2, ID, false, 0},
    {0},
};
static const struct field attribute[] = {
    {"keyStrindex", 1, INT, false, 0},
    {"value", 2, MESSAGE, false, OTLP_ANY_VALUE},
    {"unitStrindex", 3, INT, false, 0},
    {0},
};
static const struct field stack[] = {{"locationIndices", 1, INT, true, 0}, {0}};

static const struct field *const messages[OTLP_MESSAGES] = {
    [OTLP_ANY_VALUE] = any_value,
    [OTLP_ARRAY] = array,
    [OTLP_KEY_VALUE_LIST] = key_value_list,
    [OTLP_KEY_VALUE] = key_value,
    [OTLP_RESOURCE] = resource,
    [OTLP_SCOPE] = scope,
    [OTLP_VALUE_TYPE] = value_type,
    [OTLP_SAMPLE] = sample,
    [OTLP_MAPPING] = mapping,
    [OTLP_LOCATION] = location,
    [OTLP_LINE] = line,
    [OTLP_FUNCTION] = function,
    [OTLP_LINK] = link,
    [OTLP_ATTRIBUTE] = attribute,
    [OTLP_STACK] = stack,
};

bool otlp_key_is(const struct json_string *key, const char *name)
{
    size_t at = 0;
    for (; *name; name++, at++) {
        bool upper = isupper((unsigned char)*name);
        if (upper && at < key->length && key->data[at] == '_') {
            at++;
            if (at >= key->length || key->data[at] != tolower((unsigned char)*name))
                return false;
        } else if (at >= key->length || key->data[at] != *name) {
            return false;
        }
    }
    return at == key->length;
}

int otlp_refuse_old_key(struct json *json, const struct json_string *key)
{
    static const char *const old[] = {"locationsStartIndex", "locationsLength", "locationIndices",
                                      "timeNanos",           "durationNanos",   "stringTable"};
    for (size_t i = 0; i < ARRAY_LENGTH(old); i++)
        if (otlp_key_is(key, old[i]))
            return json_fail(json,
                             "\"%s\" belongs to OTLP profiles 1.7 or older, but only 1.8 to 1.11 "
                             "are supported: update the sender; it stands",
                             old[i]);
    return 0;
}

/* ---- values ---- */

static int decode_base64(struct json *json, const struct json_string *text, struct buffer *out)
{
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < text->length && text->data[i] != '='; i++) {
        unsigned char c = (unsigned char)text->data[i];
        int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                    : c >= 'a' && c <= 'z' ? c - 'a' + 26
                    : c >= '0' && c <= '9' ? c - '0' + 52
                    : c == '+' || c == '-' ? 62
                    : c == '/' || c == '_' ? 63
                                           : -1;
        if (digit < 0)
            return json_fail(json, "The JSON has an invalid base64 character");
        bits = bits << 6 | (unsigned)digit;
        if (++count % 4 != 1)
            buffer_add_char(out, (char)(bits >> (6 - 2 * ((count - 1) % 4))));
    }
    return 0;
}

/* Trace and span ids are hexadecimal in OTLP's JSON, against protobuf's rules; some senders follow
 * those. In base64, 16 and 8 bytes have other lengths. */
static int decode_id(struct json *json, const struct json_string *text, struct buffer *out)
{
    if (text->length != 32 && text->length != 16)
        return decode_base64(json, text, out);
    for (size_t i = 0; i < text->length; i += 2) {
        int high = hex_digit(text->data[i]), low = hex_digit(text->data[i + 1]);
        if (high < 0 || low < 0)
            return json_fail(json, "The JSON has an id that isn't hexadecimal");
        buffer_add_char(out, (char)(high << 4 | low));
    }
    return 0;
}

int otlp_transcode_id(struct json *json, struct buffer *out)
{
    struct json_string text;
    int r = json_string(json, &text);
    return r < 0 ? r : decode_id(json, &text, out);
}

static int put_double(struct json *json, uint32_t number, struct buffer *out)
{
    double value = 0;
    struct json_string text;
    if (json_kind(json) == JSON_STRING) { /* what JSON has no number for */
        if (!json_string(json, &text))
            value = json_is(&text, "Infinity")    ? INFINITY
                    : json_is(&text, "-Infinity") ? -INFINITY
                                                  : NAN;
    } else {
        json_double(json, &value);
    }
    wire_put_tag(out, number, WIRE_FIXED64);
    buffer_add(out, &value, sizeof(value));
    return json->failed;
}

/* A number as it stands in a packed field. */
static int put_number(struct json *json, enum kind kind, struct buffer *out)
{
    int64_t value = 0;
    uint64_t unsigned_value = 0;
    int r = kind == INT ? json_i64_or_text(json, &value) : json_u64_or_text(json, &unsigned_value);
    if (r < 0)
        return r;
    if (kind == FIXED64)
        buffer_add(out, &unsigned_value, sizeof(unsigned_value));
    else
        wire_put_varint(out, kind == INT ? (uint64_t)value : unsigned_value);
    return 0;
}

static int put_scalar(struct json *json, const struct field *field, struct buffer *out)
{
    struct json_string text;
    bool flag = false;
    int r;
    switch (field->kind) {
    case BOOL:
        r = json_bool(json, &flag);
        wire_put_tag(out, field->number, WIRE_VARINT);
        wire_put_varint(out, flag);
        return r;
    case DOUBLE:
        return put_double(json, field->number, out);
    case STRING:
        r = json_string(json, &text);
        if (!r)
            wire_put_bytes(out, field->number, text.data, text.length);
        return r;
    case BYTES:
    case ID: {
        r = json_string(json, &text);
        if (r < 0)
            return r;
        size_t mark = wire_begin(out, field->number);
        r = field->kind == ID ? decode_id(json, &text, out) : decode_base64(json, &text, out);
        wire_end(out, mark);
        return r;
    }
    default:
        wire_put_tag(out, field->number, field->kind == FIXED64 ? WIRE_FIXED64 : WIRE_VARINT);
        return put_number(json, field->kind, out);
    }
}

static int put_list(struct json *json, enum kind kind, struct buffer *out)
{
    int r = json_array(json);
    while (!r && (r = json_next_element(json)) > 0)
        r = put_number(json, kind, out);
    return r;
}

int otlp_transcode_numbers(struct json *json, struct buffer *out)
{
    return put_list(json, INT, out);
}

/* ---- messages ---- */

#define DEPTH_MAX 40

struct level {
    const struct field *fields;
    const struct field *list; /* the repeated message field whose elements come next, or NULL */
    size_t mark;              /* of the message in the output; 0 for the outermost */
};

static const struct field *find_field(const struct field *fields, const struct json_string *key)
{
    for (const struct field *field = fields; field->name; field++)
        if (otlp_key_is(key, field->name))
            return field;
    return NULL;
}

/* Goes into a message that is the value of `field`. */
static int enter(struct json *json, struct level *levels, int *depth, const struct field *field,
                 struct buffer *out)
{
    if (json_null(json))
        return json->failed;
    if (*depth == DEPTH_MAX)
        return json_fail(json, "An attribute's value is nested too deeply");
    int r = json_object(json);
    if (!r)
        levels[(*depth)++] = (struct level){.fields = messages[field->message],
                                            .mark = wire_begin(out, field->number)};
    return r;
}

static int read_member(struct json *json, struct level *levels, int *depth,
                       const struct json_string *key, struct buffer *out)
{
    struct level *level = &levels[*depth - 1];
    const struct field *field = find_field(level->fields, key);
    if (!field)
        return level->fields == sample ? otlp_refuse_old_key(json, key) : 0;
    if (json_null(json))
        return json->failed;
    if (field->kind == MESSAGE) {
        if (!field->repeated)
            return enter(json, levels, depth, field, out);
        level->list = field;
        return json_array(json);
    }
    if (!field->repeated)
        return put_scalar(json, field, out);
    size_t mark = wire_begin(out, field->number);
    int r = put_list(json, field->kind, out);
    wire_end(out, mark);
    return r;
}

int otlp_transcode(struct json *json, enum otlp_message kind, struct buffer *out)
{
    struct level levels[DEPTH_MAX];
    int depth = 0, r;
    if (json_null(json) || (r = json_object(json)) < 0)
        return json->failed;
    levels[depth++] = (struct level){.fields = messages[kind]};
    while (depth) {
        struct level *level = &levels[depth - 1];
        if (level->list) {
            r = json_next_element(json);
            if (r > 0)
                r = enter(json, levels, &depth, level->list, out);
            else
                level->list = NULL;
        } else {
            struct json_string key;
            r = json_next_key(json, &key);
            if (r > 0) {
                r = read_member(json, levels, &depth, &key, out);
            } else if (!r) {
                if (level->mark)
                    wire_end(out, level->mark);
                depth--;
            }
        }
        if (r < 0)
            return r;
    }
    return 0;
}
