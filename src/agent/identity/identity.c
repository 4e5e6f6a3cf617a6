// SPDX-License-Identifier: Apache-2.0
// Reading what /proc has of a process: see identity.h.

#include "agent/identity/identity.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define ENVIRONMENT_BYTES (128u << 10)
#define CGROUP_BYTES (16u << 10)
#define STATUS_BYTES (8u << 10)
#define EXE_BYTES 4096
#define PF_KTHREAD 0x00200000u

void process_facts_release(struct process_facts *facts)
{
    free(facts->exe);
    free(facts->cgroup);
    labels_release(&facts->environment);
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The first bytes of a file of the process, with a NUL behind them; what goes beyond is cut. NULL
 * when it can't be read. */
static char *read_part(const char *proc, uint32_t pid, const char *name, size_t limit,
                       size_t *ret_length)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%" PRIu32 "/%s", proc, pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    size_t capacity = 4096, length = 0;
    char *text = memory_alloc(capacity);
    ssize_t got = 1;
    while (got > 0 && length < limit) {
        array_reserve(text, capacity, MIN(length + 2048, limit) + 1);
        got = read(fd, text + length, MIN(capacity - 1, limit) - length);
        length += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (got < 0 && !length) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    *ret_length = length;
    return text;
}

static void read_user(const char *proc, struct process_facts *facts)
{
    size_t length;
    _cleanup_free_ char *status = read_part(proc, facts->pid, "status", STATUS_BYTES, &length);
    const char *line = status ? strstr(status, "\nUid:") : NULL;
    unsigned uid;
    if (!line || sscanf(line, "\nUid:\t%u", &uid) != 1)
        return;
    struct passwd entry, *found = NULL;
    char room[1024];
    if (getpwuid_r(uid, &entry, room, sizeof(room), &found) == 0 && found)
        snprintf(facts->user, sizeof(facts->user), "%s", found->pw_name);
    else
        snprintf(facts->user, sizeof(facts->user), "%u", uid);
}

/* The ninth field; the second, a name in brackets, may hold anything. */
static bool is_kernel_thread(const char *proc, uint32_t pid)
{
    size_t length;
    unsigned flags = 0;
    _cleanup_free_ char *stat = read_part(proc, pid, "stat", 4096, &length);
    const char *after = stat ? strrchr(stat, ')') : NULL;
    return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
           (flags & PF_KTHREAD);
}

static char *read_exe(const char *proc, uint32_t pid)
{
    static const char mark[] = " (deleted)";
    char path[256], target[EXE_BYTES];
    snprintf(path, sizeof(path), "%s/%" PRIu32 "/exe", proc, pid);
    ssize_t length = readlink(path, target, sizeof(target));
    if (length <= 0 || (size_t)length == sizeof(target))
        return NULL;
    size_t used = (size_t)length, extra = sizeof(mark) - 1;
    if (used > extra && !memcmp(target + used - extra, mark, extra))
        used -= extra;
    return memory_strndup(target, used);
}

void process_facts_read(const char *proc, uint32_t pid, const char *name, const char *exe,
                        const struct globs *allowed, bool user_wanted,
                        struct process_facts *ret_facts)
{
    struct process_facts *facts = ret_facts;
    size_t length = 0;
    *facts = (struct process_facts){.pid = pid, .identity = {.runtime = ""}};
    snprintf(facts->name, sizeof(facts->name), "%s", name);
    _cleanup_free_ char *cgroups = read_part(proc, pid, "cgroup", CGROUP_BYTES, &length);
    facts->gone = !cgroups;
    if (cgroups) {
        size_t path_length;
        const char *path = cgroup_path(cgroups, length, &path_length);
        cgroup_identify(cgroups, length, &facts->identity);
        facts->cgroup = memory_strndup(path, path_length);
        facts->exe = read_exe(proc, pid);
        facts->kernel = !facts->exe && is_kernel_thread(proc, pid);
        if (user_wanted)
            read_user(proc, facts);
        _cleanup_free_ char *environment =
            facts->kernel ? NULL : read_part(proc, pid, "environ", ENVIRONMENT_BYTES, &length);
        /* A truncated value is dropped. */
        if (environment && length == ENVIRONMENT_BYTES)
            while (length && environment[length - 1])
                length--;
        if (environment)
            environment_identify(environment, length, allowed, &facts->environment);
    }
    if (!facts->cgroup)
        facts->cgroup = memory_strdup("");
    if (!facts->exe && exe && !facts->kernel)
        facts->exe = memory_strdup(exe);
}
