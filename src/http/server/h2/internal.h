/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of HTTP/2: loop.c has the threads, accepts and looks at first bytes;
 * socket.c moves bytes, session.c is what nghttp2 calls, stream.c a stream and its
 * request. Everything of a connection belongs to its loop's thread, but for the list of woken
 * streams.
 */
#pragma once

#include <nghttp2/nghttp2.h>

#include "http/server/h2/frames.h"
#include "http/server/internal.h"

#define H2_STREAMS_MAX 100 /* of a connection, at once */
#define H2_WINDOW_BYTES                                                                            \
    PIPE_FIRST_BYTES           /* of a stream at first: for so much there is always room */
#define H2_WINDOW_UNTOLD 65535 /* until the client has seen our settings */
#define H2_CONNECTION_WINDOW (1 << 20)
#define H2_SCRATCH_BYTES (64u << 10)
#define H2_LINGER_BYTES (1u << 20) /* that are dropped before a connection is closed */
#define H2_SETTINGS_MS 15000       /* in which our settings must be acknowledged */

/* The subject of an epoll event; the first member of each. */
enum h2_source { H2_SOURCE_WAKE, H2_SOURCE_LISTENER, H2_SOURCE_CONNECTION };

enum h2_state {
    H2_LOOKING,   /* at the first bytes */
    H2_HANDSHAKE, /* of TLS */
    H2_OPEN,
    H2_LINGERING, /* all is sent; the client may still be sending */
};

struct h2_load {
    atomic_int references;
    atomic_size_t unfinished;
};

struct h2_stream {
    struct h2_connection *connection;
    struct http_request *request;
    int32_t id;
    struct h2_stream *previous, *next;             /* of the connection */
    struct h2_stream *previous_woken, *next_woken; /* loop->lock */
    bool woken;                                    /* the same */
    /* Of the head, while it comes. */
    size_t head_bytes;
    const char *target, *authority, *scheme;
    bool head_too_large, begun;
    int64_t window;      /* bytes that the client may still send */
    int64_t deadline_ms; /* 0: none */
    /* Of the answer. */
    bool responded, deferred, complete, expired;
    size_t position;
    uint64_t taken; /* bytes of it that nghttp2 has taken */
    /* Where the current window of rates began. */
    int64_t rate_ms;
    uint64_t rate_bytes;
    bool rate_sends;
};

struct h2_connection {
    enum h2_source source;
    enum h2_state state;
    struct h2_loop *loop;
    struct connection *connection;
    struct listener *listener;
    int fd;
    unsigned looks;
    nghttp2_session *session;
    gnutls_session_t tls;
    struct h2_frames frames;
    struct h2_load *load;
    bool settings_known;           /* the client has acknowledged ours */
    bool left;                     /* the client has said goodbye, in a wrong way */
    int64_t opened_ms, lingers_ms; /* since when */
    size_t lingered_bytes;
    const char *problem;       /* what the client does wrong; NULL: nothing */
    enum http_refusal refusal; /* what it counts as */
    bool rejected;             /* it was counted */
    struct buffer out;         /* what the socket didn't take */
    size_t out_sent;
    int64_t out_ms; /* when it last took something */
    uint32_t events;
    struct h2_stream *streams;
    size_t stream_count;
    struct h2_connection *previous, *next;
};

struct h2_listener {
    enum h2_source source;
    struct listener *listener;
};

struct h2_loop {
    enum h2_source source;
    struct http_server *server;
    pthread_t thread;
    bool started;
    int epoll_fd, event_fd;
    atomic_bool quiesce, stop;
    bool quiesced;
    struct h2_listener listeners[HTTP_LISTEN_MAX];
    struct h2_connection *connections;
    int64_t ticked_ms, stopped_ms;
    uint8_t scratch[H2_SCRATCH_BYTES];
    pthread_mutex_t lock;
    struct h2_stream *first_woken, *last_woken;   /* under it */
    gnutls_certificate_credentials_t credentials; /* NULL: no TLS */
};

/* ---- loop.c ---- */
struct h2_connection *h2_connection_open(struct h2_loop *loop, struct listener *listener, int fd,
                                         const struct sockaddr *address);
bool h2_open_session(struct h2_connection *connection);
void h2_connection_close(struct h2_connection *connection);
/* The client does something wrong, as the end of a sentence that begins with its name; the first
 * time counts. The connection should end then. */
void h2_connection_blame(struct h2_connection *connection, enum http_refusal refusal,
                         const char *problem);
/* Answers, and what else has changed since the last time. */
void h2_process_woken(struct h2_loop *loop);

/* ---- socket.c ---- */
int h2_credentials(struct h2_loop *loop);
int h2_tls_begin(struct h2_connection *connection);
/* 0: done; -EAGAIN: goes on; else failed. */
int h2_tls_handshake(struct h2_connection *connection);
/* Bytes; 0: the client has closed; -EAGAIN; or failed. */
ssize_t h2_socket_read(struct h2_connection *connection, void *bytes, size_t room);
/* Sends what nghttp2 has, as far as it goes. Negative: the connection is broken. */
int h2_flush(struct h2_connection *connection);
void h2_set_events(struct h2_connection *connection, uint32_t events);
/* Nothing more is sent; what comes is dropped. Negative: the client has closed, or sends too much.
 */
void h2_socket_finish(struct h2_connection *connection);
int h2_socket_drop(struct h2_connection *connection);

/* ---- session.c ---- */
int h2_session_open(struct h2_connection *connection);
/* Bytes from the client. Negative: the connection has to end, after what is left was sent. */
int h2_session_take(struct h2_connection *connection, const uint8_t *bytes, size_t length);

/* ---- stream.c ---- */
void h2_load_release(struct h2_load *load);
struct h2_stream *h2_stream_new(struct h2_connection *connection, int32_t id);
void h2_stream_free(struct h2_stream *stream);
void h2_stream_field(struct h2_stream *stream, const char *name, size_t name_length,
                     const char *value, size_t value_length);
/* The head is there; the body is, too, when `ended`. */
void h2_stream_begin(struct h2_stream *stream, bool ended);
void h2_stream_data(struct h2_stream *stream, const void *bytes, size_t length);
void h2_stream_end(struct h2_stream *stream);
/* Possible changes since: an answer, more of it, room for more of the body. */
void h2_stream_process(struct h2_stream *stream);
/* Deadlines and rates. */
void h2_stream_check(struct h2_stream *stream, int64_t now_ms);
