// SPDX-License-Identifier: Apache-2.0
// Sections that are compressed, by zlib or zstd: see elf_unpack_section in file.h.

#include <libdeflate.h>
#include <zstd.h>

#include "elf/cursor.h"
#include "elf/file.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define ZLIB_RATIO_MAX 1032 /* no stream of that kind expands by more */
#define ZSTD_WINDOW_LOG_MAX 27
#define PIECE_BYTES (256u << 10)
#define UNPACKED_FLOOR (32u << 20)
#define UNPACKED_RATIO_MAX 32

static int damaged(const struct elf_section *section, struct error *error)
{
    return error_set(error, -EBADMSG, "The compressed section %s is damaged.", section->name);
}

static int no_memory(const struct elf_section *section, struct error *error)
{
    return error_set(error, -ENOMEM, "Not enough memory to decompress the section %s.",
                     section->name);
}

static int unpack_zlib(const struct elf_section *section, struct cursor packed, uint64_t size_bytes,
                       struct buffer *ret_content, struct error *error)
{
    size_t written = 0;
    if (size_bytes / ZLIB_RATIO_MAX > cursor_left(&packed))
        return damaged(section, error);
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor)
        return no_memory(section, error);
    char *room = buffer_try_reserve(ret_content, size_bytes);
    enum libdeflate_result result = LIBDEFLATE_INSUFFICIENT_SPACE;
    if (room)
        result = libdeflate_zlib_decompress(decompressor, packed.at, cursor_left(&packed), room,
                                            (size_t)size_bytes, &written);
    libdeflate_free_decompressor(decompressor);
    if (!room)
        return no_memory(section, error);
    if (result != LIBDEFLATE_SUCCESS || written != size_bytes)
        return damaged(section, error);
    ret_content->length += written;
    return 0;
}

/* In pieces, since a few bytes may claim to be many. */
static int unpack_zstd(const struct elf_section *section, struct cursor packed, uint64_t size_bytes,
                       struct buffer *ret_content, struct error *error)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer input = {packed.at, cursor_left(&packed), 0};
    size_t before = ret_content->length, result = 1;
    if (stream)
        ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    while (stream && ret_content->length - before <= size_bytes) {
        ZSTD_outBuffer output = {buffer_try_reserve(ret_content, PIECE_BYTES), PIECE_BYTES, 0};
        if (!output.dst) {
            ZSTD_freeDStream(stream);
            ret_content->length = before;
            return no_memory(section, error);
        }
        result = ZSTD_decompressStream(stream, &output, &input);
        ret_content->length += output.pos;
        /* 0 ends a frame; otherwise a full piece may have more behind it. */
        if (ZSTD_isError(result) ||
            (input.pos == input.size && (!result || output.pos < output.size)))
            break;
    }
    ZSTD_freeDStream(stream);
    if (result || ret_content->length - before != size_bytes) {
        ret_content->length = before;
        return damaged(section, error);
    }
    return 0;
}

/* The header of the compressed bytes; the older kind has its own section name and no flag. */
static bool take_header(const struct elf_section *section, struct cursor *packed,
                        uint32_t *ret_type, uint64_t *ret_size_bytes)
{
    if (section->flags & SHF_COMPRESSED) {
        *ret_type = cursor_u32(packed);
        cursor_u32(packed);
        *ret_size_bytes = cursor_u64(packed);
        cursor_u64(packed);
    } else {
        const uint8_t *magic = cursor_take(packed, 4);
        if (!magic || memcmp(magic, "ZLIB", 4) != 0)
            return false;
        *ret_type = ELFCOMPRESS_ZLIB;
        *ret_size_bytes = __builtin_bswap64(cursor_u64(packed));
    }
    return !packed->bad;
}

uint64_t elf_unpack_limit(const struct elf_file *file)
{
    return file->size_bytes > UINT64_MAX / UNPACKED_RATIO_MAX - UNPACKED_FLOOR
               ? UINT64_MAX
               : UNPACKED_FLOOR + UNPACKED_RATIO_MAX * file->size_bytes;
}

int elf_unpack_section(struct elf_file *file, const struct elf_section *section, size_t limit_bytes,
                       struct buffer *ret_content, struct error *error)
{
    if (!(section->flags & SHF_COMPRESSED) && strncmp(section->name, ".zdebug", 7) != 0)
        return elf_read_section(file, section, limit_bytes, ret_content, error);
    _cleanup_buffer_ struct buffer content = {0};
    int r = elf_read_section(file, section, limit_bytes, &content, error);
    if (r < 0)
        return r;
    struct cursor packed = cursor_of(content.data, content.length);
    uint32_t type;
    uint64_t size_bytes;
    if (!take_header(section, &packed, &type, &size_bytes))
        return damaged(section, error);
    uint64_t limit = MIN((uint64_t)limit_bytes, elf_unpack_limit(file));
    if (size_bytes > limit)
        return error_set(error, -E2BIG,
                         "The section %s is %llu bytes decompressed; the limit is %llu.",
                         section->name, (unsigned long long)size_bytes, (unsigned long long)limit);
    switch (type) {
    case ELFCOMPRESS_ZLIB:
        return unpack_zlib(section, packed, size_bytes, ret_content, error);
    case ELFCOMPRESS_ZSTD:
        return unpack_zstd(section, packed, size_bytes, ret_content, error);
    default:
        return error_set(error, -ENOTSUP, "The section %s uses an unknown compression (%u).",
                         section->name, type);
    }
}
