// SPDX-License-Identifier: Apache-2.0
// Requests to ClickHouse over HTTP, on connections that are kept.

#include "store/clickhouse/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "format/format.h"
#include "http/client/client.h"
#include "store/clickhouse/sql.h"

#define CONNECT_MS 5000
#define ANSWER_BYTES_MAX (4ul << 30)
#define COMPRESSED_BYTES_MIN 1024
#define SURVEY_NS (5 * 1000000000ll)

struct link {
    struct link *next;
    struct http_client *client;
    unsigned host;
};

void links_init(struct links *links, struct clickhouse_address *address)
{
    *links = (struct links){.address = *address};
    *address = (struct clickhouse_address){0};
    pthread_mutex_init(&links->lock, NULL);
}

static void link_free(struct link *link)
{
    http_client_free(link->client);
    free(link);
}

void links_release(struct links *links)
{
    while (links->idle) {
        struct link *next = links->idle->next;
        link_free(links->idle);
        links->idle = next;
    }
    pthread_mutex_destroy(&links->lock);
    clickhouse_address_release(&links->address);
}

/* Inserts get a connection of their own: on one that was kept and turns out to be dead, libcurl
 * sends the request again, and it may have arrived before. */
static int take_link(struct links *links, unsigned host, bool insert, struct link **ret_link,
                     struct error *error)
{
    pthread_mutex_lock(&links->lock);
    struct link **at = &links->idle;
    while (*at && (*at)->host != host)
        at = &(*at)->next;
    struct link *link = insert ? NULL : *at;
    if (link) {
        *at = link->next;
        links->idle_count--;
    }
    pthread_mutex_unlock(&links->lock);
    if (!link) {
        const struct clickhouse_address *address = &links->address;
        struct http_client_options options = {.ca_file = address->ca_file,
                                              .user = address->user,
                                              .password = address->password,
                                              .timeout_ms = links_timeout_s(links) * 1000,
                                              .connect_timeout_ms = CONNECT_MS,
                                              .answer_limit_bytes = ANSWER_BYTES_MAX};
        link = memory_zalloc(1, sizeof(*link));
        link->host = host;
        int r = http_client_new(&options, &link->client, error);
        if (r < 0) {
            free(link);
            return r;
        }
    }
    *ret_link = link;
    return 0;
}

static void give_link(struct links *links, struct link *link)
{
    pthread_mutex_lock(&links->lock);
    bool kept = links->idle_count < LINKS_MAX;
    if (kept) {
        link->next = links->idle;
        links->idle = link;
        links->idle_count++;
    }
    pthread_mutex_unlock(&links->lock);
    if (!kept)
        link_free(link);
}

/* ---- one request ---- */

static void add_parameter(struct buffer *url, const char *name, const char *value)
{
    buffer_printf(url, "&%s=", name);
    for (const char *c = value; *c; c++) {
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
            strchr("-_.", *c))
            buffer_add_char(url, *c);
        else
            buffer_printf(url, "%%%02X", (unsigned char)*c);
    }
}

static void add_number(struct buffer *url, const char *name, uint64_t value)
{
    buffer_printf(url, "&%s=%llu", name, (unsigned long long)value);
}

/* Lists of series and stacks make queries long; what users write doesn't. */
static void make_url(const struct links *links, unsigned host, const struct statement *statement,
                     bool insert, struct buffer *url)
{
    const struct clickhouse_address *address = &links->address;
    url->length = 0;
    buffer_printf(url, "%s://%s/?wait_end_of_query=1&enable_http_compression=1",
                  address->tls ? "https" : "http", address->hosts[host]);
    if (!statement->no_database)
        add_parameter(url, "database", address->database);
    add_number(url, "max_query_size", 1 << 28);
    add_number(url, "max_ast_elements", 100000000);
    add_number(url, "max_expanded_ast_elements", 100000000);
    if (address->memory_bytes)
        add_number(url, "max_memory_usage", address->memory_bytes);
    if (insert) {
        /* One block, whatever its size. */
        add_number(url, "max_insert_block_size", 1u << 31);
        unsigned quorum = address->quorum ? address->quorum : links->replicas[host];
        if (address->cluster) {
            /* Pushes that are equal are two pushes; `batches` says what was repeated. */
            add_number(url, "insert_deduplicate", 0);
            if (quorum > 1) {
                add_number(url, "insert_quorum", quorum);
                add_number(url, "insert_quorum_timeout", links_timeout_s(links) * 500ull);
            }
        }
        struct buffer query = {0};
        buffer_add(&query, statement->sql.data, statement->sql.length);
        buffer_add_text(&query, " FORMAT RowBinary");
        add_parameter(url, "query", buffer_text(&query));
        buffer_release(&query);
    }
}

/* "Code: 60, e.displayText() = DB::Exception: Table ... doesn't exist., e.what() = ..." */
static int refused(struct statement *statement, const char *host, unsigned status,
                   struct buffer *body, struct error *error)
{
    const char *text = buffer_text(body), *code = strstr(text, "Code: ");
    statement->clickhouse_code = code ? (unsigned)strtoul(code + 6, NULL, 10) : 0;
    const char *said = strstr(text, "DB::Exception: ");
    said = said ? said + 15 : text;
    size_t length = strcspn(said, "\r\n");
    const char *what = strstr(said, ", e.what() = ");
    if (what && (size_t)(what - said) < length)
        length = (size_t)(what - said);
    length = MIN(length, (size_t)300);
    int r = -EIO;
    switch (statement->clickhouse_code) {
    case 241: /* memory limit */
    case 158: /* rows or bytes to read */
    case 396:
        r = -E2BIG;
        break;
    case 159: /* timeout */
    case 160:
        r = -ETIME;
        break;
    case 192: /* user */
    case 193: /* password */
    case 194:
    case 497: /* rights */
    case 516:
        r = -EACCES;
        break;
    case 243: /* disk full */
        r = -ENOSPC;
        break;
    case 164: /* read-only */
        r = -EROFS;
        break;
    case 202: /* too many queries */
    case 252: /* too many parts */
    case 999: /* ZooKeeper */
    case 225:
    case 242: /* the same, for a table */
    case 285: /* too few live replicas */
    case 286: /* another insert has no quorum yet */
    case 289: /* a replica is behind */
    case 279: /* no replica of a shard answers */
    case 209: /* one doesn't any more */
    case 210:
    case 32:
        r = -EAGAIN;
    }
    return error_set(error, r, "ClickHouse at %s answered %u (code %u): %.*s", host, status,
                     statement->clickhouse_code, (int)length, said);
}

/* Rows of an answer, of which the end of a piece may be a part only. */
struct receiving {
    struct links *links;
    struct statement *statement;
    rows_fn *fn;
    void *context;
    struct buffer rest;
    struct error *error;
    int result;
    bool given; /* the caller has had rows */
};

static int parse(struct receiving *receiving, const uint8_t *bytes, size_t length, size_t *ret_used)
{
    struct row_reader row = {.at = bytes, .end = bytes + length};
    const uint8_t *used = bytes;
    while (row.at < row.end) {
        int r = receiving->fn(receiving->context, &row, receiving->error);
        if (row.is_short)
            break;
        used = row.at;
        receiving->given = true;
        if (r)
            return receiving->result = r;
    }
    *ret_used = (size_t)(used - bytes);
    return 0;
}

static int take_piece(void *context, const void *bytes, size_t length)
{
    struct receiving *receiving = context;
    const atomic_bool *cancelled = receiving->statement->cancelled;
    size_t used = 0;
    atomic_fetch_add_explicit(&receiving->links->received_bytes, length, memory_order_relaxed);
    if (cancelled && atomic_load_explicit(cancelled, memory_order_relaxed)) {
        error_set(receiving->error, -ECANCELED, "The query was cancelled.");
        return receiving->result = -ECANCELED;
    }
    if (!receiving->fn)
        return 0;
    if (!receiving->rest.length) {
        int r = parse(receiving, bytes, length, &used);
        if (!r)
            buffer_add(&receiving->rest, (const char *)bytes + used, length - used);
        return r;
    }
    buffer_add(&receiving->rest, bytes, length);
    int r = parse(receiving, (const uint8_t *)receiving->rest.data, receiving->rest.length, &used);
    if (!r) {
        memmove(receiving->rest.data, receiving->rest.data + used, receiving->rest.length - used);
        receiving->rest.length -= used;
    }
    return r;
}

/* Whether the host can't have got anything of the request. */
static bool is_unreachable(int r)
{
    return r == -ECONNREFUSED || r == -EHOSTUNREACH;
}

static int call_host(struct links *links, unsigned host, struct statement *statement,
                     const struct http_call *prepared, struct receiving *receiving, bool insert,
                     struct error *error)
{
    struct link *link;
    struct http_call call = *prepared;
    _cleanup_buffer_ struct buffer url = {0};
    _cleanup_http_reply_ struct http_reply reply = {0};
    int r = take_link(links, host, insert, &link, error);
    if (r < 0)
        return r;
    make_url(links, host, statement, insert, &url);
    call.url = buffer_text(&url);
    call.take = take_piece;
    call.take_context = receiving;
    atomic_fetch_add_explicit(&links->requests, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&links->sent_bytes, call.body_length, memory_order_relaxed);
    struct error problem = {0};
    r = http_client_call(link->client, &call, &reply, &problem);
    if (receiving->result) {
        link_free(link); /* the rest of the answer is still on its way */
        return receiving->result;
    }
    give_link(links, link);
    if (r < 0) {
        statement->uncertain = !is_unreachable(r);
        return error_set(error, r, "ClickHouse at %s: %s", links->address.hosts[host],
                         problem.text);
    }
    if (reply.status == 200)
        return 0;
    r = refused(statement, links->address.hosts[host], reply.status, &reply.body, error);
    /* Of these, ClickHouse itself doesn't know: a quorum that wasn't reached in time. */
    unsigned code = statement->clickhouse_code;
    statement->uncertain = !code || code == 319 || code == 999 || code == 159;
    return r;
}

/* Failures that the client didn't cause, and that may pass: no connection, or no access for this
 * server. */
static int passing(int r, const struct statement *statement, struct error *error)
{
    bool passes = is_unreachable(r) || r == -EACCES || r == -EPERM ||
                  (r == -EIO && !statement->clickhouse_code);
    if (passes && error)
        error->code = -EAGAIN;
    return passes ? -EAGAIN : r;
}

/* ---- which host ---- */

static bool same_shard(const struct links *links, unsigned a, unsigned b)
{
    return a == b || (links->shards[a] && links->shards[a] == links->shards[b]);
}

/* Hosts in the order in which they are tried. Inserts begin with the next shard, and stay in it as
 * long as it has hosts. */
static size_t order_hosts(struct links *links, const struct statement *statement, bool insert,
                          unsigned list[static CLICKHOUSE_HOSTS_MAX])
{
    unsigned count = (unsigned)links->address.host_count;
    size_t found = 0;
    bool listed[CLICKHOUSE_HOSTS_MAX] = {0};
    pthread_mutex_lock(&links->lock);
    unsigned first = links->host;
    bool shards = insert && links->address.cluster;
    bool any = !statement->host || (statement->shard && !links->address.cluster);
    if (!any)
        first = statement->host - 1;
    else if (shards)
        first = links->turn++ % count;
    for (unsigned i = 0; i < count; i++) {
        unsigned host = (first + i) % count;
        if (listed[host] || (shards && !links->shards[host]) ||
            (!any && host != first && !(statement->shard && same_shard(links, host, first))))
            continue;
        for (unsigned k = i; k < count; k++) {
            unsigned other = (first + k) % count;
            if (listed[other] || !(other == host || (shards && same_shard(links, host, other))))
                continue;
            listed[other] = true;
            list[found++] = other;
        }
    }
    pthread_mutex_unlock(&links->lock);
    return found;
}

/* Whether another host may do it. */
static bool is_next(int r, const struct statement *statement, const struct receiving *receiving,
                    bool cluster, bool insert)
{
    if (is_unreachable(r))
        return true;
    if (insert)
        return cluster && !statement->uncertain && r < 0 && statement->clickhouse_code;
    return r < 0 && !receiving->result && !receiving->given &&
           (!statement->clickhouse_code || (cluster && r == -EAGAIN));
}

static int try_host(struct links *links, unsigned host, struct statement *statement,
                    const struct http_call *prepared, struct receiving *receiving, bool insert,
                    int64_t until_ns, struct error *error)
{
    for (;;) {
        statement->clickhouse_code = 0;
        statement->uncertain = false;
        int r = call_host(links, host, statement, prepared, receiving, insert, error);
        /* Of inserts with a quorum into one table, older versions allow one at a time. */
        if (!insert || statement->clickhouse_code != 286 || monotonic_ns() > until_ns)
            return r;
        struct timespec wait = {.tv_nsec = (long)(10 + random_bits() % 40) * 1000000};
        nanosleep(&wait, NULL);
    }
}

static int call(struct links *links, struct statement *statement, const struct http_call *prepared,
                rows_fn *fn, void *context, bool insert, struct error *error)
{
    unsigned hosts[CLICKHOUSE_HOSTS_MAX];
    bool cluster = links->address.cluster != NULL;
    int r = insert && cluster ? links_survey(links, false, error) : 0;
    size_t count = r < 0 ? 0 : order_hosts(links, statement, insert, hosts);
    /* The last attempt of an insert begins within a timeout, and ends within another one: the lease
     * of batches counts on that. */
    int64_t until_ns = monotonic_ns() + links_timeout_s(links) * 1000000000ll;
    for (size_t i = 0; i < count && !(insert && i && monotonic_ns() > until_ns); i++) {
        struct receiving receiving = {
            .links = links, .statement = statement, .fn = fn, .context = context, .error = error};
        r = try_host(links, hosts[i], statement, prepared, &receiving, insert, until_ns, error);
        bool partial = receiving.rest.length > 0;
        buffer_release(&receiving.rest);
        if (!r && partial)
            r = error_set(error, -EBADMSG, "ClickHouse at %s sent an incomplete row.",
                          links->address.hosts[hosts[i]]);
        if (!is_next(r, statement, &receiving, cluster, insert)) {
            pthread_mutex_lock(&links->lock);
            bool moved = !statement->host && !(insert && cluster) && links->host != hosts[i];
            if (moved)
                links->host = hosts[i];
            pthread_mutex_unlock(&links->lock);
            if (moved || i)
                atomic_fetch_add_explicit(&links->failovers, 1, memory_order_relaxed);
            break;
        }
    }
    if (r < 0)
        atomic_fetch_add_explicit(&links->failures, 1, memory_order_relaxed);
    return r < 0 ? passing(r, statement, error) : r;
}

/* ---- a cluster's hosts ---- */

struct survey {
    uint64_t shard;
    unsigned replicas, hosts;
};

static int take_survey(void *context, struct row_reader *row, struct error *error)
{
    struct survey *survey = context;
    struct row_text path = row_get_text(row);
    uint32_t replicas = row_get_u32(row), hosts = row_get_u32(row);
    (void)error;
    if (!row->is_short)
        *survey = (struct survey){
            .shard = XXH3_64bits(path.data, path.length) | 1, .replicas = replicas, .hosts = hosts};
    return 0;
}

static int ask_host(struct links *links, unsigned host, struct error *error)
{
    _cleanup_statement_ struct statement statement = {.host = host + 1};
    struct survey survey = {0};
    buffer_add_text(&statement.sql,
                    "SELECT zookeeper_path, toUInt32(total_replicas), (SELECT toUInt32(count()) "
                    "FROM system.clusters WHERE cluster = ");
    sql_text(&statement.sql, links->address.cluster);
    buffer_add_text(&statement.sql, ") FROM system.replicas WHERE database = currentDatabase() AND "
                                    "table = 'samples_local'");
    int r = links_query(links, &statement, take_survey, &survey, error);
    if (r < 0)
        return r;
    if (!survey.shard || !survey.replicas)
        return error_set(error, -ENOTSUP,
                         "ClickHouse at %s has no replicated tables of assay; run `assay store "
                         "init` with this URL.",
                         links->address.hosts[host]);
    if (survey.hosts > links->address.host_count)
        return error_set(error, -EINVAL,
                         "The cluster %s has %u hosts, and the store's URL names %zu; name all.",
                         links->address.cluster, survey.hosts, links->address.host_count);
    pthread_mutex_lock(&links->lock);
    links->shards[host] = survey.shard;
    links->replicas[host] = survey.replicas;
    pthread_mutex_unlock(&links->lock);
    return 0;
}

int links_survey(struct links *links, bool now, struct error *error)
{
    unsigned count = (unsigned)links->address.host_count, known = 0;
    bool unknown[CLICKHOUSE_HOSTS_MAX];
    struct error problem = {0};
    int r = 0;
    pthread_mutex_lock(&links->lock);
    int64_t at_ns = monotonic_ns();
    bool due = now || !links->surveyed_ns || at_ns - links->surveyed_ns > SURVEY_NS;
    for (unsigned i = 0; i < count; i++) {
        unknown[i] = !links->shards[i];
        known += !unknown[i];
    }
    if (due)
        links->surveyed_ns = at_ns;
    pthread_mutex_unlock(&links->lock);
    for (unsigned i = 0; due && known < count && i < count; i++) {
        if (!unknown[i])
            continue;
        struct error own = {0};
        int asked = ask_host(links, i, &own);
        known += !asked;
        if (asked == -EINVAL || asked == -ENOTSUP || (asked && !r)) {
            r = asked;
            problem = own;
        }
    }
    if (r && (!known || r == -EINVAL || r == -ENOTSUP)) {
        if (error)
            *error = problem;
        return r;
    }
    return known ? 0
                 : error_set(error, -EAGAIN, "No host of the cluster %s answers; retry later.",
                             links->address.cluster);
}

uint64_t links_shard(struct links *links, unsigned host)
{
    pthread_mutex_lock(&links->lock);
    uint64_t shard = links->shards[host - 1];
    pthread_mutex_unlock(&links->lock);
    return shard;
}

unsigned links_next_shard(struct links *links, unsigned host)
{
    unsigned count = (unsigned)links->address.host_count, next = 0;
    if (!links->address.cluster)
        return host ? 0 : 1; /* see order_hosts() */
    pthread_mutex_lock(&links->lock);
    for (unsigned i = host; !next && i < count; i++) {
        bool is_first = links->shards[i] != 0;
        for (unsigned k = 0; is_first && k < i; k++)
            is_first = links->shards[k] != links->shards[i];
        next = is_first ? i + 1 : 0;
    }
    pthread_mutex_unlock(&links->lock);
    return next;
}

int links_query(struct links *links, struct statement *statement, rows_fn *fn, void *context,
                struct error *error)
{
    buffer_add_text(&statement->sql, " FORMAT RowBinary");
    struct http_call prepared = {
        .method = "POST", .body = statement->sql.data, .body_length = statement->sql.length};
    return call(links, statement, &prepared, fn, context, false, error);
}

int links_execute(struct links *links, struct statement *statement, struct error *error)
{
    struct http_call prepared = {
        .method = "POST", .body = statement->sql.data, .body_length = statement->sql.length};
    return call(links, statement, &prepared, NULL, NULL, false, error);
}

int links_insert(struct links *links, struct statement *statement, const struct buffer *rows,
                 struct error *error)
{
    static const char *const compressed_header[] = {"Content-Encoding: gzip"};
    _cleanup_buffer_ struct buffer compressed = {0};
    struct http_call prepared = {.method = "POST", .body = rows->data, .body_length = rows->length};
    if (rows->length >= COMPRESSED_BYTES_MIN && !format_compress_gzip(rows, &compressed)) {
        prepared.headers = compressed_header;
        prepared.header_count = 1;
        prepared.body = compressed.data;
        prepared.body_length = compressed.length;
    }
    return call(links, statement, &prepared, NULL, NULL, true, error);
}
