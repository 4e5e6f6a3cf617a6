/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PromQL's texts: label names as they are or in quotes, and strings with Go's escapes. Selectors,
 * label sets in logs and /metrics use these.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* [a-zA-Z_][a-zA-Z0-9_]*, the names that need no quotes. */
bool label_name_plain(const char *name, size_t length);

/* How much of the text is such a name. */
size_t label_name_plain_prefix(const char *text, size_t length);

/* Names as Prometheus 3 allows them: any UTF-8 without NUL, not empty. */
bool label_name_valid(const char *name, size_t length);

/* A name for protocols with plain names only: other characters become "_". */
void label_name_sanitize(struct buffer *out, const char *name);

/* A character as UTF-8. */
void label_add_code_point(struct buffer *out, uint32_t c);

/* In quotes unless it is plain. */
void label_write_name(struct buffer *out, const char *name);

/* In double quotes; quotes, backslashes, control characters and what is not UTF-8 are escaped. */
void label_write_quoted(struct buffer *out, const char *text);

/* Reads the string that starts with the quote at text[0], one of " ' and `. Appends its value and
 * returns NULL, with its length in *ret_length, quotes included; or returns what is wrong with it,
 * a piece of a sentence, with *ret_length where. */
const char *label_unquote(const char *text, size_t length, struct buffer *out, size_t *ret_length);
