/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pull reader of JSON: the code that reads a format asks for keys, elements and values in the
 * order of the file, and nothing is held but the item at hand. No tree, no recursion.
 *
 *     struct json json;
 *     json_init(&json, source, error);
 *     json_object(&json);
 *     struct json_string key;
 *     int r;
 *     while ((r = json_next_key(&json, &key)) > 0) {
 *         if (json_is(&key, "samples"))
 *             r = read_samples(&json);      // json_array(), then while (json_next_element() > 0)
 *         else if (json_is(&key, "startTime"))
 *             r = json_i64(&json, &start);
 *         // a value that nobody reads is skipped by the next json_next_key
 *         if (r < 0)
 *             break;
 *     }
 *     if (r >= 0)
 *         r = json_end(&json);
 *     json_release(&json);
 *
 * Failure is sticky: after one call has failed, `error` holds its sentence and all later calls
 * return the same code and change nothing, so code may check late. Outputs are untouched on
 * failure.
 *
 * A byte order mark is skipped. Strings are decoded; bytes that are no UTF-8 pass through as they
 * are, a lone surrogate becomes U+FFFD, and control characters other than the newline are let
 * through unescaped. What is skipped is only checked for matching brackets and quotes. Otherwise
 * the syntax is that of RFC 8259.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/source.h"

#define JSON_DEPTH_MAX 1024           /* open objects and arrays */
#define JSON_STRING_LIMIT (16u << 20) /* bytes of one key or string as written in the file */
#define JSON_NUMBER_LIMIT 1024        /* bytes of one number as written in the file */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Not NUL-terminated, may contain NULs; valid until the next call on the reader. */
struct json_string {
    const char *data;
    size_t length;
};

/* A number as written: ±digits × 10^exponent. Digits beyond what 64 bits hold are dropped. */
struct json_number {
    uint64_t digits;
    int32_t exponent;
    bool negative;
    bool cut; /* not all of the dropped digits were zeroes */
};

struct json {
    struct source *source;
    struct error *error;
    int failed; /* 0, or the negative code of the first failure */
    int depth;
    bool fresh;                   /* the innermost object or array has had no element yet */
    bool pending;                 /* a value comes next and nobody has read it */
    bool colon;                   /* and the colon before it was not looked for yet */
    uint64_t line;                /* from 1 */
    struct buffer text;           /* the last string that had escapes */
    char closers[JSON_DEPTH_MAX]; /* '}' or ']' for each open level */
};

/* `source` and `error` (which may be NULL) must outlive the reader. */
void json_init(struct json *json, struct source *source, struct error *error);
void json_release(struct json *json);
#define _cleanup_json_ __attribute__((cleanup(json_release)))

/* The kind of the next value: an enum json_kind, or an error. Consumes nothing. */
int json_kind(struct json *json);

/* Goes into an object or array; fails when the next value is something else. */
int json_object(struct json *json);
int json_array(struct json *json);

/* 1 when there is another member or element, whose value comes next; 0 at the end, which also
 * leaves the object or array; or an error. */
int json_next_key(struct json *json, struct json_string *ret_key);
int json_next_element_slow(struct json *json);
static inline int json_next_element(struct json *json)
{
    /* Large files are mostly arrays of numbers without white space. */
    struct source *source = json->source;
    if (source_available(source) && *source_data(source) == ',' && !json->pending && !json->fresh &&
        !json->failed && json->depth && json->closers[json->depth - 1] == ']') {
        source_skip(source, 1);
        json->pending = true;
        return 1;
    }
    return json_next_element_slow(json);
}

/* Skips the rest of the innermost object or array and leaves it. */
int json_leave(struct json *json);

/* Skips the value that comes next, whatever it is and however large. */
int json_skip(struct json *json);

/* The value that comes next, which must be of that kind. Integers must be in range; 1.0 and 1e3
 * are integers, 1.5 is not. */
int json_string(struct json *json, struct json_string *ret_text);
int json_number(struct json *json, struct json_number *ret_number);
int json_i64(struct json *json, int64_t *ret_value);
int json_u64_slow(struct json *json, uint64_t *ret_value);
static inline int json_u64(struct json *json, uint64_t *ret_value)
{
    struct source *source = json->source;
    const uint8_t *at = source_data(source);
    if (json->pending && !json->colon && !json->failed && source_available(source) > 9 &&
        (unsigned)(*at - '0') <= 9) {
        uint64_t value = *at++ - '0'; /* a leading zero stands alone */
        unsigned digit;
        while (value && (digit = (unsigned)*at - '0') <= 9 && value < 10000000) {
            value = value * 10 + digit;
            at++;
        }
        if (*at == ',' || *at == ']') {
            source->position = (size_t)(at - source->window);
            json->pending = false;
            *ret_value = value;
            return 0;
        }
    }
    return json_u64_slow(json, ret_value);
}
int json_double(struct json *json, double *ret_value);
int json_bool(struct json *json, bool *ret_value);

/* As protobuf writes 64-bit integers in JSON: the number, or a string that holds it. */
int json_i64_or_text(struct json *json, int64_t *ret_value);
int json_u64_or_text(struct json *json, uint64_t *ret_value);

/* True, with the value consumed, when a null comes next. */
bool json_null(struct json *json);

/* Nothing but white space may follow the top-level value. */
int json_end(struct json *json);

/* Fails with -EBADMSG and the text followed by " at offset N (line L).". */
int json_fail(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* number × 10^power, rounded to the nearest integer (half away from zero), stopping at the ends
 * of the range. */
int64_t json_number_scaled(const struct json_number *number, int power);
double json_number_double(const struct json_number *number);

static inline bool json_is(const struct json_string *text, const char *literal)
{
    size_t length = strlen(literal);
    return text->length == length && !memcmp(text->data, literal, length);
}

/* For detecting a format by its first bytes: do they look like the start of a JSON object, and does
 * `"key":` occur in them, at whatever depth? */
bool json_sniff_object(const uint8_t *bytes, size_t length);
bool json_sniff_key(const uint8_t *bytes, size_t length, const char *key);
