/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the HTTP server. Threads: libmicrohttpd's (callbacks in connection.c),
 * the loops (h2/loop.c), which accept connections and serve HTTP/2, workers (handlers), and one
 * watcher. A request is held by references of the connection, of its worker and of a streamed
 * answer.
 *
 * Locks, outermost first: server->lock, request->lock, and whatever libmicrohttpd, a loop and the
 * workers take.
 */
#pragma once

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "http/access/rate.h"
#include "http/grpc/grpc.h"
#include "http/server/framing.h"
#include "http/server/listen.h"
#include "http/server/pipe.h"
#include "http/server/server.h"
#include "http/server/workers.h"

#define HTTP_LISTEN_MAX 16
#define HTTP_STATUS_MAX 600

struct http_field {
    const char *name, *value;
};

/* Where a connection is, and what the watcher asks of it. */
enum connection_phase {
    PHASE_HEAD,    /* idle, or a head is coming: must end in time */
    PHASE_BODY,    /* a body is coming: must keep up a rate */
    PHASE_BUSY,    /* it is our turn */
    PHASE_SENDING, /* the client is reading: must keep up a rate */
};

struct connection {
    struct http_server *server;
    struct connection *previous, *next; /* server->lock */
    int fd;
    struct h2_connection *h2; /* NULL: libmicrohttpd has it */
    bool tls, unix_socket, local;
    bool certificate_checked, certificate_good; /* its I/O thread only */
    atomic_bool shut;                           /* cut off: the socket was shut down */
    bool ended;                                 /* the watcher's: its receiving side was */
    char peer[64];
    char network[64]; /* of the peer: its address, or for IPv6 what one subscriber has, a /64 */
    /* Of the request that comes: where its target ends, and what was taken from it (raw.c). */
    const char *target_end;
    char *query; /* NULL: none */
    bool target_bad;
    struct framing framing; /* of what was received; its I/O thread only */
    bool followed;          /* it is valid */
    uint64_t heads;         /* that libmicrohttpd has parsed */
    atomic_int phase;
    atomic_int_least64_t since_ms;  /* of the phase */
    atomic_uint_least64_t received; /* bytes of bodies */
    /* The watcher's own: where the current window began. */
    int64_t window_ms;
    uint64_t window_bytes;
    int window_phase;
};

/* An answer as the transport takes it. */
enum reply_kind { REPLY_WHOLE, REPLY_FILE, REPLY_STREAM };
struct reply {
    enum reply_kind kind;
    const char *content_type; /* lives as long as the request; NULL: none */
    struct buffer whole;
    bool constant; /* the bytes of `whole` outlive the server: nobody frees them */
    int fd;
    uint64_t length;
};

/* What gRPC adds to a request; from `begun` on it is the handler's own. */
struct rpc_state {
    enum grpc_protocol protocol;
    bool json;
    const char *content_type; /* of the request and of the answer */
    bool begun;               /* the prefix of the message was read */
    bool compressed;          /* as grpc-encoding says */
    bool messages;            /* the answer is a stream of messages */
    uint64_t left;            /* bytes of the message */
    /* An answer whose length isn't known is gathered: it stands before a message. */
    bool gathering, overflowed;
    unsigned gathered_status;
    const char *gathered_type;
    struct buffer gathered;
    /* Of trailers. `failed` is set before the answer is published, or with the lock held. */
    bool failed;
    enum http_code code;
    const char *message;
};

struct http_request {
    atomic_int references;
    struct http_server *server;
    const struct http_route *route; /* NULL: none found */
    struct connection *connection;  /* valid while !gone */
    struct MHD_Connection *mhd;     /* valid while !gone; NULL: HTTP/2 */
    struct h2_stream *stream;       /* valid while !gone; NULL: HTTP/1.1 */
    struct h2_load *load;           /* of its connection; NULL: HTTP/1.1 */
    struct rpc_state rpc;

    struct arena arena;
    const char *method, *path, *rest, *peer;
    struct http_field *headers, *query;
    size_t header_count, query_count, header_room, query_room;
    struct http_identity identity;
    struct token token;
    bool head_only, too_many_parameters;
    const char *problem;    /* with the head; NULL: none */
    int64_t content_length; /* -1: chunked */
    int64_t began_us;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* From here on under the lock. */
    bool suspended;   /* libmicrohttpd waits for us */
    bool gone;        /* libmicrohttpd is done with it */
    bool submitted;   /* to the workers */
    bool discard;     /* nobody wants the rest of the body */
    bool awaits_body; /* the handler does */
    bool body_ended;
    int body_error; /* 0, -E2BIG, -ECONNRESET, -ETIME */
    struct pipe body;
    uint64_t received, discarded;

    struct http_field *answer_headers;
    size_t answer_header_count, answer_header_room;
    struct MHD_Response *response; /* of HTTP/1.1 */
    struct reply reply;            /* of HTTP/2 */
    unsigned status;
    bool answered;  /* there is a response: the handler's own view */
    size_t held;    /* bytes of it that the server has counted */
    bool published; /* of HTTP/2: `reply` is set */
    bool queued;    /* the transport has it */
    bool streaming, output_ended, output_failed;
    struct pipe output;
    struct gzip_stream *gzip; /* the handler's own */
    int64_t waited_ms;        /* for a reader */
    uint64_t sent;

    bool aborted; /* the server stops */

    atomic_bool cancelled;
    struct http_request *next;                          /* in the workers' queue */
    struct http_request *previous_active, *next_active; /* server->lock */
};

struct route_counters {
    atomic_uint_least64_t status[HTTP_STATUS_MAX];
    atomic_uint_least64_t received, sent, microseconds;
};

struct listener {
    struct listen_address address;
    int fd;
    struct MHD_Daemon *daemon;
    char text[LISTEN_TEXT_BYTES];
};

struct http_server {
    struct http_server_options options; /* with defaults filled in */
    struct listener listeners[HTTP_LISTEN_MAX];
    size_t listener_count;
    struct pipe_budget budget;
    atomic_size_t answer_bytes; /* of whole answers that weren't read yet */
    struct h2_loop *loops;      /* NULL: libmicrohttpd accepts connections itself */
    size_t loop_count;
    atomic_size_t h2_connections, h2_streams;
    struct workers *workers;
    struct rates *rates;
    struct rates *failures; /* wrong tokens by network; NULL: there are no tokens */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* a connection came at the limit, or a request ended */
    struct connection *connections;
    struct http_request *active; /* from the end of the head until the answer is sent */
    atomic_size_t connection_count, active_count, stream_count;
    bool crowded; /* connections are near the limit */
    atomic_bool stopping;
    bool watching, watcher_ends;
    atomic_int_least64_t watched_ms; /* when the watcher last had a look */
    pthread_t watcher;

    struct route_counters *counters; /* one per route, one for no route */
    atomic_uint_least64_t refusals[HTTP_REFUSAL_COUNT];
};

int64_t http_now_ms(void);
int64_t http_now_us(void);

/* May be set while requests come: see http_route_set_body_limit(). */
static inline size_t route_body_limit(const struct http_route *route)
{
    return __atomic_load_n(&route->body_limit_bytes, __ATOMIC_RELAXED);
}

/* ---- connection.c: called by libmicrohttpd ---- */
void connection_notify(void *server, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode code);
enum MHD_Result connection_accept(void *server, const struct sockaddr *address, socklen_t length);
enum MHD_Result connection_access(void *server, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *length, void **context);
void connection_completed(void *server, struct MHD_Connection *mhd, void **context,
                          enum MHD_RequestTerminationCode code);
void connection_set_phase(struct connection *connection, enum connection_phase phase);
/* Makes a connection and adds it to the server's list; removes it and frees it. */
struct connection *connection_add(struct http_server *server, int fd,
                                  const struct sockaddr *address);
void connection_remove(struct http_server *server, struct connection *connection);

/* Steps of both transports with a request: when its head was read, for each piece of its body, at
 * the body's end, and when the client has its answer or has gone. */
void request_link(struct http_request *request);
/* With the lock held. True: submit it as `WORK_COMING` when the lock is free again. */
bool request_await_handler(struct http_request *request);
void request_too_large(struct http_request *request);
void request_submit_whole(struct http_request *request);
void request_gone(struct http_request *request, bool complete);

/* ---- head.c: may this request go on? ---- */
/* Reads everything that is needed of the head; what is wrong with it is in request->problem. */
void head_read(struct http_request *request, const char *url, const char *method,
               const char *version);
/* The parts of it: one header, and what follows from all of them. */
void head_add_field(struct http_request *request, const char *name, size_t name_length,
                    const char *value, size_t value_length);
void head_read_fields(struct http_request *request);
const char *head_keep(struct http_request *request, const char *text);
/* Finds the route and the asker, and checks limits. When the request is refused, it is answered
 * and -1 is returned. */
int head_check(struct http_request *request);
size_t head_unescape(void *userdata, struct MHD_Connection *mhd, char *text);
bool head_match(const char *pattern, const char *path, const char **ret_rest, size_t *ret_length);

/* ---- raw.c: what libmicrohttpd takes and we don't ---- */
/* The connection's bytes are followed from now on, or no longer. */
void raw_attach(struct connection *connection);
void raw_detach(struct connection *connection);
/* Called by libmicrohttpd with the target before it is parsed. */
void *raw_target(void *server, const char *target, struct MHD_Connection *mhd);
/* False: there are more parameters than allowed. */
bool raw_read_query(struct http_request *request);
/* The fault of a head, as the end of a sentence; NULL: none. During the first call for a
 * request only. */
const char *raw_problem(struct http_request *request, const char *method, const char *url,
                        const char *version);
/* Set while this thread hands over an answer of ours. */
extern _Thread_local bool raw_own_answer;

/* ---- request.c ---- */
/* The body as it came, whatever is in it. */
ssize_t request_read_raw(struct http_request *request, void *bytes, size_t room,
                         struct error *error);
struct http_request *request_new(struct http_server *server, struct connection *connection,
                                 struct MHD_Connection *mhd);
struct http_request *request_ref(struct http_request *request);
void request_unref(struct http_request *request);
/* On a worker's thread: runs the handler and sees to it that there is an answer. */
void request_run(struct http_request *request);
/* With request->lock held. */
void request_suspend(struct http_request *request, enum connection_phase phase);
void request_resume(struct http_request *request);
/* Without it. The handler has written all of a streamed answer, and whatever else ends with it. */
void respond_end(struct http_request *request);
/* Without it. Ends waiting for the client, because the server stops. */
void request_abort(struct http_request *request);
void request_refuse(struct http_request *request, enum http_refusal reason, unsigned status,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- h2/: HTTP/2 beside libmicrohttpd ----
 *
 * Loops, threads of ours, accept all connections and look at their first bytes without taking them:
 * HTTP/2's preface, or a TLS handshake that offers "h2", stays here; everything else goes to
 * libmicrohttpd as if it had accepted it. Requests of both are the same struct, and are checked,
 * run and counted by the same code. */
/* Starts the loops; the listeners' daemons must run. */
int h2_start(struct http_server *server, struct error *error);
/* Accepts no more connections, and tells clients to make no more requests. */
void h2_quiesce(struct http_server *server);
/* Closes all connections and ends the loops. All handlers must have returned. */
void h2_stop(struct http_server *server);

/* Something of a request has changed that its loop should see. With request->lock held, while it
 * isn't gone. From any thread. */
void h2_wake(struct http_request *request);

gnutls_session_t h2_tls_session(const struct h2_connection *connection);

/* Requests of a connection that have not ended are counted beyond the connection's own end: one has
 * now. */
void h2_load_finish(struct h2_load *load);

/* ---- respond.c ---- */
/* All headers of an answer, but for those of its framing. */
void respond_each_header(const struct http_request *request, const char *content_type,
                         void (*add)(void *context, const char *name, const char *value),
                         void *context);
/* Counts so many bytes of a whole answer until its request ends. False when there are too many: it
 * was answered with 503. */
bool respond_hold(struct http_request *request, size_t length);
/* Gives the answer to the transport. Takes the reply over. */
void respond_publish(struct http_request *request, unsigned status, struct reply *reply);
bool respond_has_header(const struct http_request *request, const char *name);

/* ---- grpc_request.c: gRPC ---- */
/* The message in the body. */
ssize_t grpc_read_body(struct http_request *request, void *bytes, size_t room, struct error *error);
/* Reads the prefix of the message; the body's own coding after it, or NULL. */
int grpc_open_body(struct http_request *request, const char **ret_coding, struct error *error);
void grpc_respond(struct http_request *request, unsigned status, struct buffer *body);
void grpc_respond_error(struct http_request *request, unsigned status, enum http_code code,
                        const char *message);
int grpc_gather(struct http_request *request, unsigned status, const char *content_type);
int grpc_gather_more(struct http_request *request, const void *bytes, size_t length);
void grpc_gather_end(struct http_request *request);
/* All messages of a stream were written. */
void grpc_messages_end(struct http_request *request);
void grpc_release_state(struct http_request *request);
/* Trailers as they are once the answer has ended. */
void grpc_each_trailer(const struct http_request *request,
                       void (*add)(void *context, const char *name, const char *value),
                       void *context);

/* ---- counters.c ---- */
/* With request->lock held. */
void counters_add(struct http_request *request);
void counters_refused(struct http_server *server, enum http_refusal reason, const char *peer,
                      const struct http_identity *identity, const struct http_request *request);

/* ---- watch.c ---- */
/* Counts why, and shuts the socket down; libmicrohttpd sees its end. Only while it is not gone. */
void connection_cut(struct connection *connection, enum http_refusal reason,
                    const struct http_identity *identity, const struct http_request *request);
/* The watcher's thread. */
void *watch_main(void *server);
