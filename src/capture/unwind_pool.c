// SPDX-License-Identifier: Apache-2.0
// Filling the tables of walks in the kernel: see unwind_pool.h.

#include "capture/unwind_pool.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"

#define SMALLEST_LIST 8u
/* A whole file is loaded at once when that takes no more than this part of the free slots. */
#define SMALL_PART 4

/* The order of stores is what lets a walk notice them. */
static void store(uint32_t *to, uint32_t value)
{
    atomic_store_explicit((_Atomic uint32_t *)to, value, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

static uint32_t load(const uint32_t *from)
{
    return atomic_load_explicit((const _Atomic uint32_t *)from, memory_order_acquire);
}

static void begin(struct unwind_pool *pool)
{
    /* Segment 0 is code of no file, and a directory of 0 says that there is none. */
    pool->segments_used = 1;
    pool->directory_used = 1;
    pool->chunks_used = pool->mappings_used = pool->slots_used = 0;
    pool->rules_copied = 0;
    pool->full = false;
}

void unwind_pool_init(struct unwind_pool *pool, const struct unwind_tables *tables)
{
    *pool = (struct unwind_pool){.tables = *tables};
    begin(pool);
}

static void release_lists(struct unwind_pool *pool)
{
    for (size_t i = 0; i < POOL_LIST_CLASSES; i++) {
        free(pool->classes[i].free);
        pool->classes[i] = (struct pool_class){0};
    }
}

void unwind_pool_release(struct unwind_pool *pool)
{
    release_lists(pool);
}

void unwind_pool_reset(struct unwind_pool *pool)
{
    struct unwind_tables *tables = &pool->tables;
    for (uint32_t i = 0; i < tables->slot_count; i++)
        store(&tables->slots[i].owner, 0);
    memset(tables->segments, 0, pool->segments_used * sizeof(*tables->segments));
    memset(tables->mappings, 0, pool->mappings_used * sizeof(*tables->mappings));
    memset(tables->chunks, 0, pool->chunks_used * sizeof(*tables->chunks));
    release_lists(pool);
    pool->resets++;
    begin(pool);
}

void unwind_pool_rules(struct unwind_pool *pool, const struct unwind_rules *rules)
{
    size_t count = MIN(rules->count, (size_t)BPF_RULES_MAX);
    if (count > pool->rules_copied)
        memcpy(pool->tables.rules + pool->rules_copied, rules->rules + pool->rules_copied,
               (count - pool->rules_copied) * sizeof(*rules->rules));
    pool->rules_copied = MAX(pool->rules_copied, count);
}

/* ---- rows ---- */

bool unwind_pool_add_file(struct unwind_pool *pool, const struct unwind_rows *rows,
                          struct pool_file *ret_file)
{
    uint32_t chunk_count = (rows->row_count + BPF_CHUNK_ROWS - 1) >> BPF_CHUNK_SHIFT;
    if (rows->page_count >= BPF_DIRECTORY_MAX - pool->directory_used ||
        chunk_count > BPF_CHUNKS_MAX - pool->chunks_used) {
        pool->full = true;
        return false;
    }
    *ret_file = (struct pool_file){
        .directory = pool->directory_used, .chunks = pool->chunks_used, .chunk_count = chunk_count};
    memcpy(pool->tables.directory + pool->directory_used, rows->pages,
           (rows->page_count + 1) * sizeof(*rows->pages));
    memset(pool->tables.chunks + pool->chunks_used, 0, chunk_count * sizeof(uint32_t));
    pool->directory_used += rows->page_count + 1;
    pool->chunks_used += chunk_count;
    return true;
}

/* A slot for a new chunk: one that is still free, else the one that was not read for longest. */
static uint32_t take_slot(struct unwind_pool *pool)
{
    struct unwind_tables *tables = &pool->tables;
    if (pool->slots_used < tables->slot_count)
        return pool->slots_used++;
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < tables->slot_count; i++)
        if ((int32_t)(tables->slots[i].used - tables->slots[oldest].used) < 0)
            oldest = i;
    uint32_t owner = tables->slots[oldest].owner;
    store(&tables->slots[oldest].owner, 0);
    if (owner)
        store(&tables->chunks[owner - 1], 0);
    pool->evictions++;
    return oldest;
}

static bool load_chunk(struct unwind_pool *pool, const struct pool_file *file,
                       const struct unwind_rows *rows, uint32_t chunk)
{
    struct unwind_tables *tables = &pool->tables;
    uint32_t entry = file->chunks + chunk, first = chunk << BPF_CHUNK_SHIFT;
    if (chunk >= file->chunk_count || load(&tables->chunks[entry]))
        return false;
    uint32_t slot = take_slot(pool);
    uint32_t count = MIN(rows->row_count - first, BPF_CHUNK_ROWS);
    memcpy(tables->pool + ((size_t)slot << BPF_CHUNK_SHIFT), rows->rows + first,
           count * sizeof(*rows->rows));
    /* As fresh as the freshest, or it might be the next to go. */
    uint32_t now = tables->slots[slot].used;
    for (uint32_t i = 0; i < pool->slots_used; i += 64)
        if ((int32_t)(tables->slots[i].used - now) > 0)
            now = tables->slots[i].used;
    tables->slots[slot].used = now;
    store(&tables->slots[slot].owner, entry + 1);
    store(&tables->chunks[entry], slot + 1);
    pool->loads++;
    return true;
}

bool unwind_pool_load(struct unwind_pool *pool, const struct pool_file *file,
                      const struct unwind_rows *rows, uint64_t address)
{
    uint64_t page = (address >> UNWIND_PAGE_SHIFT) - rows->first_page;
    if (page >= rows->page_count || rows->pages[page] == rows->pages[page + 1])
        return false;
    uint32_t first = rows->pages[page] >> BPF_CHUNK_SHIFT;
    uint32_t last = (rows->pages[page + 1] - 1) >> BPF_CHUNK_SHIFT;
    bool missing = load_chunk(pool, file, rows, first);
    for (uint32_t chunk = first + 1; chunk <= last; chunk++)
        missing |= load_chunk(pool, file, rows, chunk);
    return missing;
}

bool unwind_pool_load_all(struct unwind_pool *pool, const struct pool_file *file,
                          const struct unwind_rows *rows)
{
    bool missing = false;
    if (file->chunk_count > (pool->tables.slot_count - pool->slots_used) / SMALL_PART)
        return false;
    for (uint32_t chunk = 0; chunk < file->chunk_count; chunk++)
        missing |= load_chunk(pool, file, rows, chunk);
    return missing;
}

bool unwind_pool_reach_segment(struct unwind_pool *pool, uint32_t number)
{
    if (number >= BPF_SEGMENTS_MAX) {
        pool->full = true;
        return false;
    }
    for (; pool->segments_used <= number; pool->segments_used++)
        pool->tables.segments[pool->segments_used] =
            (struct bpf_segment){.state = BPF_SEGMENT_EMPTY};
    return true;
}

void unwind_pool_set_segment(struct unwind_pool *pool, uint32_t number,
                             const struct pool_file *file, const struct unwind_rows *rows)
{
    struct bpf_segment *segment = &pool->tables.segments[number];
    if (file) {
        segment->first_page = rows->first_page;
        segment->page_count = rows->page_count;
        segment->directory = file->directory;
        segment->chunks = file->chunks;
    }
    store(&segment->state, file ? BPF_SEGMENT_ROWS : BPF_SEGMENT_NO_ROWS);
}

/* ---- lists of mappings ---- */

static bool take_block(struct unwind_pool *pool, unsigned class, int64_t now_ns,
                       uint32_t *ret_first)
{
    struct pool_class *free_list = &pool->classes[class];
    uint32_t size = SMALLEST_LIST << class;
    if (free_list->head < free_list->count &&
        now_ns - free_list->free[free_list->head].since_ns >= POOL_REST_NS) {
        *ret_first = free_list->free[free_list->head++].first;
        if (free_list->head == free_list->count)
            free_list->head = free_list->count = 0;
        return true;
    }
    if (size > BPF_MAPPINGS_MAX - pool->mappings_used) {
        pool->full = true;
        return false;
    }
    *ret_first = pool->mappings_used;
    pool->mappings_used += size;
    return true;
}

struct pool_list *unwind_pool_add_list(struct unwind_pool *pool, const struct bpf_mapping *mappings,
                                       size_t count, int64_t now_ns)
{
    unsigned class = 0;
    uint32_t first;
    while (class < POOL_LIST_CLASSES && SMALLEST_LIST << class < count)
        class ++;
    if (class == POOL_LIST_CLASSES || !take_block(pool, class, now_ns, &first))
        return NULL;
    struct pool_list *list = memory_zalloc(1, sizeof(*list));
    pool->list_count += pool->list_count == UINT32_MAX ? 2 : 1; /* 0 is no list */
    *list = (struct pool_list){.users = 1, .resets = pool->resets, .class = class};
    list->described =
        (struct bpf_process){.first = first, .count = (uint32_t)count, .list = pool->list_count};
    struct bpf_mapping *to = pool->tables.mappings + first;
    for (size_t i = 0; i < count; i++) {
        /* A walk by the list that was here before sees first that this is no more of it. */
        store(&to[i].list, 0);
        to[i].start = mappings[i].start;
        to[i].end = mappings[i].end;
        to[i].bias = mappings[i].bias;
        to[i].offset = mappings[i].offset;
        to[i].segment = mappings[i].segment;
        store(&to[i].list, list->described.list);
    }
    return list;
}

void unwind_pool_leave_list(struct unwind_pool *pool, struct pool_list *list, int64_t now_ns)
{
    if (!list || --list->users)
        return;
    struct pool_class *class = &pool->classes[list->class];
    if (list->resets == pool->resets) {
        /* What was taken from the front leaves room. */
        if (class->head > 64 && class->head * 2 > class->count) {
            memmove(class->free, class->free + class->head,
                    (class->count - class->head) * sizeof(*class->free));
            class->count -= class->head;
            class->head = 0;
        }
        array_reserve(class->free, class->capacity, class->count + 1);
        class->free[class->count++] =
            (struct pool_block){.first = list->described.first, .since_ns = now_ns};
    }
    free(list);
}
