// SPDX-License-Identifier: Apache-2.0
// The watcher: one thread that looks after clients that libmicrohttpd says nothing about. Those
// that left while their request was being worked on are noticed ten times a second; those that
// send or read too slowly, and idle ones where there is no more room, are cut off.
//
// It only ever shuts sockets down. libmicrohttpd sees the end of the stream then, and cleans up.

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/condition.h"
#include "http/server/internal.h"

#define LOOK_MS 100
#define SCAN_MS 1000
#define LOOP_MS 5000

void connection_cut(struct connection *connection, enum http_refusal reason,
                    const struct http_identity *identity, const struct http_request *request)
{
    if (atomic_exchange(&connection->shut, true))
        return;
    counters_refused(connection->server, reason, connection->peer, identity, request);
    shutdown(connection->fd, SHUT_RDWR);
}

/* The request of a connection that no handler has seen yet. */
static const struct http_request *unseen_request(const struct connection *connection)
{
    struct http_request *at = connection->server->active;
    while (at && at->connection != connection)
        at = at->next_active;
    if (!at)
        return NULL;
    pthread_mutex_lock(&at->lock);
    bool seen = at->submitted;
    pthread_mutex_unlock(&at->lock);
    return seen ? NULL : at;
}

static void shut(struct connection *connection, enum http_refusal reason)
{
    const struct http_request *request =
        reason == HTTP_REFUSED_SLOW_BODY ? unseen_request(connection) : NULL;
    connection_cut(connection, reason, request ? &request->identity : NULL, request);
}

/* libmicrohttpd writes nothing while a body comes, so we can say why we close. */
static void say_too_slow(const struct connection *connection)
{
    static const char body[] = "{\"code\":\"deadline_exceeded\",\"message\":\"The body of the "
                               "request arrived too slowly.\"}\n";
    char answer[256];
    snprintf(answer, sizeof(answer),
             "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof(body) - 1, body);
    if (!connection->tls)
        send(connection->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* How far the client has got with reading. Of unix sockets the kernel doesn't say. */
static uint64_t bytes_read(const struct connection *connection)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof(info);
    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
        return 0;
    return info.tcpi_bytes_acked;
}

static uint64_t progress(const struct connection *connection, int phase)
{
    return phase == PHASE_BODY ? atomic_load_explicit(&connection->received, memory_order_relaxed)
                               : bytes_read(connection);
}

static void check_rate(struct connection *connection, int phase, int64_t now_ms)
{
    const struct http_server_options *options = &connection->server->options;
    uint64_t bytes = progress(connection, phase);
    int64_t since_ms = atomic_load_explicit(&connection->since_ms, memory_order_relaxed);
    /* Another phase, or the same again: a request on a kept connection counts from zero. */
    if (connection->window_phase != phase || since_ms > connection->window_ms ||
        bytes < connection->window_bytes) {
        connection->window_phase = phase;
        connection->window_ms = now_ms;
        connection->window_bytes = bytes;
        return;
    }
    /* Readers are waited for as long as those of streams: programs do other things meanwhile. */
    int64_t passed_ms = now_ms - connection->window_ms;
    if (passed_ms < (phase == PHASE_BODY ? options->rate_window_ms : options->stream_wait_ms))
        return;
    uint64_t needed = (uint64_t)passed_ms * options->minimum_rate_bytes / 1000;
    if (bytes - connection->window_bytes < needed) {
        if (phase == PHASE_BODY)
            say_too_slow(connection);
        shut(connection, phase == PHASE_BODY ? HTTP_REFUSED_SLOW_BODY : HTTP_REFUSED_SLOW_READER);
        return;
    }
    connection->window_ms = now_ms;
    connection->window_bytes = bytes;
}

static void check_connections(struct http_server *server, int64_t now_ms)
{
    for (struct connection *at = server->connections; at; at = at->next) {
        int phase = atomic_load_explicit(&at->phase, memory_order_acquire);
        int64_t since_ms = atomic_load_explicit(&at->since_ms, memory_order_relaxed);
        if (phase == PHASE_HEAD) {
            /* HTTP/2's own loop comes first, and says goodbye. */
            if (now_ms - since_ms > server->options.idle_timeout_ms + (at->h2 ? LOOP_MS : 0))
                shut(at, HTTP_REFUSED_SLOW_HEAD);
        } else if (phase != PHASE_BUSY && !(phase == PHASE_SENDING && at->unix_socket)) {
            check_rate(at, phase, now_ms);
        }
    }
}

/* Connections whose client has closed its side while we wait for more. libmicrohttpd misses that
 * when the last bytes and the end come together: it waits for another event, which never comes.
 * Shutting the receiving side down makes one, and can't cut anything off that was sent. */
static void wake_ended(struct http_server *server, int64_t now_ms)
{
    size_t room = atomic_load(&server->connection_count) + 1, count = 0;
    struct pollfd *sockets = memory_zalloc(room, sizeof(*sockets));
    for (struct connection *at = server->connections; at && count < room; at = at->next) {
        int phase = atomic_load_explicit(&at->phase, memory_order_acquire);
        int64_t since_ms = atomic_load_explicit(&at->since_ms, memory_order_relaxed);
        if (!at->shut && !at->ended && !at->h2 && (phase == PHASE_HEAD || phase == PHASE_BODY) &&
            now_ms - since_ms >= SCAN_MS)
            sockets[count++] = (struct pollfd){.fd = at->fd, .events = POLLRDHUP};
    }
    if (count && poll(sockets, count, 0) > 0) {
        size_t i = 0;
        for (struct connection *at = server->connections; at && i < count; at = at->next) {
            if (at->fd != sockets[i].fd)
                continue;
            int unread = 0;
            if (sockets[i++].revents & POLLRDHUP && ioctl(at->fd, FIONREAD, &unread) == 0 &&
                !unread) {
                at->ended = true;
                shutdown(at->fd, SHUT_RD);
            }
        }
    }
    free(sockets);
}

struct idler {
    struct connection *connection;
    int64_t since_ms;
    size_t fellows; /* idle connections of the same address */
};

static int by_peer(const void *a, const void *b)
{
    const struct idler *x = a, *y = b;
    return strcmp(x->connection->peer, y->connection->peer);
}

static int by_fellows_and_time(const void *a, const void *b)
{
    const struct idler *x = a, *y = b;
    if (x->fellows != y->fellows)
        return x->fellows > y->fellows ? -1 : 1;
    return (x->since_ms > y->since_ms) - (x->since_ms < y->since_ms);
}

/* Closes a sixteenth of all: those of the address that has most idle ones, and of these the ones
 * that have been idle for longest. So one client with many can't drive out those with few. */
static void make_room(struct http_server *server)
{
    size_t limit = server->options.connection_limit, count = 0;
    if (atomic_load(&server->connection_count) <= limit / 16 * 15)
        return;
    struct idler *idle = memory_zalloc(limit + 1, sizeof(*idle));
    for (struct connection *at = server->connections; at && count <= limit; at = at->next)
        if (!at->shut && atomic_load(&at->phase) == PHASE_HEAD)
            idle[count++] = (struct idler){at, atomic_load(&at->since_ms), 0};
    if (count)
        qsort(idle, count, sizeof(*idle), by_peer);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && !by_peer(&idle[from], &idle[to]); to++)
            ;
        for (size_t i = from; i < to; i++)
            idle[i].fellows = to - from;
    }
    if (count)
        qsort(idle, count, sizeof(*idle), by_fellows_and_time);
    for (size_t i = 0; i < MIN(count, limit / 16 + 1); i++)
        shut(idle[i].connection, HTTP_REFUSED_IDLE);
    free(idle);
}

/* The sockets of requests that are ours to answer. A client that has closed its side has gone;
 * whether the other side is still open can't be known without writing. */
static bool look_for_left(struct http_server *server)
{
    bool any = false;
    for (struct http_request *at = server->active; at; at = at->next_active) {
        if (at->stream ||
            atomic_load_explicit(&at->connection->phase, memory_order_acquire) != PHASE_BUSY)
            continue; /* a loop sees by itself when its client leaves */
        any = true;
        if (http_request_cancelled(at))
            continue;
        struct pollfd socket = {.fd = at->connection->fd, .events = POLLRDHUP};
        if (poll(&socket, 1, 0) > 0 && socket.revents & (POLLRDHUP | POLLHUP | POLLERR))
            atomic_store(&at->cancelled, true);
    }
    return any || server->active;
}

void *watch_main(void *userdata)
{
    struct http_server *server = userdata;
    int64_t scanned_ms = http_now_ms();
    pthread_mutex_lock(&server->lock);
    while (!server->watcher_ends) {
        bool busy = look_for_left(server);
        int64_t now_ms = http_now_ms();
        atomic_store_explicit(&server->watched_ms, now_ms, memory_order_relaxed);
        if (now_ms - scanned_ms >= SCAN_MS) {
            scanned_ms = now_ms;
            check_connections(server, now_ms);
            wake_ended(server, now_ms);
        }
        if (server->crowded)
            make_room(server);
        server->crowded = false;
        condition_wait_for(&server->changed, &server->lock, (busy ? LOOK_MS : SCAN_MS) * 1000000ll);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}
