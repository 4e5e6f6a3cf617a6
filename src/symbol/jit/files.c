// SPDX-License-Identifier: Apache-2.0
// Finding and opening what compilers write: see jit_files.h.

#include "symbol/jit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

void jit_place_init(struct jit_place *place, uint32_t pid)
{
    *place = (struct jit_place){.pid = pid,
                                .inner_pid = pid,
                                .real_user = geteuid(),
                                .effective_user = geteuid(),
                                .folder = JIT_FOLDER_OURS};
}

void jit_place_release(struct jit_place *place)
{
    if (place->folder >= 0)
        close(place->folder);
    place->folder = JIT_FOLDER_NONE;
}

/* ---- the process ---- */

/* The process's user and its number in the innermost namespace; false when it is no more. */
static bool read_status(struct jit_place *place)
{
    char path[64], line[4096];
    bool alive = true;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", place->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (fgets(line, sizeof(line), file)) {
        unsigned real, effective;
        uint64_t inner;
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, "State:", 6)) {
            alive = !strchr("ZX", line[6 + strspn(line + 6, " \t")]);
        } else if (sscanf(line, "Uid: %u %u", &real, &effective) == 2) {
            place->real_user = real;
            place->effective_user = effective;
        } else if (!strncmp(line, "NSpid:", 6)) {
            const char *last = strrchr(line, '\t');
            if (last && text_to_u64(last + 1, strlen(last + 1), &inner) && inner <= UINT32_MAX)
                place->inner_pid = (uint32_t)inner;
        }
    }
    fclose(file);
    return alive;
}

static uint64_t read_start(uint32_t pid)
{
    char path[64], line[1024];
    unsigned long long ticks = 0;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
    FILE *file = fopen(path, "re");
    const char *name_end = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    /* The 22nd field; the name before the third may have anything in it. */
    if (name_end &&
        sscanf(name_end + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1)
        ticks = 0;
    if (file)
        fclose(file);
    return ticks;
}

/* Links on the way are those of the process's root, wherever they claim to lead. */
static int open_in_root(int root, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_PATH | O_CLOEXEC),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

static int open_root(const struct jit_place *place)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root", place->pid);
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void jit_place_update(struct jit_place *place)
{
    struct stat theirs, ours;
    place->alive = read_status(place);
    place->renewed = false;
    if (!place->alive)
        return;
    uint64_t started = read_start(place->pid);
    place->renewed = place->started && started != place->started;
    place->started = started;
    int root = open_root(place);
    jit_place_release(place);
    if (root < 0) {
        /* Another user's process. Where it counts as we do, it probably sees what we see. */
        place->folder = place->inner_pid == place->pid ? JIT_FOLDER_OURS : JIT_FOLDER_NONE;
        return;
    }
    int folder = open_in_root(root, "/tmp", O_DIRECTORY);
    close(root);
    if (folder < 0)
        return;
    if (stat("/tmp", &ours) == 0 && fstat(folder, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
        ours.st_ino == theirs.st_ino) {
        close(folder);
        folder = JIT_FOLDER_OURS;
    }
    place->folder = folder;
}

/* ---- files ---- */

/* Takes `handle`, which gives no access yet, and gives a descriptor to read from. */
static int open_checked(const struct jit_place *place, int handle)
{
    struct stat found;
    char path[64];
    int fd = -EPERM;
    if (handle < 0)
        return handle;
    if (fstat(handle, &found) < 0) {
        fd = -errno;
    } else if (S_ISREG(found.st_mode) && found.st_nlink <= 1 &&
               (!found.st_uid || found.st_uid == place->real_user ||
                found.st_uid == place->effective_user)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        fd = fd < 0 ? -errno : fd;
    }
    close(handle);
    return fd;
}

int jit_place_open_map(const struct jit_place *place)
{
    char path[64];
    if (place->folder == JIT_FOLDER_NONE)
        return -ENOENT;
    bool ours = place->folder == JIT_FOLDER_OURS;
    snprintf(path, sizeof(path), "%sperf-%" PRIu32 ".map", ours ? "/tmp/" : "", place->inner_pid);
    int handle = openat(ours ? AT_FDCWD : place->folder, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return handle < 0 ? -errno : open_checked(place, handle);
}

/* "jit-1234.dump". */
static bool is_dump_name(const char *path)
{
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/jit-", 5))
        return false;
    size_t digits = strspn(name + 5, "0123456789");
    return digits && !strncmp(name + 5 + digits, ".dump", 5) &&
           (!name[10 + digits] || name[10 + digits] == ' ');
}

/* By the mapping itself where we may, which finds a file that was deleted as well. */
static int open_mapped(const struct jit_place *place, uint64_t start, uint64_t end,
                       const char *path)
{
    char link[128];
    snprintf(link, sizeof(link), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, place->pid,
             start, end);
    int handle = open(link, O_PATH | O_CLOEXEC);
    if (handle >= 0)
        return open_checked(place, handle);
    int root = open_root(place);
    if (root < 0)
        return root;
    handle = open_in_root(root, path, O_NOFOLLOW);
    close(root);
    return open_checked(place, handle);
}

int jit_place_open_dump(const struct jit_place *place, uint64_t *allowance)
{
    char path[64], line[4600];
    int fd = -ENOENT;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", place->pid);
    FILE *file = place->alive ? fopen(path, "re") : NULL;
    while (file && fd < 0 && *allowance && fgets(line, sizeof(line), file)) {
        uint64_t start, end;
        *allowance -= MIN(strlen(line), *allowance);
        char protection[5];
        int name = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &start, &end, protection,
                   &name) >= 3 &&
            name && protection[2] == 'x' && is_dump_name(line + name))
            fd = open_mapped(place, start, end, line + name);
    }
    if (file)
        fclose(file);
    return fd;
}
