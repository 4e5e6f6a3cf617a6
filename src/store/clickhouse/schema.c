// SPDX-License-Identifier: Apache-2.0
// The tables of a store on ClickHouse, by version: `assay store init` makes them and brings older
// ones up to date. docs/clickhouse.md describes them.

#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "store/clickhouse/internal.h"

#define CODECS_SINCE 20003 /* major * 1000 + minor: column codecs, LowCardinality */

struct server {
    unsigned version; /* major * 1000 + minor */
};

static int read_server(void *context, struct row_reader *row, struct error *error)
{
    struct server *server = context;
    struct row_text text = row_get_text(row);
    char version[32] = "";
    (void)error;
    if (row->is_short)
        return 0;
    memcpy(version, text.data, MIN(text.length, sizeof(version) - 1));
    char *minor = version;
    unsigned long major = strtoul(version, &minor, 10);
    server->version = (unsigned)(major * 1000 + (*minor ? strtoul(minor + 1, NULL, 10) : 0));
    return 0;
}

static int read_schema(void *context, struct row_reader *row, struct error *error)
{
    struct schema *schema = context;
    uint32_t version = row_get_u32(row);
    uint64_t seed = row_get_u64(row);
    (void)error;
    if (row->is_short)
        return 0;
    /* The first process has set the seed. */
    schema->seed = schema->version ? schema->seed : seed;
    schema->version = MAX(schema->version, version);
    return 0;
}

int schema_read(struct links *links, struct schema *ret_schema, struct error *error)
{
    struct schema schema = {0};
    _cleanup_statement_ struct statement statement = {0};
    buffer_add_text(&statement.sql, "SELECT toUInt32(version), toUInt64(seed) FROM assay_schema "
                                    "ORDER BY version, written, seed");
    int r = links_query(links, &statement, read_schema, &schema, error);
    if (r < 0 && (statement.clickhouse_code == CLICKHOUSE_UNKNOWN_TABLE ||
                  statement.clickhouse_code == CLICKHOUSE_UNKNOWN_DATABASE))
        r = 0;
    if (r < 0)
        return r;
    if (schema.version > CLICKHOUSE_SCHEMA_VERSION)
        return error_set(error, -ENOTSUP,
                         "The database has schema version %u; this assay knows versions up to %d. "
                         "Use a newer assay.",
                         schema.version, CLICKHOUSE_SCHEMA_VERSION);
    *ret_schema = schema;
    return 0;
}

/* {A|B} is A where the server has column codecs, else B. */
static void add_choice(struct buffer *sql, const char *text, bool current)
{
    for (const char *c = text; *c;) {
        if (*c != '{') {
            buffer_add_char(sql, *c++);
            continue;
        }
        size_t first = strcspn(c + 1, "|"), second = strcspn(c + first + 2, "}");
        buffer_add(sql, current ? c + 1 : c + first + 2, current ? first : second);
        c += first + second + 3;
    }
}

struct table {
    const char *name, *columns, *engine, *rest;
};

static const struct table tables[] = {
    {"assay_schema", "version UInt32, seed UInt64, written DateTime", "MergeTree",
     "ORDER BY version"},

    {"series",
     "period UInt16, tenant {LowCardinality(String)|String},"
     " stream UInt64, series UInt64, service {LowCardinality(String)|String},"
     " type {LowCardinality(String)|String}, label_names Array({LowCardinality(String)|String}),"
     " label_values Array(String)",
     "ReplacingMergeTree", "PARTITION BY period ORDER BY (tenant, stream, series)"},

    {"frames",
     "period UInt16, tenant {LowCardinality(String)|String},"
     " frame UInt64, address UInt64, line UInt32, `column` UInt32, start_line UInt32, kind UInt8,"
     " inlined UInt8, folded UInt8, function String{ CODEC(ZSTD(1))|},"
     " system_name String{ CODEC(ZSTD(1))|}, source String{ CODEC(ZSTD(1))|},"
     " mapping_start UInt64, mapping_limit UInt64, mapping_offset UInt64,"
     " file {LowCardinality(String)|String}, build_id {LowCardinality(String)|String}",
     "ReplacingMergeTree",
     "PARTITION BY period ORDER BY (tenant, frame)"
     "{ SETTINGS index_granularity = 1024|}"},

    {"stacks",
     "period UInt16, tenant {LowCardinality(String)|String},"
     " stream UInt64, stack UInt64, frames Array(UInt64){ CODEC(ZSTD(1))|}",
     "ReplacingMergeTree",
     "PARTITION BY period ORDER BY (tenant, stream, stack)"
     "{ SETTINGS index_granularity = 1024|}"},

    {"samples",
     "day Date{ CODEC(ZSTD(1))|},"
     " tenant {LowCardinality(String)|String}, kind UInt8{ CODEC(ZSTD(1))|},"
     " stream UInt64{ CODEC(ZSTD(1))|}, hour UInt32{ CODEC(ZSTD(1))|},"
     " series UInt64{ CODEC(ZSTD(1))|}, stack UInt64{ CODEC(ZSTD(1))|},"
     " time Int64{ CODEC(Delta(8), ZSTD(1))|}, value Int64{ CODEC(ZSTD(1))|},"
     " duration Int64{ CODEC(ZSTD(1))|}, `rows` UInt32{ CODEC(ZSTD(1))|},"
     " batch UInt64{ CODEC(ZSTD(1))|}, exemplar String{ CODEC(ZSTD(1))|}",
     "MergeTree",
     "PARTITION BY day"
     " ORDER BY (tenant, kind, stream, hour, series, stack, time)"},

    {"batches",
     "written DateTime DEFAULT now(), tenant "
     "{LowCardinality(String)|String},"
     " batch UInt64, id String, attempt UInt64, owner UInt64, state UInt8,"
     " streams Array(UInt64), series Array(UInt64), times Array(Int64)",
     "MergeTree", "PARTITION BY toDate(written) ORDER BY (tenant, batch)"},
};

/* For users: docs/clickhouse.md. @ is the database: views that others name need it. */
static const struct view {
    const char *name, *select;
} views[] = {
    {"profiles",
     "SELECT tenant, service, type, label_names, label_values,"
     " day, toDateTime(intDiv(time, 1000000000)) AS start, time, duration, value, `rows`, stream,"
     " series FROM (SELECT tenant, stream, series, day, time, duration, value, `rows` FROM @samples"
     " WHERE kind = 0) AS own ANY LEFT JOIN (SELECT tenant, stream, series, service, type, "
     "label_names,"
     " label_values FROM @series) AS other USING (tenant, stream, series)"},

    {"stack_functions",
     "SELECT tenant, stream, stack, function, file,"
     " max(is_last) AS last FROM (SELECT tenant, stream, stack, frame, frame = frames[1] AS is_last"
     " FROM @stacks ARRAY JOIN frames AS frame) AS own ANY LEFT JOIN (SELECT tenant, frame,"
     " if(function = '', concat(toString(file), '+0x', lower(hex(address))), function) AS function,"
     " source AS file FROM @frames) AS other USING (tenant, frame) GROUP BY tenant, stream, stack, "
     "function,"
     " file"},

    {"values_by_hour",
     "SELECT tenant, service, type, label_names,"
     " label_values, day, start, stream, series, stack, value FROM (SELECT tenant, stream, series,"
     " stack, day, toDateTime(hour * 3600) AS start, sum(value) AS value FROM @samples WHERE kind "
     "= 1"
     " GROUP BY tenant, stream, series, stack, day, start) AS own ANY LEFT JOIN (SELECT tenant, "
     "stream,"
     " series, service, type, label_names, label_values FROM @series) AS other USING (tenant, "
     "stream, series)"},

    {"functions_by_hour",
     "SELECT tenant, service, type, label_names,"
     " label_values, day, start, function, file, sum(if(last, value, 0)) AS flat,"
     " sum(value) AS cumulative FROM (SELECT tenant, stream, stack, service, type, label_names,"
     " label_values, day, start, value FROM @values_by_hour) AS own ALL INNER JOIN (SELECT tenant, "
     "stream,"
     " stack, function, file, last FROM @stack_functions) AS other USING (tenant, stream, stack) "
     "GROUP BY"
     " tenant, service, type, label_names, label_values, day, start, function, file"},
};

static int execute(struct links *links, const char *text, bool no_database, struct error *error)
{
    _cleanup_statement_ struct statement statement = {.no_database = no_database};
    buffer_add_text(&statement.sql, text);
    return links_execute(links, &statement, error);
}

/* Everything is made on all hosts of a cluster. */
static void add_cluster(struct buffer *sql, const struct clickhouse_address *address)
{
    if (address->cluster) {
        buffer_add_text(sql, " ON CLUSTER ");
        sql_name(sql, address->cluster);
    }
}

static int make_database(struct links *links, struct error *error)
{
    _cleanup_buffer_ struct buffer sql = {0};
    buffer_add_text(&sql, "CREATE DATABASE IF NOT EXISTS ");
    sql_name(&sql, links->address.database);
    add_cluster(&sql, &links->address);
    return execute(links, buffer_text(&sql), true, error);
}

static int note_version(struct links *links, uint64_t seed, struct error *error)
{
    _cleanup_buffer_ struct buffer sql = {0};
    buffer_printf(&sql, "INSERT INTO assay_schema (version, seed, written) SELECT %d, %llu, now()",
                  CLICKHOUSE_SCHEMA_VERSION, (unsigned long long)seed);
    return execute(links, buffer_text(&sql), false, error);
}

/* Servers start with any host of the cluster. */
static int tell_all_hosts(struct links *links, struct error *error)
{
    int r = 0;
    for (unsigned host = 1; !r && host <= links->address.host_count; host++) {
        _cleanup_statement_ struct statement statement = {.host = host};
        buffer_add_text(&statement.sql, "SYSTEM SYNC REPLICA assay_schema");
        r = links_execute(links, &statement, error);
    }
    return r;
}

/* In a cluster, each shard has rows of its own in NAME_local, and NAME is all of them. The version
 * is one table that every host has. */
static int make_table(struct links *links, const struct table *table, bool current,
                      struct error *error)
{
    const struct clickhouse_address *address = &links->address;
    _cleanup_buffer_ struct buffer sql = {0}, all = {0};
    bool shared = !strcmp(table->name, "assay_schema");
    const char *suffix = shared ? "" : own_suffix(links);
    buffer_printf(&sql, "CREATE TABLE IF NOT EXISTS %s%s", table->name, suffix);
    add_cluster(&sql, address);
    buffer_add_text(&sql, " (");
    add_choice(&sql, table->columns, current);
    buffer_printf(&sql, ") ENGINE = %s%s", address->cluster ? "Replicated" : "", table->engine);
    if (address->cluster)
        buffer_printf(&sql,
                      shared ? "('/clickhouse/assay/%s/%s', '{shard}-{replica}')"
                             : "('/clickhouse/assay/%s/%s/{shard}', '{replica}')",
                      address->database, table->name);
    buffer_add_char(&sql, ' ');
    add_choice(&sql, table->rest, current);
    int r = execute(links, buffer_text(&sql), false, error);
    if (r < 0 || !*suffix)
        return r;
    buffer_printf(&all, "CREATE TABLE IF NOT EXISTS %s", table->name);
    add_cluster(&all, address);
    buffer_printf(&all, " AS %s.%s%s ENGINE = Distributed(%s, %s, %s%s)", address->database,
                  table->name, suffix, address->cluster, address->database, table->name, suffix);
    return execute(links, buffer_text(&all), false, error);
}

static int make_view(struct links *links, const struct view *view, struct error *error)
{
    _cleanup_buffer_ struct buffer sql = {0};
    buffer_printf(&sql, "CREATE VIEW IF NOT EXISTS %s", view->name);
    add_cluster(&sql, &links->address);
    buffer_add_text(&sql, " AS ");
    for (const char *c = view->select; *c; c++)
        if (*c == '@')
            buffer_printf(&sql, "%s.", links->address.database);
        else
            buffer_add_char(&sql, *c);
    return execute(links, buffer_text(&sql), false, error);
}

/* Where samples are, and when they move: settings of the URL for init, which can be changed. */
static int make_tiers(struct links *links, bool current, struct error *error)
{
    const struct clickhouse_address *address = &links->address;
    _cleanup_buffer_ struct buffer policy = {0}, cold = {0};
    int r = 0;
    if (!address->policy && !address->cold_days)
        return 0;
    if (!current)
        return error_set(error, -ENOTSUP,
                         "This version of ClickHouse has no storage policies; policy and cold_days "
                         "require 20.3.");
    if (address->policy) {
        buffer_printf(&policy, "ALTER TABLE samples%s", own_suffix(links));
        add_cluster(&policy, address);
        buffer_printf(&policy, " MODIFY SETTING storage_policy = '%s'", address->policy);
        r = execute(links, buffer_text(&policy), false, error);
    }
    if (!r && address->cold_days) {
        buffer_printf(&cold, "ALTER TABLE samples%s", own_suffix(links));
        add_cluster(&cold, address);
        buffer_printf(&cold, " MODIFY TTL day + INTERVAL %u DAY TO VOLUME '%s'", address->cold_days,
                      address->cold_volume);
        r = execute(links, buffer_text(&cold), false, error);
    }
    return r;
}

static int take_engine(void *context, struct row_reader *row, struct error *error)
{
    struct row_text text = row_get_text(row);
    int *is_cluster = context;
    (void)error;
    if (!row->is_short)
        *is_cluster = text.length == 11 && !memcmp(text.data, "Distributed", 11);
    return 0;
}

int schema_check_kind(struct links *links, struct error *error)
{
    _cleanup_statement_ struct statement statement = {0};
    int is_cluster = -1;
    buffer_add_text(&statement.sql, "SELECT engine FROM system.tables WHERE database = "
                                    "currentDatabase() AND name = 'samples'");
    int r = links_query(links, &statement, take_engine, &is_cluster, error);
    if (r < 0 || is_cluster < 0)
        return r;
    if (is_cluster != (links->address.cluster != NULL))
        return error_set(error, -EINVAL,
                         is_cluster ? "The database is of a cluster; name it in the store's URL by "
                                      "cluster=NAME."
                                    : "The database is of one host; a cluster needs another one. "
                                      "`assay store export` and `import` move profiles.");
    return 0;
}

int store_init_clickhouse(const char *rest, struct error *error)
{
    struct clickhouse_address address;
    struct links links;
    struct server server = {0};
    struct schema schema = {0};
    _cleanup_statement_ struct statement version = {.no_database = true};
    int r = clickhouse_address_parse(rest, &address, error);
    if (r < 0)
        return r;
    links_init(&links, &address);
    buffer_add_text(&version.sql, "SELECT version()");
    r = links_query(&links, &version, read_server, &server, error);
    bool current = server.version >= CODECS_SINCE;
    if (!r)
        r = schema_read(&links, &schema, error);
    if (!r && schema.version)
        r = schema_check_kind(&links, error);
    if (!r && !schema.version)
        r = make_database(&links, error);
    for (size_t i = 0; !r && i < ARRAY_LENGTH(tables); i++)
        r = make_table(&links, &tables[i], current, error);
    for (size_t i = 0; !r && i < ARRAY_LENGTH(views); i++)
        r = make_view(&links, &views[i], error);
    if (!r)
        r = make_tiers(&links, current, error);
    if (!r && links.address.cluster)
        r = links_survey(&links, true, error);
    if (!r && schema.version < CLICKHOUSE_SCHEMA_VERSION)
        r = note_version(&links, schema.version ? schema.seed : random_bits(), error);
    if (!r && links.address.cluster)
        r = tell_all_hosts(&links, error);
    links_release(&links);
    return r;
}
