// SPDX-License-Identifier: Apache-2.0
// Deleting what should never have been stored. Raw windows go, and rollups of them are made again;
// where rollups are all that is left, whole slots of whole series go. What was only in there is
// scrubbed from the files afterwards (scrub.c). Every step is a transaction that leaves a note of
// what has to follow, so that a crash at any point leaves work for store_maintain, and no more.

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/outlived.h"
#include "store/plan.h"

#define SCRUB_WAIT_NS 30000000000ll

struct deletion {
    struct embedded *store;
    const struct store_selection *selection;
    bool dry_run;
    bool fits; /* the selector names nothing that rollups don't know */
    struct store_deleted *deleted;
    struct block_codec *codec;
};

static int remove_exemplars(struct file *file, uint32_t series, int64_t from_ns, int64_t to_ns,
                            struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_REMOVE_EXEMPLARS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, from_ns);
    sqlite3_bind_int64(statement, 3, to_ns);
    return file_step(file, statement, error);
}

/* With `loosely`, labels that rollups don't know may be anything. */
static bool is_selected(struct file *file, uint32_t id, const struct store_selection *selection,
                        bool loosely)
{
    pthread_rwlock_rdlock(&file->lock);
    const struct catalog_series *series = &file->catalog.series[id];
    bool selected = !selection->type || !strcmp(selection->type, series->type);
    const struct selector *selector = selection->selector;
    for (size_t i = 0; selected && selector && i < selector->count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        const char *value = labels_get(&series->labels, matcher->name);
        selected = (loosely && !plan_is_rollup_label(matcher->name)) ||
                   matcher_matches(matcher, value ? value : "");
    }
    pthread_rwlock_unlock(&file->lock);
    return selected;
}

static size_t series_count(struct file *file)
{
    pthread_rwlock_rdlock(&file->lock);
    size_t count = file->catalog.series_count;
    pthread_rwlock_unlock(&file->lock);
    return count;
}

static int count_in_file(struct deletion *deletion, struct file *file, int64_t from_ns,
                         int64_t to_ns, bool loosely, struct store_deleted *counted,
                         struct error *error)
{
    int r = file_load(file, error);
    struct connection *connection = r < 0 ? NULL : file_borrow(file, error);
    if (!connection)
        return error->code;
    size_t count = series_count(file);
    for (uint32_t i = 0; !r && i < count; i++)
        if (is_selected(file, i, deletion->selection, loosely))
            r = file_count_windows(file, connection, deletion->codec, i, from_ns, to_ns, counted,
                                   error);
    file_return(file, connection);
    return r;
}

/* Every slot of the next tier in the range is made anew. */
static int note_all_late(struct file *file, int64_t from_ns, int64_t to_ns, struct error *error)
{
    if (file->tier == STORE_DAY)
        return 0;
    int64_t slot = tier_slot_ns[file->tier + 1];
    int r = 0;
    for (int64_t at = from_ns / slot * slot; !r && at < to_ns; at += slot)
        r = file_note_late(file, at, error);
    return r;
}

static int remove_in_file(struct deletion *deletion, struct file *file, int64_t from_ns,
                          int64_t to_ns, struct error *error)
{
    struct store_deleted removed = {0};
    pthread_mutex_lock(&file->write_lock);
    int r = file_begin(file, error);
    if (!r) {
        size_t count = series_count(file);
        for (uint32_t i = 0; !r && i < count; i++) {
            if (!is_selected(file, i, deletion->selection, false))
                continue;
            r = file_remove_windows(file, deletion->codec, i, from_ns, to_ns, &removed, error);
            if (!r && file->tier == STORE_RAW)
                r = remove_exemplars(file, i, from_ns, to_ns, error);
        }
        if (!r)
            r = note_all_late(file, from_ns, to_ns, error);
        if (!r)
            r = file_note_scrub(file, error);
        r = file_end(file, r, error);
    }
    pthread_mutex_unlock(&file->write_lock);
    if (!r) {
        deletion->deleted->windows += removed.windows;
        deletion->deleted->rows += removed.rows;
    }
    return r;
}

/* Rollups that will be made again still have the names of what was in them before. */
static int note_rollups(const struct file_list *list, const struct file *file, int64_t from_ns,
                        int64_t to_ns, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < list->count; i++) {
        struct file *rollup = list->files[i];
        if (rollup->tier <= file->tier || strcmp(rollup->class_name, file->class_name) ||
            rollup->from_ns >= to_ns || rollup->to_ns <= from_ns)
            continue;
        pthread_mutex_lock(&rollup->write_lock);
        r = file_begin(rollup, error);
        if (!r)
            r = file_end(rollup, file_note_scrub(rollup, error), error);
        pthread_mutex_unlock(&rollup->write_lock);
    }
    return r;
}

static int delete_range(struct deletion *deletion, const struct file_list *list, struct file *file,
                        int64_t from_ns, int64_t to_ns, struct error *error)
{
    struct store_deleted counted = {0};
    int r = count_in_file(deletion, file, from_ns, to_ns, false, &counted, error);
    if (r < 0 || !counted.windows)
        return r;
    if (deletion->dry_run) {
        deletion->deleted->windows += counted.windows;
        deletion->deleted->rows += counted.rows;
        return 0;
    }
    r = note_rollups(list, file, from_ns, to_ns, error);
    return r < 0 ? r : remove_in_file(deletion, file, from_ns, to_ns, error);
}

static int count_left(struct deletion *deletion, struct file *file, int64_t from_ns, int64_t to_ns,
                      struct error *error)
{
    struct store_deleted counted = {0};
    if (from_ns >= to_ns)
        return 0;
    int r = count_in_file(deletion, file, from_ns, to_ns, true, &counted, error);
    deletion->deleted->left_windows += counted.windows;
    return r;
}

/* Only slots that have outlived their source: the others are made again. */
static int delete_from_rollup(struct deletion *deletion, const struct file_list *list,
                              struct file *file, struct error *error)
{
    const struct store_selection *selection = deletion->selection;
    int64_t slot = tier_slot_ns[file->tier];
    _cleanup_time_spans_ struct time_spans spans = {0};
    int r = outlived_spans(list, file, selection->from_ns, selection->to_ns, &spans, error);
    for (size_t i = 0; !r && i < spans.count; i++) {
        int64_t from = spans.list[i].from_ns, to = spans.list[i].to_ns;
        int64_t first = from, end = to; /* whole slots that are selected */
        if (selection->from_ns > from)
            first = (selection->from_ns + slot - 1) / slot * slot;
        if (selection->to_ns < to)
            end = selection->to_ns / slot * slot;
        if (!deletion->fits || first >= end) {
            r = count_left(deletion, file, from, to, error);
            continue;
        }
        r = delete_range(deletion, list, file, first, end, error);
        if (!r)
            r = count_left(deletion, file, from, first, error);
        if (!r)
            r = count_left(deletion, file, end, to, error);
    }
    return r;
}

static int delete_all(struct deletion *deletion, struct error *error)
{
    const struct store_selection *selection = deletion->selection;
    struct file_list list =
        embedded_files(deletion->store, selection->tenant, selection->from_ns, selection->to_ns);
    int r = 0;
    for (size_t i = 0; !r && i < list.count; i++) {
        struct file *file = list.files[i];
        if (file->tier == STORE_RAW)
            r = delete_range(deletion, &list, file, MAX(selection->from_ns, file->from_ns),
                             MIN(selection->to_ns, file->to_ns), error);
        else
            r = delete_from_rollup(deletion, &list, file, error);
        if (embedded_is_damaged(deletion->store, file, r)) {
            embedded_set_aside(deletion->store, file, error->text);
            r = 0;
        }
    }
    embedded_release(deletion->store, &list);
    return r;
}

/* Rollups are made again, and names go as soon as nobody is in the way. */
static int finish(struct embedded *store, struct store_deleted *deleted, struct error *error)
{
    int64_t until = monotonic_ns() + SCRUB_WAIT_NS;
    int r;
    for (;;) {
        while ((r = embedded_maintain(&store->store, NULL, error)) == 1)
            ;
        if (r < 0)
            return r;
        pthread_mutex_lock(&store->maintenance);
        r = embedded_scrub(store, error);
        pthread_mutex_unlock(&store->maintenance);
        if (r <= 0 || monotonic_ns() > until)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    deleted->pending = r == 1;
    return r < 0 ? r : 0;
}

int embedded_delete(struct store *base, const struct store_selection *selection, bool dry_run,
                    struct store_deleted *deleted, struct error *error)
{
    struct embedded *store = embedded_of(base);
    if (store->read_only && !dry_run)
        return error_set(error, -EROFS, "The store was opened for reading.");
    struct deletion deletion = {.store = store,
                                .selection = selection,
                                .dry_run = dry_run,
                                .fits = plan_selector_fits_rollups(selection->selector),
                                .deleted = deleted,
                                .codec = embedded_codec(store)};
    pthread_mutex_lock(&store->maintenance); /* so that ids stay what they are */
    int r = delete_all(&deletion, error);
    pthread_mutex_unlock(&store->maintenance);
    embedded_codec_return(store, deletion.codec);
    if (!r && !dry_run && deleted->windows)
        r = finish(store, deleted, error);
    if (!r && deleted->left_windows)
        r = error_set(error, -ENOTSUP,
                      "%s rollups whose raw data is gone hold %llu windows of which some %s "
                      "selected: such rollups can only lose whole slots (ten minutes, an hour or a "
                      "day) of a service or version. Select by service_name, version and whole "
                      "days, or let them expire.",
                      dry_run ? "Not all could be removed:" : "All else was removed, but",
                      (unsigned long long)deleted->left_windows, dry_run ? "are" : "were");
    return r;
}
