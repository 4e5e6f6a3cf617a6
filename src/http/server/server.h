/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: routes, limits, TLS, tokens, and threads that run handlers. libmicrohttpd does
 * HTTP/1.1 on a few threads of its own, nghttp2 HTTP/2 on ours; a handler runs on a worker's
 * thread, where it may block, and reads and answers through request.h, whatever the protocol is.
 *
 * Everything has a limit. A body is held until it is complete or `body_buffer_bytes` are there;
 * then the handler starts, and reads the rest while it comes. Senders and readers below a minimum
 * rate are cut off. Of all workers, half are kept for requests that are complete, so that slow
 * senders can't take them all.
 */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "http/access/tokens.h"
#include "http/server/request.h"

struct http_tls;
struct http_server;

/* Why requests and connections were turned away, for counters and for a table of senders. */
enum http_refusal {
    HTTP_REFUSED_CONNECTIONS,     /* more connections than allowed */
    HTTP_REFUSED_IDLE,            /* an idle connection made room for a new one */
    HTTP_REFUSED_SLOW_HEAD,       /* a request didn't begin or its head didn't end in time */
    HTTP_REFUSED_SLOW_BODY,       /* a body came too slowly */
    HTTP_REFUSED_SLOW_READER,     /* an answer was read too slowly */
    HTTP_REFUSED_OVERLOAD,        /* more requests at once than allowed */
    HTTP_REFUSED_RATE,            /* more requests per second than the sender may make */
    HTTP_REFUSED_TOO_LARGE,       /* a body over the route's limit */
    HTTP_REFUSED_UNAUTHENTICATED, /* no token, or a wrong one */
    HTTP_REFUSED_GUESSING,        /* a wrong token after many */
    HTTP_REFUSED_FORBIDDEN,       /* a token without the role; a host name that isn't ours */
    HTTP_REFUSED_MALFORMED,       /* contradicting headers and the like */
    HTTP_REFUSED_FLOOD,           /* frames of HTTP/2 that cost more than they are worth */
    HTTP_REFUSED_HALF_CLOSED,     /* HTTP/2: the client sends no more, with requests unanswered */
    HTTP_REFUSED_STOPPING,
    HTTP_REFUSAL_COUNT,
};
const char *http_refusal_name(enum http_refusal reason);

#define HTTP_ROUTE_PLAIN_ERRORS 1u /* errors are text instead of JSON */
/* Handlers compute before they wait for anything, and say when: see http_request_computed(). Once
 * their bodies are there, about as many run at once as there are processors. */
#define HTTP_ROUTE_COMPUTES 2u
/* Without a token a request goes on, with no role and the default tenant; with one, that counts. */
#define HTTP_ROUTE_TOKEN_OPTIONAL 4u
/* A method of a service, which gRPC may call; of other routes gRPC sees nothing. */
#define HTTP_ROUTE_RPC 8u
/* Messages go both ways at once: the handler starts before the body is complete, and uses
 * http_message_read() and http_message_write(). */
#define HTTP_ROUTE_MESSAGES 16u

struct http_route {
    const char *method; /* "GET" (HEAD as well), "POST", ... */
    /* One `*` stands for anything but nothing: "/label/(star)/values", or the rest of the path at
     * the end. A route before another is tried before it. */
    const char *pattern;
    unsigned roles; /* any of these will do; HTTP_ROLE_ANY: no token needed */
    void (*handle)(struct http_request *request, void *userdata);
    size_t body_limit_bytes; /* as sent; 0: no body */
    unsigned flags;
};

/* Summary of a finished request. Pointers are valid during the call. */
struct http_access {
    const char *peer, *method, *path, *user_agent;
    const struct http_identity *identity;
    unsigned status;
    uint64_t bytes_received, bytes_sent; /* bodies */
    int64_t duration_us;
    const char *route; /* pattern, or NULL */
};

/* Another limit for the requests that come from now on. */
static inline void http_route_set_body_limit(struct http_route *route, size_t bytes)
{
    __atomic_store_n(&route->body_limit_bytes, bytes, __ATOMIC_RELAXED);
}

struct http_server_options {
    /* Texts as listen_parse() takes them; at least one. */
    const char *const *listen;
    size_t listen_count;
    mode_t unix_mode; /* 0: 0600 */
    bool insecure;    /* beyond loopback without TLS and tokens */
    bool http2;       /* besides HTTP/1.1: by its preface, and by ALPN under TLS */

    const struct http_route *routes; /* the caller keeps them */
    size_t route_count;
    /* NULL, or what answers its method where no pattern matches; its own pattern isn't looked at.
     */
    const struct http_route *missing;
    void *userdata; /* of handlers and callbacks */

    struct http_tls *tls;  /* NULL: none; not owned */
    struct tokens *tokens; /* NULL: everybody is admin of `anonymous`; not owned */

    /* Host names that requests may be for when there are no tokens; addresses and localhost always
     * may. Otherwise a web page elsewhere could ask us through a name that it points at us. */
    const char *const *host_names;
    size_t host_name_count;
    const char *cors_origin; /* NULL: no CORS; "*" or one origin */

    /* 0 is the default. */
    unsigned io_threads;         /* per address: 2 */
    unsigned workers;            /* at most: 32 */
    size_t connection_limit;     /* 20,000, or what the open-files limit leaves */
    size_t connections_per_peer; /* no limit */
    size_t request_limit;        /* at once, running or waiting: 2,048 */
    size_t head_limit_bytes;     /* 16 KiB */
    size_t body_buffer_bytes;    /* of one request: 256 KiB */
    size_t buffer_limit_bytes;   /* of all requests: 64 MiB */
    /* Of all answers that are sent whole, until their clients have read them: 64 MiB. One that is
     * larger is sent when there are no others; those that don't fit are 503. */
    size_t answer_limit_bytes;
    unsigned idle_timeout_ms;    /* between requests, and until a head is there: 75 s */
    unsigned rate_window_ms;     /* over which the rate of bodies is taken: 10 s */
    size_t minimum_rate_bytes;   /* per second, both ways: 1,024 */
    /* Answers that are streamed keep what they are made of until they have been read. So there are
     * only so many at once, and their readers are waited for so long in all, and longer by what
     * they have read at that rate. */
    size_t stream_limit;        /* 64 */
    unsigned stream_wait_ms;    /* 60 s; the rate of readers of any answer is taken over it */
    size_t stream_rate_bytes;   /* per second: 64 KiB */
    double requests_per_second; /* of one token or address: no limit */
    double request_burst;       /* 10 seconds' worth */
    size_t compress_from_bytes; /* gzip for answers from here on: 1,024 */

    /* Both may be NULL; they are called from any thread and must be quick. */
    void (*on_access)(void *userdata, const struct http_access *access);
    /* `request` is NULL where there is none yet, and where its handler is told as well. */
    void (*on_refusal)(void *userdata, enum http_refusal reason, const char *peer,
                       const struct http_identity *identity, const struct http_request *request);
};

int http_server_start(const struct http_server_options *options, struct http_server **ret_server,
                      struct error *error);

/* Takes no more connections, lets what runs end for at most `grace_ms`, then cancels it, and
 * returns when all handlers have. Takes NULL. */
void http_server_stop(struct http_server *server, unsigned grace_ms);

/* How many addresses there are, and each as a text with the real port. */
size_t http_server_address_count(const struct http_server *server);
const char *http_server_address(const struct http_server *server, size_t index);

/* Prometheus text: requests by route and status, refusals by reason, connections, bytes. */
void http_server_metrics(struct http_server *server, struct buffer *out);
uint64_t http_server_refused(const struct http_server *server, enum http_refusal reason);
size_t http_server_connections(const struct http_server *server);

/* Whether connections were looked after within the last seconds: for a watchdog. */
bool http_server_alive(const struct http_server *server);

/* One line without its newline: `peer identity "METHOD /path" status bytes ms`. */
void http_access_line(struct buffer *out, const struct http_access *access);
