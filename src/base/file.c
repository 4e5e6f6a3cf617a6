// SPDX-License-Identifier: Apache-2.0
// Whole-file reads and atomic writes: see file.h.

#include "base/file.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
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
        char *room = buffer_try_reserve(&content, 65536);
        if (!room)
            return error_set(error, -ENOMEM, "There is not enough memory to read %s.", path);
        ssize_t got = read(fd, room, 65536);
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

/* Where a file is written before it gets its name. */
struct place {
    char *resolved, *temporary;
    const char *target;
    int fd; /* -1: it is not a regular file, and is written straight */
    bool exists;
    mode_t mode;
};

static void place_release(struct place *place)
{
    close_fd(&place->fd);
    free(place->resolved);
    free(place->temporary);
}

static int place_open(const char *path, struct place *ret_place, struct error *error)
{
    struct stat found;
    bool exists = stat(path, &found) == 0;
    if (exists && S_ISDIR(found.st_mode))
        return error_set(error, -EISDIR, "%s is a directory: give a file name.", path);
    struct place place = {.fd = -1, .exists = exists, .mode = exists ? found.st_mode & 07777 : 0};
    if (!exists || S_ISREG(found.st_mode)) {
        /* A symbolic link keeps pointing to the file it names. */
        place.resolved = exists ? realpath(path, NULL) : NULL;
        place.target = place.resolved ? place.resolved : path;
        size_t room = strlen(place.target) + sizeof(".XXXXXX");
        place.temporary = memory_alloc(room);
        snprintf(place.temporary, room, "%s.XXXXXX", place.target);
        place.fd = mkostemp(place.temporary, O_CLOEXEC);
        if (place.fd < 0) {
            int code = -errno;
            place_release(&place);
            return error_set_errno(error, code, "%s cannot be created", path);
        }
    }
    *ret_place = place;
    return 0;
}

int file_can_write(const char *path, struct error *error)
{
    struct place place;
    if (!strcmp(path, "-"))
        return 0;
    int r = place_open(path, &place, error);
    if (r < 0)
        return r;
    if (place.fd >= 0)
        unlink(place.temporary);
    else if (access(path, W_OK) < 0)
        r = error_set_errno(error, -errno, "%s cannot be written", path);
    place_release(&place);
    return r;
}

int file_write_atomic(const char *path, const void *data, size_t length, struct error *error)
{
    if (!strcmp(path, "-")) {
        int r = file_write_all(STDOUT_FILENO, data, length);
        return r < 0 ? error_set_errno(error, r, "standard output cannot be written") : 0;
    }
    _cleanup_(place_release) struct place place = {.fd = -1};
    int r = place_open(path, &place, error);
    if (r < 0)
        return r;
    if (place.fd < 0)
        return write_straight(path, data, length, error);
    mode_t mask = umask(0);
    umask(mask);
    r = fchmod(place.fd, place.exists ? place.mode : 0666 & ~mask) < 0 ? -errno : 0;
    if (!r)
        r = file_write_all(place.fd, data, length);
    if (!r && fsync(place.fd) < 0)
        r = -errno;
    if (!r && rename(place.temporary, place.target) < 0)
        r = -errno;
    if (r < 0) {
        unlink(place.temporary);
        return error_set_errno(error, r, "%s cannot be written", path);
    }
    sync_directory_of(place.target);
    return 0;
}

int file_take_directory(const char *path, int *ret_fd, struct error *error)
{
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%s/lock", path);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, -errno, "Failed to create %s", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, -errno, "Failed to open %s for writing", name);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int code = errno == EWOULDBLOCK ? -EBUSY : -errno;
        close(fd);
        return error_set(error, code,
                         "%s is in use by another process; stop it first, or use another "
                         "directory.",
                         path);
    }
    *ret_fd = fd;
    return 0;
}

int file_open_regular(int handle)
{
    struct stat found;
    char path[64];
    int fd = -EINVAL;
    if (fstat(handle, &found) < 0) {
        fd = -errno;
    } else if (S_ISREG(found.st_mode)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        fd = fd < 0 ? -errno : fd;
    }
    close(handle);
    return fd;
}
