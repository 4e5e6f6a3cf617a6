/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses to listen on: "127.0.0.1:4040", "[::1]:4040", "localhost:0", ":4040" (every address),
 * "unix:/run/assay.sock".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"

#define LISTEN_TEXT_BYTES 128

struct listen_address {
    struct sockaddr_storage address;
    socklen_t length;
    bool local; /* loopback or a unix socket: only this machine can reach it */
};

/* One text may stand for several addresses (localhost is 127.0.0.1 and ::1). At most `room` are
 * given; *ret_count is how many. */
int listen_parse(const char *text, struct listen_address *ret_addresses, size_t room,
                 size_t *ret_count, struct error *error);

/* A listening socket. A unix socket of a server that is gone is replaced, one of a server that
 * answers is an error; it gets `unix_mode`. */
int listen_open(const struct listen_address *address, mode_t unix_mode, int *ret_fd,
                struct error *error);

/* "127.0.0.1:4040", "[::1]:4040" or "unix:/path"; what the socket is bound to really, when `fd` is
 * not negative. */
const char *listen_text(const struct listen_address *address, int fd, char text[LISTEN_TEXT_BYTES]);

/* Whether serving there is safe: an address beyond this machine wants TLS and tokens. Otherwise
 * -EPERM, and a sentence that says what is missing and what to do. */
int listen_check_exposure(const struct listen_address *addresses, size_t count, bool tls,
                          bool tokens, bool insecure, struct error *error);
