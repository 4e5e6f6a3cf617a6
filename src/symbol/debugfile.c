// SPDX-License-Identifier: Apache-2.0
// Finding the separate file with a program's symbols: see debugfile.h.

#include "symbol/debugfile.h"

#include <libdeflate.h>
#include <stdio.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"

#define DEBUG_FOLDER "/usr/lib/debug"
#define PATH_BYTES_MAX 4096

/* ---- is it the right one ---- */

void build_id_text(struct elf_file *file, char ret_text[BUILD_ID_TEXT_BYTES])
{
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length = 0;
    ret_text[0] = '\0';
    if (elf_build_id(file, id, &length))
        hex_encode(id, length, ret_text);
}

static bool same_build_id(struct elf_file *file, struct elf_file *other, bool *ret_both)
{
    uint8_t id[ELF_BUILD_ID_MAX], other_id[ELF_BUILD_ID_MAX];
    size_t length, other_length;
    *ret_both = elf_build_id(file, id, &length) && elf_build_id(other, other_id, &other_length);
    return *ret_both && length == other_length && !memcmp(id, other_id, length);
}

uint32_t debug_file_checksum(uint32_t checksum, const void *bytes, size_t length)
{
    return libdeflate_crc32(checksum, bytes, length);
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

/* Only a file of that build ID. */
static bool open_build(const char *place, const uint8_t *id, size_t length,
                       struct elf_file *ret_debug)
{
    struct elf_file debug = {.fd = -1};
    uint8_t own[ELF_BUILD_ID_MAX];
    size_t own_length;
    if (elf_open(place, &debug, NULL) < 0)
        return false;
    if (!elf_build_id(&debug, own, &own_length) || own_length != length ||
        memcmp(own, id, length)) {
        elf_release(&debug);
        return false;
    }
    *ret_debug = debug;
    return true;
}

static bool open_by_build_id(const uint8_t *id, size_t length, const char *root, size_t root_bytes,
                             struct elf_file *ret_debug)
{
    if (length < 2)
        return false;
    _cleanup_buffer_ struct buffer place = {0};
    buffer_printf(&place, "%.*s" DEBUG_FOLDER "/.build-id/%02x/", (int)root_bytes, root, id[0]);
    buffer_add_hex(&place, id + 1, length - 1);
    buffer_add_text(&place, ".debug");
    return open_build(buffer_text(&place), id, length, ret_debug);
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

/* A file that was opened through /proc/PID/fd, exe or map_files lies elsewhere. */
static const char *place_of(const char *path, char target[PATH_BYTES_MAX])
{
    ssize_t length = strncmp(path, "/proc/", 6) ? -1 : readlink(path, target, PATH_BYTES_MAX - 1);
    if (length <= 0 || target[0] != '/')
        return path;
    target[length] = '\0';
    return target;
}

int debug_file_open(struct elf_file *file, const char *path, struct elf_file *ret_debug)
{
    char target[PATH_BYTES_MAX];
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length = 0, root_bytes = root_length(path);
    if (strlen(path) > PATH_BYTES_MAX)
        return -ENOENT;
    if (!elf_build_id(file, id, &length))
        length = 0;
    if (open_by_build_id(id, length, path, 0, ret_debug) ||
        (root_bytes && open_by_build_id(id, length, path, root_bytes, ret_debug)))
        return 0;
    if (!root_bytes)
        path = place_of(path, target);
    return open_by_link(file, path, root_bytes, ret_debug) ? 0 : -ENOENT;
}

/* ---- what debug files share ---- */

/* The directory that an open file is in, with its slash; empty when that can't be told. */
static void folder_of(const struct elf_file *file, struct buffer *ret_folder)
{
    char link[64], target[PATH_BYTES_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
    ssize_t length = readlink(link, target, sizeof(target));
    while (length > 0 && target[length - 1] != '/')
        length--;
    if (length > 0)
        buffer_add(ret_folder, target, (size_t)length);
}

int debug_file_open_alternate(struct elf_file *debug, const char *path,
                              struct elf_file *ret_alternate)
{
    struct elf_section section;
    _cleanup_buffer_ struct buffer link = {0}, place = {0};
    size_t root_bytes = root_length(path);
    if (strlen(path) > PATH_BYTES_MAX || !elf_find_section(debug, ".gnu_debugaltlink", &section) ||
        (section.flags & SHF_COMPRESSED) ||
        elf_read_section(debug, &section, PATH_BYTES_MAX + ELF_BUILD_ID_MAX, &link, NULL) < 0)
        return -ENOENT;
    size_t name_length = strnlen(link.data ? link.data : "", link.length);
    if (!name_length || name_length >= link.length)
        return -ENOENT;
    const uint8_t *id = (const uint8_t *)link.data + name_length + 1;
    size_t id_length = link.length - name_length - 1;
    if (id_length < 2 || id_length > ELF_BUILD_ID_MAX)
        return -ENOENT;
    if (link.data[0] == '/')
        buffer_add(&place, path, root_bytes);
    else
        folder_of(debug, &place);
    buffer_add(&place, link.data, name_length);
    if (open_by_build_id(id, id_length, path, 0, ret_alternate) ||
        (root_bytes && open_by_build_id(id, id_length, path, root_bytes, ret_alternate)) ||
        (root_bytes && link.data[0] == '/' &&
         open_build(link.data, id, id_length, ret_alternate)) ||
        open_build(buffer_text(&place), id, id_length, ret_alternate))
        return 0;
    return -ENOENT;
}
