/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the store on ClickHouse. */
#pragma once

#include "base/digests.h"
#include "store/clickhouse/link.h"
#include "store/clickhouse/sql.h"
#include "store/cover.h"
#include "store/internal.h"

/* ---- tables (schema.c, docs/clickhouse.md) ---- */

/* Rows of `samples`: a push's windows and their rows are one insert into one table, so that they
 * are stored together or not at all. */
enum row_kind { ROW_WINDOW, ROW_SAMPLE, ROW_EXEMPLAR };

/* A *stream* is what a service has of one profile type; ids of stacks are unique in it. */

#define CLICKHOUSE_SCHEMA_VERSION 2 /* 2: views */

struct schema {
    unsigned version; /* 0: there is none */
    uint64_t seed;    /* of all digests in the database */
};

int schema_read(struct links *links, struct schema *ret_schema, struct error *error);
/* Whether the tables are of a cluster as the URL says; 0, too, when there are none. */
int schema_check_kind(struct links *links, struct error *error);

/* ---- the store ---- */

struct pending;

/* Known to be stored: digests of frames, stacks and series with their period. */
struct known {
    pthread_mutex_t lock;
    struct digest_table table;
    size_t limit_bytes;
};

struct commits {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pending *first, **end; /* waiting */
    size_t bytes, limit_bytes;    /* of those */
    bool busy;                    /* a thread commits */
};

struct retention_class {
    char **services; /* NULL: all others */
    unsigned raw_days;
};

struct clickhouse {
    struct store store;
    struct links links;
    struct known known;
    struct commits commits;
    uint64_t owner; /* of this process's intents */
    int64_t (*now)(void *context);
    void *now_context;

    pthread_mutex_t lock; /* of the rest */
    struct retention_class *classes;
    size_t class_count;
    uint64_t written_rows, written_batches, repeated_batches, commit_count, write_failures;
    int64_t retained_ns, retained_day; /* the last retention, by the monotonic clock; 0: never */
};

static inline struct clickhouse *clickhouse_of(struct store *store)
{
    return (struct clickhouse *)store;
}

/* What follows the name of a table that one host has, not all of a cluster together: inserts,
 * deletions and partitions are of those. */
static inline const char *own_suffix(const struct links *links)
{
    return links->address.cluster ? "_local" : "";
}

void retention_free(struct retention_class *classes, size_t count);
struct retention_class *retention_copy(const struct retention_class *classes, size_t count);

/* Days for which raw data of a service is kept; 0: for ever. */
unsigned clickhouse_raw_days(struct clickhouse *store, const char *service);

uint64_t stream_id(const struct clickhouse *store, const char *service, const char *type);
uint64_t series_id(const struct clickhouse *store, const struct labels *labels, const char *type);

/* ---- writing (write.c, encode.c, batches.c) ---- */

/* Rows of a batch for one day. */
struct day_rows {
    uint16_t day;
    struct buffer rows;
    /* Where its first window is: by this a later attempt finds out whether it was stored. */
    uint64_t stream, series;
    int64_t time_ns;
    bool stored; /* by an earlier attempt */
};

struct pending {
    struct pending *next;
    const char *tenant, *batch_id; /* the caller's, who waits */
    uint64_t batch;                /* hash of both; 0: without an id */
    struct buffer frames, stacks, series;
    struct day_rows *days;
    size_t day_count;
    struct digest *known; /* to note when they are stored */
    size_t known_count, known_capacity;
    uint64_t rows, windows;
    uint64_t attempt;
    bool uncertain, intended, settled, done; /* settled: an earlier attempt stored it */
    int result;
    struct error error;
};

size_t pending_bytes(const struct pending *pending);
void pending_release(struct pending *pending);

int clickhouse_encode(struct clickhouse *store, const struct store_batch *batch,
                      struct pending *pending, struct error *error);

bool known_has(struct known *known, struct digest digest);
void known_note(struct known *known, const struct digest *digests, size_t count);

int clickhouse_write(struct store *store, const struct store_batch *batch, struct error *error);

/* Which batches were stored before (result -EALREADY), are being stored by another server
 * (-EAGAIN), and what is missing of others; notes the intent to store those. */
int batches_begin(struct clickhouse *store, struct pending *list, struct error *error);
/* Those whose result is 0 are stored. */
int batches_end(struct clickhouse *store, struct pending *list, struct error *error);
/* Their inserts failed, and are certain not to be stored. */
void batches_withdraw(struct clickhouse *store, struct pending *list);

/* ---- reading (select.c, stacks.c, read.c, rows.c) ---- */

struct chosen_series {
    uint64_t stream, id;
    struct labels labels;
    char *type;
    bool selected, witness, seen;
};

struct chosen {
    struct chosen_series *list;
    size_t count, capacity, selected;
    struct id_table index;
};

void chosen_release(struct chosen *chosen);
#define _cleanup_chosen_ _cleanup_(chosen_release)

/* Exclusions hold for all but lists and deletions; covered time requires witnesses. */
enum chosen_for { CHOSEN_FOR_LIST, CHOSEN_FOR_ROWS, CHOSEN_FOR_COVER };
int chosen_load(struct clickhouse *store, const struct store_selection *selection,
                enum chosen_for purpose, const atomic_bool *cancelled, struct chosen *ret_chosen,
                struct error *error);
struct chosen_series *chosen_find(const struct chosen *chosen, uint64_t id);

/* "tenant = .. AND ..": rows of the chosen series in the selection's time. */
void chosen_where(const struct chosen *chosen, const struct store_selection *selection,
                  bool witnesses, struct buffer *sql);

/* Stacks of an answer as nodes of a profile. */
struct stack_ref {
    uint64_t stream, stack;
};

struct stack_nodes {
    struct profile *profile;
    struct id_table index, frames; /* into the arrays */
    struct stack_ref *stacks;
    uint32_t *nodes;
    size_t stack_count, stack_capacity, node_capacity;
    uint64_t *frame_ids;
    uint32_t *frame_list;
    size_t frame_count, frame_capacity, frame_id_capacity;
};

void stack_nodes_init(struct stack_nodes *nodes, struct profile *profile);
void stack_nodes_release(struct stack_nodes *nodes);

/* Fetches those that are not there yet. */
int stack_nodes_load(struct clickhouse *store, const struct store_selection *selection,
                     struct stack_nodes *nodes, const struct stack_ref *stacks, size_t count,
                     const struct store_limits *limits, struct error *error);
/* 0, the root, for stack 0 and those that are missing. */
uint32_t stack_nodes_find(const struct stack_nodes *nodes, uint64_t stream, uint64_t stack);

/* " AND (stream, stack) IN (..)": stacks that count for a function. */
void stacks_where(const struct store_selection *selection, const struct store_function *function,
                  bool cumulative, struct buffer *sql);

int clickhouse_series(struct store *store, const struct store_selection *selection,
                      store_series_fn *fn, void *context, struct error *error);
int clickhouse_merge(struct store *store, const struct store_selection *selection,
                     const struct store_limits *limits, struct profile *profile, unsigned type,
                     struct store_quality *quality, struct error *error);
int clickhouse_timeseries(struct store *store, const struct store_selection *selection,
                          const struct store_timeseries_query *query,
                          const struct store_limits *limits, struct point_groups *groups,
                          struct store_quality *quality, struct error *error);
int clickhouse_frames(struct store *store, const struct store_selection *selection,
                      const struct store_timeseries_query *query, const struct store_limits *limits,
                      store_frame_fn *fn, void *context, struct error *error);
int clickhouse_exemplars(struct store *store, const struct store_selection *selection,
                         const struct store_function *function, const struct store_limits *limits,
                         store_exemplar_fn *fn, void *context, struct error *error);
int clickhouse_scan(struct store *store, const struct store_selection *selection,
                    const struct store_limits *limits, store_window_fn *fn, void *context,
                    struct error *error);

/* ---- maintenance (maintain.c) ---- */

int clickhouse_maintain(struct store *store, const atomic_bool *cancelled, struct error *error);
int clickhouse_delete(struct store *store, const struct store_selection *selection, bool dry_run,
                      struct store_deleted *deleted, struct error *error);
int clickhouse_stats(struct store *store, struct store_stats *stats, struct error *error);
int clickhouse_check(struct store *store, store_text_fn *fn, void *context, struct error *error);
int clickhouse_tenants(struct store *store, store_text_fn *fn, void *context, struct error *error);
