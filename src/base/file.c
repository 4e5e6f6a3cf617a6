// SPDX-License-Identifier: Apache-2.0
// Whole-file reads and atomic writes: see file.h.

#include "base/file.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

int file_read(const char *path, size_t limit_bytes, struct buffer *ret_content, struct error *error)
{
    _cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, -errno, "%s cannot be opened", path);
    _cleanup_buffer_ struct buffer content = {0};
    for (;;) {
        ssize_t got = read(fd, buffer_reserve(&content, 65536), 65536);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, -errno, "%s cannot be read", path);
        if (!got)
            break;
        content.length += (size_t)got;
        if (content.length > limit_bytes)
            return error_set(error, -E2BIG, "%s is larger than the limit of %zu bytes.", path,
                             limit_bytes);
    }
    *ret_content = content;
    content = (struct buffer){0};
    return 0;
}

int file_write_all(int fd, const void *data, size_t length)
{
    const char *at = data;
    while (length) {
        ssize_t wrote = write(fd, at, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -errno;
        at += wrote;
        length -= (size_t)wrote;
    }
    return 0;
}

static int write_straight(const char *path, const void *data, size_t length, struct error *error)
{
    _cleanup_(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : file_write_all(fd, data, length);
    return r < 0 ? error_set_errno(error, r, "%s cannot be written", path) : 0;
}

static int sync_directory_of(const char *path)
{
    _cleanup_free_ char *copy = memory_strdup(path);
    _cleanup_(close_fd) int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems refuse fsync on a directory; the rename itself has happened. */
    if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
        return -errno;
    return 0;
}

int file_write_atomic(const char *path, const void *data, size_t length, struct error *error)
{
    if (!strcmp(path, "-")) {
        int r = file_write_all(STDOUT_FILENO, data, length);
        return r < 0 ? error_set_errno(error, r, "standard output cannot be written") : 0;
    }
    struct stat found;
    bool exists = stat(path, &found) == 0;
    if (exists && S_ISDIR(found.st_mode))
        return error_set(error, -EISDIR, "%s is a directory: give a file name.", path);
    if (exists && !S_ISREG(found.st_mode))
        return write_straight(path, data, length, error);

    /* A symbolic link keeps pointing to the file it names. */
    _cleanup_free_ char *resolved = exists ? realpath(path, NULL) : NULL;
    const char *target = resolved ? resolved : path;
    size_t room = strlen(target) + sizeof(".XXXXXX");
    _cleanup_free_ char *temporary = memory_alloc(room);
    snprintf(temporary, room, "%s.XXXXXX", target);
    _cleanup_(close_fd) int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, -errno, "%s cannot be created", path);
    mode_t mask = umask(0);
    umask(mask);
    int r = fchmod(fd, exists ? found.st_mode & 07777 : 0666 & ~mask) < 0 ? -errno : 0;
    if (!r)
        r = file_write_all(fd, data, length);
    if (!r && fsync(fd) < 0)
        r = -errno;
    if (!r && rename(temporary, target) < 0)
        r = -errno;
    if (r < 0) {
        unlink(temporary);
        return error_set_errno(error, r, "%s cannot be written", path);
    }
    sync_directory_of(target);
    return 0;
}
