/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer, for all output: files, JSON, text reports. Zero-initialised is empty and
 * ready. `data` moves when it grows.
 *
 * A buffer with a drain is for output too large to hold in memory. The writer calls buffer_pass()
 * where everything written so far can be sent, and continues.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

/* Where the content of a buffer goes once there is enough of it. The buffer's user keeps it. */
struct buffer_drain {
    int (*take)(void *context, const void *bytes, size_t length); /* negative: wants no more */
    void *context;
    size_t piece_bytes; /* what is gathered before it goes */
    uint64_t taken;     /* bytes that have gone */
    int failure;        /* of `take`; what is passed from then on is thrown away */
};

struct buffer {
    char *data; /* not NUL-terminated unless buffer_text() was called last */
    size_t length;
    size_t capacity;
    struct buffer_drain *drain; /* NULL: all of it stays */
};

void buffer_release(struct buffer *buffer); /* gives nothing to the drain */
#define _cleanup_buffer_ _cleanup_(buffer_release)

/* Never NULL, even for nothing. */
static inline char *buffer_reserve(struct buffer *buffer, size_t extra)
{
    array_reserve(buffer->data, buffer->capacity, buffer->length + MAX(extra, (size_t)1));
    return buffer->data + buffer->length;
}

/* NULL if there is not so much memory: see memory_try_alloc(). */
static inline char *buffer_try_reserve(struct buffer *buffer, size_t extra)
{
    if (!array_try_reserve(buffer->data, buffer->capacity, buffer->length + MAX(extra, (size_t)1)))
        return NULL;
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
/* Two digits for each byte. */
void buffer_add_hex(struct buffer *buffer, const void *bytes, size_t count);
void buffer_add_u64(struct buffer *buffer, uint64_t value);
void buffer_add_i64(struct buffer *buffer, int64_t value);

/* Nothing of the content will be looked at or changed any more: if there is a drain and enough for
 * it, it goes there. False once the drain wants no more, and writing on is wasted. */
bool buffer_drain(struct buffer *buffer);
static inline bool buffer_pass(struct buffer *buffer)
{
    if (__builtin_expect(!buffer->drain || buffer->length < buffer->drain->piece_bytes, 1))
        return true;
    return buffer_drain(buffer);
}

/* All that was ever written, whether it has gone or not. */
static inline uint64_t buffer_written(const struct buffer *buffer)
{
    return buffer->length + (buffer->drain ? buffer->drain->taken : 0);
}

/* The content as a C string; valid until the next change. */
const char *buffer_text(struct buffer *buffer);
