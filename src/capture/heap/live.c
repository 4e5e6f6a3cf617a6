// SPDX-License-Identifier: Apache-2.0
// The table of live samples: see live.h. Open addressing, and deletion that moves later entries of
// the same run forward, so that nothing is left behind however long it goes on.

#include "capture/heap/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

#define FIRST_SIZE 1024
#define FIRST_TICK_NS 50000000
#define TIME_MAX UINT16_MAX
#define POINTER_MAX ((1ull << 48) - 1)
#define WEIGHT_MAX ((1ull << 48) - 1)
#define STALE_INDEX 1024 /* places of processes that are gone, in the index */

void heap_live_init(struct heap_live *live, size_t limit, size_t process_limit)
{
    *live = (struct heap_live){.limit = limit,
                               .process_limit = process_limit,
                               .seed = random_bits(),
                               .tick_ns = FIRST_TICK_NS};
    live->entries = memory_zalloc(FIRST_SIZE, sizeof(*live->entries));
    live->mask = FIRST_SIZE - 1;
}

void heap_live_release(struct heap_live *live)
{
    free(live->entries);
    free(live->processes);
    free(live->sites);
    id_table_release(&live->process_index);
    id_table_release(&live->site_index);
    *live = (struct heap_live){0};
}

size_t heap_live_memory(const struct heap_live *live)
{
    return (live->mask + 1) * sizeof(*live->entries) +
           live->process_capacity * sizeof(*live->processes) +
           live->site_capacity * sizeof(*live->sites) +
           (live->site_index.mask + live->process_index.mask + 2) * sizeof(uint64_t);
}

/* ---- processes ---- */

uint32_t heap_live_find_process(const struct heap_live *live, uint32_t pid)
{
    struct id_probe probe = id_probe_start(hash_word(pid));
    uint32_t id;
    while ((id = id_table_next(&live->process_index, &probe)) != ID_NONE)
        if (live->processes[id].pid == pid)
            return id;
    return HEAP_LIVE_NONE;
}

static void index_process(struct heap_live *live, uint32_t id)
{
    if (live->process_index.used > live->process_count + STALE_INDEX) {
        id_table_clear(&live->process_index);
        for (uint32_t i = 0; i < live->process_count; i++)
            if (live->processes[i].pid)
                id_table_insert(&live->process_index, hash_word(live->processes[i].pid), i);
        return;
    }
    id_table_insert(&live->process_index, hash_word(live->processes[id].pid), id);
}

uint32_t heap_live_process(struct heap_live *live, uint32_t pid)
{
    uint32_t id = pid ? heap_live_find_process(live, pid) : HEAP_LIVE_NONE;
    if (id != HEAP_LIVE_NONE || !pid)
        return id;
    for (id = 0; id < live->process_count && live->processes[id].pid;)
        id++;
    if (id == HEAP_LIVE_PROCESSES_MAX)
        for (id = 0; id < live->process_count && live->processes[id].count;)
            id++;
    if (id == HEAP_LIVE_PROCESSES_MAX)
        return HEAP_LIVE_NONE;
    if (id == live->process_count) {
        array_reserve(live->processes, live->process_capacity, live->process_count + 1);
        live->process_count++;
    }
    live->processes[id] = (struct heap_live_process){.pid = pid};
    index_process(live, id);
    return id;
}

/* ---- sites ---- */

static uint64_t site_hash(const struct heap_live_site *site)
{
    return hash_word(hash_word((uint64_t)site->stack << 32 | site->labels) ^ site->process);
}

uint32_t heap_live_site(struct heap_live *live, uint32_t process, uint32_t stack, uint32_t labels)
{
    struct heap_live_site wanted = {.process = process, .stack = stack, .labels = labels};
    struct id_probe probe = id_probe_start(site_hash(&wanted));
    uint32_t id;
    while ((id = id_table_next(&live->site_index, &probe)) != ID_NONE)
        if (live->sites[id].stack == stack && live->sites[id].labels == labels &&
            live->sites[id].process == process)
            return id;
    if (live->site_count == HEAP_LIVE_SITES_MAX)
        heap_live_compact(live);
    if (live->site_count == HEAP_LIVE_SITES_MAX)
        return HEAP_LIVE_NONE;
    array_reserve(live->sites, live->site_capacity, live->site_count + 1);
    live->sites[live->site_count] = wanted;
    id_table_insert(&live->site_index, site_hash(&wanted), live->site_count);
    return live->site_count++;
}

void heap_live_reindex(struct heap_live *live)
{
    id_table_clear(&live->site_index);
    for (uint32_t i = 0; i < live->site_count; i++)
        id_table_insert(&live->site_index, site_hash(&live->sites[i]), i);
}

void heap_live_compact(struct heap_live *live)
{
    _Static_assert(sizeof(struct heap_live_entry) == 24, "the memory is counted in these");
    _cleanup_free_ uint32_t *moved = memory_zalloc(live->site_count + 1, sizeof(*moved));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < live->site_count; i++)
        if (live->sites[i].count) {
            moved[i] = kept;
            live->sites[kept++] = live->sites[i];
        }
    live->site_count = kept;
    for (size_t at = 0; at <= live->mask; at++)
        if (live->entries[at].pointer)
            live->entries[at].site = moved[live->entries[at].site];
    heap_live_reindex(live);
}

/* ---- entries ---- */

static size_t home(const struct heap_live *live, uint32_t process, uint64_t pointer)
{
    return (size_t)hash_word(pointer ^ (uint64_t)process << 48 ^ live->seed) & live->mask;
}

/* Where it is, or the empty place where it would be. */
static size_t find(const struct heap_live *live, uint32_t process, uint64_t pointer)
{
    size_t at = home(live, process, pointer);
    while (live->entries[at].pointer &&
           (live->entries[at].pointer != pointer || live->entries[at].process != process))
        at = (at + 1) & live->mask;
    return at;
}

static void grow(struct heap_live *live)
{
    struct heap_live_entry *before = live->entries;
    size_t count = live->mask + 1;
    live->entries = memory_zalloc(2 * count, sizeof(*live->entries));
    live->mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++)
        if (before[i].pointer)
            live->entries[find(live, before[i].process, before[i].pointer)] = before[i];
    free(before);
}

/* Longer ticks where the time would not fit. */
static uint64_t ticks(struct heap_live *live, int64_t time_ns)
{
    if (!live->began_ns)
        live->began_ns = time_ns;
    int64_t passed_ns = MAX(time_ns - live->began_ns, 0);
    while (passed_ns / live->tick_ns > TIME_MAX && live->tick_ns < INT64_MAX / 2) {
        live->tick_ns *= 2;
        for (size_t at = 0; at <= live->mask; at++)
            live->entries[at].time /= 2;
    }
    return (uint64_t)(passed_ns / live->tick_ns);
}

int64_t heap_live_time_ns(const struct heap_live *live, const struct heap_live_entry *entry)
{
    return live->began_ns + (int64_t)entry->time * live->tick_ns;
}

void heap_live_refuse(struct heap_live *live, uint32_t process, uint64_t weight)
{
    live->refused++;
    live->refused_bytes += weight;
    if (process < live->process_count)
        live->processes[process].refused++;
}

/* Empties the place, and fills it with entries that would have been there. */
static void remove_at(struct heap_live *live, size_t hole)
{
    struct heap_live_entry *gone = &live->entries[hole];
    struct heap_live_site *site = &live->sites[gone->site];
    site->count--;
    site->bytes -= gone->weight;
    site->objects = site->count ? site->objects - (double)gone->objects : 0;
    live->processes[gone->process].count--;
    for (size_t at = (hole + 1) & live->mask; live->entries[at].pointer;
         at = (at + 1) & live->mask) {
        size_t wanted = home(live, live->entries[at].process, live->entries[at].pointer);
        if (((at - wanted) & live->mask) >= ((at - hole) & live->mask)) {
            live->entries[hole] = live->entries[at];
            hole = at;
        }
    }
    live->entries[hole] = (struct heap_live_entry){0};
    live->used--;
}

bool heap_live_add(struct heap_live *live, uint32_t site_id, const struct heap_live_sample *sample)
{
    struct heap_live_site *site = &live->sites[site_id];
    struct heap_live_process *process = &live->processes[site->process];
    if (!sample->pointer || sample->pointer > POINTER_MAX)
        return false;
    size_t at = find(live, site->process, sample->pointer);
    if (live->entries[at].pointer)
        remove_at(live, at);
    if (live->used >= live->limit || process->count >= live->process_limit) {
        heap_live_refuse(live, site->process, sample->weight);
        return false;
    }
    if (live->used + 1 > (live->mask + 1) / 8 * 7)
        grow(live);
    uint64_t time = ticks(live, sample->time_ns), weight = MIN(sample->weight, WEIGHT_MAX);
    float objects = (float)sample->objects;
    live->entries[find(live, site->process, sample->pointer)] =
        (struct heap_live_entry){.pointer = sample->pointer,
                                 .process = site->process,
                                 .weight = weight,
                                 .time = time,
                                 .objects = objects,
                                 .site = site_id};
    live->used++;
    process->count++;
    site->count++;
    site->bytes += weight;
    site->objects += (double)objects;
    return true;
}

bool heap_live_remove(struct heap_live *live, uint32_t pid, uint64_t pointer)
{
    uint32_t process = heap_live_find_process(live, pid);
    if (!pointer || pointer > POINTER_MAX || process == HEAP_LIVE_NONE)
        return false;
    size_t at = find(live, process, pointer);
    if (!live->entries[at].pointer)
        return false;
    remove_at(live, at);
    return true;
}

void heap_live_forget(struct heap_live *live, uint32_t process)
{
    for (size_t at = 0; live->processes[process].count && at <= live->mask;) {
        if (live->entries[at].pointer && live->entries[at].process == process)
            remove_at(live, at); /* another may have moved here */
        else
            at++;
    }
    live->processes[process] = (struct heap_live_process){0};
}

const struct heap_live_entry *heap_live_next(const struct heap_live *live, size_t *at)
{
    while (*at <= live->mask) {
        const struct heap_live_entry *entry = &live->entries[(*at)++];
        if (entry->pointer)
            return entry;
    }
    return NULL;
}
