// SPDX-License-Identifier: Apache-2.0
// OTLP's AnyValue as a label's value: numbers stay numbers, everything else becomes text, and
// lists and maps become compact JSON.

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/text.h"
#include "format/otlp/model.h"

/* Fields of AnyValue. */
enum { STRING = 1, BOOL, INT, DOUBLE, ARRAY, MAP, BYTES, STRING_INDEX };

#define DEPTH_MAX 16
#define TEXT_LIMIT_BYTES 65536 /* of a list or map; the rest is cut */

/* The one that is set. 1, 0 when none is, -EBADMSG when malformed. */
static int pick(const void *data, size_t length, struct wire_field *ret_value)
{
    static const uint8_t types[] = {
        [STRING] = WIRE_BYTES,   [BOOL] = WIRE_VARINT,        [INT] = WIRE_VARINT,
        [DOUBLE] = WIRE_FIXED64, [ARRAY] = WIRE_BYTES,        [MAP] = WIRE_BYTES,
        [BYTES] = WIRE_BYTES,    [STRING_INDEX] = WIRE_VARINT};
    struct wire wire = wire_of(data, length);
    struct wire_field field;
    int found = 0, r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number <= STRING_INDEX && field.type == types[field.number]) {
            *ret_value = field;
            found = 1;
        }
    }
    return r < 0 ? r : found;
}

static int malformed(struct error *error)
{
    return error_set(error, -EBADMSG, "An attribute's value is malformed.");
}

static int indexed_string(struct otlp_model *model, uint64_t index, uint32_t *ret_id,
                          struct error *error)
{
    if (index > OTLP_INDEX_MAX)
        return otlp_bad_index(error, "An attribute", "string", index,
                              model->dictionary.string_count);
    return otlp_string_id(model, (uint32_t)index, "An attribute", ret_id, error);
}

/* The fewest digits that read back as the same number. */
static void add_double(struct buffer *out, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buffer_add_text(out, text);
}

static void add_hex(struct buffer *out, const uint8_t *data, size_t length)
{
    hex_encode(data, length, buffer_reserve(out, 2 * length + 1));
    out->length += 2 * length;
}

static int add_indexed(struct otlp_model *model, struct buffer *out, uint64_t index,
                       struct error *error)
{
    uint32_t id;
    int r = indexed_string(model, index, &id, error);
    if (!r)
        text_escape_json(out, model->profile->strings[id].data, model->profile->strings[id].length);
    return r;
}

/* A value inside a list or map that is neither itself. */
static int add_scalar(struct otlp_model *model, struct buffer *out, const struct wire_field *value,
                      struct error *error)
{
    switch (value->number) {
    case STRING:
        text_escape_json(out, (const char *)value->data, value->length);
        return 0;
    case BOOL:
        buffer_add_text(out, value->value ? "true" : "false");
        return 0;
    case INT:
        buffer_add_i64(out, (int64_t)value->value);
        return 0;
    case DOUBLE:
        add_double(out, wire_double(value->value));
        return 0;
    case BYTES:
        buffer_add_char(out, '"');
        add_hex(out, value->data, value->length);
        buffer_add_char(out, '"');
        return 0;
    default:
        return add_indexed(model, out, value->value, error);
    }
}

struct level {
    struct wire wire;
    bool map;
    bool started;
};

/* Writes a KeyValue's key and finds its value. */
static int open_member(struct otlp_model *model, struct buffer *out, struct wire_field *member,
                       struct error *error)
{
    struct wire wire = wire_of_field(member);
    struct wire_field field, key = {0}, value = {.data = (const uint8_t *)""};
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if ((field.number == 1 && field.type == WIRE_BYTES) ||
            (field.number == 3 && field.type == WIRE_VARINT && !key.length))
            key = field;
        else if (field.number == 2 && field.type == WIRE_BYTES)
            value = field;
    }
    if (r < 0)
        return malformed(error);
    if (key.number == 3)
        r = add_indexed(model, out, key.value, error);
    else
        text_escape_json(out, key.length ? (const char *)key.data : "", key.length);
    buffer_add_char(out, ':');
    *member = value;
    return r;
}

/* A list or map and all that is in it, without recursion. */
static int add_tree(struct otlp_model *model, struct buffer *out, struct wire_field value,
                    struct error *error)
{
    struct level levels[DEPTH_MAX];
    int depth = 0;
    for (;;) {
        if (value.number == ARRAY || value.number == MAP) {
            if (depth == DEPTH_MAX)
                return error_set(error, -E2BIG, "An attribute's value is nested too deeply.");
            levels[depth++] =
                (struct level){.wire = wire_of_field(&value), .map = value.number == MAP};
            buffer_add_char(out, value.number == MAP ? '{' : '[');
        } else {
            int r = value.number ? add_scalar(model, out, &value, error)
                                 : (buffer_add_text(out, "null"), 0);
            if (r < 0)
                return r;
        }
        struct wire_field element = {0};
        int r;
        while ((r = wire_next(&levels[depth - 1].wire, &element)) == 0 ||
               (r > 0 && (element.number != 1 || element.type != WIRE_BYTES))) {
            if (r)
                continue;
            buffer_add_char(out, levels[--depth].map ? '}' : ']');
            if (!depth)
                return 0;
        }
        if (r < 0)
            return malformed(error);
        if (out->length > TEXT_LIMIT_BYTES) {
            buffer_add_text(out, "…");
            return 0;
        }
        if (levels[depth - 1].started)
            buffer_add_char(out, ',');
        levels[depth - 1].started = true;
        if (levels[depth - 1].map && (r = open_member(model, out, &element, error)) < 0)
            return r;
        value = (struct wire_field){0};
        if (pick(element.data, element.length, &value) < 0)
            return malformed(error);
    }
}

int otlp_any_value(struct otlp_model *model, const void *data, size_t length,
                   struct profile_label *label, struct error *error)
{
    struct wire_field value;
    int r = pick(data, length, &value);
    if (r < 0)
        return malformed(error);
    if (!r)
        return 0;
    _cleanup_buffer_ struct buffer text = {0};
    switch (value.number) {
    case STRING:
        label->text = profile_string(model->profile, (const char *)value.data, value.length);
        return label->text != 0;
    case STRING_INDEX:
        r = indexed_string(model, value.value, &label->text, error);
        return r < 0 ? r : label->text != 0;
    case INT:
        label->number = (int64_t)value.value;
        return 1;
    case BOOL:
        buffer_add_text(&text, value.value ? "true" : "false");
        break;
    case DOUBLE:
        add_double(&text, wire_double(value.value));
        break;
    case BYTES:
        add_hex(&text, value.data, value.length);
        break;
    default:
        r = add_tree(model, &text, value, error);
        if (!r)
            r = otlp_spend(model, &model->byte_budget, text.length, "attributes", error);
        if (r < 0)
            return r;
    }
    label->text = profile_string(model->profile, text.length ? text.data : "", text.length);
    return label->text != 0;
}
