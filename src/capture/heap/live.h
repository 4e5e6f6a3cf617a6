/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled allocations that have not been freed, by process and address, and what is live at each
 * site: a stack with labels of a process. Everything is bounded, for all processes together and for
 * each: an allocation beyond a limit is counted as allocated but not as live, and that is counted.
 * At most 64 bytes per entry. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idtable.h"

/* Entries fill up to seven eighths of the table. */
#define HEAP_LIVE_MAX ((1u << 19) / 8 * 7)         /* 12 MiB */
#define HEAP_LIVE_PROCESS_MAX ((1u << 18) / 8 * 7) /* of one process */
#define HEAP_LIVE_PROCESSES_MAX 4096
#define HEAP_LIVE_SITES_MAX (1u << 18)
#define HEAP_LIVE_NONE UINT32_MAX

struct heap_live_entry {
    uint64_t pointer : 48; /* 0: the place is empty */
    uint64_t process : 16; /* which of `processes` */
    uint64_t weight : 48;
    uint64_t time : 16; /* when it was allocated, in units of `tick_ns` since `began_ns` */
    float objects;      /* allocations that it stands for */
    uint32_t site;
};

struct heap_live_process {
    uint32_t pid; /* 0: the place is free */
    uint32_t count;
    uint64_t identity; /* the owner's, both: tell another process or program under this pid */
    uint64_t number;
    uint64_t refused; /* entries beyond its limit */
};

/* Live memory of a stack. */
struct heap_live_site {
    uint32_t process;       /* which of `processes` */
    uint32_t stack, labels; /* ids of the owner */
    uint32_t count;         /* entries */
    uint64_t bytes;
    double objects;
};

struct heap_live {
    struct heap_live_entry *entries;
    size_t mask, used, limit, process_limit;
    uint64_t seed; /* of their places: programs choose their pointers */
    struct heap_live_process *processes;
    uint32_t process_count;
    size_t process_capacity;
    struct id_table process_index; /* by pid */
    struct heap_live_site *sites;
    uint32_t site_count;
    size_t site_capacity;
    struct id_table site_index;
    int64_t began_ns, tick_ns;
    uint64_t refused; /* entries beyond the limits, */
    uint64_t refused_bytes;
    uint64_t unknown_frees; /* of pointers that are not there */
};

void heap_live_init(struct heap_live *live, size_t limit, size_t process_limit);
void heap_live_release(struct heap_live *live);

/* The process of this pid, added when it is new. HEAP_LIVE_NONE when there are too many. */
uint32_t heap_live_process(struct heap_live *live, uint32_t pid);
/* Likewise, but for adding it. */
uint32_t heap_live_find_process(const struct heap_live *live, uint32_t pid);
/* All that it holds is gone: it ended, or runs another program. */
void heap_live_forget(struct heap_live *live, uint32_t process);

/* The site, added when it is new. HEAP_LIVE_NONE when there are too many. */
uint32_t heap_live_site(struct heap_live *live, uint32_t process, uint32_t stack, uint32_t labels);
/* Sites that hold nothing go: ids of sites change, and the owner may give those left other stacks
 * and labels (heap_live_reindex). */
void heap_live_compact(struct heap_live *live);
void heap_live_reindex(struct heap_live *live);

struct heap_live_sample {
    uint64_t pointer, weight;
    double objects;
    int64_t time_ns;
};
/* Replaces an entry of the same pointer: its release was not seen. False beyond the limits. */
bool heap_live_add(struct heap_live *live, uint32_t site, const struct heap_live_sample *sample);
/* Counts one that there is no site for. */
void heap_live_refuse(struct heap_live *live, uint32_t process, uint64_t weight);
/* False when it is not there. */
bool heap_live_remove(struct heap_live *live, uint32_t pid, uint64_t pointer);

/* All entries: `*at` begins at 0. NULL at the end. */
const struct heap_live_entry *heap_live_next(const struct heap_live *live, size_t *at);
int64_t heap_live_time_ns(const struct heap_live *live, const struct heap_live_entry *entry);
size_t heap_live_memory(const struct heap_live *live);
