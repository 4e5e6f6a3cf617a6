/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading little-endian numbers out of bytes that may lie about their own length. A read beyond
 * the end gives 0 and sets `bad`, which stays set: callers check once, after a group of reads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

static inline struct cursor cursor_of(const void *bytes, size_t length)
{
    /* Nothing at all may be a NULL pointer, to which not even 0 may be added. */
    return (struct cursor){.at = bytes, .end = length ? (const uint8_t *)bytes + length : bytes};
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static inline const uint8_t *cursor_take(struct cursor *cursor, uint64_t length)
{
    if (length > cursor_left(cursor)) {
        cursor->bad = true;
        cursor->at = cursor->end;
        return NULL;
    }
    const uint8_t *taken = cursor->at;
    if (length)
        cursor->at += length;
    return taken;
}

/* An unsigned number of 1 to 8 bytes. */
static inline uint64_t cursor_number(struct cursor *cursor, size_t length)
{
    uint64_t value = 0;
    const uint8_t *bytes = cursor_take(cursor, length);
    if (bytes)
        memcpy(&value, bytes, length);
    return value;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
    return (uint8_t)cursor_number(cursor, 1);
}

static inline uint16_t cursor_u16(struct cursor *cursor)
{
    return (uint16_t)cursor_number(cursor, 2);
}

static inline uint32_t cursor_u32(struct cursor *cursor)
{
    return (uint32_t)cursor_number(cursor, 4);
}

static inline uint64_t cursor_u64(struct cursor *cursor)
{
    return cursor_number(cursor, 8);
}

/* LEB128 of at most ten bytes; bits beyond 64 are dropped. */
static inline uint64_t cursor_leb(struct cursor *cursor, bool is_signed)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (cursor->at == cursor->end)
            break;
        uint8_t byte = *cursor->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            if (is_signed && (byte & 0x40) && shift + 7 < 64)
                value |= ~0ull << (shift + 7);
            return value;
        }
    }
    cursor->bad = true;
    return 0;
}

static inline uint64_t cursor_uleb(struct cursor *cursor)
{
    return cursor_leb(cursor, false);
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
    return (int64_t)cursor_leb(cursor, true);
}
