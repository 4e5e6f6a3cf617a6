// SPDX-License-Identifier: Apache-2.0
// Protobuf wire format: see wire.h.

#include "io/wire.h"

bool wire_varint_slow(struct wire *wire, uint64_t *ret_value)
{
    uint64_t value = 0;
    const uint8_t *at = wire->at;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at == wire->end)
            return false;
        uint8_t byte = *at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            wire->at = at;
            *ret_value = value;
            return true;
        }
    }
    return false;
}

bool wire_fixed64(struct wire *wire, uint64_t *ret_value)
{
    if (wire->end - wire->at < 8)
        return false;
    memcpy(ret_value, wire->at, 8); /* little-endian, as every machine we run on */
    wire->at += 8;
    return true;
}

/* Reads a tag and a scalar's value or a BYTES field's length. False when malformed. */
static inline bool read_header(struct wire *wire, struct wire_field *field)
{
    uint64_t tag;
    if (!wire_varint(wire, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return false;
    field->number = (uint32_t)(tag >> 3);
    field->type = (enum wire_type)(tag & 7);
    field->raw = wire->at;
    switch (field->type) {
    case WIRE_BYTES:
        return wire_varint(wire, &field->value);
    case WIRE_VARINT:
        if (!wire_varint(wire, &field->value))
            return false;
        break;
    case WIRE_FIXED64:
        if (!wire_fixed64(wire, &field->value))
            return false;
        break;
    case WIRE_FIXED32: {
        uint32_t value;
        if (wire->end - wire->at < 4)
            return false;
        memcpy(&value, wire->at, 4);
        wire->at += 4;
        field->value = value;
        break;
    }
    default:
        return false;
    }
    field->raw_length = (size_t)(wire->at - field->raw);
    return true;
}

int wire_next_slow(struct wire *wire, struct wire_field *ret_field)
{
    if (wire->at == wire->end)
        return 0;
    struct wire ahead = *wire;
    if (!read_header(&ahead, ret_field))
        return -EBADMSG;
    if (ret_field->type == WIRE_BYTES) {
        if (ret_field->value > (uint64_t)(ahead.end - ahead.at))
            return -EBADMSG;
        ret_field->data = ahead.at;
        ret_field->length = (size_t)ret_field->value;
        ahead.at += ret_field->length;
    }
    *wire = ahead;
    return 1;
}

int wire_find_bytes(const void *message, size_t length, uint32_t number,
                    struct wire_field *ret_field)
{
    struct wire wire = wire_of(message, length);
    struct wire_field field, found = {0};
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.number == number && field.type == WIRE_BYTES)
            found = field;
    if (!r)
        *ret_field = found;
    return r;
}

void wire_stream_init(struct wire_stream *stream, struct source *source)
{
    *stream = (struct wire_stream){.source = source};
}

int wire_stream_malformed(const struct wire_stream *stream, const char *what, struct error *error)
{
    return error_set(error, -EBADMSG, "%s at offset %llu is malformed.", what,
                     (unsigned long long)source_offset(stream->source));
}

static int cut_off(const struct wire_stream *stream, struct error *error)
{
    return error_set(error, -EBADMSG, "The data is truncated in a protobuf field, at offset %llu.",
                     (unsigned long long)source_offset(stream->source));
}

int wire_stream_part(struct wire_stream *stream, const uint8_t **ret_data, size_t *ret_length,
                     struct error *error)
{
    if (!stream->pending)
        return 0;
    int r = source_need(stream->source, 1, error);
    if (r < 0)
        return r;
    size_t step = source_available(stream->source);
    if (!step)
        return cut_off(stream, error);
    if (step > stream->pending)
        step = (size_t)stream->pending;
    *ret_data = source_data(stream->source);
    *ret_length = step;
    source_skip(stream->source, step);
    stream->pending -= step;
    return 1;
}

static int skip_pending(struct wire_stream *stream, struct error *error)
{
    const uint8_t *data;
    size_t length;
    int r;
    do
        r = wire_stream_part(stream, &data, &length, error);
    while (r > 0);
    return r;
}

/* A tag takes at most 5 sensible bytes and a length or value 10. */
#define HEADER_BYTES 20

int wire_stream_next(struct wire_stream *stream, struct wire_field *ret_field, struct error *error)
{
    int r = skip_pending(stream, error);
    if (!r)
        r = source_need(stream->source, HEADER_BYTES, error);
    if (r < 0)
        return r;
    size_t available = source_available(stream->source);
    if (stream->depth) {
        uint64_t left = stream->ends[stream->depth - 1] - source_offset(stream->source);
        if (!left)
            return 0;
        if (!available)
            return cut_off(stream, error);
        if (available > left)
            available = (size_t)left;
    } else if (!available) {
        return 0;
    }
    const uint8_t *start = source_data(stream->source);
    struct wire wire = wire_of(start, available);
    if (!read_header(&wire, ret_field))
        return wire_stream_malformed(stream, "A protobuf field", error);
    source_skip(stream->source, (size_t)(wire.at - start));
    if (ret_field->type == WIRE_BYTES) {
        if (stream->depth &&
            ret_field->value > stream->ends[stream->depth - 1] - source_offset(stream->source))
            return wire_stream_malformed(stream, "A field that is longer than its message", error);
        ret_field->length = (size_t)ret_field->value;
        ret_field->data = NULL;
        stream->pending = ret_field->value;
    }
    return 1;
}

int wire_stream_bytes(struct wire_stream *stream, struct wire_field *field, struct error *error)
{
    int r = source_need(stream->source, field->length, error);
    if (r < 0)
        return r;
    if (source_available(stream->source) < field->length)
        return cut_off(stream, error);
    field->data = source_data(stream->source);
    source_skip(stream->source, field->length);
    stream->pending = 0;
    return 0;
}

int wire_stream_enter(struct wire_stream *stream, const struct wire_field *field,
                      struct error *error)
{
    if (stream->depth == WIRE_DEPTH_MAX)
        return wire_stream_malformed(stream, "A message nested too deeply", error);
    uint64_t end;
    if (__builtin_add_overflow(source_offset(stream->source), (uint64_t)field->length, &end))
        return wire_stream_malformed(stream, "A message of invalid length", error);
    stream->ends[stream->depth++] = end;
    stream->pending = 0;
    return 0;
}

void wire_stream_leave(struct wire_stream *stream)
{
    stream->depth--;
}

void wire_put_varint(struct buffer *out, uint64_t value)
{
    uint8_t *at = (uint8_t *)buffer_reserve(out, 10);
    uint8_t *start = at;
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    out->length += (size_t)(at - start);
}

void wire_put_tag(struct buffer *out, uint32_t number, enum wire_type type)
{
    wire_put_varint(out, (uint64_t)number << 3 | type);
}

void wire_put_u64(struct buffer *out, uint32_t number, uint64_t value)
{
    if (!value)
        return;
    wire_put_tag(out, number, WIRE_VARINT);
    wire_put_varint(out, value);
}

void wire_put_i64(struct buffer *out, uint32_t number, int64_t value)
{
    wire_put_u64(out, number, (uint64_t)value);
}

void wire_put_fixed64(struct buffer *out, uint32_t number, uint64_t value)
{
    if (!value)
        return;
    wire_put_tag(out, number, WIRE_FIXED64);
    buffer_add(out, &value, sizeof(value));
}

void wire_put_bytes(struct buffer *out, uint32_t number, const void *data, size_t length)
{
    wire_put_tag(out, number, WIRE_BYTES);
    wire_put_varint(out, length);
    buffer_add(out, data, length);
}

size_t wire_begin(struct buffer *out, uint32_t number)
{
    wire_put_tag(out, number, WIRE_BYTES);
    buffer_add_char(out, 0); /* the length, most often one byte */
    return out->length;
}

void wire_end(struct buffer *out, size_t mark)
{
    size_t length = out->length - mark;
    size_t extra = 0;
    for (size_t rest = length >> 7; rest; rest >>= 7)
        extra++;
    if (extra) {
        buffer_reserve(out, extra);
        memmove(out->data + mark + extra, out->data + mark, length);
        out->length += extra;
    }
    uint8_t *at = (uint8_t *)out->data + mark - 1;
    for (; extra; extra--, length >>= 7)
        *at++ = (uint8_t)(length | 0x80);
    *at = (uint8_t)length;
}
