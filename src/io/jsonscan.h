/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of the JSON reader. Private to json.c and jsonvalue.c. */
#pragma once

#include "io/json.h"

#define JSON_END (-1) /* as a byte: the stream has ended, or failed */

/* The next byte that is no white space, not consumed; JSON_END at the end. */
int json_next_byte(struct json *json);

/* The first byte of the value that comes next; or, having failed, a negative code. */
int json_value_byte(struct json *json);

/* "The JSON should have <wanted>, but there is ..."; `byte` may be JSON_END. */
int json_unexpected(struct json *json, const char *wanted, int byte);
int json_fail_limit(struct json *json, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The string whose opening quote is the next byte. */
int json_read_string(struct json *json, struct json_string *ret_text);
int json_read_null(struct json *json);

/* The first quote, backslash or newline in data[at..length), or `length` (or `at`, when that is
 * already beyond). */
size_t json_scan_string(const uint8_t *data, size_t at, size_t length);
