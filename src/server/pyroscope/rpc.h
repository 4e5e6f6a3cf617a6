/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unary calls in Connect's form: one message in, one out, as protobuf or as JSON. All messages of
 * the query API that we take share one struct; a table per method says which of its members are
 * which fields. Private to src/server.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "http/server/request.h"

#define RPC_TEXTS_MAX 1000

struct rpc_texts {
    const char **list;
    size_t count, capacity;
};

struct rpc_request {
    bool json;
    const char *profile_type, *label_selector, *name; /* "" unless given */
    const char *id, *other_id, *content;              /* of ad hoc profiles; the same */
    const char *gnu_build_id, *go_build_id, *file_id; /* of a file with symbols; the same */
    struct rpc_texts matchers, label_names, group_by, spans, traces, profiles, call_site;
    int64_t start, end; /* ms since 1970 */
    int64_t max_nodes, limit;
    int64_t format;      /* 0 and 1 flame graph, 2 tree, 3 dot, 4 pprof; -1: another */
    int64_t aggregation; /* 0 sum, 1 average */
    int64_t exemplar_type, query_type;
    double step;                               /* seconds */
    int64_t keep_locations, aggregate_callees; /* of Go's profile-guided optimisation */
    struct rpc_request *left, *right, *stack, *pgo;
    struct arena arena;
};

enum rpc_kind {
    RPC_TEXT,
    RPC_TEXTS,
    RPC_NUMBER,
    RPC_BOOL, /* a number, too: 0 or 1 */
    RPC_DOUBLE,
    RPC_ENUM,
    RPC_MESSAGE,
    RPC_NAMED, /* any number of messages whose only field is name=1: texts */
};

struct rpc_field {
    unsigned number;
    const char *name, *other_name; /* as JSON has it, and as the message's source does */
    enum rpc_kind kind;
    size_t offset;
    const char *const *words;       /* names of an enum's values; NULL at the end */
    const struct rpc_field *fields; /* of a message */
};

/* Reads the request's body, of at most a MiB. `fields` ends with a zero row. */
int rpc_read(struct http_request *http, const struct rpc_field *fields, struct rpc_request *request,
             struct error *error);
/* The same with another limit. */
int rpc_read_large(struct http_request *http, uint64_t limit_bytes, const struct rpc_field *fields,
                   struct rpc_request *request, struct error *error);
void rpc_release(struct rpc_request *request);
#define _cleanup_rpc_ _cleanup_(rpc_release)

/* The fields of a method of querier.v1, or NULL. */
const struct rpc_field *querier_fields(const char *method);

/* From memory, for tests. */
int rpc_parse(const void *data, size_t length, const struct rpc_field *fields,
              struct rpc_request *request, struct error *error);

/* The method that a request calls: the last part of its path. */
const char *rpc_method(const struct http_request *http);

/* Of answers: as the request came. */
const char *rpc_content_type(const struct rpc_request *request);

/* Sends what is in `out` as the kind of message that was asked with. */
void rpc_respond(struct http_request *http, const struct rpc_request *request, struct buffer *out);
