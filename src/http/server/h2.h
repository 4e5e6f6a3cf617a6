/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 beside libmicrohttpd. Loops, threads of ours, accept all connections and look at their
 * first bytes without taking them: HTTP/2's preface, or a TLS handshake that offers "h2", stays
 * here; everything else goes to libmicrohttpd as if it had accepted it. Requests of both are the
 * same struct, and are checked, run and counted by the same code.
 */
#pragma once

#include <gnutls/gnutls.h>

#include "base/error.h"

struct http_server;
struct http_request;
struct h2_connection;
struct h2_load;

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
