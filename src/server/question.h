/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers that answer questions have in common. Private to src/server. */
#pragma once

#include "query/links.h"
#include "query/quality.h"
#include "query/query.h"
#include "server/server.h"

struct question {
    struct server *server;
    struct query query;
    struct store_selection selection; /* of the query; its type is NULL when none was given */
    struct store_limits limits;
    struct query_links links; /* only the samples of these, where there are any */
    bool whole;               /* what takes too much memory is refused, and not cut: for exports */
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

/* span_id and trace_id among the parameters, each any number of times. */
int question_read_links(struct question *question, struct http_request *request,
                        struct error *error);

/* Merges all that is asked for into a profile that the caller has initialised. Its time and
 * duration are what was found. When that takes more memory than a question may, the smallest
 * subtrees are left out, as many as needed; the quality says how much they are worth. */
int question_merge(struct question *question, struct profile *profile,
                   struct store_quality *ret_quality, struct error *error);

/* Whether to ask once more, with more memory: *r is what asking ended with, and what taking more
 * did otherwise. Nothing of an answer may have been sent. */
bool question_again(struct question *question, int *r, struct error *error);

/* The same of the series only that have one more label. */
int question_merge_label(struct question *question, const char *name, const char *value,
                         struct profile *profile, struct error *error);

/* As question_merge, with all that can be said of how good it is. */
int question_merge_measured(struct question *question, struct profile *profile,
                            struct query_quality *ret_quality, struct error *error);

/* Fills what is still missing from a quality of which `found` is known. */
int question_measure(struct question *question, struct query_quality *quality, struct error *error);

/* A parameter as a number within bounds; `value` is untouched when it isn't there. */
int question_number(struct http_request *request, const char *name, uint64_t least, uint64_t most,
                    uint64_t *value, struct error *error);

/* A parameter that is one of some words, NULL after the last; its index, `otherwise` when it isn't
 * there. */
int question_word(struct http_request *request, const char *name, const char *const *words,
                  unsigned otherwise, unsigned *ret_index, struct error *error);

/* "quality":{...}; `profile` may be NULL. */
void quality_write(const struct query_quality *quality, const struct profile *profile,
                   struct buffer *out);

/* {"a":"b"} */
void labels_write_json(const struct labels *labels, struct buffer *out);
void json_put_text(struct buffer *out, const char *text);

/* 200 and an answer that is true now only. Takes the buffer's content over. */
void api_respond(struct http_request *request, const char *content_type, struct buffer *body);

/* ---- parameters.c ---- */

/* The parameters of an address of the API, separated by blanks; NULL: it takes any. `pattern` is
 * that of the table of routes. */
const char *parameters_of(const char *pattern);

/* Answers 400 and returns false when the request has a parameter that its address doesn't know. */
bool parameters_known(struct http_request *request, const char *pattern);
