/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bearer tokens with roles and a tenant. A token is 256 random bits, so a plain SHA-256 of it is
 * all that has to be kept: it can't be guessed from its hash, and nothing else is in the file.
 *
 * The file is text, one token per line (docs/formats/tokens.md). It is replaced as a whole under a
 * lock, and read again when it has changed, so that a revoked token ends within a second.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Roles of a token. Admin includes all. */
enum http_role { HTTP_ROLE_INGEST = 1, HTTP_ROLE_READ = 2, HTTP_ROLE_ADMIN = 4 };
#define HTTP_ROLE_ANY 0u /* no token needed */

#define TOKEN_ID_BYTES 13     /* "t" and 10 hexadecimal digits, with room */
#define TOKEN_NAME_BYTES 65   /* with its NUL */
#define TOKEN_TENANT_BYTES 65 /* with its NUL */
#define TOKEN_TEXT_BYTES 96   /* "assay_ID_SECRET", with its NUL */
#define TOKEN_HASH_BYTES 32
#define TOKENS_MAX 10000
#define TOKEN_DEFAULT_TENANT "anonymous"

struct token {
    char id[TOKEN_ID_BYTES];
    char name[TOKEN_NAME_BYTES];
    char tenant[TOKEN_TENANT_BYTES];
    unsigned roles;
    int64_t created, expires; /* seconds since 1970; expires 0: never */
    uint8_t hash[TOKEN_HASH_BYTES];
};

struct token_list {
    struct token *list;
    size_t count;
};
void token_list_release(struct token_list *tokens);
#define _cleanup_token_list_ __attribute__((cleanup(token_list_release)))

/* ---- the file: what `assay token` does ---- */

/* "ingest", "read", "admin" or several with commas; -EINVAL for anything else. */
int token_roles_parse(const char *text, unsigned *ret_roles, struct error *error);
/* "ingest,read" */
const char *token_roles_text(unsigned roles, char text[32]);

/* Adds a token to the file, which is made (mode 0600) where there is none. `expires` 0 is never.
 * The token itself is shown this once. */
int token_create(const char *path, const char *name, unsigned roles, const char *tenant,
                 int64_t expires, char ret_text[TOKEN_TEXT_BYTES], struct token *ret_token,
                 struct error *error);
int token_list_read(const char *path, struct token_list *ret_tokens, struct error *error);

/* By id, or by a name that only one token has. */
int token_revoke(const char *path, const char *id_or_name, struct error *error);

/* The file's text. `name` is for messages. */
int token_list_parse(const char *text, size_t length, const char *name,
                     struct token_list *ret_tokens, struct error *error);

/* ---- checking: what a server does ---- */

struct tokens;

int tokens_open(const char *path, struct tokens **ret_tokens, struct error *error);
void tokens_free(struct tokens *tokens);

/* Looks a token up, with or without white space around it. `now` is in seconds since 1970. Takes
 * the same time whichever byte is wrong. Any thread may call it. Returns 0, -EACCES (no such token,
 * or revoked) or -ETIME (expired). */
int tokens_check(struct tokens *tokens, const char *text, size_t length, int64_t now,
                 struct token *ret_token);

/* Reads the file if it has changed; a file that can't be read leaves what there is, and gives an
 * error. tokens_check() does this once a second by itself. */
int tokens_reload(struct tokens *tokens, struct error *error);
