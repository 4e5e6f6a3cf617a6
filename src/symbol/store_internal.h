/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the symbol store share. Private to src/symbol/store*.c. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "symbol/store.h"

#define SYMBOL_STORE_OPEN_MAX 256 /* indexes */

struct symbol_source {
    char *key;
    uint64_t hash;
    struct symbol_index index;
    unsigned references; /* one of them the cache's, while it is there */
    uint64_t last;
    int64_t noted;                     /* when its use was written down, in s */
    bool is_placed;                    /* the index knows where code lies in the file */
    uint64_t code_address, code_bytes; /* else, of its debug file: the only segment of code */
};

struct symbol_store {
    struct symbol_store_options options;
    char *directory;
    pthread_mutex_t lock;   /* of the cache */
    pthread_mutex_t making; /* one file at a time is taken in or thrown out */
    struct symbol_source *sources[SYMBOL_STORE_OPEN_MAX];
    size_t source_count;
    uint64_t mapped_bytes; /* of all of them */
    uint64_t clock;
    bool mended; /* what the last one left behind was looked at */
    _Atomic uint64_t builds, bytes, made, refused, kept_out, removed;
};

/* DIRECTORY/ab/cdef.../NAME; NAME may be "". */
void symbol_store_path(const struct symbol_store *store, const char *key, const char *name,
                       struct buffer *ret_path);
extern const char *const symbol_file_names[SYMBOL_FILES];

/* Whether an index knows where code lies in its file: that of a debug file alone doesn't. */
bool symbol_store_is_placed(const struct symbol_index *index);

/* What is open of a build is no longer true. */
void symbol_store_forget(struct symbol_store *store, const char *key);

/* Throws out what was used longest ago until there is room for so much more; -ENOSPC. With the lock
 * `making` held. */
int symbol_store_make_room(struct symbol_store *store, uint64_t bytes, struct error *error);
/* All of a build; with `making` held. */
void symbol_store_remove(struct symbol_store *store, const char *key);
/* Makes the index of a build that has none that can be read, or removes the build; with `making`
 * held. */
void symbol_store_mend(struct symbol_store *store, const char *key);
