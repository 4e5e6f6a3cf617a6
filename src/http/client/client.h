/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP client, for uploads and for scraping: libcurl with limits. A client keeps its
 * connections for the next request; it belongs to one thread at a time, except for
 * http_client_cancel().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

struct http_client;

struct http_client_options {
    /* PEM files; NULL: the system's authorities, and no certificate of our own. */
    const char *ca_file, *certificate_file, *key_file;
    bool insecure; /* any certificate will do */
    /* NULL, or whose certificate it has to be instead of the host's. Connections are kept by it:
     * only calls with the same name share one. */
    const char *server_name;

    /* A bearer token, or user and password. At most one of both. They go to the URL's own host
     * only, also after a redirect. */
    const char *bearer, *user, *password;

    const char *proxy;           /* NULL: none, whatever the environment says */
    const char *unix_socket;     /* NULL: none; connect there instead of to the URL's host */
    const char *user_agent;      /* NULL: assay/VERSION */
    unsigned timeout_ms;         /* of a whole request: 0 is 30 s */
    unsigned connect_timeout_ms; /* 0 is 10 s */
    size_t answer_limit_bytes;   /* 0 is 64 MiB */
    unsigned redirects;          /* at most; 0: none. Never from https to http. */
    bool http2;                  /* only: without TLS the server has to know, as gRPC's do */
};

/* All texts are copied. */
int http_client_new(const struct http_client_options *options, struct http_client **ret_client,
                    struct error *error);
void http_client_free(struct http_client *client);

struct http_call {
    const char *method;         /* NULL: GET, or POST with a body */
    const char *url;            /* http:// or https:// */
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    const void *body; /* or: */
    size_t body_length;
    int body_fd; /* when `body_from_file`: sent from its beginning, `body_length` bytes of it */
    bool body_from_file;
    /* NULL, or what gives `body_length` bytes of a body instead, from any place of it: as many as
     * fit, or a negative code that ends the call. */
    ssize_t (*give)(void *context, uint64_t at, void *bytes, size_t length);
    void *give_context;
    uint64_t send_rate_bytes; /* a second, at most; 0: as fast as it goes */
    bool keep_compressed; /* don't ask for a compressed answer and undo it: give it as it comes */
    unsigned timeout_ms;  /* 0: the client's */
    /* NULL, or what takes the body of an answer with the status 200, piece by piece, instead of the
     * reply; other than 0 ends the call. */
    int (*take)(void *context, const void *bytes, size_t length);
    void *take_context;
};

struct http_reply {
    unsigned status;
    struct buffer body;
    char content_type[128];
    int64_t retry_after_ms; /* -1: the server doesn't say */
    bool is_ours;           /* it has HTTP_SERVER_HEADER: no proxy made it up */
    /* Of gRPC: from its headers or trailers. */
    int grpc_status;        /* -1: none */
    char grpc_message[512]; /* decoded */
    int64_t grpc_retry_ms;  /* RetryInfo; -1: none */
};
void http_reply_release(struct http_reply *reply);
#define _cleanup_http_reply_ _cleanup_(http_reply_release)

/* Asks, and returns 0 for any answer, whatever its status. Errors name the host and the cause:
 * -ECONNREFUSED, -EHOSTUNREACH, -ETIME, -E2BIG (the answer), -ECANCELED, -EPERM (TLS: the
 * certificate is not to be trusted), -EINVAL (the URL), -EIO. */
int http_client_call(struct http_client *client, const struct http_call *call,
                     struct http_reply *ret_reply, struct error *error);

/* Ends the call that is under way, and every later one, with -ECANCELED. From any thread. */
void http_client_cancel(struct http_client *client);

/* The error of a reply that isn't 2xx: "host answered 503 to ...: message". */
int http_reply_error(const struct http_call *call, const struct http_reply *reply,
                     struct error *error);

/* ---- trying again ---- */

struct http_retry {
    unsigned first_ms;   /* 0: 500 ms */
    unsigned longest_ms; /* 0: 30 s */
    unsigned attempts;   /* in all; 0: 5 */
};

/* Whether a failure may pass: no connection, a timeout, 408, 429, 5xx except 501 and 505. */
bool http_may_retry(int code, unsigned status);

/* How long to wait before attempt `attempt` (1: after the first failure): a random time up to an
 * exponentially growing bound, at least half of it; what the server asked for when that is longer,
 * up to `longest_ms`, and up to a tenth more (base/limits/backoff.h). `random` is any 64 random
 * bits. */
unsigned http_retry_wait_ms(const struct http_retry *retry, unsigned attempt,
                            int64_t retry_after_ms, uint64_t random);

/* http_client_call() until it succeeds with a status below 400, fails for good, or attempts are
 * used up; then the last result is given. */
int http_client_call_retrying(struct http_client *client, const struct http_call *call,
                              const struct http_retry *retry, struct http_reply *ret_reply,
                              struct error *error);

/* Seconds or an HTTP date, as milliseconds from `now` (seconds since 1970); -1: neither. */
int64_t http_parse_retry_after(const char *text, int64_t now);
