// SPDX-License-Identifier: Apache-2.0
// The stored name maps, and their eviction: see map_store.h.

#include "symbol/maps/store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/memory.h"
#include "symbol/maps/store_internal.h"

#define FILE_BYTES_DEFAULT (256ull << 20)
#define TOTAL_BYTES_DEFAULT (2ull << 30)

/* A segment of two characters becomes a place of 28 bytes and then one of 20; arrays double. */
#define EXPANSION 38
#define MEMORY_MAX (512u << 20) /* what the limits in map.h come to */

void symbol_maps_path(const struct symbol_maps *maps, const char *id, struct buffer *ret_path)
{
    ret_path->length = 0;
    buffer_printf(ret_path, "%s/%s", maps->directory, id);
    buffer_text(ret_path);
}

/* A name of its own for each key, without what paths can't have. */
static void make_id(const struct symbol_map_key *key, enum symbol_map_kind kind,
                    char ret_id[SYMBOL_MAP_ID_BYTES])
{
    _cleanup_buffer_ struct buffer text = {0};
    const char *const parts[] = {key->tenant, key->service, key->version, key->name};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        buffer_add(&text, parts[i], strlen(parts[i]) + 1);
    buffer_add_char(&text, (char)kind);
    XXH128_hash_t hash = XXH3_128bits(text.data, text.length);
    snprintf(ret_id, SYMBOL_MAP_ID_BYTES, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* ---- the list ---- */

static int compare_group(const struct symbol_maps_entry *entry, const struct symbol_map_key *key)
{
    int difference = strcmp(entry->tenant, key->tenant);
    if (!difference)
        difference = strcmp(entry->service, key->service);
    return difference ? difference : strcmp(entry->version, key->version);
}

static int compare(const struct symbol_maps_entry *a, const struct symbol_maps_entry *b)
{
    int difference =
        compare_group(a, &(struct symbol_map_key){
                             .tenant = b->tenant, .service = b->service, .version = b->version});
    if (!difference)
        difference = strcmp(a->name, b->name);
    return difference ? difference : (int)a->kind - (int)b->kind;
}

static void entry_release(struct symbol_maps_entry *entry)
{
    free((char *)entry->tenant);
    free((char *)entry->service);
    free((char *)entry->version);
    free((char *)entry->name);
}

static void insert(struct symbol_maps *maps, const struct symbol_maps_entry *entry)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&maps->entries[middle], entry) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    maps->bytes += entry->bytes;
    if (low < maps->count && !compare(&maps->entries[low], entry)) {
        maps->bytes -= maps->entries[low].bytes;
        entry_release(&maps->entries[low]);
    } else {
        array_reserve(maps->entries, maps->capacity, maps->count + 1);
        memmove(maps->entries + low + 1, maps->entries + low,
                (maps->count - low) * sizeof(*maps->entries));
        maps->count++;
    }
    maps->entries[low] = *entry;
}

size_t symbol_maps_range(const struct symbol_maps *maps, const struct symbol_map_key *key,
                         size_t *ret_count)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_group(&maps->entries[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < maps->count && !compare_group(&maps->entries[end], key))
        end++;
    *ret_count = end - low;
    return low;
}

void symbol_maps_remove(struct symbol_maps *maps, size_t at)
{
    _cleanup_buffer_ struct buffer path = {0};
    struct symbol_maps_entry entry = maps->entries[at];
    symbol_maps_path(maps, entry.id, &path);
    unlink(buffer_text(&path));
    symbol_maps_forget(maps, entry.id);
    maps->bytes -= entry.bytes;
    maps->removed++;
    memmove(maps->entries + at, maps->entries + at + 1,
            (--maps->count - at) * sizeof(*maps->entries));
    entry_release(&entry);
}

static struct symbol_maps_entry entry_of(const struct symbol_map *map, int64_t used)
{
    const struct symbol_map_header *header = map->header;
    struct symbol_maps_entry entry = {
        .tenant = memory_strdup(symbol_map_text(map, header->tenant)),
        .service = memory_strdup(symbol_map_text(map, header->service)),
        .version = memory_strdup(symbol_map_text(map, header->service_version)),
        .name = memory_strdup(symbol_map_text(map, header->name)),
        .kind = (enum symbol_map_kind)header->kind,
        .bytes = map->length,
        .source_bytes = header->source_bytes,
        .added = header->added,
        .used = used};
    make_id(&(struct symbol_map_key){entry.tenant, entry.service, entry.version, entry.name},
            entry.kind, entry.id);
    return entry;
}

/* ---- opening ---- */

/* Files that were being written when the server ended have a longer name. Those, unreadable ones
 * and ones whose name doesn't match are removed. */
static void load(struct symbol_maps *maps, const char *name)
{
    _cleanup_buffer_ struct buffer path = {0};
    struct symbol_map map;
    struct stat status;
    symbol_maps_path(maps, name, &path);
    bool is_id = strlen(name) == SYMBOL_MAP_ID_BYTES - 1 &&
                 strspn(name, "0123456789abcdef") == SYMBOL_MAP_ID_BYTES - 1;
    if (!is_id || lstat(buffer_text(&path), &status) < 0 || maps->count == SYMBOL_MAPS_MAX ||
        symbol_map_open(buffer_text(&path), &map, NULL) < 0) {
        unlink(buffer_text(&path));
        return;
    }
    struct symbol_maps_entry entry = entry_of(&map, status.st_mtime);
    symbol_map_close(&map);
    if (!strcmp(entry.id, name)) {
        insert(maps, &entry);
    } else {
        unlink(buffer_text(&path));
        entry_release(&entry);
    }
}

int symbol_maps_open(const struct symbol_maps_options *options, struct symbol_maps **ret_maps,
                     struct error *error)
{
    struct dirent *file;
    if (mkdir(options->directory, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, -errno, "Failed to create the directory for name maps, %s",
                               options->directory);
    DIR *listing = opendir(options->directory);
    if (!listing)
        return error_set_errno(error, -errno, "Failed to read the directory for name maps, %s",
                               options->directory);
    struct symbol_maps *maps = memory_zalloc(1, sizeof(*maps));
    maps->options = *options;
    maps->directory = memory_strdup(options->directory);
    maps->options.directory = maps->directory;
    if (!maps->options.file_bytes_max)
        maps->options.file_bytes_max = FILE_BYTES_DEFAULT;
    if (!maps->options.total_bytes_max)
        maps->options.total_bytes_max = TOTAL_BYTES_DEFAULT;
    pthread_mutex_init(&maps->lock, NULL);
    pthread_mutex_init(&maps->making, NULL);
    while ((file = readdir(listing)))
        if (file->d_name[0] != '.')
            load(maps, file->d_name);
    closedir(listing);
    *ret_maps = maps;
    return 0;
}

void symbol_maps_close(struct symbol_maps *maps)
{
    if (!maps)
        return;
    while (maps->open_count)
        symbol_maps_forget(maps, maps->open[maps->open_count - 1]->id);
    for (size_t i = 0; i < maps->count; i++)
        entry_release(&maps->entries[i]);
    free(maps->entries);
    pthread_mutex_destroy(&maps->lock);
    pthread_mutex_destroy(&maps->making);
    free(maps->directory);
    free(maps);
}

/* ---- putting one in ---- */

size_t symbol_maps_memory(uint64_t source_bytes)
{
    return (size_t)MIN((uint64_t)MEMORY_MAX, (1u << 20) + EXPANSION * source_bytes);
}

uint64_t symbol_maps_file_limit(const struct symbol_maps *maps)
{
    return maps->options.file_bytes_max;
}

static size_t least_used(const struct symbol_maps *maps)
{
    size_t oldest = 0;
    for (size_t i = 1; i < maps->count; i++)
        if (maps->entries[i].used < maps->entries[oldest].used)
            oldest = i;
    return oldest;
}

/* Throws out what was used longest ago. With the lock. */
static int make_room(struct symbol_maps *maps, uint64_t bytes, struct error *error)
{
    if (bytes > maps->options.total_bytes_max)
        return error_set(
            error, -ENOSPC,
            "The map is %llu bytes; the limit of all maps is %llu (symbols.maps_limit).",
            (unsigned long long)bytes, (unsigned long long)maps->options.total_bytes_max);
    while (maps->count &&
           (maps->bytes > maps->options.total_bytes_max - bytes || maps->count == SYMBOL_MAPS_MAX))
        symbol_maps_remove(maps, least_used(maps));
    return 0;
}

static int check_key(const struct symbol_map_key *key, struct error *error)
{
    const char *const parts[] = {key->service, key->version, key->name};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (strlen(parts[i]) > SYMBOL_MAP_KEY_BYTES_MAX)
            return error_set(error, -EINVAL,
                             "The limit for names of services, versions and files is %d bytes.",
                             SYMBOL_MAP_KEY_BYTES_MAX);
    return *key->service ? 0 : error_set(error, -EINVAL, "A map requires a service name.");
}

int symbol_maps_put(struct symbol_maps *maps, struct source *source,
                    const struct symbol_map_key *key, symbol_maps_fn *fn, void *context,
                    struct error *error)
{
    _cleanup_buffer_ struct buffer built = {0}, path = {0};
    struct symbol_map map;
    int64_t now = time(NULL);
    int r = check_key(key, error);
    pthread_mutex_lock(&maps->making);
    if (!r)
        r = symbol_map_build(source, key, now, &built, error);
    if (!r)
        r = symbol_map_open_memory(built.data, built.length, &map, error);
    struct symbol_maps_entry entry = {0};
    if (!r)
        entry = entry_of(&map, now);
    pthread_mutex_lock(&maps->lock);
    if (!r)
        r = make_room(maps, built.length, error);
    pthread_mutex_unlock(&maps->lock);
    if (!r) {
        symbol_maps_path(maps, entry.id, &path);
        r = file_write_atomic(buffer_text(&path), built.data, built.length, error);
    }
    pthread_mutex_lock(&maps->lock);
    if (r < 0) {
        maps->refused++;
        entry_release(&entry);
    } else {
        insert(maps, &entry);
        symbol_maps_forget(maps, entry.id);
        maps->stored++;
        if (fn)
            fn(context, &entry);
    }
    pthread_mutex_unlock(&maps->lock);
    pthread_mutex_unlock(&maps->making);
    return r;
}

/* ---- what there is ---- */

int symbol_maps_list(struct symbol_maps *maps, const char *tenant, symbol_maps_fn *fn,
                     void *context)
{
    int r = 0;
    pthread_mutex_lock(&maps->lock);
    for (size_t i = 0; !r && i < maps->count; i++)
        if (!strcmp(maps->entries[i].tenant, tenant))
            r = fn(context, &maps->entries[i]);
    pthread_mutex_unlock(&maps->lock);
    return r;
}

int symbol_maps_delete(struct symbol_maps *maps, const char *tenant, const char *id,
                       struct error *error)
{
    bool found = false;
    pthread_mutex_lock(&maps->lock);
    for (size_t i = 0; !found && i < maps->count; i++)
        if (!strcmp(maps->entries[i].id, id) && !strcmp(maps->entries[i].tenant, tenant)) {
            found = true;
            symbol_maps_remove(maps, i);
        }
    pthread_mutex_unlock(&maps->lock);
    return found ? 0 : error_set(error, -ENOENT, "No map has the id \"%.40s\".", id);
}

void symbol_maps_maintain(struct symbol_maps *maps)
{
    int64_t now = time(NULL);
    pthread_mutex_lock(&maps->lock);
    for (size_t i = 0; maps->options.unused_ns && i < maps->count; i++)
        if (now - maps->entries[i].used > maps->options.unused_ns / 1000000000)
            symbol_maps_remove(maps, i--);
    pthread_mutex_unlock(&maps->lock);
}

struct symbol_maps_stats symbol_maps_stats(struct symbol_maps *maps)
{
    pthread_mutex_lock(&maps->lock);
    struct symbol_maps_stats stats = {.entries = maps->count,
                                      .bytes = maps->bytes,
                                      .open = maps->open_count,
                                      .stored = maps->stored,
                                      .refused = maps->refused,
                                      .removed = maps->removed};
    pthread_mutex_unlock(&maps->lock);
    return stats;
}
