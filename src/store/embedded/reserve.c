// SPDX-License-Identifier: Apache-2.0
// Room that is kept for the day when somebody else has filled the disk: SQLite can't read a file
// without an index of its log, which takes some, so that a store on such a disk couldn't even be
// opened. A file holds that room, and goes when it is needed; it comes back when there is enough.

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/embedded/embedded.h"

#define MOST_BYTES (1u << 20)
#define PART 32 /* of a small disk */

static void reserve_path(const struct embedded *store, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/reserve", store->directory);
}

static uint64_t reserve_bytes(const struct statvfs *space)
{
    return MIN((uint64_t)MOST_BYTES, (uint64_t)space->f_blocks * space->f_frsize / PART);
}

void embedded_use_reserve(const struct embedded *store)
{
    char path[PATH_MAX];
    struct statvfs space;
    reserve_path(store, path);
    if (statvfs(store->directory, &space) < 0 ||
        (uint64_t)space.f_bavail * space.f_frsize < reserve_bytes(&space))
        unlink(path);
}

void embedded_keep_reserve(const struct embedded *store)
{
    char path[PATH_MAX];
    struct statvfs space;
    reserve_path(store, path);
    if (!access(path, F_OK) || statvfs(store->directory, &space) < 0 || !space.f_blocks ||
        (uint64_t)space.f_bavail * space.f_frsize < 2 * reserve_bytes(&space))
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    /* Half of it would be a promise that isn't kept. */
    if (posix_fallocate(fd, 0, (off_t)reserve_bytes(&space)))
        unlink(path);
    close(fd);
}
