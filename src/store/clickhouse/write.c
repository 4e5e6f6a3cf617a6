// SPDX-License-Identifier: Apache-2.0
// Writes. Requests gather while others are committed; whoever comes first then commits them all:
// few large inserts instead of many small ones. A request returns when its rows are stored.

#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"
#include "store/clickhouse/internal.h"

#define GROUP_BYTES_MAX (256ul << 20)

bool known_has(struct known *known, struct digest digest)
{
    pthread_mutex_lock(&known->lock);
    bool has = digest_table_find(&known->table, digest) != ID_NONE;
    pthread_mutex_unlock(&known->lock);
    return has;
}

/* When there are too many, all are forgotten, and announced again as they come. */
void known_note(struct known *known, const struct digest *digests, size_t count)
{
    pthread_mutex_lock(&known->lock);
    if (digest_table_bytes(&known->table) > known->limit_bytes / 2 &&
        known->table.used * 3 > known->table.mask * 2)
        digest_table_release(&known->table);
    for (size_t i = 0; i < count; i++)
        if (digest_table_find(&known->table, digests[i]) == ID_NONE)
            digest_table_insert(&known->table, digests[i], 0);
    pthread_mutex_unlock(&known->lock);
}

size_t pending_bytes(const struct pending *pending)
{
    size_t bytes = pending->frames.capacity + pending->stacks.capacity + pending->series.capacity +
                   pending->known_capacity * sizeof(*pending->known);
    for (size_t i = 0; i < pending->day_count; i++)
        bytes += pending->days[i].rows.capacity;
    return bytes;
}

void pending_release(struct pending *pending)
{
    buffer_release(&pending->frames);
    buffer_release(&pending->stacks);
    buffer_release(&pending->series);
    for (size_t i = 0; i < pending->day_count; i++)
        buffer_release(&pending->days[i].rows);
    free(pending->days);
    free(pending->known);
}

/* ---- one group ---- */

static int insert(struct clickhouse *store, const char *table, const char *columns,
                  const struct buffer *rows, bool *ret_uncertain, struct error *error)
{
    _cleanup_statement_ struct statement statement = {0};
    if (!rows->length)
        return 0;
    buffer_printf(&statement.sql, "INSERT INTO %s%s (%s)", table, own_suffix(&store->links),
                  columns);
    int r = links_insert(&store->links, &statement, rows, error);
    if (ret_uncertain)
        *ret_uncertain = r < 0 && statement.uncertain;
    return r;
}

static int insert_names(struct clickhouse *store, struct pending *list, struct error *error)
{
    static const struct {
        size_t buffer;
        const char *name, *columns;
    } tables[] = {
        {offsetof(struct pending, frames), "frames",
         "period, tenant, frame, address, line, `column`, start_line, kind, inlined, folded, "
         "function, system_name, source, mapping_start, mapping_limit, mapping_offset, file, "
         "build_id"},
        {offsetof(struct pending, stacks), "stacks", "period, tenant, stream, stack, frames"},
        {offsetof(struct pending, series), "series",
         "period, tenant, stream, series, service, type, label_names, label_values"},
    };
    int r = 0;
    for (size_t i = 0; !r && i < ARRAY_LENGTH(tables); i++) {
        _cleanup_buffer_ struct buffer rows = {0};
        for (struct pending *pending = list; pending; pending = pending->next) {
            const struct buffer *own = (const void *)((const char *)pending + tables[i].buffer);
            if (!pending->result)
                buffer_add(&rows, own->data, own->length);
        }
        r = insert(store, tables[i].name, tables[i].columns, &rows, NULL, error);
    }
    for (struct pending *pending = list; !r && pending; pending = pending->next)
        if (!pending->result)
            known_note(&store->known, pending->known, pending->known_count);
    return r;
}

/* The first day from `from` on that has rows to be inserted; DAY_LAST + 1: none. */
static unsigned next_day(const struct pending *list, unsigned from)
{
    unsigned next = DAY_LAST + 1;
    for (; list; list = list->next)
        for (size_t i = 0; !list->result && i < list->day_count; i++)
            if (!list->days[i].stored && list->days[i].day >= from && list->days[i].day < next)
                next = list->days[i].day;
    return next;
}

static void fail_day(struct pending *list, unsigned day, bool uncertain, const struct error *error)
{
    for (; list; list = list->next)
        for (size_t i = 0; !list->result && i < list->day_count; i++)
            if (!list->days[i].stored && list->days[i].day == day) {
                /* Of a batch of several days, an earlier one may be stored. */
                list->uncertain = uncertain || i > 0 || list->day_count > 1;
                list->result = error->code;
                list->error = *error;
            }
}

/* Rows of one partition become one part. Mostly there is one. */
static void insert_samples(struct clickhouse *store, struct pending *list)
{
    for (unsigned day = next_day(list, 0); day <= DAY_LAST; day = next_day(list, day + 1)) {
        _cleanup_buffer_ struct buffer rows = {0};
        struct error error = {0};
        bool uncertain = false;
        for (struct pending *pending = list; pending; pending = pending->next)
            for (size_t i = 0; !pending->result && i < pending->day_count; i++)
                if (pending->days[i].day == day && !pending->days[i].stored)
                    buffer_add(&rows, pending->days[i].rows.data, pending->days[i].rows.length);
        if (insert(store, "samples",
                   "day, tenant, kind, stream, hour, series, stack, time, value, duration, `rows`, "
                   "batch, exemplar",
                   &rows, &uncertain, &error) < 0)
            fail_day(list, day, uncertain, &error);
    }
}

static void fail_all(struct pending *list, bool uncertain, const struct error *error)
{
    for (; list; list = list->next)
        if (!list->result) {
            list->uncertain |= uncertain;
            list->result = error->code;
            list->error = *error;
        }
}

/* Whatever ClickHouse says against an insert isn't the sender's fault: it has to try again. */
static void blame_nobody(struct pending *list)
{
    for (; list; list = list->next)
        if (list->result && list->result != -EALREADY && list->result != -ENOSPC &&
            list->result != -EROFS)
            list->result = list->error.code = -EAGAIN;
}

static void commit(struct clickhouse *store, struct pending *list)
{
    struct error error = {0};
    if (insert_names(store, list, &error) < 0 || batches_begin(store, list, &error) < 0)
        fail_all(list, false, &error);
    else
        insert_samples(store, list);
    batches_withdraw(store, list);
    /* A failure here leaves rows that the next attempt finds. */
    if (batches_end(store, list, &error) < 0)
        for (struct pending *pending = list; pending; pending = pending->next)
            if (pending->intended && !pending->result) {
                pending->result = error.code;
                pending->error = error;
            }
    blame_nobody(list);
    pthread_mutex_lock(&store->lock);
    store->commit_count++;
    for (struct pending *pending = list; pending; pending = pending->next) {
        store->written_rows += pending->result ? 0 : pending->rows;
        store->written_batches += !pending->result;
        store->repeated_batches += pending->result == -EALREADY;
        store->write_failures += pending->result && pending->result != -EALREADY;
    }
    pthread_mutex_unlock(&store->lock);
}

/* ---- groups ---- */

/* As many of those that wait as are one group. */
static struct pending *take_group(struct commits *commits)
{
    struct pending *list = commits->first, *last = NULL;
    size_t bytes = 0;
    for (struct pending *pending = list; pending; pending = pending->next) {
        size_t own = pending_bytes(pending);
        if (last && bytes + own > GROUP_BYTES_MAX)
            break;
        bytes += own;
        last = pending;
    }
    commits->first = last->next;
    if (!commits->first)
        commits->end = &commits->first;
    last->next = NULL;
    return list;
}

static void wait_for_commit(struct clickhouse *store, struct pending *own)
{
    struct commits *commits = &store->commits;
    size_t bytes = pending_bytes(own);
    pthread_mutex_lock(&commits->lock);
    while (commits->bytes && commits->bytes + bytes > commits->limit_bytes)
        pthread_cond_wait(&commits->changed, &commits->lock);
    commits->bytes += bytes;
    *commits->end = own;
    commits->end = &own->next;
    while (!own->done) {
        if (commits->busy) {
            pthread_cond_wait(&commits->changed, &commits->lock);
            continue;
        }
        struct pending *list = take_group(commits);
        commits->busy = true;
        pthread_mutex_unlock(&commits->lock);
        commit(store, list);
        pthread_mutex_lock(&commits->lock);
        while (list) { /* the others' are gone as soon as they see that they are done */
            struct pending *next = list->next;
            list->done = true;
            list = next;
        }
        commits->busy = false;
        pthread_cond_broadcast(&commits->changed);
    }
    commits->bytes -= bytes;
    pthread_cond_broadcast(&commits->changed);
    pthread_mutex_unlock(&commits->lock);
}

int clickhouse_write(struct store *base, const struct store_batch *batch, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_(pending_release) struct pending pending = {.tenant = batch->tenant,
                                                         .batch_id = batch->batch_id};
    if (batch->batch_id)
        pending.batch =
            XXH3_64bits_withSeed(batch->batch_id, strlen(batch->batch_id), store->store.seed) | 1;
    int r = clickhouse_encode(store, batch, &pending, error);
    if (r < 0)
        return r;
    if (batch->done_reading)
        batch->done_reading(batch->context);
    wait_for_commit(store, &pending);
    if (pending.result)
        *error = pending.error;
    return pending.result;
}
