/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON into a buffer: commas, escapes and numbers are the writer's business, braces that fit
 * are the caller's. A writer has no depth, so it can begin and end anywhere in a document; what a
 * caller puts into the buffer by itself between two values must leave the document as the writer
 * expects it (json_write_value() is the way to do that for one value). buffer_pass() may be called
 * between any two calls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct json_writer {
    struct buffer *out;
    bool comma; /* the next key or value of an array needs one before it */
};

static inline struct json_writer json_writer(struct buffer *out)
{
    return (struct json_writer){.out = out};
}

void json_write_object(struct json_writer *writer);
void json_write_object_end(struct json_writer *writer);
void json_write_array(struct json_writer *writer);
void json_write_array_end(struct json_writer *writer);

/* The next key or value begins on a line of its own, for people who read long arrays. */
void json_write_line(struct json_writer *writer);

/* Of an object; its value has to follow. Any text will do. */
void json_write_key(struct json_writer *writer, const char *key);

void json_write_text(struct json_writer *writer, const char *text);
void json_write_bytes(struct json_writer *writer, const char *text, size_t length);
void json_write_unsigned(struct json_writer *writer, uint64_t value);
void json_write_signed(struct json_writer *writer, int64_t value);
/* With nine significant digits. JSON has no NaN and no infinity: those are null. */
void json_write_number(struct json_writer *writer, double value);
/* With so many significant digits; 17 give back the same number. */
void json_write_digits(struct json_writer *writer, double value, int digits);
/* With so many digits after the point. */
void json_write_fixed(struct json_writer *writer, double value, int decimals);
void json_write_bool(struct json_writer *writer, bool value);
void json_write_null(struct json_writer *writer);
/* The caller writes the next value into the buffer. */
struct buffer *json_write_value(struct json_writer *writer);
/* A value that is JSON already. */
void json_write_raw(struct json_writer *writer, const char *json, size_t length);

/* A key and its value. */
void json_member_text(struct json_writer *writer, const char *key, const char *text);
void json_member_unsigned(struct json_writer *writer, const char *key, uint64_t value);
void json_member_signed(struct json_writer *writer, const char *key, int64_t value);
void json_member_number(struct json_writer *writer, const char *key, double value);
void json_member_digits(struct json_writer *writer, const char *key, double value, int digits);
void json_member_fixed(struct json_writer *writer, const char *key, double value, int decimals);
void json_member_bool(struct json_writer *writer, const char *key, bool value);
void json_member_null(struct json_writer *writer, const char *key);
