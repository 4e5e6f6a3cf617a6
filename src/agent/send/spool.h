/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches on their way to the server, on disk: a file per batch, gone when the server has it.
 * Bounded in bytes, number and age: the oldest go first, and are counted. Where the disk takes
 * nothing (full, failing, read-only), a few batches wait in memory until it does again. Threads can
 * share it; one of them takes batches out. No lock is held over a write, so asking for stats
 * never waits for the disk.
 *
 * Each batch is sent, refused, damaged, dropped or waiting, and is counted exactly once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Batches are sent in the order of their ids: letters, digits and dashes, such as a time and then
 * something that never comes again. */
#define SPOOL_ID_BYTES 64

#define SPOOL_BYTES_DEFAULT (256ull << 20)
#define SPOOL_AGE_DEFAULT_NS (7 * 86400000000000ll)
#define SPOOL_MEMORY_DEFAULT (8ull << 20)
#define SPOOL_BATCHES_MAX 65536

struct spool;

struct spool_options {
    const char *folder;    /* made if it is not there */
    uint64_t limit_bytes;  /* on disk; 0: the default, and so for the others */
    int64_t age_ns;        /* older ones are dropped */
    uint64_t memory_bytes; /* that may wait there */
};

struct spool_stats {
    uint64_t batches, bytes;               /* that wait; bytes on disk */
    uint64_t memory_batches, memory_bytes; /* of them, those that are in memory alone */
    uint64_t deferred;  /* of those that wait, the ones that others go before for a while */
    uint64_t left;      /* batches that an earlier process left */
    uint64_t put, sent; /* batches, since it was opened */
    uint64_t dropped;   /* since then: all that was lost on the host, which is: */
    uint64_t dropped_full, dropped_old, dropped_memory;
    uint64_t damaged;               /* files that were not what had been written; set aside */
    uint64_t refused;               /* that the server will never take; set aside */
    char trouble[ERROR_TEXT_BYTES]; /* why the disk takes nothing; "": it does */
};

/* Batches that an earlier process left in the directory are sent first. Fails if another agent uses
 * the directory, or for a reason that is permanent. */
int spool_open(const struct spool_options *options, struct spool **ret_spool, struct error *error);
/* Writes batches that are only in memory, if the disk works. Takes NULL. */
void spool_close(struct spool *spool);

/* Returns 0 when it is on disk and 1 when it is in memory alone. */
int spool_put(struct spool *spool, const char *batch_id, const void *body, size_t length,
              struct error *error);

/* The oldest batch that isn't deferred, which stays until spool_done. Waits for one, up to the
 * limit. Returns 1, or 0 when none came. */
int spool_next(struct spool *spool, int timeout_ms, char ret_id[SPOOL_ID_BYTES],
               struct buffer *ret_body);

/* The server has the batch; or, with `refused`, rejects it permanently: it is kept in the directory
 * "refused", which is bounded. */
void spool_done(struct spool *spool, const char *batch_id, bool refused);

/* Lets other batches go first: for the given time at first, twice as long each time after that, up
 * to `longest_ns`. The other function takes the last deferral back. */
void spool_defer(struct spool *spool, const char *batch_id, int64_t wait_ns, int64_t longest_ns);
void spool_restore(struct spool *spool, const char *batch_id);

/* Ends the wait of spool_next, now and from now on. */
void spool_wake(struct spool *spool);

struct spool_stats spool_stats(struct spool *spool);
