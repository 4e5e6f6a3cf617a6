/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as its handler sees it. All of this is for the handler's thread and while it runs.
 * A handler answers once; one that returns without answering has answered 500.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "http/status.h"
#include "io/source.h"

struct http_request;
struct http_route;

/* Identity of the client. Without tokens: no id, all roles, tenant `anonymous`. */
struct http_identity {
    const char *tenant;
    const char *token_id, *token_name; /* NULL: none */
    unsigned roles;                    /* enum http_role */
};

/* ---- what was asked; texts live as long as the request ---- */

const char *http_request_method(const struct http_request *request);
/* Decoded, except that a %00 stays as it is. */
const char *http_request_path(const struct http_request *request);
/* Text matched by the pattern's `*`, or "". */
const char *http_request_rest(const struct http_request *request);
/* The route that was found for it; NULL: none. */
const struct http_route *http_request_route(const struct http_request *request);
const char *http_request_peer(const struct http_request *request);
const struct http_identity *http_request_identity(const struct http_request *request);

/* The first of that name, or NULL. */
const char *http_request_header(const struct http_request *request, const char *name);
const char *http_request_query(const struct http_request *request, const char *name);

/* All parameters of the query in order; *ret_value is "" where there is none. */
size_t http_request_query_count(const struct http_request *request);
void http_request_query_at(const struct http_request *request, size_t index, const char **ret_name,
                           const char **ret_value);

/* As the client says, or -1 (chunked). */
int64_t http_request_content_length(const struct http_request *request);

/* Bytes of the body that were read so far, as they came. */
uint64_t http_request_received(const struct http_request *request);

/* Content-Type without parameters equals `type`; upper and lower case are the same. */
bool http_request_is_type(const struct http_request *request, const char *type);

/* True once the client has gone or the server wants to stop: work for it is wasted. Clients that
 * close their sending side count as gone. The flag's address is for those who poll. */
bool http_request_cancelled(const struct http_request *request);
const atomic_bool *http_request_cancel_flag(const struct http_request *request);

/* The handler waits for something else than a processor from now on, so that another one's may
 * begin. On the handler's thread. */
void http_request_computed(struct http_request *request);

/* ---- the body ---- */

/* Blocks until there are bytes; 0 is the end. -E2BIG: over the route's limit; -ECONNRESET: the
 * sender has gone or was too slow. */
ssize_t http_request_read(struct http_request *request, void *bytes, size_t room,
                          struct error *error);

/* All of it as it came, appended to `body`. */
int http_request_read_all(struct http_request *request, struct buffer *body, struct error *error);

/* The body as a reader of profiles takes it, decompressed while it comes: as Content-Encoding
 * says (gzip, zstd; else -ENOTSUP), and a gzip or zstd file inside of that too. Valid until
 * http_source_close. `expansion_limit` as in source_open(). */
struct http_source;
int http_source_open(struct http_request *request, uint64_t expansion_limit,
                     struct http_source **ret_source, struct error *error);
struct source *http_source(struct http_source *source);
void http_source_close(struct http_source *source);

/* ---- the answer ---- */

/* A header of the answer; before the answer. Both are copied; control characters are left out. */
void http_respond_header(struct http_request *request, const char *name, const char *value);

/* Takes the buffer's content over (and leaves it empty). Compressed if that pays and the client
 * takes it. */
void http_respond(struct http_request *request, unsigned status, const char *content_type,
                  struct buffer *body);
/* With bytes that outlive the server and are not copied, however many clients don't read them. */
void http_respond_constant(struct http_request *request, unsigned status, const char *content_type,
                           const void *bytes, size_t length);
void http_respond_text(struct http_request *request, unsigned status, const char *content_type,
                       const char *text);

/* Sends `length` bytes of a file from its beginning, and closes it. */
void http_respond_file(struct http_request *request, unsigned status, const char *content_type,
                       int fd, uint64_t length);

/* An answer of unknown length: any number of http_write() after it. Compressed if the client takes
 * it, unless it is a picture or application/octet-stream. -EAGAIN: so many are under way already
 * that nothing was answered. */
int http_respond_stream(struct http_request *request, unsigned status, const char *content_type);

/* Blocks while the client is slower than we are; its thread is made up for by another meanwhile.
 * -ECANCELED when the client has gone, or has been waited for too long (see server.h): the answer
 * is cut off then. */
int http_write(struct http_request *request, const void *bytes, size_t length);

/* After http_respond_stream: what was sent is not all there is, and the client shall notice. */
void http_abort(struct http_request *request);

/* ---- streams of messages: routes with HTTP_ROUTE_MESSAGES, called by gRPC ---- */

/* Whether gRPC called, and not plain HTTP. */
bool http_request_is_grpc(const struct http_request *request);

/* The next message, decompressed, in place of what `message` holds. 1; 0 at the end; -E2BIG when it
 * is larger than the limit; or what http_request_read() returns. */
int http_message_read(struct http_request *request, size_t limit_bytes, struct buffer *message,
                      struct error *error);

/* The same, decompressed while it comes: `ret_source` shows it, until the caller releases it. */
int http_message_open(struct http_request *request, uint64_t expansion_limit,
                      struct source *ret_source, struct error *error);

/* Sends a message at once; the first begins the answer. As http_write(). */
int http_message_write(struct http_request *request, const void *bytes, size_t length);

/* Waits for that long, or until the client has gone or has cancelled the call: then it is false. */
bool http_message_wait(struct http_request *request, int wait_ms);

/* The end, for a stream that may have had none. */
void http_message_end(struct http_request *request);

/* {"code":"invalid_argument","message":"..."}, or the sentence alone on routes with plain errors.
 * Headers that were set go along. */
void http_respond_error(struct http_request *request, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void http_respond_code(struct http_request *request, enum http_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* By the error's code: see http_status_of_error(). */
void http_respond_failure(struct http_request *request, const struct error *error);
