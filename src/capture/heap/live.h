/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled allocations that have not been freed, by process and address. The table is bounded, for
 * all processes and for each: an allocation beyond a limit is counted as allocated but not as live,
 * and that is counted. At most 64 bytes per entry. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_LIVE_MAX (1u << 19)         /* entries: 32 MiB */
#define HEAP_LIVE_PROCESS_MAX (1u << 18) /* of one process */

struct heap_live_entry {
    uint64_t pointer; /* 0: the place is empty */
    uint64_t size, weight;
    uint64_t time_ns; /* when it was allocated */
    uint32_t pid;
    uint32_t stack, labels; /* ids of the owner */
    uint32_t unused;
};

struct heap_live {
    struct heap_live_entry *entries;
    size_t mask, used, limit, process_limit;
    struct heap_live_share *shares; /* of processes */
    size_t share_count, share_capacity;
    uint64_t refused; /* entries beyond the limits, */
    uint64_t refused_bytes;
    uint64_t unknown_frees; /* of pointers that are not there */
};

void heap_live_init(struct heap_live *live, size_t limit, size_t process_limit);
void heap_live_release(struct heap_live *live);

/* Replaces an entry of the same pointer: its release was not seen. False beyond the limits. */
bool heap_live_add(struct heap_live *live, const struct heap_live_entry *entry);
/* False when it is not there. */
bool heap_live_remove(struct heap_live *live, uint32_t pid, uint64_t pointer);
/* The process runs another program, or it is another process under the same pid. */
void heap_live_forget(struct heap_live *live, uint32_t pid);

/* All entries: `*at` begins at 0. NULL at the end. */
const struct heap_live_entry *heap_live_next(const struct heap_live *live, size_t *at);
