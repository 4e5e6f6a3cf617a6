/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow's IPC streams: a schema, then dictionaries and batches of columns. The reader takes what
 * profilers send: integers, times, text, fixed bytes, lists and list views, structures, runs,
 * dictionaries, buffers compressed with LZ4 or zstd. Columns of other types are skipped over, where
 * their layout is known.
 *
 * All of it is in memory, and everything read points into the caller's bytes or the stream's arena:
 * it lives until arrow_close(). Lengths and offsets are checked when a batch is read, contents when
 * a cell is: a cell of damaged content is null.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define ARROW_FIELDS_MAX 1024 /* of a schema, nested ones included */
#define ARROW_DEPTH_MAX 16

enum arrow_kind {
    ARROW_NULL,
    ARROW_BOOL,
    ARROW_INTEGER, /* and times */
    ARROW_FIXED,   /* so many bytes each */
    ARROW_TEXT,    /* and bytes */
    ARROW_TEXT_VIEW,
    ARROW_LIST,
    ARROW_LIST_VIEW,
    ARROW_FIXED_LIST,
    ARROW_STRUCT,
    ARROW_RUNS,
};

struct arrow_field {
    const char *name; /* not terminated */
    size_t name_length;
    enum arrow_kind kind; /* of the values, where there is a dictionary */
    unsigned width;       /* bytes of a value; of offsets: 4 or 8; of a fixed list: its length */
    bool is_signed;
    bool has_dictionary, index_is_signed;
    unsigned index_width;
    int64_t dictionary;
    struct arrow_field *children;
    unsigned child_count;
};

struct arrow_bytes {
    const uint8_t *data;
    size_t length;
};

struct arrow_array {
    const struct arrow_field *field;
    uint64_t length;
    const uint8_t *valid;      /* a bit each; NULL: all are */
    const uint8_t *data;       /* values, offsets, views, or indexes of the dictionary */
    const uint8_t *sizes;      /* of list views */
    struct arrow_bytes *texts; /* what offsets or views point into */
    unsigned text_count;
    struct arrow_array *children;
    const struct arrow_array *values; /* of the dictionary; NULL: none */
};

struct arrow_dictionary {
    const struct arrow_field *field; /* of its values */
    int64_t id;
    struct arrow_array *values; /* NULL: has not come yet */
};

struct arrow_stream {
    struct arena arena;
    const uint8_t *at, *end;
    size_t limit_bytes;        /* that may still be decompressed */
    struct arrow_field schema; /* a structure of all columns */
    unsigned field_count;
    struct arrow_dictionary *dictionaries;
    size_t dictionary_count, dictionary_capacity;
};

/* Reads the schema. `bytes` stay the caller's. To be closed also after a failure. */
int arrow_open(struct arrow_stream *stream, const void *bytes, size_t length, size_t limit_bytes,
               struct error *error);
void arrow_close(struct arrow_stream *stream);
#define _cleanup_arrow_ _cleanup_(arrow_close)

/* 1 and the next batch, a structure of all columns; 0 at the end. */
int arrow_next(struct arrow_stream *stream, const struct arrow_array **ret_batch,
               struct error *error);

/* The child of that name of a structure, or of what lists or dictionaries hold; NULL: none. */
const struct arrow_array *arrow_child(const struct arrow_array *array, const char *name);
bool arrow_is_named(const struct arrow_field *field, const char *name);

/* ---- cells ---- */

/* A value where it is in the end, behind runs and dictionaries: equal cells are equal values. */
struct arrow_cell {
    const struct arrow_array *array; /* NULL: null */
    uint64_t index;
};

/* Takes NULL, and any index. */
struct arrow_cell arrow_cell(const struct arrow_array *array, uint64_t index);

/* False for null, and what is no such value. */
bool arrow_text(struct arrow_cell cell, const char **ret_text, size_t *ret_length);
bool arrow_number(struct arrow_cell cell, int64_t *ret_number);
/* Where a list's elements are in *ret_elements. */
bool arrow_list(struct arrow_cell cell, const struct arrow_array **ret_elements,
                uint64_t *ret_first, uint64_t *ret_count);

/* The first index behind `index` from which a column of runs may have another value; of other
 * columns the next. */
uint64_t arrow_run_end(const struct arrow_array *array, uint64_t index);
