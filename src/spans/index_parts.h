/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the index: segments, and what waits to be written. */
#pragma once

#include <limits.h>
#include <pthread.h>

#include "base/buffer.h"
#include "spans/block.h"
#include "spans/index.h"

#define SEGMENT_HEAD "assay spans 1\n\0\0" /* 16 bytes */
#define SEGMENT_HEAD_BYTES 16
#define RECENT_PUSHES 4096
#define SEGMENT_AGE_NS 3600000000000ll /* then it is full */

struct segment {
    uint64_t number; /* of its file */
    int fd;          /* of the one that is written to, and of all in memory; -1: by its path */
    uint64_t bytes, spans, blocks;
    int64_t first_ns, last_ns; /* of starts */
    int64_t begun_ns;
    uint64_t damaged; /* places where no block could be read when it was opened */
    bool full;
    bool sorted; /* since this process has opened the index */
};

struct span_tenant {
    char *name;
    struct segment *segments; /* by number; the last may still be written to */
    size_t count, capacity;
    char **unreadable; /* paths of files that are not segments, as far as can be seen */
    size_t unreadable_count, unreadable_capacity;
};

/* A call of span_index_write that waits. */
struct pending {
    struct pending *next;
    const char *tenant;
    const struct span_batch *batch;
    struct error *error;
    int result;
    bool taken, done;
};

struct span_index {
    char *directory;             /* NULL: in memory */
    pthread_mutex_t maintaining; /* taken before `lock`: full segments change with it held only */
    pthread_mutex_t lock;        /* over all that follows */
    pthread_cond_t changed;
    struct span_options options;
    struct span_tenant *tenants;
    size_t tenant_count, tenant_capacity;
    uint64_t next_number;
    struct pending *pending, **pending_end;
    size_t pending_spans;
    bool writing; /* a thread writes for all */
    uint64_t recent[RECENT_PUSHES];
    size_t recent_at;
    int64_t maintained_ns;       /* by the wall clock; 0: not yet */
    int64_t resumed_ns;          /* 0: never */
    char held[ERROR_TEXT_BYTES]; /* why retention has stopped; "": it hasn't */
    int64_t failed_ns;           /* the last write, by the monotonic clock */
    char failure[ERROR_TEXT_BYTES];
    struct span_stats stats;
};

int64_t index_now(const struct span_index *index);

/* ---- index.c; with the lock held ---- */

struct span_tenant *index_tenant(struct span_index *index, const char *name);
struct segment *index_segment(struct span_tenant *tenant, uint64_t number);

/* ---- segment.c ---- */

void segment_path(const struct span_index *index, const char *tenant, uint64_t number,
                  char path[PATH_MAX]);

/* Makes an empty file, or memory; sets the descriptor. */
int segment_create(const struct span_index *index, const char *tenant, struct segment *segment,
                   struct error *error);

/* Counts the blocks that the file has, and the places between them that are none; what follows the
 * last whole one is cut off when `mend`; otherwise the descriptor stays. -EBADMSG: not a segment.
 */
int segment_examine(const char *path, bool mend, struct segment *segment, struct error *error);

/* Appends whole blocks durably. After a failure the file is as it was. */
int segment_append(struct segment *segment, const struct buffer *blocks, struct error *error);

/* A copy of a segment that can be read without the lock; *ret_fd is the caller's. */
int segment_open(const struct span_index *index, const char *tenant, const struct segment *segment,
                 int *ret_fd);

/* Reads the blocks of a file up to `bytes`. */
int segment_read(int fd, uint64_t bytes, const struct span_query *query, span_block_fn *fn,
                 void *context, struct span_read *read);

/* Writes a batch as the new content of a full segment; with `batch` empty the file goes. */
int segment_replace(struct span_index *index, const char *tenant, struct segment *segment,
                    const struct span_batch *batch, struct error *error);
