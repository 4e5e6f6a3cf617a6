// SPDX-License-Identifier: Apache-2.0
// Finding the separate file with a program's symbols: see debugfile.h.

#include "symbol/debugfile.h"

#include <stdio.h>

#include "base/memory.h"

#define DEBUG_FOLDER "/usr/lib/debug"

/* ---- is it the right one ---- */

static bool same_build_id(struct elf_file *file, struct elf_file *other, bool *ret_both)
{
    uint8_t id[ELF_BUILD_ID_MAX], other_id[ELF_BUILD_ID_MAX];
    size_t length, other_length;
    *ret_both = elf_build_id(file, id, &length) && elf_build_id(other, other_id, &other_length);
    return *ret_both && length == other_length && !memcmp(id, other_id, length);
}

uint32_t debug_file_checksum(uint32_t checksum, const void *bytes, size_t length)
{
    /* Half a byte at a time: no big table to fill, and still as fast as a disk. */
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    const uint8_t *at = bytes;
    checksum = ~checksum;
    for (size_t i = 0; i < length; i++) {
        checksum ^= at[i];
        checksum = checksum >> 4 ^ table[checksum & 15];
        checksum = checksum >> 4 ^ table[checksum & 15];
    }
    return ~checksum;
}

static bool has_checksum(struct elf_file *file, uint32_t expected)
{
    if (file->size_bytes > DEBUG_FILE_BYTES_MAX)
        return false;
    size_t piece_bytes = 256 << 10;
    _cleanup_free_ uint8_t *piece = memory_alloc(piece_bytes);
    uint32_t checksum = 0;
    for (uint64_t offset = 0; offset < file->size_bytes; offset += piece_bytes) {
        size_t length = (size_t)MIN(piece_bytes, file->size_bytes - offset);
        if (elf_read(file, offset, piece, length) < 0)
            return false;
        checksum = debug_file_checksum(checksum, piece, length);
    }
    return checksum == expected;
}

/* ---- where it may be ---- */

/* The length of "/proc/PID/root", where the path starts with that. */
static size_t root_length(const char *path)
{
    if (strncmp(path, "/proc/", 6))
        return 0;
    size_t length = 6 + strcspn(path + 6, "/");
    return strncmp(path + length, "/root/", 6) ? 0 : length + 5;
}

static bool open_by_build_id(struct elf_file *file, const char *root, size_t root_bytes,
                             struct elf_file *ret_debug)
{
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length;
    if (!elf_build_id(file, id, &length) || length < 2)
        return false;
    _cleanup_buffer_ struct buffer place = {0};
    buffer_printf(&place, "%.*s" DEBUG_FOLDER "/.build-id/%02x/", (int)root_bytes, root, id[0]);
    for (size_t i = 1; i < length; i++)
        buffer_printf(&place, "%02x", id[i]);
    buffer_add_text(&place, ".debug");
    struct elf_file debug = {.fd = -1};
    bool both;
    if (elf_open(buffer_text(&place), &debug, NULL) < 0)
        return false;
    if (!same_build_id(file, &debug, &both)) {
        elf_release(&debug);
        return false;
    }
    *ret_debug = debug;
    return true;
}

static bool open_linked(struct elf_file *file, const char *place, uint32_t checksum,
                        struct elf_file *ret_debug)
{
    struct elf_file debug = {.fd = -1};
    bool both;
    if (elf_open(place, &debug, NULL) < 0)
        return false;
    if ((!same_build_id(file, &debug, &both) && both) || !has_checksum(&debug, checksum)) {
        elf_release(&debug);
        return false;
    }
    *ret_debug = debug;
    return true;
}

static bool open_by_link(struct elf_file *file, const char *path, size_t root_bytes,
                         struct elf_file *ret_debug)
{
    _cleanup_buffer_ struct buffer link = {0}, place = {0};
    uint32_t checksum;
    if (!elf_debug_link(file, &link, &checksum) || memchr(link.data, '/', link.length))
        return false;
    const char *name = buffer_text(&link), *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0; /* with its slash */
    const char *inside = path + root_bytes;
    int inside_length = folder - (int)root_bytes;
    for (int i = 0; i < 4; i++) {
        place.length = 0;
        if (i == 0)
            buffer_printf(&place, "%.*s%s", folder, path, name);
        else if (i == 1)
            buffer_printf(&place, "%.*s.debug/%s", folder, path, name);
        else if (path[0] == '/' && (i == 2 || root_bytes))
            buffer_printf(&place, "%.*s" DEBUG_FOLDER "%.*s%s", i == 2 ? 0 : (int)root_bytes, path,
                          inside_length, inside, name);
        else
            break;
        if (open_linked(file, buffer_text(&place), checksum, ret_debug))
            return true;
    }
    return false;
}

int debug_file_open(struct elf_file *file, const char *path, struct elf_file *ret_debug)
{
    size_t root_bytes = root_length(path);
    if (strlen(path) > 4096)
        return -ENOENT;
    if (open_by_build_id(file, path, 0, ret_debug) ||
        (root_bytes && open_by_build_id(file, path, root_bytes, ret_debug)) ||
        open_by_link(file, path, root_bytes, ret_debug))
        return 0;
    return -ENOENT;
}
