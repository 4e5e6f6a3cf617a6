// SPDX-License-Identifier: Apache-2.0
// The API's description, for programs and for people. It only changes with the program, so clients
// can cache and revalidate it.

#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "io/base64.h"
#include "server/api/api.h"
#include "server/api/openapi.h"
#include "server/handler/parameters.h"
#include "server/query/context.h"

static void respond_document(struct http_request *request, const char *content_type,
                             const void *data, size_t length)
{
    const char *known = http_request_header(request, "If-None-Match");
    char tag[24];
    snprintf(tag, sizeof(tag), "\"%016llx\"", (unsigned long long)XXH3_64bits(data, length));
    http_respond_header(request, "ETag", tag);
    http_respond_header(request, "Cache-Control", "no-cache");
    if (known && (strstr(known, tag) || !strcmp(known, "*"))) {
        http_respond_text(request, 304, NULL, "");
        return;
    }
    http_respond_constant(request, 200, content_type, data, length);
}

void api_document(struct http_request *request, void *server)
{
    (void)server;
    if (parameters_known(request, "/api/v1/openapi.json"))
        respond_document(request, "application/json", openapi_json, openapi_json_length);
}

/* Nothing may be loaded or run, and of styles only the page's own is applied. */
static void add_policy(struct http_request *request)
{
    static const char begin[] = "<style>", end[] = "</style>";
    uint8_t digest[32];
    struct buffer policy = {0};
    buffer_add_text(&policy, "default-src 'none'; base-uri 'none'; form-action 'none'; "
                             "frame-ancestors 'none'");
    const char *style = memmem(openapi_page, openapi_page_length, begin, sizeof(begin) - 1);
    style = style ? style + sizeof(begin) - 1 : (const char *)openapi_page;
    size_t left = openapi_page_length - (size_t)(style - (const char *)openapi_page);
    const char *stop = memmem(style, left, end, sizeof(end) - 1);
    if (stop && !gnutls_hash_fast(GNUTLS_DIG_SHA256, style, (size_t)(stop - style), digest)) {
        buffer_add_text(&policy, "; style-src 'sha256-");
        base64_encode(digest, sizeof(digest), &policy);
        buffer_add_char(&policy, '\'');
    }
    http_respond_header(request, "Content-Security-Policy", buffer_text(&policy));
    buffer_release(&policy);
}

void api_page(struct http_request *request, void *server)
{
    (void)server;
    if (!parameters_known(request, "/api"))
        return;
    add_policy(request);
    http_respond_header(request, "Referrer-Policy", "no-referrer");
    respond_document(request, "text/html; charset=utf-8", openapi_page, openapi_page_length);
}
