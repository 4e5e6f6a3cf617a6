// SPDX-License-Identifier: Apache-2.0
// Columns of numbers as planes of bytes, both ways.

#include "store/block/planes.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"

#define LEVEL 1

void plane_codec_release(struct plane_codec *codec)
{
    ZSTD_freeCCtx(codec->compressor);
    ZSTD_freeDCtx(codec->decompressor);
    buffer_release(&codec->plane);
    *codec = (struct plane_codec){0};
}

static void pack_plane(struct plane_codec *codec, size_t count, struct buffer *out)
{
    _cleanup_buffer_ struct buffer packed = {0};
    size_t room = ZSTD_compressBound(count);
    char *space = buffer_reserve(&packed, room);
    if (!codec->compressor)
        codec->compressor = memory_create(ZSTD_createCCtx());
    size_t got = ZSTD_compressCCtx(codec->compressor, space, room, codec->plane.data, count, LEVEL);
    bool smaller = !ZSTD_isError(got) && got < count;
    buffer_add_varint(out, smaller ? got : count);
    buffer_add(out, smaller ? space : codec->plane.data, smaller ? got : count);
}

void planes_pack(struct plane_codec *codec, plane_number_fn *number, const void *context,
                 size_t count, struct buffer *out)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= number(context, i);
    unsigned planes = 0;
    while (planes < PLANES_MAX && any >> (8 * planes))
        planes++;
    buffer_add_char(out, (char)planes);
    for (unsigned k = 0; k < planes; k++) {
        codec->plane.length = 0;
        char *plane = buffer_reserve(&codec->plane, count);
        for (size_t i = 0; i < count; i++)
            plane[i] = (char)(number(context, i) >> (8 * k));
        pack_plane(codec, count, out);
    }
}

void planes_release(struct planes *planes)
{
    free(planes->own);
    *planes = (struct planes){0};
}

static bool unpack_plane(struct plane_codec *codec, const void *stored, size_t length, uint8_t *out,
                         size_t count)
{
    /* Without it, all would seem damaged. */
    if (!codec->decompressor)
        codec->decompressor = memory_create(ZSTD_createDCtx());
    /* Nothing is written beyond `count`, whatever the frame says of its length. */
    return ZSTD_decompressDCtx(codec->decompressor, out, count, stored, length) == count;
}

bool planes_open(struct plane_codec *codec, struct cursor *cursor, size_t count, unsigned most,
                 struct planes *ret_planes)
{
    struct planes planes = {0};
    const uint8_t *byte = cursor_bytes(cursor, 1);
    bool good = byte && *byte <= most;
    planes.count = good ? *byte : 0;
    for (unsigned i = 0; good && i < planes.count; i++) {
        uint64_t length = cursor_varint(cursor);
        const uint8_t *stored = cursor_bytes(cursor, length);
        if (!stored || length > count) {
            good = false;
        } else if (length == count) {
            planes.plane[i] = stored;
        } else {
            if (!planes.own)
                planes.own = memory_alloc(planes.count * count);
            planes.plane[i] = planes.own + i * count;
            good = unpack_plane(codec, stored, length, planes.own + i * count, count);
        }
    }
    if (!good)
        planes_release(&planes);
    *ret_planes = planes;
    return good;
}
