// SPDX-License-Identifier: Apache-2.0
// Growing byte buffer: see buffer.h.

#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/hex.h"

void buffer_release(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}

void buffer_add_text(struct buffer *buffer, const char *text)
{
    buffer_add(buffer, text, strlen(text));
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int needed = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (needed > 0) {
        vsnprintf(buffer_reserve(buffer, (size_t)needed + 1), (size_t)needed + 1, format, again);
        buffer->length += (size_t)needed;
    }
    va_end(again);
}

void buffer_add_hex(struct buffer *buffer, const void *bytes, size_t count)
{
    hex_encode(bytes, count, buffer_reserve(buffer, 2 * count + 1));
    buffer->length += 2 * count;
}

void buffer_add_u64(struct buffer *buffer, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    buffer_add(buffer, digits + at, sizeof(digits) - at);
}

void buffer_add_i64(struct buffer *buffer, int64_t value)
{
    if (value < 0) {
        buffer_add_char(buffer, '-');
        buffer_add_u64(buffer, -(uint64_t)value);
    } else {
        buffer_add_u64(buffer, (uint64_t)value);
    }
}

bool buffer_drain(struct buffer *buffer)
{
    struct buffer_drain *drain = buffer->drain;
    if (drain->failure >= 0 && buffer->length) {
        int r = drain->take(drain->context, buffer->data, buffer->length);
        drain->failure = MIN(r, 0);
    }
    drain->taken += buffer->length;
    buffer->length = 0;
    return drain->failure >= 0;
}

const char *buffer_text(struct buffer *buffer)
{
    *buffer_reserve(buffer, 1) = '\0';
    return buffer->data;
}
