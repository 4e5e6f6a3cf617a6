// SPDX-License-Identifier: Apache-2.0
// The thread that sends what is in the spool: see upload.h.

#include "agent/send/upload.h"

#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/file.h"
#include "base/limits/backoff.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "http/client/client.h"
#include "http/grpc/grpc.h"

#define PROFILES_PATH "/v1development/profiles"
#define EXPORT_METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define WAIT_MS 1000
#define GRACE_STEP_MS 20
#define TOKEN_BYTES_MAX 4096
#define PLAIN_BYTES_MAX (256u << 20)
#define GZIP_LEVEL 6
#define BURST 3 /* batches that may go off at once: the last windows of an agent that ends */
#define RETRY_AFTER_MAX_MS 3600000
/* After this many answers of 500 in a row to the same batch, the next one is tried. A batch that
 * the server fails on while it accepts that one waits this many times the longest wait between
 * requests, and twice as long each time, up to an hour. */
#define PATIENCE 4
#define DEFER_FACTOR 4
#define DEFER_MAX_FACTOR 30

/* Which content a file has, without reading it. */
struct file_stamp {
    uint64_t inode, size;
    int64_t seconds, nanoseconds;
};

struct uploader {
    struct spool *spool;
    struct upload_options options; /* its texts are copies */
    char *url;
    char *texts[5];
    struct http_client *client; /* made anew when the token has changed; see `lock` */
    struct file_stamp token_stamp;
    pthread_t thread;
    bool started;
    atomic_bool stop;
    unsigned attempt;             /* failures in a row */
    unsigned own_failures;        /* of them, at the batch `failing` itself, in a row */
    char failing[SPOOL_ID_BYTES]; /* the batch that is not taken */
    char suspect[SPOOL_ID_BYTES]; /* and that the next one is tried instead of; "": none */
    double tokens;                /* batches that may go off now */
    int64_t tokens_ns;
    pthread_mutex_t lock; /* over the stats, and what `client` is */
    pthread_cond_t wake;
    struct upload_stats stats;
};

/* ---- waiting ---- */

int64_t upload_wait_ms(const struct upload_options *options, unsigned failures,
                       int64_t retry_after_ms, uint64_t random)
{
    const struct backoff backoff = {
        .first_ms = options->first_retry_ms ? options->first_retry_ms : 1000,
        .longest_ms = options->longest_retry_ms ? options->longest_retry_ms : 30000,
        .asked_longest_ms = RETRY_AFTER_MAX_MS};
    return backoff_ms(&backoff, failures, retry_after_ms, random);
}

static void rest(struct uploader *uploader, int64_t wait_ms)
{
    int64_t until = monotonic_ns() + wait_ms * 1000000;
    pthread_mutex_lock(&uploader->lock);
    while (!atomic_load(&uploader->stop) &&
           !condition_wait_until(&uploader->wake, &uploader->lock, until))
        ;
    pthread_mutex_unlock(&uploader->lock);
}

/* Limits the rate of a backlog: batches a second, with a small burst. */
static void keep_pace(struct uploader *uploader)
{
    double rate = uploader->options.batches_per_second;
    int64_t now = monotonic_ns();
    uploader->tokens += (double)(now - uploader->tokens_ns) / 1e9 * rate;
    uploader->tokens = MIN(uploader->tokens, BURST);
    uploader->tokens_ns = now;
    if (uploader->tokens < 1)
        rest(uploader, (int64_t)((1 - uploader->tokens) / rate * 1000) + 1);
    uploader->tokens -= 1;
}

/* ---- one request ---- */

/* The result of a request. */
struct outcome {
    unsigned status; /* 0: no answer */
    bool is_ours;    /* the server's own answer, and not that of something on the way to it */
    int64_t retry_after_ms;
};

static bool is_refusal(unsigned status)
{
    return status == 400 || status == 413 || status == 422;
}

/* All other failures may end when an operator fixes something: a token, a path, a network, a proxy,
 * a limit of sizes. */
static bool is_final(const struct outcome *outcome)
{
    return outcome->is_ours && is_refusal(outcome->status) && outcome->status != 413;
}

static void note_result(struct uploader *uploader, size_t bytes, const struct outcome *outcome,
                        const struct error *error)
{
    bool refused = is_final(outcome);
    pthread_mutex_lock(&uploader->lock);
    struct upload_stats *stats = &uploader->stats;
    bool failed_before = stats->error[0];
    stats->requests++;
    snprintf(stats->error, sizeof(stats->error), "%s", error->code ? error->text : "");
    if (error->code) {
        stats->failures++;
        stats->throttled += outcome->status == 429 || outcome->status == 503;
        stats->refused += refused;
        stats->kept += is_refusal(outcome->status) && !refused;
    } else {
        stats->bytes += bytes;
        stats->last_ns = clock_ns(CLOCK_REALTIME);
    }
    pthread_mutex_unlock(&uploader->lock);
    if (refused)
        log_warning("The server rejected a batch, which was set aside: %s", error->text);
    else if (error->code && !failed_before) /* once per outage */
        log_warning("The server doesn't accept profiles; keeping them. %s", error->text);
    else if (!error->code && failed_before)
        log_info("The server accepts profiles again.");
}

/* ---- the same by gRPC ---- */

/* The HTTP status that stands for a call's. Without RetryInfo, "exhausted" is about the batch. */
static unsigned status_of_call(const struct http_reply *reply)
{
    enum http_code code = grpc_code_of((uint64_t)reply->grpc_status);
    if (!reply->grpc_status)
        return 200;
    return code == HTTP_RESOURCE_EXHAUSTED && reply->grpc_retry_ms < 0 ? 413
                                                                       : http_code_status(code);
}

static int call_error(const struct http_reply *reply, struct error *error)
{
    if (reply->grpc_status < 0)
        return error_set(error, -EPROTO,
                         "The server's answer has no gRPC status: it may not support gRPC.");
    return error_set(error, -EIO, "The server answered %s (gRPC status %d): %.400s",
                     http_code_name(grpc_code_of((uint64_t)reply->grpc_status)), reply->grpc_status,
                     reply->grpc_message);
}

static int post_call(struct uploader *uploader, const char *batch, const char *sent, bool gzip,
                     const struct buffer *body, struct outcome *ret_outcome, struct error *error)
{
    _cleanup_buffer_ struct buffer message = {0};
    _cleanup_http_reply_ struct http_reply reply = {.retry_after_ms = -1};
    uint8_t prefix[GRPC_PREFIX_BYTES];
    grpc_put_prefix(prefix, GRPC_COMPRESSED, (uint32_t)body->length);
    buffer_add(&message, prefix, sizeof(prefix));
    buffer_add(&message, body->data, body->length);
    const char *headers[] = {"Content-Type: application/grpc+proto", "TE: trailers",
                             gzip ? "grpc-encoding: gzip" : "grpc-encoding: zstd", batch, sent};
    struct http_call call = {.method = "POST",
                             .url = uploader->url,
                             .headers = headers,
                             .header_count = ARRAY_LENGTH(headers),
                             .body = message.data,
                             .body_length = message.length,
                             .keep_compressed = true};
    int r = http_client_call(uploader->client, &call, &reply, error);
    *ret_outcome = (struct outcome){.retry_after_ms = -1};
    if (r)
        return r;
    if (reply.status != 200) {
        *ret_outcome = (struct outcome){reply.status, reply.is_ours, reply.retry_after_ms};
        return http_reply_error(&call, &reply, error);
    }
    /* Without a status it is some other server's answer, or one that was cut off. */
    unsigned status = reply.grpc_status < 0 ? 502 : status_of_call(&reply);
    int64_t retry_ms = reply.grpc_retry_ms >= 0 ? reply.grpc_retry_ms : reply.retry_after_ms;
    *ret_outcome = (struct outcome){status, reply.is_ours, retry_ms};
    return status == 200 ? 0 : call_error(&reply, error);
}

/* Returns 0, or a negative code; in both cases *ret_outcome is set. */
static int post(struct uploader *uploader, const char *id, const char *encoding,
                const struct buffer *body, struct outcome *ret_outcome, struct error *error)
{
    char batch[SPOOL_ID_BYTES + 32], sent[64];
    int64_t now = clock_ns(CLOCK_REALTIME);
    snprintf(batch, sizeof(batch), "X-Assay-Batch-Id: %s", id);
    snprintf(sent, sizeof(sent), "X-Assay-Sent-At: %lld.%09lld", (long long)(now / 1000000000),
             (long long)(now % 1000000000));
    if (uploader->options.protocol == UPLOAD_GRPC)
        return post_call(uploader, batch, sent, strstr(encoding, "gzip"), body, ret_outcome, error);
    const char *headers[] = {"Content-Type: application/x-protobuf", encoding, batch, sent};
    struct http_call call = {.method = "POST",
                             .url = uploader->url,
                             .headers = headers,
                             .header_count = ARRAY_LENGTH(headers),
                             .body = body->data,
                             .body_length = body->length};
    _cleanup_http_reply_ struct http_reply reply = {.retry_after_ms = -1};
    int r = http_client_call(uploader->client, &call, &reply, error);
    *ret_outcome = (struct outcome){.retry_after_ms = -1};
    if (r)
        return r;
    *ret_outcome = (struct outcome){reply.status, reply.is_ours, reply.retry_after_ms};
    if (reply.status >= 200 && reply.status < 300)
        return 0;
    r = http_reply_error(&call, &reply, error);
    if (is_refusal(reply.status) && !reply.is_ours) {
        struct error told = *error;
        error_set(error, r, "A proxy rejected the batch, not the server: %.400s", told.text);
    }
    return r;
}

/* For servers that don't know zstd, which is what the spool holds. */
static bool into_gzip(const struct buffer *body, struct buffer *ret_gzip)
{
    unsigned long long length = ZSTD_getFrameContentSize(body->data, body->length);
    if (length > PLAIN_BYTES_MAX) /* also what stands for an error */
        return false;
    _cleanup_free_ char *plain = memory_alloc(length + 1);
    size_t got = ZSTD_decompress(plain, length, body->data, body->length);
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(GZIP_LEVEL);
    if (ZSTD_isError(got) || !compressor) {
        libdeflate_free_compressor(compressor);
        return false;
    }
    size_t room = libdeflate_gzip_compress_bound(compressor, got);
    ret_gzip->length =
        libdeflate_gzip_compress(compressor, plain, got, buffer_reserve(ret_gzip, room), room);
    libdeflate_free_compressor(compressor);
    return ret_gzip->length > 0;
}

/* ---- the client ---- */

static int read_token(const char *path, struct buffer *ret_token, struct error *error)
{
    int r = file_read(path, TOKEN_BYTES_MAX, ret_token, error);
    while (!r && ret_token->length && strchr(" \t\r\n", ret_token->data[ret_token->length - 1]))
        ret_token->length--;
    if (!r && !ret_token->length)
        r = error_set(error, -EINVAL, "The token file %s is empty.", path);
    if (!r)
        buffer_text(ret_token);
    return r;
}

static struct file_stamp stamp_of(const char *path)
{
    struct stat found;
    if (!path || stat(path, &found) < 0)
        return (struct file_stamp){0};
    return (struct file_stamp){.inode = found.st_ino,
                               .size = (uint64_t)found.st_size,
                               .seconds = found.st_mtim.tv_sec,
                               .nanoseconds = found.st_mtim.tv_nsec};
}

static int make_client(struct uploader *uploader, struct http_client **ret_client,
                       struct error *error)
{
    const struct upload_options *options = &uploader->options;
    _cleanup_buffer_ struct buffer token = {0};
    int r = options->token_file ? read_token(options->token_file, &token, error) : 0;
    if (r < 0)
        return r;
    return http_client_new(
        &(struct http_client_options){.ca_file = options->ca_file,
                                      .certificate_file = options->certificate_file,
                                      .key_file = options->key_file,
                                      .proxy = options->proxy,
                                      .timeout_ms = options->timeout_ms,
                                      .http2 = options->protocol == UPLOAD_GRPC,
                                      .bearer = options->token_file ? token.data : NULL},
        ret_client, error);
}

/* Tokens are replaced while agents run. A file that can't be read now leaves us with the old one.
 */
static void renew_token(struct uploader *uploader)
{
    struct http_client *client, *old;
    struct error error = {0};
    struct file_stamp stamp = stamp_of(uploader->options.token_file);
    if (!uploader->options.token_file || !stamp.inode ||
        !memcmp(&stamp, &uploader->token_stamp, sizeof(stamp)))
        return;
    uploader->token_stamp = stamp;
    if (make_client(uploader, &client, &error) < 0) {
        log_warning("Keeping the previous token: %s", error.text);
        return;
    }
    pthread_mutex_lock(&uploader->lock);
    old = uploader->client;
    uploader->client = client;
    /* The thread that stops us has either cancelled the old one or will cancel this one. */
    if (atomic_load(&uploader->stop))
        http_client_cancel(client);
    pthread_mutex_unlock(&uploader->lock);
    http_client_free(old);
    log_info("The token in %s changed; using the new one.", uploader->options.token_file);
}

/* ---- a batch that is not taken ---- */

/* It may be the batch's fault, unlike what a gateway says of a server that is away. */
static bool is_own_failure(const struct outcome *outcome)
{
    unsigned status = outcome->status;
    return (status >= 500 && (status < 502 || status > 504)) ||
           (is_refusal(status) && !is_final(outcome));
}

static void defer(struct uploader *uploader, const char *id)
{
    unsigned longest_ms = uploader->options.longest_retry_ms;
    int64_t wait_ns = (longest_ms ? longest_ms : 30000) * DEFER_FACTOR * 1000000ll;
    spool_defer(uploader->spool, id, wait_ns, wait_ns * DEFER_MAX_FACTOR);
    memcpy(uploader->suspect, id, sizeof(uploader->suspect));
}

/* Whether it is the batch or the server is seen by what becomes of the next one. */
static void judge(struct uploader *uploader, const char *id, const struct outcome *outcome,
                  bool taken)
{
    bool same = !strcmp(uploader->failing, id);
    if (uploader->suspect[0] && strcmp(uploader->suspect, id) != 0) {
        if (taken) {
            log_warning("The batch %s is rejected while others are accepted: sending the others "
                        "first, and retrying it later.",
                        uploader->suspect);
            pthread_mutex_lock(&uploader->lock);
            uploader->stats.skipped++;
            pthread_mutex_unlock(&uploader->lock);
        } else {
            spool_restore(uploader->spool, uploader->suspect);
        }
        uploader->suspect[0] = '\0';
    }
    if (taken || !is_own_failure(outcome)) {
        uploader->own_failures = 0;
        uploader->failing[0] = '\0';
        return;
    }
    uploader->own_failures = same ? uploader->own_failures + 1 : 1;
    memcpy(uploader->failing, id, sizeof(uploader->failing));
    if (uploader->own_failures >= PATIENCE) {
        uploader->own_failures = 0;
        defer(uploader, id);
    }
}

/* ---- the thread ---- */

/* The oldest batch, or a moment without one. */
static void turn(struct uploader *uploader)
{
    _cleanup_buffer_ struct buffer body = {0}, gzip = {0};
    struct error error = {0};
    char id[SPOOL_ID_BYTES];
    struct outcome outcome;
    if (spool_next(uploader->spool, WAIT_MS, id, &body) <= 0)
        return;
    keep_pace(uploader);
    if (atomic_load(&uploader->stop))
        return;
    renew_token(uploader);
    bool zipped = uploader->options.compression == UPLOAD_GZIP && into_gzip(&body, &gzip);
    int r = post(uploader, id, zipped ? "Content-Encoding: gzip" : "Content-Encoding: zstd",
                 zipped ? &gzip : &body, &outcome, &error);
    if (r == -ECANCELED)
        return;
    note_result(uploader, zipped ? gzip.length : body.length, &outcome, &error);
    judge(uploader, id, &outcome, !r);
    if (!r || is_final(&outcome)) {
        uploader->attempt = 0;
        spool_done(uploader->spool, id, r < 0);
        return;
    }
    uploader->attempt++;
    rest(uploader, upload_wait_ms(&uploader->options, uploader->attempt, outcome.retry_after_ms,
                                  random_bits()));
}

static void *run(void *argument)
{
    struct uploader *uploader = argument;
    pthread_setname_np(pthread_self(), "upload");
    while (!atomic_load(&uploader->stop))
        turn(uploader);
    return NULL;
}

/* ---- lifecycle ---- */

static void copy_options(struct uploader *uploader, const struct upload_options *options)
{
    struct upload_options *own = &uploader->options;
    const char **texts[] = {&own->token_file, &own->ca_file, &own->certificate_file, &own->key_file,
                            &own->proxy};
    struct buffer url = {0};
    size_t length = strlen(options->url);
    *own = *options;
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        if (*texts[i])
            *texts[i] = uploader->texts[i] = memory_strdup(*texts[i]);
    while (length && options->url[length - 1] == '/')
        length--;
    buffer_printf(&url, "%.*s%s", (int)length, options->url,
                  options->protocol == UPLOAD_GRPC ? EXPORT_METHOD : PROFILES_PATH);
    buffer_text(&url);
    own->url = uploader->url = url.data;
    if (own->batches_per_second <= 0)
        own->batches_per_second = 1;
}

int uploader_start(const struct upload_options *options, struct spool *spool,
                   struct uploader **ret_uploader, struct error *error)
{
    if (strncmp(options->url, "http://", 7) != 0 && strncmp(options->url, "https://", 8) != 0)
        return error_set(error, -EINVAL,
                         "The server URL %.200s must begin with http:// or https://.",
                         options->url);
    struct uploader *uploader = memory_zalloc(1, sizeof(*uploader));
    pthread_cond_init(&uploader->wake, NULL);
    pthread_mutex_init(&uploader->lock, NULL);
    copy_options(uploader, options);
    uploader->spool = spool;
    uploader->tokens = BURST;
    uploader->tokens_ns = monotonic_ns();
    uploader->token_stamp = stamp_of(options->token_file);
    int r = make_client(uploader, &uploader->client, error);
    if (!r && (r = -pthread_create(&uploader->thread, NULL, run, uploader)))
        r = error_set_errno(error, r, "Failed to start a thread");
    uploader->started = !r;
    if (r < 0) {
        uploader_stop(uploader, 0);
        return r;
    }
    *ret_uploader = uploader;
    return 0;
}

static bool has_due(struct spool *spool)
{
    struct spool_stats stats = spool_stats(spool);
    return stats.batches > stats.deferred;
}

void uploader_stop(struct uploader *uploader, unsigned grace_ms)
{
    if (!uploader)
        return;
    int64_t until = monotonic_ns() + grace_ms * 1000000ll;
    if (uploader->started) {
        while (monotonic_ns() < until && has_due(uploader->spool) &&
               !uploader_stats(uploader).error[0])
            usleep(GRACE_STEP_MS * 1000);
        pthread_mutex_lock(&uploader->lock);
        atomic_store(&uploader->stop, true);
        http_client_cancel(uploader->client);
        pthread_cond_broadcast(&uploader->wake);
        pthread_mutex_unlock(&uploader->lock);
        spool_wake(uploader->spool);
        pthread_join(uploader->thread, NULL);
    }
    http_client_free(uploader->client);
    pthread_mutex_destroy(&uploader->lock);
    pthread_cond_destroy(&uploader->wake);
    for (size_t i = 0; i < ARRAY_LENGTH(uploader->texts); i++)
        free(uploader->texts[i]);
    free(uploader->url);
    free(uploader);
}

struct upload_stats uploader_stats(struct uploader *uploader)
{
    pthread_mutex_lock(&uploader->lock);
    struct upload_stats stats = uploader->stats;
    pthread_mutex_unlock(&uploader->lock);
    return stats;
}
