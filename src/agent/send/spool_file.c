// SPDX-License-Identifier: Apache-2.0
// Files of the spool: see spool_file.h.

#include "agent/send/spool_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/error.h"
#include "base/file.h"

static const char magic[8] = "assaysp\1";

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void put_u64(char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (char)(value >> (8 * i));
}

static uint64_t get_u64(const char *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)(uint8_t)at[i] << (8 * i);
    return value;
}

/* Of all that comes before it in the header, of the name, so that a file in another's place is
 * noticed, and of the body. */
static uint64_t checksum(const char *header, const char *id, const void *body, size_t length)
{
    uint64_t seed = XXH3_64bits_withSeed(header, SPOOL_HEADER_BYTES - 8, 0);
    seed = XXH3_64bits_withSeed(id, strlen(id), seed);
    return XXH3_64bits_withSeed(body, length, seed);
}

static const char *path_of(struct buffer *path, const char *folder, const char *id,
                           const char *suffix)
{
    path->length = 0;
    buffer_printf(path, "%s/%s%s", folder, id, suffix);
    return buffer_text(path);
}

static int sync_folder(const char *folder)
{
    _cleanup_(close_fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* Some file systems refuse it on a directory. */
    return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

static int write_whole(const char *path, const char *header, const void *body, size_t length)
{
    _cleanup_(close_fd) int fd =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : file_write_all(fd, header, SPOOL_HEADER_BYTES);
    if (!r)
        r = file_write_all(fd, body, length);
    return !r && fsync(fd) < 0 ? -errno : r;
}

int spool_file_write(const char *folder, const char *id, const void *body, size_t length,
                     int64_t time_ns)
{
    _cleanup_buffer_ struct buffer path = {0}, part = {0};
    char header[SPOOL_HEADER_BYTES];
    memcpy(header, magic, sizeof(magic));
    put_u64(header + 8, length);
    put_u64(header + 16, (uint64_t)time_ns);
    put_u64(header + 24, checksum(header, id, body, length));
    path_of(&path, folder, id, SPOOL_SUFFIX);
    path_of(&part, folder, id, SPOOL_TEMPORARY);
    int r = write_whole(part.data, header, body, length);
    bool named = !r && rename(part.data, path.data) == 0;
    if (!r && !named)
        r = -errno;
    if (!r)
        r = sync_folder(folder);
    /* A batch whose write failed must not turn up later beside the copy that its owner keeps. */
    if (r < 0)
        unlink(named ? path.data : part.data);
    return r;
}

int spool_file_parse(const char *id, const char *data, size_t length, size_t *ret_body_length)
{
    if (length < SPOOL_HEADER_BYTES || memcmp(data, magic, sizeof(magic)) ||
        get_u64(data + 8) != length - SPOOL_HEADER_BYTES ||
        get_u64(data + 24) !=
            checksum(data, id, data + SPOOL_HEADER_BYTES, length - SPOOL_HEADER_BYTES))
        return -EBADMSG;
    *ret_body_length = length - SPOOL_HEADER_BYTES;
    return 0;
}

int spool_file_read(const char *folder, const char *id, struct buffer *ret_body)
{
    _cleanup_buffer_ struct buffer path = {0}, content = {0};
    struct error error;
    size_t length;
    path_of(&path, folder, id, SPOOL_SUFFIX);
    int r = file_read(path.data, SPOOL_BODY_BYTES_MAX + SPOOL_HEADER_BYTES, &content, &error);
    if (r == -E2BIG)
        r = -EBADMSG;
    if (!r)
        r = spool_file_parse(id, content.data, content.length, &length);
    if (r < 0)
        return r;
    ret_body->length = 0;
    if (!buffer_try_reserve(ret_body, length))
        return -ENOMEM;
    buffer_add(ret_body, content.data + SPOOL_HEADER_BYTES, length);
    return 0;
}

void spool_file_remove(const char *folder, const char *id)
{
    _cleanup_buffer_ struct buffer path = {0};
    unlink(path_of(&path, folder, id, SPOOL_SUFFIX));
}

/* ---- set aside ---- */

/* The first by name, how many there are and their size. */
static void look_aside(const char *folder, struct buffer *ret_first, uint64_t *ret_bytes,
                       size_t *ret_count)
{
    struct dirent *entry;
    struct stat found;
    DIR *files = opendir(folder);
    ret_first->length = 0;
    *ret_bytes = *ret_count = 0;
    while (files && (entry = readdir(files))) {
        if (fstatat(dirfd(files), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(found.st_mode))
            continue;
        *ret_bytes += (uint64_t)found.st_size;
        ++*ret_count;
        if (!ret_first->length || strcmp(entry->d_name, buffer_text(ret_first)) < 0) {
            ret_first->length = 0;
            buffer_add_text(ret_first, entry->d_name);
        }
    }
    if (files)
        closedir(files);
}

void spool_file_set_aside(const char *folder, const char *id, const char *aside,
                          uint64_t limit_bytes, size_t limit_count)
{
    _cleanup_buffer_ struct buffer from = {0}, place = {0}, to = {0}, first = {0};
    uint64_t bytes = 0;
    size_t count = 0;
    path_of(&from, folder, id, SPOOL_SUFFIX);
    path_of(&place, folder, aside, "");
    path_of(&to, place.data, id, SPOOL_SUFFIX);
    mkdir(place.data, 0700);
    if (rename(from.data, to.data) < 0) {
        unlink(from.data);
        return;
    }
    for (look_aside(place.data, &first, &bytes, &count);
         count && (bytes > limit_bytes || count > limit_count);
         look_aside(place.data, &first, &bytes, &count)) {
        path_of(&to, place.data, buffer_text(&first), "");
        if (unlink(to.data) < 0)
            return;
    }
}
