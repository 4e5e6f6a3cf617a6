// SPDX-License-Identifier: Apache-2.0
// Checking tokens: see tokens.h.

#include "http/access/tokens.h"

#include <gnutls/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory.h"

struct tokens {
    char *path;
    pthread_rwlock_t lock;
    struct token_list list; /* by id */
    struct stat seen;
    atomic_int_least64_t looked; /* second in which the file was last looked at */
};

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int tokens_reload(struct tokens *tokens, struct error *error)
{
    struct stat now;
    if (stat(tokens->path, &now) < 0)
        return error_set_errno(error, -errno, "%s cannot be read", tokens->path);
    pthread_rwlock_rdlock(&tokens->lock);
    bool same = same_file(&now, &tokens->seen);
    pthread_rwlock_unlock(&tokens->lock);
    if (same)
        return 0;
    struct token_list fresh = {0}, old;
    int r = token_list_read(tokens->path, &fresh, error);
    if (r < 0)
        return r;
    pthread_rwlock_wrlock(&tokens->lock);
    old = tokens->list;
    tokens->list = fresh;
    tokens->seen = now;
    pthread_rwlock_unlock(&tokens->lock);
    token_list_release(&old);
    return 0;
}

int tokens_open(const char *path, struct tokens **ret_tokens, struct error *error)
{
    struct tokens *tokens = memory_zalloc(1, sizeof(*tokens));
    tokens->path = memory_strdup(path);
    pthread_rwlock_init(&tokens->lock, NULL);
    int r = tokens_reload(tokens, error);
    if (r < 0) {
        tokens_free(tokens);
        return r;
    }
    *ret_tokens = tokens;
    return 0;
}

void tokens_free(struct tokens *tokens)
{
    if (!tokens)
        return;
    token_list_release(&tokens->list);
    pthread_rwlock_destroy(&tokens->lock);
    free(tokens->path);
    free(tokens);
}

/* A file that was spoilt or removed must not let revoked tokens in for long, nor lock everybody out
 * at once: what was read last holds until the server is told otherwise. */
static void look_again(struct tokens *tokens, int64_t now)
{
    int64_t before = atomic_load(&tokens->looked);
    if (before == now || !atomic_compare_exchange_strong(&tokens->looked, &before, now))
        return;
    struct error error = {0};
    if (tokens_reload(tokens, &error) < 0)
        log_debug("%s", error.text);
}

static bool same_hash(const uint8_t *a, const uint8_t *b)
{
    return gnutls_memcmp(a, b, TOKEN_HASH_BYTES) == 0;
}

static const struct token *find(const struct tokens *tokens, const char *id)
{
    size_t low = 0, high = tokens->list.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(tokens->list.list[middle].id, id);
        if (!order)
            return &tokens->list.list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int tokens_check(struct tokens *tokens, const char *text, size_t length, int64_t now,
                 struct token *ret_token)
{
    static const char prefix[] = "assay_";
    size_t prefix_length = sizeof(prefix) - 1, id_length = 11;
    while (length && is_space(text[length - 1]))
        length--;
    while (length && is_space(text[0])) {
        text++;
        length--;
    }
    if (length >= TOKEN_TEXT_BYTES || length <= prefix_length + id_length ||
        memcmp(text, prefix, prefix_length))
        return -EACCES;
    char id[TOKEN_ID_BYTES] = {0};
    memcpy(id, text + prefix_length, id_length);
    uint8_t hash[TOKEN_HASH_BYTES];
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, length, hash) < 0)
        return -EACCES;
    look_again(tokens, now);

    int r = -EACCES;
    pthread_rwlock_rdlock(&tokens->lock);
    const struct token *token = find(tokens, id);
    if (token && same_hash(token->hash, hash)) {
        r = token->expires && token->expires <= now ? -ETIME : 0;
        if (r == 0)
            *ret_token = *token;
    }
    pthread_rwlock_unlock(&tokens->lock);
    return r;
}
