// SPDX-License-Identifier: Apache-2.0
// Name maps that are open, a bounded number, and which of them a file is of: see map_store.h.

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "symbol/maps/store_internal.h"

#define NOTE_SECONDS 3600

static void unreference(struct symbol_map_use *use)
{
    if (--use->references)
        return;
    symbol_map_close(&use->map);
    free(use);
}

static void drop(struct symbol_maps *maps, size_t at)
{
    struct symbol_map_use *use = maps->open[at];
    maps->open[at] = maps->open[--maps->open_count];
    unreference(use);
}

void symbol_maps_forget(struct symbol_maps *maps, const char *id)
{
    for (size_t i = 0; i < maps->open_count; i++)
        if (!strcmp(maps->open[i]->id, id)) {
            drop(maps, i);
            return;
        }
}

void symbol_maps_give_back(struct symbol_maps *maps, struct symbol_map_use *use)
{
    if (!use)
        return;
    pthread_mutex_lock(&maps->lock);
    unreference(use);
    pthread_mutex_unlock(&maps->lock);
}

/* The time of last use is the file's own time of change. */
static void note_use(struct symbol_maps *maps, struct symbol_maps_entry *entry,
                     struct symbol_map_use *use)
{
    _cleanup_buffer_ struct buffer path = {0};
    int64_t now = time(NULL);
    use->last = ++maps->clock;
    if (now - use->noted < NOTE_SECONDS)
        return;
    symbol_maps_path(maps, entry->id, &path);
    utimensat(AT_FDCWD, buffer_text(&path), NULL, 0);
    use->noted = now;
    entry->used = now;
}

static struct symbol_map_use *find_open(struct symbol_maps *maps, const char *id)
{
    for (size_t i = 0; i < maps->open_count; i++)
        if (!strcmp(maps->open[i]->id, id))
            return maps->open[i];
    return NULL;
}

static void make_place(struct symbol_maps *maps)
{
    size_t oldest = 0;
    if (maps->open_count < SYMBOL_MAPS_OPEN_MAX)
        return;
    for (size_t i = 1; i < maps->open_count; i++)
        if (maps->open[i]->last < maps->open[oldest]->last)
            oldest = i;
    drop(maps, oldest);
}

/* With the lock. A file that was found damaged since is gone. */
static struct symbol_map_use *take(struct symbol_maps *maps, size_t at)
{
    struct symbol_maps_entry *entry = &maps->entries[at];
    struct symbol_map_use *use = find_open(maps, entry->id);
    if (!use) {
        _cleanup_buffer_ struct buffer path = {0};
        struct symbol_map map;
        symbol_maps_path(maps, entry->id, &path);
        if (symbol_map_open(buffer_text(&path), &map, NULL) < 0) {
            symbol_maps_remove(maps, at);
            return NULL;
        }
        make_place(maps);
        use = memory_zalloc(1, sizeof(*use));
        use->map = map;
        use->references = 1;
        strcpy(use->id, entry->id);
        maps->open[maps->open_count++] = use;
    }
    note_use(maps, entry, use);
    use->references++;
    return use;
}

/* ---- which one ---- */

/* Up to what belongs to an address and not to a path. */
static size_t path_length(const char *file)
{
    return strcspn(file, "?#");
}

/* How many parts of two paths' ends are equal. */
static unsigned equal_parts(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned parts = 0;
    while (a_length && b_length) {
        const char *x = memrchr(a, '/', a_length), *y = memrchr(b, '/', b_length);
        size_t x_start = x ? (size_t)(x - a) + 1 : 0, y_start = y ? (size_t)(y - b) + 1 : 0;
        if (a_length - x_start != b_length - y_start ||
            memcmp(a + x_start, b + y_start, a_length - x_start) != 0)
            break;
        parts++;
        if (!x || !y)
            break;
        a_length = (size_t)(x - a);
        b_length = (size_t)(y - b);
    }
    return parts;
}

struct symbol_map_use *symbol_maps_javascript(struct symbol_maps *maps,
                                              const struct symbol_map_key *key, const char *file)
{
    struct symbol_map_use *use = NULL;
    size_t length = path_length(file), count, best = SIZE_MAX;
    unsigned most = 0;
    pthread_mutex_lock(&maps->lock);
    size_t first = symbol_maps_range(maps, key, &count);
    for (size_t i = first; length && i < first + count; i++) {
        const struct symbol_maps_entry *entry = &maps->entries[i];
        if (entry->kind != SYMBOL_MAP_JAVASCRIPT)
            continue;
        unsigned parts = equal_parts(entry->name, path_length(entry->name), file, length);
        if (parts && parts >= most) {
            best = parts > most ? i : SIZE_MAX;
            most = parts;
        }
    }
    if (best != SIZE_MAX)
        use = take(maps, best);
    pthread_mutex_unlock(&maps->lock);
    return use;
}

struct symbol_map_use *symbol_maps_jvm(struct symbol_maps *maps, const struct symbol_map_key *key)
{
    struct symbol_map_use *use = NULL;
    size_t count;
    pthread_mutex_lock(&maps->lock);
    size_t first = symbol_maps_range(maps, key, &count);
    for (size_t i = first; !use && i < first + count && i < maps->count; i++)
        if (maps->entries[i].kind == SYMBOL_MAP_JVM) {
            use = take(maps, i);
            break;
        }
    pthread_mutex_unlock(&maps->lock);
    return use;
}
