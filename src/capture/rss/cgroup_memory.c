// SPDX-License-Identifier: Apache-2.0
// Memory of cgroups: see cgroup_memory.h.

#include "capture/rss/cgroup_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

/* cgroup 1 has a number near the largest where there is no limit. */
#define UNLIMITED (1ull << 60)

static const struct {
    const char *used, *limit;
} files[] = {{"memory.usage_in_bytes", "memory.limit_in_bytes"}, {"memory.current", "memory.max"}};

/* Whether "rw,memory" has the word "memory". */
static bool has_option(const char *options, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = options; (at = strstr(at, word)); at += length)
        if ((at == options || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

void cgroup_memories_init(struct cgroup_memories *cgroups, const char *mounts)
{
    char line[4096], place[CGROUP_MEMORY_PATH_BYTES], type[64], options[1024], second[512] = "";
    *cgroups = (struct cgroup_memories){0};
    FILE *file = fopen(mounts, "re");
    while (file && !cgroups->root[0] && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%*s %511s %63s %1023s", place, type, options) != 3)
            continue;
        if (!strcmp(type, "cgroup") && has_option(options, "memory"))
            memcpy(cgroups->root, place, sizeof(place));
        else if (!strcmp(type, "cgroup2") && !second[0])
            memcpy(second, place, sizeof(place));
    }
    if (file)
        fclose(file);
    cgroups->second = !cgroups->root[0] && second[0];
    if (cgroups->second)
        memcpy(cgroups->root, second, sizeof(second));
}

void cgroup_memories_release(struct cgroup_memories *cgroups)
{
    free(cgroups->list);
    *cgroups = (struct cgroup_memories){0};
}

/* ---- which ---- */

/* The path of "0::/PATH", or of "4:cpu,memory:/PATH". */
static const char *path_of(const struct cgroup_memories *cgroups, const char *line, size_t length,
                           size_t *ret_length)
{
    char controllers[256];
    const char *end = line + length, *first = memchr(line, ':', length);
    const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
    if (!second)
        return NULL;
    size_t named = (size_t)(second - first - 1);
    if (cgroups->second ? named != 0 || *line != '0' : named >= sizeof(controllers))
        return NULL;
    memcpy(controllers, first + 1, named);
    controllers[named] = 0;
    if (!cgroups->second && !has_option(controllers, "memory"))
        return NULL;
    *ret_length = (size_t)(end - second - 1);
    return second + 1;
}

/* Of a process outside of our namespace the kernel says "/../other". */
static bool is_below_root(const char *path, size_t length)
{
    if (length < 2 || length >= CGROUP_MEMORY_PATH_BYTES || *path != '/')
        return false;
    for (size_t i = 0; i + 2 < length; i++)
        if (!memcmp(path + i, "/..", 3) && (i + 3 == length || path[i + 3] == '/'))
            return false;
    return !memchr(path, 0, length);
}

static int find(struct cgroup_memories *cgroups, const char *path, size_t length)
{
    for (size_t i = 0; i < cgroups->count; i++)
        if (!strncmp(cgroups->list[i].path, path, length) && !cgroups->list[i].path[length])
            return (int)i;
    if (cgroups->count == CGROUP_MEMORY_MAX)
        return -1;
    array_reserve(cgroups->list, cgroups->capacity, cgroups->count + 1);
    struct cgroup_memory *cgroup = &cgroups->list[cgroups->count];
    *cgroup = (struct cgroup_memory){.read_ns = INT64_MIN};
    memcpy(cgroup->path, path, length);
    return (int)cgroups->count++;
}

int cgroup_memories_find(struct cgroup_memories *cgroups, const char *content, size_t length)
{
    const char *end = content + length;
    while (cgroups->root[0] && content < end) {
        const char *newline = memchr(content, '\n', (size_t)(end - content));
        size_t line = (size_t)((newline ? newline : end) - content), path_length = 0;
        const char *path = path_of(cgroups, content, line, &path_length);
        if (path)
            return is_below_root(path, path_length) ? find(cgroups, path, path_length) : -1;
        content += line + 1;
    }
    return -1;
}

/* ---- how much ---- */

/* A number of bytes; "max" is none. */
static bool read_number(const char *root, const char *path, size_t length, const char *name,
                        uint64_t *ret_bytes)
{
    char place[2 * CGROUP_MEMORY_PATH_BYTES + 64], text[32];
    snprintf(place, sizeof(place), "%s%.*s/%s", root, (int)length, path, name);
    int fd = open(place, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof(text));
    close(fd);
    const char *newline = got > 0 ? memchr(text, '\n', (size_t)got) : NULL;
    return newline && text_to_u64(text, (size_t)(newline - text), ret_bytes);
}

static void look(struct cgroup_memories *cgroups, struct cgroup_memory *cgroup)
{
    const char *used = files[cgroups->second].used, *limit = files[cgroups->second].limit;
    size_t length = strlen(cgroup->path);
    cgroup->there = read_number(cgroups->root, cgroup->path, length, used, &cgroup->used);
    cgroup->limit = 0;
    while (cgroup->there && length) {
        uint64_t own;
        if (read_number(cgroups->root, cgroup->path, length, limit, &own) && own < UNLIMITED &&
            (!cgroup->limit || own < cgroup->limit))
            cgroup->limit = MAX(own, 1u);
        while (length && cgroup->path[--length] != '/')
            ;
    }
}

const struct cgroup_memory *cgroup_memories_read(struct cgroup_memories *cgroups, int index,
                                                 int64_t since_ns, int64_t now_ns)
{
    struct cgroup_memory *cgroup = &cgroups->list[index];
    if (cgroup->read_ns < since_ns) {
        look(cgroups, cgroup);
        cgroup->read_ns = now_ns;
    }
    return cgroup;
}
