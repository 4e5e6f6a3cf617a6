/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of numbers as planes of bytes: all lowest bytes, then all next ones, each plane
 * compressed for itself. So a column takes little where its numbers are alike, and reading it back
 * is no more than putting bytes beside each other.
 *
 *     byte    planes
 *     each    varint bytes as stored (fewer than there are numbers: it is zstd), the bytes
 */
#pragma once

#include "base/buffer.h"
#include "store/block/varint.h"

#define PLANES_MAX 8 /* of 64-bit numbers */

/* A codec holds the compressor's contexts and scratch memory, made when they are needed. */
struct plane_codec {
    struct ZSTD_CCtx_s *compressor;
    struct ZSTD_DCtx_s *decompressor;
    struct buffer plane;
};

void plane_codec_release(struct plane_codec *codec);

/* Appends a column of `count` numbers. */
typedef uint64_t plane_number_fn(const void *context, size_t index);
void planes_pack(struct plane_codec *codec, plane_number_fn *number, const void *context,
                 size_t count, struct buffer *out);

struct planes { /* points into what was read, or into memory of its own */
    const uint8_t *plane[PLANES_MAX];
    unsigned count;
    uint8_t *own;
};

void planes_release(struct planes *planes);
#define _cleanup_planes_ __attribute__((cleanup(planes_release)))

/* Reads a column of `count` numbers of at most `most` planes; false when it is none. */
bool planes_open(struct plane_codec *codec, struct cursor *cursor, size_t count, unsigned most,
                 struct planes *ret_planes);

static inline uint64_t planes_number(const struct planes *planes, size_t index)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < planes->count; i++)
        number |= (uint64_t)planes->plane[i][index] << (8 * i);
    return number;
}
