/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of compiled unwind rows, one file per build ID (elf/unwind/rows_file.h), shared by
 * all runs and all processes of a user. Nothing depends on it: whatever is wrong with the
 * directory, with a file in it or with the disk is said at debug level, and binaries are compiled
 * instead.
 */
#pragma once

#include "elf/unwind/rows_file.h"

#define ROW_CACHE_BYTES_MAX (256ull << 20)
#define ROW_CACHE_ROWS_MIN 1000 /* fewer compile about as fast as a file is opened and read */

struct row_cache {
    int folder;           /* -1: there is no cache */
    uint64_t limit_bytes; /* of all files together; the least recently used go first */
    uint64_t held_bytes;  /* as far as is known; other processes write too */
    bool counted;         /* held_bytes was found out */
    uint64_t hits, misses, stored, removed;
};

/*
 * `path` is the directory; NULL means $ASSAY_CACHE, else /var/cache/assay/unwind for root, else
 * $XDG_CACHE_HOME/assay/unwind or ~/.cache/assay/unwind. An empty $ASSAY_CACHE means none. It is
 * created, for us alone. One that is not ours or that others can write to is not used.
 */
void row_cache_init(struct row_cache *cache, const char *path);
void row_cache_release(struct row_cache *cache);

/* False when the rows of this binary are not there, or not in order. */
bool row_cache_load(struct row_cache *cache, const struct rows_identity *identity,
                    struct unwind_rules *rules, struct unwind_rows *ret_rows);

/* Keeps them, if they are worth it. */
void row_cache_store(struct row_cache *cache, const struct rows_identity *identity,
                     const struct unwind_rows *rows, const struct unwind_rules *rules);
