/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the symbol store. Private to src/symbol/store*.c. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "symbol/store/store.h"

#define SYMBOL_STORE_OPEN_MAX 256 /* indexes */
#define SYMBOL_BUILDS "builds"
#define SYMBOL_CONTENTS "contents"

struct symbol_source {
    char *tenant, *key;
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
    pthread_mutex_t lock; /* of the cache */
    /* Of uploads, which wait for memory with it; so nobody who has memory may wait for it. */
    pthread_mutex_t turn;
    pthread_mutex_t making; /* one file at a time is taken in or thrown out */
    struct symbol_source *sources[SYMBOL_STORE_OPEN_MAX];
    size_t source_count;
    uint64_t mapped_bytes; /* of all of them */
    uint64_t clock;
    bool mended; /* what the last one left behind was looked at */
    _Atomic uint64_t builds, bytes, made, refused, kept_out, removed;
};

/* DIRECTORY/builds/TENANT/ab/cdef.../NAME, with the tenant in hexadecimal, since it may have any
 * bytes; KEY and NAME may be "". */
void symbol_store_path(const struct symbol_store *store, const char *tenant, const char *key,
                       const char *name, struct buffer *ret_path);
extern const char *const symbol_file_names[SYMBOL_FILES];

/* Which of a build's files this one is. */
enum symbol_file symbol_file_of(const struct symbol_identity *identity);

/* Whether a file, -1 for none, and the index made with it are better than what the tenant has of
 * the build; *ret_quality is that of the better ones (store_compare.c). With `making` held. */
bool symbol_store_improves(struct symbol_store *store, const char *tenant,
                           const struct symbol_identity *identity, int file,
                           const struct buffer *index, enum symbol_index_quality *ret_quality);

/* Whether an index knows where code lies in its file: that of a debug file alone doesn't. */
bool symbol_store_is_placed(const struct symbol_index *index);

/* An open index of the build is outdated. */
void symbol_store_forget(struct symbol_store *store, const char *tenant, const char *key);

/* Throws out what was used longest ago until there is room for so much more; -ENOSPC. With the lock
 * `making` held. */
int symbol_store_make_room(struct symbol_store *store, uint64_t bytes, struct error *error);
/* All of a build; with `making` held. */
void symbol_store_remove(struct symbol_store *store, const char *tenant, const char *key);
/* Makes the index of a build without a readable one, or removes the build; with `making` held. */
void symbol_store_mend(struct symbol_store *store, const char *tenant, const char *key);
/* Notes that a build is used now. */
void symbol_store_touch(struct symbol_store *store, const char *tenant, const char *key);

/* ---- contents that tenants share (store_content.c); with `making` held ---- */

/* Puts the file `temporary`, open as `fd` and written, at `path`: as a link to the one content of
 * its hash, where the file system has links. */
int symbol_content_place(const struct symbol_store *store, int fd, const char *temporary,
                         const char *path, struct error *error);
/* Removes contents that no build links to, and adds up what the others take on disk. */
uint64_t symbol_content_sweep(const struct symbol_store *store);
