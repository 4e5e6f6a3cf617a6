// SPDX-License-Identifier: Apache-2.0
// Connections, as libmicrohttpd tells of them on its threads: heads are checked, bodies put into
// pipes, and answers handed over. Nothing here waits; a connection that has to is suspended.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#include "http/server/internal.h"
#include "http/tls.h"

/* A body that nobody wants is read to its end up to this size: most clients look for the answer
 * only when they have sent everything, and closing early would reset the connection before. */
#define DRAIN_BYTES (16u << 20)

int64_t http_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t http_now_ms(void)
{
    return http_now_us() / 1000;
}

void connection_set_phase(struct connection *connection, enum connection_phase phase)
{
    if (atomic_load_explicit(&connection->phase, memory_order_relaxed) == (int)phase)
        return;
    atomic_store_explicit(&connection->since_ms, http_now_ms(), memory_order_relaxed);
    atomic_store_explicit(&connection->phase, phase, memory_order_release);
}

/* ---- connections ---- */

static void set_peer(struct connection *connection, const struct sockaddr *address)
{
    connection->unix_socket = !address || address->sa_family == AF_UNIX;
    connection->local = true;
    strcpy(connection->peer, "unix");
    strcpy(connection->network, "unix");
    if (connection->unix_socket)
        return;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *ip = (const void *)address;
        inet_ntop(AF_INET, &ip->sin_addr, connection->peer, sizeof(connection->peer));
        connection->local = ntohl(ip->sin_addr.s_addr) >> 24 == 127;
    } else {
        const struct sockaddr_in6 *ip = (const void *)address;
        inet_ntop(AF_INET6, &ip->sin6_addr, connection->peer, sizeof(connection->peer));
        connection->local = IN6_IS_ADDR_LOOPBACK(&ip->sin6_addr);
    }
    rates_network(address, connection->network, sizeof(connection->network));
}

struct connection *connection_add(struct http_server *server, int fd,
                                  const struct sockaddr *address)
{
    struct connection *connection = memory_zalloc(1, sizeof(*connection));
    connection->server = server;
    connection->fd = fd;
    connection->tls = server->options.tls;
    set_peer(connection, address);
    atomic_init(&connection->phase, PHASE_HEAD);
    atomic_init(&connection->since_ms, http_now_ms());

    size_t count = atomic_fetch_add(&server->connection_count, 1) + 1;
    pthread_mutex_lock(&server->lock);
    connection->next = server->connections;
    if (connection->next)
        connection->next->previous = connection;
    server->connections = connection;
    if (count > server->options.connection_limit / 16 * 15 && !server->crowded) {
        server->crowded = true;
        pthread_cond_broadcast(&server->changed);
    }
    pthread_mutex_unlock(&server->lock);
    return connection;
}

static struct connection *connection_begin(struct http_server *server, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = info ? info->connect_fd : -1;
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return connection_add(server, fd, info ? info->client_addr : NULL);
}

void connection_remove(struct http_server *server, struct connection *connection)
{
    pthread_mutex_lock(&server->lock);
    if (connection->next)
        connection->next->previous = connection->previous;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    pthread_mutex_unlock(&server->lock);
    atomic_fetch_sub(&server->connection_count, 1);
    free(connection->query);
    free(connection);
}

void connection_notify(void *userdata, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = userdata;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = connection_begin(server, mhd);
        raw_attach(*context);
    } else if (*context) {
        raw_detach(*context);
        connection_remove(server, *context);
        *context = NULL;
    }
}

enum MHD_Result connection_accept(void *userdata, const struct sockaddr *address, socklen_t length)
{
    struct http_server *server = userdata;
    (void)length;
    if (atomic_load(&server->connection_count) < server->options.connection_limit)
        return MHD_YES;
    struct connection refused = {0};
    set_peer(&refused, address);
    counters_refused(server, HTTP_REFUSED_CONNECTIONS, refused.peer, NULL, NULL);
    return MHD_NO;
}

/* ---- requests ---- */

void request_link(struct http_request *request)
{
    struct http_server *server = request->server;
    atomic_fetch_add(&server->active_count, 1);
    pthread_mutex_lock(&server->lock);
    request->next_active = server->active;
    if (request->next_active)
        request->next_active->previous_active = request;
    else
        pthread_cond_broadcast(&server->changed); /* the watcher has something to look at */
    server->active = request;
    pthread_mutex_unlock(&server->lock);
}

static void unlink_request(struct http_request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    if (request->next_active)
        request->next_active->previous_active = request->previous_active;
    if (request->previous_active)
        request->previous_active->next_active = request->next_active;
    else
        server->active = request->next_active;
    bool last = atomic_fetch_sub(&server->active_count, 1) == 1;
    if (last && atomic_load(&server->stopping))
        pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* Without the lock: libmicrohttpd has one of its own for the answer, which it holds when it asks
 * for more of a stream. The answer is there, and nobody else takes it away. */
static enum MHD_Result send_answer(struct http_request *request)
{
    pthread_mutex_lock(&request->lock);
    request->queued = true;
    connection_set_phase(request->connection, PHASE_SENDING);
    pthread_mutex_unlock(&request->lock);
    raw_own_answer = true;
    /* Of gRPC-Web the status is in the body, and clients read it behind a 200 alone. */
    unsigned status = request->rpc.protocol ? 200 : request->status;
    enum MHD_Result r = MHD_queue_response(request->mhd, status, request->response);
    raw_own_answer = false;
    return r;
}

static enum MHD_Result begin(struct http_server *server, struct MHD_Connection *mhd,
                             const char *url, const char *method, const char *version,
                             void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = info ? info->socket_context : NULL;
    if (!connection)
        return MHD_NO;
    struct http_request *request = request_new(server, connection, mhd);
    *context = request;
    head_read(request, url, method, version);
    request->body.expected = (size_t)MAX(request->content_length, 0);
    request_link(request);
    bool refused = head_check(request) < 0;
    connection_set_phase(connection, PHASE_BODY);
    if (!refused || !request->content_length)
        return MHD_YES;
    /* A sender that waits for leave, or has much to send, is answered at once; libmicrohttpd
     * closes the connection then. */
    if (request->content_length < 0 || request->content_length > DRAIN_BYTES ||
        http_request_header(request, "Expect")) {
        return send_answer(request);
    }
    return MHD_YES;
}

bool request_await_handler(struct http_request *request)
{
    if (request->submitted)
        return false;
    request->submitted = true;
    request_ref(request);
    return true;
}

/* With the lock held: waits for the handler, which is started when there is none yet. *ret_submit:
 * do that when the lock is free again. A server that stops starts none. */
static enum MHD_Result await_handler(struct http_request *request, bool *ret_submit)
{
    if (!request->submitted && request->aborted)
        return MHD_NO;
    *ret_submit = request_await_handler(request);
    request_suspend(request, PHASE_BUSY);
    return MHD_YES;
}

void request_submit_whole(struct http_request *request)
{
    workers_submit(request->server->workers, request,
                   request->route->flags & HTTP_ROUTE_COMPUTES ? WORK_COMPUTES : WORK_COMPLETE);
}

void request_too_large(struct http_request *request)
{
    size_t limit = route_body_limit(request->route);
    request->body_error = -E2BIG;
    request->discard = true;
    pthread_cond_broadcast(&request->changed);
    if (request->submitted) {
        counters_refused(request->server, HTTP_REFUSED_TOO_LARGE, request->peer, &request->identity,
                         NULL);
        return;
    }
    pthread_mutex_unlock(&request->lock);
    request_refuse(request, HTTP_REFUSED_TOO_LARGE, 413,
                   "The body is larger than the limit of %zu bytes for %s.", limit,
                   request->route->pattern);
    pthread_mutex_lock(&request->lock);
}

static enum MHD_Result take_body(struct http_request *request, const char *data, size_t *length)
{
    enum MHD_Result r = MHD_YES;
    bool submit = false;
    connection_set_phase(request->connection, PHASE_BODY);
    pthread_mutex_lock(&request->lock);
    if (!request->discard && request->received + *length > route_body_limit(request->route))
        request_too_large(request);
    if (request->discard) {
        request->received += *length;
        request->discarded += *length;
        *length = 0;
        size_t limit = request->route ? route_body_limit(request->route) : 0;
        if (request->discarded > MAX(limit, (size_t)DRAIN_BYTES))
            r = MHD_NO;
    } else {
        size_t taken = pipe_put(&request->body, data, *length);
        request->received += taken;
        *length -= taken;
        if (taken)
            pthread_cond_broadcast(&request->changed);
        if (*length)
            r = await_handler(request, &submit);
    }
    atomic_store_explicit(&request->connection->received, request->received, memory_order_relaxed);
    pthread_mutex_unlock(&request->lock);
    if (submit)
        workers_submit(request->server->workers, request, WORK_COMING);
    return r;
}

static enum MHD_Result end_body(struct http_request *request)
{
    enum MHD_Result r = MHD_YES;
    bool submit = false;
    pthread_mutex_lock(&request->lock);
    if (!request->body_ended) {
        request->body_ended = true;
        pthread_cond_broadcast(&request->changed);
    }
    bool answered = request->answered;
    if (!answered)
        r = await_handler(request, &submit);
    pthread_mutex_unlock(&request->lock);
    if (answered)
        return send_answer(request);
    if (submit)
        request_submit_whole(request);
    return r;
}

enum MHD_Result connection_access(void *userdata, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *length, void **context)
{
    struct http_request *request = *context;
    if (!request)
        return begin(userdata, mhd, url, method, version, context);
    return *length ? take_body(request, data, length) : end_body(request);
}

void request_gone(struct http_request *request, bool complete)
{
    unlink_request(request);
    pthread_mutex_lock(&request->lock);
    request->gone = true;
    request->suspended = false;
    if (!request->body_ended && !request->body_error)
        request->body_error = -ECONNRESET;
    struct MHD_Response *response = TAKE_PTR(request->response);
    if (!request->queued || !complete) {
        atomic_store(&request->cancelled, true);
        if (!request->queued)
            request->status = 499;
    }
    counters_add(request);
    pthread_cond_broadcast(&request->changed);
    pthread_mutex_unlock(&request->lock);
    if (response)
        MHD_destroy_response(response);
    request_unref(request);
}

void connection_completed(void *userdata, struct MHD_Connection *mhd, void **context,
                          enum MHD_RequestTerminationCode code)
{
    struct http_request *request = *context;
    (void)userdata, (void)mhd;
    if (!request)
        return;
    *context = NULL;
    connection_set_phase(request->connection, PHASE_HEAD);
    request_gone(request, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}
