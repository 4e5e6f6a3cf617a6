// SPDX-License-Identifier: Apache-2.0
// The integers and strings of flight recordings. See jfr.h.

#include "format/jfr/jfr.h"

#include "base/memory.h"

size_t jfr_left(const struct jfr_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static void fail(struct jfr_cursor *cursor)
{
    cursor->failed = true;
    cursor->at = cursor->end;
}

void jfr_skip(struct jfr_cursor *cursor, size_t count)
{
    if (count > jfr_left(cursor))
        fail(cursor);
    else
        cursor->at += count;
}

uint8_t jfr_read_byte(struct jfr_cursor *cursor)
{
    if (cursor->at == cursor->end) {
        fail(cursor);
        return 0;
    }
    return *cursor->at++;
}

/* LEB128 of at most nine bytes; the ninth holds eight bits instead of seven. */
static uint64_t read_varint(struct jfr_cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 56; shift += 7) {
        if (cursor->at == cursor->end) {
            fail(cursor);
            return 0;
        }
        uint8_t byte = *cursor->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    return value | (uint64_t)jfr_read_byte(cursor) << 56;
}

static uint64_t read_fixed(struct jfr_cursor *cursor, size_t width)
{
    if (width > jfr_left(cursor)) {
        fail(cursor);
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value = value << 8 | *cursor->at++;
    return value;
}

int16_t jfr_read_short(struct jfr_cursor *cursor)
{
    return (int16_t)(cursor->compressed ? read_varint(cursor) : read_fixed(cursor, 2));
}

int32_t jfr_read_int(struct jfr_cursor *cursor)
{
    return (int32_t)(cursor->compressed ? read_varint(cursor) : read_fixed(cursor, 4));
}

int64_t jfr_read_long(struct jfr_cursor *cursor)
{
    return (int64_t)(cursor->compressed ? read_varint(cursor) : read_fixed(cursor, 8));
}

struct jfr_text jfr_read_text(struct jfr_cursor *cursor)
{
    struct jfr_text text = {.kind = jfr_read_byte(cursor), .compressed = cursor->compressed};
    switch (text.kind) {
    case JFR_TEXT_NULL:
    case JFR_TEXT_EMPTY:
        return text;
    case JFR_TEXT_CONSTANT:
        text.constant = jfr_read_long(cursor);
        return text;
    case JFR_TEXT_UTF8:
    case JFR_TEXT_LATIN1:
    case JFR_TEXT_UTF16:
        break;
    default:
        fail(cursor);
        return (struct jfr_text){0};
    }
    int32_t count = jfr_read_int(cursor);
    if (count < 0 || (size_t)count > jfr_left(cursor)) {
        fail(cursor);
        return (struct jfr_text){0};
    }
    text.bytes = cursor->at;
    if (text.kind == JFR_TEXT_UTF16)
        for (int32_t i = 0; i < count && !cursor->failed; i++)
            jfr_read_short(cursor);
    else
        jfr_skip(cursor, (size_t)count);
    if (cursor->failed)
        return (struct jfr_text){0};
    text.length = (size_t)(cursor->at - text.bytes);
    return text;
}

static void add_code_point(struct buffer *out, uint32_t code)
{
    char bytes[4];
    size_t length;
    if (code < 0x80) {
        bytes[0] = (char)code;
        length = 1;
    } else if (code < 0x800) {
        bytes[0] = (char)(0xc0 | code >> 6);
        bytes[1] = (char)(0x80 | (code & 0x3f));
        length = 2;
    } else if (code < 0x10000) {
        bytes[0] = (char)(0xe0 | code >> 12);
        bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (char)(0x80 | (code & 0x3f));
        length = 3;
    } else {
        bytes[0] = (char)(0xf0 | code >> 18);
        bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
        bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[3] = (char)(0x80 | (code & 0x3f));
        length = 4;
    }
    buffer_add(out, bytes, length);
}

/* Halves of surrogate pairs that stand alone become U+FFFD. */
static void add_utf16(struct buffer *out, const struct jfr_text *text)
{
    struct jfr_cursor units = {
        .at = text->bytes, .end = text->bytes + text->length, .compressed = text->compressed};
    uint32_t high = 0;
    while (jfr_left(&units)) {
        uint32_t unit = (uint16_t)jfr_read_short(&units);
        bool is_low = unit >= 0xdc00 && unit < 0xe000;
        if (high && is_low) {
            add_code_point(out, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
            high = 0;
            continue;
        }
        if (high)
            add_code_point(out, 0xfffd);
        high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
        if (!high)
            add_code_point(out, is_low ? 0xfffd : unit);
    }
    if (high)
        add_code_point(out, 0xfffd);
}

void jfr_text_add(struct buffer *out, const struct jfr_text *text)
{
    switch (text->kind) {
    case JFR_TEXT_UTF8:
        buffer_add(out, text->bytes, text->length);
        break;
    case JFR_TEXT_LATIN1:
        for (size_t i = 0; i < text->length; i++)
            add_code_point(out, text->bytes[i]);
        break;
    case JFR_TEXT_UTF16:
        add_utf16(out, text);
        break;
    default:
        break;
    }
}
