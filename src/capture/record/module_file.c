// SPDX-License-Identifier: Apache-2.0
// Finding, opening and closing modules' files: see module_file.h.

#include "capture/record/module_file.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"

enum way {
    WAY_MAPPING,
    WAY_PROGRAM, /* of a process that runs from a memfd */
    WAY_PROCESS_ROOT,
    WAY_ANCESTOR_ROOT,
    WAY_OUR_ROOT = WAY_ANCESTOR_ROOT + MODULE_ANCESTORS,
    WAYS
};

bool module_file_is_memory(const char *path)
{
    static const char prefix[] = "/memfd:";
    return !strncmp(path, prefix, sizeof(prefix) - 1);
}

/* ---- ways to a file ---- */

/* Whose root a way begins in; 0: nobody's, or not known. */
static uint32_t root_of(enum way way, const struct module_request *request)
{
    if (way == WAY_PROCESS_ROOT)
        return request->pid;
    return way >= WAY_ANCESTOR_ROOT && way < WAY_OUR_ROOT
               ? request->ancestors[way - WAY_ANCESTOR_ROOT]
               : 0;
}

/* As text; false when too little is known to go that way. */
static bool path_of(enum way way, const struct module_request *request,
                    char buffer[MODULE_PATH_BYTES])
{
    int length = -1;
    /* No path leads to memory. */
    if (module_file_is_memory(request->path) ? way > WAY_PROGRAM : way == WAY_PROGRAM)
        return false;
    if (way == WAY_MAPPING && request->pid && request->start < request->end)
        length =
            snprintf(buffer, MODULE_PATH_BYTES, "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64,
                     request->pid, request->start, request->end);
    else if (way == WAY_PROGRAM && request->pid)
        length = snprintf(buffer, MODULE_PATH_BYTES, "/proc/%" PRIu32 "/exe", request->pid);
    else if (root_of(way, request))
        length = snprintf(buffer, MODULE_PATH_BYTES, "/proc/%" PRIu32 "/root%s",
                          root_of(way, request), request->path);
    else if (way == WAY_OUR_ROOT)
        length = snprintf(buffer, MODULE_PATH_BYTES, "%s", request->path);
    return length > 0 && length < MODULE_PATH_BYTES;
}

/* A symbolic link in a container must not lead to a file of ours: it is followed as the process
 * would follow it. */
int module_file_in_root(uint32_t pid, const char *path)
{
    char root[64];
    snprintf(root, sizeof(root), "/proc/%" PRIu32 "/root", pid);
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
    if (fd < 0)
        fd = -errno;
    close(folder);
    return fd < 0 ? fd : file_open_regular(fd);
}

static int open_way(struct modules *modules, enum way way, const struct module_request *request)
{
    char path[MODULE_PATH_BYTES];
    if (!path_of(way, request, path) || (way == WAY_MAPPING && modules->no_map_files))
        return -ENOENT;
    if (root_of(way, request)) {
        int fd = module_file_in_root(root_of(way, request), request->path);
        if (fd != -ENOSYS)
            return fd;
    }
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        return file_open_regular(fd);
    /* Not a matter of this process: we lack the capability, and will for all others. */
    if (way == WAY_MAPPING && errno == EPERM)
        modules->no_map_files = true;
    return -errno;
}

/* overlayfs, btrfs and others give stat another device than mappings have, one without a major
 * number; their inodes agree. File systems made from one image have the same inodes, so without
 * the process's own root the device counts as well. */
static bool is_asked_for(enum way way, const struct module_request *request,
                         const struct stat *found)
{
    if (!S_ISREG(found->st_mode))
        return false;
    if (!request->inode)
        return true;
    /* Something else may be mapped there by now. */
    if (found->st_ino != request->inode)
        return false;
    return way <= WAY_PROCESS_ROOT || found->st_dev == request->device || !major(found->st_dev);
}

static bool is_elf(int fd)
{
    char magic[SELFMAG];
    return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
           !memcmp(magic, ELFMAG, sizeof(magic));
}

int module_file_find(struct modules *modules, const struct module_request *request,
                     struct stat *ret_found)
{
    int result = -ENOENT;
    for (enum way way = 0; way < WAYS; way++) {
        struct stat found;
        int fd = open_way(modules, way, request);
        if (fd < 0) {
            if (fd != -ENOENT)
                result = fd;
            continue;
        }
        if (fstat(fd, &found) == 0 && is_asked_for(way, request, &found) &&
            (!module_file_is_memory(request->path) || is_elf(fd))) {
            *ret_found = found;
            return fd;
        }
        close(fd);
    }
    return result;
}

/* ---- is it still the same? ---- */

struct module_stamp module_stamp_of(const struct stat *found)
{
    return (struct module_stamp){.device = found->st_dev,
                                 .inode = found->st_ino,
                                 .size_bytes = (uint64_t)found->st_size,
                                 .changed_ns = (int64_t)found->st_mtim.tv_sec * 1000000000 +
                                               found->st_mtim.tv_nsec};
}

static bool same_stamp(const struct module *module, const struct stat *found)
{
    struct module_stamp stamp = module_stamp_of(found);
    return !memcmp(&stamp, &module->stamp, sizeof(stamp));
}

static struct module_request request_of(const struct module *module)
{
    struct module_request request = {
        .path = module->path, .pid = module->pid, .start = module->start, .end = module->end};
    memcpy(request.ancestors, module->ancestors, sizeof(request.ancestors));
    return request;
}

const char *module_open_path(const struct module *module, char buffer[MODULE_PATH_BYTES])
{
    struct module_request request = request_of(module);
    struct stat found;
    if (!module->readable || module->is_vdso)
        return NULL;
    if (module->fd >= 0) {
        snprintf(buffer, MODULE_PATH_BYTES, "/proc/self/fd/%d", module->fd);
        return buffer;
    }
    for (enum way way = WAYS; way-- > 0;)
        if (path_of(way, &request, buffer) && stat(buffer, &found) == 0 &&
            same_stamp(module, &found))
            return buffer;
    return NULL;
}

/* ---- a limited number of open files ---- */

static void take_off_list(struct modules *modules, struct module *module)
{
    for (size_t i = 0; i < modules->open_count; i++)
        if (modules->open[i] == module) {
            modules->open[i] = modules->open[--modules->open_count];
            return;
        }
}

void module_file_close(struct modules *modules, struct module *module)
{
    if (module->fd < 0)
        return;
    take_off_list(modules, module);
    shared_fd_unref(TAKE_PTR(module->held));
    module->fd = -1;
}

static struct module *least_used(const struct modules *modules)
{
    struct module *least = modules->open[0];
    for (size_t i = 1; i < modules->open_count; i++) {
        struct module *module = modules->open[i];
        if (module->irreplaceable != least->irreplaceable ? !module->irreplaceable
                                                          : module->used < least->used)
            least = module;
    }
    return least;
}

/* A file that was deleted or replaced since it was opened is found out here, and kept if there is
 * any other. */
static void close_one(struct modules *modules)
{
    for (;;) {
        struct module *module = least_used(modules);
        struct stat found;
        if (!module->irreplaceable &&
            (stat(module->path, &found) < 0 || !same_stamp(module, &found))) {
            module->irreplaceable = true;
            continue;
        }
        module_file_close(modules, module);
        return;
    }
}

void module_file_keep(struct modules *modules, struct module *module, int fd)
{
    module_file_close(modules, module);
    if (modules->open_count == modules->open_max)
        close_one(modules);
    module->fd = fd;
    module->held = shared_fd_new(fd);
    modules->open[modules->open_count++] = module;
}

int module_file_open(struct modules *modules, struct module *module)
{
    struct module_request request = request_of(module);
    struct stat found;
    if (module->fd >= 0) {
        if (fstat(module->fd, &found) < 0)
            return -errno;
        return same_stamp(module, &found) ? module->fd : -ESTALE;
    }
    /* Without an inode to compare, every way is open to a wrong file: the stamp decides. */
    int result = -ENOENT;
    for (enum way way = WAYS; way-- > 0;) {
        int fd = open_way(modules, way, &request);
        if (fd < 0)
            continue;
        if (fstat(fd, &found) == 0 && same_stamp(module, &found)) {
            module_file_keep(modules, module, fd);
            return fd;
        }
        result = -ESTALE;
        close(fd);
    }
    return result;
}
