// SPDX-License-Identifier: Apache-2.0
// The loops: threads that accept connections, find out which protocol each speaks, and serve
// HTTP/2. See h2.h.

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "http/server/h2/internal.h"

#define EVENTS_MAX 64
#define ACCEPT_MAX 64 /* in a row */
#define READS_MAX 8   /* the same, of one connection */
#define LOOKS_MAX 64  /* at the beginning of a connection that comes in small pieces */
#define TICK_MS 100
#define IDLE_TICK_MS 1000
#define LOG_MS 10000
#define NO_FILES_US 20000
#define LINGER_MS 5000

/* ---- connections ---- */

struct h2_connection *h2_connection_open(struct h2_loop *loop, struct listener *listener, int fd,
                                         const struct sockaddr *address)
{
    struct h2_connection *connection = memory_zalloc(1, sizeof(*connection));
    connection->source = H2_SOURCE_CONNECTION;
    connection->loop = loop;
    connection->listener = listener;
    connection->fd = fd;
    connection->connection = connection_add(loop->server, fd, address);
    connection->connection->h2 = connection;
    connection->next = loop->connections;
    if (connection->next)
        connection->next->previous = connection;
    loop->connections = connection;
    return connection;
}

/* All but the socket. */
static void connection_forget(struct h2_connection *connection)
{
    struct h2_loop *loop = connection->loop;
    while (connection->streams)
        h2_stream_free(connection->streams);
    if (connection->state >= H2_OPEN)
        atomic_fetch_sub(&loop->server->h2_connections, 1);
    nghttp2_session_del(connection->session);
    if (connection->tls)
        gnutls_deinit(connection->tls);
    if (connection->next)
        connection->next->previous = connection->previous;
    *(connection->previous ? &connection->previous->next : &loop->connections) = connection->next;
    connection_remove(loop->server, connection->connection);
    buffer_release(&connection->out);
    h2_load_release(connection->load);
    free(connection);
}

void h2_connection_close(struct h2_connection *connection)
{
    int fd = connection->fd;
    epoll_ctl(connection->loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    /* The watcher uses the descriptor while the connection is in its list. */
    connection_forget(connection);
    close(fd);
}

void h2_connection_blame(struct h2_connection *connection, enum http_refusal refusal,
                         const char *problem)
{
    if (connection->problem)
        return;
    connection->problem = problem;
    connection->refusal = refusal;
}

/* Counts it, and says why, at most so often. */
static void connection_reject(struct h2_connection *connection)
{
    static atomic_int_least64_t logged_ms;
    int64_t now_ms = http_now_ms(), before_ms = atomic_load(&logged_ms);
    if (connection->rejected)
        return;
    connection->rejected = true;
    counters_refused(connection->loop->server, connection->refusal, connection->connection->peer,
                     NULL, NULL);
    if ((!before_ms || now_ms - before_ms >= LOG_MS) &&
        atomic_compare_exchange_strong(&logged_ms, &before_ms, now_ms))
        log_warning("Closed an HTTP/2 connection: %s %s.", connection->connection->peer,
                    connection->problem);
}

static void give_away(struct h2_connection *connection)
{
    struct MHD_Daemon *daemon = connection->listener->daemon;
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    int fd = connection->fd;
    epoll_ctl(connection->loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    connection_forget(connection);
    if (getpeername(fd, (struct sockaddr *)&address, &length) < 0) {
        close(fd); /* it has gone meanwhile */
        return;
    }
    MHD_add_connection(daemon, fd, (struct sockaddr *)&address, length);
}

/* ---- the first bytes ---- */

bool h2_open_session(struct h2_connection *connection)
{
    connection->load = memory_zalloc(1, sizeof(*connection->load));
    atomic_init(&connection->load->references, 1);
    connection->state = H2_OPEN;
    atomic_fetch_add(&connection->loop->server->h2_connections, 1);
    return h2_session_open(connection) == 0;
}

/* 1: HTTP/2; 0: not; -EAGAIN: can't be told yet; -ECONNRESET. */
static int look(struct h2_connection *connection)
{
    bool tls = connection->loop->credentials;
    uint8_t *bytes = connection->loop->scratch;
    ssize_t got =
        recv(connection->fd, bytes, tls ? H2_HELLO_BYTES_MAX : H2_PREFACE_BYTES, MSG_PEEK);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : -ECONNRESET;
    if (tls) {
        int offers = h2_hello_offers(bytes, (size_t)got);
        return offers == -EAGAIN && got == H2_HELLO_BYTES_MAX ? 0 : offers;
    }
    if (memcmp(bytes, H2_PREFACE, (size_t)got))
        return 0;
    return got == H2_PREFACE_BYTES ? 1 : -EAGAIN;
}

static void begin_handshake(struct h2_connection *connection)
{
    connection->state = H2_HANDSHAKE;
    if (h2_tls_begin(connection) < 0)
        h2_connection_close(connection);
}

static void on_open(struct h2_connection *connection, uint32_t events);

static void on_handshake(struct h2_connection *connection)
{
    int r = h2_tls_handshake(connection);
    if (r == -EAGAIN)
        return;
    if (r < 0 || !h2_open_session(connection))
        h2_connection_close(connection);
    else
        on_open(connection, EPOLLIN);
}

static void on_first_bytes(struct h2_connection *connection, uint32_t events)
{
    int r = look(connection);
    if (r == -EAGAIN && !(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) &&
        connection->looks++ < LOOKS_MAX)
        return;
    if (r == -ECONNRESET) {
        h2_connection_close(connection);
    } else if (r <= 0) { /* libmicrohttpd tells the client what is wrong with it */
        give_away(connection);
    } else if (connection->loop->credentials) {
        begin_handshake(connection);
        on_handshake(connection);
    } else if (!h2_open_session(connection)) {
        h2_connection_close(connection);
    } else {
        on_open(connection, EPOLLIN);
    }
}

/* ---- serving ---- */

/* Reads available bytes. Negative: the connection is over. */
static int receive(struct h2_connection *connection)
{
    for (unsigned i = 0; connection->tls || i < READS_MAX; i++) {
        ssize_t got = h2_socket_read(connection, connection->loop->scratch,
                                     sizeof(connection->loop->scratch));
        if (got == -EAGAIN)
            return 0;
        /* A client that closes its sending side has gone, as one of HTTP/1.1. */
        if (got <= 0)
            return got ? -ECONNRESET : -ESHUTDOWN;
        int r = h2_session_take(connection, connection->loop->scratch, (size_t)got);
        if (r < 0)
            return r;
        if (connection->out.length)
            return 0;
    }
    return 0;
}

/* A socket that is closed while the client still sends is reset, and the client may lose answers
 * that it hasn't read. So the client closes first, if it does so soon. */
static void linger(struct h2_connection *connection)
{
    while (connection->streams)
        h2_stream_free(connection->streams);
    nghttp2_session_del(TAKE_PTR(connection->session));
    h2_socket_finish(connection);
    connection->state = H2_LINGERING;
    connection->lingers_ms = http_now_ms();
    h2_set_events(connection, EPOLLIN | EPOLLRDHUP);
}

static bool awaits_answers(const struct h2_connection *connection)
{
    for (const struct h2_stream *at = connection->streams; at; at = at->next)
        if (!at->responded)
            return true;
    return false;
}

/* Sends what there is; closes what has ended. False: it is closed. */
static bool settle(struct h2_connection *connection, int r)
{
    /* A client that has gone may have broken the rules before: nghttp2 says so when it sends. */
    bool gone =
        (r == -ECONNRESET || r == -ESHUTDOWN) && !nghttp2_session_want_write(connection->session);
    int sent = gone ? r : h2_flush(connection);
    bool done = !nghttp2_session_want_read(connection->session) &&
                !nghttp2_session_want_write(connection->session) && !connection->out.length;
    if (connection->problem)
        connection_reject(connection);
    else if (r == -ESHUTDOWN && awaits_answers(connection))
        counters_refused(connection->loop->server, HTTP_REFUSED_HALF_CLOSED,
                         connection->connection->peer, NULL, NULL);
    if (r >= 0 && sent >= 0 && !done)
        return true;
    if (r >= 0 && sent >= 0 && !connection->problem)
        linger(connection);
    else
        h2_connection_close(connection);
    return false;
}

static void on_open(struct h2_connection *connection, uint32_t events)
{
    int r = 0;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        r = receive(connection);
    settle(connection, r);
}

static void on_connection(struct h2_connection *connection, uint32_t events)
{
    switch (connection->state) {
    case H2_LOOKING:
        on_first_bytes(connection, events);
        break;
    case H2_HANDSHAKE:
        on_handshake(connection);
        break;
    case H2_OPEN:
        on_open(connection, events);
        break;
    case H2_LINGERING:
        if (h2_socket_drop(connection) < 0)
            h2_connection_close(connection);
        break;
    }
}

/* ---- accepting ---- */

static void accept_one(struct h2_loop *loop, struct listener *listener, int fd,
                       const struct sockaddr *address, socklen_t length)
{
    int yes = 1;
    if (connection_accept(loop->server, address, length) != MHD_YES) {
        close(fd);
        return;
    }
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    struct h2_connection *connection = h2_connection_open(loop, listener, fd, address);
    /* By edges: bytes that were looked at stay where they are. */
    connection->events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd,
                  &(struct epoll_event){.events = connection->events, .data.ptr = connection}) < 0)
        h2_connection_close(connection);
}

static void on_listener(struct h2_loop *loop, struct listener *listener)
{
    for (unsigned i = 0; i < ACCEPT_MAX && !atomic_load(&loop->quiesce); i++) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof(address);
        int fd = accept4(listener->fd, (struct sockaddr *)&address, &length,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                usleep(NO_FILES_US);
            return;
        }
        accept_one(loop, listener, fd, (struct sockaddr *)&address, length);
    }
}

static void stop_accepting(struct h2_loop *loop)
{
    struct http_server *server = loop->server;
    loop->quiesced = true;
    for (size_t i = 0; i < server->listener_count; i++)
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, server->listeners[i].fd, NULL);
    for (struct h2_connection *at = loop->connections, *next; at; at = next) {
        next = at->next;
        if (at->state != H2_OPEN)
            continue;
        nghttp2_submit_goaway(at->session, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(at->session),
                              NGHTTP2_NO_ERROR, NULL, 0);
        settle(at, 0);
    }
}

/* ---- waking and time ---- */

void h2_wake(struct http_request *request)
{
    struct h2_stream *stream = request->stream;
    struct h2_loop *loop = stream->connection->loop;
    pthread_mutex_lock(&loop->lock);
    bool first = !loop->first_woken;
    if (!stream->woken) {
        stream->woken = true;
        stream->next_woken = NULL;
        stream->previous_woken = loop->last_woken;
        *(loop->last_woken ? &loop->last_woken->next_woken : &loop->first_woken) = stream;
        loop->last_woken = stream;
    }
    pthread_mutex_unlock(&loop->lock);
    if (first && !pthread_equal(pthread_self(), loop->thread))
        eventfd_write(loop->event_fd, 1);
}

static struct h2_stream *take_woken(struct h2_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct h2_stream *stream = loop->first_woken;
    if (stream) {
        loop->first_woken = stream->next_woken;
        *(loop->first_woken ? &loop->first_woken->previous_woken : &loop->last_woken) = NULL;
        stream->woken = false;
    }
    pthread_mutex_unlock(&loop->lock);
    return stream;
}

void h2_process_woken(struct h2_loop *loop)
{
    struct h2_stream *stream;
    while ((stream = take_woken(loop))) {
        h2_stream_process(stream);
        settle(stream->connection, 0);
    }
}

static void check_streams(struct h2_connection *connection, int64_t now_ms)
{
    const struct http_server_options *options = &connection->loop->server->options;
    for (struct h2_stream *at = connection->streams, *next; at; at = next) {
        next = at->next;
        h2_stream_check(at, now_ms);
    }
    if (!connection->settings_known && now_ms - connection->opened_ms > H2_SETTINGS_MS)
        nghttp2_session_terminate_session(connection->session, NGHTTP2_SETTINGS_TIMEOUT);
    bool stuck = connection->out.length && now_ms - connection->out_ms > options->stream_wait_ms;
    if (stuck)
        connection_cut(connection->connection, HTTP_REFUSED_SLOW_READER, NULL, NULL);
    settle(connection, stuck ? -ECONNRESET : 0);
}

/* Between requests, or until there is a first one. */
static void check_idle(struct h2_connection *connection, int64_t now_ms)
{
    const struct http_server_options *options = &connection->loop->server->options;
    int64_t since_ms =
        atomic_load_explicit(&connection->connection->since_ms, memory_order_relaxed);
    if (now_ms - since_ms <= options->idle_timeout_ms)
        return;
    connection_cut(connection->connection, HTTP_REFUSED_SLOW_HEAD, NULL, NULL);
    h2_connection_close(connection);
}

static void end_idle(struct h2_connection *connection, int64_t now_ms)
{
    const struct http_server_options *options = &connection->loop->server->options;
    int64_t since_ms =
        atomic_load_explicit(&connection->connection->since_ms, memory_order_relaxed);
    if (now_ms - since_ms <= options->idle_timeout_ms &&
        (connection->settings_known || now_ms - connection->opened_ms <= H2_SETTINGS_MS))
        return;
    counters_refused(connection->loop->server, HTTP_REFUSED_SLOW_HEAD, connection->connection->peer,
                     NULL, NULL);
    nghttp2_session_terminate_session(connection->session, NGHTTP2_NO_ERROR);
    settle(connection, 0);
}

static void end_lingering(struct h2_connection *connection, int64_t now_ms)
{
    if (now_ms - connection->lingers_ms > LINGER_MS)
        h2_connection_close(connection);
}

/* Returns when to look again. */
static int tick(struct h2_loop *loop)
{
    int64_t now_ms = http_now_ms();
    bool busy = false;
    for (struct h2_connection *at = loop->connections, *next; at; at = next) {
        next = at->next;
        busy |= at->stream_count > 0 || at->state == H2_LINGERING;
        if (now_ms - loop->ticked_ms < TICK_MS)
            continue;
        if (at->state == H2_LINGERING)
            end_lingering(at, now_ms);
        else if (at->state != H2_OPEN)
            check_idle(at, now_ms);
        else if (at->stream_count || at->out.length)
            check_streams(at, now_ms);
        else
            end_idle(at, now_ms);
    }
    if (now_ms - loop->ticked_ms >= TICK_MS)
        loop->ticked_ms = now_ms;
    return busy ? TICK_MS : IDLE_TICK_MS;
}

/* ---- threads ---- */

static void on_event(struct h2_loop *loop, const struct epoll_event *event)
{
    eventfd_t ignored;
    switch (*(enum h2_source *)event->data.ptr) {
    case H2_SOURCE_WAKE:
        eventfd_read(loop->event_fd, &ignored);
        break;
    case H2_SOURCE_LISTENER:
        on_listener(loop, ((struct h2_listener *)event->data.ptr)->listener);
        break;
    case H2_SOURCE_CONNECTION:
        on_connection(event->data.ptr, event->events);
        break;
    }
}

/* When all handlers have returned: whether an answer is still on its way to a client. */
static bool unsent(const struct h2_loop *loop)
{
    for (const struct h2_connection *at = loop->connections; at; at = at->next)
        if (at->state == H2_LINGERING || at->out.length)
            return http_now_ms() - loop->stopped_ms < LINGER_MS;
    return false;
}

static bool goes_on(struct h2_loop *loop)
{
    if (!atomic_load(&loop->stop))
        return true;
    if (!loop->stopped_ms)
        loop->stopped_ms = http_now_ms();
    return unsent(loop);
}

static void *loop_main(void *userdata)
{
    struct h2_loop *loop = userdata;
    struct epoll_event events[EVENTS_MAX];
    int wait_ms = IDLE_TICK_MS;
    pthread_setname_np(pthread_self(), "http2");
    while (goes_on(loop)) {
        int count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, wait_ms);
        for (int i = 0; i < count; i++)
            on_event(loop, &events[i]);
        if (atomic_load(&loop->quiesce) && !loop->quiesced)
            stop_accepting(loop);
        h2_process_woken(loop);
        wait_ms = tick(loop);
    }
    while (loop->connections)
        h2_connection_close(loop->connections);
    return NULL;
}

static int watch(struct h2_loop *loop, int fd, uint32_t events, void *source)
{
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd,
                     &(struct epoll_event){.events = events, .data.ptr = source}) < 0
               ? -errno
               : 0;
}

static int start_loop(struct http_server *server, struct h2_loop *loop)
{
    loop->source = H2_SOURCE_WAKE;
    loop->server = server;
    pthread_mutex_init(&loop->lock, NULL);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = loop->epoll_fd < 0 || loop->event_fd < 0 ? -errno : h2_credentials(loop);
    if (!r)
        r = watch(loop, loop->event_fd, EPOLLIN, loop);
    for (size_t i = 0; !r && i < server->listener_count; i++) {
        loop->listeners[i] = (struct h2_listener){H2_SOURCE_LISTENER, &server->listeners[i]};
        r = watch(loop, server->listeners[i].fd, EPOLLIN | EPOLLEXCLUSIVE, &loop->listeners[i]);
    }
    if (!r)
        r = -pthread_create(&loop->thread, NULL, loop_main, loop);
    loop->started = !r;
    return r;
}

int h2_start(struct http_server *server, struct error *error)
{
    server->loops = memory_zalloc(server->options.io_threads, sizeof(*server->loops));
    for (unsigned i = 0; i < server->options.io_threads; i++) {
        server->loop_count++;
        int r = start_loop(server, &server->loops[i]);
        if (r < 0)
            return error_set_errno(error, r, "Failed to start a thread for HTTP/2");
    }
    return 0;
}

static void wake_loop(struct h2_loop *loop)
{
    eventfd_write(loop->event_fd, 1);
}

void h2_quiesce(struct http_server *server)
{
    for (size_t i = 0; i < server->loop_count; i++) {
        atomic_store(&server->loops[i].quiesce, true);
        wake_loop(&server->loops[i]);
    }
}

void h2_stop(struct http_server *server)
{
    for (size_t i = 0; i < server->loop_count; i++) {
        struct h2_loop *loop = &server->loops[i];
        atomic_store(&loop->stop, true);
        if (loop->started) {
            wake_loop(loop);
            pthread_join(loop->thread, NULL);
        }
        if (loop->credentials)
            gnutls_certificate_free_credentials(loop->credentials);
        close(loop->epoll_fd);
        close(loop->event_fd);
        pthread_mutex_destroy(&loop->lock);
    }
    free(server->loops);
    server->loops = NULL;
    server->loop_count = 0;
}
