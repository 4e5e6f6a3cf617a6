/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: profiles of many services over time, written in batches that are durable when the
 * call returns, and read as merged profiles, time series, series, labels and exemplars. Three
 * implementations share this interface and one test suite: the embedded one (SQLite files holding
 * column blocks, docs/formats/store.md), one in memory, and one on ClickHouse (docs/clickhouse.md).
 *
 * Words. A *series* is a label set (with service_name) and a profile type ("process_cpu:cpu:
 * nanoseconds:cpu:nanoseconds"). A *window* is one series' samples of one push: a start time, a
 * duration, and rows {stack, value}. A window belongs to a time range [from, to) when its start
 * does, so ranges that touch add up to the range of both. A *row* is what others call a sample.
 *
 * Threads: every call may be made from any thread at any time, except that nothing may run during
 * store_close. Callbacks run on the caller's thread and must not call the store; what they are
 * given is valid until they return. A callback that returns non-zero ends the call, which returns
 * that. Callbacks for series, frames, exemplars and windows must be quick, since a lock may be
 * held; callbacks for texts and points may block.
 *
 * Errors: 0 or a negative code with a sentence in `error` (which may be NULL). Codes beside
 * errno's: -EALREADY the batch was stored before, -E2BIG a limit was exceeded, -ECANCELED, -EINVAL
 * an invalid argument, -EDOM matching a selector's expressions takes too long, -ERANGE older than
 * the retention period, -ENOSPC the disk is full or the disk limit reached, -EROFS/-EACCES the
 * directory can't be written, -EAGAIN no memory was free for a query for some seconds.
 */
#pragma once

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "label/labels.h"
#include "profile/profile.h"

/* Limits of one batch: what is beyond is refused whole with -E2BIG or -EINVAL. */
#define STORE_TENANT_BYTES_MAX 64    /* letters, digits, '-', '_', '.', not first a '.' */
#define STORE_BATCH_ID_BYTES_MAX 256 /* any bytes but NUL */
#define STORE_SERIES_BYTES_MAX 65536 /* names and values of one label set */
#define STORE_ROWS_MAX (1u << 24)    /* of one window */
#define STORE_DEPTH_MAX 4096         /* frames of one stack */

/* Resolutions at which data is kept. Rollups have one series per service_name, version and type. */
enum store_tier { STORE_RAW, STORE_TEN_MINUTES, STORE_HOUR, STORE_DAY, STORE_TIERS };

struct budget; /* base/limits/budget.h */

/* How long the services of a class are kept, per tier, in days; 0: for ever. A service belongs to
 * the first class whose `services` list has it, else to the last class given, or to "default". */
struct store_class {
    const char *name;            /* letters, digits and '_'; part of file names */
    const char *const *services; /* exact service names, ended by NULL; NULL: all others */
    unsigned days[STORE_TIERS];
};

/* Copied by the open calls. Zero means the default. */
struct store_options {
    const char *directory;             /* for store_open_embedded; made when missing */
    const struct store_class *classes; /* none: default, kept 14, 30, 400 and 1200 days */
    size_t class_count;
    size_t memory_limit_bytes; /* of caches and work; 256 MiB. Never below 16 MiB. */
    uint64_t disk_limit_bytes; /* 0: none */
    unsigned commit_ms;        /* how long a commit waits for company; 50 */
    unsigned late_ms;          /* how long after its end a ten-minute slot is rolled up; 120,000 */
    /* Memory for queries and maintenance, shared with pushes; not owned. NULL: the store makes one
     * of memory_limit_bytes. */
    struct budget *budget;
    /* Retention stops when the clock is further than this from its last run, or ahead of the newest
     * data: see store_resume_retention. 0: it never does. */
    int64_t clock_limit_ns;
    /* NULL, or called for each file that retention removes. */
    void (*note)(void *note_context, const char *text);
    void *note_context;
    /* CPU time of compaction and rollups: this share of one CPU, and some for each row that is
     * written (MAINTAIN_ROW_NS). 0: as much as they take. */
    double maintenance_share;
    bool read_only;                /* reads only, beside a server too; embedded only */
    int64_t (*now)(void *context); /* wall clock in ns, for tests; NULL: the real one */
    void *now_context;
};

struct store;

/*
 * Opens the store that a URL names: "file:DIR", or a directory alone, is the embedded store in that
 * directory; "memory:" is one in memory; "clickhouse://USER@HOST:PORT/DATABASE" is one on
 * ClickHouse (store/clickhouse/address.h). -ENOTSUP: no engine has that scheme, or the database has
 * another schema. `options->directory` is not looked at.
 */
int store_open(const char *url, const struct store_options *options, struct store **ret_store,
               struct error *error);

/* -EBUSY when another process has the directory open. Files of other formats are refused by name
 * (-ENOTSUP); damaged ones are set aside under the name they had and ".damaged",
 * which store_problems lists, and the others serve. */
int store_open_embedded(const struct store_options *options, struct store **ret_store,
                        struct error *error);
int store_open_memory(const struct store_options *options, struct store **ret_store,
                      struct error *error);
/* `rest` is the URL after "clickhouse:". */
int store_open_clickhouse(const char *rest, const struct store_options *options,
                          struct store **ret_store, struct error *error);
void store_close(struct store *store); /* takes NULL */

/* Makes the database and the tables that a URL of a store on ClickHouse names, or brings them up to
 * date; changes nothing when they are. -ENOTSUP: another engine, or a newer schema. */
int store_init(const char *url, struct error *error);
int store_init_clickhouse(const char *rest, struct error *error);

/* "embedded", "memory" or "clickhouse": the engine. */
const char *store_engine(const struct store *store);

/* ---- writing ---- */

struct store_row {
    uint32_t node; /* of the window's profile, or one of its unresolved stacks when it has those */
    int64_t value;
};

struct store_exemplar {
    uint32_t node;
    int64_t value;
    int64_t time_ns;
    struct profile_link link;
};

struct store_profile {           /* one window */
    const struct labels *labels; /* service_name among them; the type is apart */
    const char *type;            /* the five-part id */
    int64_t time_ns, duration_ns;
    const struct profile
        *profile;                 /* whose stacks the rows name; windows may share it. Of unresolved
                                     stacks, those that the store doesn't know are added to it. */
    const struct store_row *rows; /* in any order; rows of one node add up */
    size_t row_count;
    const struct store_exemplar *exemplars;
    size_t exemplar_count;
    uint64_t generation; /* of a scan: the profile is the same as long as this is; for writes: 0 */
};

struct store_batch {
    const char *tenant;
    const char *batch_id; /* NULL: none */
    const struct store_profile *profiles;
    size_t count;
    /* NULL, or called on the caller's thread when the store no longer reads the profiles, which is
     * long before the commit: the caller can free them. Not called if the batch is rejected first.
     * Must not call the store. */
    void (*done_reading)(void *context);
    void *context;
};

/*
 * Returns when all of the batch is durable, in one commit with batches of other threads. After any
 * failure, and after a crash, nothing of the batch is there, or all (a crash only). A batch id that
 * was stored before by this tenant changes nothing: -EALREADY. Reads nothing of the batch after
 * returning. A window without rows is stored too: it records that the process was observed.
 */
int store_write(struct store *store, const struct store_batch *batch, struct error *error);

/* Seed for the digests of unresolved stacks; the store rejects digests made with another one. */
uint64_t store_seed(const struct store *store);

/* ---- reading ---- */

/* Series of a service that have this label __source__, and another label of this value. */
struct store_exclusion {
    const char *service, *source;
    const char *label; /* NULL: whatever other labels they have. One per service and source. */
    const char *value; /* NULL without `label` */
};
int store_exclusion_compare(const struct store_exclusion *a, const struct store_exclusion *b);

struct store_selection {
    const char *tenant;
    const char *type;                /* NULL: all types (not for merge and timeseries) */
    const struct selector *selector; /* NULL: all series */
    int64_t from_ns, to_ns;          /* [from, to) */
    /* Limits the cost of matching the selector's expressions, and ends it when the client is gone
     * (label/selector.h); -EDOM when it is used up. NULL: no limit. */
    struct match_budget *matching;
    /* Left out of merges, time series, exemplars and scans; not of lists. In the order of
     * store_exclusion_compare. */
    const struct store_exclusion *excluded;
    size_t excluded_count;
};

/* The grouping of a merge: rows get the start of their step as their time, and the label. The
 * profile must want times (PROFILE_TIMES) and, with a label, labels. Rollups are used where their
 * slots fit into steps and they know the label. */
struct store_apart {
    int64_t step_ns;   /* at least a second; steps begin at multiples of it since 1970 */
    const char *label; /* NULL: none */
};
#define STORE_APART_STEPS_MAX 4096
#define STORE_APART_VALUES_MAX 1024

struct store_limits {
    const atomic_bool *cancelled; /* NULL: never. Looked at between blocks. */
    size_t memory_bytes;          /* for this call; 0: a quarter of the store's limit */
    /* Subtrees of less than this share of the selection's total are cut off and their value kept
     * under one frame "(other)" of the node they hang on, so that a picture of a fleet needs no
     * million nodes. Looked at per file and service: a share is never overstated. 0: exact. */
    double smallest_share;
    /* For merges: of the stacks of each service and file, one part of so many (a power of
     * two), for what is too large at once. Each stack is in one part, also while others are stored;
     * the quality is that of all. 0: all in one. */
    uint32_t stack_part, stack_parts;
    const struct store_apart *apart; /* for merges without `smallest_share`; NULL: all in one */
    bool raw_only;                   /* don't use rollups */
    bool single_thread;              /* don't take a second one to help */
    bool admitted; /* the caller has taken memory_bytes from the store's budget, and keeps it */
    /* NULL, or asked when that isn't enough: returns what it may take from now on. From any thread,
     * one at a time; must not wait. */
    size_t (*more)(void *more_context);
    void *more_context;
};

#define STORE_STACK_PARTS_MAX 256

/* Whether a stack, by its node, is in the part that is merged. Neighbours share most frames, so
 * they stay together; part n of as many is parts 2n and 2n + 1 of twice as many. */
static inline bool store_limits_has(const struct store_limits *limits, uint32_t node)
{
    uint32_t slot = (node >> 8) % STORE_STACK_PARTS_MAX;
    return limits->stack_parts <= 1 ||
           slot * limits->stack_parts / STORE_STACK_PARTS_MAX == limits->stack_part;
}

/* How good an answer is. All but `series`, `blocks` and `tiers` are the same whichever tier is
 * read; times are approximate where versions or processes come and go within a slot. */
struct store_quality {
    uint64_t rows;    /* as they were written */
    uint64_t windows; /* pushes of series; see `rows` */
    uint64_t series;  /* distinct, of the tiers that were read */
    uint64_t blocks;
    int64_t first_ns, last_ns; /* starts of the first and the last window; 0 without any */
    int64_t duration_ns;       /* covered time, summed over processes */
    int64_t covered_ns;        /* covered time of the selection: docs/covered-time.md */
    int64_t per_ns;            /* the total divided by this is its rate, or the average of a level
                                  whose snapshots count a second each; 0: unknown */
    int64_t total;             /* sum of values */
    int64_t cut;               /* of it under "(other)" */
    uint64_t rest_groups;      /* of a time series, that are added up as the rest */
    unsigned tiers;            /* bit per enum store_tier that was read */
    unsigned damaged_blocks;   /* left out because their checksum is wrong */
    unsigned damaged_files;    /* see store_damaged_files */
};

/* How many files are damaged that have data of the selection's tenant (NULL: of any) and time, and
 * that nobody has acknowledged. */
unsigned store_damaged_files(struct store *store, const struct store_selection *selection);

/* Each series once that has windows in the range, to the precision of a block (an hour). `first_ns`
 * and `last_ns` are what is stored of it anywhere in the range's days. Of days whose raw data is
 * gone, the rollups' series, which know service_name and version only. */
typedef int store_series_fn(void *context, const struct labels *labels, const char *type,
                            int64_t first_ns, int64_t last_ns);
int store_series(struct store *store, const struct store_selection *selection, store_series_fn *fn,
                 void *context, struct error *error);

/* In ascending order, each once, of the series that store_series would give. */
typedef int store_text_fn(void *context, const char *text);
int store_label_names(struct store *store, const struct store_selection *selection,
                      store_text_fn *fn, void *context, struct error *error);
int store_label_values(struct store *store, const struct store_selection *selection,
                       const char *name, store_text_fn *fn, void *context, struct error *error);
int store_types(struct store *store, const struct store_selection *selection, store_text_fn *fn,
                void *context, struct error *error);

/*
 * Adds all selected stacks to `profile`, which the caller has initialised with the detail it wants
 * and which gets the sample type and unit of the selection's type. On failure what is in the
 * profile is undefined, and it must only be released. -E2BIG when it would take more than
 * limits->memory_bytes.
 */
int store_merge(struct store *store, const struct store_selection *selection,
                const struct store_limits *limits, struct profile *profile,
                struct store_quality *ret_quality, struct error *error);

enum store_count { STORE_FLAT, STORE_CUMULATIVE };

/* A frame by its content, as it is stored. Texts are "" where there is none. */
struct store_frame {
    uint64_t address; /* as in struct profile_frame, as are line, column and kind */
    uint32_t line, column, start_line;
    uint8_t kind;
    const char *function, *system_name, *source; /* its function's names and file */
    const char *file, *build_id;                 /* its mapping's */
    /* In a filter: other functions are inlined into the one that is looked for at this address, so
     * that the frame counts for what is called from it only. Not compared. */
    bool encloses;
};

/* Texts are those of the tables. */
void store_frame_read(const struct profile *tables, uint32_t frame, struct store_frame *ret_frame);
int store_frame_compare(const struct store_frame *a, const struct store_frame *b);

/* Which frames belong to a function: those that are stored with its name, as it is shown or as its
 * source called it, unless `frames_only`; and those listed, whose names the store doesn't know. */
struct store_function {
    const char *name;
    const struct store_frame *frames; /* in the order of store_frame_compare */
    size_t frame_count;
    bool frames_only;
};

struct store_timeseries_query {
    int64_t step_ns;             /* at least a second; at most STORE_POINTS_MAX steps */
    const char *const *group_by; /* label names */
    size_t group_count;
    const struct store_function *function; /* only its value; NULL: all */
    enum store_count count;
    bool moments;        /* windows of a group that begin in the same millisecond count as one */
    bool greatest_first; /* groups with the greatest sums come first, instead of by labels */
    bool aligned; /* steps begin at multiples of step_ns since 1970: the first may be cut short */
    size_t groups_most; /* beyond so many groups: those with the greatest sums, and the rest as one;
                           0: more than STORE_GROUPS_MAX are refused */
};
#define STORE_POINTS_MAX 100000
#define STORE_GROUPS_MAX 10000

struct store_point {
    int64_t time_ns; /* of the step's start; points without a window are left out */
    int64_t value;
    uint64_t windows;
    int64_t covered_ns, per_ns; /* as in struct store_quality, of the group in this step */
    int64_t process_ns;         /* likewise, its duration_ns */
    int64_t used_ns;            /* of struct cover: see covered_used() */
};

/* One call per group, in the order of their labels unless told otherwise; `group` holds the
 * group_by labels that are there, and is NULL for the rest of the groups, which comes last. Rollups
 * are used where steps are whole slots of theirs. */
typedef int store_points_fn(void *context, const struct labels *group,
                            const struct store_point *points, size_t count);
int store_timeseries(struct store *store, const struct store_selection *selection,
                     const struct store_timeseries_query *query, const struct store_limits *limits,
                     store_points_fn *fn, void *context, struct store_quality *ret_quality,
                     struct error *error);

/* Each frame of the selected stacks, and maybe of others, at least once: to find out which of them
 * a struct store_function should list. `query` and `limits` as for the call that will use it; the
 * query may be NULL. `tables` changes from call to call. */
typedef int store_frame_fn(void *context, const struct profile *tables, uint32_t frame);
int store_frames(struct store *store, const struct store_selection *selection,
                 const struct store_timeseries_query *query, const struct store_limits *limits,
                 store_frame_fn *fn, void *context, struct error *error);

/* Exemplars, in no order; only those with `function` anywhere on their stack when it is given.
 * The node is one of `profile`, which changes from call to call. Raw data only. */
typedef int store_exemplar_fn(void *context, const struct labels *labels,
                              const struct profile *profile, const struct store_exemplar *exemplar);
int store_exemplars(struct store *store, const struct store_selection *selection,
                    const struct store_function *function, const struct store_limits *limits,
                    store_exemplar_fn *fn, void *context, struct error *error);

/* Every raw window of the selection as it was written (rows of one node added up): for export, and
 * for statistics over windows. The profile that windows name is the store's, changes from call to
 * call, and holds more stacks than the window's. */
typedef int store_window_fn(void *context, const struct store_profile *window);
int store_scan(struct store *store, const struct store_selection *selection,
               const struct store_limits *limits, store_window_fn *fn, void *context,
               struct error *error);

/* ---- maintenance ---- */

/* One round of compaction, rollups, retention and the disk limit; a background thread calls it
 * every few seconds. Crash-safe at any point. Returns 1 when there is more to do right away. */
int store_maintain(struct store *store, const atomic_bool *cancelled, struct error *error);

/* Forgets caches that are not in use just then: the process is short of memory. */
void store_trim(struct store *store);

/* Other classes and another disk limit from now on; the rest of the options is not looked at.
 * Windows stay in the files of the class that they came into. One thread at a time. */
int store_set_retention(struct store *store, const struct store_options *options,
                        struct error *error);

struct store_deleted {
    uint64_t windows, rows; /* raw ones, also of those that only rollups are left of */
    uint64_t left_windows;  /* in rollups that hold some of what is selected and must stay */
    bool pending;           /* names of deleted stacks are still in files: see below */
};

/*
 * Removes what is selected, from raw data and from rollups, which are made again of what is left;
 * and from the files all names, stacks and labels that nothing else uses. With `dry_run` it only
 * says what it would do. Where raw data is gone, a rollup can lose whole slots of whole services
 * and versions; when more is asked for, the rest is removed, and the result is -ENOTSUP.
 *
 * Names go when no query or push is under way for a moment and the disk has room to rewrite their
 * files; `pending` says that this wasn't so within half a minute, and that store_maintain will do
 * it. On a full disk the rest needs no more room than the store has kept for that, and files of
 * whole days that go give theirs back. Files that were set aside as damaged
 * are not touched. `ret_deleted` is set after failures too.
 */
int store_delete(struct store *store, const struct store_selection *selection, bool dry_run,
                 struct store_deleted *ret_deleted, struct error *error);

struct store_stats {
    uint64_t rows, windows; /* raw, stored now */
    uint64_t files[STORE_TIERS], bytes[STORE_TIERS], blocks[STORE_TIERS];
    uint64_t series;                                          /* raw, summed over files */
    uint64_t fresh_blocks;                                    /* raw, waiting for compaction */
    uint64_t written_rows, written_batches, repeated_batches; /* since opened, from here on */
    uint64_t commits, compacted_blocks, rolled_slots;
    uint64_t expired_files; /* by retention */
    uint64_t shed_files;    /* raw days dropped early for the disk limit */
    int64_t shed_until_ns;  /* raw data before this was dropped for the disk limit */
    uint64_t memory_bytes;  /* caches */
    uint64_t services;      /* distinct, with data of any tier */
    int64_t first_ns[STORE_TIERS], last_ns[STORE_TIERS]; /* of windows; 0 without any */
    uint64_t free_bytes;     /* of the file system that the directory is on; 0 in memory */
    uint64_t damaged_files;  /* that nobody has acknowledged */
    bool retention_stopped;  /* see store_resume_retention */
    uint64_t write_failures; /* batches that the disk didn't take, since opened */
};
int store_stats(struct store *store, struct store_stats *ret_stats, struct error *error);

struct store_file {
    const char *path, *tenant, *class_name;
    enum store_tier tier;
    int64_t from_ns, to_ns;    /* its period */
    int64_t first_ns, last_ns; /* of its windows; 0 without any */
    uint64_t bytes, blocks, fresh_blocks, series;
    uint64_t windows, rows; /* raw ones in it, whatever the tier */
};

/* Each file, by tenant, class, tier and time. None in memory. */
typedef int store_file_fn(void *context, const struct store_file *file);
int store_files(struct store *store, store_file_fn *fn, void *context, struct error *error);

/* Problems that an operator should know about, as sentences: writes that fail (store_writable),
 * damaged files, stopped retention; and events of the last minute, such as raw days deleted for the
 * disk limit. At most 64. */
int store_problems(struct store *store, store_text_fn *fn, void *context, struct error *error);

/* 0 when a batch would be taken now; -ENOSPC, -EROFS, -EIO, -EAGAIN and why not. */
int store_writable(struct store *store, struct error *error);

/* Acknowledges a damaged file: it is renamed, and problems and the quality of answers no longer
 * report it. `name` is its path or the end of it, with or without the suffix that it got when it
 * was set aside; among the files of one tenant, or of all (NULL). `ret_path` is its previous path.
 * -ENOENT: no such file. */
int store_acknowledge(struct store *store, const char *tenant, const char *name,
                      char ret_path[static PATH_MAX], struct error *error);

/* A time range of a tenant whose raw files retention leaves alone, for as long as it is set. The
 * disk limit does not: it takes files of pins last, and a pin that lost one is `lost`. */
struct store_pin {
    const char *id; /* of the caller's choice, at most 31 bytes */
    const char *tenant;
    int64_t from_ns, to_ns;
};
/* Replaces all pins; copied. A pin that is set again with the same id and range stays lost.
 * -ENOTSUP: the engine has no files that retention deletes. */
int store_set_pins(struct store *store, const struct store_pin *pins, size_t count,
                   struct error *error);
/* Calls back for each lost pin, with its id. */
int store_lost_pins(struct store *store, store_text_fn *fn, void *context, struct error *error);

/* Resumes retention with the current time. */
int store_resume_retention(struct store *store, struct error *error);

/* Tenants that have data, in ascending order. */
int store_tenants(struct store *store, store_text_fn *fn, void *context, struct error *error);

/* ---- export and import ---- */

struct store_transfer {
    uint64_t batches, windows, rows, bytes;
    uint64_t repeated_batches;      /* imported before */
    uint64_t refused_batches;       /* the store has later data of that time: see store_import */
    char refusal[ERROR_TEXT_BYTES]; /* why the first of them was */
    unsigned damaged_blocks, damaged_files; /* left out of an export */
};

/* All of it; non-zero ends the export, which returns that. */
typedef int store_sink_fn(void *context, const void *data, size_t length);

/*
 * Writes every raw window of a selection (whose tenant may be NULL: all), and the rollups that have
 * outlived theirs, as docs/formats/export.md says. Pushes and queries go on meanwhile; what comes
 * during the export may be in it or not. Embedded only.
 */
int store_export(struct store *store, const struct store_selection *selection,
                 const atomic_bool *cancelled, store_sink_fn *sink, void *context,
                 struct store_transfer *ret_transfer, struct error *error);

/* At most `room` bytes; 0 at the end, negative: failed. */
typedef ssize_t store_source_fn(void *context, void *data, size_t room);

/*
 * Stores what an export holds, of one tenant or of all (NULL). Each batch is durable and whole or
 * not there at all; one that was imported before changes nothing, so an import that ended early can
 * be done again from the start. Batches of a time that the store has later data of (rollups without
 * raw data, or the other way round) are refused and counted: putting both together would count
 * windows twice or lose them. -ENODATA: the file was cut off; -EBADMSG: it is damaged.
 */
int store_import(struct store *store, store_source_fn *source, void *context, const char *tenant,
                 struct store_transfer *ret_transfer, struct error *error);

/* Reads everything: SQLite's own check, each block's checksum, each reference. `fn` gets a sentence
 * for each thing that is wrong, and for each damaged file that nobody has acknowledged; 0 when
 * there was none, -EBADMSG else. */
int store_check(struct store *store, store_text_fn *fn, void *context, struct error *error);
