// SPDX-License-Identifier: Apache-2.0
// Escapes for text from outside: see text.h.

#include "base/text.h"

#include <ctype.h>
#include <math.h>

size_t utf8_sequence(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    if (!length)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t count;
    uint32_t smallest, code;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        count = 2, smallest = 0x80, code = s[0] & 0x1f;
    else if ((s[0] & 0xf0) == 0xe0)
        count = 3, smallest = 0x800, code = s[0] & 0x0f;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        count = 4, smallest = 0x10000, code = s[0] & 0x07;
    else
        return 0;
    if (length < count)
        return 0;
    for (size_t i = 1; i < count; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code < smallest || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return count;
}

bool utf8_valid(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t step = utf8_sequence(text + i, length - i);
        if (!step)
            return false;
        i += step;
    }
    return true;
}

size_t utf8_columns(const char *text, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

static void add_hex_escape(struct buffer *out, const char *prefix, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    buffer_add_text(out, prefix);
    buffer_add_char(out, digits[byte >> 4]);
    buffer_add_char(out, digits[byte & 15]);
}

/* C1 controls (U+0080 to U+009F) drive terminals too; in UTF-8 they are c2 80 to c2 9f. */
static bool is_c1_control(const char *text, size_t step)
{
    return step == 2 && (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0;
}

void text_escape_terminal(struct buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        size_t step = utf8_sequence(text + i, length - i);
        if (!step || c < 0x20 || c == 0x7f || is_c1_control(text + i, step)) {
            add_hex_escape(out, "\\x", c);
            i++;
            if (step == 2) {
                add_hex_escape(out, "\\x", (unsigned char)text[i]);
                i++;
            }
            continue;
        }
        buffer_add(out, text + i, step);
        i += step;
    }
}

void text_escape_json(struct buffer *out, const char *text, size_t length)
{
    buffer_add_char(out, '"');
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        size_t step = utf8_sequence(text + i, length - i);
        if (!step)
            add_hex_escape(out, "\\\\x", c);
        else if (c == '"' || c == '\\')
            buffer_add_char(out, '\\'), buffer_add_char(out, (char)c);
        else if (c == '\n')
            buffer_add_text(out, "\\n");
        else if (c == '\t')
            buffer_add_text(out, "\\t");
        else if (c < 0x20 || c == 0x7f || c == '<')
            add_hex_escape(out, "\\u00", c);
        else
            buffer_add(out, text + i, step);
        i += step ? step : 1;
    }
    buffer_add_char(out, '"');
}

void text_escape_xml(struct buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        size_t step = utf8_sequence(text + i, length - i);
        if (!step || c < 0x20 || c == 0x7f)
            add_hex_escape(out, "\\x", c);
        else if (c == '<')
            buffer_add_text(out, "&lt;");
        else if (c == '>')
            buffer_add_text(out, "&gt;");
        else if (c == '&')
            buffer_add_text(out, "&amp;");
        else if (c == '"')
            buffer_add_text(out, "&quot;");
        else if (c == '\'')
            buffer_add_text(out, "&#39;");
        else if (step == 3 && c == 0xef && (unsigned char)text[i + 1] == 0xbf &&
                 (unsigned char)text[i + 2] >= 0xbe)
            buffer_add_text(out, "&#xfffd;"); /* U+FFFE and U+FFFF are not XML characters */
        else
            buffer_add(out, text + i, step);
        i += step ? step : 1;
    }
}

void text_escape_csv(struct buffer *out, const char *text, size_t length)
{
    bool quote = false;
    for (size_t i = 0; i < length; i++)
        quote |= text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r';
    _cleanup_buffer_ struct buffer safe = {0};
    text_escape_terminal(&safe, text, length);
    if (!quote) {
        buffer_add(out, safe.data, safe.length);
        return;
    }
    buffer_add_char(out, '"');
    for (size_t i = 0; i < safe.length; i++) {
        if (safe.data[i] == '"')
            buffer_add_char(out, '"');
        buffer_add_char(out, safe.data[i]);
    }
    buffer_add_char(out, '"');
}

bool text_to_u64(const char *text, size_t length, uint64_t *ret_value)
{
    if (!length || length > 20)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret_value = value;
    return true;
}

bool text_to_i64(const char *text, size_t length, int64_t *ret_value)
{
    bool negative = length && text[0] == '-';
    uint64_t magnitude;
    if (!text_to_u64(text + negative, length - negative, &magnitude) ||
        magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *ret_value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool text_to_double(const char *text, double *ret_value)
{
    char *end;
    double value = strtod(text, &end); /* which skips white space in front */
    if (end == text || isspace((unsigned char)text[0]) || *end || !isfinite(value))
        return false;
    *ret_value = value;
    return true;
}

const char *text_number_before(const char *text, const char *end, uint32_t *ret_number)
{
    const char *at = end;
    uint64_t number;
    while (at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (at == text || at[-1] != ':' || !text_to_u64(at, (size_t)(end - at), &number) ||
        number > UINT32_MAX)
        return NULL;
    *ret_number = (uint32_t)number;
    return at - 1;
}

#define DISTANCE_BYTES 31

uint32_t text_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    uint32_t rows[DISTANCE_BYTES + 1][DISTANCE_BYTES + 1];
    if (a_length > DISTANCE_BYTES || b_length > DISTANCE_BYTES)
        return UINT32_MAX;
    for (size_t i = 0; i <= a_length; i++)
        for (size_t k = 0; k <= b_length; k++) {
            if (!i || !k) {
                rows[i][k] = (uint32_t)(i + k);
                continue;
            }
            uint32_t best = rows[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            best = MIN(best, rows[i - 1][k] + 1);
            best = MIN(best, rows[i][k - 1] + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                best = MIN(best, rows[i - 2][k - 2] + 1);
            rows[i][k] = best;
        }
    return rows[a_length][b_length];
}

void text_escape_metric(struct buffer *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            buffer_add_text(out, "\\n");
        else
            buffer_printf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}
