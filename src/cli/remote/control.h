/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by `assay agents`, `assay control` and `assay recording`: JSON requests to a server. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options.h"
#include "io/json.h"

struct server_link {
    const char *url, *token_file, *ca;
    struct http_client *client;
};

/* The rows of its options, for a command's table; `link` is a struct server_link. */
#define SERVER_LINK_URL "http://127.0.0.1:4040"
#define SERVER_LINK_OPTIONS(link)                                                                  \
    {"server", 's', OPTION_TEXT, "URL", "of the server (" SERVER_LINK_URL ")", &(link).url},       \
        {"token-file",      0, OPTION_TEXT, "FILE", "file with the token for the server",          \
         &(link).token_file},                                                                      \
    {                                                                                              \
        "ca", 0, OPTION_TEXT, "FILE", "certificate authorities to trust", &(link).ca               \
    }

int server_link_open(struct server_link *link, struct error *error);
void server_link_close(struct server_link *link);

/* `path` begins at the root. `body` is JSON; NULL: none. Any answer but 2xx is an error, with the
 * server's own sentence. */
int server_link_call(struct server_link *link, const char *method, const char *path,
                     const char *body, struct buffer *ret_answer, struct error *error);

/* Reads a whole answer. */
int server_link_read(const struct buffer *answer, int (*read)(struct json *json, void *context),
                     void *context, struct error *error);

/* A text, as much of it as fits; a number; a truth. Other kinds are skipped. */
int answer_text(struct json *json, char *to, size_t room);
int answer_number(struct json *json, double *number);
int answer_bool(struct json *json, bool *truth);

/* "3 s", "5 min", "2 h", "4 d" since a time in seconds since 1970. */
const char *answer_age(double since, char text[24]);
