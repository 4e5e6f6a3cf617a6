/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of the embedded store: a SQLite database of one tenant, class, tier and period, with
 * its catalog in memory while it is used. docs/formats/store.md describes the tables.
 *
 * Locks, in the order they are taken: `write_lock` (one transaction that writes at a time), then
 * `lock` (the catalog). Connections for reading come from a pool and belong to one thread at a
 * time. A file is counted: whoever uses it holds a reference (embedded.h).
 *
 * `error` is never NULL in here, and its code is what failed calls return.
 */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "store/file/catalog.h"
#include "store/store.h"

#define FILE_FORMAT 6
#define FILE_APPLICATION 0x61737379 /* "assy" */
#define FILE_SUFFIX ".assay"

enum sql {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_ADD_CHUNK,
    SQL_CHUNKS,
    SQL_COUNT_CHUNKS,
    SQL_REMOVE_CHUNKS,
    SQL_CLEAR_CHUNKS,
    SQL_ADD_SERVICE,
    SQL_SERVICES,
    SQL_CLEAR_SERVICES,
    SQL_ADD_SERIES,
    SQL_SERIES,
    SQL_CLEAR_SERIES,
    SQL_COUNT_SERIES,
    SQL_ADD_BLOCK,
    SQL_BLOCKS,
    SQL_SURE_BLOCKS,
    SQL_NEW_BLOCKS,
    SQL_LAST_BLOCK,
    SQL_BLOCKS_OF_SERIES,
    SQL_BLOCK_IDS,
    SQL_BLOCK,
    SQL_MOVE_BLOCK,
    SQL_REMOVE_BLOCK,
    SQL_INDEX_ENTRIES,
    SQL_BLOCK_ENTRIES,
    SQL_INDEX_CHUNKS,
    SQL_CHUNK_ENTRIES,
    SQL_INDEX_EXEMPLARS,
    SQL_EXEMPLAR_ENTRIES,
    SQL_SPANS,
    SQL_ALL_SPANS,
    SQL_TOTALS,
    SQL_FILE_STATS,
    SQL_CROWDED,
    SQL_ADD_EXEMPLAR,
    SQL_EXEMPLARS,
    SQL_REMOVE_EXEMPLARS,
    SQL_EXEMPLAR_NODES,
    SQL_MOVE_EXEMPLAR,
    SQL_DROP_EXEMPLAR,
    SQL_ADD_BATCH,
    SQL_FIND_BATCH,
    SQL_ADD_LATE,
    SQL_LATE,
    SQL_REMOVE_LATE,
    SQL_ADD_SLOT,
    SQL_SLOTS,
    SQL_REMOVE_SLOTS,
    SQL_NOTES,
    SQL_SET_META,
    SQL_GET_META,
    SQL_REMOVE_META,
    SQL_ADD_UNSURE,
    SQL_UNSURE,
    SQL_REMOVE_UNSURE,
    SQL_UNSURE_STARTS,
    SQL_REMOVE_UNSURE_BLOCKS,
    SQL_REMOVE_UNSURE_EXEMPLARS,
    SQL_ADD_DECIDED,
    SQL_FIND_DECIDED,
    SQL_CHECK,
    SQL_PAGES,
    SQL_FREE_PAGES,
    SQL_SHRINK,
    SQL_STATEMENTS,
};

struct connection {
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_STATEMENTS];
    struct connection *next;
};

struct file_span { /* of a block */
    uint32_t series;
    int64_t start_ns, last_ns;
};

struct file {
    char *path;
    const char *name; /* in path */
    char *tenant, *class_name;
    enum store_tier tier;
    int64_t from_ns, to_ns; /* its period */
    bool read_only;

    /* guarded by the store's lock */
    unsigned references;
    bool gone; /* removed or set aside: nobody may find it again */

    pthread_mutex_t write_lock;
    struct connection *writer;

    pthread_rwlock_t lock;
    struct catalog catalog;
    bool loaded;                  /* services and series */
    bool named;                   /* strings, functions, mappings and frames as well */
    int64_t used_ns;              /* monotonic: when somebody last took a reference */
    _Atomic size_t counted_bytes; /* of the catalog, when it was last looked at: see caches.c */

    pthread_mutex_t spans_lock; /* before `lock` */

    pthread_mutex_t live_lock; /* for what follows; after `write_lock`, before `lock` */
    struct live *live;         /* slots that are not rolled up yet (embedded/live.h), or NULL */
    void (*free_live)(struct live *live);

    pthread_mutex_t pool_lock;
    struct connection *idle;

    /* Guarded by write_lock. */
    int64_t rolled_until_ns; /* windows before this have been handed to the next tier: later ones
                                are noted as late */
    bool knows_rolled;
    _Atomic int64_t floor_ns; /* nothing older may be added: rollups of it are final */
    unsigned fresh;           /* small blocks since the last look for crowded places */
    int64_t verified_ns;      /* when file_verify was last asked by maintenance; 0: not yet */
    bool swept;               /* has been looked through for crowded places since it was opened */
    uint64_t changes;         /* commits since it was opened */
    uint64_t quiet;           /* state() in maintain.c when there was nothing more to do for it */
    uint64_t looked;          /* `changes` at the end of the last round */
    uint64_t tidied;          /* `changes` + 1 when its log was last cut off */
    uint8_t (*settled)[16];   /* decided since: to be removed from `unsure` */
    size_t settled_count, settled_capacity;
    atomic_bool blocks_damaged; /* a reader has met such, and the file is marked */
    uint8_t (*lost)[16];        /* parts of batches that another file refused: to be removed */
    size_t lost_count, lost_capacity;
    struct file_span *added; /* blocks of the transaction, for file_spans.c */
    size_t added_count, added_capacity;
    bool removed;       /* windows are removed by the transaction */
    bool notes_changed; /* by the transaction */

    /* Pending work after a deletion, as kept in the file: see scrub.c. Guarded by the
     * store's `maintenance`. */
    int64_t scrub;
};

/* How long the slots of a tier are (raw has none), how much time a compacted block covers, and how
 * much the longest may: imports bring a day of rollups in one. */
extern const int64_t tier_slot_ns[STORE_TIERS];
extern const int64_t tier_span_ns[STORE_TIERS];
extern const int64_t tier_block_ns[STORE_TIERS];
extern const char *const tier_names[STORE_TIERS];

/* The period of a tier that holds a time. */
void tier_period(enum store_tier tier, int64_t time_ns, int64_t *ret_from_ns, int64_t *ret_to_ns);

/* "raw-default-2026-11-15.assay" */
void file_name(char *out, size_t size, enum store_tier tier, const char *class_name,
               int64_t from_ns);
bool file_parse_name(const char *name, enum store_tier *ret_tier, char **ret_class,
                     int64_t *ret_from_ns);

/* The file of the period that holds a time; nothing is opened. */
struct file *file_new(const char *folder, const char *tenant, const char *class_name,
                      enum store_tier tier, int64_t time_ns, bool read_only);
void file_free(struct file *file);

/* Makes the database, whole or not at all. */
int file_create(struct file *file, struct error *error);

/* Opens the connection for writing and checks that the file is ours: -ENOTSUP when it is of a newer
 * format, -EBADMSG when it is damaged. With `write_lock` held, or before anybody else knows it. */
int file_open(struct file *file, struct error *error);

/* Reads the catalog unless it is there; trees come with file_load_tree. */
int file_load(struct file *file, struct error *error);

/* Its services and series only: all that queries about labels need. */
int file_load_series(struct file *file, struct error *error);

/* The tree of a service, when it isn't there. Takes `lock`. */
int file_load_tree(struct file *file, uint32_t service, struct error *error);

/* Forgets catalog and connections. Nobody else may use the file. */
void file_unload(struct file *file);

/* A connection for reading; goes back to the pool, or is closed when the pool is full. */
struct connection *file_borrow(struct file *file, struct error *error);
void file_return(struct file *file, struct connection *connection);

/* ---- when a raw file's series have windows: file_spans.c ---- */

/* For the writer's transaction: a block of it, all of its blocks, just before it is committed (with
 * `lock` held for writing), and that windows are gone. */
void file_note_span(struct file *file, uint32_t series, int64_t start_ns, int64_t last_ns);
void file_keep_spans(struct file *file);
void file_lose_spans(struct file *file);

/* Reads them unless they are known; `write_lock` is taken for a moment. They stay unknown, and
 * answers SPAN_MAYBE, in rollups, in a file that another process writes, and while windows are
 * being removed. */
int file_load_spans(struct file *file, struct error *error);

/* Whether a series has blocks that meet [from, to). With `lock` held. */
enum span_answer { SPAN_NO, SPAN_YES, SPAN_MAYBE };
enum span_answer file_span_meets(const struct file *file, uint32_t series, int64_t from_ns,
                                 int64_t to_ns);

/* False when no series has. */
bool file_meets(const struct file *file, int64_t from_ns, int64_t to_ns);

/* Whether the notes are right (file_check_notes), and the indexes by which blocks, chunks and
 * exemplars are found have each of them once and in order, and blocks only of known series. Pages
 * have no checksum of their own: one that was written to another's place can hide rows without an
 * error. -EBADMSG when they are not. With the series loaded, in a transaction. */
int file_verify(struct file *file, struct connection *connection, struct error *error);

/* ---- statements ---- */

/* Ready to be bound; NULL with an error in `error`. */
sqlite3_stmt *file_sql(struct file *file, struct connection *connection, enum sql which,
                       struct error *error);

/* 1: a row, 0: done, negative: failed, with a sentence that names the file. -EBADMSG means that the
 * database is damaged. A statement that is done or failed is reset. */
int file_step(struct file *file, sqlite3_stmt *statement, struct error *error);

/* For statements without results and parameters. */
int file_run(struct file *file, struct connection *connection, enum sql which, struct error *error);

/* ---- transactions of the writer; with `write_lock` held ---- */

int file_begin(struct file *file, struct error *error);

/* Ends it: writes what the catalog has beyond what is kept, and commits; or, when `result` is
 * negative, takes all back. Returns the result of both. */
int file_end(struct file *file, int result, struct error *error);

struct file_block {
    uint32_t series;
    int64_t start_ns, last_ns; /* of the first and the last window */
    unsigned level;            /* 0 as it came, 1 compacted */
    uint64_t windows, rows;    /* raw ones in it */
    int64_t total;
    const void *data;
    size_t length;
    const void *unsure; /* 16 bytes: see docs; NULL: none */
};
int file_add_block(struct file *file, const struct file_block *block, struct error *error);

/* Removes what the file has of a batch that never was whole, and has rollups of it made again. */
int file_remove_unsure(struct file *file, const void *id, struct error *error);
/* Tries to remove what is `lost`, in a transaction of its own. With `write_lock` held. */
void file_remove_lost(struct file *file);

/* ---- notes of what is rolled up, and other numbers: file_notes.c ---- */

/* -EBADMSG unless they are what the last transaction left. In a transaction, or with `write_lock`
 * held. Changes begin with this, so that damage is never sealed. */
int file_check_notes(struct file *file, struct connection *connection, struct error *error);

/* Makes the seal fit what the transaction changed; file_end does this. */
int file_seal_notes(struct file *file, struct error *error);

/* 1: there is one, 0: there is none, and *ret_value stays. */
int file_get_meta(struct file *file, struct connection *connection, const char *key,
                  int64_t *ret_value, struct error *error);
int file_set_meta(struct file *file, const char *key, int64_t value, struct error *error);
int file_remove_meta(struct file *file, const char *key, struct error *error);

/* Notes that slots of the next tier which were made already lack something; removes such a note,
 * unless more came since it was counted. */
int file_note_late(struct file *file, int64_t time_ns, struct error *error);
int file_remove_late(struct file *file, int64_t slot_ns, int64_t count, struct error *error);

/* Slots that a rollup has. */
int file_add_slot(struct file *file, int64_t slot_ns, struct error *error);
int file_remove_slots(struct file *file, int64_t from_ns, int64_t to_ns, struct error *error);

/* Puts the log's content into the file and cuts it off: -EBUSY while another process reads. */
int file_empty_log(struct file *file, struct error *error);
/* The same when nobody reads just then: the log takes room on the disk. */
int file_tidy_log(struct file *file, struct error *error);

/* Gives pages that nothing is in back to the file system, some at a time, when they are many: 1
 * when there are more. Takes `write_lock`. */
int file_shrink(struct file *file, struct error *error);

/* Sizes of the database and its log on disk. */
uint64_t file_bytes(const struct file *file);
