/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the headers of a request for authentication and origin. The text is untrusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/access/tokens.h"

/* "Bearer TOKEN", or "Basic" with the token as the password. Returns as tokens_check(). */
int authorize_token(struct tokens *tokens, const char *header, int64_t now,
                    struct token *ret_token);

/* The password in the value of "Basic ...": copied, with its NUL. Returns its length, or -1. */
int authorize_basic(const char *encoded, char *ret_password, size_t room);

/* A Host header names an address, localhost or one of `names`; a port may follow. */
bool authorize_host(const char *host, const char *const *names, size_t count);

/* An Accept-Encoding header takes gzip. */
bool authorize_gzip(const char *accept_encoding);
