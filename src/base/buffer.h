/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer, for everything that is written: files, JSON, text reports.
 * Zero-initialised is empty and ready. `data` moves when it grows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

struct buffer {
    char *data; /* not NUL-terminated unless buffer_text() was called last */
    size_t length;
    size_t capacity;
};

void buffer_release(struct buffer *buffer);
#define _cleanup_buffer_ _cleanup_(buffer_release)

/* Never NULL, even for nothing. */
static inline char *buffer_reserve(struct buffer *buffer, size_t extra)
{
    array_reserve(buffer->data, buffer->capacity, buffer->length + MAX(extra, (size_t)1));
    return buffer->data + buffer->length;
}

static inline void buffer_add(struct buffer *buffer, const void *bytes, size_t length)
{
    if (length) {
        memcpy(buffer_reserve(buffer, length), bytes, length);
        buffer->length += length;
    }
}

static inline void buffer_add_char(struct buffer *buffer, char c)
{
    *buffer_reserve(buffer, 1) = c;
    buffer->length++;
}

void buffer_add_text(struct buffer *buffer, const char *text);
void buffer_printf(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Decimal digits, much faster than printf. */
void buffer_add_u64(struct buffer *buffer, uint64_t value);
void buffer_add_i64(struct buffer *buffer, int64_t value);

/* The content as a C string; valid until the next change. */
const char *buffer_text(struct buffer *buffer);
