// SPDX-License-Identifier: Apache-2.0
// Reading the blocks that a plan names, file by file and service by service.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/plan.h"

struct selected_series {
    uint32_t service, series;
};

static int compare_series(const void *a, const void *b)
{
    const struct selected_series *x = a, *y = b;
    if (x->service != y->service)
        return x->service < y->service ? -1 : 1;
    return x->series < y->series ? -1 : x->series > y->series;
}

/* Those that the selection names, by service. */
static struct selected_series *select_series(struct reader *reader, struct file *file,
                                             size_t *ret_count)
{
    const struct store_selection *selection = reader->selection;
    pthread_rwlock_rdlock(&file->lock);
    const struct catalog *catalog = &file->catalog;
    struct selected_series *list = memory_zalloc(catalog->series_count + 1, sizeof(*list));
    size_t count = 0;
    for (size_t i = 0; i < catalog->series_count; i++) {
        const struct catalog_series *series = &catalog->series[i];
        if ((!selection->type || !strcmp(selection->type, series->type)) &&
            (!selection->selector || selector_matches(selection->selector, &series->labels)))
            list[count++] =
                (struct selected_series){.service = series->service, .series = (uint32_t)i};
    }
    pthread_rwlock_unlock(&file->lock);
    if (count)
        qsort(list, count, sizeof(*list), compare_series);
    *ret_count = count;
    return list;
}

static void note_series(struct reader *reader, struct file *file, uint32_t series)
{
    pthread_rwlock_rdlock(&file->lock);
    uint64_t hash = labels_hash(&file->catalog.series[series].labels);
    for (const char *c = file->catalog.series[series].type; *c; c++)
        hash = hash_word(hash ^ (unsigned char)*c);
    pthread_rwlock_unlock(&file->lock);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&reader->seen, &probe)) != ID_NONE)
        if (reader->hashes[id] == hash)
            return;
    array_reserve(reader->hashes, reader->hash_capacity, reader->hash_count + 1);
    reader->hashes[reader->hash_count] = hash;
    id_table_insert(&reader->seen, hash, (uint32_t)reader->hash_count++);
    reader->quality->series++;
}

/* Windows of the block in [from, to): they are in order of time. */
static void find_windows(const struct block_view *view, int64_t from_ns, int64_t to_ns,
                         size_t *ret_first, size_t *ret_count)
{
    size_t first = 0, end = view->window_count;
    while (first < end && view->windows[first].start_ns < from_ns)
        first++;
    while (end > first && view->windows[end - 1].start_ns >= to_ns)
        end--;
    *ret_first = first;
    *ret_count = end - first;
}

static int read_block(struct reader *reader, struct file *file, uint32_t series, const void *data,
                      size_t length, const struct plan_range *range, bool *any, struct error *error)
{
    struct block_view view;
    size_t first, count;
    if (!data || block_open(reader->codec, data, length, &view) < 0) {
        if (reader->quality)
            reader->quality->damaged_blocks++;
        return 0;
    }
    find_windows(&view, range->from_ns, range->to_ns, &first, &count);
    if (!count)
        return 0;
    int r = reader->calls->block(reader, file, series, &view, first, count, error);
    if (r == -EBADMSG) {
        if (reader->quality)
            reader->quality->damaged_blocks++;
        return 0;
    }
    if (reader->quality) {
        reader->quality->blocks++;
        for (size_t w = first; w < first + count; w++) {
            const struct block_window *window = &view.windows[w];
            quality_add(reader->quality, window->first_ns, window->last_ns, window->duration_ns,
                        window->windows, window->raw_rows, window->total);
        }
    }
    *any = true;
    return r;
}

static void bind_range(sqlite3_stmt *statement, uint32_t series, const struct plan_range *range)
{
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, range->from_ns - tier_block_ns[range->file->tier]);
    sqlite3_bind_int64(statement, 3, range->to_ns);
    sqlite3_bind_int64(statement, 4, range->from_ns);
}

static int read_series(struct reader *reader, uint32_t series, const struct plan_range *ranges,
                       size_t count, struct error *error)
{
    struct file *file = ranges->file;
    bool any = false;
    int r = 0;
    for (size_t i = 0; !r && i < count; i++) {
        sqlite3_stmt *statement = file_sql(file, reader->connection, SQL_BLOCKS, error);
        if (!statement)
            return error->code;
        bind_range(statement, series, &ranges[i]);
        while ((r = file_step(file, statement, error)) == 1) {
            const void *data = sqlite3_column_blob(statement, 1);
            size_t length = (size_t)sqlite3_column_bytes(statement, 1);
            r = read_block(reader, file, series, data, length, &ranges[i], &any, error);
            if (!r && is_cancelled(reader->limits))
                r = error_cancelled(error);
            if (r) {
                sqlite3_reset(statement);
                break;
            }
        }
    }
    if (any && reader->quality) {
        note_series(reader, file, series);
        reader->quality->tiers |= 1u << file->tier;
    }
    return r;
}

static int read_file(struct reader *reader, const struct plan_range *ranges, size_t count,
                     struct error *error)
{
    struct file *file = ranges->file;
    int r = file_load(file, error);
    if (r < 0)
        return r;
    reader->connection = file_borrow(file, error);
    if (!reader->connection)
        return error->code;
    r = file_run(file, reader->connection, SQL_BEGIN_READ, error);
    size_t series_count;
    _cleanup_free_ struct selected_series *list = select_series(reader, file, &series_count);
    for (size_t i = 0, end; !r && i < series_count; i = end) {
        uint32_t service = list[i].service;
        if (reader->calls->begin)
            r = reader->calls->begin(reader, file, service, error);
        for (end = i; end < series_count && list[end].service == service; end++)
            if (!r)
                r = read_series(reader, list[end].series, ranges, count, error);
        if (!r && reader->calls->end)
            r = reader->calls->end(reader, file, service, error);
        /* A transaction that is held open lets the log grow. */
        if (!r && !(r = file_run(file, reader->connection, SQL_COMMIT, error)))
            r = file_run(file, reader->connection, SQL_BEGIN_READ, error);
    }
    if (!sqlite3_get_autocommit(reader->connection->db))
        file_run(file, reader->connection, SQL_COMMIT, NULL);
    file_return(file, reader->connection);
    reader->connection = NULL;
    return r;
}

int reader_run(struct reader *reader, const struct plan *plan, struct error *error)
{
    reader->codec = embedded_codec(reader->store);
    int r = 0;
    for (size_t i = 0, end; !r && i < plan->count; i = end) {
        struct file *file = plan->ranges[i].file;
        for (end = i; end < plan->count && plan->ranges[end].file == file; end++)
            ;
        r = read_file(reader, &plan->ranges[i], end - i, error);
        if (r == -EBADMSG) {
            embedded_set_aside(reader->store, file, error->text);
            if (reader->quality)
                reader->quality->damaged_files++;
            r = 0;
        }
    }
    embedded_codec_return(reader->store, reader->codec);
    reader->codec = NULL;
    id_table_release(&reader->seen);
    free(reader->hashes);
    reader->hashes = NULL;
    reader->hash_count = reader->hash_capacity = 0;
    return r;
}

static int file_total(struct reader *reader, const struct plan_range *range, int64_t *total,
                      struct error *error)
{
    struct file *file = range->file;
    int r = file_load(file, error);
    struct connection *connection = r < 0 ? NULL : file_borrow(file, error);
    if (!connection)
        return error->code;
    size_t count;
    _cleanup_free_ struct selected_series *list = select_series(reader, file, &count);
    file_run(file, connection, SQL_BEGIN_READ, NULL);
    for (size_t i = 0; !r && i < count; i++) {
        sqlite3_stmt *statement = file_sql(file, connection, SQL_TOTALS, error);
        if (!statement) {
            r = error->code;
            break;
        }
        bind_range(statement, list[i].series, range);
        while ((r = file_step(file, statement, error)) == 1)
            *total = add_saturated(*total, magnitude(sqlite3_column_int64(statement, 0)));
    }
    file_run(file, connection, SQL_COMMIT, NULL);
    file_return(file, connection);
    return r;
}

int reader_total(struct reader *reader, const struct plan *plan, int64_t *ret_total,
                 struct error *error)
{
    int64_t total = 0;
    for (size_t i = 0; i < plan->count; i++) {
        int r = file_total(reader, &plan->ranges[i], &total, error);
        if (r < 0 && r != -EBADMSG) /* that will be noticed again, and dealt with */
            return r;
    }
    *ret_total = total;
    return 0;
}
