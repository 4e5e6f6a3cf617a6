/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers that answer questions have in common. Private to src/server. */
#pragma once

#include "query/query.h"
#include "server/server.h"

struct question {
    struct server *server;
    struct query query;
    struct store_selection selection; /* of the query; its type is NULL when none was given */
    struct store_limits limits;
};

void question_release(struct question *question);
#define _cleanup_question_ _cleanup_(question_release)

/* From a query's text and times in ns, `typed` when a type must come of it. */
int question_init(struct question *question, struct http_request *request, struct server *server,
                  const char *query, int64_t from_ns, int64_t to_ns, bool typed,
                  struct error *error);

/* From the parameters PREFIXquery, PREFIXfrom and PREFIXto, and their defaults: everything of the
 * last hour. */
int question_read(struct question *question, struct http_request *request, struct server *server,
                  const char *prefix, bool typed, struct error *error);

/* As question_read, for a question that differs from another in what its own parameters say. */
int question_read_from(struct question *question, struct http_request *request,
                       struct server *server, const char *prefix, const char *query,
                       int64_t from_ns, int64_t to_ns, bool typed, struct error *error);

/* Merges all that is asked for into a profile that the caller has initialised. Its time and
 * duration are what was found. */
int question_merge(struct question *question, struct profile *profile,
                   struct store_quality *ret_quality, struct error *error);

/* A parameter as a number within bounds; `value` is untouched when it isn't there. */
int question_number(struct http_request *request, const char *name, uint64_t least, uint64_t most,
                    uint64_t *value, struct error *error);

/* "quality":{...}; `profile` may be NULL. */
void quality_write(const struct store_quality *quality, const struct profile *profile,
                   struct buffer *out);

/* {"a":"b"} */
void labels_write_json(const struct labels *labels, struct buffer *out);
void json_put_text(struct buffer *out, const char *text);
