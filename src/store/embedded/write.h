/* SPDX-License-Identifier: Apache-2.0 */
/* A batch on its way to disk: what prepare.c makes of it and write.c commits. */
#pragma once

#include <semaphore.h>

#include "store/embedded/embedded.h"

struct parcel_block { /* a window as a block of its own */
    uint32_t series;
    int64_t start_ns, total;
    uint32_t rows;
    size_t at, length; /* in the parcel's data */
};

struct parcel_exemplar {
    uint32_t series;
    int64_t start_ns;
    struct store_exemplar exemplar; /* node of the file */
};

struct parcel { /* what goes into one file */
    struct file *file;
    struct parcel_block *blocks;
    struct parcel_exemplar *exemplars;
    size_t block_count, block_capacity, exemplar_count, exemplar_capacity;
    struct buffer data;
};

struct request {
    const char *tenant;
    bool has_batch;
    uint8_t batch[16];      /* digest of the sender's id */
    uint8_t unsure[16];     /* names the batch when it goes into several files */
    struct parcel *parcels; /* in the order of their files' names */
    size_t parcel_count;
    uint64_t rows;
    size_t bytes;
    bool grew; /* catalogs got series or stacks */

    /* the writer's */
    sem_t answered;       /* each sender has its own: none is woken early, none meets at a lock */
    struct request *twin; /* an earlier one of the group with the same batch id */
    int result;
    struct error error;
    struct request *next;
};

/* Finds files, series and stacks, and encodes the windows. On the caller's thread. */
int request_prepare(struct embedded *store, const struct store_batch *batch,
                    struct request *request, struct error *error);
void request_release(struct embedded *store, struct request *request);
