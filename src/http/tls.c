// SPDX-License-Identifier: Apache-2.0
// Certificates of a server: see tls.h.

#include "http/tls.h"

#include <gnutls/x509.h>
#include <pthread.h>
#include <time.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

#define PEM_LIMIT_BYTES (1u << 20)
#define CHAIN_MAX 16

struct chain {
    gnutls_x509_crt_t certificates[CHAIN_MAX];
    unsigned count;
    gnutls_x509_privkey_t key;
};

struct http_tls {
    char *certificate_file, *key_file;
    char *client_ca; /* PEM */
    pthread_mutex_t lock;
    struct chain chain;
};

static void chain_release(struct chain *chain)
{
    for (unsigned i = 0; i < chain->count; i++)
        gnutls_x509_crt_deinit(chain->certificates[i]);
    if (chain->key)
        gnutls_x509_privkey_deinit(chain->key);
    *chain = (struct chain){0};
}

static int read_pem(const char *path, struct buffer *ret_pem, gnutls_datum_t *ret_datum,
                    struct error *error)
{
    int r = file_read(path, PEM_LIMIT_BYTES, ret_pem, error);
    if (r < 0)
        return r;
    *ret_datum = (gnutls_datum_t){.data = (void *)ret_pem->data, .size = (unsigned)ret_pem->length};
    return 0;
}

/* A key of somebody else's certificate would only be noticed by clients. */
static int check_pair(const struct chain *chain, const char *certificate_file, const char *key_file,
                      struct error *error)
{
    gnutls_certificate_credentials_t credentials;
    if (gnutls_certificate_allocate_credentials(&credentials) < 0)
        return error_set(error, -ENOMEM, "GnuTLS failed to allocate memory for %s.",
                         certificate_file);
    int r = gnutls_certificate_set_x509_key(credentials, (void *)chain->certificates,
                                            (int)chain->count, chain->key);
    gnutls_certificate_free_credentials(credentials);
    if (r < 0)
        return error_set(error, -EINVAL, "The key in %s doesn't match the certificate in %s: %s.",
                         key_file, certificate_file, gnutls_strerror(r));
    if (gnutls_x509_crt_get_expiration_time(chain->certificates[0]) < time(NULL))
        return error_set(error, -EINVAL,
                         "The certificate in %s has expired: clients would reject it.",
                         certificate_file);
    return 0;
}

static int load(const char *certificate_file, const char *key_file, struct chain *ret_chain,
                struct error *error)
{
    _cleanup_buffer_ struct buffer certificate = {0}, key = {0};
    gnutls_datum_t datum;
    int r = read_pem(certificate_file, &certificate, &datum, error);
    if (r < 0)
        return r;
    _cleanup_(chain_release) struct chain chain = {0};
    chain.count = CHAIN_MAX;
    int status =
        gnutls_x509_crt_list_import(chain.certificates, &chain.count, &datum, GNUTLS_X509_FMT_PEM,
                                    GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    if (status <= 0) {
        chain.count = 0;
        return error_set(error, -EINVAL, "%s contains no PEM certificate: %s.", certificate_file,
                         gnutls_strerror(status));
    }
    chain.count = (unsigned)status;
    r = read_pem(key_file, &key, &datum, error);
    if (r < 0)
        return r;
    if (gnutls_x509_privkey_init(&chain.key) < 0)
        return error_set(error, -ENOMEM, "GnuTLS failed to allocate memory for %s.", key_file);
    status = gnutls_x509_privkey_import2(chain.key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_memset(key.data, 0, key.length);
    if (status < 0)
        return error_set(error, -EINVAL, "%s contains no unencrypted PEM private key: %s.",
                         key_file, gnutls_strerror(status));
    r = check_pair(&chain, certificate_file, key_file, error);
    if (r < 0)
        return r;
    *ret_chain = chain;
    chain = (struct chain){0};
    return 0;
}

static int load_client_ca(struct http_tls *tls, const char *path, struct error *error)
{
    _cleanup_buffer_ struct buffer pem = {0};
    gnutls_datum_t datum;
    int r = read_pem(path, &pem, &datum, error);
    if (r < 0)
        return r;
    gnutls_x509_trust_list_t list;
    if (gnutls_x509_trust_list_init(&list, 0) < 0)
        return error_set(error, -ENOMEM, "GnuTLS failed to allocate memory for %s.", path);
    int found = gnutls_x509_trust_list_add_trust_mem(list, &datum, NULL, GNUTLS_X509_FMT_PEM, 0, 0);
    gnutls_x509_trust_list_deinit(list, 1);
    if (found <= 0)
        return error_set(error, -EINVAL, "%s contains no PEM certificate of an authority.", path);
    tls->client_ca = memory_strndup(pem.data, pem.length);
    return 0;
}

int http_tls_open(const char *certificate_file, const char *key_file, const char *client_ca_file,
                  struct http_tls **ret_tls, struct error *error)
{
    struct http_tls *tls = memory_zalloc(1, sizeof(*tls));
    pthread_mutex_init(&tls->lock, NULL);
    tls->certificate_file = memory_strdup(certificate_file);
    tls->key_file = memory_strdup(key_file);
    int r = load(certificate_file, key_file, &tls->chain, error);
    if (r == 0 && client_ca_file)
        r = load_client_ca(tls, client_ca_file, error);
    if (r < 0) {
        http_tls_free(tls);
        return r;
    }
    *ret_tls = tls;
    return 0;
}

void http_tls_free(struct http_tls *tls)
{
    if (!tls)
        return;
    chain_release(&tls->chain);
    pthread_mutex_destroy(&tls->lock);
    free(tls->certificate_file);
    free(tls->key_file);
    free(tls->client_ca);
    free(tls);
}

int http_tls_reload(struct http_tls *tls, struct error *error)
{
    struct chain fresh = {0}, old;
    int r = load(tls->certificate_file, tls->key_file, &fresh, error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&tls->lock);
    old = tls->chain;
    tls->chain = fresh;
    pthread_mutex_unlock(&tls->lock);
    chain_release(&old);
    return 0;
}

int64_t http_tls_expires(struct http_tls *tls)
{
    pthread_mutex_lock(&tls->lock);
    int64_t expires = gnutls_x509_crt_get_expiration_time(tls->chain.certificates[0]);
    pthread_mutex_unlock(&tls->lock);
    return expires;
}

const char *http_tls_client_ca(const struct http_tls *tls)
{
    return tls->client_ca;
}

/* Copies of all, since the originals may be replaced before the handshake has ended. */
static int copy_chain(const struct chain *chain, gnutls_pcert_st *copies, unsigned *ret_length,
                      gnutls_privkey_t *ret_key)
{
    unsigned length = chain->count;
    if (gnutls_pcert_import_x509_list(copies, (void *)chain->certificates, &length, 0) < 0)
        return -1;
    gnutls_privkey_t key = NULL;
    if (gnutls_privkey_init(&key) < 0 ||
        gnutls_privkey_import_x509(key, chain->key, GNUTLS_PRIVKEY_IMPORT_COPY) < 0) {
        for (unsigned i = 0; i < length; i++)
            gnutls_pcert_deinit(&copies[i]);
        if (key)
            gnutls_privkey_deinit(key);
        return -1;
    }
    *ret_length = length;
    *ret_key = key;
    return 0;
}

int http_tls_retrieve(struct http_tls *tls, gnutls_pcert_st **ret_chain, unsigned *ret_length,
                      gnutls_privkey_t *ret_key)
{
    pthread_mutex_lock(&tls->lock);
    gnutls_pcert_st *copies = gnutls_calloc(tls->chain.count, sizeof(*copies));
    int r = copies ? copy_chain(&tls->chain, copies, ret_length, ret_key) : -1;
    pthread_mutex_unlock(&tls->lock);
    if (r < 0)
        gnutls_free(copies);
    else
        *ret_chain = copies;
    return r;
}
