// SPDX-License-Identifier: Apache-2.0
// Contents of the symbol store, and their eviction. See store.h.

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
#include "symbol/store/internal.h"

/* All files of a build. */
static const char *const parts[] = {"index", "executable", "debuginfo", "package", "name", "used"};

static bool is_hexadecimal(const char *text, size_t least, size_t most)
{
    size_t length = strlen(text);
    return length >= least && length <= most && strspn(text, "0123456789abcdef") == length;
}

static bool is_key(const char *key)
{
    return is_hexadecimal(key, 4, SYMBOL_KEY_BYTES - 1);
}

int symbol_store_open_file(struct symbol_store *store, const char *tenant, const char *key,
                           enum symbol_file which, uint64_t *ret_bytes)
{
    _cleanup_buffer_ struct buffer path = {0};
    struct stat status;
    if (!is_key(key))
        return -1;
    symbol_store_path(store, tenant, key, symbol_file_names[which], &path);
    int fd = open(buffer_text(&path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &status) == 0) {
        *ret_bytes = (uint64_t)status.st_size;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool status_of(struct symbol_store *store, const char *tenant, const char *key,
                      const char *name, struct stat *ret_status)
{
    _cleanup_buffer_ struct buffer path = {0};
    symbol_store_path(store, tenant, key, name, &path);
    return stat(buffer_text(&path), ret_status) == 0;
}

void symbol_store_touch(struct symbol_store *store, const char *tenant, const char *key)
{
    _cleanup_buffer_ struct buffer path = {0};
    symbol_store_path(store, tenant, key, "used", &path);
    int fd = open(buffer_text(&path), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    futimens(fd, NULL);
    close(fd);
}

bool symbol_store_find(struct symbol_store *store, const char *tenant, const char *key,
                       struct symbol_entry *ret_entry)
{
    _cleanup_buffer_ struct buffer path = {0}, name = {0};
    struct symbol_entry entry = {0};
    struct symbol_index index;
    struct stat status;
    if (!is_key(key) || !status_of(store, tenant, key, "index", &status))
        return false;
    entry.used = status.st_mtime;
    entry.index_bytes = (uint64_t)status.st_size;
    symbol_store_path(store, tenant, key, "index", &path);
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
        if (status_of(store, tenant, key, symbol_file_names[i], &status))
            entry.file_bytes[i] = (uint64_t)status.st_size;
    if (status_of(store, tenant, key, "used", &status))
        entry.used = status.st_mtime;
    symbol_store_path(store, tenant, key, "name", &path);
    if (file_read(buffer_text(&path), SYMBOL_NAME_BYTES - 1, &name, NULL) == 0)
        memcpy(entry.name, name.data ? name.data : "", name.length);
    entry.added = status_of(store, tenant, key, "name", &status) ? status.st_mtime : entry.used;
    *ret_entry = entry;
    return true;
}

/* ---- walking ---- */

typedef int key_fn(void *context, const char *tenant, const char *key);

/* Each directory of a tenant's build; links to others aren't builds. */
static int each_key(struct symbol_store *store, const char *tenant, key_fn *fn, void *context,
                    struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    symbol_store_path(store, tenant, "", "", &path);
    size_t length = path.length;
    DIR *outer = opendir(buffer_text(&path));
    struct dirent *first, *second;
    int r = outer || errno == ENOENT
                ? 0
                : error_set_errno(error, -errno, "Cannot read %s", buffer_text(&path));
    while (!r && outer && (first = readdir(outer))) {
        if (!is_hexadecimal(first->d_name, 2, 2))
            continue;
        path.length = length;
        buffer_printf(&path, "/%s", first->d_name);
        DIR *inner = opendir(buffer_text(&path));
        while (!r && inner && (second = readdir(inner))) {
            char key[SYMBOL_KEY_BYTES];
            struct stat status;
            int written = snprintf(key, sizeof(key), "%s%s", first->d_name, second->d_name);
            if (written < (int)sizeof(key) && is_key(key) &&
                fstatat(dirfd(inner), second->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISDIR(status.st_mode))
                r = fn(context, tenant, key);
        }
        if (inner)
            closedir(inner);
    }
    if (outer)
        closedir(outer);
    return r;
}

static bool tenant_of(const char *folder, char ret_tenant[SYMBOL_TENANT_BYTES])
{
    size_t length = strlen(folder) / 2;
    if (!is_hexadecimal(folder, 2, 2 * (SYMBOL_TENANT_BYTES - 1)) || strlen(folder) % 2)
        return false;
    for (size_t i = 0; i < length; i++) {
        const char digits[] = {folder[2 * i], folder[2 * i + 1], '\0'};
        ret_tenant[i] = (char)strtoul(digits, NULL, 16);
    }
    ret_tenant[length] = '\0';
    return true;
}

/* Builds of all tenants. */
static void each_build(struct symbol_store *store, key_fn *fn, void *context)
{
    _cleanup_buffer_ struct buffer path = {0};
    buffer_printf(&path, "%s/" SYMBOL_BUILDS, store->directory);
    DIR *listing = opendir(buffer_text(&path));
    struct dirent *entry;
    char tenant[SYMBOL_TENANT_BYTES];
    int r = 0;
    while (!r && listing && (entry = readdir(listing)))
        if (tenant_of(entry->d_name, tenant))
            r = each_key(store, tenant, fn, context, NULL);
    if (listing)
        closedir(listing);
}

struct listing {
    struct symbol_store *store;
    int (*fn)(void *context, const struct symbol_entry *entry);
    void *context;
};

static int list_one(void *context, const char *tenant, const char *key)
{
    struct listing *listing = context;
    struct symbol_entry entry;
    return symbol_store_find(listing->store, tenant, key, &entry)
               ? listing->fn(listing->context, &entry)
               : 0;
}

int symbol_store_list(struct symbol_store *store, const char *tenant,
                      int (*fn)(void *context, const struct symbol_entry *entry), void *context,
                      struct error *error)
{
    struct listing listing = {.store = store, .fn = fn, .context = context};
    return each_key(store, tenant, list_one, &listing, error);
}

/* ---- what has to go ---- */

void symbol_store_remove(struct symbol_store *store, const char *tenant, const char *key)
{
    _cleanup_buffer_ struct buffer path = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        symbol_store_path(store, tenant, key, parts[i], &path);
        unlink(buffer_text(&path));
    }
    symbol_store_path(store, tenant, key, "", &path);
    rmdir(buffer_text(&path));
    symbol_store_forget(store, tenant, key);
}

int symbol_store_delete(struct symbol_store *store, const char *tenant, const char *key,
                        struct error *error)
{
    struct stat status;
    if (!is_key(key) || !status_of(store, tenant, key, "index", &status))
        return error_set(error, -ENOENT, "No symbols of the build %.120s.", key);
    pthread_mutex_lock(&store->making);
    symbol_store_remove(store, tenant, key);
    store->builds -= store->builds > 0;
    store->bytes = symbol_content_sweep(store);
    pthread_mutex_unlock(&store->making);
    return 0;
}

/* All builds with what decides which goes first. */
struct inventory {
    struct symbol_store *store;
    struct inventory_item {
        size_t tenant;
        char *key;
        int64_t used;
        uint64_t bytes;
        bool gone;
    } * items;
    size_t count, capacity;
    struct inventory_tenant {
        char *name;
        uint64_t bytes;
    } * tenants;
    size_t tenant_count, tenant_capacity;
    uint64_t bytes; /* on disk */
};

static void inventory_release(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->count; i++)
        free(inventory->items[i].key);
    for (size_t i = 0; i < inventory->tenant_count; i++)
        free(inventory->tenants[i].name);
    free(inventory->items);
    free(inventory->tenants);
}

/* Builds come tenant by tenant. */
static struct inventory_tenant *last_tenant(struct inventory *inventory, const char *name)
{
    size_t count = inventory->tenant_count;
    if (!count || strcmp(inventory->tenants[count - 1].name, name)) {
        array_reserve(inventory->tenants, inventory->tenant_capacity, count + 1);
        inventory->tenants[inventory->tenant_count++] =
            (struct inventory_tenant){.name = memory_strdup(name)};
    }
    return &inventory->tenants[inventory->tenant_count - 1];
}

static int add_item(void *context, const char *tenant, const char *key)
{
    struct inventory *inventory = context;
    struct inventory_tenant *owner = last_tenant(inventory, tenant);
    struct inventory_item item = {.tenant = inventory->tenant_count - 1, .key = memory_strdup(key)};
    struct stat status;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        if (!status_of(inventory->store, tenant, key, parts[i], &status))
            continue;
        uint64_t bytes = (uint64_t)status.st_blocks * 512;
        item.bytes += bytes;
        inventory->bytes += status.st_nlink == 1 ? bytes : 0; /* else it is among the contents */
    }
    if (status_of(inventory->store, tenant, key, "used", &status))
        item.used = status.st_mtime;
    owner->bytes += item.bytes;
    array_reserve(inventory->items, inventory->capacity, inventory->count + 1);
    inventory->items[inventory->count++] = item;
    return 0;
}

static int by_use(const void *a, const void *b)
{
    const struct inventory_item *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* The bytes that removing a build frees: files that no other build links to. */
static uint64_t own_bytes(struct symbol_store *store, const char *tenant, const char *key)
{
    struct stat status;
    uint64_t bytes = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (status_of(store, tenant, key, parts[i], &status) && status.st_nlink <= 2)
            bytes += (uint64_t)status.st_blocks * 512;
    return bytes;
}

static void remove_item(struct inventory *inventory, struct inventory_item *item)
{
    struct inventory_tenant *tenant = &inventory->tenants[item->tenant];
    uint64_t own = own_bytes(inventory->store, tenant->name, item->key);
    symbol_store_remove(inventory->store, tenant->name, item->key);
    tenant->bytes -= item->bytes;
    inventory->bytes -= MIN(own, inventory->bytes);
    item->gone = true;
    inventory->store->removed++;
}

/* The least recently used build of the tenant with the most bytes: a tenant can't push out others'
 * builds by sending more. Items are in order of use. */
static struct inventory_item *next_to_go(struct inventory *inventory)
{
    size_t most = 0;
    for (size_t i = 1; i < inventory->tenant_count; i++)
        if (inventory->tenants[i].bytes > inventory->tenants[most].bytes)
            most = i;
    for (size_t i = 0; i < inventory->count; i++)
        if (inventory->items[i].tenant == most && !inventory->items[i].gone)
            return &inventory->items[i];
    return NULL;
}

/* With `making` held. */
static void clean(struct symbol_store *store, uint64_t room, int64_t before)
{
    _cleanup_(inventory_release) struct inventory inventory = {.store = store};
    struct inventory_item *item;
    inventory.bytes = symbol_content_sweep(store);
    each_build(store, add_item, &inventory);
    if (inventory.count)
        qsort(inventory.items, inventory.count, sizeof(*inventory.items), by_use);
    size_t left = inventory.count;
    for (size_t i = 0; i < inventory.count && inventory.items[i].used < before; i++, left--)
        remove_item(&inventory, &inventory.items[i]);
    for (; inventory.bytes > room && (item = next_to_go(&inventory)); left--)
        remove_item(&inventory, item);
    if (left < inventory.count)
        symbol_content_sweep(store);
    store->builds = left;
    store->bytes = inventory.bytes;
}

int symbol_store_make_room(struct symbol_store *store, uint64_t bytes, struct error *error)
{
    uint64_t limit = store->options.total_bytes_max;
    if (bytes > limit)
        return error_set(error, -ENOSPC,
                         "The file needs %llu MiB; the limit of all symbols is %llu MiB "
                         "(symbols.disk_limit).",
                         (unsigned long long)(bytes >> 20), (unsigned long long)(limit >> 20));
    clean(store, limit - bytes, 0);
    return 0;
}

static int mend_one(void *context, const char *tenant, const char *key)
{
    symbol_store_mend(context, tenant, key);
    return 0;
}

void symbol_store_maintain(struct symbol_store *store)
{
    int64_t unused = store->options.unused_ns / 1000000000;
    pthread_mutex_lock(&store->making);
    if (!store->mended)
        each_build(store, mend_one, store);
    store->mended = true;
    clean(store, store->options.total_bytes_max, unused ? time(NULL) - unused : 0);
    pthread_mutex_unlock(&store->making);
}
