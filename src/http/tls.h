/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's certificate and key, which can be read again while it serves: connections that are
 * being made keep what they began with. Any thread may call any of these.
 */
#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdint.h>

#include "base/error.h"

struct http_tls;

/* PEM files; the certificate's file has its chain after it. `client_ca_file` may be NULL: then
 * clients are not asked for certificates, otherwise each must have one that this authority
 * signed. */
int http_tls_open(const char *certificate_file, const char *key_file, const char *client_ca_file,
                  struct http_tls **ret_tls, struct error *error);
void http_tls_free(struct http_tls *tls);

/* Reads certificate and key again. On failure the old ones stay. */
int http_tls_reload(struct http_tls *tls, struct error *error);

/* When the certificate ends, in seconds since 1970. */
int64_t http_tls_expires(struct http_tls *tls);

/* PEM text of the authority for clients, or NULL. */
const char *http_tls_client_ca(const struct http_tls *tls);

/* Sets the certificate of a handshake; GnuTLS frees it. Returns 0 or -1, as GnuTLS requires. */
int http_tls_retrieve(struct http_tls *tls, gnutls_pcert_st **ret_chain, unsigned *ret_length,
                      gnutls_privkey_t *ret_key);
