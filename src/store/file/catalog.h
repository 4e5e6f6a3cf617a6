/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables behind a store file's ids, in memory: strings, functions, mappings and frames (a
 * profile without samples), services with their stack trees, and series. Tables only grow. On disk
 * each is a list of chunks, one for each commit; `kept` is how much of it is on disk.
 *
 * The file that owns a catalog guards it: many readers or one that adds.
 */
#pragma once

#include <pthread.h>

#include "label/labels.h"
#include "label/selector.h"
#include "store/fold.h"
#include "store/store.h"
#include "store/tree.h"

enum catalog_table { TABLE_STRINGS, TABLE_FUNCTIONS, TABLE_MAPPINGS, TABLE_FRAMES, TABLE_NODES };
#define CATALOG_TABLES 4 /* that a file has once; nodes are per service */

struct catalog_service {
    char *name;
    struct tree tree;
    bool loaded;   /* the tree is in memory */
    uint32_t kept; /* nodes on disk, the root included */
};

/* A series' labels and its type are texts of the index: they stay where they are until the catalog
 * goes, and must neither be changed nor released. */
struct catalog_series {
    struct labels labels;
    const char *type;
    uint64_t hash; /* of both: the same in every file */
    /* Of a raw file whose spans are known (file_spans.c): the starts of its first and its last
     * window, and the hours of the day that windows start in, one bit each. Without any, 0. */
    int64_t first_ns, last_ns;
    uint32_t hours;
    uint32_t service;
};

/* ---- the index of labels, catalog_index.c ---- */

struct index_pair { /* a label; or a type, whose name is "" */
    const char *value;
    uint32_t name;
    uint32_t first, last, count; /* series that have it */
    uint32_t next;               /* pair of the same name */
};

struct index_name {
    const char *text;
    uint32_t first, last; /* pairs */
};

struct index_slot { /* a label of a series */
    uint32_t pair;
    uint32_t next; /* series that has it */
};

struct label_index {
    struct arena texts;
    struct index_pair *pairs;
    struct index_name *names;
    size_t pair_count, pair_capacity, name_count, name_capacity;
    struct id_table pair_table, name_table;
};

struct catalog {
    struct profile tables;
    /* Of `tables`, by content: caches of what was seen unresolved. */
    struct digest_table frames, functions, mappings;
    struct plain_frames plain; /* of some or all of them, as queries need it */
    struct catalog_service *services;
    struct catalog_series *series;
    size_t service_count, service_capacity, series_count, series_capacity;
    struct id_table service_index, series_index;
    struct label_index index;
    bool spans_known;
    uint32_t hours;                /* of all series, when spans are known */
    unsigned spans_lost;           /* how often windows have been removed */
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
uint64_t catalog_series_hash(const struct labels *labels, const char *type);
/* ID_NONE: there is none. */
uint32_t catalog_find_series(const struct catalog *catalog, const struct labels *labels,
                             const char *type);

/* Behind a series' labels is a slot for each, and one for its type. */
static inline struct index_slot *catalog_slots(const struct catalog_series *series)
{
    return (struct index_slot *)(series->labels.list + series->labels.count);
}

void label_index_release(struct label_index *index);
size_t label_index_memory(const struct label_index *index);

/* Ids of a name, and of a name's value; ID_NONE when no series has it. */
uint32_t label_index_name(const struct label_index *index, const char *name);
uint32_t label_index_pair(const struct label_index *index, uint32_t name, const char *value);

/* Gives a series its labels and its type; ids must come in ascending order. */
void catalog_index_series(struct catalog *catalog, uint32_t id, const struct labels *labels,
                          const char *type);

/* The next series after this one, which has the pair, that has it too; ID_NONE. */
uint32_t catalog_next_with(const struct catalog *catalog, uint32_t series, uint32_t pair);

/* Ids of the series of a type (NULL: of all) that a selector (NULL: all) means, ascending. To be
 * freed. Takes the lock (NULL: nobody adds series) for moments, and none while an expression runs;
 * texts of the index must stay meanwhile. -EDOM, -ECANCELED: see matching_test. */
int catalog_select(const struct catalog *catalog, pthread_rwlock_t *lock, const char *type,
                   const struct selector *selector, struct match_budget *budget, uint32_t **ret_ids,
                   size_t *ret_count, struct error *error);

/* ---- chunks, catalog_chunks.c ---- */

/* Entries [first, first + count) of a table as a chunk: as fast as can be, or smaller, or by
 * columns when there are enough of them. */
void catalog_pack(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                  uint32_t first, uint32_t count, struct buffer *out);
void catalog_pack_zstd(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                       uint32_t first, uint32_t count, struct buffer *out);
void catalog_pack_joined(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                         uint32_t first, uint32_t count, struct buffer *out);

/* A chunk's entries back, which must begin where the table ends. -EBADMSG when it is damaged. */
int catalog_unpack(struct catalog *catalog, enum catalog_table table, uint32_t service,
                   uint32_t first, const void *data, size_t length);

/* Which nodes of a service count for a function, its own, or all that have it anywhere on
 * their stack. To be freed; one per node. */
bool *catalog_function_nodes(const struct catalog *catalog, uint32_t service,
                             const struct store_function *function, bool cumulative);

/* Label sets as a blob. */
void catalog_pack_labels(const struct labels *labels, struct buffer *out);
int catalog_unpack_labels(const void *data, size_t length, struct labels *labels);

/* A row of the table of series: its labels, and a checksum of them and of the row's other columns.
 * -EBADMSG when it isn't what was written. */
struct catalog_row {
    int64_t id, service;
    const char *type;
};
void catalog_pack_row(const struct catalog_row *row, const struct labels *labels,
                      struct buffer *out);
int catalog_unpack_row(const struct catalog_row *row, const void *data, size_t length,
                       struct labels *labels);

/*
 * The nodes of a profile's stacks in a service's tree, adding what is new. Stacks are looked up by
 * a digest of all their frames' content first; only unknown ones are walked.
 */
struct stack_finder {
    const struct profile *from;
    uint64_t seed;
    uint64_t *string, *function, *mapping; /* hashes; 0: not yet */
    struct digest *frame;                  /* digests; both 0: not yet */
    struct digest *node;
};

void stack_finder_init(struct stack_finder *finder, const struct profile *from, uint64_t seed);
void stack_finder_release(struct stack_finder *finder);
struct digest stack_finder_digest(struct stack_finder *finder, uint32_t node);
