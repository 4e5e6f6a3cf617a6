// SPDX-License-Identifier: Apache-2.0
// The directory of compiled rows: see rowcache.h. Files appear under their name by a rename and go
// by unlink, so processes that use the directory at the same time see whole files or none.

#include "capture/record/rowcache.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#define SUFFIX ".rows"
#define TEMPORARY ".new-" /* what is being written begins so */
#define NAME_BYTES (2 * ELF_BUILD_ID_MAX + sizeof(SUFFIX))

/* Looked at when room is made; a directory with more is not ours alone. */
#define ENTRIES_MAX 65536
/* A file's time is set when it is used, but not each time: the order needs no more. */
#define USED_AGAIN_SECONDS 3600
/* A writer that was ended left these; a living one takes a second. */
#define TEMPORARY_SECONDS 3600

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* ---- the directory ---- */

static bool default_path(char path[PATH_MAX])
{
    const char *chosen = secure_getenv("ASSAY_CACHE");
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int length = 0;
    if (chosen)
        length = snprintf(path, PATH_MAX, "%s", chosen);
    else if (geteuid() == 0)
        length = snprintf(path, PATH_MAX, "/var/cache/assay/unwind");
    else if (cache && cache[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/assay/unwind", cache);
    else if (home && home[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/.cache/assay/unwind", home);
    return length > 0 && length < PATH_MAX;
}

/* Makes missing directories of a path, mode 0700. Errors show when the file is opened. */
static void make_folders(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    mkdir(path, 0700);
}

void row_cache_init(struct row_cache *cache, const char *path)
{
    char chosen[PATH_MAX];
    struct stat found;
    *cache = (struct row_cache){.folder = -1, .limit_bytes = ROW_CACHE_BYTES_MAX};
    if (path ? snprintf(chosen, sizeof(chosen), "%s", path) >= PATH_MAX || !path[0]
             : !default_path(chosen))
        return;
    make_folders(chosen);
    _cleanup_(close_fd) int folder = open(chosen, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || fstat(folder, &found) < 0)
        log_debug("%s: not used as a cache of unwind rows: %s", chosen, strerror(errno));
    else if (found.st_uid != geteuid())
        log_debug("%s: not used as a cache of unwind rows: it belongs to another user.", chosen);
    else if (found.st_mode & (S_IWGRP | S_IWOTH))
        log_debug("%s: not used as a cache of unwind rows: other users can write to it.", chosen);
    else {
        cache->folder = folder;
        folder = -1;
    }
}

void row_cache_release(struct row_cache *cache)
{
    close_fd(&cache->folder);
    cache->folder = -1;
}

/* False for a binary that has no build ID. */
static bool file_name(const struct rows_identity *identity, char name[NAME_BYTES])
{
    if (!identity->build_id_length)
        return false;
    for (size_t i = 0; i < identity->build_id_length; i++)
        snprintf(name + 2 * i, 3, "%02x", identity->build_id[i]);
    strcpy(name + 2 * identity->build_id_length, SUFFIX);
    return true;
}

/* ---- reading ---- */

static int load(const struct row_cache *cache, const char *name,
                const struct rows_identity *identity, struct unwind_rules *rules,
                struct unwind_rows *ret_rows, struct error *error)
{
    _cleanup_(close_fd) int fd =
        openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat found;
    if (fd < 0)
        return error_set_errno(error, -errno, "Failed to open the file of unwind rows");
    if (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode) || found.st_uid != geteuid() ||
        (uint64_t)found.st_size > cache->limit_bytes)
        return error_set(error, -EBADMSG, "Not a file of unwind rows.");
    int r = rows_file_read(fd, (uint64_t)found.st_size, identity, rules, ret_rows, error);
    if (!r && found.st_mtime < time(NULL) - USED_AGAIN_SECONDS)
        futimens(fd, NULL); /* not on a disk that can't be written to, where nothing is removed */
    return r;
}

bool row_cache_load(struct row_cache *cache, const struct rows_identity *identity,
                    struct unwind_rules *rules, struct unwind_rows *ret_rows)
{
    char name[NAME_BYTES];
    struct error error = {0};
    if (cache->folder < 0 || !file_name(identity, name))
        return false;
    int r = load(cache, name, identity, rules, ret_rows, &error);
    if (r < 0 && r != -ENOENT)
        log_debug("%s: %s", name, error.text);
    cache->hits += !r;
    cache->misses += r < 0;
    return !r;
}

/* ---- making room ---- */

struct entry {
    char *name;
    struct timespec used;
    uint64_t size_bytes;
};

struct entry_list {
    struct entry *entries;
    size_t count, capacity;
    uint64_t total_bytes;
};

static void entry_list_release(struct entry_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->entries[i].name);
    free(list->entries);
}

static bool is_our_name(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");
    return digits && !strcmp(name + digits, SUFFIX);
}

/* Names of others are left alone: the directory may be shared with something else by mistake. */
static int list_entries(const struct row_cache *cache, struct entry_list *list)
{
    /* A second descriptor of its own: the position in a directory belongs to the open file. */
    int fd = openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    if (!folder) {
        int r = -errno;
        close_fd(&fd);
        return r;
    }
    while (list->count < ENTRIES_MAX && (item = readdir(folder))) {
        bool temporary = !strncmp(item->d_name, TEMPORARY, strlen(TEMPORARY));
        struct stat found;
        if ((!temporary && !is_our_name(item->d_name)) ||
            fstatat(fd, item->d_name, &found, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(found.st_mode))
            continue;
        if (temporary) {
            if (found.st_mtime < time(NULL) - TEMPORARY_SECONDS)
                unlinkat(fd, item->d_name, 0);
            continue;
        }
        array_reserve(list->entries, list->capacity, list->count + 1);
        list->entries[list->count++] = (struct entry){.name = memory_strdup(item->d_name),
                                                      .used = found.st_mtim,
                                                      .size_bytes = (uint64_t)found.st_size};
        list->total_bytes += (uint64_t)found.st_size;
    }
    closedir(folder);
    return 0;
}

static int by_use(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* For `more_bytes`, and a quarter of the whole beyond, so that not every file pays for a look at
 * all. Two processes that do this at once may remove more than one would. */
static void make_room(struct row_cache *cache, uint64_t more_bytes)
{
    _cleanup_(entry_list_release) struct entry_list list = {0};
    uint64_t limit = cache->limit_bytes - more_bytes;
    if (list_entries(cache, &list) < 0)
        return;
    cache->counted = true;
    if (list.total_bytes > limit) {
        uint64_t goal = limit - MIN(limit, cache->limit_bytes / 4);
        qsort(list.entries, list.count, sizeof(*list.entries), by_use);
        for (size_t i = 0; i < list.count && list.total_bytes > goal; i++)
            if (unlinkat(cache->folder, list.entries[i].name, 0) == 0 || errno == ENOENT) {
                list.total_bytes -= list.entries[i].size_bytes;
                cache->removed++;
            }
    }
    cache->held_bytes = list.total_bytes;
}

/* ---- writing ---- */

/* Without fsync: what a crash leaves half written has a wrong checksum, and a start that compiles a
 * hundred files would wait for the disk a hundred times. */
static int write_file(const struct row_cache *cache, const char *name, const struct buffer *content)
{
    char temporary[64];
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
        return -errno;
    snprintf(temporary, sizeof(temporary), TEMPORARY "%016" PRIx64, number);
    _cleanup_(close_fd) int fd = openat(cache->folder, temporary,
                                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = file_write_all(fd, content->data, content->length);
    if (!r && renameat(cache->folder, temporary, cache->folder, name) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(cache->folder, temporary, 0);
    return r;
}

void row_cache_store(struct row_cache *cache, const struct rows_identity *identity,
                     const struct unwind_rows *rows, const struct unwind_rules *rules)
{
    char name[NAME_BYTES];
    _cleanup_buffer_ struct buffer content = {0};
    if (cache->folder < 0 || rows->row_count < ROW_CACHE_ROWS_MIN || !file_name(identity, name))
        return;
    if (rows_file_write(identity, rows, rules, &content) < 0 || content.length > cache->limit_bytes)
        return;
    if (!cache->counted || cache->held_bytes + content.length > cache->limit_bytes)
        make_room(cache, content.length);
    int r = write_file(cache, name, &content);
    if (r < 0) {
        log_debug("%s: failed to store unwind rows: %s", name, strerror(-r));
        return;
    }
    cache->held_bytes += content.length;
    cache->stored++;
}
