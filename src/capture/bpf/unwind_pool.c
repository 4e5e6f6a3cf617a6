// SPDX-License-Identifier: Apache-2.0
// Filling the tables of walks in the kernel: see unwind_pool.h.

#include "capture/bpf/unwind_pool.h"

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

static void begin(struct unwind_pool *pool)
{
    pool->directory_used = pool->mappings_used = pool->slots_used = 0;
    pool->file_count = 1; /* 0 is none */
    pool->rules_copied = 0;
    pool->full = false;
}

void unwind_pool_init(struct unwind_pool *pool, const struct unwind_tables *tables)
{
    *pool = (struct unwind_pool){.tables = *tables};
    pool->slots = memory_zalloc(tables->slot_count, sizeof(*pool->slots));
    pool->segments = memory_zalloc(BPF_SEGMENTS_MAX, sizeof(*pool->segments));
    begin(pool);
}

static void release_files(struct unwind_pool *pool)
{
    for (size_t i = 1; i < pool->file_count; i++)
        free(pool->files[i].chunk_pages);
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
    release_files(pool);
    free(pool->files);
    free(pool->slots);
    free(pool->segments);
}

void unwind_pool_reset(struct unwind_pool *pool)
{
    struct unwind_tables *tables = &pool->tables;
    memset(pool->segments, 0, BPF_SEGMENTS_MAX * sizeof(*pool->segments));
    memset(tables->mappings, 0, pool->mappings_used * sizeof(*tables->mappings));
    memset(tables->directory, 0, pool->directory_used * sizeof(*tables->directory));
    memset(pool->slots, 0, tables->slot_count * sizeof(*pool->slots));
    release_files(pool);
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

static uint32_t row_count_of(const struct unwind_rows *rows, uint32_t page)
{
    return rows->pages[page + 1] - rows->pages[page];
}

static uint32_t group_count_of(const struct unwind_rows *rows, uint32_t page)
{
    return (row_count_of(rows, page) + BPF_GROUP_ROWS - 1) / BPF_GROUP_ROWS;
}

/* Cuts a file into chunks that fit into slots. */
static void cut(struct pool_file *file, const struct unwind_rows *rows)
{
    uint32_t groups = 0;
    size_t count = 0, capacity = 0;
    for (uint32_t page = 0; page < rows->page_count; page++) {
        uint32_t more = group_count_of(rows, page);
        if (page && groups + more <= BPF_SLOT_ROWS / BPF_GROUP_ROWS) {
            groups += more;
            continue;
        }
        array_reserve(file->chunk_pages, capacity, count + 2);
        file->chunk_pages[count++] = page;
        groups = more;
    }
    file->chunk_pages[count] = rows->page_count;
    file->chunk_count = (uint32_t)count;
}

uint32_t unwind_pool_add_file(struct unwind_pool *pool, const struct unwind_rows *rows)
{
    if (!rows->page_count || rows->page_count > BPF_DIRECTORY_MAX - pool->directory_used) {
        pool->full |= rows->page_count > 0;
        return 0;
    }
    struct pool_file file = {.directory = pool->directory_used, .page_count = rows->page_count};
    cut(&file, rows);
    for (uint32_t page = 0; page < rows->page_count; page++)
        pool->tables.directory[file.directory + page] =
            row_count_of(rows, page) ? BPF_PAGE_NOT_LOADED : 0;
    pool->directory_used += rows->page_count;
    array_reserve(pool->files, pool->file_capacity, pool->file_count + 1);
    pool->files[pool->file_count] = file;
    return (uint32_t)pool->file_count++;
}

/* No walk that begins now reads the slot, and one that has begun notices. */
static void empty_slot(struct unwind_pool *pool, uint32_t slot)
{
    struct pool_slot *seat = &pool->slots[slot];
    struct pool_file *file = &pool->files[seat->file];
    for (uint32_t page = file->chunk_pages[seat->chunk]; page < file->chunk_pages[seat->chunk + 1];
         page++)
        if (pool->tables.directory[file->directory + page])
            store(&pool->tables.directory[file->directory + page], BPF_PAGE_NOT_LOADED);
    file->loaded--;
    seat->file = 0;
    pool->evictions++;
}

/* A slot for a new chunk: one that is still free, else the one that was not read for longest. */
static uint32_t take_slot(struct unwind_pool *pool)
{
    const uint32_t *used = pool->tables.slots_used;
    if (pool->slots_used < pool->tables.slot_count)
        return pool->slots_used++;
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < pool->tables.slot_count; i++)
        if ((int32_t)(used[i] - used[oldest]) < 0)
            oldest = i;
    empty_slot(pool, oldest);
    return oldest;
}

static void write_rows(struct unwind_row *to, const struct unwind_rows *rows, uint32_t page)
{
    uint32_t count = row_count_of(rows, page), filled = group_count_of(rows, page) * BPF_GROUP_ROWS;
    memcpy(to, rows->rows + rows->pages[page], count * sizeof(*to));
    for (uint32_t i = count; i < filled; i++)
        to[i] = (struct unwind_row){.offset = BPF_ROW_BEHIND};
}

static void load_chunk(struct unwind_pool *pool, uint32_t number, const struct unwind_rows *rows,
                       uint32_t chunk)
{
    struct pool_file *file = &pool->files[number];
    uint32_t slot = take_slot(pool), last = file->chunk_pages[chunk + 1];
    uint32_t group = slot * (BPF_SLOT_ROWS / BPF_GROUP_ROWS), at = group;
    for (uint32_t page = file->chunk_pages[chunk]; page < last; page++) {
        write_rows(pool->tables.pool + (size_t)at * BPF_GROUP_ROWS, rows, page);
        at += group_count_of(rows, page);
    }
    /* As fresh as the freshest, or it might be the next to go. */
    uint32_t *used = pool->tables.slots_used, now = used[slot];
    for (uint32_t i = 0; i < pool->slots_used; i++)
        if ((int32_t)(used[i] - now) > 0)
            now = used[i];
    used[slot] = now;
    pool->slots[slot] = (struct pool_slot){.file = number, .chunk = chunk};
    file->loaded++;
    for (uint32_t page = file->chunk_pages[chunk]; page < last; page++) {
        uint32_t count = group_count_of(rows, page);
        if (count)
            store(&pool->tables.directory[file->directory + page],
                  group << BPF_GROUPS_SHIFT | count);
        group += count;
    }
    pool->loads++;
}

static bool is_loaded(const struct unwind_pool *pool, const struct pool_file *file, uint32_t page)
{
    return pool->tables.directory[file->directory + page] != BPF_PAGE_NOT_LOADED;
}

/* The chunk that a page is in. */
static uint32_t chunk_of(const struct pool_file *file, uint32_t page)
{
    uint32_t low = 0, high = file->chunk_count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (file->chunk_pages[middle] <= page)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool unwind_pool_load(struct unwind_pool *pool, uint32_t number, const struct unwind_rows *rows,
                      uint64_t address)
{
    const struct pool_file *file = &pool->files[number];
    uint64_t page = (address >> UNWIND_PAGE_SHIFT) - rows->first_page;
    if (page >= file->page_count || is_loaded(pool, file, (uint32_t)page))
        return false;
    load_chunk(pool, number, rows, chunk_of(file, (uint32_t)page));
    return true;
}

bool unwind_pool_load_all(struct unwind_pool *pool, uint32_t number, const struct unwind_rows *rows)
{
    uint32_t count = pool->files[number].chunk_count;
    if (pool->files[number].loaded || count == 0 ||
        count > (pool->tables.slot_count - pool->slots_used) / SMALL_PART)
        return false;
    for (uint32_t chunk = 0; chunk < count; chunk++)
        load_chunk(pool, number, rows, chunk);
    return true;
}

bool unwind_pool_knows_segment(const struct unwind_pool *pool, uint32_t number)
{
    return pool->segments[number].state != BPF_SEGMENT_EMPTY;
}

/* A walk reads the state first. */
static void write_segment(struct bpf_rows *to, const struct bpf_rows *segment)
{
    to->first_page = segment->first_page;
    to->page_count = segment->page_count;
    to->directory = segment->directory;
    store(&to->state, segment->state);
}

void unwind_pool_set_segment(struct unwind_pool *pool, uint32_t number, uint32_t file,
                             const struct unwind_rows *rows)
{
    struct bpf_rows *segment = &pool->segments[number];
    *segment = (struct bpf_rows){.state = BPF_SEGMENT_NO_ROWS};
    if (file && rows->first_page <= UINT32_MAX)
        *segment = (struct bpf_rows){.state = BPF_SEGMENT_ROWS,
                                     .first_page = (uint32_t)rows->first_page,
                                     .page_count = rows->page_count,
                                     .directory = pool->files[file].directory};
    /* It is new to the kernel: seldom, once everything has been seen. */
    for (uint32_t i = 0; i < pool->mappings_used; i++)
        if (pool->tables.mappings[i].segment == number)
            write_segment(&pool->tables.mappings[i].rows, segment);
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
        write_segment(&to[i].rows, &pool->segments[mappings[i].segment]);
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
        /* Entries removed from the front leave room. */
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
