// SPDX-License-Identifier: Apache-2.0
// Bytes of HTTP/2 connections: TLS or none, and what a socket doesn't take at once.

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "http/server/h2/internal.h"
#include "http/tls.h"

/* ---- TLS ---- */

/* GnuTLS asks when a handshake needs the certificate. */
static int retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                    gnutls_pcert_st **ret_chain, unsigned *ret_length,
                    gnutls_ocsp_data_st **ret_ocsp, unsigned *ret_ocsp_length,
                    gnutls_privkey_t *ret_key, unsigned *ret_flags)
{
    (void)info;
    const struct h2_connection *connection = gnutls_session_get_ptr(session);
    *ret_ocsp = NULL;
    *ret_ocsp_length = 0;
    *ret_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return http_tls_retrieve(connection->loop->server->options.tls, ret_chain, ret_length, ret_key);
}

int h2_credentials(struct h2_loop *loop)
{
    const struct http_tls *tls = loop->server->options.tls;
    if (!tls)
        return 0;
    if (gnutls_certificate_allocate_credentials(&loop->credentials) < 0)
        return -ENOMEM;
    gnutls_certificate_set_retrieve_function3(loop->credentials, retrieve);
    const char *authority = http_tls_client_ca(tls);
    gnutls_datum_t pem = {.data = (void *)authority,
                          .size = authority ? (unsigned)strlen(authority) : 0};
    if (authority &&
        gnutls_certificate_set_x509_trust_mem(loop->credentials, &pem, GNUTLS_X509_FMT_PEM) < 0)
        return -EINVAL;
    return 0;
}

int h2_tls_begin(struct h2_connection *connection)
{
    struct h2_loop *loop = connection->loop;
    static const gnutls_datum_t protocol = {.data = (void *)"h2", .size = 2};
    if (gnutls_init(&connection->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK) < 0)
        return -ENOMEM;
    gnutls_session_set_ptr(connection->tls, connection);
    if (gnutls_priority_set_direct(connection->tls, "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1", NULL) < 0 ||
        gnutls_credentials_set(connection->tls, GNUTLS_CRD_CERTIFICATE, loop->credentials) < 0 ||
        gnutls_alpn_set_protocols(connection->tls, &protocol, 1, 0) < 0)
        return -EINVAL;
    if (http_tls_client_ca(loop->server->options.tls))
        gnutls_certificate_server_set_request(connection->tls, GNUTLS_CERT_REQUEST);
    gnutls_transport_set_int(connection->tls, connection->fd);
    return 0;
}

int h2_tls_handshake(struct h2_connection *connection)
{
    int r;
    do
        r = gnutls_handshake(connection->tls);
    while (r < 0 && r != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(r));
    if (r == GNUTLS_E_AGAIN) {
        h2_set_events(connection,
                      EPOLLRDHUP |
                          (gnutls_record_get_direction(connection->tls) ? EPOLLOUT : EPOLLIN));
        return -EAGAIN;
    }
    return r < 0 ? -EPROTO : 0;
}

gnutls_session_t h2_tls_session(const struct h2_connection *connection)
{
    return connection->tls;
}

/* ---- reading and writing ---- */

ssize_t h2_socket_read(struct h2_connection *connection, void *bytes, size_t room)
{
    ssize_t got;
    if (connection->tls) {
        do
            got = gnutls_record_recv(connection->tls, bytes, room);
        while (got == GNUTLS_E_INTERRUPTED);
        if (got == GNUTLS_E_PREMATURE_TERMINATION) /* without a goodbye of TLS */
            return 0;
        return got >= 0 ? got : got == GNUTLS_E_AGAIN ? -EAGAIN : -ECONNRESET;
    }
    do
        got = recv(connection->fd, bytes, room, 0);
    while (got < 0 && errno == EINTR);
    return got >= 0 ? got : errno == EAGAIN ? -EAGAIN : -ECONNRESET;
}

static ssize_t socket_write(struct h2_connection *connection, const void *bytes, size_t length)
{
    ssize_t sent;
    if (connection->tls) {
        do
            sent = gnutls_record_send(connection->tls, bytes, length);
        while (sent == GNUTLS_E_INTERRUPTED);
        return sent >= 0 ? sent : sent == GNUTLS_E_AGAIN ? -EAGAIN : -ECONNRESET;
    }
    do
        sent = send(connection->fd, bytes, length, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0 ? sent : errno == EAGAIN ? -EAGAIN : -ECONNRESET;
}

void h2_socket_finish(struct h2_connection *connection)
{
    if (connection->tls)
        gnutls_bye(connection->tls, GNUTLS_SHUT_WR); /* as far as there is room for it */
    shutdown(connection->fd, SHUT_WR);
}

int h2_socket_drop(struct h2_connection *connection)
{
    struct h2_loop *loop = connection->loop;
    ssize_t got;
    while ((got = recv(connection->fd, loop->scratch, sizeof(loop->scratch), 0)) > 0) {
        connection->lingered_bytes += (size_t)got;
        if (connection->lingered_bytes > H2_LINGER_BYTES)
            return -EMSGSIZE;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ECONNRESET;
}

void h2_set_events(struct h2_connection *connection, uint32_t events)
{
    if (connection->events == events)
        return;
    connection->events = events;
    epoll_ctl(connection->loop->epoll_fd, EPOLL_CTL_MOD, connection->fd,
              &(struct epoll_event){.events = events, .data.ptr = connection});
}

/* As much as the socket takes; what is left after it. */
static ssize_t write_all(struct h2_connection *connection, const uint8_t *bytes, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t sent = socket_write(connection, bytes + done, length - done);
        if (sent == -EAGAIN)
            break;
        if (sent < 0)
            return sent;
        done += (size_t)sent;
        connection->out_ms = http_now_ms();
    }
    return (ssize_t)done;
}

/* Bytes that an earlier call left. TLS requires the same bytes again, so nothing is added. */
static int flush_rest(struct h2_connection *connection)
{
    struct buffer *out = &connection->out;
    if (!out->length)
        return 0;
    ssize_t sent = write_all(connection, (uint8_t *)out->data + connection->out_sent,
                             out->length - connection->out_sent);
    if (sent < 0)
        return (int)sent;
    connection->out_sent += (size_t)sent;
    if (connection->out_sent < out->length)
        return -EAGAIN;
    buffer_release(out);
    *out = (struct buffer){0};
    connection->out_sent = 0;
    return 0;
}

/* Gathers frames into the loop's buffer; one that doesn't fit there is larger than any frame. */
static ssize_t gather(struct h2_connection *connection, uint8_t *bytes, const uint8_t **ret_data)
{
    size_t length = 0;
    *ret_data = bytes;
    while (length + (32u << 10) <= H2_SCRATCH_BYTES) {
        const uint8_t *data;
        ssize_t got = nghttp2_session_mem_send(connection->session, &data);
        if (got < 0)
            return -EPROTO;
        if (!got)
            break;
        if ((size_t)got > H2_SCRATCH_BYTES - length)
            return -EMSGSIZE;
        memcpy(bytes + length, data, (size_t)got);
        length += (size_t)got;
    }
    return (ssize_t)length;
}

int h2_flush(struct h2_connection *connection)
{
    int r = flush_rest(connection);
    while (!r) {
        const uint8_t *data;
        ssize_t length = gather(connection, connection->loop->scratch, &data);
        if (length <= 0) {
            r = (int)length;
            break;
        }
        connection->out_ms = http_now_ms();
        ssize_t sent = write_all(connection, data, (size_t)length);
        if (sent < 0)
            return (int)sent;
        if (sent < length) {
            buffer_add(&connection->out, data + sent, (size_t)(length - sent));
            r = -EAGAIN;
        }
    }
    if (r < 0 && r != -EAGAIN)
        return r;
    /* A client that doesn't take our frames isn't read from, either. */
    h2_set_events(connection, EPOLLRDHUP | (r == -EAGAIN ? EPOLLOUT : EPOLLIN));
    return 0;
}
