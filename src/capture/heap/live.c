// SPDX-License-Identifier: Apache-2.0
// The table of live samples: see live.h. Open addressing, and deletion that moves later entries of
// the same run forward, so that nothing is left behind however long it goes on.

#include "capture/heap/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/idtable.h"
#include "base/memory.h"

#define FIRST_SIZE 1024

/* How many entries a process has. Few processes allocate at once: a list will do. */
struct heap_live_share {
    uint32_t pid;
    uint32_t count;
};

void heap_live_init(struct heap_live *live, size_t limit, size_t process_limit)
{
    *live = (struct heap_live){.limit = limit, .process_limit = process_limit};
    live->entries = memory_zalloc(FIRST_SIZE, sizeof(*live->entries));
    live->mask = FIRST_SIZE - 1;
}

void heap_live_release(struct heap_live *live)
{
    free(live->entries);
    free(live->shares);
    *live = (struct heap_live){0};
}

static size_t home(const struct heap_live *live, uint32_t pid, uint64_t pointer)
{
    return (size_t)hash_word(pointer ^ (uint64_t)pid << 47) & live->mask;
}

/* Where it is, or the empty place where it would be. */
static size_t find(const struct heap_live *live, uint32_t pid, uint64_t pointer)
{
    size_t at = home(live, pid, pointer);
    while (live->entries[at].pointer &&
           (live->entries[at].pointer != pointer || live->entries[at].pid != pid))
        at = (at + 1) & live->mask;
    return at;
}

static struct heap_live_share *share_of(struct heap_live *live, uint32_t pid)
{
    for (size_t i = 0; i < live->share_count; i++)
        if (live->shares[i].pid == pid)
            return &live->shares[i];
    array_reserve(live->shares, live->share_capacity, live->share_count + 1);
    live->shares[live->share_count] = (struct heap_live_share){.pid = pid};
    return &live->shares[live->share_count++];
}

static void leave_share(struct heap_live *live, uint32_t pid)
{
    struct heap_live_share *share = share_of(live, pid);
    if (share->count)
        share->count--;
    if (!share->count)
        *share = live->shares[--live->share_count];
}

static void grow(struct heap_live *live)
{
    struct heap_live_entry *before = live->entries;
    size_t count = live->mask + 1;
    live->entries = memory_zalloc(2 * count, sizeof(*live->entries));
    live->mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++)
        if (before[i].pointer)
            live->entries[find(live, before[i].pid, before[i].pointer)] = before[i];
    free(before);
}

bool heap_live_add(struct heap_live *live, const struct heap_live_entry *entry)
{
    if (!entry->pointer)
        return false;
    heap_live_remove(live, entry->pid, entry->pointer);
    struct heap_live_share *share = share_of(live, entry->pid);
    if (live->used >= live->limit || share->count >= live->process_limit) {
        live->refused++;
        live->refused_bytes += entry->weight;
        if (!share->count)
            *share = live->shares[--live->share_count];
        return false;
    }
    if (live->used + 1 > (live->mask + 1) / 4 * 3)
        grow(live);
    live->entries[find(live, entry->pid, entry->pointer)] = *entry;
    live->used++;
    share->count++;
    return true;
}

/* Empties the place, and fills it with entries that would have been there. */
static void remove_at(struct heap_live *live, size_t hole)
{
    for (size_t at = (hole + 1) & live->mask; live->entries[at].pointer;
         at = (at + 1) & live->mask) {
        size_t wanted = home(live, live->entries[at].pid, live->entries[at].pointer);
        if (((at - wanted) & live->mask) >= ((at - hole) & live->mask)) {
            live->entries[hole] = live->entries[at];
            hole = at;
        }
    }
    live->entries[hole] = (struct heap_live_entry){0};
    live->used--;
}

bool heap_live_remove(struct heap_live *live, uint32_t pid, uint64_t pointer)
{
    size_t at = find(live, pid, pointer);
    if (!pointer || !live->entries[at].pointer)
        return false;
    remove_at(live, at);
    leave_share(live, pid);
    return true;
}

void heap_live_forget(struct heap_live *live, uint32_t pid)
{
    bool there = false;
    for (size_t i = 0; i < live->share_count; i++)
        there = there || live->shares[i].pid == pid;
    if (!there)
        return;
    for (size_t at = 0; at <= live->mask;) {
        uint64_t pointer = live->entries[at].pid == pid ? live->entries[at].pointer : 0;
        if (!pointer || !heap_live_remove(live, pid, pointer))
            at++; /* else another may have moved here */
    }
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
