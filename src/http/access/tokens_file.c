// SPDX-License-Identifier: Apache-2.0
// The file of tokens: reading, adding, revoking. See tokens.h.

#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/text.h"
#include "http/access/tokens.h"

#define FILE_LIMIT_BYTES (4u << 20)
#define FIELD_COUNT 7
static const char heading[] = "# assay tokens 1: id, roles, tenant, created, expires, hash, name\n";

static const struct {
    const char *name;
    unsigned role;
} role_names[] = {
    {"ingest", HTTP_ROLE_INGEST}, {"read", HTTP_ROLE_READ}, {"admin", HTTP_ROLE_ADMIN}};

void token_list_release(struct token_list *tokens)
{
    free(tokens->list);
    *tokens = (struct token_list){0};
}

int token_roles_parse(const char *text, unsigned *ret_roles, struct error *error)
{
    unsigned roles = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < ARRAY_LENGTH(role_names) &&
               (strlen(role_names[i].name) != length || memcmp(role_names[i].name, at, length)))
            i++;
        if (i == ARRAY_LENGTH(role_names))
            return error_set(
                error, -EINVAL,
                "\"%s\" is not a role: use ingest, read, admin, or several separated by commas.",
                text);
        roles |= role_names[i].role;
        at += length;
        if (!*at)
            break;
    }
    *ret_roles = roles;
    return 0;
}

const char *token_roles_text(unsigned roles, char text[32])
{
    text[0] = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(role_names); i++)
        if (roles & role_names[i].role)
            sprintf(text + strlen(text), "%s%s", text[0] ? "," : "", role_names[i].name);
    return text;
}

static bool is_hex(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr("0123456789abcdef", text[i]) || !text[i])
            return false;
    return true;
}

static bool parse_hash(const char *text, size_t length, uint8_t hash[TOKEN_HASH_BYTES])
{
    if (length != 2 * TOKEN_HASH_BYTES || !is_hex(text, length))
        return false;
    for (size_t i = 0; i < TOKEN_HASH_BYTES; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], 0};
        hash[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

/* Words that stand in a line of the file and in a log: no white space, nothing unprintable. */
static bool is_word(const char *text, size_t length, size_t limit, bool spaces)
{
    if (!length || length >= limit || !utf8_valid(text, length) || text[0] == ' ' ||
        text[length - 1] == ' ')
        return false;
    for (size_t i = 0; i < length; i++)
        if ((uint8_t)text[i] < ' ' || text[i] == 0x7f || (text[i] == ' ' && !spaces))
            return false;
    return true;
}

static bool parse_line(const char *line, size_t length, struct token *token)
{
    const char *fields[FIELD_COUNT];
    size_t lengths[FIELD_COUNT];
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *tab = memchr(line, '\t', length);
        if (!tab != (i == FIELD_COUNT - 1))
            return false;
        fields[i] = line;
        lengths[i] = tab ? (size_t)(tab - line) : length;
        if (tab) {
            length -= lengths[i] + 1;
            line = tab + 1;
        }
    }
    char roles[32];
    if (lengths[1] >= sizeof(roles))
        return false;
    memcpy(roles, fields[1], lengths[1]);
    roles[lengths[1]] = 0;
    *token = (struct token){0};
    if (lengths[0] != 11 || fields[0][0] != 't' || !is_hex(fields[0] + 1, lengths[0] - 1) ||
        token_roles_parse(roles, &token->roles, NULL) < 0 ||
        !is_word(fields[2], lengths[2], TOKEN_TENANT_BYTES, false) ||
        !text_to_i64(fields[3], lengths[3], &token->created) ||
        !text_to_i64(fields[4], lengths[4], &token->expires) ||
        !parse_hash(fields[5], lengths[5], token->hash) ||
        !is_word(fields[6], lengths[6], TOKEN_NAME_BYTES, true))
        return false;
    memcpy(token->id, fields[0], lengths[0]);
    memcpy(token->tenant, fields[2], lengths[2]);
    memcpy(token->name, fields[6], lengths[6]);
    return true;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct token *)a)->id, ((const struct token *)b)->id);
}

int token_list_parse(const char *text, size_t length, const char *name,
                     struct token_list *ret_tokens, struct error *error)
{
    _cleanup_token_list_ struct token_list tokens = {0};
    size_t capacity = 0;
    unsigned number = 0;
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        size_t line = newline ? (size_t)(newline - text) - at : length - at;
        const char *start = text + at;
        at += line + 1;
        number++;
        if (!line || start[0] == '#')
            continue;
        if (tokens.count == TOKENS_MAX)
            return error_set(error, -E2BIG, "%s has more than %d tokens: revoke some.", name,
                             TOKENS_MAX);
        array_reserve(tokens.list, capacity, tokens.count + 1);
        if (!parse_line(start, line, &tokens.list[tokens.count]))
            return error_set(error, -EBADMSG,
                             "%s has an invalid token in line %u: restore the file, or remove the "
                             "line and create the token again.",
                             name, number);
        tokens.count++;
    }
    if (tokens.count)
        qsort(tokens.list, tokens.count, sizeof(*tokens.list), by_id);
    for (size_t i = 1; i < tokens.count; i++)
        if (!by_id(&tokens.list[i - 1], &tokens.list[i]))
            return error_set(error, -EBADMSG, "%s has the token %s twice: remove one of the lines.",
                             name, tokens.list[i].id);
    *ret_tokens = tokens;
    tokens = (struct token_list){0};
    return 0;
}

int token_list_read(const char *path, struct token_list *ret_tokens, struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0};
    int r = file_read(path, FILE_LIMIT_BYTES, &content, error);
    return r < 0 ? r : token_list_parse(content.data, content.length, path, ret_tokens, error);
}

static int write_list(const char *path, const struct token_list *tokens, struct error *error)
{
    _cleanup_buffer_ struct buffer out = {0};
    buffer_add_text(&out, heading);
    for (size_t i = 0; i < tokens->count; i++) {
        const struct token *token = &tokens->list[i];
        char roles[32];
        buffer_printf(&out, "%s\t%s\t%s\t%lld\t%lld\t", token->id,
                      token_roles_text(token->roles, roles), token->tenant,
                      (long long)token->created, (long long)token->expires);
        buffer_add_hex(&out, token->hash, TOKEN_HASH_BYTES);
        buffer_printf(&out, "\t%s\n", token->name);
    }
    mode_t before = umask(0077); /* hashes are of no use to anybody; names and tenants are */
    int r = file_write_atomic(path, out.data, out.length, error);
    umask(before);
    return r;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* The lock is on a file beside the tokens: the file itself is replaced at each change. */
static int lock_file(const char *path, int *ret_fd, struct error *error)
{
    char lock[4096];
    if (snprintf(lock, sizeof(lock), "%s.lock", path) >= (int)sizeof(lock))
        return error_set(error, -ENAMETOOLONG, "The name %s is too long.", path);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, -errno, "Failed to create %s; %s is unchanged", lock, path);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR) {
            int r = error_set_errno(error, -errno, "Failed to lock %s", lock);
            close(fd);
            return r;
        }
    *ret_fd = fd;
    return 0;
}

static int read_or_empty(const char *path, struct token_list *ret_tokens, struct error *error)
{
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    return token_list_read(path, ret_tokens, error);
}

/* 43 characters that need no escaping anywhere. */
static void encode_secret(const uint8_t secret[32], char text[44])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned bits = 0, held = 0;
    char *out = text;
    for (size_t i = 0; i < 32; i++) {
        held = held << 8 | secret[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *out++ = digits[held >> (bits - 6) & 63];
    }
    *out++ = digits[held << (6 - bits) & 63];
    *out = 0;
}

static int make_token(struct token *token, char text[TOKEN_TEXT_BYTES], struct error *error)
{
    uint8_t random[5 + 32];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return error_set_errno(error, -errno, "getrandom() failed");
    token->id[0] = 't';
    hex_encode(random, 5, token->id + 1);
    char secret[44];
    encode_secret(random + 5, secret);
    snprintf(text, TOKEN_TEXT_BYTES, "assay_%s_%s", token->id, secret);
    explicit_bzero(random, sizeof(random));
    explicit_bzero(secret, sizeof(secret));
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), token->hash) < 0)
        return error_set(error, -EIO, "GnuTLS failed to compute SHA-256.");
    return 0;
}

int token_create(const char *path, const char *name, unsigned roles, const char *tenant,
                 int64_t expires, char ret_text[TOKEN_TEXT_BYTES], struct token *ret_token,
                 struct error *error)
{
    struct token token = {.roles = roles, .created = time(NULL), .expires = expires};
    tenant = tenant ? tenant : TOKEN_DEFAULT_TENANT;
    if (!is_word(name, strlen(name), sizeof(token.name), true))
        return error_set(error, -EINVAL,
                         "\"%s\" is not a valid token name: it must have 1 to %zu bytes and no "
                         "control characters.",
                         name, sizeof(token.name) - 1);
    if (!is_word(tenant, strlen(tenant), sizeof(token.tenant), false))
        return error_set(error, -EINVAL,
                         "\"%s\" is not a valid tenant: it must have 1 to %zu bytes and no spaces.",
                         tenant, sizeof(token.tenant) - 1);
    if (!roles)
        return error_set(error, -EINVAL, "A token requires at least one role.");
    strcpy(token.name, name);
    strcpy(token.tenant, tenant);

    _cleanup_(close_fd) int lock = -1;
    _cleanup_token_list_ struct token_list tokens = {0};
    char text[TOKEN_TEXT_BYTES];
    int r = lock_file(path, &lock, error);
    if (r < 0 || (r = read_or_empty(path, &tokens, error)) < 0 ||
        (r = make_token(&token, text, error)) < 0)
        return r;
    if (tokens.count == TOKENS_MAX)
        return error_set(error, -E2BIG, "%s already has %d tokens: revoke some.", path, TOKENS_MAX);
    tokens.list = memory_resize(tokens.list, tokens.count + 1, sizeof(*tokens.list));
    tokens.list[tokens.count++] = token;
    r = write_list(path, &tokens, error);
    if (r == 0) {
        memcpy(ret_text, text, sizeof(text));
        *ret_token = token;
    }
    explicit_bzero(text, sizeof(text));
    return r;
}

static int find_token(const struct token_list *tokens, const char *path, const char *id_or_name,
                      size_t *ret_at, struct error *error)
{
    size_t found = tokens->count, same = 0;
    for (size_t i = 0; i < tokens->count; i++) {
        if (!strcmp(tokens->list[i].id, id_or_name)) {
            *ret_at = i;
            return 0;
        }
        if (!strcmp(tokens->list[i].name, id_or_name)) {
            found = i;
            same++;
        }
    }
    if (!same)
        return error_set(error, -ENOENT, "%s has no token with the id or name %s.", path,
                         id_or_name);
    if (same > 1)
        return error_set(error, -EINVAL, "%zu tokens in %s have the name %s: use the id.", same,
                         path, id_or_name);
    *ret_at = found;
    return 0;
}

int token_revoke(const char *path, const char *id_or_name, struct error *error)
{
    _cleanup_(close_fd) int lock = -1;
    _cleanup_token_list_ struct token_list tokens = {0};
    size_t at = 0;
    int r = lock_file(path, &lock, error);
    if (r < 0 || (r = token_list_read(path, &tokens, error)) < 0 ||
        (r = find_token(&tokens, path, id_or_name, &at, error)) < 0)
        return r;
    tokens.count--;
    memmove(&tokens.list[at], &tokens.list[at + 1], (tokens.count - at) * sizeof(*tokens.list));
    return write_list(path, &tokens, error);
}
