/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of a server's API, and files that go there or come from there. */
#pragma once

#include "cli/remote/control.h"
#include "http/client/client.h"

/* The rows of options for a command's table, with the names that `assay query` has. */
#define SERVER_URL_OPTIONS(link)                                                                   \
    {"Server", .kind = OPTION_GROUP},                                                              \
        {"url",      'u', OPTION_TEXT, "URL", "the server (" SERVER_LINK_URL "); also unix:PATH",  \
         &(link).url},                                                                             \
        {"token-file",      0, OPTION_TEXT, "FILE", "file with the token; default: $ASSAY_TOKEN",  \
         &(link).token_file},                                                                      \
    {                                                                                              \
        "ca", 0, OPTION_TEXT, "FILE", "certificate authority of the server, PEM", &(link).ca       \
    }

/* Begins with the server's own; `path` begins at the root. */
void address_begin(struct buffer *url, const struct server_link *link, const char *path);
void address_add_escaped(struct buffer *url, const char *text);
/* Nothing for NULL. */
void address_add_parameter(struct buffer *url, const char *name, const char *value);

/* One call with retries; any status but 2xx is an error with the server's own sentence. */
int address_call(struct server_link *link, const struct http_call *call, struct buffer *ret_answer,
                 struct error *error);
