// SPDX-License-Identifier: Apache-2.0
// Requests to ClickHouse over HTTP, on connections that are kept.

#include "store/clickhouse/link.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "format/format.h"
#include "http/client/client.h"

#define CONNECT_MS 5000
#define ANSWER_BYTES_MAX (4ul << 30)
#define COMPRESSED_BYTES_MIN 1024

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
    case 242:
        r = -EROFS;
        break;
    case 202: /* too many queries */
    case 252: /* too many parts */
    case 999: /* ZooKeeper */
    case 225:
    case 285: /* too few live replicas */
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
    statement->uncertain = !statement->clickhouse_code || statement->clickhouse_code == 286 ||
                           statement->clickhouse_code == 319 || statement->clickhouse_code == 159;
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

static int call(struct links *links, struct statement *statement, const struct http_call *prepared,
                rows_fn *fn, void *context, bool insert, struct error *error)
{
    size_t count = links->address.host_count;
    pthread_mutex_lock(&links->lock);
    unsigned first = links->host;
    pthread_mutex_unlock(&links->lock);
    int r = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned host = (unsigned)((first + i) % count);
        struct receiving receiving = {
            .links = links, .statement = statement, .fn = fn, .context = context, .error = error};
        statement->clickhouse_code = 0;
        statement->uncertain = false;
        r = call_host(links, host, statement, prepared, &receiving, insert, error);
        bool partial = receiving.rest.length > 0;
        buffer_release(&receiving.rest);
        if (!r && partial)
            r = error_set(error, -EBADMSG, "ClickHouse at %s sent an incomplete row.",
                          links->address.hosts[host]);
        bool next = is_unreachable(r) || (!insert && r == -ETIME && !statement->clickhouse_code);
        if (!next) {
            if (host != first) {
                pthread_mutex_lock(&links->lock);
                links->host = host;
                pthread_mutex_unlock(&links->lock);
                atomic_fetch_add_explicit(&links->failovers, 1, memory_order_relaxed);
            }
            break;
        }
    }
    if (r < 0)
        atomic_fetch_add_explicit(&links->failures, 1, memory_order_relaxed);
    return r < 0 ? passing(r, statement, error) : r;
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
