// SPDX-License-Identifier: Apache-2.0
// Baselines on disk: see baselines.h. A directory whose name begins with a '.' is one that isn't
// complete.

#include "server/compare/baselines.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define PART_BYTES_MAX (1ull << 30)

struct baselines {
    pthread_mutex_t lock; /* of the directories */
    char *directory;      /* NULL: baselines are not kept */
    struct baselines_limits limits;
    struct baselines_stats stats;
    bool counted; /* nothing was written since */
};

struct baselines *baselines_new(const char *data, const struct baselines_limits *limits)
{
    struct baselines *baselines = memory_zalloc(1, sizeof(*baselines));
    struct buffer path = {0};
    pthread_mutex_init(&baselines->lock, NULL);
    baselines->limits = *limits;
    if (data) {
        buffer_printf(&path, "%s/.baselines", data); /* no tenant begins with a point */
        baselines->directory = memory_strdup(buffer_text(&path));
    }
    buffer_release(&path);
    return baselines;
}

void baselines_free(struct baselines *baselines)
{
    if (!baselines)
        return;
    pthread_mutex_destroy(&baselines->lock);
    free(baselines->directory);
    free(baselines);
}

static int check_name(const char *name, struct error *error)
{
    size_t length = strlen(name);
    bool fine = length && length <= BASELINE_NAME_BYTES_MAX && *name != '.';
    for (const char *at = name; fine && *at; at++)
        fine = isalnum((unsigned char)*at) || strchr("-_.", *at);
    return fine ? 0
                : error_set(error, -EINVAL,
                            "A baseline's name has up to %d letters, digits, '-', '_' and '.', and "
                            "doesn't begin with a '.'.",
                            BASELINE_NAME_BYTES_MAX);
}

static int check_directory(const struct baselines *baselines, struct error *error)
{
    return baselines->directory
               ? 0
               : error_set(error, -ENOSYS,
                           "This server keeps everything in memory and has no baselines; start it "
                           "with a data directory.");
}

static void path_of(const struct baselines *baselines, char *path, const char *tenant,
                    const char *dot, const char *name, const char *file)
{
    snprintf(path, PATH_MAX, "%s/%s%s%s%s%s%s", baselines->directory, tenant, *name ? "/" : "", dot,
             name, *file ? "/" : "", file);
}

/* Sizes of the files in one directory; how many of them are parts. */
static uint64_t directory_bytes(const char *path, unsigned *ret_parts, int64_t *ret_time_ns)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    uint64_t sum = 0;
    while (directory && (entry = readdir(directory))) {
        struct stat status;
        if (fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode))
            continue;
        size_t length = strlen(entry->d_name);
        sum += (uint64_t)status.st_size;
        if (ret_parts)
            *ret_parts += length > 8 && !strcmp(entry->d_name + length - 8, ".profile");
        if (ret_time_ns)
            *ret_time_ns = MAX(*ret_time_ns, status.st_mtim.tv_sec * 1000000000ll);
    }
    if (directory)
        closedir(directory);
    return sum;
}

static int remove_directory(const char *path, struct error *error)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    if (!directory)
        return errno == ENOENT ? 0 : error_set_errno(error, -errno, "Failed to open %s", path);
    while ((entry = readdir(directory)))
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    return rmdir(path) < 0 ? error_set_errno(error, -errno, "Failed to remove %s", path) : 0;
}

/* The bytes of a tenant without `name` (may be NULL), which is about to be replaced. */
static void tenant_usage(const struct baselines *baselines, const char *tenant, const char *name,
                         uint64_t *count, uint64_t *bytes)
{
    char path[PATH_MAX], inner[PATH_MAX];
    path_of(baselines, path, tenant, "", "", "");
    DIR *directory = opendir(path);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            (name && !strcmp(entry->d_name, name)))
            continue;
        path_of(baselines, inner, tenant, "", entry->d_name, "");
        *count += *entry->d_name != '.';
        *bytes += directory_bytes(inner, NULL, NULL);
    }
    if (directory)
        closedir(directory);
}

static int check_quota(const struct baselines *baselines, const struct baseline_part *part,
                       struct error *error)
{
    uint64_t count = 0, bytes = 0;
    tenant_usage(baselines, part->tenant, part->name, &count, &bytes);
    if (count >= baselines->limits.count)
        return error_set(
            error, -EDQUOT,
            "There are %llu baselines; the limit is %llu (baselines.count). Delete one "
            "first.",
            (unsigned long long)count, (unsigned long long)baselines->limits.count);
    if (bytes + part->length > baselines->limits.bytes)
        return error_set(error, -EDQUOT,
                         "Baselines would take %llu MiB; the limit is %llu MiB (baselines.bytes). "
                         "Delete one first.",
                         (unsigned long long)((bytes + part->length) >> 20),
                         (unsigned long long)(baselines->limits.bytes >> 20));
    return 0;
}

static int make_directory(const char *path, struct error *error)
{
    return mkdir(path, 0700) < 0 && errno != EEXIST
               ? error_set_errno(error, -errno, "Failed to create %s", path)
               : 0;
}

/* Removes the oldest of those that aren't complete, where there are more than another one may join;
 * `name` begins anew and doesn't count. */
static int make_room(const struct baselines *baselines, const struct baseline_part *part,
                     struct error *error)
{
    char path[PATH_MAX], oldest[NAME_MAX + 1] = "";
    size_t count = 0;
    int64_t oldest_ns = INT64_MAX;
    path_of(baselines, path, part->tenant, "", "", "");
    DIR *directory = opendir(path);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        struct stat status;
        const char *name = entry->d_name;
        if (*name != '.' || !name[1] || name[1] == '.' || !strcmp(name + 1, part->name) ||
            fstatat(dirfd(directory), name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        int64_t time_ns = status.st_mtim.tv_sec * 1000000000ll + status.st_mtim.tv_nsec;
        count++;
        if (time_ns < oldest_ns) {
            oldest_ns = time_ns;
            snprintf(oldest, sizeof(oldest), "%s", name);
        }
    }
    if (directory)
        closedir(directory);
    if (count < BASELINES_INCOMPLETE_MAX)
        return 0;
    path_of(baselines, path, part->tenant, "", oldest, "");
    return remove_directory(path, error);
}

static int begin(const struct baselines *baselines, const struct baseline_part *part,
                 struct error *error)
{
    char path[PATH_MAX];
    int r = make_directory(baselines->directory, error);
    path_of(baselines, path, part->tenant, "", "", "");
    if (!r)
        r = make_directory(path, error);
    if (!r)
        r = make_room(baselines, part, error);
    path_of(baselines, path, part->tenant, ".", part->name, "");
    if (!r)
        r = remove_directory(path, error);
    if (!r)
        r = make_directory(path, error);
    path_of(baselines, path, part->tenant, ".", part->name, "about");
    return r < 0 ? r : file_write_atomic(path, part->about, strlen(part->about), error);
}

static int finish(const struct baselines *baselines, const struct baseline_part *part,
                  struct error *error)
{
    char from[PATH_MAX], to[PATH_MAX];
    path_of(baselines, from, part->tenant, ".", part->name, "");
    path_of(baselines, to, part->tenant, "", part->name, "");
    int r = remove_directory(to, error);
    if (!r && rename(from, to) < 0)
        r = error_set_errno(error, -errno, "Failed to rename %s", from);
    return r;
}

static int save_locked(const struct baselines *baselines, const struct baseline_part *part,
                       struct error *error)
{
    char path[PATH_MAX], file[32];
    struct stat status;
    unsigned there = 0;
    path_of(baselines, path, part->tenant, "", part->name, "");
    if (!part->replace && !stat(path, &status))
        return error_set(error, -EEXIST,
                         "There is a baseline \"%s\" already; replace it, or choose another name.",
                         part->name);
    int r = check_quota(baselines, part, error);
    if (!r && part->part == 0)
        r = begin(baselines, part, error);
    path_of(baselines, path, part->tenant, ".", part->name, "");
    directory_bytes(path, &there, NULL);
    if (!r && there != part->part)
        r = error_set(error, -EINVAL, "Part %u of baseline \"%s\" is missing; save it again.",
                      there, part->name);
    snprintf(file, sizeof(file), "%u.profile", part->part);
    path_of(baselines, path, part->tenant, ".", part->name, file);
    if (!r)
        r = file_write_atomic(path, part->data, part->length, error);
    if (!r && part->part + 1 == part->parts)
        r = finish(baselines, part, error);
    return r;
}

int baselines_save(struct baselines *baselines, const struct baseline_part *part,
                   struct error *error)
{
    int r = check_directory(baselines, error);
    if (!r)
        r = check_name(part->name, error);
    if (!r && (!part->parts || part->parts > BASELINE_PARTS_MAX || part->part >= part->parts))
        r = error_set(error, -EINVAL, "A baseline has 1 to %d parts, numbered from 0.",
                      BASELINE_PARTS_MAX);
    if (r < 0)
        return r;
    pthread_mutex_lock(&baselines->lock);
    r = save_locked(baselines, part, error);
    baselines->stats.refused += r == -EDQUOT;
    baselines->counted = false;
    pthread_mutex_unlock(&baselines->lock);
    return r;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_complete(const struct dirent *entry)
{
    return *entry->d_name != '.';
}

int baselines_each(struct baselines *baselines, const char *tenant, baselines_fn *fn, void *context,
                   struct error *error)
{
    char path[PATH_MAX];
    struct dirent **entries = NULL;
    int r = check_directory(baselines, error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&baselines->lock);
    path_of(baselines, path, tenant, "", "", "");
    int count = scandir(path, &entries, is_complete, by_name);
    for (int i = 0; i < count; i++) {
        struct baseline baseline = {.name = entries[i]->d_name};
        struct buffer about = {0};
        struct error ignored = {0};
        path_of(baselines, path, tenant, "", baseline.name, "");
        baseline.bytes = directory_bytes(path, &baseline.parts, &baseline.saved_ns);
        path_of(baselines, path, tenant, "", baseline.name, "about");
        file_read(path, BASELINE_ABOUT_BYTES_MAX, &about, &ignored);
        baseline.about = buffer_text(&about);
        fn(context, &baseline);
        buffer_release(&about);
        free(entries[i]);
    }
    pthread_mutex_unlock(&baselines->lock);
    free(entries);
    return 0;
}

static int missing(const char *name, struct error *error)
{
    return error_set(error, -ENOENT, "There is no baseline \"%s\".", name);
}

int baselines_read(struct baselines *baselines, const char *tenant, const char *name, unsigned part,
                   struct buffer *ret_content, unsigned *ret_parts, struct error *error)
{
    char path[PATH_MAX], file[32];
    unsigned parts = 0;
    int r = check_directory(baselines, error);
    if (!r)
        r = check_name(name, error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&baselines->lock);
    path_of(baselines, path, tenant, "", name, "");
    directory_bytes(path, &parts, NULL);
    snprintf(file, sizeof(file), "%u.profile", part);
    path_of(baselines, path, tenant, "", name, file);
    r = part < parts ? file_read(path, PART_BYTES_MAX, ret_content, error) : missing(name, error);
    pthread_mutex_unlock(&baselines->lock);
    if (!r)
        *ret_parts = parts;
    return r;
}

int baselines_delete(struct baselines *baselines, const char *tenant, const char *name,
                     struct error *error)
{
    char path[PATH_MAX];
    struct stat status;
    int r = check_directory(baselines, error);
    if (!r)
        r = check_name(name, error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&baselines->lock);
    path_of(baselines, path, tenant, "", name, "");
    r = stat(path, &status) < 0 ? missing(name, error) : remove_directory(path, error);
    baselines->counted = false;
    pthread_mutex_unlock(&baselines->lock);
    return r;
}

/* Called with the lock held. */
static void count_all(struct baselines *baselines)
{
    DIR *directory = baselines->directory ? opendir(baselines->directory) : NULL;
    struct dirent *entry;
    baselines->stats.count = baselines->stats.bytes = 0;
    while (directory && (entry = readdir(directory)))
        if (*entry->d_name != '.')
            tenant_usage(baselines, entry->d_name, NULL, &baselines->stats.count,
                         &baselines->stats.bytes);
    if (directory)
        closedir(directory);
    baselines->counted = true;
}

struct baselines_stats baselines_stats(struct baselines *baselines)
{
    pthread_mutex_lock(&baselines->lock);
    if (!baselines->counted)
        count_all(baselines);
    struct baselines_stats stats = baselines->stats;
    pthread_mutex_unlock(&baselines->lock);
    return stats;
}
