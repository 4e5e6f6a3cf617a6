/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the store of name maps. Private to src/symbol/map_*.c. */
#pragma once

#include <pthread.h>

#include "symbol/maps/store.h"

struct symbol_maps {
    struct symbol_maps_options options;
    char *directory;
    pthread_mutex_t lock;              /* of all that follows */
    pthread_mutex_t making;            /* one file at a time is read */
    struct symbol_maps_entry *entries; /* by tenant, service, version, name; texts are theirs */
    size_t count, capacity;
    uint64_t bytes, stored, refused, removed;
    struct symbol_map_use *open[SYMBOL_MAPS_OPEN_MAX];
    size_t open_count;
    uint64_t clock;
};

/* DIRECTORY/ID */
void symbol_maps_path(const struct symbol_maps *maps, const char *id, struct buffer *ret_path);

/* With the lock: the first entry of a service and version, and how many there are. */
size_t symbol_maps_range(const struct symbol_maps *maps, const struct symbol_map_key *key,
                         size_t *ret_count);
/* With the lock: an open copy of it is outdated. */
void symbol_maps_forget(struct symbol_maps *maps, const char *id);
/* With the lock. */
void symbol_maps_remove(struct symbol_maps *maps, size_t at);
