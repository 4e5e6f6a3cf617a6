/* SPDX-License-Identifier: Apache-2.0 */
/* One transfer of libcurl's with our limits, for the clients that run one or many. Private to
 * src/http/client*.c. */
#pragma once

#include <curl/curl.h>
#include <stdatomic.h>

#include "http/client/client.h"

struct http_transfer {
    CURL *easy;
    unsigned timeout_ms;
    bool http2;
    size_t answer_limit_bytes;
    char *server_name;     /* NULL: the URL's host */
    atomic_size_t *budget; /* NULL, or the bytes that all who share it may still hold */
    /* Of the call that is under way. */
    const struct http_call *call;
    struct http_reply reply;
    struct curl_slist *headers, *connect_to;
    uint64_t body_sent;
    size_t taken_bytes; /* by the call's own function */
    bool too_large, no_room;
    char cause[CURL_ERROR_SIZE];
};

/* The options' texts are copied. Release takes what init left after a failure, too. */
int http_transfer_init(struct http_transfer *transfer, const struct http_client_options *options,
                       struct error *error);
void http_transfer_release(struct http_transfer *transfer);

/* Before and after the transfer itself. `call` and what it points to stay valid between. What an
 * answer took of the budget is the caller's to give back. */
int http_transfer_begin(struct http_transfer *transfer, const struct http_call *call,
                        struct error *error);
int http_transfer_end(struct http_transfer *transfer, CURLcode code, struct http_reply *ret_reply,
                      struct error *error);

/* The URL without what may be secret in it: user, password and query. */
const char *http_url_place(const char *url, char place[256]);
