/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export files: batches of windows, each of one tenant, service, tier and stretch of time, and
 * complete in itself. docs/formats/export.md has every byte. What is in a batch is packed as in the
 * store's own files (catalog.h, block.h).
 */
#pragma once

#include "store/block/block.h"
#include "store/file/catalog.h"
#include "store/store.h"

#define EXPORT_MAGIC "assayexp"
#define EXPORT_VERSION 2
#define EXPORT_RECORD_BYTES_MAX (256u << 20)

struct export_exemplar {
    int64_t start_ns; /* of its window */
    struct store_exemplar exemplar;
};

struct export_series { /* of catalog.series with the same index */
    struct block_rows rows;
    struct export_exemplar *exemplars;
    size_t exemplar_count, exemplar_capacity;
};

struct export_batch {
    char *tenant;
    enum store_tier tier;
    struct catalog catalog; /* with one service, whose tree the rows' nodes are of */
    struct export_series *series;
    size_t series_count, series_capacity;
    uint64_t windows, rows; /* here: those of a rollup are its own */
};

void export_batch_init(struct export_batch *batch, const char *tenant, enum store_tier tier);
void export_batch_release(struct export_batch *batch); /* takes what was zeroed, too */
#define _cleanup_export_batch_ _cleanup_(export_batch_release)

/* The place for a series' windows, found or added. */
struct export_series *export_batch_series(struct export_batch *batch, const struct labels *labels,
                                          const char *type);

/* Appends the batch; puts its windows into order of time first. */
void export_batch_encode(struct export_batch *batch, struct block_codec *codec, struct buffer *out);

/* -EBADMSG when it can't be what export_batch_encode made; release it in any case. */
int export_batch_decode(const void *data, size_t length, struct block_codec *codec,
                        struct export_batch *ret_batch);

/* The same for the same windows, however stacks and series are numbered and ordered: 32
 * hexadecimal digits after a word. */
#define EXPORT_ID_BYTES 48
void export_batch_id(const struct export_batch *batch, char text[EXPORT_ID_BYTES]);

/* ---- the file around them ---- */

struct export_writer {
    store_sink_fn *sink;
    void *context;
    uint64_t chain; /* of all checksums so far */
    uint64_t batches, windows, rows, bytes;
};

int export_writer_begin(struct export_writer *writer);
int export_writer_batch(struct export_writer *writer, const struct buffer *content,
                        const struct export_batch *batch);
int export_writer_end(struct export_writer *writer);

struct export_reader {
    store_source_fn *source;
    void *context;
    uint64_t chain, batches, windows, rows;
    uint64_t bytes; /* read so far */
};

int export_reader_begin(struct export_reader *reader, struct error *error);

/* 1: a batch's content, 0: the end, and all was there. -EBADMSG: damaged; -ENODATA: cut off. */
int export_reader_next(struct export_reader *reader, struct buffer *content, struct error *error);

/* Counts what the content held, which the end is compared with. */
void export_reader_count(struct export_reader *reader, const struct export_batch *batch);
