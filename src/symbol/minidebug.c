// SPDX-License-Identifier: Apache-2.0
// Symbols that are packed into the binary itself: see minidebug.h.

#include "symbol/minidebug.h"

#include <lzma.h>

#include "base/memory.h"

#define PIECE_BYTES (256u << 10)

static int say_why(lzma_ret result, struct error *error)
{
    switch (result) {
    case LZMA_MEMLIMIT_ERROR:
        return error_set(error, -E2BIG, "Decompressing .gnu_debugdata takes more than %u MiB.",
                         MINIDEBUG_MEMORY_MAX >> 20);
    case LZMA_BUF_ERROR:
        return error_set(error, -EBADMSG, "The section .gnu_debugdata ends too early.");
    default:
        return error_set(error, -EBADMSG, "The section .gnu_debugdata is damaged.");
    }
}

int minidebug_unpack(const void *bytes, size_t length, struct buffer *content, struct error *error)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t before = content->length;
    lzma_ret result = lzma_stream_decoder(&stream, MINIDEBUG_MEMORY_MAX, LZMA_CONCATENATED);
    int r = 0;
    stream.next_in = bytes;
    stream.avail_in = length;
    while (result == LZMA_OK) {
        if (content->length - before > MINIDEBUG_BYTES_MAX) {
            r = error_set(error, -E2BIG, "The section .gnu_debugdata is larger than %u MiB.",
                          MINIDEBUG_BYTES_MAX >> 20);
            break;
        }
        stream.next_out = (uint8_t *)buffer_try_reserve(content, PIECE_BYTES);
        if (!stream.next_out) {
            r = error_set(error, -ENOMEM, "There is not enough memory for .gnu_debugdata.");
            break;
        }
        stream.avail_out = PIECE_BYTES;
        result = lzma_code(&stream, LZMA_FINISH);
        content->length += PIECE_BYTES - stream.avail_out;
    }
    lzma_end(&stream);
    if (!r && result != LZMA_STREAM_END)
        r = say_why(result, error);
    if (r < 0)
        content->length = before;
    return r;
}

int minidebug_open(struct elf_file *file, struct buffer *content, struct elf_file *ret_debug,
                   struct error *error)
{
    struct elf_section section;
    _cleanup_buffer_ struct buffer packed = {0};
    if (!elf_find_section(file, ".gnu_debugdata", &section) || (section.flags & SHF_COMPRESSED))
        return error_set(error, -ENOENT, "The file has no section .gnu_debugdata.");
    int r = elf_read_section(file, &section, MINIDEBUG_PACKED_MAX, &packed, error);
    if (!r)
        r = minidebug_unpack(packed.data, packed.length, content, error);
    if (!r)
        r = elf_open_memory(content->data, content->length, ELF_LAYOUT_FILE, ret_debug, error);
    return r;
}
