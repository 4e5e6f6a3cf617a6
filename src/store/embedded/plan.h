/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files answer a query: the coarsest rollups that fit into the range, finer ones at its
 * edges, raw data for the rest and for slots that something came late for. A moment is covered by
 * exactly one tier, so nothing counts twice.
 */
#pragma once

#include "store/cover.h"
#include "store/embedded/embedded.h"
#include "store/embedded/live.h"

/* A slot that isn't rolled up yet, added up in memory. */
struct plan_live {
    struct file *file;
    struct live_list blocks;
};

struct plan_range {
    struct file *file;
    int64_t from_ns, to_ns;
};

struct plan {
    struct file_list list;
    struct plan_range *ranges; /* those of one file follow each other */
    size_t count, capacity;
    struct plan_live *lives; /* likewise */
    size_t live_count, live_capacity;
};

/* `query` may be NULL; with it, a slot must fit into a step. */
int plan_make(struct embedded *store, const struct store_selection *selection,
              const struct store_timeseries_query *query, const struct store_limits *limits,
              struct plan *ret_plan, unsigned *damaged_files, struct error *error);
void plan_release(struct embedded *store, struct plan *plan);

/* True when labels of this name are known in rollups. */
bool plan_is_rollup_label(const char *name);
/* Those of a series. */
void plan_rollup_labels(const struct labels *labels, struct labels *ret_labels);
bool plan_selector_fits_rollups(const struct selector *selector);

/* Callbacks of reading a file. Any may be NULL; without `block` no blocks are read. A service's
 * series come one after the other, between begin and end. A block's windows are open, its stacks
 * are not: most series of a day need none. Negative results end the reading. */
struct reader;
struct reader_calls {
    int (*begin)(struct reader *reader, struct file *file, uint32_t service, struct error *error);
    int (*block)(struct reader *reader, struct file *file, uint32_t series, struct block_view *view,
                 size_t first, size_t count, struct error *error);
    int (*end)(struct reader *reader, struct file *file, uint32_t service, struct error *error);
};

struct reader_work;

struct reader {
    struct embedded *store;
    const struct store_selection *selection;
    const struct store_limits *limits;
    const struct reader_calls *calls;
    struct store_quality *quality; /* may be NULL */
    struct covering *covering;     /* may be NULL */
    uint32_t group;                /* of `covering` that a block counts for: set by `block` */
    struct block_codec *codec;
    struct connection *connection; /* of the file being read */
    struct file *file;             /* whose connection it is */
    struct id_table seen;          /* series, by hash */
    uint64_t *hashes;
    size_t hash_count, hash_capacity;
    struct reader_work *work; /* that it shares with another */
    size_t unit;              /* of it, which is being read */
};

/* Reads all ranges of a plan. Damaged blocks are left out and counted, damaged files set aside. */
int reader_run(struct reader *reader, const struct plan *plan, struct error *error);

/* The same with two threads, when one is free to help. The second reader is like the first, with
 * stats of its own, which are added to the first's. Services are read in any order. */
int reader_run_pair(struct reader *first, struct reader *second, const struct plan *plan,
                    struct error *error);

/* For `end`: waits until all services before this one are done with. No lock may be held. Negative
 * when one of them failed, and nothing more is wanted. */
int reader_wait_turn(struct reader *reader, struct error *error);

/* The sum of the selected blocks' totals: from the index alone, whole blocks at the edges. */
int reader_total(struct reader *reader, const struct plan *plan, int64_t *ret_total,
                 struct error *error);
