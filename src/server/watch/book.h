/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the watch: marks (deploys, and what people note) and findings, by tenant, bounded,
 * in one file that is replaced as a whole (docs/formats/watch.md). Any thread, with the lock held
 * where that is said.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define WATCH_FILE "watch.json"
#define WATCH_MARKS_MAX 1000       /* of a tenant; the oldest go first */
#define WATCH_FINDINGS_MAX 500     /* likewise; closed ones go first */
#define WATCH_NAME_BYTES 257       /* of a service, version or name, with its NUL */
#define WATCH_FUNCTION_BYTES 4097  /* likewise */
#define WATCH_MARK_TEXT_BYTES 1025 /* likewise */
#define WATCH_ID_BYTES 20

/* Something happened: a version of a service started, or somebody says so. */
struct watch_mark {
    int64_t time_ns;
    char *service, *version, *text; /* "" where there is none */
    char *by;                       /* who posted it; "": derived from labels */
    uint64_t looks; /* how often the watch has compared this version with the one before */
};

enum watch_close {
    WATCH_OPEN,
    WATCH_GONE,     /* comparisons no longer find it */
    WATCH_REPLACED, /* its version no longer runs, and no later one does */
    WATCH_NO_DATA,
    WATCH_CLOSES,
};
extern const char *const watch_close_names[WATCH_CLOSES];

enum watch_kind { WATCH_REGRESSION, WATCH_LEAK, WATCH_CHANGE, WATCH_KINDS };
extern const char *const watch_kind_names[WATCH_KINDS];

/* A function that grew from one version of a service to the next, memory that climbs, or a function
 * that grew within a version: then both versions are the same. */
struct watch_finding {
    char id[WATCH_ID_BYTES];
    enum watch_kind kind;
    char *service, *version, *base_version, *type, *function;
    int64_t opened_ns, seen_ns, closed_ns; /* when comparisons first and last found it */
    int64_t base_from_ns, base_to_ns;      /* what was compared last */
    int64_t from_ns, to_ns;
    double growth, growth_low, growth_high; /* new / base - 1 */
    double base_share, share;               /* of the service's total */
    char unit[16];                          /* "share" or "per request": what grew */
    /* Of a leak, for one process: bytes per hour, what this site and the whole process hold, and
     * the limit of memory; 0: not known. */
    double slope, slope_low, slope_high;
    double site_bytes, process_bytes, limit_bytes;
    uint64_t misses; /* comparisons in a row that didn't find it */
    enum watch_close closed;
};

struct watch_tenant {
    char *name;
    struct watch_mark *marks; /* by time */
    size_t mark_count, mark_capacity;
    struct watch_finding *findings; /* in the order in which they were opened */
    size_t finding_count, finding_capacity;
};

struct watch_book {
    char *path;             /* NULL: nothing is kept */
    char *damaged;          /* a file that was set aside, and is still there; NULL: none */
    pthread_mutex_t saving; /* taken before `lock`; over the file */
    pthread_mutex_t lock;   /* over all that follows */
    struct watch_tenant *tenants;
    size_t tenant_count, tenant_capacity;
    uint64_t dropped_marks, dropped_findings; /* for want of room, since the start */
    bool unsaved;
};

/* `directory` may be NULL. A file that makes no sense is set aside, and the book begins empty. */
int watch_book_open(const char *directory, struct watch_book *book, struct error *error);
void watch_book_release(struct watch_book *book);

/* Writes the file if anything has changed; returns when it is on disk. */
int watch_book_save(struct watch_book *book, struct error *error);

/* ---- with the lock held; pointers are valid until the next call that adds ---- */

struct watch_tenant *watch_book_tenant(struct watch_book *book, const char *name);

/* NULL: none. The version may be "" in a mark, but no service's version is. */
struct watch_mark *watch_mark_of(struct watch_tenant *tenant, const char *service,
                                 const char *version);

/* Adds a copy. A second mark of one version of a service replaces the time, text and author of the
 * first if it was posted, and changes nothing otherwise. False: it is older than all of as many
 * marks as there may be. */
bool watch_mark_add(struct watch_book *book, struct watch_tenant *tenant,
                    const struct watch_mark *mark);

/* The open one for this function; NULL: none. */
struct watch_finding *watch_finding_open(struct watch_tenant *tenant, enum watch_kind kind,
                                         const char *service, const char *type,
                                         const char *function);

/* Adds a copy, with an id of its own. NULL: there are too many open ones, which is counted. */
struct watch_finding *watch_finding_add(struct watch_book *book, struct watch_tenant *tenant,
                                        const struct watch_finding *finding);

/* ---- book_file.c; with the lock held ---- */

void watch_book_write(const struct watch_book *book, struct buffer *out);
int watch_book_read(struct watch_book *book, const char *text, size_t length, struct error *error);
