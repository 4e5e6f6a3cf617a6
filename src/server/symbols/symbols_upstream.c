// SPDX-License-Identifier: Apache-2.0
// Other debuginfod servers, for builds that nobody uploaded. Sends one request at a time, and
// pauses after a server was unreachable. See symbols.h.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/client/client.h"
#include "server/symbols/symbols.h"

#define FETCH_BYTES_MAX (1ull << 30)
#define FETCH_MS 120000
#define FAILURES_MAX 3        /* in a row, then it is left alone, */
#define REST_NS 60000000000ll /* pause after a failure */

struct symbols_upstream {
    struct http_client *client;
    struct {
        const char *url;
        unsigned failures;
        int64_t rests_until;
    } servers[SYMBOLS_UPSTREAM_MAX];
    size_t count;
};

struct symbols_upstream *symbols_upstream_new(const struct symbols_options *options)
{
    struct symbols_upstream *upstream = memory_zalloc(1, sizeof(*upstream));
    struct http_client_options client = {
        .timeout_ms = FETCH_MS, .answer_limit_bytes = FETCH_BYTES_MAX, .redirects = 3};
    for (size_t i = 0; i < options->upstream_count; i++)
        upstream->servers[upstream->count++].url = options->upstream[i];
    if (http_client_new(&client, &upstream->client, NULL) < 0) {
        free(upstream);
        return NULL;
    }
    return upstream;
}

void symbols_upstream_free(struct symbols_upstream *upstream)
{
    if (!upstream)
        return;
    http_client_free(upstream->client);
    free(upstream);
}

void symbols_upstream_cancel(struct symbols_upstream *upstream)
{
    http_client_cancel(upstream->client);
}

static int take(void *context, const void *bytes, size_t length)
{
    return symbol_upload_write(context, bytes, length, NULL);
}

static int fetch(struct symbols_upstream *upstream, const char *url, struct symbol_store *store,
                 const char *tenant, const char *key, const char *what, struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer address = {0};
    _cleanup_symbol_upload_ struct symbol_upload upload = {0};
    struct symbol_stored stored;
    size_t length = strlen(url);
    buffer_printf(&address, "%.*s/buildid/%s/%s",
                  (int)(length - (length && url[length - 1] == '/')), url, key, what);
    struct http_call call = {.url = buffer_text(&address), .take = take, .take_context = &upload};
    int r = symbol_upload_begin(store, &upload, error);
    if (!r)
        r = http_client_call(upstream->client, &call, &reply, error);
    if (!r && reply.status == 404)
        r = error_set(error, -ENOENT, "%s has no build %s.", url, key);
    else if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    if (!r && symbol_upload_finish(&upload, tenant, key, "", &stored, error) < 0)
        r = -EBADMSG;
    return r;
}

int symbols_upstream_fetch(struct symbols_upstream *upstream, struct symbol_store *store,
                           const char *tenant, const char *key, struct error *error)
{
    int r = -ENOENT;
    for (size_t i = 0; r < 0 && i < upstream->count; i++) {
        if (monotonic_ns() < upstream->servers[i].rests_until)
            continue;
        int got = fetch(upstream, upstream->servers[i].url, store, tenant, key, "debuginfo", error);
        if (got == 0 || got == -ENOENT) /* which segments there are, only the binary says */
            got = MAX(got, fetch(upstream, upstream->servers[i].url, store, tenant, key,
                                 "executable", got ? error : NULL));
        bool reached = got == 0 || got == -ENOENT || got == -EBADMSG;
        upstream->servers[i].failures = reached ? 0 : upstream->servers[i].failures + 1;
        if (upstream->servers[i].failures >= FAILURES_MAX)
            upstream->servers[i].rests_until = monotonic_ns() + REST_NS;
        r = got == 0 || r == -ENOENT ? got : r;
    }
    return r;
}
