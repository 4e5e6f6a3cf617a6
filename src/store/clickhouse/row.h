/* SPDX-License-Identifier: Apache-2.0 */
/* ClickHouse's RowBinary: columns of a row one after another, numbers little-endian, texts and
 * arrays with their length as a varint. A reader that meets the end of what it has sets `is_short`,
 * and gives zeros from then on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"

static inline void row_u8(struct buffer *out, uint8_t value)
{
    buffer_add_char(out, (char)value);
}

static inline void row_u16(struct buffer *out, uint16_t value)
{
    buffer_add(out, &value, sizeof(value));
}

static inline void row_u32(struct buffer *out, uint32_t value)
{
    buffer_add(out, &value, sizeof(value));
}

static inline void row_u64(struct buffer *out, uint64_t value)
{
    buffer_add(out, &value, sizeof(value));
}

static inline void row_i64(struct buffer *out, int64_t value)
{
    buffer_add(out, &value, sizeof(value));
}

static inline void row_length(struct buffer *out, uint64_t length)
{
    for (; length >= 0x80; length >>= 7)
        row_u8(out, (uint8_t)(length | 0x80));
    row_u8(out, (uint8_t)length);
}

static inline void row_bytes(struct buffer *out, const void *bytes, size_t length)
{
    row_length(out, length);
    buffer_add(out, bytes, length);
}

static inline void row_text(struct buffer *out, const char *text)
{
    row_bytes(out, text, strlen(text));
}

struct row_reader {
    const uint8_t *at, *end;
    bool is_short;
};

static inline const void *row_take(struct row_reader *row, size_t length)
{
    if (row->is_short || (size_t)(row->end - row->at) < length) {
        row->is_short = true;
        return NULL;
    }
    const void *taken = row->at;
    row->at += length;
    return taken;
}

static inline uint64_t row_number(struct row_reader *row, size_t bytes)
{
    uint64_t value = 0;
    const void *taken = row_take(row, bytes);
    if (taken)
        memcpy(&value, taken, bytes);
    return value;
}

static inline uint8_t row_get_u8(struct row_reader *row)
{
    return (uint8_t)row_number(row, 1);
}

static inline uint32_t row_get_u32(struct row_reader *row)
{
    return (uint32_t)row_number(row, 4);
}

static inline uint64_t row_get_u64(struct row_reader *row)
{
    return row_number(row, 8);
}

static inline int64_t row_get_i64(struct row_reader *row)
{
    return (int64_t)row_number(row, 8);
}

static inline size_t row_get_length(struct row_reader *row)
{
    uint64_t length = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        uint8_t byte = row_get_u8(row);
        length |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return row->is_short ? 0 : (size_t)length;
    }
    row->is_short = true;
    return 0;
}

struct row_text {
    const char *data; /* not NUL-terminated; valid until the row's function returns */
    size_t length;
};

static inline struct row_text row_get_text(struct row_reader *row)
{
    size_t length = row_get_length(row);
    const char *data = row_take(row, length);
    return data ? (struct row_text){data, length} : (struct row_text){"", 0};
}
