// SPDX-License-Identifier: Apache-2.0
// Exactly once. Before the samples of batches with ids are inserted, a row in `batches` says which
// server is about to do it, and where their first windows will be; another says that they are
// stored. A server that finds the first without the second looks whether the samples are there: an
// insert is stored whole or not at all. When they aren't, it waits until the other can't be at it
// any more.

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "store/clickhouse/internal.h"

/* In timeouts of requests. An intent allows to begin an insert in the first half; after all of it,
 * the insert has either happened or never will. */
#define LEASE_TIMEOUTS 4
#define PLACES_MAX 4096

enum batch_state { BATCH_INTENDED, BATCH_STORED, BATCH_WITHDRAWN };

static uint32_t lease_s(const struct clickhouse *store)
{
    return LEASE_TIMEOUTS * links_timeout_s(&store->links);
}

struct attempt {
    uint64_t batch, attempt, owner;
    uint32_t age_s;
    bool stored, withdrawn;
    uint64_t *streams, *series;
    int64_t *times;
    size_t count;
};

struct attempts {
    struct attempt *list;
    size_t count, capacity;
};

static void attempts_release(struct attempts *attempts)
{
    for (size_t i = 0; i < attempts->count; i++) {
        free(attempts->list[i].streams);
        free(attempts->list[i].series);
        free(attempts->list[i].times);
    }
    free(attempts->list);
}

static struct attempt *find_attempt(struct attempts *attempts, uint64_t batch, uint64_t id)
{
    for (size_t i = 0; i < attempts->count; i++)
        if (attempts->list[i].batch == batch && attempts->list[i].attempt == id)
            return &attempts->list[i];
    array_reserve(attempts->list, attempts->capacity, attempts->count + 1);
    struct attempt *attempt = &attempts->list[attempts->count++];
    *attempt = (struct attempt){.batch = batch, .attempt = id};
    return attempt;
}

static uint64_t *copy_words(struct row_reader *row, size_t *ret_count)
{
    size_t count = row_get_length(row);
    const void *words = count <= PLACES_MAX ? row_take(row, count * 8) : NULL;
    uint64_t *copy = memory_zalloc(count && words ? count : 1, 8);
    if (words)
        memcpy(copy, words, count * 8);
    *ret_count = count;
    return copy;
}

static int read_attempt(void *context, struct row_reader *row, struct error *error)
{
    struct attempts *attempts = context;
    uint64_t batch = row_get_u64(row), id = row_get_u64(row), owner = row_get_u64(row);
    uint8_t state = row_get_u8(row);
    uint32_t age_s = row_get_u32(row);
    size_t counts[3];
    (void)error;
    uint64_t *streams = copy_words(row, &counts[0]), *series = copy_words(row, &counts[1]),
             *times = copy_words(row, &counts[2]);
    bool good = !row->is_short && counts[0] == counts[1] && counts[0] == counts[2];
    struct attempt *attempt = good ? find_attempt(attempts, batch, id) : NULL;
    if (attempt && state == BATCH_INTENDED && !attempt->streams) {
        attempt->owner = owner;
        attempt->age_s = age_s;
        attempt->count = counts[0];
        attempt->streams = TAKE_PTR(streams);
        attempt->series = TAKE_PTR(series);
        attempt->times = (int64_t *)TAKE_PTR(times);
    } else if (attempt) {
        attempt->stored |= state == BATCH_STORED;
        attempt->withdrawn |= state == BATCH_WITHDRAWN;
    }
    free(streams);
    free(series);
    free(times);
    return 0;
}

static void add_batches(struct buffer *sql, const struct pending *list, const struct pending *one)
{
    bool first = true;
    buffer_add_text(sql, "(tenant, batch, id) IN (");
    for (const struct pending *pending = list; pending; pending = pending->next) {
        if (!pending->batch_id || pending->result || (one && pending != one))
            continue;
        buffer_add_text(sql, first ? "(" : ",(");
        sql_text(sql, pending->tenant);
        buffer_printf(sql, ", %llu, ", (unsigned long long)pending->batch);
        sql_text(sql, pending->batch_id);
        buffer_add_char(sql, ')');
        first = false;
    }
    buffer_add_char(sql, ')');
}

static int load_attempts(struct clickhouse *store, const struct pending *list,
                         struct attempts *attempts, struct error *error)
{
    _cleanup_statement_ struct statement statement = {0};
    buffer_add_text(&statement.sql,
                    "SELECT batch, attempt, owner, state, "
                    "toUInt32(greatest(toInt64(toUInt32(now())) - toInt64(toUInt32(written)), 0)), "
                    "streams, series, times FROM batches WHERE ");
    add_batches(&statement.sql, list, NULL);
    return links_query(&store->links, &statement, read_attempt, attempts, error);
}

/* ---- was it stored after all? ---- */

static int read_found(void *context, struct row_reader *row, struct error *error)
{
    uint64_t found = row_get_u64(row);
    (void)error;
    if (!row->is_short)
        *(uint64_t *)context = found;
    return 0;
}

/* Whether the window is there that the attempt would have put there: anywhere, or on one host. */
static int look_on(struct clickhouse *store, unsigned host, const struct pending *pending,
                   const struct attempt *attempt, size_t place, bool *ret_found,
                   struct error *error)
{
    _cleanup_statement_ struct statement statement = {.host = host};
    int64_t time_ns = attempt->times[place];
    uint64_t found = 0;
    buffer_printf(&statement.sql, "SELECT toUInt64(count()) FROM samples%s WHERE tenant = ",
                  own_suffix(&store->links));
    sql_text(&statement.sql, pending->tenant);
    buffer_printf(&statement.sql,
                  " AND kind = %d AND stream = %llu AND series = %llu AND batch = %llu", ROW_WINDOW,
                  (unsigned long long)attempt->streams[place],
                  (unsigned long long)attempt->series[place], (unsigned long long)pending->batch);
    sql_range(&statement.sql, time_ns, time_ns + 1);
    int r = links_query(&store->links, &statement, read_found, &found, error);
    *ret_found = found > 0;
    return r;
}

struct current {
    uint64_t behind, shards;
};

static int read_current(void *context, struct row_reader *row, struct error *error)
{
    struct current current = {.behind = row_get_u64(row), .shards = row_get_u64(row)};
    (void)error;
    if (!row->is_short)
        *(struct current *)context = current;
    return 0;
}

/* Whether the host has all that any replica of its shard has committed. */
static bool is_current(struct clickhouse *store, unsigned host, uint64_t *ret_shards)
{
    _cleanup_statement_ struct statement statement = {.host = host};
    struct current current = {.behind = 1};
    buffer_add_text(
        &statement.sql,
        "SELECT toUInt64(sum(is_readonly + is_session_expired + (log_pointer <= log_max_index)) + "
        "(SELECT count() FROM system.replication_queue WHERE database = currentDatabase() AND "
        "table = 'samples_local' AND type = 'GET_PART')), (SELECT toUInt64(uniqExact(shard_num)) "
        "FROM system.clusters WHERE cluster = ");
    sql_text(&statement.sql, store->links.address.cluster);
    buffer_add_text(&statement.sql, ") FROM system.replicas WHERE database = currentDatabase() AND "
                                    "table = 'samples_local'");
    int r = links_query(&store->links, &statement, read_current, &current, NULL);
    *ret_shards = current.shards;
    return !r && !current.behind;
}

/* While a host doesn't answer: of each shard, another one has to know all that it had. */
static int look_without(struct clickhouse *store, const struct pending *pending,
                        const struct attempt *attempt, size_t place, bool *ret_found,
                        struct error *error)
{
    uint64_t seen[CLICKHOUSE_HOSTS_MAX], seen_count = 0, shards = 0;
    for (unsigned host = 1; host <= store->links.address.host_count; host++) {
        bool is_new = is_current(store, host, &shards);
        if (!is_new || look_on(store, host, pending, attempt, place, ret_found, error) < 0)
            continue;
        if (*ret_found)
            return 0;
        uint64_t shard = links_shard(&store->links, host);
        for (size_t i = 0; is_new && i < seen_count; i++)
            is_new = seen[i] != shard;
        if (is_new && shard)
            seen[seen_count++] = shard;
    }
    return seen_count && seen_count == shards ? 0 : error_set(error, -EAGAIN, "A host is missing.");
}

/* In a cluster, every replica is asked: one may have what others haven't fetched yet. */
static int look_for(struct clickhouse *store, const struct pending *pending,
                    const struct attempt *attempt, size_t place, bool *ret_found,
                    struct error *error)
{
    const struct clickhouse_address *address = &store->links.address;
    bool found = false, all = true;
    if (!address->cluster)
        return look_on(store, 0, pending, attempt, place, ret_found, error);
    for (unsigned host = 1; !found && host <= address->host_count; host++) {
        int r = look_on(store, host, pending, attempt, place, &found, error);
        found &= !r;
        all &= !r;
    }
    *ret_found = found;
    return found || all ? 0 : look_without(store, pending, attempt, place, ret_found, error);
}

/* Whether all of it is there; what is there isn't inserted again. */
static int look_for_all(struct clickhouse *store, struct pending *pending,
                        const struct attempt *attempt, bool *ret_all, struct error *error)
{
    size_t found = 0;
    for (size_t i = 0; i < attempt->count; i++) {
        bool here = false;
        int r = look_for(store, pending, attempt, i, &here, error);
        if (r < 0)
            return r;
        for (size_t d = 0; here && d < pending->day_count; d++)
            pending->days[d].stored |= pending->days[d].series == attempt->series[i] &&
                                       pending->days[d].time_ns == attempt->times[i];
        found += here;
    }
    *ret_all = attempt->count && found == attempt->count;
    return 0;
}

static int settle(struct clickhouse *store, struct pending *pending, struct attempts *attempts,
                  struct error *error)
{
    for (size_t i = 0; i < attempts->count; i++) {
        const struct attempt *attempt = &attempts->list[i];
        if (attempt->batch != pending->batch || attempt->attempt == pending->attempt)
            continue;
        if (attempt->stored) {
            pending->result = error_set(&pending->error, -EALREADY, "The batch is already stored.");
            return 0;
        }
    }
    for (size_t i = 0; i < attempts->count; i++) {
        const struct attempt *attempt = &attempts->list[i];
        if (attempt->batch != pending->batch || attempt->attempt == pending->attempt ||
            attempt->withdrawn)
            continue;
        bool all;
        int r = look_for_all(store, pending, attempt, &all, error);
        if (r < 0 && store->links.address.cluster) {
            pending->result =
                error_set(&pending->error, -EAGAIN,
                          "Whether this batch was stored isn't known until more hosts of the "
                          "cluster answer; retry later.");
            return 0;
        }
        if (r < 0)
            return r;
        if (all) { /* only the note is missing */
            pending->settled = true;
            return 0;
        }
        if (attempt->age_s <= lease_s(store)) {
            pending->result = error_set(
                &pending->error, -EAGAIN, "%s may be storing this batch; retry in %u seconds.",
                attempt->owner == store->owner ? "An earlier attempt" : "Another server",
                lease_s(store) - attempt->age_s);
            return 0;
        }
    }
    return 0;
}

/* ---- rows of `batches` ---- */

static void add_row(struct clickhouse *store, const struct pending *pending, enum batch_state state,
                    struct buffer *rows)
{
    row_text(rows, pending->tenant);
    row_u64(rows, pending->batch);
    row_text(rows, pending->batch_id);
    row_u64(rows, pending->attempt);
    row_u64(rows, store->owner);
    row_u8(rows, (uint8_t)state);
    size_t count = state == BATCH_INTENDED ? MIN(pending->day_count, (size_t)PLACES_MAX) : 0;
    row_length(rows, count);
    for (size_t i = 0; i < count; i++)
        row_u64(rows, pending->days[i].stream);
    row_length(rows, count);
    for (size_t i = 0; i < count; i++)
        row_u64(rows, pending->days[i].series);
    row_length(rows, count);
    for (size_t i = 0; i < count; i++)
        row_i64(rows, pending->days[i].time_ns);
}

static int insert(struct clickhouse *store, const struct buffer *rows, struct error *error)
{
    _cleanup_statement_ struct statement statement = {0};
    if (!rows->length)
        return 0;
    buffer_printf(&statement.sql,
                  "INSERT INTO batches%s (tenant, batch, id, attempt, owner, state, streams, "
                  "series, times)",
                  own_suffix(&store->links));
    return links_insert(&store->links, &statement, rows, error);
}

/* Of two requests with one id that came together, the second can't be told yet. */
static bool is_repeated(const struct pending *list, const struct pending *pending)
{
    for (; list != pending; list = list->next)
        if (list->batch_id && list->batch == pending->batch &&
            !strcmp(list->tenant, pending->tenant) && !strcmp(list->batch_id, pending->batch_id))
            return true;
    return false;
}

int batches_begin(struct clickhouse *store, struct pending *list, struct error *error)
{
    _cleanup_(attempts_release) struct attempts before = {0}, after = {0};
    _cleanup_buffer_ struct buffer rows = {0};
    bool any = false;
    int r = 0;
    for (struct pending *pending = list; pending; pending = pending->next) {
        if (!pending->batch_id)
            continue;
        if (is_repeated(list, pending))
            pending->result = error_set(&pending->error, -EAGAIN,
                                        "This batch is being stored already; retry later.");
        any |= !pending->result;
    }
    if (!any)
        return 0;
    r = load_attempts(store, list, &before, error);
    for (struct pending *pending = list; !r && pending; pending = pending->next)
        if (pending->batch_id && !pending->result) {
            r = settle(store, pending, &before, error);
            pending->attempt = random_bits();
            pending->intended = !r && !pending->result;
            if (pending->intended && !pending->settled)
                add_row(store, pending, BATCH_INTENDED, &rows);
        }
    int64_t begun_ns = monotonic_ns();
    if (!r)
        r = insert(store, &rows, error);
    if (r < 0 || !rows.length)
        return r;
    /* Another server may have done the same meanwhile; then neither goes on. */
    r = load_attempts(store, list, &after, error);
    for (size_t i = 0; !r && i < after.count; i++) {
        bool is_new = true;
        for (size_t k = 0; is_new && k < before.count; k++)
            is_new = before.list[k].batch != after.list[i].batch ||
                     before.list[k].attempt != after.list[i].attempt;
        for (struct pending *pending = list; is_new && pending; pending = pending->next)
            if (pending->intended && pending->batch == after.list[i].batch &&
                pending->attempt != after.list[i].attempt && !after.list[i].withdrawn)
                pending->result =
                    error_set(&pending->error, after.list[i].stored ? -EALREADY : -EAGAIN,
                              "Another server is storing this batch; retry later.");
    }
    if (!r && monotonic_ns() - begun_ns > lease_s(store) / 2 * 1000000000ll)
        r = error_set(error, -EAGAIN, "ClickHouse is too slow to store batches; retry later.");
    return r;
}

int batches_end(struct clickhouse *store, struct pending *list, struct error *error)
{
    _cleanup_buffer_ struct buffer rows = {0};
    for (struct pending *pending = list; pending; pending = pending->next)
        if (pending->intended && !pending->result)
            add_row(store, pending, BATCH_STORED, &rows);
    int r = insert(store, &rows, error);
    for (struct pending *pending = list; !r && pending; pending = pending->next)
        if (pending->settled && !pending->result)
            pending->result = error_set(&pending->error, -EALREADY, "The batch is already stored.");
    return r;
}

void batches_withdraw(struct clickhouse *store, struct pending *list)
{
    _cleanup_buffer_ struct buffer rows = {0};
    for (struct pending *pending = list; pending; pending = pending->next)
        if (pending->intended && pending->result && !pending->uncertain)
            add_row(store, pending, BATCH_WITHDRAWN, &rows);
    /* When this fails, too, a retry waits for the end of the lease. */
    insert(store, &rows, NULL);
}
