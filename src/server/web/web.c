// SPDX-License-Identifier: Apache-2.0
// Serving the web page: see web.h.

#include "server/web/web.h"

#include <string.h>

#include "base/buffer.h"

/* Everything must come from this server, and no script or style may be inline. uPlot and the canvas
 * set styles by script, which isn't inline style. Pictures are for "save as PNG". */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct web_file *find(const char *name)
{
    for (size_t i = 0; i < web_files_count; i++)
        if (!strcmp(web_files[i].name, name))
            return &web_files[i];
    return NULL;
}

static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && !strcmp(dot, ".js")    ? "text/javascript; charset=utf-8"
           : dot && !strcmp(dot, ".css") ? "text/css; charset=utf-8"
                                         : "text/html; charset=utf-8";
}

static void respond(struct http_request *request, unsigned status, const struct web_file *file)
{
    http_respond_header(request, "Content-Security-Policy", POLICY);
    http_respond_header(request, "X-Content-Type-Options", "nosniff");
    http_respond_header(request, "Referrer-Policy", "same-origin");
    http_respond_header(request, "Cross-Origin-Opener-Policy", "same-origin");
    http_respond_constant(request, status, type_of(file->name), file->bytes, file->length);
}

void web_page(struct http_request *request, void *userdata)
{
    (void)userdata;
    http_respond_header(request, "Cache-Control", "no-cache");
    respond(request, 200, find("index.html"));
}

void web_missing(struct http_request *request, void *userdata)
{
    (void)userdata;
    const char *accepted = http_request_header(request, "Accept");
    if (!accepted || !strstr(accepted, "text/html")) {
        http_respond_error(request, 404, "Unknown route %s.", http_request_path(request));
        return;
    }
    http_respond_header(request, "Cache-Control", "no-cache");
    respond(request, 404, find("index.html"));
}

void web_asset(struct http_request *request, void *userdata)
{
    (void)userdata;
    const struct web_file *file = find(http_request_rest(request));
    if (!file) {
        http_respond_error(request, 404,
                           "This version of the page has no such file: reload the page.");
        return;
    }
    http_respond_header(request, "Cache-Control", "public, max-age=31536000, immutable");
    respond(request, 200, file);
}
