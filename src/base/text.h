/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that came from outside: UTF-8 checks, and escapes for the places it is shown in. Nothing
 * from a profile reaches a terminal, a JSON document or a page without passing here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"

/* Length in bytes of the valid UTF-8 sequence at `text`, or 0 when it is not one. */
size_t utf8_sequence(const char *text, size_t length);
bool utf8_valid(const char *text, size_t length);

/* Columns on a terminal, counting each code point as one. */
size_t utf8_columns(const char *text, size_t length);

/* For a terminal or a log: control characters and invalid bytes become \xNN. */
void text_escape_terminal(struct buffer *out, const char *text, size_t length);

/* A quoted JSON string; invalid bytes become the text \xNN, `<` becomes \u003c so that the result
 * can stand inside a page. */
void text_escape_json(struct buffer *out, const char *text, size_t length);

/* For text and attribute values of XML and HTML. */
void text_escape_xml(struct buffer *out, const char *text, size_t length);

/* A CSV field, quoted when it must be. */
void text_escape_csv(struct buffer *out, const char *text, size_t length);

/* A label's value in Prometheus's format: inside its quotes. */
void text_escape_metric(struct buffer *out, const char *text);

/* Whole-string number parsing: true when all of `text` is one number in range. */
bool text_to_u64(const char *text, size_t length, uint64_t *ret_value);
bool text_to_i64(const char *text, size_t length, int64_t *ret_value);
bool text_to_double(const char *text, double *ret_value);

/* ":12" before `end`, as places in files end; gives where it starts, or NULL. */
const char *text_number_before(const char *text, const char *end, uint32_t *ret_number);

/* How many characters have to be inserted, left out, replaced or swapped with their neighbour to
 * make one word of the other; UINT32_MAX for words of more than 31 bytes. For "did you mean". */
uint32_t text_distance(const char *a, size_t a_length, const char *b, size_t b_length);
/* Whether words at that distance are likely meant for each other. */
static inline bool text_similar(uint32_t distance, size_t length)
{
    return distance <= (length < 4 ? 1 : length < 8 ? 2 : 3) && distance < length;
}

/* The most similar of the words that are offered. */
struct text_meant {
    const char *word;
    size_t length;
    const char *best;  /* of all so far, however different */
    uint32_t distance; /* 0 while there is none */
};
static inline void text_meant_offer(struct text_meant *meant, const char *candidate)
{
    uint32_t distance = text_distance(meant->word, meant->length, candidate, strlen(candidate));
    if (!meant->best || distance < meant->distance) {
        meant->best = candidate;
        meant->distance = distance;
    }
}
/* NULL when none is likely meant. */
static inline const char *text_meant_best(const struct text_meant *meant)
{
    return meant->best && text_similar(meant->distance, meant->length) ? meant->best : NULL;
}
