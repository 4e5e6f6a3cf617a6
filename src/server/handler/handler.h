/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all handlers: the parts of a running server, bodies, answers and the audit log. A
 * handler includes the header of each part that it uses, so that the include graph shows which
 * handlers depend on which parts. Private to src/server.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/buffer.h"
#include "http/server/request.h"
#include "io/json.h"
#include "io/json_write.h"
#include "label/labels.h"

/* The parts of a running server. They are set before the first request and stay until all handlers
 * have returned; each has locks of its own. NULL: this server doesn't have the part. */
struct server {
    struct store *store;
    struct ingest *ingest;
    struct symbols *symbols;
    struct control *control;
    struct scraper *scraper;
    struct adhoc *adhoc;
    struct baselines *baselines;
    struct comparisons *comparisons;
    struct watch *watch;
    struct rules *rules;
    struct saved *saved;
    struct span_index *spans;
    const struct template_rules *span_routes; /* of the configuration */
    struct admissions *admissions;
    struct audit *audit; /* NULL: in memory only */
    struct tokens *tokens;
    struct http_server *http;
    const struct source_link *source_links; /* of the configuration */
    size_t source_link_count;
    double core_hour;     /* what an hour of a core costs; 0: not known */
    const char *currency; /* of that, "" */
    const char *data; /* the directory; NULL: in memory */
    int64_t started_ns;
    atomic_bool stopping;
};

/* `userdata` is the struct server. */
typedef void server_handler(struct http_request *request, void *userdata);

/* ---- bodies ---- */

#define HANDLER_JSON_BYTES (64u << 10)

/* The body as JSON: `read` takes its members. Answers and returns false when it isn't JSON. A page
 * of another origin can make a browser post to us, but not with this content type, so the type is
 * required. */
bool handler_read_json(struct http_request *request, const char *pattern,
                       int (*read)(struct json *json, void *context), void *context);

/* A text that fits, for one of the fields of a body. */
int handler_read_text(struct json *json, char *to, size_t room);

/* As http_respond_failure(), but 409 for -EBUSY. */
void handler_respond_failure(struct http_request *request, const struct error *error);

/* The sender of the request, as written into rules and recordings. */
const char *handler_actor(struct http_request *request);

/* ---- answers ---- */

/* {"a":"b"} */
void labels_write_json(const struct labels *labels, struct json_writer *json);
void json_put_text(struct buffer *out, const char *text);

/* 200 and an answer that is true now only. Takes the buffer's content over. */
void api_respond(struct http_request *request, const char *content_type, struct buffer *body);

/* ---- the audit log ---- */

/* Notes what a request did. */
void server_audit(struct server *server, struct http_request *request, const char *action,
                  const char *target, const char *outcome);
