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

static const char *const tables[] = {
    "CREATE TABLE IF NOT EXISTS assay_schema (version UInt32, seed UInt64, written DateTime)"
    " ENGINE = MergeTree ORDER BY version",

    "CREATE TABLE IF NOT EXISTS series (period UInt16, tenant {LowCardinality(String)|String},"
    " stream UInt64, series UInt64, service {LowCardinality(String)|String},"
    " type {LowCardinality(String)|String}, label_names Array({LowCardinality(String)|String}),"
    " label_values Array(String))"
    " ENGINE = ReplacingMergeTree PARTITION BY period ORDER BY (tenant, stream, series)",

    "CREATE TABLE IF NOT EXISTS frames (period UInt16, tenant {LowCardinality(String)|String},"
    " frame UInt64, address UInt64, line UInt32, `column` UInt32, start_line UInt32, kind UInt8,"
    " inlined UInt8, folded UInt8, function String{ CODEC(ZSTD(1))|},"
    " system_name String{ CODEC(ZSTD(1))|}, source String{ CODEC(ZSTD(1))|},"
    " mapping_start UInt64, mapping_limit UInt64, mapping_offset UInt64,"
    " file {LowCardinality(String)|String}, build_id {LowCardinality(String)|String})"
    " ENGINE = ReplacingMergeTree PARTITION BY period ORDER BY (tenant, frame)"
    "{ SETTINGS index_granularity = 1024|}",

    "CREATE TABLE IF NOT EXISTS stacks (period UInt16, tenant {LowCardinality(String)|String},"
    " stream UInt64, stack UInt64, frames Array(UInt64){ CODEC(ZSTD(1))|})"
    " ENGINE = ReplacingMergeTree PARTITION BY period ORDER BY (tenant, stream, stack)"
    "{ SETTINGS index_granularity = 1024|}",

    "CREATE TABLE IF NOT EXISTS samples (day Date{ CODEC(ZSTD(1))|},"
    " tenant {LowCardinality(String)|String}, kind UInt8{ CODEC(ZSTD(1))|},"
    " stream UInt64{ CODEC(ZSTD(1))|}, hour UInt32{ CODEC(ZSTD(1))|},"
    " series UInt64{ CODEC(ZSTD(1))|}, stack UInt64{ CODEC(ZSTD(1))|},"
    " time Int64{ CODEC(Delta(8), ZSTD(1))|}, value Int64{ CODEC(ZSTD(1))|},"
    " duration Int64{ CODEC(ZSTD(1))|}, `rows` UInt32{ CODEC(ZSTD(1))|},"
    " batch UInt64{ CODEC(ZSTD(1))|}, exemplar String{ CODEC(ZSTD(1))|})"
    " ENGINE = MergeTree PARTITION BY day"
    " ORDER BY (tenant, kind, stream, hour, series, stack, time)",

    "CREATE TABLE IF NOT EXISTS batches (written DateTime DEFAULT now(), tenant "
    "{LowCardinality(String)|String},"
    " batch UInt64, id String, attempt UInt64, owner UInt64, state UInt8,"
    " streams Array(UInt64), series Array(UInt64), times Array(Int64))"
    " ENGINE = MergeTree PARTITION BY toDate(written) ORDER BY (tenant, batch)",

    /* Views for users: docs/clickhouse.md. */
    "CREATE VIEW IF NOT EXISTS profiles AS SELECT tenant, service, type, label_names, label_values,"
    " day, toDateTime(intDiv(time, 1000000000)) AS start, time, duration, value, `rows`, stream,"
    " series FROM (SELECT tenant, stream, series, day, time, duration, value, `rows` FROM samples"
    " WHERE kind = 0) AS own ANY LEFT JOIN (SELECT tenant, stream, series, service, type, "
    "label_names,"
    " label_values FROM series) AS other USING (tenant, stream, series)",

    "CREATE VIEW IF NOT EXISTS stack_functions AS SELECT tenant, stream, stack, function, file,"
    " max(is_last) AS last FROM (SELECT tenant, stream, stack, frame, frame = frames[1] AS is_last"
    " FROM stacks ARRAY JOIN frames AS frame) AS own ANY LEFT JOIN (SELECT tenant, frame,"
    " if(function = '', concat(toString(file), '+0x', lower(hex(address))), function) AS function,"
    " source AS file FROM frames) AS other USING (tenant, frame) GROUP BY tenant, stream, stack, "
    "function,"
    " file",

    "CREATE VIEW IF NOT EXISTS values_by_hour AS SELECT tenant, service, type, label_names,"
    " label_values, day, start, stream, series, stack, value FROM (SELECT tenant, stream, series,"
    " stack, day, toDateTime(hour * 3600) AS start, sum(value) AS value FROM samples WHERE kind = 1"
    " GROUP BY tenant, stream, series, stack, day, start) AS own ANY LEFT JOIN (SELECT tenant, "
    "stream,"
    " series, service, type, label_names, label_values FROM series) AS other USING (tenant, "
    "stream, series)",

    "CREATE VIEW IF NOT EXISTS functions_by_hour AS SELECT tenant, service, type, label_names,"
    " label_values, day, start, function, file, sum(if(last, value, 0)) AS flat,"
    " sum(value) AS cumulative FROM (SELECT tenant, stream, stack, service, type, label_names,"
    " label_values, day, start, value FROM values_by_hour) AS own ALL INNER JOIN (SELECT tenant, "
    "stream,"
    " stack, function, file, last FROM stack_functions) AS other USING (tenant, stream, stack) "
    "GROUP BY"
    " tenant, service, type, label_names, label_values, day, start, function, file",
};

static int execute(struct links *links, const char *text, bool no_database, struct error *error)
{
    _cleanup_statement_ struct statement statement = {.no_database = no_database};
    buffer_add_text(&statement.sql, text);
    return links_execute(links, &statement, error);
}

static int make_database(struct links *links, struct error *error)
{
    _cleanup_buffer_ struct buffer sql = {0};
    buffer_add_text(&sql, "CREATE DATABASE IF NOT EXISTS ");
    sql_name(&sql, links->address.database);
    return execute(links, buffer_text(&sql), true, error);
}

static int note_version(struct links *links, uint64_t seed, struct error *error)
{
    _cleanup_buffer_ struct buffer sql = {0};
    buffer_printf(&sql, "INSERT INTO assay_schema (version, seed, written) SELECT %d, %llu, now()",
                  CLICKHOUSE_SCHEMA_VERSION, (unsigned long long)seed);
    return execute(links, buffer_text(&sql), false, error);
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
    if (!r)
        r = schema_read(&links, &schema, error);
    if (!r && !schema.version)
        r = make_database(&links, error);
    for (size_t i = 0; !r && i < ARRAY_LENGTH(tables); i++) {
        _cleanup_buffer_ struct buffer sql = {0};
        add_choice(&sql, tables[i], server.version >= CODECS_SINCE);
        r = execute(&links, buffer_text(&sql), false, error);
    }
    if (!r && schema.version < CLICKHOUSE_SCHEMA_VERSION)
        r = note_version(&links, schema.version ? schema.seed : random_bits(), error);
    links_release(&links);
    return r;
}
