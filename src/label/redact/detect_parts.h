/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The detectors one by one. Each looks whether something starts at `at`, and fills the span. One
 * that says no has looked at a bounded number of bytes, or at a run of characters that it looks at
 * from no other position: that keeps the whole linear.
 */
#pragma once

#include <string.h>

#include "label/redact/detect.h"

struct detect_text {
    const char *text;
    size_t length;
    size_t from; /* what is before belongs to an earlier span */
};

static inline bool detect_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool detect_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static inline bool detect_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool detect_alnum(char c)
{
    return detect_upper(c) || detect_lower(c) || detect_digit(c);
}

static inline bool detect_hex(char c)
{
    return detect_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static inline bool detect_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

/* The character before and after a position; NUL at the ends. */
static inline char detect_before(const struct detect_text *in, size_t at)
{
    return at ? in->text[at - 1] : '\0';
}

static inline char detect_at(const struct detect_text *in, size_t at)
{
    return at < in->length ? in->text[at] : '\0';
}

static inline bool detect_says(const struct detect_text *in, size_t at, const char *words)
{
    size_t length = strlen(words);
    return at <= in->length && in->length - at >= length &&
           memcmp(in->text + at, words, length) == 0;
}

bool detect_email(const struct detect_text *in, size_t at, struct detect_span *span);
bool detect_credentials(const struct detect_text *in, size_t at, struct detect_span *span);
bool detect_assignment(const struct detect_text *in, size_t at, bool options,
                       struct detect_span *span);
bool detect_private_key(const struct detect_text *in, size_t at, struct detect_span *span);
bool detect_token(const struct detect_text *in, size_t at, struct detect_span *span);
bool detect_scheme(const struct detect_text *in, size_t at, struct detect_span *span);
bool detect_random(const struct detect_text *in, size_t at, struct detect_span *span);
bool detect_card(const struct detect_text *in, size_t at, struct detect_span *span);
bool detect_ip(const struct detect_text *in, size_t at, struct detect_span *span);
