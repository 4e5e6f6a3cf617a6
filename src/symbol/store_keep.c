// SPDX-License-Identifier: Apache-2.0
// What there is in the symbol store, and what has to go. See store.h.

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
#include "symbol/store_internal.h"

static bool is_key(const char *key)
{
    size_t length = strlen(key);
    return length >= 4 && length < SYMBOL_KEY_BYTES && strspn(key, "0123456789abcdef") == length;
}

int symbol_store_open_file(struct symbol_store *store, const char *key, enum symbol_file which,
                           uint64_t *ret_bytes)
{
    _cleanup_buffer_ struct buffer path = {0};
    struct stat status;
    if (!is_key(key))
        return -1;
    symbol_store_path(store, key, symbol_file_names[which], &path);
    int fd = open(buffer_text(&path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &status) == 0) {
        *ret_bytes = (uint64_t)status.st_size;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool status_of(struct symbol_store *store, const char *key, const char *name,
                      struct stat *ret_status)
{
    _cleanup_buffer_ struct buffer path = {0};
    symbol_store_path(store, key, name, &path);
    return stat(buffer_text(&path), ret_status) == 0;
}

bool symbol_store_find(struct symbol_store *store, const char *key, struct symbol_entry *ret_entry)
{
    _cleanup_buffer_ struct buffer path = {0}, name = {0};
    struct symbol_entry entry = {0};
    struct symbol_index index;
    struct stat status;
    if (!is_key(key) || !status_of(store, key, "index", &status))
        return false;
    entry.used = status.st_mtime;
    entry.index_bytes = (uint64_t)status.st_size;
    symbol_store_path(store, key, "index", &path);
    if (symbol_index_open(buffer_text(&path), &index, NULL) < 0)
        return false;
    entry.quality = symbol_index_quality(&index);
    entry.sources = index.header->sources;
    entry.code_bytes = index.header->code_bytes;
    entry.named_bytes = index.header->named_bytes;
    entry.line_bytes = index.header->line_bytes;
    symbol_index_close(&index);
    strcpy(entry.key, key);
    for (int i = 0; i < SYMBOL_FILES; i++)
        if (status_of(store, key, symbol_file_names[i], &status))
            entry.file_bytes[i] = (uint64_t)status.st_size;
    symbol_store_path(store, key, "name", &path);
    if (file_read(buffer_text(&path), SYMBOL_NAME_BYTES - 1, &name, NULL) == 0)
        memcpy(entry.name, name.data ? name.data : "", name.length);
    entry.added = status_of(store, key, "name", &status) ? status.st_mtime : entry.used;
    *ret_entry = entry;
    return true;
}

/* Each folder of a build; links to others aren't builds. */
static int each_key(struct symbol_store *store, int (*fn)(void *context, const char *key),
                    void *context, struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    DIR *outer = opendir(store->directory);
    struct dirent *first, *second;
    int r = outer ? 0
                  : error_set_errno(error, -errno, "The folder for symbols, %s, can't be read",
                                    store->directory);
    while (!r && (first = readdir(outer))) {
        if (strlen(first->d_name) != 2 || strspn(first->d_name, "0123456789abcdef") != 2)
            continue;
        path.length = 0;
        buffer_printf(&path, "%s/%s", store->directory, first->d_name);
        DIR *inner = opendir(buffer_text(&path));
        while (!r && inner && (second = readdir(inner))) {
            char key[SYMBOL_KEY_BYTES];
            struct stat status;
            int length = snprintf(key, sizeof(key), "%s%s", first->d_name, second->d_name);
            if (length < (int)sizeof(key) && is_key(key) &&
                fstatat(dirfd(inner), second->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISDIR(status.st_mode))
                r = fn(context, key);
        }
        if (inner)
            closedir(inner);
    }
    if (outer)
        closedir(outer);
    return r;
}

struct listing {
    struct symbol_store *store;
    int (*fn)(void *context, const struct symbol_entry *entry);
    void *context;
};

static int list_one(void *context, const char *key)
{
    struct listing *listing = context;
    struct symbol_entry entry;
    return symbol_store_find(listing->store, key, &entry) ? listing->fn(listing->context, &entry)
                                                          : 0;
}

int symbol_store_list(struct symbol_store *store,
                      int (*fn)(void *context, const struct symbol_entry *entry), void *context,
                      struct error *error)
{
    struct listing listing = {.store = store, .fn = fn, .context = context};
    return each_key(store, list_one, &listing, error);
}

/* ---- what has to go ---- */

void symbol_store_remove(struct symbol_store *store, const char *key)
{
    static const char *const names[] = {"index", "executable", "debuginfo", "package", "name"};
    _cleanup_buffer_ struct buffer path = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        symbol_store_path(store, key, names[i], &path);
        unlink(buffer_text(&path));
    }
    symbol_store_path(store, key, "", &path);
    rmdir(buffer_text(&path));
    symbol_store_forget(store, key);
}

int symbol_store_delete(struct symbol_store *store, const char *key, struct error *error)
{
    struct stat status;
    if (!is_key(key) || !status_of(store, key, "index", &status))
        return error_set(error, -ENOENT, "There is nothing of the build %.120s.", key);
    pthread_mutex_lock(&store->making);
    symbol_store_remove(store, key);
    store->builds -= store->builds > 0;
    pthread_mutex_unlock(&store->making);
    return 0;
}

/* All builds with what decides who goes first. */
struct inventory {
    struct symbol_store *store;
    struct inventory_item {
        char *key;
        int64_t used;
        uint64_t bytes;
    } * items;
    size_t count, capacity;
    uint64_t bytes;
};

static void inventory_release(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->count; i++)
        free(inventory->items[i].key);
    free(inventory->items);
}

static int add_item(void *context, const char *key)
{
    static const char *const names[] = {"index", "executable", "debuginfo", "name"};
    struct inventory *inventory = context;
    struct inventory_item item = {0};
    struct stat status;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (!status_of(inventory->store, key, names[i], &status))
            continue;
        item.bytes += (uint64_t)status.st_blocks * 512;
        if (!item.used)
            item.used = status.st_mtime; /* the index's, where there is one */
    }
    item.key = memory_strdup(key);
    array_reserve(inventory->items, inventory->capacity, inventory->count + 1);
    inventory->items[inventory->count++] = item;
    inventory->bytes += item.bytes;
    return 0;
}

static int by_use(const void *a, const void *b)
{
    const struct inventory_item *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* With `making` held. */
static void clean(struct symbol_store *store, uint64_t room, int64_t before)
{
    _cleanup_(inventory_release) struct inventory inventory = {.store = store};
    each_key(store, add_item, &inventory, NULL);
    if (inventory.count)
        qsort(inventory.items, inventory.count, sizeof(*inventory.items), by_use);
    size_t at = 0;
    while (at < inventory.count && (inventory.items[at].used < before || inventory.bytes > room)) {
        symbol_store_remove(store, inventory.items[at].key);
        inventory.bytes -= inventory.items[at++].bytes;
        store->removed++;
    }
    store->builds = inventory.count - at;
    store->bytes = inventory.bytes;
}

int symbol_store_make_room(struct symbol_store *store, uint64_t bytes, struct error *error)
{
    uint64_t limit = store->options.total_bytes_max;
    if (bytes > limit)
        return error_set(error, -ENOSPC,
                         "The file needs %llu MiB, and all symbols together may take %llu "
                         "(symbols.disk_limit).",
                         (unsigned long long)(bytes >> 20), (unsigned long long)(limit >> 20));
    clean(store, limit - bytes, 0);
    return 0;
}

static int mend_one(void *context, const char *key)
{
    symbol_store_mend(context, key);
    return 0;
}

void symbol_store_maintain(struct symbol_store *store)
{
    int64_t unused = store->options.unused_ns / 1000000000;
    pthread_mutex_lock(&store->making);
    if (!store->mended)
        each_key(store, mend_one, store, NULL);
    store->mended = true;
    clean(store, store->options.total_bytes_max, unused ? time(NULL) - unused : 0);
    pthread_mutex_unlock(&store->making);
}
