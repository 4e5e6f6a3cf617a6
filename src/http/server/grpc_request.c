// SPDX-License-Identifier: Apache-2.0
// gRPC and gRPC-Web as handlers don't see them: a message is the body, and the status of an answer
// becomes that of the call. Handlers of plain calls know nothing of it; those of streams of
// messages use http_message_read() and http_message_write().

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "format/format.h"
#include "http/server/internal.h"

#define ACCEPTED_ENCODINGS "identity,gzip,zstd"
#define MESSAGE_BYTES_MAX 1024 /* of a status: it goes into a header */

bool http_request_is_grpc(const struct http_request *request)
{
    return request->rpc.protocol;
}

void grpc_release_state(struct http_request *request)
{
    struct rpc_state *rpc = &request->rpc;
    if (rpc->gathered.capacity)
        atomic_fetch_sub(&request->server->budget.used, rpc->gathered.length);
    buffer_release(&rpc->gathered);
}

/* ---- messages that come ---- */

/* All of `bytes`, or fewer at the end of the body. */
static ssize_t read_fully(struct http_request *request, void *bytes, size_t length,
                          struct error *error)
{
    size_t got = 0;
    while (got < length) {
        ssize_t r = request_read_raw(request, (char *)bytes + got, length - got, error);
        if (r < 0)
            return r;
        if (!r)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

/* 1 and the prefix is read, 0 at the end. */
static int read_prefix(struct http_request *request, struct error *error)
{
    struct rpc_state *rpc = &request->rpc;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    ssize_t got = read_fully(request, prefix, sizeof(prefix), error);
    if (got <= 0)
        return (int)got;
    if (got < GRPC_PREFIX_BYTES)
        return error_set(error, -EBADMSG, "The body ends within the prefix of a message.");
    if (prefix[0] & ~GRPC_COMPRESSED)
        return error_set(error, -EBADMSG, "The prefix of the message has unknown flags (0x%02x).",
                         prefix[0]);
    rpc->compressed = prefix[0] & GRPC_COMPRESSED;
    rpc->left = grpc_prefix_length(prefix);
    return 1;
}

int grpc_open_body(struct http_request *request, const char **ret_coding, struct error *error)
{
    struct rpc_state *rpc = &request->rpc;
    const char *coding = http_request_header(request, "grpc-encoding");
    size_t limit = route_body_limit(request->route);
    if (!rpc->begun) {
        int r = read_prefix(request, error);
        if (r < 0)
            return r;
        if (!r)
            return error_set(error, -EBADMSG, "The body has no message.");
        rpc->begun = true;
    }
    if (rpc->left > limit)
        return error_set(error, -E2BIG, "The message is %llu bytes; the limit of %s is %zu.",
                         (unsigned long long)rpc->left, request->route->pattern, limit);
    if (rpc->compressed && (!coding || !strcasecmp(coding, "identity")))
        return error_set(error, -EBADMSG,
                         "The message is compressed, but grpc-encoding doesn't say how.");
    *ret_coding = rpc->compressed ? coding : NULL;
    return 0;
}

ssize_t grpc_read_body(struct http_request *request, void *bytes, size_t room, struct error *error)
{
    struct rpc_state *rpc = &request->rpc;
    const char *coding;
    uint8_t more;
    int r = rpc->begun ? 0 : grpc_open_body(request, &coding, error);
    if (r < 0 || !room)
        return r;
    ssize_t got = rpc->left
                      ? request_read_raw(request, bytes, MIN((uint64_t)room, rpc->left), error)
                      : request_read_raw(request, &more, 1, error);
    if (got < 0)
        return got;
    if (!rpc->left)
        return got ? error_set(error, -EBADMSG, "The call takes one message; the body has more.")
                   : 0;
    if (!got)
        return error_set(error, -EBADMSG, "The body ends %llu bytes before its message.",
                         (unsigned long long)rpc->left);
    rpc->left -= (uint64_t)got;
    return got;
}

static int check_coding(const struct http_request *request, struct error *error)
{
    const char *coding = http_request_header(request, "grpc-encoding");
    if (!request->rpc.compressed ||
        (coding && (!strcasecmp(coding, "gzip") || !strcasecmp(coding, "zstd"))))
        return 0;
    return error_set(error, -ENOTSUP, "The encoding %.40s is not supported: send gzip or zstd.",
                     coding ? coding : "(none)");
}

static int decompress(struct http_request *request, size_t limit_bytes, struct buffer *message,
                      struct error *error)
{
    struct source source;
    int r = check_coding(request, error);
    if (r < 0)
        return r;
    r = source_open_memory(&source, "the message", message->data, message->length, limit_bytes,
                           error);
    if (r < 0)
        return r;
    struct buffer plain = {0};
    r = source_need_all(&source, limit_bytes, error);
    if (!r)
        buffer_add(&plain, source_data(&source), source_available(&source));
    source_release(&source);
    buffer_release(message);
    *message = plain;
    return r;
}

int http_message_read(struct http_request *request, size_t limit_bytes, struct buffer *message,
                      struct error *error)
{
    struct rpc_state *rpc = &request->rpc;
    message->length = 0;
    int r = read_prefix(request, error);
    if (r <= 0)
        return r;
    if (rpc->left > limit_bytes)
        return error_set(error, -E2BIG, "A message is %llu bytes; the limit is %zu.",
                         (unsigned long long)rpc->left, limit_bytes);
    /* By what has come, and not by what is said to come. */
    while (rpc->left) {
        size_t step = MIN(rpc->left, (uint64_t)65536);
        ssize_t got = request_read_raw(request, buffer_reserve(message, step), step, error);
        if (got < 0)
            return (int)got;
        if (!got)
            return error_set(error, -EBADMSG, "The body ends within a message.");
        if ((r = source_check_memory(error)) < 0)
            return r;
        message->length += (size_t)got;
        rpc->left -= (uint64_t)got;
    }
    r = rpc->compressed ? decompress(request, limit_bytes, message, error) : 0;
    return r < 0 ? r : 1;
}

static ssize_t read_message(void *userdata, void *bytes, size_t room, struct error *error)
{
    struct http_request *request = userdata;
    struct rpc_state *rpc = &request->rpc;
    if (!rpc->left)
        return 0;
    ssize_t got = request_read_raw(request, bytes, MIN((uint64_t)room, rpc->left), error);
    if (!got)
        return error_set(error, -EBADMSG, "The body ends within a message.");
    if (got > 0)
        rpc->left -= (uint64_t)got;
    return got;
}

int http_message_open(struct http_request *request, uint64_t expansion_limit,
                      struct source *ret_source, struct error *error)
{
    char rest[4096];
    ssize_t got;
    while ((got = read_message(request, rest, sizeof(rest), error)) > 0)
        ; /* what the caller has left of the message before */
    int r = got < 0 ? (int)got : read_prefix(request, error);
    if (r <= 0)
        return r;
    r = check_coding(request, error);
    if (!r)
        r = source_open_reader(ret_source, "the message", read_message, request, expansion_limit,
                               error);
    return r < 0 ? r : 1;
}

/* ---- answers ---- */

static int64_t retry_ms(const struct http_request *request)
{
    int64_t seconds;
    for (size_t i = 0; i < request->answer_header_count; i++) {
        const struct http_field *field = &request->answer_headers[i];
        if (!strcasecmp(field->name, "Retry-After") &&
            text_to_i64(field->value, strlen(field->value), &seconds) && seconds >= 0)
            return MIN(seconds, (int64_t)86400) * 1000;
    }
    return -1;
}

void grpc_each_trailer(const struct http_request *request,
                       void (*add)(void *context, const char *name, const char *value),
                       void *context)
{
    const struct rpc_state *rpc = &request->rpc;
    if (!rpc->failed) {
        add(context, "grpc-status", "0");
        return;
    }
    char number[16];
    _cleanup_buffer_ struct buffer message = {0}, details = {0};
    snprintf(number, sizeof(number), "%u", grpc_status_of(rpc->code));
    add(context, "grpc-status", number);
    grpc_put_message(&message, rpc->message);
    add(context, "grpc-message", buffer_text(&message));
    bool again = rpc->code == HTTP_UNAVAILABLE || rpc->code == HTTP_RESOURCE_EXHAUSTED;
    int64_t wait_ms = again ? retry_ms(request) : -1;
    if (wait_ms < 0)
        return;
    grpc_put_details(&details, rpc->code, rpc->message, wait_ms);
    add(context, "grpc-status-details-bin", buffer_text(&details));
}

static void add_frame(struct buffer *out, unsigned flags, const void *bytes, size_t length)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];
    grpc_put_prefix(prefix, flags, (uint32_t)length);
    buffer_add(out, prefix, sizeof(prefix));
    buffer_add(out, bytes, length);
}

static void add_line(void *context, const char *name, const char *value)
{
    buffer_printf(context, "%s: %s\r\n", name, value);
}

/* gRPC-Web has them in the body. */
static void add_web_trailers(const struct http_request *request, struct buffer *out)
{
    _cleanup_buffer_ struct buffer lines = {0};
    if (request->rpc.protocol != GRPC_WEB)
        return;
    grpc_each_trailer(request, add_line, &lines);
    add_frame(out, GRPC_WEB_TRAILERS, lines.data, lines.length);
}

static void publish(struct http_request *request, unsigned status, struct buffer *body)
{
    struct reply reply = {.kind = REPLY_WHOLE, .content_type = request->rpc.content_type};
    reply.whole = (struct buffer){.data = body->data, .length = body->length};
    *body = (struct buffer){0};
    http_respond_header(request, "grpc-accept-encoding", ACCEPTED_ENCODINGS);
    respond_publish(request, status, &reply);
}

static void fail(struct http_request *request, enum http_code code, const char *message)
{
    struct rpc_state *rpc = &request->rpc;
    rpc->code = code;
    rpc->message =
        arena_strndup(&request->arena, message, MIN(strlen(message), (size_t)MESSAGE_BYTES_MAX));
    rpc->failed = true;
}

void grpc_respond_error(struct http_request *request, unsigned status, enum http_code code,
                        const char *message)
{
    struct buffer body = {0};
    /* gRPC's own word for a coding or a type that isn't supported. */
    if (status == 415)
        code = HTTP_UNIMPLEMENTED;
    if (request->answered) {
        pthread_mutex_lock(&request->lock);
        if (request->rpc.messages)
            fail(request, code, message);
        pthread_mutex_unlock(&request->lock);
        return;
    }
    fail(request, code, message);
    add_web_trailers(request, &body);
    /* HTTP's status is 200 whatever the call's is; counters have what plain HTTP would have. */
    publish(request, status, &body);
}

static bool accepts_gzip(const struct http_request *request)
{
    const char *accepted = http_request_header(request, "grpc-accept-encoding");
    return accepted && strcasestr(accepted, "gzip");
}

void grpc_respond(struct http_request *request, unsigned status, struct buffer *body)
{
    if (status >= 400) {
        char message[MESSAGE_BYTES_MAX];
        size_t length = body->length;
        while (length && isspace((unsigned char)body->data[length - 1]))
            length--; /* as text ends, and a message doesn't */
        snprintf(message, sizeof(message), "%.*s", (int)MIN(length, sizeof(message) - 1),
                 body->data ? (const char *)body->data : "");
        buffer_release(body);
        grpc_respond_error(request, status, http_status_code(status), message);
        return;
    }
    struct buffer framed = {0}, small = {0};
    if (!respond_hold(request, body->length)) {
        buffer_release(body);
        *body = (struct buffer){0};
        return;
    }
    bool compressed = body->length >= request->server->options.compress_from_bytes &&
                      accepts_gzip(request) && format_compress_gzip(body, &small) >= 0 &&
                      small.length < body->length;
    const struct buffer *sent = compressed ? &small : body;
    if (compressed)
        http_respond_header(request, "grpc-encoding", "gzip");
    buffer_reserve(&framed, sent->length + 2 * GRPC_PREFIX_BYTES);
    add_frame(&framed, compressed ? GRPC_COMPRESSED : 0, sent->data, sent->length);
    add_web_trailers(request, &framed);
    buffer_release(&small);
    buffer_release(body);
    *body = (struct buffer){0};
    publish(request, status, &framed);
}

/* ---- answers whose length isn't known ---- */

int grpc_gather(struct http_request *request, unsigned status, const char *content_type)
{
    struct rpc_state *rpc = &request->rpc;
    rpc->gathering = request->answered = true;
    rpc->gathered_status = status;
    rpc->gathered_type = content_type;
    return 0;
}

int grpc_gather_more(struct http_request *request, const void *bytes, size_t length)
{
    struct rpc_state *rpc = &request->rpc;
    struct pipe_budget *budget = &request->server->budget;
    if (rpc->overflowed || http_request_cancelled(request))
        return -ECANCELED;
    if (atomic_fetch_add(&budget->used, length) + length > budget->limit ||
        rpc->gathered.length + length > UINT32_MAX / 2) {
        atomic_fetch_sub(&budget->used, length);
        rpc->overflowed = true;
        return -ECANCELED;
    }
    buffer_add(&rpc->gathered, bytes, length);
    return 0;
}

void grpc_gather_end(struct http_request *request)
{
    struct rpc_state *rpc = &request->rpc;
    size_t length = rpc->gathered.length;
    rpc->gathering = request->answered = false;
    if (rpc->overflowed)
        grpc_respond_error(request, 503, HTTP_RESOURCE_EXHAUSTED,
                           "The answer is too large for one message now; ask for less, or use "
                           "HTTP/1.1 without gRPC, which sends it in pieces.");
    else if (request->output_failed)
        grpc_respond_error(request, 500, HTTP_INTERNAL, "The answer could not be completed.");
    else
        grpc_respond(request, rpc->gathered_status, &rpc->gathered);
    buffer_release(&rpc->gathered);
    rpc->gathered = (struct buffer){0};
    atomic_fetch_sub(&request->server->budget.used, length);
    pthread_mutex_lock(&request->lock);
    request->output_failed = false;
    pthread_mutex_unlock(&request->lock);
}

/* ---- streams of messages ---- */

void grpc_messages_end(struct http_request *request)
{
    _cleanup_buffer_ struct buffer trailers = {0};
    add_web_trailers(request, &trailers);
    if (trailers.length)
        http_write(request, trailers.data, trailers.length);
}

static int begin_messages(struct http_request *request)
{
    if (request->answered)
        return 0;
    request->rpc.messages = true;
    int r = http_respond_stream(request, 200, request->rpc.content_type);
    request->rpc.messages = r >= 0;
    return r;
}

void http_message_end(struct http_request *request)
{
    if (begin_messages(request) == -EAGAIN)
        http_respond_error(request, 503, "Too many streamed answers are in progress; try again.");
}

int http_message_write(struct http_request *request, const void *bytes, size_t length)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];
    int r = begin_messages(request);
    grpc_put_prefix(prefix, 0, (uint32_t)length);
    if (!r)
        r = http_write(request, prefix, sizeof(prefix));
    if (!r)
        r = http_write(request, bytes, length);
    /* The client waits for it before it says more. */
    pthread_mutex_lock(&request->lock);
    request_resume(request);
    pthread_mutex_unlock(&request->lock);
    return r;
}
