// SPDX-License-Identifier: Apache-2.0
// Retention, deletion and stats. Retention drops partitions; where classes are kept for a shorter
// time, their rows are deleted. All of it can be done by several servers at once.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/clickhouse/internal.h"

#define RETENTION_EVERY_NS (600 * 1000000000ll)
#define MUTATION_WAIT_NS (30 * 1000000000ll)
#define BATCH_DAYS 30 /* for how long a batch id is known */

static int take_number(void *context, struct row_reader *row, struct error *error)
{
    uint64_t number = row_get_u64(row);
    (void)error;
    if (!row->is_short)
        *(uint64_t *)context = number;
    return 0;
}

static int ask_number(struct clickhouse *store, const char *sql, uint64_t *ret_number,
                      struct error *error)
{
    _cleanup_statement_ struct statement statement = {0};
    buffer_add_text(&statement.sql, sql);
    return links_query(&store->links, &statement, take_number, ret_number, error);
}

/* The sum of all hosts of a cluster: of those that don't answer, nothing is known. */
static int ask_hosts(struct clickhouse *store, const char *sql, uint64_t *ret_sum,
                     struct error *error)
{
    const struct clickhouse_address *address = &store->links.address;
    size_t count = address->cluster ? address->host_count : 1;
    int r = 0;
    *ret_sum = 0;
    for (unsigned host = 1; !r && host <= count; host++) {
        _cleanup_statement_ struct statement statement = {.host = address->cluster ? host : 0};
        uint64_t number = 0;
        buffer_add_text(&statement.sql, sql);
        r = links_query(&store->links, &statement, take_number, &number, error);
        if (r == -EAGAIN && address->cluster) {
            number = 1;
            r = 0;
        }
        *ret_sum += number;
    }
    return r;
}

/* On a replica of `host`, or of every shard (0). */
static int execute(struct clickhouse *store, unsigned host, const char *sql, struct error *error)
{
    int r = 0;
    bool all = !host;
    while (!r && (!all || (host = links_next_shard(&store->links, host)))) {
        _cleanup_statement_ struct statement statement = {.host = host, .shard = true};
        buffer_add_text(&statement.sql, sql);
        r = links_execute(&store->links, &statement, error);
        if (!all)
            break;
    }
    return r;
}

/* Of a cluster, all shards must be known. */
static int know_shards(struct clickhouse *store, struct error *error)
{
    return store->links.address.cluster ? links_survey(&store->links, true, error) : 0;
}

/* ---- deletion ---- */

static void pause_ms(unsigned milliseconds)
{
    struct timespec wait = {.tv_sec = milliseconds / 1000,
                            .tv_nsec = milliseconds % 1000 * 1000000l};
    nanosleep(&wait, NULL);
}

static int wait_for_mutations(struct clickhouse *store, bool *ret_pending, struct error *error)
{
    _cleanup_buffer_ struct buffer sql = {0};
    buffer_printf(&sql,
                  "SELECT toUInt64(count()) FROM system.mutations WHERE database = "
                  "currentDatabase() AND table = 'samples%s' AND is_done = 0",
                  own_suffix(&store->links));
    int64_t until_ns = monotonic_ns() + MUTATION_WAIT_NS;
    for (unsigned wait_ms = 5;; wait_ms = MIN(wait_ms * 2, 1000u)) {
        uint64_t left = 0;
        int r = ask_hosts(store, buffer_text(&sql), &left, error);
        *ret_pending = left > 0;
        if (r < 0 || !left || monotonic_ns() > until_ns)
            return r;
        pause_ms(wait_ms);
    }
}

static int take_deleted(void *context, struct row_reader *row, struct error *error)
{
    struct store_deleted *deleted = context;
    uint64_t windows = row_get_u64(row), rows = row_get_u64(row);
    (void)error;
    if (!row->is_short) {
        deleted->windows = windows;
        deleted->rows = rows;
    }
    return 0;
}

int clickhouse_delete(struct store *base, const struct store_selection *selection, bool dry_run,
                      struct store_deleted *deleted, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_statement_ struct statement counting = {0};
    _cleanup_buffer_ struct buffer deleting = {0};
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = know_shards(store, error);
    if (!r)
        r = chosen_load(store, selection, CHOSEN_FOR_LIST, NULL, &chosen, error);
    if (r < 0 || !chosen.selected)
        return r;
    buffer_add_text(&counting.sql, "SELECT toUInt64(countIf(kind = 0)), toUInt64(countIf(kind = 1))"
                                   " FROM samples WHERE ");
    chosen_where(&chosen, selection, false, &counting.sql);
    r = links_query(&store->links, &counting, take_deleted, deleted, error);
    if (r < 0 || dry_run || !deleted->windows)
        return r;
    buffer_printf(&deleting, "ALTER TABLE samples%s DELETE WHERE ", own_suffix(&store->links));
    chosen_where(&chosen, selection, false, &deleting);
    r = execute(store, 0, buffer_text(&deleting), error);
    return r < 0 ? r : wait_for_mutations(store, &deleted->pending, error);
}

/* ---- retention ---- */

struct partitions {
    char (*list)[32];
    size_t count, capacity;
};

static int take_partition(void *context, struct row_reader *row, struct error *error)
{
    struct partitions *partitions = context;
    struct row_text text = row_get_text(row);
    (void)error;
    if (row->is_short || text.length >= sizeof(*partitions->list))
        return 0;
    array_reserve(partitions->list, partitions->capacity, partitions->count + 1);
    char *name = partitions->list[partitions->count++];
    memcpy(name, text.data, text.length);
    name[text.length] = '\0';
    return 0;
}

static int list_partitions(struct clickhouse *store, unsigned host, const char *table,
                           struct partitions *partitions, struct error *error)
{
    _cleanup_statement_ struct statement statement = {.host = host, .shard = true};
    buffer_printf(&statement.sql,
                  "SELECT DISTINCT partition FROM system.parts WHERE active AND database = "
                  "currentDatabase() AND table = '%s%s' ORDER BY partition",
                  table, own_suffix(&store->links));
    return links_query(&store->links, &statement, take_partition, partitions, error);
}

/* "2024-10-04" or a number: the first day of it, in days since 1970. */
static int64_t partition_day(const char *name)
{
    struct tm tm = {0};
    if (strchr(name, '-')) {
        char *end = strptime(name, "%Y-%m-%d", &tm);
        return end && !*end ? timegm(&tm) / 86400 : INT64_MAX;
    }
    return strtoll(name, NULL, 10) * PERIOD_DAYS;
}

static int drop_old_of(struct clickhouse *store, unsigned host, const char *table,
                       int64_t days_each, int64_t oldest, struct error *error)
{
    struct partitions partitions = {0};
    int r = list_partitions(store, host, table, &partitions, error);
    for (size_t i = 0; !r && i < partitions.count; i++) {
        const char *name = partitions.list[i];
        _cleanup_buffer_ struct buffer sql = {0};
        if (partition_day(name) + days_each > oldest)
            continue;
        buffer_printf(&sql, "ALTER TABLE %s%s DROP PARTITION ", table, own_suffix(&store->links));
        if (strchr(name, '-'))
            sql_text(&sql, name);
        else
            buffer_add_text(&sql, name);
        r = execute(store, host, buffer_text(&sql), error);
    }
    free(partitions.list);
    return r;
}

static int drop_old(struct clickhouse *store, const char *table, int64_t days_each, int64_t oldest,
                    struct error *error)
{
    int r = 0;
    for (unsigned host = 0; !r && (host = links_next_shard(&store->links, host));)
        r = drop_old_of(store, host, table, days_each, oldest, error);
    return r;
}

static void add_services(struct buffer *sql, char **services, bool *first)
{
    for (; services && *services; services++) {
        buffer_add_text(sql, *first ? "" : ",");
        sql_text(sql, *services);
        *first = false;
    }
}

static int take_stream(void *context, struct row_reader *row, struct error *error)
{
    struct buffer *list = context;
    uint64_t stream = row_get_u64(row);
    (void)error;
    if (row->is_short)
        return 0;
    if (list->length)
        buffer_add_char(list, ',');
    buffer_add_u64(list, stream);
    return 0;
}

/* Streams as numbers: replicas don't ask each other in the middle of a mutation. */
static int find_streams(struct clickhouse *store, const struct retention_class *class,
                        const struct retention_class *classes, size_t count, struct buffer *streams,
                        struct error *error)
{
    _cleanup_statement_ struct statement statement = {0};
    bool first = true;
    buffer_add_text(&statement.sql, "SELECT DISTINCT stream FROM series WHERE ");
    buffer_add_text(&statement.sql, class->services ? "service IN (" : "service NOT IN (");
    if (class->services)
        add_services(&statement.sql, class->services, &first);
    for (size_t i = 0; !class->services && i < count; i++)
        add_services(&statement.sql, classes[i].services, &first);
    buffer_add_text(&statement.sql, first ? "'')" : ")");
    return links_query(&store->links, &statement, take_stream, streams, error);
}

/* A class that is kept for a shorter time than others, whose partitions stay. */
static int drop_class(struct clickhouse *store, const struct retention_class *class,
                      const struct retention_class *classes, size_t count, int64_t oldest,
                      struct error *error)
{
    _cleanup_buffer_ struct buffer streams = {0}, where = {0}, sql = {0};
    uint64_t found = 0;
    int r = find_streams(store, class, classes, count, &streams, error);
    if (r < 0 || !streams.length)
        return r;
    buffer_printf(&where, "day < toDate(%lld) AND stream IN (%s)", (long long)oldest,
                  buffer_text(&streams));
    buffer_printf(&sql, "SELECT toUInt64(count()) FROM samples WHERE %s", buffer_text(&where));
    r = ask_number(store, buffer_text(&sql), &found, error);
    if (r < 0 || !found)
        return r;
    sql.length = 0;
    buffer_printf(&sql, "ALTER TABLE samples%s DELETE WHERE %s", own_suffix(&store->links),
                  buffer_text(&where));
    return execute(store, 0, buffer_text(&sql), error);
}

static int retain(struct clickhouse *store, int64_t today, struct error *error)
{
    unsigned longest = 0;
    bool for_ever = false;
    int r = know_shards(store, error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&store->lock);
    size_t count = store->class_count;
    struct retention_class *classes = retention_copy(store->classes, count);
    pthread_mutex_unlock(&store->lock);
    for (size_t i = 0; i < count; i++) {
        longest = MAX(longest, classes[i].raw_days);
        for_ever |= !classes[i].raw_days;
    }
    static const char *const periodic[] = {"stacks", "frames", "series"};
    if (!for_ever)
        r = drop_old(store, "samples", 1, today - longest, error);
    for (size_t i = 0; !r && !for_ever && i < ARRAY_LENGTH(periodic); i++)
        r = drop_old(store, periodic[i], PERIOD_DAYS, today - longest, error);
    for (size_t i = 0; !r && i < count; i++)
        if (classes[i].raw_days && (for_ever || classes[i].raw_days < longest))
            r = drop_class(store, &classes[i], classes, count, today - classes[i].raw_days, error);
    if (!r) /* by ClickHouse's clock, as they are written */
        r = drop_old(store, "batches", 1, clock_ns(CLOCK_REALTIME) / DAY_NS - BATCH_DAYS, error);
    retention_free(classes, count);
    return r;
}

int clickhouse_maintain(struct store *base, const atomic_bool *cancelled, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    int64_t now_ns = monotonic_ns(), today = store->now(store->now_context) / DAY_NS;
    (void)cancelled;
    pthread_mutex_lock(&store->lock);
    bool due = !store->retained_ns || now_ns - store->retained_ns > RETENTION_EVERY_NS ||
               store->retained_day != today;
    if (due) {
        store->retained_ns = now_ns;
        store->retained_day = today;
    }
    pthread_mutex_unlock(&store->lock);
    return due ? retain(store, today, error) : 0;
}

/* ---- stats ---- */

static int take_stats(void *context, struct row_reader *row, struct error *error)
{
    struct store_stats *stats = context;
    uint64_t windows = row_get_u64(row), rows = row_get_u64(row);
    int64_t first_ns = row_get_i64(row), last_ns = row_get_i64(row);
    (void)error;
    if (row->is_short)
        return 0;
    stats->windows = windows;
    stats->rows = rows;
    stats->first_ns[STORE_RAW] = windows ? first_ns : 0;
    stats->last_ns[STORE_RAW] = windows ? last_ns : 0;
    return 0;
}

static int take_parts(void *context, struct row_reader *row, struct error *error)
{
    struct store_stats *stats = context;
    uint64_t parts = row_get_u64(row), bytes = row_get_u64(row), partitions = row_get_u64(row);
    (void)error;
    if (row->is_short)
        return 0;
    stats->blocks[STORE_RAW] += parts;
    stats->bytes[STORE_RAW] += bytes;
    stats->files[STORE_RAW] += partitions;
    return 0;
}

int clickhouse_stats(struct store *base, struct store_stats *stats, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_statement_ struct statement rows = {0};
    buffer_add_text(&rows.sql, "SELECT toUInt64(countIf(kind = 0)), toUInt64(countIf(kind = 1)), "
                               "minIf(time, kind = 0), maxIf(time, kind = 0) FROM samples");
    int r = know_shards(store, error);
    if (!r)
        r = links_query(&store->links, &rows, take_stats, stats, error);
    /* Of one replica of each shard. */
    for (unsigned host = 0; !r && (host = links_next_shard(&store->links, host));) {
        _cleanup_statement_ struct statement parts = {.host = host, .shard = true};
        buffer_printf(&parts.sql,
                      "SELECT toUInt64(count()), toUInt64(sum(bytes_on_disk)), "
                      "toUInt64(uniqExactIf(partition, table = 'samples%s')) FROM system.parts "
                      "WHERE active AND database = currentDatabase()",
                      own_suffix(&store->links));
        r = links_query(&store->links, &parts, take_parts, stats, error);
    }
    if (!r)
        r = ask_number(store, "SELECT toUInt64(uniqExact(tenant, series)) FROM series",
                       &stats->series, error);
    if (!r)
        r = ask_number(store, "SELECT toUInt64(uniqExact(tenant, service)) FROM series",
                       &stats->services, error);
    pthread_mutex_lock(&store->lock);
    stats->written_rows = store->written_rows;
    stats->written_batches = store->written_batches;
    stats->repeated_batches = store->repeated_batches;
    stats->commits = store->commit_count;
    stats->write_failures = store->write_failures;
    pthread_mutex_unlock(&store->lock);
    pthread_mutex_lock(&store->known.lock);
    stats->memory_bytes = digest_table_bytes(&store->known.table);
    pthread_mutex_unlock(&store->known.lock);
    return r;
}

/* ---- check ---- */

int clickhouse_check(struct store *base, store_text_fn *fn, void *context, struct error *error)
{
    static const struct {
        const char *sql, *problem;
    } checks[] = {
        {"SELECT toUInt64(count()) FROM (SELECT DISTINCT tenant, stream, stack FROM samples WHERE "
         "kind > 0 AND stack != 0) WHERE (tenant, stream, stack) GLOBAL NOT IN (SELECT tenant, "
         "stream, "
         "stack FROM stacks)",
         "%llu stacks of samples are missing in the table stacks."},
        {"SELECT toUInt64(count()) FROM (SELECT DISTINCT tenant, arrayJoin(frames) AS frame FROM "
         "stacks) WHERE (tenant, frame) GLOBAL NOT IN (SELECT tenant, frame FROM frames)",
         "%llu frames of stacks are missing in the table frames."},
        {"SELECT toUInt64(count()) FROM (SELECT DISTINCT tenant, stream, series FROM samples) "
         "WHERE (tenant, stream, series) GLOBAL NOT IN (SELECT tenant, stream, series FROM series)",
         "%llu series of samples are missing in the table series."},
        {"SELECT toUInt64(count()) FROM (SELECT tenant, stream, series, time, sum(if(kind = 0, "
         "value, 0)) AS total, sum(if(kind = 1, value, 0)) AS added, sum(`rows`) AS counted, "
         "countIf(kind = 1) AS found FROM samples GROUP BY tenant, stream, series, time) WHERE "
         "total != added OR counted != found",
         "%llu windows don't have the rows that were written with them."},
        {"SELECT toUInt64(count()) FROM (SELECT tenant, id, uniqExact(attempt) AS times FROM "
         "batches WHERE state = 1 GROUP BY tenant, id) WHERE times > 1",
         "%llu batches were stored more than once."},
    };
    struct clickhouse *store = clickhouse_of(base);
    bool damaged = false;
    for (size_t i = 0; i < ARRAY_LENGTH(checks); i++) {
        uint64_t found = 0;
        char text[128];
        int r = ask_number(store, checks[i].sql, &found, error);
        if (!r && found) {
            damaged = true;
            snprintf(text, sizeof(text), checks[i].problem, (unsigned long long)found);
            r = fn(context, text);
        }
        if (r)
            return r;
    }
    return damaged ? error_set(error, -EBADMSG, "The store has problems.") : 0;
}

/* ---- tenants ---- */

struct names {
    store_text_fn *fn;
    void *context;
};

static int take_name(void *context, struct row_reader *row, struct error *error)
{
    struct names *names = context;
    struct row_text text = row_get_text(row);
    char name[STORE_TENANT_BYTES_MAX + 1];
    (void)error;
    if (row->is_short || text.length >= sizeof(name))
        return 0;
    memcpy(name, text.data, text.length);
    name[text.length] = '\0';
    return names->fn(names->context, name);
}

int clickhouse_tenants(struct store *base, store_text_fn *fn, void *context, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    struct names names = {.fn = fn, .context = context};
    _cleanup_statement_ struct statement statement = {0};
    buffer_add_text(&statement.sql,
                    "SELECT DISTINCT toString(tenant) AS name FROM series ORDER BY name");
    return links_query(&store->links, &statement, take_name, &names, error);
}
