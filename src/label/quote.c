// SPDX-License-Identifier: Apache-2.0
// PromQL's strings and names: see quote.h.

#include "label/quote.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

size_t label_name_plain_prefix(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && (is_letter(text[at]) || (at && is_digit(text[at]))))
        at++;
    return at;
}

bool label_name_plain(const char *name, size_t length)
{
    return length && label_name_plain_prefix(name, length) == length;
}

bool label_name_valid(const char *name, size_t length)
{
    return length && !memchr(name, '\0', length) && utf8_valid(name, length);
}

void label_name_sanitize(struct buffer *out, const char *name)
{
    size_t length = strlen(name), step;
    if (!length || is_digit(name[0]))
        buffer_add_char(out, '_');
    for (size_t i = 0; i < length; i += step) {
        step = utf8_sequence(name + i, length - i);
        step = step ? step : 1; /* one "_" for each character, also for one of several bytes */
        buffer_add_char(out, is_letter(name[i]) || is_digit(name[i]) ? name[i] : '_');
    }
}

void label_write_name(struct buffer *out, const char *name)
{
    if (label_name_plain(name, strlen(name)))
        buffer_add_text(out, name);
    else
        label_write_quoted(out, name);
}

void label_write_quoted(struct buffer *out, const char *text)
{
    size_t length = strlen(text), step;
    buffer_add_char(out, '"');
    for (size_t i = 0; i < length; i += step) {
        unsigned char c = (unsigned char)text[i];
        step = utf8_sequence(text + i, length - i);
        if (c == '\n')
            buffer_add_text(out, "\\n");
        else if (!step || c < 0x20 || c == 0x7f)
            buffer_printf(out, "\\x%02x", c);
        else if (c == '"' || c == '\\')
            buffer_printf(out, "\\%c", c);
        else
            buffer_add(out, text + i, step);
        step = step ? step : 1;
    }
    buffer_add_char(out, '"');
}

void label_add_code_point(struct buffer *out, uint32_t c)
{
    if (c < 0x80) {
        buffer_add_char(out, (char)c);
    } else if (c < 0x800) {
        buffer_add_char(out, (char)(0xc0 | c >> 6));
        buffer_add_char(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buffer_add_char(out, (char)(0xe0 | c >> 12));
        buffer_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        buffer_add_char(out, (char)(0x80 | (c & 0x3f)));
    } else {
        buffer_add_char(out, (char)(0xf0 | c >> 18));
        buffer_add_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
        buffer_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        buffer_add_char(out, (char)(0x80 | (c & 0x3f)));
    }
}

/* Digits of the base; -1 when one of them isn't. */
static int64_t digits(const char *text, size_t count, unsigned base)
{
    int64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        char c = text[i];
        unsigned digit = is_digit(c)            ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 99;
        if (digit >= base)
            return -1;
        value = value * base + digit;
    }
    return value;
}

/* \xHH, \ooo: a byte. \uHHHH, \UHHHHHHHH: a character. */
static const char *unescape_number(const char *text, size_t length, struct buffer *out,
                                   size_t *ret_length)
{
    char kind = text[0];
    size_t first = is_digit(kind) ? 0 : 1;
    size_t count = is_digit(kind) ? 3 : kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    int64_t value =
        first + count <= length ? digits(text + first, count, is_digit(kind) ? 8 : 16) : -1;
    if (value < 0)
        return "an escape with missing or invalid digits";
    bool byte = is_digit(kind) || kind == 'x';
    if (value > (byte ? 0xff : 0x10ffff) || (!byte && value >= 0xd800 && value < 0xe000))
        return "an escape for a character that doesn't exist";
    if (value == 0)
        return "a NUL character, which labels can't contain";
    if (byte)
        buffer_add_char(out, (char)value);
    else
        label_add_code_point(out, (uint32_t)value);
    *ret_length = first + count;
    return NULL;
}

/* The character after a backslash. */
static const char *unescape(const char *text, size_t length, char quote, struct buffer *out,
                            size_t *ret_length)
{
    static const char letters[] = "abfnrtv\\", values[] = "\a\b\f\n\r\t\v\\";
    if (!length)
        return "an unterminated string";
    char c = text[0];
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter || c == quote) {
        buffer_add_char(out, letter ? values[letter - letters] : c);
        *ret_length = 1;
        return NULL;
    }
    if (c == 'x' || c == 'u' || c == 'U' || (c >= '0' && c <= '7'))
        return unescape_number(text, length, out, ret_length);
    return "an unknown escape (double the backslashes of a regular expression, or use backquotes)";
}

const char *label_unquote(const char *text, size_t length, struct buffer *out, size_t *ret_length)
{
    char quote = text[0];
    size_t start = out->length, at = 1, used;
    for (; at < length && text[at] != quote; at += used) {
        const char *wrong = NULL;
        used = 1;
        if (text[at] == '\0')
            wrong = "a NUL character, which labels can't contain";
        else if (quote != '`' && text[at] == '\n')
            wrong = "a line break within a string";
        else if (quote != '`' && text[at] == '\\') {
            wrong = unescape(text + at + 1, length - at - 1, quote, out, &used);
            used++;
        } else
            buffer_add_char(out, text[at]);
        if (wrong) {
            *ret_length = at;
            return wrong;
        }
    }
    if (at >= length) {
        *ret_length = length;
        return "an unterminated string";
    }
    if (out->length > start && !utf8_valid(out->data + start, out->length - start)) {
        *ret_length = 0;
        return "a string that is not UTF-8";
    }
    *ret_length = at + 1;
    return NULL;
}
