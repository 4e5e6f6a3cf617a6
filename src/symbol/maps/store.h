/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of name maps (map.h) by tenant, service and version. A new map replaces the older one
 * of its name. The list of all maps is in memory; maps are opened on demand, and a bounded number
 * stays open. docs/symbols.md describes the directory.
 *
 * Any thread may call anything but close.
 */
#pragma once

#include "symbol/maps/map.h"

#define SYMBOL_MAPS_MAX 100000 /* entries of one store */
#define SYMBOL_MAPS_OPEN_MAX 64
#define SYMBOL_MAP_ID_BYTES 33 /* 32 hexadecimal digits and a NUL */

struct symbol_maps;

struct symbol_maps_options {
    const char *directory;    /* made when missing */
    uint64_t file_bytes_max;  /* of what is sent; 0: 256 MiB */
    uint64_t total_bytes_max; /* of all maps; 0: 2 GiB. The least recently used ones make room. */
    int64_t unused_ns;        /* maps that were unused for this long are removed; 0: never */
};

int symbol_maps_open(const struct symbol_maps_options *options, struct symbol_maps **ret_maps,
                     struct error *error);
void symbol_maps_close(struct symbol_maps *maps); /* takes NULL */

struct symbol_maps_entry {
    char id[SYMBOL_MAP_ID_BYTES]; /* of the key */
    const char *tenant, *service, *version, *name;
    enum symbol_map_kind kind;
    uint64_t bytes, source_bytes; /* kept; sent */
    int64_t added, used;          /* seconds since 1970; use is noted once an hour */
};

/* Reads all of the source; the memory that this takes at most is symbol_maps_memory's. Calls
 * `fn` (may be NULL) with what is there now. */
typedef int symbol_maps_fn(void *context, const struct symbol_maps_entry *entry);
int symbol_maps_put(struct symbol_maps *maps, struct source *source,
                    const struct symbol_map_key *key, symbol_maps_fn *fn, void *context,
                    struct error *error);
size_t symbol_maps_memory(uint64_t source_bytes);
uint64_t symbol_maps_file_limit(const struct symbol_maps *maps);

/* A tenant's, by service, version and name, until `fn` returns other than 0. `fn` must not call
 * this store. */
int symbol_maps_list(struct symbol_maps *maps, const char *tenant, symbol_maps_fn *fn,
                     void *context);
/* -ENOENT: the tenant has no map with that id. */
int symbol_maps_delete(struct symbol_maps *maps, const char *tenant, const char *id,
                       struct error *error);
/* Removes what is unused for too long; a round in minutes. */
void symbol_maps_maintain(struct symbol_maps *maps);

struct symbol_maps_stats {
    uint64_t entries, bytes, open;
    uint64_t stored, refused, removed; /* since opened */
};
struct symbol_maps_stats symbol_maps_stats(struct symbol_maps *maps);

/* ---- asking (map_cache.c) ---- */

/* An open map; it stays so until it is given back, also when a newer one comes. */
struct symbol_map_use {
    struct symbol_map map;
    char id[SYMBOL_MAP_ID_BYTES];
    unsigned references;
    uint64_t last;
    int64_t noted; /* when its use was written down, in s */
};

/* The source map of a generated file, which is known by its address or path: the one whose name
 * has most parts of the path's end, at least the last. NULL: none, or two are as good. */
struct symbol_map_use *symbol_maps_javascript(struct symbol_maps *maps,
                                              const struct symbol_map_key *key, const char *file);
struct symbol_map_use *symbol_maps_jvm(struct symbol_maps *maps, const struct symbol_map_key *key);
void symbol_maps_give_back(struct symbol_maps *maps, struct symbol_map_use *use); /* takes NULL */
