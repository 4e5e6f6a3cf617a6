/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that walks in the kernel read (bpf/shared.h), as user space fills them: files' unwind
 * rows in a pool of a fixed size, from which the chunks that were not used for the longest time
 * make room for new ones; segments of files; and lists of processes' mappings.
 *
 * Walks read while we write. Each table has a way to notice: a slot of the pool has an owner that
 * is cleared before its rows change, and a mapping says which list it belongs to. A list that is
 * given back rests for a while before its place is used again.
 */
#pragma once

#include "bpf/shared.h"
#include "elf/unwind/rows.h"

/* Where the tables are: maps of the kernel, or memory in tests. */
struct unwind_tables {
    struct bpf_mapping *mappings;
    uint32_t *directory;
    uint32_t *slots_used;
    struct unwind_rule *rules;
    struct unwind_row *pool;
    uint32_t slot_count; /* a power of two */
};

/* Lists are handed out in blocks of 8, 16, ... mappings. */
#define POOL_LIST_CLASSES 15
#define POOL_REST_NS 1000000000 /* for a list that was given back */

struct pool_block {
    uint32_t first;
    int64_t since_ns;
};

struct pool_class {
    struct pool_block *free; /* the oldest first, from `head` on */
    size_t head, count, capacity;
};

/* A list of mappings, shared by processes that have the same. */
struct pool_list {
    struct bpf_process described; /* as the kernel has to know it */
    uint32_t users;
    uint32_t resets; /* of the pool, when it was made */
    unsigned class;
};

/* A file's rows. */
struct pool_file {
    uint32_t directory; /* where its entries begin */
    uint32_t page_count;
    uint32_t *chunk_pages; /* the first page of each chunk, and page_count behind the last */
    uint32_t chunk_count;
    uint32_t loaded; /* chunks that are in the pool */
};

/* Owner of a slot. */
struct pool_slot {
    uint32_t file; /* number; 0: nobody */
    uint32_t chunk;
};

struct unwind_pool {
    struct unwind_tables tables;
    struct pool_file *files; /* from 1 on */
    size_t file_count, file_capacity;
    struct pool_slot *slots;
    struct bpf_rows *segments; /* by number: what mappings of them say */
    uint32_t directory_used, mappings_used;
    uint32_t slots_used; /* of those that never had an owner */
    size_t rules_copied;
    struct pool_class classes[POOL_LIST_CLASSES];
    uint32_t list_count; /* that ever were: the last one's number */
    uint32_t resets;
    uint64_t loads;     /* chunks that were written */
    uint64_t evictions; /* chunks that had to go for others */
    bool full;          /* a table other than the pool has no room: only a reset helps */
};

void unwind_pool_init(struct unwind_pool *pool, const struct unwind_tables *tables);
void unwind_pool_release(struct unwind_pool *pool);

/* Everything goes but lists, which their users still leave. No walk may be running, or be told of
 * anything that was in the tables before. */
void unwind_pool_reset(struct unwind_pool *pool);

/* Rules that have come since the last time: before rows that use them are loaded. */
void unwind_pool_rules(struct unwind_pool *pool, const struct unwind_rules *rules);

/* Reserves space for a file's rows, and returns its number; 0 if there is no space. Loads nothing
 * yet. */
uint32_t unwind_pool_add_file(struct unwind_pool *pool, const struct unwind_rows *rows);

/* Brings in the rows of one address, or all of the file's where they take little of what is free.
 * Returns whether anything was missing. */
bool unwind_pool_load(struct unwind_pool *pool, uint32_t file, const struct unwind_rows *rows,
                      uint64_t address);
bool unwind_pool_load_all(struct unwind_pool *pool, uint32_t file, const struct unwind_rows *rows);

/* Segments are numbered by who knows them, below BPF_SEGMENTS_MAX. */
bool unwind_pool_knows_segment(const struct unwind_pool *pool, uint32_t number);
/* A segment of a file with rows, or (file 0) of one that has none. */
void unwind_pool_set_segment(struct unwind_pool *pool, uint32_t number, uint32_t file,
                             const struct unwind_rows *rows);

/* A list of mappings, by start, with one user; NULL when there is no room. */
struct pool_list *unwind_pool_add_list(struct unwind_pool *pool, const struct bpf_mapping *mappings,
                                       size_t count, int64_t now_ns);
/* Drops one user of the list, possibly the last. NULL is ignored. */
void unwind_pool_leave_list(struct unwind_pool *pool, struct pool_list *list, int64_t now_ns);
