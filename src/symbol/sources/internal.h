/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the store of sources. Private to src/symbol/source_*.c. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "symbol/sources/sources.h"

#define SOURCE_FILES_MAX                                                                           \
    500000 /* of all tenants: a limit of bytes alone would let inodes run out */

struct source_store {
    struct source_store_options options;
    char *directory;
    pthread_mutex_t lock; /* one list at a time is changed, and nothing while a round is made */
    _Atomic uint64_t builds, files, bytes, removed;
};

/* DIRECTORY/TENANT/NAME/REST, with the tenant in hexadecimal: it may have any bytes. */
void source_store_path(const struct source_store *store, const char *tenant, const char *name,
                       const char *rest, struct buffer *ret_path);

/* Lists are in a directory of their own; contents in one for each pair of first digits. */
#define SOURCE_BUILDS "builds"

/* Makes room for so much more; with the lock. -ENOSPC. */
int source_store_make_room(struct source_store *store, uint64_t bytes, struct error *error);
