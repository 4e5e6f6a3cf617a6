// SPDX-License-Identifier: Apache-2.0
// Strict framing of requests: see framing.h.

#include "http/server/framing.h"

#include <string.h>

#include "base/hex.h"
#include "base/memory.h"

#define LENGTH_DIGITS_MAX 19
#define SIZE_DIGITS_MAX 15
#define EXTENSION_BYTES_MAX 4096 /* of one chunk */
/* An invalid line, again and again: as a chunk's size, in a trailer and behind a chunk. */
static const char invalid[] = "\x01\r\n";
#define INVALID_BYTES 3
#define ADDED_BYTES 6

#define HARMLESS '_' /* in any part of a head */

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

/* ---- the head ---- */

static enum framing_state end_head(struct framing *framing)
{
    bool chunked = framing->chunked;
    framing->bad_head |= chunked && (framing->has_length || framing->last == '0');
    if (framing->bad_head)
        return FRAMING_REFUSED;
    framing->heads++;
    framing->digits = 0;
    framing->chunked = framing->has_length = framing->empty_line = false;
    return chunked ? FRAMING_SIZE : framing->left ? FRAMING_BODY : FRAMING_START;
}

static bool is_named(const struct framing *framing, const char *name)
{
    return framing->name_length == strlen(name) &&
           !memcmp(framing->name, name, framing->name_length);
}

static void begin_value(struct framing *framing)
{
    framing->digits = 0;
    if (is_named(framing, "content-length")) {
        framing->bad_head |= framing->has_length;
        framing->has_length = true;
        framing->left = 0;
    } else if (is_named(framing, "transfer-encoding")) {
        framing->bad_head |= framing->chunked;
        framing->chunked = true; /* any other coding is refused with the head */
    }
}

/* A value that isn't a number makes the library send two answers: it becomes zeros, as far as it
 * is in this buffer, and the request is refused. */
static void bad_length(struct framing *framing, char *data, size_t at)
{
    framing->bad_head = true;
    for (data[at] = '0'; at > 0 && data[at - 1] != ':' && data[at - 1] != '\n'; at--)
        data[at - 1] = '0';
}

static void take_length(struct framing *framing, char *data, size_t at)
{
    char c = data[at];
    if (c >= '0' && c <= '9' && framing->digits < LENGTH_DIGITS_MAX && !framing->bad_head) {
        framing->left = framing->left * 10 + (uint64_t)(c - '0');
        framing->digits++;
    } else if (c != ' ' || framing->digits) {
        bad_length(framing, data, at);
    }
}

static void take_name(struct framing *framing, char *data, size_t at)
{
    char lower = data[at] >= 'A' && data[at] <= 'Z' ? (char)(data[at] | 0x20) : data[at];
    if (lower == 'e' && is_named(framing, "cooki"))
        data[at] = 'd';
    if (framing->name_length < FRAMING_NAME_BYTES)
        framing->name[framing->name_length++] = lower;
}

/* A CR that ends no line. Some versions of the library take it for the end of one, for a space, or
 * refuse it in words of their own: unless it was in an earlier buffer, it becomes another
 * character. */
static enum framing_state bare_cr(struct framing *framing, char *data, size_t at,
                                  enum framing_state line)
{
    framing->bad_head = true;
    if (at > 0)
        data[at - 1] = HARMLESS;
    if (is_control(data[at]))
        data[at] = HARMLESS;
    return line;
}

/* Heads are only judged; the request is refused when it is complete. A bare LF ends a line here as
 * it does for the library, so that both agree on where the head ends. Other control characters
 * become harmless ones for the same reason. */
static enum framing_state pass_head(struct framing *framing, char *data, size_t at)
{
    char c = data[at];
    bool ends = c == '\n';
    if (is_control(c) && !ends && c != '\r')
        data[at] = HARMLESS;
    switch (framing->state) {
    case FRAMING_START:
        if (c == '\r' && !framing->empty_line)
            return FRAMING_START_LF;
        framing->bad_head |= is_control(c) || c == ' ' || c == '\t';
        framing->last = c;
        return ends ? FRAMING_START : FRAMING_LINE;
    case FRAMING_START_LF:
        framing->empty_line = true;
        framing->bad_head |= !ends;
        return FRAMING_START;
    case FRAMING_LINE:
        if (c == '\r')
            return FRAMING_LINE_LF;
        framing->bad_head |= is_control(c);
        framing->last = c;
        return ends ? FRAMING_HEADER : FRAMING_LINE;
    case FRAMING_HEADER:
        if (c == '\r')
            return FRAMING_HEAD_LF;
        framing->bad_head |= is_control(c) || c == ' ' || c == '\t';
        framing->name_length = 0;
        if (ends)
            return end_head(framing);
        take_name(framing, data, at);
        return FRAMING_NAME;
    case FRAMING_NAME:
        if (c == '\r')
            data[at] = HARMLESS;
        if (c == ':') {
            begin_value(framing);
            return FRAMING_VALUE;
        }
        framing->bad_head |= is_control(c) || c == ' ' || c == '\t';
        take_name(framing, data, at);
        return ends ? FRAMING_HEADER : FRAMING_NAME;
    case FRAMING_VALUE:
        if ((ends || c == '\r') && !framing->digits && is_named(framing, "content-length"))
            framing->bad_head = framing->empty_length = true;
        if (c == '\r')
            return FRAMING_VALUE_LF;
        framing->bad_head |= is_control(c);
        if (!ends && is_named(framing, "content-length"))
            take_length(framing, data, at);
        return ends ? FRAMING_HEADER : FRAMING_VALUE;
    case FRAMING_LINE_LF:
        return ends ? FRAMING_HEADER : bare_cr(framing, data, at, FRAMING_LINE);
    case FRAMING_VALUE_LF:
        return ends ? FRAMING_HEADER : bare_cr(framing, data, at, FRAMING_VALUE);
    default: /* FRAMING_HEAD_LF */
        return ends ? end_head(framing) : bare_cr(framing, data, at, FRAMING_NAME);
    }
}

/* ---- chunks and trailers ---- */

static enum framing_state pass_size(struct framing *framing, char c)
{
    int digit = hex_digit(c);
    if (digit >= 0 && framing->digits < SIZE_DIGITS_MAX) {
        framing->left = framing->left << 4 | (uint64_t)digit;
        framing->digits++;
        return FRAMING_SIZE;
    }
    if (!framing->digits)
        return FRAMING_BROKEN;
    return c == ';' ? FRAMING_EXTENSION : c == '\r' ? FRAMING_SIZE_LF : FRAMING_BROKEN;
}

static enum framing_state pass_chunked(struct framing *framing, char c)
{
    switch (framing->state) {
    case FRAMING_SIZE:
        return pass_size(framing, c);
    case FRAMING_EXTENSION:
        if (c == '\r')
            return FRAMING_SIZE_LF;
        return is_control(c) || ++framing->digits > EXTENSION_BYTES_MAX ? FRAMING_BROKEN
                                                                        : FRAMING_EXTENSION;
    case FRAMING_SIZE_LF:
        framing->digits = 0;
        if (c != '\n')
            return FRAMING_BROKEN;
        return framing->left ? FRAMING_CHUNK : FRAMING_TRAILER;
    case FRAMING_CHUNK_CR:
        return c == '\r' ? FRAMING_CHUNK_LF : FRAMING_BROKEN;
    case FRAMING_CHUNK_LF:
        return c == '\n' ? FRAMING_SIZE : FRAMING_BROKEN;
    case FRAMING_TRAILER:
        if (c == '\r')
            return FRAMING_TRAILERS_LF;
        return is_control(c) || c == ' ' || c == '\t' ? FRAMING_BROKEN : FRAMING_TRAILER_LINE;
    case FRAMING_TRAILER_LINE:
        if (c == '\r')
            return FRAMING_TRAILER_LF;
        return is_control(c) ? FRAMING_BROKEN : FRAMING_TRAILER_LINE;
    case FRAMING_TRAILER_LF:
        return c == '\n' ? FRAMING_TRAILER : FRAMING_BROKEN;
    default: /* FRAMING_TRAILERS_LF */
        return c == '\n' ? FRAMING_START : FRAMING_BROKEN;
    }
}

static size_t replace(struct framing *framing, char *data, size_t from, size_t length, size_t room)
{
    if (!framing->replaced)
        length += MIN(room - length, (size_t)ADDED_BYTES);
    for (size_t i = from; i < length; i++)
        data[i] = invalid[framing->replaced++ % INVALID_BYTES];
    return length;
}

size_t framing_pass(struct framing *framing, char *data, size_t length, size_t room)
{
    size_t to = 0; /* where the next byte goes, which is further down once something was removed */
    for (size_t at = 0; at < length;) {
        size_t passed = 1;
        switch (framing->state) {
        case FRAMING_REFUSED:
            memmove(data + to, data + at, length - at);
            return to + length - at;
        case FRAMING_BROKEN:
            return replace(framing, data, to, to + length - at, room);
        case FRAMING_BODY:
        case FRAMING_CHUNK:
            passed = (size_t)MIN(framing->left, (uint64_t)(length - at));
            memmove(data + to, data + at, passed);
            framing->left -= passed;
            if (!framing->left)
                framing->state = framing->state == FRAMING_BODY ? FRAMING_START : FRAMING_CHUNK_CR;
            break;
        default:
            data[to] = data[at];
            if (framing->state <= FRAMING_HEAD_LF)
                framing->state = pass_head(framing, data, to);
            else
                framing->state = pass_chunked(framing, data[to]);
            if (framing->state == FRAMING_BROKEN)
                continue;
        }
        at += passed;
        to += framing->state == FRAMING_EXTENSION ? 0 : passed;
    }
    return to;
}
