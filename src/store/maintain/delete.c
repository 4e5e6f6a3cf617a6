// SPDX-License-Identifier: Apache-2.0
// Deletes data that should not have been stored. Raw windows are deleted, and their rollups
// computed again; rollups without raw data lose whole slots of whole series. Names that only this
// data used are then scrubbed from the files (scrub.c). Every step is a transaction that records
// the next step, so that after a crash at any point store_maintain completes the work.

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/embedded/outlived.h"
#include "store/embedded/plan.h"

#define SCRUB_WAIT_NS 30000000000ll

struct deletion {
    struct embedded *store;
    const struct store_selection *selection;
    bool dry_run;
    bool fits;    /* the selector names nothing that rollups don't know */
    bool cramped; /* there is hardly any room for logs */
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

/* Ids of the selected series, which stay what they are: see embedded_delete. With `loosely`, labels
 * that rollups don't know may be anything. */
static int select_series(struct deletion *deletion, struct file *file, bool loosely,
                         uint32_t **ret_ids, size_t *ret_count, struct error *error)
{
    const struct store_selection *selection = deletion->selection;
    const struct selector *asked = selection->selector;
    struct selector selector = {0};
    selector.matchers = memory_zalloc((asked ? asked->count : 0) + 1, sizeof(*selector.matchers));
    for (size_t i = 0; asked && i < asked->count; i++)
        if (!loosely || plan_is_rollup_label(asked->matchers[i].name))
            selector.matchers[selector.count++] = asked->matchers[i];
    int r = catalog_select(&file->catalog, &file->lock, selection->type, &selector,
                           selection->matching, ret_ids, ret_count, error);
    free(selector.matchers);
    return r;
}

static int count_in_file(struct deletion *deletion, struct file *file, int64_t from_ns,
                         int64_t to_ns, bool loosely, struct store_deleted *counted,
                         struct error *error)
{
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count;
    int r = file_load(file, error);
    if (!r)
        r = select_series(deletion, file, loosely, &ids, &count, error);
    struct connection *connection = r < 0 ? NULL : file_borrow(file, error);
    if (!connection)
        return error->code;
    for (size_t i = 0; !r && i < count; i++)
        r = file_count_windows(file, connection, deletion->codec, ids[i], from_ns, to_ns, counted,
                               error);
    file_return(file, connection);
    return r;
}

static bool is_rollup_of(const struct file *rollup, const struct file *file, int64_t from_ns,
                         int64_t to_ns)
{
    return !rollup->gone && rollup->tier > file->tier &&
           !strcmp(rollup->class_name, file->class_name) && rollup->from_ns < to_ns &&
           rollup->to_ns > from_ns;
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

/* Notes the follow-up work before anything is deleted. With the write lock held. */
static int note_removal(struct file *file, int64_t from_ns, int64_t to_ns, struct error *error)
{
    int r = file_begin(file, error);
    if (r < 0)
        return r;
    r = note_all_late(file, from_ns, to_ns, error);
    if (!r)
        r = file_note_scrub(file, error);
    return file_end(file, r, error);
}

/* In one transaction; on a full disk in one for each series, since the log has to fit into what the
 * reserve has left. With the write lock held. */
static int remove_series(struct deletion *deletion, struct file *file, const uint32_t *ids,
                         size_t count, int64_t from_ns, int64_t to_ns, struct error *error)
{
    int r = 0;
    for (size_t i = 0, end; !r && i < count; i = end) {
        struct store_deleted removed = {0};
        end = deletion->cramped ? i + 1 : count;
        r = file_begin(file, error);
        if (r < 0)
            break;
        for (size_t k = i; !r && k < end; k++) {
            r = file_remove_windows(file, deletion->codec, ids[k], from_ns, to_ns, &removed, error);
            if (!r && file->tier == STORE_RAW)
                r = remove_exemplars(file, ids[k], from_ns, to_ns, error);
        }
        r = file_end(file, r, error);
        if (!r) {
            deletion->deleted->windows += removed.windows;
            deletion->deleted->rows += removed.rows;
        }
        if (!r && deletion->cramped)
            file_empty_log(file,
                           &(struct error){0}); /* a reader may be in the way: the next will do */
    }
    return r;
}

static int remove_in_file(struct deletion *deletion, struct file *file, int64_t from_ns,
                          int64_t to_ns, struct error *error)
{
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count;
    int r = select_series(deletion, file, false, &ids, &count, error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&file->write_lock);
    r = note_removal(file, from_ns, to_ns, error);
    if (!r)
        r = remove_series(deletion, file, ids, count, from_ns, to_ns, error);
    pthread_mutex_unlock(&file->write_lock);
    return r;
}

/* ---- whole days, on a full disk ---- */

/* A file that is over and of which nothing is to stay. */
static bool goes_whole(struct deletion *deletion, struct file *file)
{
    const struct store_selection *selection = deletion->selection;
    return deletion->cramped && file->tier == STORE_RAW && !selection->type &&
           (!selection->selector || !selection->selector->count) &&
           selection->from_ns <= file->from_ns && selection->to_ns >= file->to_ns &&
           file->to_ns <= embedded_now(deletion->store);
}

static int remove_slots(struct file *file, int64_t from_ns, int64_t to_ns, struct error *error)
{
    int r = file_begin(file, error);
    return r < 0 ? r : file_end(file, file_remove_slots(file, from_ns, to_ns, error), error);
}

/* Removing a file needs no room and gives some back. Its rollups go first: a crash before the end
 * leaves a raw file of which they are made again. */
static int drop_file(struct deletion *deletion, const struct file_list *list, struct file *file,
                     const struct store_deleted *counted, struct error *error)
{
    struct store_deleted before = *deletion->deleted;
    pthread_mutex_lock(&file->write_lock);
    int r = note_removal(file, file->from_ns, file->to_ns, error);
    pthread_mutex_unlock(&file->write_lock);
    for (size_t i = 0; !r && i < list->count; i++) {
        struct file *rollup = list->files[i];
        if (!is_rollup_of(rollup, file, file->from_ns, file->to_ns))
            continue;
        r = file_load(rollup, error);
        if (!r)
            r = remove_in_file(deletion, rollup, file->from_ns, file->to_ns, error);
        pthread_mutex_lock(&rollup->write_lock);
        if (!r)
            r = remove_slots(rollup, file->from_ns, file->to_ns, error);
        pthread_mutex_unlock(&rollup->write_lock);
    }
    *deletion->deleted = before; /* those in rollups are the same ones */
    if (r < 0)
        return r;
    embedded_remove(deletion->store, file);
    deletion->deleted->windows += counted->windows;
    deletion->deleted->rows += counted->rows;
    return 0;
}

/* ---- what is selected ---- */

/* Rollups that will be made again still have the names of what was in them before. */
static int note_rollups(const struct file_list *list, const struct file *file, int64_t from_ns,
                        int64_t to_ns, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < list->count; i++) {
        struct file *rollup = list->files[i];
        if (!is_rollup_of(rollup, file, from_ns, to_ns))
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
    if (goes_whole(deletion, file))
        return drop_file(deletion, list, file, &counted, error);
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

/* The reserve, and what logs have taken and need no more. */
static void make_room(struct deletion *deletion)
{
    struct embedded *store = deletion->store;
    embedded_use_reserve(store);
    struct file_list list = embedded_files(store, NULL, INT64_MIN, INT64_MAX);
    for (size_t i = 0; i < list.count; i++)
        file_tidy_log(list.files[i], &(struct error){0});
    embedded_release(store, &list);
}

/* Rollups are made again, and names go as soon as nobody is in the way and there is room for it. */
static int finish(struct embedded *store, struct store_deleted *deleted, struct error *error)
{
    int64_t until = monotonic_ns() + SCRUB_WAIT_NS;
    int r;
    for (;;) {
        do /* under load there is always more */
            r = embedded_round(store, false, NULL, error);
        while (r == 1 && monotonic_ns() <= until);
        if (!r) {
            pthread_mutex_lock(&store->maintenance);
            r = embedded_scrub(store, error);
            pthread_mutex_unlock(&store->maintenance);
        }
        if (r == -ENOSPC) {
            deleted->pending = true;
            return 0;
        }
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
        return error_set(error, -EROFS, "The store is open read-only.");
    struct deletion deletion = {.store = store,
                                .selection = selection,
                                .dry_run = dry_run,
                                .fits = plan_selector_fits_rollups(selection->selector),
                                .deleted = deleted,
                                .codec = embedded_codec(store)};
    deletion.cramped = !dry_run && embedded_check_room(store, NULL) < 0;
    pthread_mutex_lock(&store->maintenance); /* so that ids stay what they are */
    if (deletion.cramped)
        make_room(&deletion);
    int r = delete_all(&deletion, error);
    pthread_mutex_unlock(&store->maintenance);
    embedded_codec_return(store, deletion.codec);
    if (!r && !dry_run && deleted->windows)
        r = finish(store, deleted, error);
    if (!r && deleted->left_windows)
        r = error_set(
            error, -ENOTSUP,
            "%s rollups without raw data hold %llu windows of which some %s selected: such rollups "
            "can only lose whole slots (ten minutes, an hour or a day) of a service or version. "
            "Select by service_name, version and whole days, or let them expire.",
            dry_run ? "Some data could not be deleted:" : "The rest was deleted, but",
            (unsigned long long)deleted->left_windows, dry_run ? "are" : "were");
    return r;
}
