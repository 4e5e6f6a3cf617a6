// SPDX-License-Identifier: Apache-2.0
// Eviction from the store of sources. A content is as old as the last use of the latest list that
// names it; the least recently used lists and contents go first. So there are no reference counts
// that could be wrong. See sources.h.

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "symbol/sources/internal.h"

#define NEW_S 3600 /* how long a content may wait for a list that names it */
#define HELD_S 600 /* what was used since then isn't removed for room: it may be on its way in */
#define SPARE 16   /* parts of the limit: one of them is made room for at a time */

struct content {
    uint8_t hash[SOURCE_HASH_DIGITS / 2];
    int64_t used;
    int64_t fresh; /* when it came, if that was just now: a list may come yet; else 0 */
    uint64_t bytes;
};

/* All that there is: tenants one after the other. */
struct inventory {
    struct source_store *store;
    struct content *contents;
    size_t count, capacity;
    struct build {
        char *path;
        int64_t used;
        uint64_t bytes;
    } * builds;
    size_t build_count, build_capacity;
    uint64_t bytes;
};

static void inventory_release(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->build_count; i++)
        free(inventory->builds[i].path);
    free(inventory->builds);
    free(inventory->contents);
}

static bool parse_hash(const char *digits, uint8_t hash[SOURCE_HASH_DIGITS / 2])
{
    if (!source_is_hash(digits))
        return false;
    for (size_t i = 0; i < SOURCE_HASH_DIGITS / 2; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        hash[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

static int by_hash(const void *left, const void *right)
{
    const struct content *a = left, *b = right;
    return memcmp(a->hash, b->hash, sizeof(a->hash));
}

/* Calls for each entry of a directory that isn't hidden. */
static void each_entry(const char *folder,
                       void (*fn)(struct inventory *inventory, const char *folder, const char *name,
                                  const struct stat *status),
                       struct inventory *inventory)
{
    DIR *listing = opendir(folder);
    struct dirent *entry;
    struct stat status;
    while (listing && (entry = readdir(listing)))
        if (entry->d_name[0] != '.' &&
            fstatat(dirfd(listing), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            fn(inventory, folder, entry->d_name, &status);
    if (listing)
        closedir(listing);
}

static void add_content(struct inventory *inventory, const char *folder, const char *name,
                        const struct stat *status)
{
    struct content content = {.bytes = (uint64_t)status->st_blocks * 512};
    char digits[SOURCE_HASH_DIGITS + 1];
    size_t length = strlen(folder);
    snprintf(digits, sizeof(digits), "%s%s", folder + length - 2, name);
    if (!S_ISREG(status->st_mode) || strlen(name) != SOURCE_HASH_DIGITS - 2 ||
        !parse_hash(digits, content.hash))
        return;
    if (time(NULL) - status->st_mtime < NEW_S)
        content.fresh = status->st_mtime;
    array_reserve(inventory->contents, inventory->capacity, inventory->count + 1);
    inventory->contents[inventory->count++] = content;
    inventory->bytes += content.bytes;
}

static void add_folder(struct inventory *inventory, const char *folder, const char *name,
                       const struct stat *status)
{
    _cleanup_buffer_ struct buffer path = {0};
    buffer_printf(&path, "%s/%s", folder, name);
    if (S_ISDIR(status->st_mode) && strlen(name) == 2)
        each_entry(buffer_text(&path), add_content, inventory);
}

/* Contents that a list names are as young as the list; they are sorted by then. */
static void add_build(struct inventory *inventory, const char *folder, const char *name,
                      const struct stat *status)
{
    _cleanup_buffer_ struct buffer path = {0}, text = {0};
    _cleanup_source_list_ struct source_list list = {0};
    buffer_printf(&path, "%s/%s", folder, name);
    if (!S_ISREG(status->st_mode) ||
        file_read(buffer_text(&path), SOURCE_LIST_BYTES_MAX, &text, NULL) < 0)
        return;
    source_list_read(&list, text.data, text.length, NULL);
    for (size_t i = 0; i < list.count; i++) {
        struct content wanted, *found = NULL;
        if (inventory->count && parse_hash(list.items[i].hash, wanted.hash))
            found = bsearch(&wanted, inventory->contents, inventory->count,
                            sizeof(*inventory->contents), by_hash);
        if (found)
            found->used = MAX(found->used, (int64_t)status->st_mtime);
    }
    uint64_t bytes = (uint64_t)status->st_blocks * 512;
    array_reserve(inventory->builds, inventory->build_capacity, inventory->build_count + 1);
    inventory->builds[inventory->build_count++] = (struct build){
        .path = memory_strdup(buffer_text(&path)), .used = status->st_mtime, .bytes = bytes};
    inventory->bytes += bytes;
}

static void take_tenant(struct inventory *inventory, const char *folder)
{
    _cleanup_buffer_ struct buffer builds = {0};
    inventory->count = inventory->build_count = 0;
    inventory->bytes = 0;
    each_entry(folder, add_folder, inventory);
    if (inventory->count)
        qsort(inventory->contents, inventory->count, sizeof(*inventory->contents), by_hash);
    buffer_printf(&builds, "%s/" SOURCE_BUILDS, folder);
    each_entry(buffer_text(&builds), add_build, inventory);
    for (size_t i = 0; i < inventory->count; i++)
        if (!inventory->contents[i].used)
            inventory->contents[i].used = inventory->contents[i].fresh;
}

static void forget_builds(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->build_count; i++)
        free(inventory->builds[i].path);
    inventory->build_count = 0;
}

/* ---- what is too old ---- */

/* When things were used and what they take, of all tenants. */
struct ages {
    struct age {
        int64_t used;
        uint64_t bytes;
        bool is_file;
    } * list;
    size_t count, capacity;
    uint64_t bytes, files;
};

static void add_age(struct ages *ages, int64_t used, uint64_t bytes, bool is_file)
{
    array_reserve(ages->list, ages->capacity, ages->count + 1);
    ages->list[ages->count++] = (struct age){used, bytes, is_file};
    ages->bytes += bytes;
    ages->files += is_file;
}

static int by_age(const void *left, const void *right)
{
    const struct age *a = left, *b = right;
    return (a->used > b->used) - (a->used < b->used);
}

/* All that was used at this time or before has to go. */
static int64_t find_cut(struct ages *ages, uint64_t limit, uint64_t files, int64_t before)
{
    int64_t cut = MAX(before, 0), held = time(NULL) - HELD_S;
    size_t at = 0;
    if (ages->count)
        qsort(ages->list, ages->count, sizeof(*ages->list), by_age);
    while (at < ages->count &&
           (ages->list[at].used <= cut ||
            (ages->list[at].used < held && (ages->bytes > limit || ages->files > files)))) {
        cut = MAX(cut, ages->list[at].used);
        ages->bytes -= ages->list[at].bytes;
        ages->files -= ages->list[at++].is_file;
    }
    return cut;
}

static void remove_old(struct inventory *inventory, const char *folder, int64_t cut)
{
    struct source_store *store = inventory->store;
    _cleanup_buffer_ struct buffer path = {0};
    for (size_t i = 0; i < inventory->build_count; i++) {
        bool old = inventory->builds[i].used <= cut;
        store->builds += !old;
        if (old && unlink(inventory->builds[i].path) == 0)
            store->removed++;
    }
    for (size_t i = 0; i < inventory->count; i++) {
        if (inventory->contents[i].used > cut)
            continue;
        path.length = 0;
        buffer_printf(&path, "%s/%02x/", folder, inventory->contents[i].hash[0]);
        buffer_add_hex(&path, inventory->contents[i].hash + 1, SOURCE_HASH_DIGITS / 2 - 1);
        unlink(buffer_text(&path));
    }
}

/* Each tenant's directory; what was on its way in and came to nothing goes after an hour. */
static void each_tenant(struct source_store *store, void (*fn)(void *context, const char *folder),
                        void *context)
{
    _cleanup_buffer_ struct buffer path = {0};
    DIR *listing = opendir(store->directory);
    struct dirent *entry;
    struct stat status;
    while (listing && (entry = readdir(listing))) {
        if (entry->d_name[0] != '.') {
            path.length = 0;
            buffer_printf(&path, "%s/%s", store->directory, entry->d_name);
            fn(context, buffer_text(&path));
        } else if (fstatat(dirfd(listing), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISREG(status.st_mode) && time(NULL) - status.st_mtime > NEW_S) {
            unlinkat(dirfd(listing), entry->d_name, 0);
        }
    }
    if (listing)
        closedir(listing);
}

struct round {
    struct inventory inventory;
    struct ages ages;
    int64_t cut;
};

static void look(void *context, const char *folder)
{
    struct round *round = context;
    struct inventory *inventory = &round->inventory;
    take_tenant(inventory, folder);
    for (size_t i = 0; i < inventory->count; i++)
        add_age(&round->ages, inventory->contents[i].used, inventory->contents[i].bytes, true);
    for (size_t i = 0; i < inventory->build_count; i++)
        add_age(&round->ages, inventory->builds[i].used, inventory->builds[i].bytes, false);
    forget_builds(inventory);
}

static void cut_off(void *context, const char *folder)
{
    struct round *round = context;
    take_tenant(&round->inventory, folder);
    remove_old(&round->inventory, folder, round->cut);
    forget_builds(&round->inventory);
}

/* With the lock. Nothing changes between both looks, except that something is used. */
static void clean(struct source_store *store, uint64_t limit, uint64_t files, int64_t before)
{
    struct round round = {.inventory = {.store = store}};
    each_tenant(store, look, &round);
    round.cut = find_cut(&round.ages, limit, files, before);
    store->builds = 0;
    each_tenant(store, cut_off, &round);
    store->bytes = round.ages.bytes;
    store->files = round.ages.files;
    free(round.ages.list);
    inventory_release(&round.inventory);
}

int source_store_make_room(struct source_store *store, uint64_t bytes, struct error *error)
{
    uint64_t limit = store->options.total_bytes_max;
    if (bytes > limit / SPARE)
        return error_set(error, -ENOSPC,
                         "The sources need %llu KiB; the limit of all sources is %llu "
                         "(symbols.source_disk_limit).",
                         (unsigned long long)(bytes >> 10), (unsigned long long)(limit >> 10));
    /* A look at everything for each file would take too long: room is made for many. */
    if (store->bytes + bytes > limit || store->files >= SOURCE_FILES_MAX)
        clean(store, limit - limit / SPARE, SOURCE_FILES_MAX - SOURCE_FILES_MAX / SPARE, 0);
    if (store->bytes + bytes > limit || store->files >= SOURCE_FILES_MAX)
        return error_set(error, -ENOSPC,
                         "No space for more sources: those of the last minutes take all of "
                         "symbols.source_disk_limit, or are %d files.",
                         SOURCE_FILES_MAX);
    return 0;
}

void source_store_maintain(struct source_store *store)
{
    int64_t unused = store->options.unused_ns / 1000000000;
    pthread_mutex_lock(&store->lock);
    clean(store, store->options.total_bytes_max, SOURCE_FILES_MAX,
          unused ? time(NULL) - unused : 0);
    pthread_mutex_unlock(&store->lock);
}

struct source_store_stats source_store_stats(struct source_store *store)
{
    return (struct source_store_stats){.builds = store->builds,
                                       .files = store->files,
                                       .bytes = store->bytes,
                                       .removed = store->removed};
}
