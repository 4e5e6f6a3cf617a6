// SPDX-License-Identifier: Apache-2.0
// Open indexes: a bounded number, each shared by all users. See store.h.

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "elf/file.h"
#include "symbol/store/internal.h"

#define NOTE_SECONDS 3600
#define PAGE_BYTES 4096ull

static void unreference(struct symbol_source *source)
{
    if (--source->references)
        return;
    symbol_index_close(&source->index);
    free(source->tenant);
    free(source->key);
    free(source);
}

static void drop(struct symbol_store *store, size_t at)
{
    struct symbol_source *source = store->sources[at];
    store->sources[at] = store->sources[--store->source_count];
    store->mapped_bytes -= source->index.length;
    unreference(source);
}

static bool is_of(const struct symbol_source *source, const char *tenant, const char *key)
{
    return !strcmp(source->key, key) && !strcmp(source->tenant, tenant);
}

void symbol_store_forget(struct symbol_store *store, const char *tenant, const char *key)
{
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->source_count; i++)
        if (is_of(store->sources[i], tenant, key)) {
            drop(store, i);
            i--;
        }
    pthread_mutex_unlock(&store->lock);
}

bool symbol_store_is_placed(const struct symbol_index *index)
{
    const struct symbol_index_segment *segments =
        (const struct symbol_index_segment *)index->parts[SYMBOL_INDEX_SEGMENTS];
    size_t count = index->header->parts[SYMBOL_INDEX_SEGMENTS].length / sizeof(*segments);
    for (size_t i = 0; i < count; i++)
        if (segments[i].is_code && segments[i].bytes)
            return true;
    return false;
}

/* A debug file keeps its segments' addresses. With one segment of code, and a mapping that is as
 * long as that, they tell which address an offset is. */
static void find_code(struct symbol_store *store, struct symbol_source *source)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    uint64_t bytes;
    int fd = symbol_store_open_file(store, source->tenant, source->key, SYMBOL_DEBUGINFO, &bytes);
    if (fd < 0)
        return;
    if (elf_open_foreign_fd(fd, &file, NULL) < 0) {
        close(fd);
        return;
    }
    unsigned count = 0;
    for (size_t i = 0; i < file.segment_count; i++) {
        const struct elf_segment *segment = &file.segments[i];
        if (segment->type != PT_LOAD || !(segment->flags & PF_X))
            continue;
        source->code_address = segment->address;
        source->code_bytes = segment->memory_bytes;
        count++;
    }
    if (count != 1)
        source->code_bytes = 0;
}

static void note_use(struct symbol_store *store, struct symbol_source *source)
{
    int64_t now = time(NULL);
    if (now - source->noted < NOTE_SECONDS)
        return;
    symbol_store_touch(store, source->tenant, source->key);
    source->noted = now;
}

static struct symbol_source *open_source(struct symbol_store *store, const char *tenant,
                                         const char *key, uint64_t hash)
{
    _cleanup_buffer_ struct buffer path = {0};
    struct symbol_source *source = memory_zalloc(1, sizeof(*source));
    symbol_store_path(store, tenant, key, "index", &path);
    if (symbol_index_open(buffer_text(&path), &source->index, NULL) < 0) {
        free(source);
        return NULL;
    }
    source->tenant = memory_strdup(tenant);
    source->key = memory_strdup(key);
    source->hash = hash;
    source->references = 1;
    source->is_placed = symbol_store_is_placed(&source->index);
    if (!source->is_placed)
        find_code(store, source);
    return source;
}

static bool is_full(const struct symbol_store *store)
{
    uint64_t most = store->options.mapped_bytes_max;
    return store->source_count == SYMBOL_STORE_OPEN_MAX || (most && store->mapped_bytes > most);
}

/* Evicts the least recently used first, and nothing that is in use, since its users keep it open
 * anyway. With the lock held. */
static void make_room(struct symbol_store *store)
{
    while (is_full(store)) {
        size_t oldest = SIZE_MAX;
        for (size_t i = 0; i < store->source_count; i++)
            if (store->sources[i]->references == 1 &&
                (oldest == SIZE_MAX || store->sources[i]->last < store->sources[oldest]->last))
                oldest = i;
        if (oldest == SIZE_MAX)
            return;
        drop(store, oldest);
    }
}

struct symbol_source *symbol_store_source(struct symbol_store *store, const char *tenant,
                                          const char *key)
{
    uint64_t hash = XXH3_64bits_withSeed(key, strlen(key), XXH3_64bits(tenant, strlen(tenant)));
    struct symbol_source *source = NULL;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; !source && i < store->source_count; i++)
        if (store->sources[i]->hash == hash && is_of(store->sources[i], tenant, key))
            source = store->sources[i];
    if (!source && (source = open_source(store, tenant, key, hash))) {
        make_room(store);
        if (store->source_count == SYMBOL_STORE_OPEN_MAX) /* all of them are in use */
            drop(store, 0);
        store->sources[store->source_count++] = source;
        store->mapped_bytes += source->index.length;
    }
    if (source) {
        source->references++;
        source->last = ++store->clock;
        note_use(store, source);
    }
    pthread_mutex_unlock(&store->lock);
    return source;
}

void symbol_source_release(struct symbol_store *store, struct symbol_source *source)
{
    if (!source)
        return;
    pthread_mutex_lock(&store->lock);
    unreference(source);
    make_room(store);
    pthread_mutex_unlock(&store->lock);
}

size_t symbol_source_look_up(const struct symbol_source *source, uint64_t offset,
                             uint64_t mapped_offset, uint64_t mapped_bytes,
                             struct symbol_frame *frames, size_t most)
{
    uint64_t address = offset;
    if (mapped_offset == SYMBOL_BY_ADDRESS) {
        /* it is one already */
    } else if (source->is_placed) {
        if (!symbol_index_address(&source->index, offset, &address))
            return 0;
    } else {
        uint64_t start = source->code_address & ~(PAGE_BYTES - 1);
        uint64_t end = source->code_address + source->code_bytes;
        if (!source->code_bytes || offset < mapped_offset || mapped_offset % PAGE_BYTES ||
            mapped_bytes != ((end - start + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1)))
            return 0;
        address = offset - mapped_offset + start;
    }
    size_t count = symbol_index_look_up(&source->index, address, frames, most, NULL);
    return count && !frames[0].name ? 0 : count;
}
