/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store file's ids mean, in memory: strings, functions, mappings and frames (a profile
 * without samples), services with their stack trees, and series. Everything only grows. On disk it
 * is a list of chunks per table, each what one commit added; `kept` says how far that goes.
 *
 * The file that owns a catalog guards it: many readers or one that adds.
 */
#pragma once

#include "label/labels.h"
#include "store/tree.h"

enum catalog_table { TABLE_STRINGS, TABLE_FUNCTIONS, TABLE_MAPPINGS, TABLE_FRAMES, TABLE_NODES };
#define CATALOG_TABLES 4 /* that a file has once; nodes are per service */

struct catalog_service {
    char *name;
    struct tree tree;
    bool loaded;   /* the tree is in memory */
    uint32_t kept; /* nodes on disk, the root included */
};

struct catalog_series {
    struct labels labels;
    char *type;
    uint32_t service;
};

struct catalog {
    struct profile tables;
    struct catalog_service *services;
    struct catalog_series *series;
    size_t service_count, service_capacity, series_count, series_capacity;
    struct id_table service_index, series_index;
    uint32_t kept[CATALOG_TABLES]; /* entries on disk, "none" included */
    size_t kept_services, kept_series;
};

void catalog_init(struct catalog *catalog);
void catalog_release(struct catalog *catalog);
size_t catalog_memory(const struct catalog *catalog);

/* How many entries a table has; `service` matters for nodes. */
uint32_t catalog_count(const struct catalog *catalog, enum catalog_table table, uint32_t service);

/* Found or added; ids count from 0. */
uint32_t catalog_service(struct catalog *catalog, const char *name);
uint32_t catalog_series(struct catalog *catalog, const struct labels *labels, const char *type);

/* Entries [first, first + count) of a table as a chunk, and a chunk's entries back, which must
 * begin where the table ends. -EBADMSG when it is damaged. */
void catalog_pack(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                  uint32_t first, uint32_t count, struct buffer *out);
int catalog_unpack(struct catalog *catalog, enum catalog_table table, uint32_t service,
                   uint32_t first, const void *data, size_t length);

/* Which nodes of a service count for a function, by name: its own, or all that have it anywhere on
 * their stack. To be freed; one per node. */
bool *catalog_function_nodes(const struct catalog *catalog, uint32_t service, const char *function,
                             bool cumulative);

/* Label sets as a blob. */
void catalog_pack_labels(const struct labels *labels, struct buffer *out);
int catalog_unpack_labels(const void *data, size_t length, struct labels *labels);

/*
 * The nodes of a profile's stacks in a service's tree, adding what is new. Stacks are looked up by
 * a digest of all their frames' content first; only unknown ones are walked.
 */
struct stack_finder {
    const struct profile *from;
    uint64_t seed;
    uint64_t *string;     /* hashes; 0: not yet */
    struct digest *frame; /* digests; both 0: not yet */
    struct digest *node;
};

void stack_finder_init(struct stack_finder *finder, const struct profile *from, uint64_t seed);
void stack_finder_release(struct stack_finder *finder);
struct digest stack_finder_digest(struct stack_finder *finder, uint32_t node);
