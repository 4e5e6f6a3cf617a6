// SPDX-License-Identifier: Apache-2.0
// LZ4 frames: see lz4.h. A block is a row of sequences: a token with two lengths, literal bytes,
// and a match, which is a distance back into what is there already.

#include "io/lz4.h"

#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

#define MAGIC 0x184d2204u
#define BLOCK_BYTES_MAX (4u << 20)
#define BLOCK_IS_PLAIN 0x80000000u
#define MATCH_BYTES_MIN 4
#define LENGTH_GOES_ON 15

enum frame_flags {
    FLAG_DICTIONARY = 1 << 0,
    FLAG_RESERVED = 1 << 1,
    FLAG_CONTENT_CHECKSUM = 1 << 2,
    FLAG_CONTENT_SIZE = 1 << 3,
    FLAG_BLOCK_CHECKSUM = 1 << 4,
    VERSION_MASK = 3 << 6,
    VERSION = 1 << 6,
};

struct lz4 {
    const uint8_t *at, *end;
    struct buffer *out;
    size_t start, limit; /* of `out`: where the frame's content begins, and how far it may go */
};

static uint32_t word_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static int damaged(struct error *error)
{
    return error_set(error, -EBADMSG, "The LZ4 data is damaged or incomplete.");
}

/* A length of 15 goes on in the bytes that follow, of which all but the last are 255. */
static bool take_length(struct lz4 *lz4, size_t *length)
{
    uint8_t byte;
    if (*length != LENGTH_GOES_ON)
        return true;
    do {
        if (lz4->at == lz4->end)
            return false;
        *length += byte = *lz4->at++;
    } while (byte == 255);
    return true;
}

static bool has_room(const struct lz4 *lz4, size_t length)
{
    return length <= lz4->limit - lz4->out->length;
}

static int too_large(const struct lz4 *lz4, struct error *error)
{
    return error_set(error, -E2BIG, "The LZ4 data expands to more than %zu bytes.",
                     lz4->limit - lz4->start);
}

/* The match may overlap what it makes: then it repeats. */
static void copy_match(struct lz4 *lz4, size_t distance, size_t length)
{
    char *to = buffer_reserve(lz4->out, length);
    if (distance >= length)
        memcpy(to, to - distance, length);
    else
        for (size_t i = 0; i < length; i++)
            to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
    lz4->out->length += length;
}

static int read_block(struct lz4 *lz4, struct error *error)
{
    while (lz4->at < lz4->end) {
        uint8_t token = *lz4->at++;
        size_t literals = token >> 4, match = token & 15;
        if (!take_length(lz4, &literals) || literals > (size_t)(lz4->end - lz4->at))
            return damaged(error);
        if (!has_room(lz4, literals))
            return too_large(lz4, error);
        buffer_add(lz4->out, lz4->at, literals);
        lz4->at += literals;
        if (lz4->at == lz4->end)
            return 0; /* the last sequence has no match */
        if (lz4->end - lz4->at < 2)
            return damaged(error);
        size_t distance = (size_t)lz4->at[0] | (size_t)lz4->at[1] << 8;
        lz4->at += 2;
        if (!take_length(lz4, &match) || !distance || distance > lz4->out->length - lz4->start)
            return damaged(error);
        match += MATCH_BYTES_MIN;
        if (!has_room(lz4, match))
            return too_large(lz4, error);
        copy_match(lz4, distance, match);
    }
    return damaged(error);
}

/* The header before the blocks. */
static int read_header(struct lz4 *lz4, uint8_t *ret_flags, struct error *error)
{
    const uint8_t *descriptor = lz4->at + 4;
    size_t length = (size_t)(lz4->end - lz4->at), size = 2;
    if (length < 7 || word_at(lz4->at) != MAGIC)
        return damaged(error);
    uint8_t flags = descriptor[0];
    if ((flags & VERSION_MASK) != VERSION || flags & FLAG_RESERVED)
        return damaged(error);
    if (flags & FLAG_DICTIONARY)
        return error_set(error, -ENOTSUP, "LZ4 data with a dictionary is not supported.");
    size += flags & FLAG_CONTENT_SIZE ? 8 : 0;
    if (length < 4 + size + 1 || descriptor[size] != (uint8_t)(XXH32(descriptor, size, 0) >> 8))
        return damaged(error);
    lz4->at = descriptor + size + 1;
    *ret_flags = flags;
    return 0;
}

/* 1: a block was read; 0: it was the mark of the end. */
static int next_block(struct lz4 *lz4, uint8_t flags, struct error *error)
{
    size_t left = (size_t)(lz4->end - lz4->at);
    size_t check = flags & FLAG_BLOCK_CHECKSUM ? 4 : 0;
    if (left < 4)
        return damaged(error);
    uint32_t size = word_at(lz4->at), length = size & ~BLOCK_IS_PLAIN;
    lz4->at += 4;
    if (!size)
        return 0;
    if (length > BLOCK_BYTES_MAX || length + check > left - 4)
        return damaged(error);
    if (check && XXH32(lz4->at, length, 0) != word_at(lz4->at + length))
        return damaged(error);
    const uint8_t *end = lz4->end, *block_end = lz4->at + length;
    int r = 0;
    if (size & BLOCK_IS_PLAIN) {
        if (!has_room(lz4, length))
            return too_large(lz4, error);
        buffer_add(lz4->out, lz4->at, length);
    } else {
        lz4->end = block_end;
        r = read_block(lz4, error);
        lz4->end = end;
    }
    lz4->at = block_end + check;
    return r < 0 ? r : 1;
}

int lz4_decompress(const uint8_t *bytes, size_t length, size_t limit_bytes, struct buffer *out,
                   struct error *error)
{
    struct lz4 lz4 = {.at = bytes, .out = out, .start = out->length};
    uint8_t flags = 0;
    lz4.end = bytes + length;
    if (__builtin_add_overflow(lz4.start, limit_bytes, &lz4.limit))
        lz4.limit = SIZE_MAX;
    int r = read_header(&lz4, &flags, error);
    while (!r && (r = next_block(&lz4, flags, error)) > 0)
        r = 0;
    if (r < 0)
        return r;
    const char *content = out->length > lz4.start ? out->data + lz4.start : "";
    if (flags & FLAG_CONTENT_CHECKSUM &&
        (lz4.end - lz4.at < 4 || XXH32(content, out->length - lz4.start, 0) != word_at(lz4.at)))
        return damaged(error);
    return 0;
}
