// SPDX-License-Identifier: Apache-2.0
// Starting and stopping the HTTP server: see server.h. Each address has a daemon of libmicrohttpd
// with threads of its own; workers, limits and counters are shared, and so are the loops of HTTP/2.

#include "http/server/server.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/condition.h"
#include "base/log.h"
#include "http/server/internal.h"
#include "http/tls.h"

#define SPARE_FILES 256
#define FAILURES_MAX 20 /* wrong tokens of one network in: */
#define FAILURES_MS 60000

/* Bare LF ends a line, as it does for framing.c, which judges all of a request first. */
#if MHD_VERSION < 0x01000000
/* From 1 on, a request without Host gets the head of its answer twice. raw.c is strict. */
#define STRICT MHD_OPTION_STRICT_FOR_CLIENT, 0
#else
#define STRICT MHD_OPTION_CLIENT_DISCIPLINE_LVL, 0
#endif
#define ALIVE_MS 10000

static void set_size(size_t *value, size_t standard)
{
    if (!*value)
        *value = standard;
}

static void set_number(unsigned *value, unsigned standard)
{
    if (!*value)
        *value = standard;
}

/* Each connection takes a file; the soft limit is often 1,024 only for old programs' sake. */
static size_t possible_connections(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 512;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    size_t files = limit.rlim_cur > 1u << 20 ? 1u << 20 : (size_t)limit.rlim_cur;
    return files > 2 * SPARE_FILES ? files - SPARE_FILES : files / 2;
}

static void set_defaults(struct http_server_options *options)
{
    set_number(&options->io_threads, 2);
    set_number(&options->workers, 32);
    set_size(&options->connection_limit, 20000);
    options->connection_limit = MIN(options->connection_limit, possible_connections());
    set_size(&options->request_limit, 2048);
    set_size(&options->head_limit_bytes, 16u << 10);
    set_size(&options->body_buffer_bytes, 256u << 10);
    set_size(&options->buffer_limit_bytes, 64u << 20);
    set_size(&options->answer_limit_bytes, 64u << 20);
    set_number(&options->idle_timeout_ms, 75000);
    set_number(&options->rate_window_ms, 10000);
    set_size(&options->minimum_rate_bytes, 1024);
    set_size(&options->stream_limit, 64);
    set_number(&options->stream_wait_ms, 60000);
    set_size(&options->stream_rate_bytes, 64u << 10);
    set_size(&options->compress_from_bytes, 1024);
    if (!options->unix_mode)
        options->unix_mode = 0600;
    if (options->request_burst <= 0)
        options->request_burst = 10 * options->requests_per_second;
}

static void log_daemon(void *userdata, const char *format, va_list args)
{
    char text[512];
    (void)userdata;
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = 0;
    log_debug("libmicrohttpd: %s", text);
}

/* GnuTLS asks when a handshake needs the certificate. */
static int retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                    gnutls_pcert_st **ret_chain, unsigned *ret_length,
                    gnutls_ocsp_data_st **ret_ocsp, unsigned *ret_ocsp_length,
                    gnutls_privkey_t *ret_key, unsigned *ret_flags)
{
    (void)info;
    struct MHD_Connection *mhd = gnutls_session_get_ptr(session);
    const union MHD_ConnectionInfo *found =
        mhd ? MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT) : NULL;
    const struct connection *connection = found ? found->socket_context : NULL;
    if (!connection)
        return -1;
    *ret_ocsp = NULL;
    *ret_ocsp_length = 0;
    *ret_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return http_tls_retrieve(connection->server->options.tls, ret_chain, ret_length, ret_key);
}

static int start_daemon(struct http_server *server, struct listener *listener, struct error *error)
{
    const struct http_server_options *options = &server->options;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem items[16];
    size_t count = 0;
    if (options->io_threads > 1)
        items[count++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE,
                                                 (intptr_t)options->io_threads, NULL};
    if (options->connections_per_peer)
        items[count++] = (struct MHD_OptionItem){MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                                                 (intptr_t)options->connections_per_peer, NULL};
    if (options->tls) {
        flags |= MHD_USE_TLS;
        items[count++] =
            (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)retrieve};
        items[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
                                                 (void *)"NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"};
        if (http_tls_client_ca(options->tls))
            items[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0,
                                                     (void *)http_tls_client_ca(options->tls)};
    }
    if (options->http2) /* connections come from the loops: see h2.h */
        flags |= MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC;
    else
        items[count++] = (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, listener->fd, NULL};
    items[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    /* libmicrohttpd splits its limit among threads; ours is in connection_accept. Its timeout is
     * for what the watcher can't see. */
    listener->daemon = MHD_start_daemon(
        flags, 0, connection_accept, server, connection_access, server, MHD_OPTION_EXTERNAL_LOGGER,
        log_daemon, NULL, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(options->connection_limit + 64) * options->io_threads,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->head_limit_bytes,
        MHD_OPTION_CONNECTION_TIMEOUT,
        (options->idle_timeout_ms + MAX(options->rate_window_ms, options->stream_wait_ms)) / 1000 +
            30,
        MHD_OPTION_NOTIFY_CONNECTION, connection_notify, server, MHD_OPTION_NOTIFY_COMPLETED,
        connection_completed, server, MHD_OPTION_UNESCAPE_CALLBACK, head_unescape, server,
        MHD_OPTION_URI_LOG_CALLBACK, raw_target, server, STRICT, MHD_OPTION_ARRAY, items,
        MHD_OPTION_END);
    if (!listener->daemon)
        return error_set(error, -EIO,
                         "libmicrohttpd failed to serve on %s: too little memory, too many threads "
                         "or open files.",
                         listener->text);
    return 0;
}

static int open_listeners(struct http_server *server, struct error *error)
{
    const struct http_server_options *options = &server->options;
    struct listen_address addresses[HTTP_LISTEN_MAX];
    size_t count = 0;
    for (size_t i = 0; i < options->listen_count; i++) {
        size_t found = 0;
        int r = listen_parse(options->listen[i], addresses + count, HTTP_LISTEN_MAX - count, &found,
                             error);
        if (r < 0)
            return r;
        count += found;
    }
    if (!count)
        return error_set(error, -EINVAL, "No listen address is configured.");
    int r = listen_check_exposure(addresses, count, options->tls, options->tokens,
                                  options->insecure, error);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct listener *listener = &server->listeners[server->listener_count];
        listener->address = addresses[i];
        r = listen_open(&addresses[i], options->unix_mode, &listener->fd, error);
        if (r == 0) {
            server->listener_count++;
            listen_text(&addresses[i], listener->fd, listener->text);
        } else if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL) {
            /* localhost is two addresses, and machines without IPv6 have one of them. */
            if (server->listener_count || i + 1 < count)
                r = 0;
        }
    }
    return r;
}

static void init_locks(struct http_server *server)
{
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
}

static int start_threads(struct http_server *server, struct error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the main thread */
    int r = -pthread_create(&server->watcher, NULL, watch_main, server);
    if (r < 0)
        error_set_errno(error, r, "Failed to start a thread");
    else
        server->watching = true;
    for (size_t i = 0; r == 0 && i < server->listener_count; i++)
        r = start_daemon(server, &server->listeners[i], error);
    if (r == 0 && server->options.http2)
        r = h2_start(server, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

int http_server_start(const struct http_server_options *options, struct http_server **ret_server,
                      struct error *error)
{
    struct http_server *server = memory_zalloc(1, sizeof(*server));
    server->options = *options;
    set_defaults(&server->options);
    server->budget.limit = server->options.buffer_limit_bytes;
    server->counters = memory_zalloc(options->route_count + 1, sizeof(*server->counters));
    server->workers = workers_new(server->options.workers, request_run);
    if (options->requests_per_second > 0)
        server->rates =
            rates_new(server->options.requests_per_second, server->options.request_burst);
    if (options->tokens)
        server->failures = rates_new_windows(FAILURES_MAX, FAILURES_MS);
    init_locks(server);
    atomic_init(&server->watched_ms, http_now_ms());
    int r = open_listeners(server, error);
    if (r == 0)
        r = start_threads(server, error);
    if (r < 0) {
        http_server_stop(server, 0);
        return r;
    }
    *ret_server = server;
    return 0;
}

/* Waits until no request is left, or the time is up. */
static void wait_for_requests(struct http_server *server, unsigned grace_ms)
{
    int64_t until_ns = monotonic_ns() + grace_ms * 1000000ll;
    pthread_mutex_lock(&server->lock);
    while (server->active &&
           condition_wait_until(&server->changed, &server->lock, until_ns) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&server->lock);
}

static void abort_requests(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    for (struct http_request *at = server->active; at; at = at->next_active)
        request_abort(at);
    pthread_mutex_unlock(&server->lock);
}

static void stop_watcher(struct http_server *server)
{
    if (!server->watching)
        return;
    pthread_mutex_lock(&server->lock);
    server->watcher_ends = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->watcher, NULL);
}

/* Nobody gets in any more. The descriptors stay open until the library's threads have ended: they
 * take them out of their sets on their own time, and end the process when there is nothing. */
static void close_listeners(struct http_server *server)
{
    h2_quiesce(server);
    for (size_t i = 0; i < server->listener_count; i++) {
        struct listener *listener = &server->listeners[i];
        if (listener->daemon && !server->options.http2)
            MHD_quiesce_daemon(listener->daemon);
        shutdown(listener->fd, SHUT_RDWR);
        if (listener->address.address.ss_family == AF_UNIX)
            unlink(((struct sockaddr_un *)&listener->address.address)->sun_path);
    }
}

void http_server_stop(struct http_server *server, unsigned grace_ms)
{
    if (!server)
        return;
    atomic_store(&server->stopping, true);
    close_listeners(server);
    wait_for_requests(server, grace_ms);
    abort_requests(server);
    workers_free(server->workers); /* now every handler has ended, and every answer is there */
    wait_for_requests(server, MIN(grace_ms, 1000u));
    stop_watcher(server);
    h2_stop(server);
    for (size_t i = 0; i < server->listener_count; i++) {
        if (server->listeners[i].daemon)
            MHD_stop_daemon(server->listeners[i].daemon);
        close(server->listeners[i].fd);
    }
    rates_free(server->rates);
    rates_free(server->failures);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->changed);
    free(server->counters);
    free(server);
}

bool http_server_alive(const struct http_server *server)
{
    int64_t watched_ms = atomic_load_explicit(&server->watched_ms, memory_order_relaxed);
    return http_now_ms() - watched_ms < ALIVE_MS;
}

size_t http_server_address_count(const struct http_server *server)
{
    return server->listener_count;
}

const char *http_server_address(const struct http_server *server, size_t index)
{
    return server->listeners[index].text;
}
