/* SPDX-License-Identifier: Apache-2.0 */
/* Variable-length numbers of the store's blobs: seven bits a byte, low bits first. Reading never
 * passes the end; a cursor that failed stays failed and gives zeros. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"

#define VARINT_BYTES_MAX 10

static inline uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ -(uint64_t)(value < 0);
}

static inline int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* At most VARINT_BYTES_MAX bytes are written. */
static inline uint8_t *varint_put(uint8_t *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *out++ = (uint8_t)value | 0x80;
    *out++ = (uint8_t)value;
    return out;
}

static inline void buffer_add_varint(struct buffer *buffer, uint64_t value)
{
    uint8_t *out = (uint8_t *)buffer_reserve(buffer, VARINT_BYTES_MAX);
    buffer->length += (size_t)(varint_put(out, value) - out);
}

static inline void buffer_add_signed(struct buffer *buffer, int64_t value)
{
    buffer_add_varint(buffer, zigzag(value));
}

struct cursor {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct cursor cursor_over(const void *data, size_t length)
{
    /* An empty buffer's data may be NULL, to which not even 0 may be added. */
    return (struct cursor){.at = data, .end = length ? (const uint8_t *)data + length : data};
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static inline uint64_t cursor_varint(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    cursor->failed = true;
    cursor->at = cursor->end;
    return 0;
}

static inline int64_t cursor_signed(struct cursor *cursor)
{
    return unzigzag(cursor_varint(cursor));
}

/* `length` bytes, or NULL. */
static inline const void *cursor_bytes(struct cursor *cursor, uint64_t length)
{
    if (cursor->failed || length > cursor_left(cursor)) {
        cursor->failed = true;
        cursor->at = cursor->end;
        return NULL;
    }
    const void *bytes = cursor->at;
    cursor->at += length;
    return bytes;
}
