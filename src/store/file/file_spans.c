// SPDX-License-Identifier: Apache-2.0
// When a raw file's series have windows, in memory: so that queries about labels and series need
// no look-up in the database for each of them. Read once, from the index of blocks, when first
// asked for; then kept up by commits. Compaction changes nothing of it; where windows are removed,
// it is read again.

#include <stdlib.h>

#include "base/memory.h"
#include "store/file/file.h"

#define HOUR_NS 3600000000000ll

/* With the catalog's lock held. */
static void widen(struct file *file, uint32_t id, int64_t start_ns, int64_t last_ns)
{
    if (id >= file->catalog.series_count || start_ns < file->from_ns || last_ns >= file->to_ns ||
        last_ns < start_ns)
        return; /* damage, which whoever reads the block meets */
    struct catalog_series *series = &file->catalog.series[id];
    series->first_ns = series->hours ? MIN(series->first_ns, start_ns) : start_ns;
    series->last_ns = series->hours ? MAX(series->last_ns, last_ns) : last_ns;
    unsigned first = (unsigned)((start_ns - file->from_ns) / HOUR_NS);
    unsigned last = (unsigned)((last_ns - file->from_ns) / HOUR_NS);
    for (unsigned hour = first; hour <= last; hour++)
        series->hours |= 1u << hour;
    file->catalog.hours |= series->hours;
}

void file_note_span(struct file *file, uint32_t series, int64_t start_ns, int64_t last_ns)
{
    if (file->tier != STORE_RAW)
        return;
    array_reserve(file->added, file->added_capacity, file->added_count + 1);
    file->added[file->added_count++] =
        (struct file_span){.series = series, .start_ns = start_ns, .last_ns = last_ns};
}

void file_keep_spans(struct file *file)
{
    for (size_t i = 0; i < file->added_count; i++)
        widen(file, file->added[i].series, file->added[i].start_ns, file->added[i].last_ns);
}

void file_lose_spans(struct file *file)
{
    pthread_rwlock_wrlock(&file->lock);
    file->catalog.spans_known = false;
    file->catalog.spans_lost++;
    pthread_rwlock_unlock(&file->lock);
}

/* Begins to read while nobody writes: what is committed later is widened by its transaction. */
static int begin(struct file *file, struct connection *connection, unsigned *ret_lost,
                 struct error *error)
{
    int64_t ignored;
    pthread_mutex_lock(&file->write_lock);
    int r = file_run(file, connection, SQL_BEGIN_READ, error);
    if (!r) /* a transaction sees what is there when it first reads */
        r = MIN(file_get_meta(file, connection, "floor", &ignored, error), 0);
    pthread_rwlock_wrlock(&file->lock);
    for (size_t i = 0; i < file->catalog.series_count; i++)
        file->catalog.series[i].hours = 0;
    file->catalog.hours = 0;
    *ret_lost = file->catalog.spans_lost;
    pthread_rwlock_unlock(&file->lock);
    pthread_mutex_unlock(&file->write_lock);
    return r;
}

static int read_spans(struct file *file, struct connection *connection, struct file_span **list,
                      size_t *count, struct error *error)
{
    size_t capacity = 0;
    sqlite3_stmt *statement = file_sql(file, connection, SQL_ALL_SPANS, error);
    int r = statement ? 0 : error->code;
    while (statement && (r = file_step(file, statement, error)) == 1) {
        int64_t series = sqlite3_column_int64(statement, 0);
        if (series < 0 || series > UINT32_MAX)
            continue;
        struct file_span span = {.series = (uint32_t)series,
                                 .start_ns = sqlite3_column_int64(statement, 1),
                                 .last_ns = sqlite3_column_int64(statement, 2)};
        /* Blocks of one series and hour are one here. */
        struct file_span *last = *count ? &(*list)[*count - 1] : NULL;
        if (last && last->series == span.series &&
            last->start_ns / HOUR_NS == span.start_ns / HOUR_NS) {
            last->last_ns = MAX(last->last_ns, span.last_ns);
            continue;
        }
        array_reserve(*list, capacity, *count + 1);
        (*list)[(*count)++] = span;
    }
    return r;
}

static int load(struct file *file, bool *ret_known, struct error *error)
{
    struct connection *connection = file_borrow(file, error);
    if (!connection)
        return error->code;
    _cleanup_free_ struct file_span *list = NULL;
    size_t count = 0;
    unsigned lost;
    int r = begin(file, connection, &lost, error);
    if (!r)
        r = read_spans(file, connection, &list, &count, error);
    if (!sqlite3_get_autocommit(connection->db))
        file_run(file, connection, SQL_COMMIT, NULL);
    file_return(file, connection);
    pthread_rwlock_wrlock(&file->lock);
    for (size_t i = 0; !r && i < count; i++)
        widen(file, list[i].series, list[i].start_ns, list[i].last_ns);
    *ret_known = file->catalog.spans_known = !r && file->catalog.spans_lost == lost;
    pthread_rwlock_unlock(&file->lock);
    return r;
}

int file_load_spans(struct file *file, struct error *error)
{
    if (file->tier != STORE_RAW || file->read_only)
        return 0;
    pthread_mutex_lock(&file->spans_lock); /* one thread reads them */
    pthread_rwlock_rdlock(&file->lock);
    bool known = file->catalog.spans_known;
    pthread_rwlock_unlock(&file->lock);
    int r = 0;
    for (unsigned tries = 0; !r && !known && tries < 3; tries++)
        r = load(file, &known, error);
    pthread_mutex_unlock(&file->spans_lock);
    return r;
}

bool file_meets(const struct file *file, int64_t from_ns, int64_t to_ns)
{
    int64_t from = MAX(from_ns, file->from_ns) - file->from_ns;
    int64_t to = MIN(to_ns, file->to_ns) - file->from_ns;
    bool meets = !file->catalog.spans_known;
    for (int64_t hour = from / HOUR_NS; !meets && hour * HOUR_NS < to; hour++)
        meets = file->catalog.hours >> hour & 1;
    return meets;
}

enum span_answer file_span_meets(const struct file *file, uint32_t id, int64_t from_ns,
                                 int64_t to_ns)
{
    const struct catalog_series *series = &file->catalog.series[id];
    if (!file->catalog.spans_known)
        return SPAN_MAYBE;
    if (!series->hours || series->first_ns >= to_ns || series->last_ns < from_ns)
        return SPAN_NO;
    if (series->first_ns >= from_ns || series->last_ns < to_ns)
        return SPAN_YES;
    /* It goes beyond the range on both sides. */
    int64_t from = MAX(from_ns, file->from_ns) - file->from_ns;
    int64_t to = MIN(to_ns, file->to_ns) - file->from_ns;
    bool some = false;
    for (int64_t hour = from / HOUR_NS; hour * HOUR_NS < to; hour++) {
        if (!(series->hours >> hour & 1))
            continue;
        if (hour * HOUR_NS >= from && (hour + 1) * HOUR_NS <= to)
            return SPAN_YES;
        some = true;
    }
    return some ? SPAN_MAYBE : SPAN_NO;
}
