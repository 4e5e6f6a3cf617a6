// SPDX-License-Identifier: Apache-2.0
// The JSON pull reader's values: strings, numbers, true, false and null. See json.h.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/jsonscan.h"

/* ---- strings ---- */

#define ONES 0x0101010101010101ull

/* Non-zero when one of the word's bytes equals `byte`. */
static inline uint64_t word_has(uint64_t word, uint8_t byte)
{
    uint64_t differing = word ^ (ONES * byte);
    return (differing - ONES) & ~differing & (ONES << 7);
}

size_t json_scan_string(const uint8_t *data, size_t at, size_t length)
{
    for (; at + 8 <= length; at += 8) {
        uint64_t word;
        memcpy(&word, data + at, 8);
        if (word_has(word, '"') | word_has(word, '\\') | word_has(word, '\n'))
            break;
    }
    while (at < length && data[at] != '"' && data[at] != '\\' && data[at] != '\n')
        at++;
    return at;
}

/* Makes the string that begins at the window's position contiguous. Its content is
 * [1, *ret_end) from there. */
static int find_string_end(struct json *json, size_t *ret_end, bool *ret_escaped)
{
    struct source *source = json->source;
    bool escaped = false;
    for (size_t at = 1;;) {
        const uint8_t *data = source_data(source);
        size_t available = source_available(source);
        at = json_scan_string(data, at, available);
        if (at > JSON_STRING_LIMIT)
            return json_fail_limit(json, "The JSON has a string longer than %u MiB",
                                   JSON_STRING_LIMIT >> 20);
        if (at >= available) {
            if (source->ended)
                return json_fail(json, "The JSON ends inside the string that begins");
            int r = source_need(source, available + 1, json->error);
            if (r < 0)
                return json->failed = r;
        } else if (data[at] == '"') {
            *ret_end = at;
            *ret_escaped = escaped;
            return 0;
        } else if (data[at] == '\n') {
            return json_fail(json, "The JSON has a line break inside the string that begins");
        } else {
            escaped = true;
            at += 2;
        }
    }
}

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const uint8_t *text, const uint8_t *end)
{
    int32_t value = 0;
    if (end - text < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit((char)text[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static void add_code_point(struct buffer *out, uint32_t code)
{
    char bytes[4];
    size_t length = 0;
    if (code < 0x80) {
        bytes[length++] = (char)code;
    } else {
        if (code < 0x800) {
            bytes[length++] = (char)(0xc0 | code >> 6);
        } else {
            if (code < 0x10000) {
                bytes[length++] = (char)(0xe0 | code >> 12);
            } else {
                bytes[length++] = (char)(0xf0 | code >> 18);
                bytes[length++] = (char)(0x80 | (code >> 12 & 0x3f));
            }
            bytes[length++] = (char)(0x80 | (code >> 6 & 0x3f));
        }
        bytes[length++] = (char)(0x80 | (code & 0x3f));
    }
    buffer_add(out, bytes, length);
}

/* The \uXXXX at `at` (which is at the `u`), a pair of them for a surrogate. Gives what follows, or
 * NULL when it is malformed. */
static const uint8_t *decode_unicode(struct buffer *out, const uint8_t *at, const uint8_t *end)
{
    int32_t code = hex4(at + 1, end);
    if (code < 0)
        return NULL;
    at += 5;
    if (code >= 0xd800 && code <= 0xdbff && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        int32_t low = hex4(at + 2, end);
        if (low >= 0xdc00 && low <= 0xdfff) {
            add_code_point(out, 0x10000 + (((uint32_t)code & 0x3ff) << 10) + (low & 0x3ff));
            return at + 6;
        }
    }
    add_code_point(out, code >= 0xd800 && code <= 0xdfff ? 0xfffd : (uint32_t)code);
    return at;
}

static bool decode_escapes(struct buffer *out, const uint8_t *at, const uint8_t *end)
{
    static const char plain[256] = {
        ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
        ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
    };
    out->length = 0;
    while (at && at < end) {
        const uint8_t *escape = memchr(at, '\\', (size_t)(end - at));
        buffer_add(out, at, (size_t)((escape ? escape : end) - at));
        if (!escape)
            return true;
        at = escape + 1; /* before `end`: the closing quote was not taken for an escaped one */
        if (*at == 'u') {
            at = decode_unicode(out, at, end);
        } else {
            if (!plain[*at])
                return false;
            buffer_add_char(out, plain[*at++]);
        }
    }
    return at;
}

int json_read_string(struct json *json, struct json_string *ret_text)
{
    size_t end = 0;
    bool escaped = false;
    int r = find_string_end(json, &end, &escaped);
    if (r < 0)
        return r;
    const uint8_t *data = source_data(json->source);
    if (escaped) {
        if (!decode_escapes(&json->text, data + 1, data + end))
            return json_fail(json, "The JSON has a malformed escape in the string that begins");
        *ret_text = (struct json_string){json->text.data, json->text.length};
    } else {
        *ret_text = (struct json_string){(const char *)data + 1, end - 1};
    }
    source_skip(json->source, end + 1);
    return 0;
}

int json_string(struct json *json, struct json_string *ret_text)
{
    int byte = json_value_byte(json);
    if (byte < 0)
        return byte;
    if (byte != '"')
        return json_unexpected(json, "a string", byte);
    int r = json_read_string(json, ret_text);
    json->pending = false;
    return r;
}

/* ---- numbers ---- */

/* One run of digits: number->digits grows until 64 bits are full, then *dropped does. */
static const uint8_t *take_digits(const uint8_t *at, const uint8_t *end, struct json_number *number,
                                  int32_t *dropped)
{
    uint64_t value = number->digits;
    for (; at < end && (unsigned)(*at - '0') <= 9; at++) {
        uint64_t next;
        if (*dropped || __builtin_mul_overflow(value, 10u, &next) ||
            __builtin_add_overflow(next, (unsigned)(*at - '0'), &next)) {
            ++*dropped;
            number->cut |= *at != '0';
        } else {
            value = next;
        }
    }
    number->digits = value;
    return at;
}

/* The end of the number at `at`, or NULL when it is malformed. */
static const uint8_t *parse_number(const uint8_t *at, const uint8_t *end,
                                   struct json_number *ret_number)
{
    struct json_number number = {0};
    int32_t dropped = 0;
    if (at < end && *at == '-') {
        number.negative = true;
        at++;
    }
    const uint8_t *start = at;
    at = take_digits(at, end, &number, &dropped);
    if (at == start || (*start == '0' && at - start > 1))
        return NULL;
    number.exponent = dropped;
    if (at < end && *at == '.') {
        start = ++at;
        int32_t dropped_before = dropped;
        at = take_digits(at, end, &number, &dropped);
        if (at == start)
            return NULL;
        number.exponent -= (int32_t)(at - start) - (dropped - dropped_before);
    }
    if (at < end && (*at | 0x20) == 'e') {
        bool negative = ++at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+'))
            at++;
        struct json_number exponent = {0};
        int32_t beyond = 0;
        start = at;
        at = take_digits(at, end, &exponent, &beyond);
        if (at == start)
            return NULL;
        /* Far beyond what any number of digits here can bring back into range. */
        int32_t power = (int32_t)MIN(exponent.digits, 1000000u);
        number.exponent += negative ? -power : power;
    }
    *ret_number = number;
    return at;
}

/* The number that comes next, not consumed: 0 and its length, or an error. */
static int read_number(struct json *json, struct json_number *ret_number, size_t *ret_length)
{
    int byte = json_value_byte(json);
    if (byte < 0)
        return byte;
    if (byte != '-' && (unsigned)(byte - '0') > 9)
        return json_unexpected(json, "a number", byte);
    int r = source_need(json->source, JSON_NUMBER_LIMIT + 1, json->error);
    if (r < 0)
        return json->failed = r;
    const uint8_t *data = source_data(json->source);
    size_t available = MIN(source_available(json->source), (size_t)JSON_NUMBER_LIMIT + 1);
    const uint8_t *after = parse_number(data, data + available, ret_number);
    if (!after)
        return json_fail(json, "The JSON has a malformed number");
    if (after - data > JSON_NUMBER_LIMIT)
        return json_fail_limit(json, "The JSON has a number of more than %d characters",
                               JSON_NUMBER_LIMIT);
    *ret_length = (size_t)(after - data);
    return 0;
}

static void take_value(struct json *json, size_t length)
{
    source_skip(json->source, length);
    json->pending = false;
}

int json_number(struct json *json, struct json_number *ret_number)
{
    struct json_number number;
    size_t length = 0;
    int r = read_number(json, &number, &length);
    if (r < 0)
        return r;
    take_value(json, length);
    *ret_number = number;
    return 0;
}

/* True when the number is an integer of at most 64 bits. */
static bool integral(const struct json_number *number, uint64_t *ret_magnitude)
{
    uint64_t magnitude = number->digits;
    if (number->cut)
        return false;
    if (magnitude) {
        int32_t exponent = number->exponent;
        for (; exponent < 0 && magnitude % 10 == 0; exponent++)
            magnitude /= 10;
        for (; exponent > 0; exponent--)
            if (__builtin_mul_overflow(magnitude, 10u, &magnitude))
                return false;
        if (exponent < 0)
            return false;
    }
    *ret_magnitude = magnitude;
    return true;
}

int json_u64_slow(struct json *json, uint64_t *ret_value)
{
    struct json_number number;
    size_t length = 0;
    int r = read_number(json, &number, &length);
    if (r < 0)
        return r;
    uint64_t magnitude;
    if (!integral(&number, &magnitude) || (number.negative && magnitude))
        return json_fail(json, "The JSON has a number that is not an integer from 0 to 2^64 - 1");
    take_value(json, length);
    *ret_value = magnitude;
    return 0;
}

int json_i64(struct json *json, int64_t *ret_value)
{
    struct json_number number;
    size_t length = 0;
    int r = read_number(json, &number, &length);
    if (r < 0)
        return r;
    uint64_t magnitude;
    if (!integral(&number, &magnitude) || magnitude > (uint64_t)INT64_MAX + number.negative)
        return json_fail(json,
                         "The JSON has a number that is not an integer from -2^63 to 2^63 - 1");
    take_value(json, length);
    *ret_value = number.negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return 0;
}

int json_double(struct json *json, double *ret_value)
{
    struct json_number number;
    int r = json_number(json, &number);
    if (r < 0)
        return r;
    *ret_value = json_number_double(&number);
    return 0;
}

double json_number_double(const struct json_number *number)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double value = (double)number->digits;
    int power = abs(number->exponent);
    if (number->digits < 1ull << 53 && power < (int)ARRAY_LENGTH(powers)) {
        /* Both are exact, so that one operation rounds correctly. */
        value = number->exponent < 0 ? value / powers[power] : value * powers[power];
    } else {
        char text[64]; /* without a decimal point, which would depend on the locale */
        snprintf(text, sizeof(text), "%llue%d", (unsigned long long)number->digits,
                 number->exponent);
        value = strtod(text, NULL);
    }
    return number->negative ? -value : value;
}

int64_t json_number_scaled(const struct json_number *number, int power)
{
    uint64_t magnitude = number->digits;
    int exponent = number->exponent + power;
    if (exponent < -19) {
        magnitude = 0; /* 64 bits are less than half of 10^20 */
    } else if (exponent < 0) {
        uint64_t divisor = 1;
        for (int i = exponent; i < 0; i++)
            divisor *= 10;
        uint64_t rest = magnitude % divisor;
        magnitude = magnitude / divisor + (rest >= divisor - rest);
    }
    for (; exponent > 0 && magnitude; exponent--)
        if (__builtin_mul_overflow(magnitude, 10u, &magnitude)) {
            magnitude = UINT64_MAX;
            break;
        }
    if (number->negative)
        return magnitude > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)magnitude;
    return magnitude > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)magnitude;
}

/* ---- the rest ---- */

static int read_literal(struct json *json, const char *literal)
{
    size_t length = strlen(literal);
    int r = source_need(json->source, length, json->error);
    if (r < 0)
        return json->failed = r;
    if (source_available(json->source) < length ||
        memcmp(source_data(json->source), literal, length))
        return json_fail(json, "The JSON should have a value, but has an incomplete '%s'", literal);
    take_value(json, length);
    return 0;
}

int json_bool(struct json *json, bool *ret_value)
{
    int byte = json_value_byte(json);
    if (byte < 0)
        return byte;
    if (byte != 't' && byte != 'f')
        return json_unexpected(json, "true or false", byte);
    int r = read_literal(json, byte == 't' ? "true" : "false");
    if (r == 0)
        *ret_value = byte == 't';
    return r;
}

int json_read_null(struct json *json)
{
    return read_literal(json, "null");
}

bool json_null(struct json *json)
{
    return json_value_byte(json) == 'n' && json_read_null(json) == 0;
}

int json_i64_or_text(struct json *json, int64_t *ret_value)
{
    int byte = json_value_byte(json);
    if (byte < 0 || byte != '"')
        return json_i64(json, ret_value);
    struct json_string text;
    int r = json_string(json, &text);
    if (r < 0)
        return r;
    if (!text_to_i64(text.data, text.length, ret_value))
        return json_fail(json, "The JSON has a string that is not a 64-bit integer and ends");
    return 0;
}

int json_u64_or_text(struct json *json, uint64_t *ret_value)
{
    int byte = json_value_byte(json);
    if (byte < 0 || byte != '"')
        return json_u64(json, ret_value);
    struct json_string text;
    int r = json_string(json, &text);
    if (r < 0)
        return r;
    if (!text_to_u64(text.data, text.length, ret_value))
        return json_fail(json, "The JSON has a string that is not a 64-bit integer and ends");
    return 0;
}
