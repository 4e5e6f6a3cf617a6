// SPDX-License-Identifier: Apache-2.0
// Keeping house: compaction of small blocks, rollups, retention, the disk limit.

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "store/embedded/embedded.h"
#include "store/embedded/live.h"

#define FRESH_MAX 60       /* small blocks of one series and hour before they are compacted */
#define PLACES_AT_ONCE 256 /* series and hours of one file in a round */
#define PLACES_PER_COMMIT 16
#define WORK_WAIT_MS 2000
#define CHUNKS_MAX 64             /* pieces of one table before they are joined */
#define MAINTAIN_ROW_NS 250       /* of CPU time that each written row pays for */
#define VERIFY_NS 3600000000000ll /* between looks at the index of a file */

/* ---- compaction ---- */

struct place { /* blocks of one series in one stretch of time */
    uint32_t series;
    int64_t index;
    bool over; /* that time has passed */
};

static int find_crowded(struct embedded *store, struct file *file, struct place *places,
                        size_t *ret_count, struct error *error)
{
    int64_t span = tier_span_ns[file->tier];
    int64_t current = (embedded_now(store) - store->late_ms * 1000000ll) / span;
    struct connection *connection = file_borrow(file, error);
    sqlite3_stmt *statement = connection ? file_sql(file, connection, SQL_CROWDED, error) : NULL;
    int r = statement ? 0 : error->code;
    size_t count = 0;
    if (statement) {
        sqlite3_bind_int64(statement, 1, span);
        sqlite3_bind_int64(statement, 2, FRESH_MAX);
        sqlite3_bind_int64(statement, 3, current);
    }
    while (statement && (r = file_step(file, statement, error)) == 1) {
        if (count == PLACES_AT_ONCE) {
            sqlite3_reset(statement);
            r = 0;
            break;
        }
        places[count] = (struct place){.series = (uint32_t)sqlite3_column_int64(statement, 0),
                                       .index = sqlite3_column_int64(statement, 1)};
        places[count].over = places[count].index < current;
        count++;
    }
    file_return(file, connection);
    *ret_count = count;
    return r;
}

static int compare_windows(const void *a, const void *b)
{
    const struct block_window *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->first_row < y->first_row ? -1 : x->first_row > y->first_row;
}

/* In order of time, with rows where encoding expects them: one window after the other. */
void block_rows_sort(struct block_rows *rows, struct block_rows *sorted)
{
    qsort(rows->windows, rows->window_count, sizeof(*rows->windows), compare_windows);
    block_rows_clear(sorted);
    block_rows_reserve(sorted, rows->row_count);
    array_reserve(sorted->windows, sorted->window_capacity, rows->window_count);
    for (size_t i = 0; i < rows->window_count; i++) {
        struct block_window window = rows->windows[i];
        if (window.row_count) {
            memcpy(sorted->nodes + sorted->row_count, rows->nodes + window.first_row,
                   window.row_count * sizeof(*rows->nodes));
            memcpy(sorted->values + sorted->row_count, rows->values + window.first_row,
                   window.row_count * sizeof(*rows->values));
        }
        window.first_row = (uint32_t)sorted->row_count;
        sorted->row_count += window.row_count;
        sorted->windows[sorted->window_count++] = window;
    }
}

struct compaction {
    struct embedded *store;
    struct block_codec *codec;
    struct block_rows rows, sorted;
    int64_t *ids;
    size_t id_count, id_capacity, fresh; /* fresh: of them not compacted yet */
    struct buffer data;
    size_t row_limit; /* of one block, by the memory limit */
};

static void compaction_release(struct compaction *work)
{
    embedded_codec_return(work->store, work->codec);
    block_rows_release(&work->rows);
    block_rows_release(&work->sorted);
    free(work->ids);
    buffer_release(&work->data);
}

/* Decodes blocks of a place up to the limit of rows. Blocks that can't be read stay where they are,
 * and so do those that are about as large as they may become. What was compacted before is taken
 * only when its time is over: else an hour's first rows would be rewritten again and again. */
static int collect_place(struct compaction *work, struct file *file, const struct place *place,
                         struct error *error)
{
    int64_t span = tier_span_ns[file->tier];
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_SURE_BLOCKS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, place->series);
    sqlite3_bind_int64(statement, 2, place->index * span);
    sqlite3_bind_int64(statement, 3, (place->index + 1) * span);
    sqlite3_bind_int64(statement, 4, place->index * span);
    block_rows_clear(&work->rows);
    work->id_count = work->fresh = 0;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        struct block_view view;
        size_t windows = work->rows.window_count, rows = work->rows.row_count;
        const void *data = sqlite3_column_blob(statement, 1);
        if (!data ||
            block_open(work->codec, data, (size_t)sqlite3_column_bytes(statement, 1), &view) < 0)
            continue;
        bool compacted = sqlite3_column_int(statement, 2);
        if (compacted && (!place->over || view.row_count > work->row_limit / 2))
            continue;
        if (rows && rows + view.row_count > work->row_limit) {
            sqlite3_reset(statement);
            return 0;
        }
        if (block_decode(&view, 0, view.window_count, &work->rows) < 0) {
            work->rows.window_count = windows;
            work->rows.row_count = rows;
            continue;
        }
        array_reserve(work->ids, work->id_capacity, work->id_count + 1);
        work->ids[work->id_count++] = sqlite3_column_int64(statement, 0);
        work->fresh += !compacted;
    }
    return r;
}

static int compact_place(struct compaction *work, struct file *file, const struct place *place,
                         struct error *error)
{
    int r = collect_place(work, file, place, error);
    if (r < 0 || !work->fresh)
        return r;
    block_rows_sort(&work->rows, &work->sorted);
    struct file_block block = {.series = place->series, .level = 1};
    for (size_t i = 0; i < work->sorted.window_count; i++) {
        block.windows += work->sorted.windows[i].windows;
        block.rows += work->sorted.windows[i].raw_rows;
        block.total = add_saturated(block.total, work->sorted.windows[i].total);
    }
    block.start_ns = work->sorted.windows[0].start_ns;
    block.last_ns = work->sorted.windows[work->sorted.window_count - 1].start_ns;
    work->data.length = 0;
    block_encode(work->codec, &work->sorted, 0, work->sorted.window_count, &work->data);
    block.data = work->data.data;
    block.length = work->data.length;
    for (size_t i = 0; !r && i < work->id_count; i++) {
        sqlite3_stmt *statement = file_sql(file, file->writer, SQL_REMOVE_BLOCK, error);
        if (!statement)
            return error->code;
        sqlite3_bind_int64(statement, 1, work->ids[i]);
        r = file_step(file, statement, error);
    }
    if (!r)
        r = file_add_block(file, &block, error);
    return r;
}

/* Some places per transaction: pushes wait for the file's lock meanwhile. */
static int compact_places(struct compaction *work, struct file *file, const struct place *places,
                          size_t count, struct error *error)
{
    pthread_mutex_lock(&file->write_lock);
    live_settle(work->store, file);
    int r = file_begin(file, error);
    if (!r) {
        for (size_t i = 0; !r && i < count; i++)
            r = compact_place(work, file, &places[i], error);
        r = file_end(file, r, error);
        live_remark(file);
    }
    pthread_mutex_unlock(&file->write_lock);
    return r;
}

static int compact(struct embedded *store, struct file *file, const atomic_bool *cancelled,
                   struct error *error)
{
    struct place places[PLACES_AT_ONCE];
    size_t count;
    int r = find_crowded(store, file, places, &count, error);
    if (r < 0 || !count)
        return r;
    _cleanup_(compaction_release) struct compaction work = {
        .store = store,
        .codec = embedded_codec(store),
        .row_limit = MIN(store->memory_limit_bytes / 128, (size_t)BLOCK_ROWS_MAX)};
    for (size_t i = 0; !r && i < count; i += PLACES_PER_COMMIT) {
        r = compact_places(&work, file, places + i, MIN(count - i, (size_t)PLACES_PER_COMMIT),
                           error);
        if (cancelled && atomic_load(cancelled))
            return error_set(error, -ECANCELED, "Maintenance was stopped.");
    }
    pthread_mutex_lock(&store->lock);
    store->stats.compacted_blocks += count;
    pthread_mutex_unlock(&store->lock);
    return r < 0 ? r : count == PLACES_AT_ONCE;
}

/* ---- joining the pieces of a table that commits left ---- */

static int join_table(struct file *file, enum catalog_table table, uint32_t service,
                      struct error *error)
{
    _cleanup_buffer_ struct buffer data = {0};
    pthread_rwlock_rdlock(&file->lock);
    uint32_t kept =
        table == TABLE_NODES ? file->catalog.services[service].kept : file->catalog.kept[table];
    catalog_pack_joined(&file->catalog, table, service, 1, kept - 1, &data);
    pthread_rwlock_unlock(&file->lock);
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_REMOVE_CHUNKS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int(statement, 1, (int)table);
    sqlite3_bind_int64(statement, 2, service);
    int r = file_step(file, statement, error);
    if (!r && !(statement = file_sql(file, file->writer, SQL_ADD_CHUNK, error)))
        r = error->code;
    if (r < 0)
        return r;
    sqlite3_bind_int(statement, 1, (int)table);
    sqlite3_bind_int64(statement, 2, service);
    sqlite3_bind_int64(statement, 3, 1);
    sqlite3_bind_int64(statement, 4, kept - 1);
    sqlite3_bind_blob64(statement, 5, data.data, data.length, SQLITE_STATIC);
    return file_step(file, statement, error);
}

/* Tables of at least so many pieces; 1 when there are more of them. */
static int join_chunks(struct file *file, unsigned least, struct error *error)
{
    struct {
        int table;
        uint32_t service;
    } full[64];
    size_t count = 0;
    int r = file_load(file, error);
    struct connection *connection = r < 0 ? NULL : file_borrow(file, error);
    sqlite3_stmt *statement =
        connection ? file_sql(file, connection, SQL_COUNT_CHUNKS, error) : NULL;
    if (statement)
        sqlite3_bind_int64(statement, 1, least);
    r = statement ? 0 : error->code;
    while (statement && count < ARRAY_LENGTH(full) &&
           (r = file_step(file, statement, error)) == 1) {
        full[count].table = sqlite3_column_int(statement, 0);
        full[count++].service = (uint32_t)sqlite3_column_int64(statement, 1);
    }
    if (statement)
        sqlite3_reset(statement);
    file_return(file, connection);
    for (size_t i = 0; r >= 0 && i < count; i++) {
        if (full[i].table == TABLE_NODES)
            r = file_load_tree(file, full[i].service, error);
        if (r < 0)
            break;
        pthread_mutex_lock(&file->write_lock);
        r = file_begin(file, error);
        if (!r) {
            r = join_table(file, full[i].table, full[i].service, error);
            r = file_end(file, r, error);
        }
        pthread_mutex_unlock(&file->write_lock);
    }
    return r < 0 ? r : count == ARRAY_LENGTH(full);
}

/* ---- rounds ---- */

/* Damage under a running server is found, too. */
static int verify(struct embedded *store, struct file *file, struct error *error)
{
    int64_t now_ns = embedded_now(store);
    int64_t since_ns = now_ns - file->verified_ns;
    if (since_ns >= 0 && since_ns < VERIFY_NS)
        return 0;
    file->verified_ns = now_ns;
    int r = file_load_series(file, error);
    struct connection *connection = r ? NULL : file_borrow(file, error);
    if (!connection)
        return r ? r : error->code;
    r = file_run(file, connection, SQL_BEGIN_READ, error);
    pthread_rwlock_rdlock(&file->lock);
    if (!r)
        r = file_verify(file, connection, error);
    pthread_rwlock_unlock(&file->lock);
    file_run(file, connection, SQL_COMMIT, NULL);
    file_return(file, connection);
    return r;
}

/* Changes whenever there may be work for a file again: it was written to, or another one was set
 * aside, and it may be what that one is made again from. Never 0. */
static uint64_t state(const struct embedded *store, const struct file *file)
{
    return 1 + file->changes + atomic_load(&store->set_aside);
}

/* A log is as large as it ever was until it is cut off: when nothing was written since the last
 * round. That it can't be just then is nothing to report. */
static void tidy_quiet_log(struct file *file)
{
    struct error ignored;
    pthread_mutex_lock(&file->write_lock);
    bool tidy = file->changes == file->looked && file->tidied != file->changes + 1;
    file->looked = file->changes;
    if (tidy)
        file->tidied = file->changes + 1;
    pthread_mutex_unlock(&file->write_lock);
    if (tidy)
        file_tidy_log(file, &ignored);
}

/* Work on one file; 1 when there is more. Damage is dealt with here. */
static int work_on_file(struct embedded *store, struct file *file, const atomic_bool *cancelled,
                        struct error *error)
{
    int more = 0, r = 0;
    pthread_mutex_lock(&file->write_lock);
    file_remove_lost(file);
    bool fresh = file->fresh || !file->swept, quiet = file->quiet == state(store, file);
    bool ended =
        !file->fresh && file->to_ns < embedded_now(store); /* its tables may grow no more */
    uint64_t changes = file->changes, before = state(store, file);
    file->fresh = 0;
    pthread_mutex_unlock(&file->write_lock);
    r = verify(store, file, error);
    if (!r && quiet)
        return 0;
    if (!r && fresh) {
        r = compact(store, file, cancelled, error);
        more |= r == 1;
        if (r >= 0)
            r = join_chunks(file, ended ? 2 : CHUNKS_MAX, error);
        more |= r == 1;
        pthread_mutex_lock(&file->write_lock);
        /* An hour that isn't over yet is looked at again. */
        file->swept = r >= 0 && !more && file->to_ns < embedded_now(store) - DAY_NS;
        pthread_mutex_unlock(&file->write_lock);
    }
    if (r >= 0) {
        r = embedded_roll_up(store, file, error);
        more |= r == 1;
    }
    if (r >= 0 && !more && file->to_ns < embedded_now(store)) {
        r = file_shrink(file, error);
        more |= r == 1;
        if (r >= 0 && !more && file->changes != changes)
            r = file_tidy_log(file, error);
    }
    if (embedded_is_damaged(store, file, r)) {
        embedded_set_aside(store, file, error->text);
        return 1; /* rollups are made again */
    }
    if (r >= 0)
        tidy_quiet_log(file);
    /* Nothing happened in this round, and time alone brings nothing either. */
    pthread_mutex_lock(&file->write_lock);
    if (r >= 0 && !more && file->changes == changes && file->to_ns < embedded_now(store) - DAY_NS)
        file->quiet = before;
    pthread_mutex_unlock(&file->write_lock);
    return r < 0 ? r : more;
}

/* Compaction and rollups need a quarter of the limit at most: rows of one block before and after
 * sorting, or a service's stacks with a value each. */
static int maintain_file(struct embedded *store, struct file *file, const atomic_bool *cancelled,
                         struct error *error)
{
    size_t bytes = store->memory_limit_bytes / 4;
    if (!budget_wait(store->budget, bytes, WORK_WAIT_MS, cancelled))
        return 0; /* the next round will do */
    int r = work_on_file(store, file, cancelled, error);
    budget_give(store->budget, bytes);
    return r;
}

/* Whether earlier rounds are paid for, by time and by the rows that have come since. Rounds that
 * wait find more to do at once: so rows that trickle in for one place don't have it rewritten for
 * each of them. */
static bool is_paid(struct embedded *store)
{
    pthread_mutex_lock(&store->lock);
    uint64_t rows = store->stats.written_rows;
    pthread_mutex_unlock(&store->lock);
    pace_earn(&store->pace, (int64_t)(rows - store->paid_rows) * MAINTAIN_ROW_NS);
    store->paid_rows = rows;
    return !store->pace.share || !pace_owed_ns(&store->pace, monotonic_ns());
}

static int maintain_files(struct embedded *store, struct file_list *list,
                          const atomic_bool *cancelled, struct error *error)
{
    int r = 0, more = 0;
    int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; r >= 0 && i < list->count; i++) {
        if (cancelled && atomic_load(cancelled))
            break;
        if (embedded_check_room(store, NULL) < 0)
            break; /* what compaction needs for a while would be the room for the next start */
        if (list->files[i]->gone)
            continue;
        r = maintain_file(store, list->files[i], cancelled, error);
        more |= r == 1;
        embedded_count_catalog(store, list->files[i]);
        embedded_unref(store, list->files[i]); /* so that its catalog can be forgotten */
        list->files[i] = NULL;
    }
    pace_spend(&store->pace, clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    return r < 0 ? r : more;
}

int embedded_round(struct embedded *store, bool paced, const atomic_bool *cancelled,
                   struct error *error)
{
    pthread_mutex_lock(&store->maintenance);
    struct file_list list = embedded_files(store, NULL, INT64_MIN, INT64_MAX);
    int r = !paced || is_paid(store) ? maintain_files(store, &list, cancelled, error) : 0;
    int more = r > 0;
    size_t before = list.count;
    embedded_release(store, &list);
    if (r >= 0 && (r = embedded_scrub(store, error)) > 0)
        r = 0; /* somebody is in the way: the next round will do */
    embedded_expire(store);
    embedded_keep_to_disk_limit(store);
    embedded_trim_caches(store, false);
    pthread_mutex_lock(&store->lock);
    more |= r >= 0 && store->file_count > before; /* new rollup files have rollups of their own */
    pthread_mutex_unlock(&store->lock);
    pthread_mutex_unlock(&store->maintenance);
    return r < 0 ? r : more;
}

int embedded_maintain(struct store *base, const atomic_bool *cancelled, struct error *error)
{
    struct embedded *store = embedded_of(base);
    if (store->read_only)
        return 0;
    int r = embedded_round(store, true, cancelled, error);
    embedded_keep_reserve(store);
    return r;
}
