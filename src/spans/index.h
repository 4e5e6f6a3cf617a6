/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of spans: what is kept of them, by tenant and time, durable when a write returns, and
 * bounded by age and by bytes on disk. Spans are appended to segments (docs/formats/spans.md); a
 * full segment is sorted once by maintenance, and goes as a whole when it is too old or the limit
 * is reached. Memory holds a few numbers per segment and what is being read or written.
 *
 * Any thread may call anything at any time, except that nothing may run during close.
 */
#pragma once

#include <stdatomic.h>

#include "base/error.h"
#include "spans/span.h"

#define SPAN_DISK_DEFAULT (1ull << 30)
#define SPAN_RETENTION_DEFAULT (3 * 86400 * 1000000000ll)
#define SPAN_FUTURE_NS (600 * 1000000000ll) /* spans that start later than this are refused */

struct span_options {
    uint64_t disk_limit_bytes; /* of all tenants; in memory, of what is held there */
    int64_t retention_ns;
    int64_t clock_limit_ns;        /* how far the clock may jump until retention stops; 0: any */
    size_t segment_spans;          /* after so many, a segment is full */
    bool read_only;                /* files stay as they are; nothing may be written */
    int64_t (*now)(void *context); /* wall clock in ns, for tests; NULL: the real one */
    void *now_context;
};

struct span_stats {
    uint64_t written, writes; /* spans and commits, since the start */
    uint64_t repeated;        /* pushes that were there before */
    uint64_t too_old, too_new;
    uint64_t expired; /* spans that retention removed */
    uint64_t shed;    /* spans that went for the disk limit */
    uint64_t damaged; /* blocks that couldn't be read */
    uint64_t write_failures;
    uint64_t spans, bytes, segments; /* stored now */
    uint64_t damaged_files;          /* of those, and files that can't be read at all */
    bool retention_stopped;          /* see span_index_resume */
};

struct span_index;

/* `directory` may be NULL: in memory. Segments that a crash has cut off lose what was not
 * acknowledged; damage elsewhere is stepped over and counted. */
int span_index_open(const char *directory, const struct span_options *options,
                    struct span_index **ret_index, struct error *error);
void span_index_close(struct span_index *index); /* takes NULL */

/* Other limits from now on. */
void span_index_set_limits(struct span_index *index, const struct span_options *options);

/* The result of a write. */
struct span_written {
    uint64_t stored, too_old, too_new;
    bool repeated; /* a push of that digest was stored lately: nothing was done */
};

/* Returns when the spans are on disk, together with those of other threads. Spans of times that
 * can't be kept are taken out of the batch. `digest` is of the push, 0: none. `ready` (may be NULL)
 * is called before it waits. */
int span_index_write(struct span_index *index, const char *tenant, struct span_batch *batch,
                     uint64_t digest, void (*ready)(void *context), void *context,
                     struct span_written *ret_written, struct error *error);

struct span_query {
    const char *tenant;
    int64_t from_ns, to_ns;       /* starts of spans: [from, to) */
    const uint8_t *trace_id;      /* NULL: all traces */
    const atomic_bool *cancelled; /* may be NULL */
};

struct span_read {
    uint64_t spans, blocks, damaged; /* that were looked at */
};

/* Calls `fn` with each block that may have what is asked for; it also has other spans. The batch
 * is valid until `fn` returns. Non-zero ends the call, which returns that. -ECANCELED. */
typedef int span_block_fn(void *context, const struct span_batch *batch);
int span_index_read(struct span_index *index, const struct span_query *query, span_block_fn *fn,
                    void *context, struct span_read *ret_read, struct error *error);

/* Retention, the disk limit, and sorting of one full segment; returns 1 when there is more to do.
 * Retention stops while the clock disagrees with the newest span, or with the last time that this
 * was called, by more than clock_limit_ns. */
int span_index_maintain(struct span_index *index, struct error *error);

/* From now on retention trusts the clock again. */
void span_index_resume(struct span_index *index);

/* Calls `fn` with a sentence about each thing that is wrong now: damaged files, writes that failed
 * within the last minute, and retention that has stopped. Paths in them have the tenant. */
typedef int span_text_fn(void *context, const char *text);
int span_index_problems(struct span_index *index, span_text_fn *fn, void *context);

/* Reads all spans of all tenants in a directory that no index has open, and calls `fn` with a
 * sentence about each damaged file. -EBADMSG: there are some. */
int span_index_check(const char *directory, span_text_fn *fn, void *context, struct error *error);

/* Removes spans of a tenant that start in [from, to) and that `selects` selects (NULL: all): the
 * segments that have any are rewritten without them and their texts. `selects` is called without a
 * span before each block, and returns 1, 0 or an error, which ends the call. */
typedef int span_select_fn(void *context, const struct span_batch *batch, const struct span *span,
                           struct error *error);
int span_index_delete(struct span_index *index, const struct span_query *query,
                      span_select_fn *selects, void *context, bool dry_run, uint64_t *ret_spans,
                      struct error *error);

void span_index_stats(struct span_index *index, struct span_stats *ret_stats);
