// SPDX-License-Identifier: Apache-2.0
// OTLP's traces in protobuf, of which the numbers of the fields are in docs/formats/otlp-traces.md.

#include "spans/otlp.h"

#include <string.h>

#include "io/wire.h"
#include "spans/otlp_parts.h"

static int malformed(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG, "The traces have a malformed %s.", what);
}

/* Of AnyValue: strings, and integers as text. */
static int read_value(struct wire wire, struct span_text *to)
{
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.number == 1 && field.type == WIRE_BYTES)
            span_text_set(to, (const char *)field.data, field.length);
        else if (field.number == 3 && field.type == WIRE_VARINT)
            span_text_number(to, (int64_t)field.value);
    return r;
}

static int read_attribute(struct wire wire, struct span_text *attributes)
{
    struct wire_field field;
    enum span_attribute which = SPAN_ATTRIBUTES;
    struct wire value = {0};
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.number == 1 && field.type == WIRE_BYTES)
            which = span_attribute_of((const char *)field.data, field.length);
        else if (field.number == 2 && field.type == WIRE_BYTES)
            value = wire_of_field(&field);
    if (!r && which != SPAN_ATTRIBUTES && value.at)
        r = read_value(value, &attributes[which]);
    return r;
}

static void read_id(const struct wire_field *field, uint8_t *id, size_t length, bool *bad)
{
    *bad = field->length != length && field->length;
    if (field->length == length)
        memcpy(id, field->data, length);
}

static int read_status(struct wire wire, struct span *span)
{
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.number == 3 && field.type == WIRE_VARINT)
            span->status = field.value < SPAN_STATUSES ? (uint8_t)field.value : SPAN_UNSET;
    return r;
}

static int read_span_field(const struct wire_field *field, struct span_sent *sent)
{
    struct span *span = &sent->span;
    bool bytes = field->type == WIRE_BYTES;
    switch (field->number) {
    case 1:
        if (bytes)
            read_id(field, span->trace_id, SPAN_TRACE_BYTES, &sent->bad_trace);
        break;
    case 2:
        if (bytes)
            read_id(field, span->span_id, SPAN_ID_BYTES, &sent->bad_span);
        break;
    case 4:
        if (bytes)
            read_id(field, span->parent_id, SPAN_ID_BYTES, &sent->bad_parent);
        break;
    case 5:
        if (bytes)
            span_text_set(&sent->name, (const char *)field->data, field->length);
        break;
    case 6:
        if (field->type == WIRE_VARINT && field->value < SPAN_KINDS)
            span->kind = (uint8_t)field->value;
        break;
    case 7:
        if (field->type == WIRE_FIXED64)
            span->start_ns = (int64_t)field->value;
        break;
    case 8:
        if (field->type == WIRE_FIXED64)
            sent->end_ns = field->value;
        break;
    case 9:
        return bytes ? read_attribute(wire_of_field(field), sent->attributes) : 0;
    case 15:
        return bytes ? read_status(wire_of_field(field), span) : 0;
    }
    return 0;
}

static int read_span(struct span_reader *reader, struct wire wire, struct span_batch *batch,
                     struct error *error)
{
    struct span_sent sent = {0};
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if ((r = read_span_field(&field, &sent)) < 0)
            break;
    return r < 0 ? malformed(error, "span") : span_sent_add(reader, &sent, batch, error);
}

static int read_scope(struct span_reader *reader, struct wire wire, struct span_batch *batch,
                      struct error *error)
{
    struct wire_field field;
    int r, failed = 0;
    while (!failed && (r = wire_next(&wire, &field)) > 0)
        if (field.number == 2 && field.type == WIRE_BYTES)
            failed = read_span(reader, wire_of_field(&field), batch, error);
    return failed ? failed : r < 0 ? malformed(error, "scope") : 0;
}

static int read_resource(struct wire wire, struct span_text *attributes)
{
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.number == 1 && field.type == WIRE_BYTES &&
            (r = read_attribute(wire_of_field(&field), attributes)) < 0)
            break;
    return r;
}

static int read_resource_spans(struct span_reader *reader, struct wire wire,
                               struct span_batch *batch, struct error *error)
{
    struct span_text attributes[SPAN_ATTRIBUTES] = {0};
    struct wire_field field;
    size_t first = batch->count;
    int r, failed = 0;
    while (!failed && (r = wire_next(&wire, &field)) > 0) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1 && read_resource(wire_of_field(&field), attributes) < 0)
            failed = malformed(error, "resource");
        else if (field.number == 2)
            failed = read_scope(reader, wire_of_field(&field), batch, error);
    }
    span_batch_set_service(batch, first, &attributes[SPAN_ATTRIBUTE_SERVICE]);
    return failed ? failed : r < 0 ? malformed(error, "resource") : 0;
}

int span_read_otlp(struct span_reader *reader, const void *data, size_t length,
                   struct span_batch *batch, struct error *error)
{
    struct wire wire = wire_of(data, length);
    struct wire_field field;
    int r, failed = 0;
    while (!failed && (r = wire_next(&wire, &field)) > 0)
        if (field.number == 1 && field.type == WIRE_BYTES)
            failed = read_resource_spans(reader, wire_of_field(&field), batch, error);
    return failed ? failed : r < 0 ? malformed(error, "request") : 0;
}
