// SPDX-License-Identifier: Apache-2.0
// Writing JSON: see json_write.h.

#include "io/json_write.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

/* Before a key or a value; a value after a key has none. */
static void begin(struct json_writer *writer)
{
    if (writer->comma)
        buffer_add_char(writer->out, ',');
    writer->comma = true;
}

static void open_with(struct json_writer *writer, char bracket)
{
    begin(writer);
    buffer_add_char(writer->out, bracket);
    writer->comma = false;
}

static void close_with(struct json_writer *writer, char bracket)
{
    buffer_add_char(writer->out, bracket);
    writer->comma = true;
}

void json_write_object(struct json_writer *writer)
{
    open_with(writer, '{');
}

void json_write_object_end(struct json_writer *writer)
{
    close_with(writer, '}');
}

void json_write_array(struct json_writer *writer)
{
    open_with(writer, '[');
}

void json_write_array_end(struct json_writer *writer)
{
    close_with(writer, ']');
}

void json_write_line(struct json_writer *writer)
{
    if (writer->comma)
        buffer_add_char(writer->out, ',');
    buffer_add_char(writer->out, '\n');
    writer->comma = false;
}

void json_write_key(struct json_writer *writer, const char *key)
{
    begin(writer);
    text_escape_json(writer->out, key, strlen(key));
    buffer_add_char(writer->out, ':');
    writer->comma = false;
}

void json_write_bytes(struct json_writer *writer, const char *text, size_t length)
{
    begin(writer);
    text_escape_json(writer->out, text, length);
}

void json_write_text(struct json_writer *writer, const char *text)
{
    json_write_bytes(writer, text, strlen(text));
}

void json_write_unsigned(struct json_writer *writer, uint64_t value)
{
    begin(writer);
    buffer_add_u64(writer->out, value);
}

void json_write_signed(struct json_writer *writer, int64_t value)
{
    begin(writer);
    buffer_add_i64(writer->out, value);
}

void json_write_digits(struct json_writer *writer, double value, int digits)
{
    if (!isfinite(value)) {
        json_write_null(writer);
        return;
    }
    begin(writer);
    buffer_printf(writer->out, "%.*g", digits, value);
}

void json_write_number(struct json_writer *writer, double value)
{
    json_write_digits(writer, value, 9);
}

void json_write_fixed(struct json_writer *writer, double value, int decimals)
{
    begin(writer);
    if (isfinite(value))
        buffer_printf(writer->out, "%.*f", decimals, value);
    else
        buffer_add_text(writer->out, "null");
}

void json_write_bool(struct json_writer *writer, bool value)
{
    begin(writer);
    buffer_add_text(writer->out, value ? "true" : "false");
}

void json_write_null(struct json_writer *writer)
{
    begin(writer);
    buffer_add_text(writer->out, "null");
}

struct buffer *json_write_value(struct json_writer *writer)
{
    begin(writer);
    return writer->out;
}

void json_write_raw(struct json_writer *writer, const char *json, size_t length)
{
    begin(writer);
    buffer_add(writer->out, json, length);
}

void json_member_text(struct json_writer *writer, const char *key, const char *text)
{
    json_write_key(writer, key);
    json_write_text(writer, text);
}

void json_member_unsigned(struct json_writer *writer, const char *key, uint64_t value)
{
    json_write_key(writer, key);
    json_write_unsigned(writer, value);
}

void json_member_signed(struct json_writer *writer, const char *key, int64_t value)
{
    json_write_key(writer, key);
    json_write_signed(writer, value);
}

void json_member_number(struct json_writer *writer, const char *key, double value)
{
    json_write_key(writer, key);
    json_write_number(writer, value);
}

void json_member_digits(struct json_writer *writer, const char *key, double value, int digits)
{
    json_write_key(writer, key);
    json_write_digits(writer, value, digits);
}

void json_member_fixed(struct json_writer *writer, const char *key, double value, int decimals)
{
    json_write_key(writer, key);
    json_write_fixed(writer, value, decimals);
}

void json_member_bool(struct json_writer *writer, const char *key, bool value)
{
    json_write_key(writer, key);
    json_write_bool(writer, value);
}

void json_member_null(struct json_writer *writer, const char *key)
{
    json_write_key(writer, key);
    json_write_null(writer);
}
