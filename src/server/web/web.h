/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web page, from inside the binary: one document for every page of it, and the script and style
 * that it names by their content, so that browsers may keep them for ever.
 */
#pragma once

#include <stddef.h>

#include "http/server/request.h"

struct web_file {
    const char *name;
    const unsigned char *bytes;
    size_t length;
};

extern const struct web_file web_files[]; /* index.html among them */
extern const size_t web_files_count;

void web_page(struct http_request *request, void *userdata);
void web_asset(struct http_request *request, void *userdata);

/* An address of nothing: to a browser that is a page as well, which says so; to all others an
 * error. */
void web_missing(struct http_request *request, void *userdata);
