/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protobuf wire format, by hand: it is the ingest hot path and a few hundred lines serve every
 * format. `struct wire` walks a message that is whole in memory; `struct wire_stream` walks one
 * that streams through a source's window, entering nested messages without holding them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/source.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
    const uint8_t *at;
    const uint8_t *end;
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;      /* of VARINT, FIXED64, FIXED32 */
    const uint8_t *data; /* of BYTES */
    size_t length;
    const uint8_t *raw; /* of the others: the value's own bytes, raw_length long */
    size_t raw_length;
};

static inline struct wire wire_of(const void *data, size_t length)
{
    /* Nothing at all may be a NULL pointer, to which not even 0 may be added. */
    return (struct wire){.at = data, .end = length ? (const uint8_t *)data + length : data};
}

static inline struct wire wire_of_field(const struct wire_field *field)
{
    return wire_of(field->data, field->length);
}

bool wire_varint_slow(struct wire *wire, uint64_t *ret_value);

/* The varint that eight bytes begin with: where it ends is the first byte without its top bit, and
 * the 7-bit groups move together in three steps. Returns its length, or 0 for longer ones. */
static inline size_t wire_varint_of(uint64_t word, uint64_t *ret_value)
{
    uint64_t ends = ~word & 0x8080808080808080ull;
    if (__builtin_expect(!ends, 0))
        return 0;
    unsigned bits = (unsigned)__builtin_ctzll(ends) + 1;
    word &= ~0ull >> (64 - bits);
    word &= 0x7f7f7f7f7f7f7f7full;
    word = (word & 0x007f007f007f007full) | (word & 0x7f007f007f007f00ull) >> 1;
    word = (word & 0x00003fff00003fffull) | (word & 0x3fff00003fff0000ull) >> 2;
    word = (word & 0x000000000fffffffull) | (word & 0x0fffffff00000000ull) >> 4;
    *ret_value = word;
    return bits / 8;
}

/* A varint of at most 8 bytes where 8 can be loaded. */
static inline size_t wire_varint_word(const uint8_t *at, uint64_t *ret_value)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return wire_varint_of(word, ret_value);
}

/* False when it is cut off or longer than ten bytes; bits beyond 64 are dropped. */
static inline bool wire_varint(struct wire *wire, uint64_t *ret_value)
{
    const uint8_t *at = wire->at;
    size_t left = (size_t)(wire->end - at), length = 0;
    if (left >= 1 && at[0] < 0x80) {
        *ret_value = at[0];
        length = 1;
    } else if (left >= 2 && at[1] < 0x80) {
        *ret_value = (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
        length = 2;
    } else if (left >= 8) {
        length = wire_varint_word(at, ret_value);
    }
    if (__builtin_expect(!length, 0))
        return wire_varint_slow(wire, ret_value);
    wire->at = at + length;
    return true;
}

/* The same for numbers near the end of a message that began at `start`: where 8 bytes can't be
 * loaded from the number on, they can up to the end. */
static inline bool wire_varint_near_end(struct wire *wire, const uint8_t *start,
                                        uint64_t *ret_value)
{
    size_t left = (size_t)(wire->end - wire->at);
    if (left < 3 || left >= 8 || wire->end - start < 8)
        return wire_varint(wire, ret_value);
    uint64_t word;
    memcpy(&word, wire->end - 8, 8);
    size_t length = wire_varint_of(word >> (64 - 8 * left), ret_value);
    if (length > left)
        return false; /* cut off */
    wire->at += length;
    return true;
}

/* The value of a number field, or the length of another, whose tag was recognised by its only byte:
 * for fields that come by the million, and go without looking at what else they might be. */
static inline bool wire_tagged(struct wire *wire, uint64_t *ret_value)
{
    wire->at++;
    return wire_varint(wire, ret_value);
}
#define WIRE_TAG(number, type) ((number) << 3 | (type))

int wire_next_slow(struct wire *wire, struct wire_field *ret_field);

/* 1 and a field, 0 at the end, -EBADMSG when malformed (groups, field 0 and cut-off data are); the
 * cursor then stays where it was. Fields with small numbers, nearly all there are, take the inline
 * path. */
static inline int wire_next(struct wire *wire, struct wire_field *ret_field)
{
    const uint8_t *at = wire->at;
    size_t left = (size_t)(wire->end - at);
    if (__builtin_expect(left < 3 || at[0] >= 0x80 || at[0] < 8, 0))
        return wire_next_slow(wire, ret_field);
    ret_field->number = at[0] >> 3;
    ret_field->type = (enum wire_type)(at[0] & 7);
    if (ret_field->type != WIRE_BYTES && ret_field->type != WIRE_VARINT)
        return wire_next_slow(wire, ret_field);
    size_t length = 1;
    uint64_t value = at[1];
    if (value >= 0x80) {
        if (at[2] < 0x80) {
            value = (value & 0x7f) | (uint64_t)at[2] << 7;
            length = 2;
        } else if (left < 9 || !(length = wire_varint_word(at + 1, &value))) {
            return wire_next_slow(wire, ret_field);
        }
    }
    ret_field->value = value;
    if (ret_field->type == WIRE_BYTES) {
        if (value > left - 1 - length)
            return -EBADMSG;
        ret_field->data = at + 1 + length;
        ret_field->length = (size_t)value;
        wire->at = ret_field->data + value;
    } else {
        ret_field->raw = at + 1;
        ret_field->raw_length = length;
        wire->at = at + 1 + length;
    }
    return 1;
}

/* The last field of that number with bytes in a message; empty without any. -EBADMSG when the
 * message is malformed. */
int wire_find_bytes(const void *message, size_t length, uint32_t number,
                    struct wire_field *ret_field);

/*
 * A repeated number field, packed or not: a cursor over all its values, of which each is read by
 * wire_varint (or wire_fixed64 for fixed64 fields). Unpacked values come one field at a time.
 */
static inline struct wire wire_repeated(const struct wire_field *field)
{
    return field->type == WIRE_BYTES ? wire_of(field->data, field->length)
                                     : wire_of(field->raw, field->raw_length);
}
bool wire_fixed64(struct wire *wire, uint64_t *ret_value);

static inline double wire_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* ---- streaming ---- */

#define WIRE_DEPTH_MAX 16

struct wire_stream {
    struct source *source;
    uint64_t ends[WIRE_DEPTH_MAX]; /* stream offset at which each open message ends */
    int depth;                     /* 0: the top level, which ends with the source */
    uint64_t pending;              /* bytes of the current BYTES field not yet taken */
};

void wire_stream_init(struct wire_stream *stream, struct source *source);

/*
 * The next field of the innermost open message: 1, 0 at that message's end, or an error. For BYTES
 * `field->length` is set and `field->data` is not: follow with one of _bytes, _part and _enter, or
 * with none, which skips it.
 */
int wire_stream_next(struct wire_stream *stream, struct wire_field *ret_field, struct error *error);

/* The same with the content of BYTES fields, when all of the field is in the window already: 1 if
 * so. Otherwise 0, nothing has been consumed, and wire_stream_next is to be called. */
static inline int wire_stream_quick(struct wire_stream *stream, struct wire_field *ret_field)
{
    struct source *source = stream->source;
    const uint8_t *start = source_data(source);
    size_t available = source_available(source);
    if (stream->pending)
        return 0;
    if (stream->depth) {
        uint64_t left = stream->ends[stream->depth - 1] - source_offset(source);
        available = available < left ? available : (size_t)left;
    }
    struct wire wire = wire_of(start, available);
    if (wire_next(&wire, ret_field) <= 0)
        return 0;
    source_skip(source, (size_t)(wire.at - start));
    return 1;
}

/* All that is left of the innermost open message, where it is in the window already; the cursor
 * stays, and source_skip moves it by what was taken. */
static inline bool wire_stream_rest(const struct wire_stream *stream, struct wire *ret_rest)
{
    if (!stream->depth || stream->pending)
        return false;
    uint64_t left = stream->ends[stream->depth - 1] - source_offset(stream->source);
    if (left > source_available(stream->source))
        return false;
    *ret_rest = wire_of(source_data(stream->source), (size_t)left);
    return true;
}

/* The field's content, contiguous, valid until the next call on the stream. */
int wire_stream_bytes(struct wire_stream *stream, struct wire_field *field, struct error *error);

/* The field's content as it comes: 1 and a part, valid until the next call on the stream, or 0 at
 * its end. */
int wire_stream_part(struct wire_stream *stream, const uint8_t **ret_data, size_t *ret_length,
                     struct error *error);

/* Goes into the field as a nested message; leave by reading until _next returns 0, then _leave. */
int wire_stream_enter(struct wire_stream *stream, const struct wire_field *field,
                      struct error *error);
void wire_stream_leave(struct wire_stream *stream);

/* "malformed protobuf at offset N": for readers that find nonsense in the current field. */
int wire_stream_malformed(const struct wire_stream *stream, const char *what, struct error *error);

/* ---- writing ---- */

void wire_put_varint(struct buffer *out, uint64_t value);
void wire_put_tag(struct buffer *out, uint32_t number, enum wire_type type);
/* Proto3 scalars: nothing is written for zero. */
void wire_put_u64(struct buffer *out, uint32_t number, uint64_t value);
void wire_put_i64(struct buffer *out, uint32_t number, int64_t value);
void wire_put_fixed64(struct buffer *out, uint32_t number, uint64_t value);
void wire_put_bytes(struct buffer *out, uint32_t number, const void *data, size_t length);

/* Nested messages: begin returns a mark for end, which moves the content to make room for its
 * length. Cheap for small messages; build large ones in a buffer of their own. */
size_t wire_begin(struct buffer *out, uint32_t number);
void wire_end(struct buffer *out, size_t mark);
