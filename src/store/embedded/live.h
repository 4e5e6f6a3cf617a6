/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of ten minutes of a raw file, added up in memory by service, version and type, before they
 * are rolled up: so that a query of the last minutes doesn't read the blocks of all series, and a
 * rollup doesn't read what has been added up already.
 *
 * Only what was committed since the last look is added: blocks with greater ids. Nothing of this is
 * stored. A slot is forgotten when windows are removed from its file, when the file's catalog is,
 * when memory for slots runs out, and when nobody used it for a while; it is then made again from
 * the blocks of all series, or the caller reads these. Compaction calls live_settle() and
 * live_remark(), since the blocks that it writes are no additions.
 */
#pragma once

#include "store/embedded/embedded.h"

/* A series of the rollup in one slot, as a block of one window with nodes of the raw file. Counted;
 * doesn't change. */
struct live_block {
    _Atomic unsigned references;
    uint32_t service, series; /* of the raw file: a series whose rollup labels and type it has */
    uint64_t hash;            /* of the rollup's series */
    int64_t total;
    size_t length;
    uint8_t data[];
};

struct live_list {
    struct live_block **list; /* by service */
    size_t count, capacity;
    unsigned damaged_blocks; /* that were left out */
};

void live_list_release(struct live_list *list);

/* Appends a slot's blocks, when all windows in it are in [from, to). A slot that isn't known is
 * made of the file's blocks if `make` is set. 1 when the slot was taken, 0 when the caller has to
 * read the blocks of all series. With the file's series loaded. */
int live_take(struct embedded *store, struct file *file, int64_t slot_ns, int64_t from_ns,
              int64_t to_ns, bool make, struct live_list *list, struct error *error);

/* With the file's `write_lock` held: adds what has come, before blocks are joined; and goes on
 * behind the blocks that there are then. */
void live_settle(struct embedded *store, struct file *file);
void live_remark(struct file *file);

/* With nobody else in the file: ids of series or nodes are about to change. */
void live_forget(struct file *file);
