/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to ClickHouse over HTTP: rows come and go in RowBinary, compressed. Connections are kept
 * for the next request. When a host doesn't answer, the next one is asked; an insert goes to
 * another host only if nothing of it can have arrived.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "store/clickhouse/address.h"
#include "store/clickhouse/row.h"

#define LINKS_MAX 32 /* connections that are kept */

struct link;

struct links {
    struct clickhouse_address address;
    pthread_mutex_t lock; /* of the rest */
    struct link *idle;
    unsigned idle_count;
    unsigned host; /* that answered last */
    /* Of a cluster, by host: what it is a replica of, and how many there are; 0: not known yet. */
    uint64_t shards[CLICKHOUSE_HOSTS_MAX];
    unsigned replicas[CLICKHOUSE_HOSTS_MAX];
    unsigned turn;       /* of shards: inserts go to one after another */
    int64_t surveyed_ns; /* when the hosts were asked for that, by the monotonic clock */
    _Atomic uint64_t requests, failures, failovers, sent_bytes, received_bytes;
};

/* Takes the address. */
void links_init(struct links *links, struct clickhouse_address *address);
void links_release(struct links *links);

#define LINK_TIMEOUT_S 60
static inline unsigned links_timeout_s(const struct links *links)
{
    return links->address.timeout_s ? links->address.timeout_s : LINK_TIMEOUT_S;
}

/* In a cluster: asks those hosts what they are a replica of who haven't said yet, at most every few
 * seconds. An error if none has, or the URL doesn't name all hosts. */
int links_survey(struct links *links, bool now, struct error *error);

/* One host of each shard that is known, for what has to be done in each: 0 at the end. Without a
 * cluster it is any host, once. */
unsigned links_next_shard(struct links *links, unsigned host);

/* What the host (counted from 1) is a replica of; 0: not known. */
uint64_t links_shard(struct links *links, unsigned host);

/* Codes of ClickHouse that callers tell apart. */
#define CLICKHOUSE_UNKNOWN_TABLE 60
#define CLICKHOUSE_UNKNOWN_DATABASE 81

struct statement {
    struct buffer sql; /* without FORMAT */
    bool no_database;  /* don't name the database: it may not exist */
    unsigned host;     /* only this one, counted from 1; 0: any */
    bool shard;        /* of `host`: or another replica of the same */
    const atomic_bool *cancelled;
    unsigned clickhouse_code; /* set when ClickHouse refuses; 0: it didn't answer at all */
    bool uncertain; /* set by inserts: it failed, and the rows may be stored all the same */
};

static inline void statement_release(struct statement *statement)
{
    buffer_release(&statement->sql);
}
#define _cleanup_statement_ __attribute__((cleanup(statement_release)))

/* A row: reads all columns first, then looks at row->is_short, and does nothing when it is set:
 * the row comes again with more of it. Other than 0 ends the query. */
typedef int rows_fn(void *context, struct row_reader *row, struct error *error);

/* Answers come whole or not at all. */
int links_query(struct links *links, struct statement *statement, rows_fn *fn, void *context,
                struct error *error);

/* Without an answer: DDL. */
int links_execute(struct links *links, struct statement *statement, struct error *error);

/* The SQL is "INSERT INTO table (columns)", with the name of a table of one host; returns when the
 * rows are stored: in a cluster, in the quorum of one shard. They become one block of one part if
 * they are of one partition: all are stored, or none. */
int links_insert(struct links *links, struct statement *statement, const struct buffer *rows,
                 struct error *error);
