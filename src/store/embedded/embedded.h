/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded store: a directory per tenant with files per tier, class and period (file.h). This
 * is what its parts share: embedded.c (opening, the list of files), write.c (batches and the writer
 * thread), plan.c and read.c (queries), maintain.c, retention.c and rollup.c, delete.c and scrub.c,
 * condition.c (what is wrong).
 */
#pragma once

#include <limits.h>
#include <semaphore.h>

#include "base/limits/budget.h"
#include "base/limits/pace.h"
#include "store/block/block.h"
#include "store/embedded/helper.h"
#include "store/file/file.h"
#include "store/internal.h"

#define DAY_NS 86400000000000ll
#define PROBLEMS_MAX 64
#define STORE_MEMORY_FULL                                                                          \
    "The stacks of the day exceed the store's memory limit; raise the memory limit, "              \
    "or "                                                                                          \
    "send fewer distinct stacks."
#define STORE_DISK_FULL                                                                            \
    "The store has reached its disk limit and no older data is left to delete; raise the limit "   \
    "or "                                                                                          \
    "keep data for a shorter time."

struct request; /* write.c */

/* Retention classes of one configuration. Readers may still use previous ones, which are small and
 * few, so these are freed when the store is closed. */
struct classes {
    struct classes *before;
    size_t count;             /* at least one; the last takes what no other does */
    struct store_class *list; /* owned, with all it points to */
};

/* A file that can't be read, until somebody acknowledges it. */
struct damage {
    char *path; /* where it is now */
    char *tenant, *why;
    int64_t from_ns, to_ns;
};

struct problem {
    char *text;
    int64_t at_ns; /* of the monotonic clock */
};

struct embedded {
    struct store store;
    char *directory;
    int lock_fd;
    bool read_only;
    _Atomic(struct classes *) classes; /* what holds now, and what held before */
    size_t memory_limit_bytes;
    _Atomic size_t catalog_bytes;      /* of all files' catalogs, as counted_bytes has them */
    _Atomic size_t live_bytes;         /* of slots that are not rolled up yet: live.h */
    _Atomic int64_t trimmed_ns;        /* monotonic: when growth last had them trimmed */
    atomic_bool memory_full;           /* with what pushes need */
    _Atomic uint64_t set_aside;        /* files, ever */
    struct budget *budget, own_budget; /* of queries and maintenance */
    _Atomic uint64_t disk_limit_bytes;
    unsigned commit_ms, late_ms;
    int64_t (*now)(void *context);
    void *now_context;

    pthread_mutex_t lock; /* for what follows, up to the next */
    struct file **files;
    size_t file_count, file_capacity;
    struct problem problems[PROBLEMS_MAX];
    size_t problem_count; /* ever */
    struct damage *damages;
    size_t damage_count, damage_capacity;
    struct error failure; /* of the last write, unless failed_ns is 0 */
    int64_t failed_ns;
    char held[ERROR_TEXT_BYTES]; /* why retention is stopped; "": it isn't */
    struct store_stats stats;
    struct block_codec *codecs[8];
    unsigned codec_count;
    bool disk_full;
    struct pin *pins; /* pins.c */
    size_t pin_count;
    bool shed[STORE_TIERS]; /* files of that tier were dropped for the disk limit */

    sem_t preparing;          /* places for those who prepare a batch: see write.c */
    _Atomic unsigned writing; /* batches being prepared or committed */
    pthread_mutex_t queue_lock;
    pthread_cond_t queue_changed;
    struct request *first, **last;
    size_t queued_bytes;
    bool had_company; /* the last group had several batches */
    bool stopping;
    bool has_writer;
    pthread_t writer;

    struct helpers helpers; /* of queries */

    pthread_mutex_t maintenance; /* one round at a time; for what follows */
    struct pace pace;            /* of compaction and rollups */
    uint64_t paid_rows;          /* written ones that have been credited to it */
    int64_t clock_limit_ns;
    int64_t ran_ns, resumed_ns; /* retention, by the clock on the wall; 0: never */
    int64_t saved_ns;           /* when these were; monotonic, 0: not yet */
    void (*note)(void *context, const char *text);
    void *note_context;

    /* Held shared while ids of series and stacks are in use; exclusively by scrubbing, which
     * changes them. */
    pthread_rwlock_t gate;
};

static inline struct embedded *embedded_of(struct store *store)
{
    return (struct embedded *)store;
}

static inline int64_t embedded_now(struct embedded *store)
{
    return store->now(store->now_context);
}

/* The file of that tenant, class and tier whose period holds the time, with a reference; NULL with
 * `error` set. Without `create`, NULL and no error when there is none. */
struct file *embedded_file(struct embedded *store, const char *tenant, const char *class_name,
                           enum store_tier tier, int64_t time_ns, bool create, struct error *error);
void embedded_unref(struct embedded *store, struct file *file);

/* All files of a tenant (NULL: of all) whose period meets [from, to), with references, ordered by
 * class, tier and time. */
struct file_list {
    struct file **files;
    size_t count;
};
struct file_list embedded_files(struct embedded *store, const char *tenant, int64_t from_ns,
                                int64_t to_ns);
void embedded_release(struct embedded *store, struct file_list *list);

/* Renames a damaged file, and forgets it with its last reference. */
void embedded_set_aside(struct embedded *store, struct file *file, const char *why);
/* Whether an error means that the file is damaged: by its code, or because another thread has just
 * set the file aside. */
bool embedded_is_damaged(struct embedded *store, const struct file *file, int code);

/* Removes a file for good. */
void embedded_remove(struct embedded *store, struct file *file);

/* condition.c. Records an event for operators. */
void embedded_problem(struct embedded *store, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Renames a file that nobody uses any more, and remembers it. */
void embedded_damaged(struct embedded *store, const struct file *file, const char *why);
/* Remembers a file that stays in use though parts of it are lost: an empty file of that name. */
void embedded_mark_damaged(struct embedded *store, const struct file *file, const char *why);
/* A query has left out a block: marks the file, unless that was acknowledged. */
void embedded_note_damaged_block(struct embedded *store, struct file *file);
/* One that was found under such a name; other names are passed over. */
void embedded_remember_damaged(struct embedded *store, const char *tenant, const char *folder,
                               const char *name);
unsigned embedded_damaged_files(struct store *store, const struct store_selection *selection);
int embedded_acknowledge(struct store *store, const char *tenant, const char *name,
                         char ret_path[static PATH_MAX], struct error *error);
int embedded_check_damages(struct embedded *store, store_text_fn *fn, void *context);
uint64_t embedded_free_bytes(const struct embedded *store);
/* Notes how a write ended. */
void embedded_count_write(struct embedded *store, int result, const struct error *error);
int embedded_writable(struct store *store, struct error *error);
void embedded_condition_release(struct embedded *store);

/* pins.c */
int embedded_set_pins(struct store *store, const struct store_pin *pins, size_t count);
int embedded_lost_pins(struct store *store, store_text_fn *fn, void *context);
/* Whether a pin keeps a file from retention. */
bool embedded_is_pinned(struct embedded *store, const struct file *file);
/* The pins of a file that was deleted all the same are lost; adds their ids to a text. */
void embedded_lose_pins(struct embedded *store, const struct file *file, struct buffer *ids);
void embedded_pins_release(struct embedded *store);

/* retention.c */
void embedded_load_retention(struct embedded *store);
void embedded_expire(struct embedded *store); /* with `maintenance` held, as the next */
void embedded_keep_to_disk_limit(struct embedded *store);
bool embedded_retention_held(struct embedded *store, char text[static ERROR_TEXT_BYTES]);
int embedded_resume_retention(struct store *store, struct error *error);

int embedded_set_retention(struct store *store, const struct store_options *options,
                           struct error *error);
const struct store_class *embedded_class_of(struct embedded *store, const char *service);
const struct store_class *embedded_class(struct embedded *store, const char *name);

struct block_codec *embedded_codec(struct embedded *store);
void embedded_codec_return(struct embedded *store, struct block_codec *codec);

/* write.c */
int embedded_start_writer(struct embedded *store, struct error *error);
void embedded_stop_writer(struct embedded *store);
/* -ENOSPC when so little of the disk is left that nothing more may be put there. */
int embedded_check_room(const struct embedded *store, struct error *error);
int embedded_write(struct store *store, const struct store_batch *batch, struct error *error);

/* reserve.c: frees the reserved space when the disk is full, and takes it again when it can. */
void embedded_use_reserve(const struct embedded *store);
void embedded_keep_reserve(const struct embedded *store);

void embedded_close(struct store *store);
/* entry.c */
extern const struct store_operations embedded_operations;
/* stats.c */
int embedded_stats(struct store *store, struct store_stats *stats, struct error *error);
int embedded_list_files(struct store *store, store_file_fn *fn, void *context, struct error *error);
int embedded_problems(struct store *store, store_text_fn *fn, void *context, struct error *error);
int embedded_tenants(struct store *store, store_text_fn *fn, void *context, struct error *error);

/* read.c */
int embedded_merge(struct store *store, const struct store_selection *selection,
                   const struct store_limits *limits, struct profile *profile, unsigned type,
                   struct store_quality *quality, struct error *error);
int embedded_timeseries(struct store *store, const struct store_selection *selection,
                        const struct store_timeseries_query *query,
                        const struct store_limits *limits, struct point_groups *groups,
                        struct store_quality *quality, struct error *error);
/* series.c */
int embedded_series(struct store *store, const struct store_selection *selection,
                    store_series_fn *fn, void *context, struct error *error);
int embedded_texts(struct store *store, const struct store_selection *selection,
                   enum store_texts what, const char *name, struct text_set *set,
                   struct error *error);
/* scan.c */
int embedded_frames(struct store *store, const struct store_selection *selection,
                    const struct store_timeseries_query *query, const struct store_limits *limits,
                    store_frame_fn *fn, void *context, struct error *error);
int embedded_exemplars(struct store *store, const struct store_selection *selection,
                       const struct store_function *function, const struct store_limits *limits,
                       store_exemplar_fn *fn, void *context, struct error *error);
int embedded_scan(struct store *store, const struct store_selection *selection,
                  const struct store_limits *limits, store_window_fn *fn, void *context,
                  struct error *error);
/* check.c */
int embedded_check(struct store *store, store_text_fn *fn, void *context, struct error *error);
/* maintain.c */
int embedded_maintain(struct store *store, const atomic_bool *cancelled, struct error *error);
/* The same, without taking room for the reserve: a deletion has used that and isn't over. Not
 * `paced`: whatever it takes. */
int embedded_round(struct embedded *store, bool paced, const atomic_bool *cancelled,
                   struct error *error);
/* caches.c. Counts what a file's catalog has grown by; from the limit on pushes are refused. */
void embedded_count_catalog(struct embedded *store, struct file *file);
/* Forgets what isn't in use, down to a part of the limit; more of it when memory is short. */
void embedded_trim_caches(struct embedded *store, bool short_of_memory);
void embedded_trim(struct store *store);
/* rollup.c: makes slots of the next tier; 1 when there is more to do */
int embedded_roll_up(struct embedded *store, struct file *file, struct error *error);
/* delete.c */
int embedded_delete(struct store *store, const struct store_selection *selection, bool dry_run,
                    struct store_deleted *deleted, struct error *error);

/* scrub.c: removes data from files that only deleted windows used, where that is noted and no query
 * uses the file. With `maintenance` held. 1 when work is left. */
int embedded_scrub(struct embedded *store, struct error *error);
/* Notes that a file is to be scrubbed; within the writer's transaction. */
int file_note_scrub(struct file *file, struct error *error);

/* export.c, import.c */
int embedded_export(struct store *store, const struct store_selection *selection,
                    const struct store_limits *limits, store_sink_fn *sink, void *context,
                    struct store_transfer *transfer, struct error *error);
int embedded_import(struct store *store, store_source_fn *source, void *context, const char *tenant,
                    struct store_transfer *transfer, struct error *error);

/* maintain.c: in order of time, with rows where encoding expects them. */
void block_rows_sort(struct block_rows *rows, struct block_rows *sorted);

/* rewrite.c. Removes a series' windows in [from, to) from its blocks, within the writer's
 * transaction, and adds how many raw windows those were. */
int file_remove_windows(struct file *file, struct block_codec *codec, uint32_t series,
                        int64_t from_ns, int64_t to_ns, struct store_deleted *removed,
                        struct error *error);
/* Only counts them. */
int file_count_windows(struct file *file, struct connection *connection, struct block_codec *codec,
                       uint32_t series, int64_t from_ns, int64_t to_ns,
                       struct store_deleted *counted, struct error *error);
