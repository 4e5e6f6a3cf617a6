// SPDX-License-Identifier: Apache-2.0
// Problems of an embedded store. Lasting conditions, such as damaged files and a full disk, are
// looked up on demand; events are kept for a minute. A damaged file is recorded by its name in the
// directory until an administrator acknowledges it.

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/embedded/embedded.h"

#define RECENT_NS 60000000000ll
#define SET_ASIDE ".damaged"
#define ACKNOWLEDGED ".acknowledged"

static const char *const companions[] = {"", "-wal", "-shm"};

/* ---- events ---- */

void embedded_problem(struct embedded *store, const char *format, ...)
{
    char text[ERROR_TEXT_BYTES * 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&store->lock);
    struct problem *place = &store->problems[store->problem_count++ % PROBLEMS_MAX];
    free(place->text);
    *place = (struct problem){.text = memory_strdup(text), .at_ns = monotonic_ns()};
    pthread_mutex_unlock(&store->lock);
}

/* ---- damaged files ---- */

static void add_damage(struct embedded *store, const struct file *file, const char *path,
                       const char *why)
{
    pthread_mutex_lock(&store->lock);
    array_reserve(store->damages, store->damage_capacity, store->damage_count + 1);
    store->damages[store->damage_count++] = (struct damage){.path = memory_strdup(path),
                                                            .tenant = memory_strdup(file->tenant),
                                                            .why = memory_strdup(why),
                                                            .from_ns = file->from_ns,
                                                            .to_ns = file->to_ns};
    pthread_mutex_unlock(&store->lock);
}

static void damage_release(struct damage *damage)
{
    free(damage->path);
    free(damage->tenant);
    free(damage->why);
}

void embedded_condition_release(struct embedded *store)
{
    for (size_t i = 0; i < PROBLEMS_MAX; i++)
        free(store->problems[i].text);
    for (size_t i = 0; i < store->damage_count; i++)
        damage_release(&store->damages[i]);
    free(store->damages);
}

/* Renames a file with its log; the first free name of BASE, BASE-2, ... */
static int move_aside(const char *path, const char *base, char target[static PATH_MAX],
                      struct error *error)
{
    char from[PATH_MAX], to[PATH_MAX];
    int r = 0;
    snprintf(target, PATH_MAX, "%s", base);
    for (unsigned i = 2; i < 1000 && !access(target, F_OK); i++)
        snprintf(target, PATH_MAX, "%s-%u", base, i);
    for (unsigned i = 0; i < ARRAY_LENGTH(companions); i++) {
        snprintf(from, sizeof(from), "%s%s", path, companions[i]);
        snprintf(to, sizeof(to), "%s%s", target, companions[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            r = error_set_errno(error, -errno, "Failed to rename %s", from);
    }
    return r;
}

void embedded_damaged(struct embedded *store, const struct file *file, const char *why)
{
    char base[PATH_MAX], target[PATH_MAX];
    struct error error = {0};
    if (store->read_only) {
        add_damage(store, file, file->path, why);
        return;
    }
    snprintf(base, sizeof(base), "%s" SET_ASIDE, file->path);
    if (move_aside(file->path, base, target, &error) < 0)
        embedded_problem(store, "%s", error.text);
    add_damage(store, file, target, why);
}

void embedded_mark_damaged(struct embedded *store, const struct file *file, const char *why)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s" SET_ASIDE, file->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return; /* it is known already */
    if (fd < 0)
        embedded_problem(store, "Failed to create %s: %s.", path, strerror(errno));
    else
        close(fd);
    add_damage(store, file, path, why);
}

void embedded_note_damaged_block(struct embedded *store, struct file *file)
{
    char path[PATH_MAX];
    static const char why[] = "blocks of it are unreadable";
    if (atomic_exchange(&file->blocks_damaged, true))
        return;
    snprintf(path, sizeof(path), "%s" ACKNOWLEDGED, file->path);
    if (!access(path, F_OK))
        return;
    if (store->read_only)
        add_damage(store, file, file->path, why);
    else
        embedded_mark_damaged(store, file, why);
}

/* The length of a damaged file's first name; 0: it isn't one. */
static size_t name_before(const char *name)
{
    const char *at = strstr(name, FILE_SUFFIX SET_ASIDE);
    if (!at)
        return 0;
    const char *end = at + strlen(FILE_SUFFIX SET_ASIDE);
    if (*end == '-' && isdigit((unsigned char)end[1]))
        end += 1 + strspn(end + 1, "0123456789");
    return *end ? 0 : (size_t)(at - name) + strlen(FILE_SUFFIX);
}

void embedded_remember_damaged(struct embedded *store, const char *tenant, const char *folder,
                               const char *name)
{
    char before[NAME_MAX + 1], path[PATH_MAX];
    enum store_tier tier;
    char *class_name;
    int64_t from_ns;
    snprintf(before, sizeof(before), "%.*s", (int)name_before(name), name);
    if (!*before || !file_parse_name(before, &tier, &class_name, &from_ns))
        return;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    struct file *file = file_new(folder, tenant, class_name, tier, from_ns, true);
    add_damage(store, file, path, "");
    file_free(file);
    free(class_name);
}

unsigned embedded_damaged_files(struct store *base, const struct store_selection *selection)
{
    struct embedded *store = embedded_of(base);
    const char *tenant = selection->tenant;
    unsigned count = 0;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->damage_count; i++) {
        const struct damage *damage = &store->damages[i];
        count += damage->from_ns < selection->to_ns && damage->to_ns > selection->from_ns &&
                 (!tenant || !strcmp(damage->tenant, tenant));
    }
    pthread_mutex_unlock(&store->lock);
    return count;
}

/* The whole path, its end, or the name that the file had before. */
static bool is_called(const struct damage *damage, const char *name)
{
    size_t length = strlen(damage->path), wanted = strlen(name), before = name_before(damage->path);
    const char *ends[] = {damage->path + length, damage->path + before};
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
        size_t room = (size_t)(ends[i] - damage->path);
        const char *at = ends[i] - wanted;
        if (wanted && wanted <= room && !memcmp(at, name, wanted) &&
            (wanted == room || at[-1] == '/'))
            return true;
    }
    return false;
}

/* The index of the one damage that a tenant (NULL: any) may mean. With the lock held. */
static int find_damage(struct embedded *store, const char *tenant, const char *name,
                       size_t *ret_index, struct error *error)
{
    size_t found = 0;
    for (size_t i = 0; i < store->damage_count; i++) {
        const struct damage *damage = &store->damages[i];
        if ((tenant && strcmp(damage->tenant, tenant)) || !is_called(damage, name))
            continue;
        found++;
        *ret_index = i;
    }
    if (!found)
        return error_set(error, -ENOENT, "%.300s is not a damaged file of this store.", name);
    if (found > 1)
        return error_set(error, -EINVAL, "%.300s matches %zu damaged files; give the path.", name,
                         found);
    return 0;
}

int embedded_acknowledge(struct store *base, const char *tenant, const char *name,
                         char ret_path[static PATH_MAX], struct error *error)
{
    struct embedded *store = embedded_of(base);
    char target[PATH_MAX], aside[PATH_MAX];
    size_t index = 0;
    if (store->read_only)
        return error_set(error, -EROFS, "The store is open read-only.");
    pthread_mutex_lock(&store->lock);
    int r = find_damage(store, tenant, name, &index, error);
    if (!r) {
        struct damage *damage = &store->damages[index];
        snprintf(ret_path, PATH_MAX, "%s", damage->path);
        snprintf(aside, sizeof(aside), "%.*s" ACKNOWLEDGED, (int)name_before(damage->path),
                 damage->path);
        r = move_aside(damage->path, aside, target, error);
        if (!r) {
            damage_release(damage);
            *damage = store->damages[--store->damage_count];
        }
    }
    pthread_mutex_unlock(&store->lock);
    return r;
}

/* ---- whether it takes pushes ---- */

uint64_t embedded_free_bytes(const struct embedded *store)
{
    struct statvfs space;
    return statvfs(store->directory, &space) < 0 ? 0 : (uint64_t)space.f_bavail * space.f_frsize;
}

void embedded_count_write(struct embedded *store, int result, const struct error *error)
{
    bool failed = result == -EIO || result == -EROFS || result == -ENOSPC || result == -EACCES;
    pthread_mutex_lock(&store->lock);
    if (failed) {
        store->stats.write_failures++;
        store->failed_ns = monotonic_ns();
        store->failure = *error;
    } else if (!result) {
        store->failed_ns = 0;
    }
    pthread_mutex_unlock(&store->lock);
}

int embedded_writable(struct store *base, struct error *error)
{
    struct embedded *store = embedded_of(base);
    if (atomic_load(&store->memory_full))
        return error_set(error, -EAGAIN, STORE_MEMORY_FULL);
    pthread_mutex_lock(&store->lock);
    bool full = store->disk_full;
    bool failed = store->failed_ns && monotonic_ns() - store->failed_ns < RECENT_NS;
    struct error failure = store->failure;
    pthread_mutex_unlock(&store->lock);
    if (full)
        return error_set(error, -ENOSPC, STORE_DISK_FULL);
    if (access(store->directory, W_OK) < 0)
        return error_set_errno(error, -errno, "Failed to write %s", store->directory);
    int r = embedded_check_room(store, error);
    if (!r && failed) {
        *error = failure;
        r = failure.code;
    }
    return r;
}

/* ---- what there is to say ---- */

static int say_damages(struct embedded *store, store_text_fn *fn, void *context)
{
    int r = 0;
    for (size_t i = 0; !r && i < store->damage_count; i++) {
        const struct damage *damage = &store->damages[i];
        char text[2 * PATH_MAX + ERROR_TEXT_BYTES];
        snprintf(text, sizeof(text),
                 "%s is damaged and its data is missing from answers%s%s%s. Restore it from a "
                 "backup, or run `assay store acknowledge`.",
                 damage->path, *damage->why ? " (" : "", damage->why, *damage->why ? ")" : "");
        r = fn(context, text);
    }
    return r;
}

int embedded_problems(struct store *base, store_text_fn *fn, void *context, struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct error local = {0};
    char held[ERROR_TEXT_BYTES];
    int r = 0;
    (void)error;
    if (!store->read_only && embedded_writable(base, &local) < 0)
        r = fn(context, local.text);
    if (!r && embedded_retention_held(store, held))
        r = fn(context, held);
    pthread_mutex_lock(&store->lock);
    if (!r)
        r = say_damages(store, fn, context);
    size_t count = MIN(store->problem_count, (size_t)PROBLEMS_MAX);
    int64_t since_ns = monotonic_ns() - RECENT_NS;
    for (size_t i = store->problem_count - count; !r && i < store->problem_count; i++)
        if (store->problems[i % PROBLEMS_MAX].at_ns >= since_ns)
            r = fn(context, store->problems[i % PROBLEMS_MAX].text);
    pthread_mutex_unlock(&store->lock);
    return r;
}

int embedded_check_damages(struct embedded *store, store_text_fn *fn, void *context)
{
    pthread_mutex_lock(&store->lock);
    int r = say_damages(store, fn, context);
    pthread_mutex_unlock(&store->lock);
    return r;
}
