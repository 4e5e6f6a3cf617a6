// SPDX-License-Identifier: Apache-2.0
// Lists and contents of source files on disk: see sources.h. Contents aren't synced: one that a
// crash cut short has another hash, is thrown away when it is read, and is sent again.

#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/memory.h"
#include "symbol/sources/internal.h"

#define TOTAL_BYTES_DEFAULT (5ull << 30)
#define LEVEL 6 /* of compression: text is written once and read seldom */
#define PIECE_BYTES (64u << 10)
#define USE_S 3600 /* use is noted once an hour */

/* ---- the directory ---- */

void source_store_path(const struct source_store *store, const char *tenant, const char *name,
                       const char *rest, struct buffer *ret_path)
{
    ret_path->length = 0;
    buffer_printf(ret_path, "%s/", store->directory);
    buffer_add_hex(ret_path, tenant, strlen(tenant));
    buffer_printf(ret_path, "%s%.64s%s%.256s", *name ? "/" : "", name, *rest ? "/" : "", rest);
    buffer_text(ret_path);
}

static void list_path(const struct source_store *store, const char *tenant, const char *key,
                      struct buffer *ret_path)
{
    source_store_path(store, tenant, SOURCE_BUILDS, key, ret_path);
}

static void content_path(const struct source_store *store, const char *tenant, const char *hash,
                         struct buffer *ret_path)
{
    char first[3] = {hash[0], hash[1], '\0'};
    source_store_path(store, tenant, first, hash + 2, ret_path);
}

/* The directories that a path of a tenant needs. */
static int make_folders(const struct source_store *store, const char *tenant, const char *name,
                        struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    mkdir(store->directory, 0700);
    source_store_path(store, tenant, "", "", &path);
    int r = mkdir(buffer_text(&path), 0700) < 0 && errno != EEXIST ? -errno : 0;
    if (!r) {
        source_store_path(store, tenant, name, "", &path);
        r = mkdir(buffer_text(&path), 0700) < 0 && errno != EEXIST ? -errno : 0;
    }
    return r < 0 ? error_set_errno(error, r, "Failed to create %s", buffer_text(&path)) : 0;
}

/* The directory is made when the first file comes: a disk that is full or read-only must not keep
 * the server from serving existing files. */
struct source_store *source_store_open(const struct source_store_options *options)
{
    struct source_store *store = memory_zalloc(1, sizeof(*store));
    store->options = *options;
    store->directory = memory_strdup(options->directory);
    store->options.directory = store->directory;
    if (!store->options.file_bytes_max)
        store->options.file_bytes_max = SOURCE_FILE_BYTES_DEFAULT;
    if (!store->options.total_bytes_max)
        store->options.total_bytes_max = TOTAL_BYTES_DEFAULT;
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

void source_store_close(struct source_store *store)
{
    if (!store)
        return;
    pthread_mutex_destroy(&store->lock);
    free(store->directory);
    free(store);
}

/* ---- lists ---- */

static bool is_key(const char *key)
{
    size_t length = strlen(key);
    return length >= 4 && length <= 256 && strspn(key, "0123456789abcdef") == length;
}

int source_store_list(struct source_store *store, const char *tenant, const char *key,
                      struct source_list *ret_list, struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0}, text = {0};
    _cleanup_source_list_ struct source_list list = {0};
    struct stat status;
    if (!is_key(key))
        return error_set(error, -EINVAL, "\"%.100s\" is not a build ID.", key);
    list_path(store, tenant, key, &path);
    if (stat(buffer_text(&path), &status) < 0)
        return error_set(error, -ENOENT, "No sources of the build %.120s were uploaded.", key);
    int r = file_read(buffer_text(&path), SOURCE_LIST_BYTES_MAX, &text, error);
    if (!r)
        r = source_list_read(&list, text.data, text.length, error);
    if (r < 0)
        return r;
    source_list_sort(&list); /* as it was written; who changed it since is not relied upon */
    if (time(NULL) - status.st_mtime > USE_S)
        utimensat(AT_FDCWD, buffer_text(&path), NULL, 0);
    *ret_list = list;
    list = (struct source_list){0};
    return 0;
}

static int by_hash(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* Hashes of a list without contents, each once. */
static void find_missing(struct source_store *store, const char *tenant,
                         const struct source_list *list, struct buffer *ret_missing)
{
    _cleanup_buffer_ struct buffer path = {0};
    char(*hashes)[SOURCE_HASH_DIGITS + 1] = memory_zalloc(list->count + 1, sizeof(*hashes));
    for (size_t i = 0; i < list->count; i++)
        memcpy(hashes[i], list->items[i].hash, sizeof(*hashes));
    if (list->count)
        qsort(hashes, list->count, sizeof(*hashes), by_hash);
    for (size_t i = 0; i < list->count; i++) {
        if (i && !strcmp(hashes[i], hashes[i - 1]))
            continue;
        content_path(store, tenant, hashes[i], &path);
        if (access(buffer_text(&path), F_OK) < 0)
            buffer_printf(ret_missing, "%s\n", hashes[i]);
    }
    free(hashes);
}

int source_store_put_list(struct source_store *store, const char *tenant, const char *key,
                          const struct buffer *text, struct buffer *ret_missing, size_t *ret_files,
                          struct error *error)
{
    _cleanup_source_list_ struct source_list sent = {0}, all = {0};
    _cleanup_buffer_ struct buffer path = {0}, written = {0};
    int r = is_key(key) ? source_list_read(&sent, text->data, text->length, error)
                        : error_set(error, -EINVAL, "\"%.100s\" is not a build ID.", key);
    if (!r && !sent.count)
        r = error_set(error, -EINVAL, "The list of sources is empty.");
    if (r < 0)
        return r;
    source_list_sort(&sent);
    pthread_mutex_lock(&store->lock);
    source_store_list(store, tenant, key, &all, NULL); /* a damaged one is written anew */
    source_list_write(&sent, &written);
    r = source_list_read(&all, written.data, written.length, error);
    source_list_sort(&all);
    written.length = 0;
    source_list_write(&all, &written);
    if (!r && (all.count > SOURCE_LIST_FILES_MAX || written.length > SOURCE_LIST_BYTES_MAX))
        r = error_set(error, -E2BIG, "The limit is %d source files per build.",
                      SOURCE_LIST_FILES_MAX);
    if (!r)
        r = source_store_make_room(store, written.length, error);
    if (!r)
        r = make_folders(store, tenant, SOURCE_BUILDS, error);
    list_path(store, tenant, key, &path);
    if (!r)
        r = file_write_atomic(buffer_text(&path), written.data, written.length, error);
    pthread_mutex_unlock(&store->lock);
    if (!r) {
        find_missing(store, tenant, &sent, ret_missing);
        *ret_files = all.count;
    }
    return r;
}

int source_store_delete(struct source_store *store, const char *tenant, const char *key,
                        struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    if (!is_key(key))
        return error_set(error, -EINVAL, "\"%.100s\" is not a build ID.", key);
    list_path(store, tenant, key, &path);
    if (unlink(buffer_text(&path)) < 0)
        return error_set(error, -ENOENT, "No sources of the build %.120s were uploaded.", key);
    return 0;
}

/* ---- contents on their way in ---- */

struct source_packer {
    gnutls_hash_hd_t hash;
    ZSTD_CCtx *zstd;
    char out[PIECE_BYTES];
};

static void packer_free(struct source_packer *packer)
{
    if (!packer)
        return;
    if (packer->hash)
        gnutls_hash_deinit(packer->hash, NULL);
    ZSTD_freeCCtx(packer->zstd);
    free(packer);
}

int source_upload_begin(struct source_store *store, struct source_upload *ret_upload,
                        struct error *error)
{
    struct buffer path = {0};
    struct source_packer *packer = memory_zalloc(1, sizeof(*packer));
    packer->zstd = ZSTD_createCCtx();
    if (!packer->zstd || gnutls_hash_init(&packer->hash, GNUTLS_DIG_SHA256) < 0) {
        packer_free(packer);
        return error_set(error, -ENOMEM, "Not enough memory to receive a source file.");
    }
    ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, LEVEL);
    mkdir(store->directory, 0700);
    buffer_printf(&path, "%s/.incoming-XXXXXX", store->directory);
    buffer_text(&path);
    int fd = mkostemp(path.data, O_CLOEXEC);
    if (fd < 0) {
        int code = -errno;
        buffer_release(&path);
        packer_free(packer);
        return error_set_errno(error, code, "Failed to create a file for the upload in %s",
                               store->directory);
    }
    *ret_upload =
        (struct source_upload){.store = store, .packer = packer, .fd = fd, .path = path.data};
    return 0;
}

static int pack(struct source_upload *upload, const void *bytes, size_t length,
                ZSTD_EndDirective end, struct error *error)
{
    struct source_packer *packer = upload->packer;
    ZSTD_inBuffer in = {bytes, length, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {packer->out, sizeof(packer->out), 0};
        left = ZSTD_compressStream2(packer->zstd, &out, &in, end);
        if (ZSTD_isError(left))
            return error_set(error, -EIO, "Failed to compress the source.");
        int r = file_write_all(upload->fd, packer->out, out.pos);
        if (r < 0)
            return error_set_errno(error, r, "Failed to write the source");
    } while (in.pos < in.size || (end == ZSTD_e_end && left));
    return 0;
}

int source_upload_write(struct source_upload *upload, const void *bytes, size_t length,
                        struct error *error)
{
    uint64_t limit = upload->store->options.file_bytes_max;
    if (length > limit - upload->bytes)
        return error_set(error, -E2BIG,
                         "The source exceeds the limit of %llu KiB (symbols.source_file_limit).",
                         (unsigned long long)(limit >> 10));
    upload->bytes += length;
    if (length && gnutls_hash(upload->packer->hash, bytes, length) < 0)
        return error_set(error, -EIO, "The list of sources is empty.");
    return pack(upload, bytes, length, ZSTD_e_continue, error);
}

static int check_hash(struct source_upload *upload, const char *hash, struct error *error)
{
    uint8_t digest[SOURCE_HASH_DIGITS / 2];
    char found[SOURCE_HASH_DIGITS + 1];
    gnutls_hash_output(upload->packer->hash, digest);
    hex_encode(digest, sizeof(digest), found);
    return strcmp(found, hash)
               ? error_set(error, -EINVAL,
                           "The SHA-256 of the upload is %s, not %s; nothing was stored.", found,
                           hash)
               : 0;
}

int source_upload_finish(struct source_upload *upload, const char *tenant, const char *hash,
                         struct error *error)
{
    struct source_store *store = upload->store;
    _cleanup_buffer_ struct buffer path = {0};
    struct stat status;
    int r = source_is_hash(hash)
                ? check_hash(upload, hash, error)
                : error_set(error, -EINVAL, "\"%.80s\" is not a lower-case SHA-256.", hash);
    if (!r)
        r = pack(upload, "", 0, ZSTD_e_end, error);
    if (!r && fstat(upload->fd, &status) < 0)
        r = error_set_errno(error, -errno, "Failed to write the source");
    if (r < 0)
        return r;
    char first[3] = {hash[0], hash[1], '\0'};
    content_path(store, tenant, hash, &path);
    pthread_mutex_lock(&store->lock);
    r = source_store_make_room(store, (uint64_t)status.st_blocks * 512, error);
    if (!r)
        r = make_folders(store, tenant, first, error);
    if (!r && rename(upload->path, buffer_text(&path)) < 0)
        r = error_set_errno(error, -errno, "Failed to write %s", buffer_text(&path));
    if (!r) {
        store->files++;
        store->bytes += (uint64_t)status.st_blocks * 512;
    }
    pthread_mutex_unlock(&store->lock);
    return r;
}

void source_upload_release(struct source_upload *upload)
{
    if (!upload->path)
        return;
    close(upload->fd);
    unlink(upload->path); /* nothing is there any more when it was stored */
    free(upload->path);
    packer_free(upload->packer);
    *upload = (struct source_upload){0};
}

/* ---- contents on their way out ---- */

/* In pieces, since what is on disk need not be what was written. */
static int unpack(const struct buffer *packed, uint64_t limit, struct buffer *text)
{
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    ZSTD_inBuffer in = {packed->data, packed->length, 0};
    size_t left = 1;
    while (zstd && left && text->length <= limit) {
        ZSTD_outBuffer out = {buffer_reserve(text, PIECE_BYTES), PIECE_BYTES, 0};
        left = ZSTD_decompressStream(zstd, &out, &in);
        text->length += out.pos;
        if (ZSTD_isError(left) || (left && in.pos == in.size && out.pos < out.size))
            break;
    }
    ZSTD_freeDCtx(zstd);
    return left || text->length > limit ? -EBADMSG : 0;
}

static int read_content(struct source_store *store, const char *tenant, const char *hash,
                        struct buffer *ret_text, struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0}, packed = {0}, text = {0};
    char found[SOURCE_HASH_DIGITS + 1];
    uint64_t limit = store->options.file_bytes_max;
    content_path(store, tenant, hash, &path);
    if (file_read(buffer_text(&path), ZSTD_compressBound(limit), &packed, NULL) < 0)
        return error_set(error, -ENOENT, "This source is on a list, but was never uploaded.");
    if (unpack(&packed, limit, &text) < 0 || !source_hash(text.data, text.length, found) ||
        strcmp(found, hash)) {
        unlink(buffer_text(&path)); /* so that it is requested again */
        return error_set(error, -ENOENT,
                         "The stored source is damaged and was deleted: upload it again.");
    }
    *ret_text = text;
    text = (struct buffer){0};
    return 0;
}

int source_store_read(struct source_store *store, const char *tenant, const char *key,
                      const char *path, struct buffer *ret_text, struct error *error)
{
    _cleanup_source_list_ struct source_list list = {0};
    _cleanup_buffer_ struct buffer normal = {0}, rooted = {0};
    const struct source_item *item = NULL;
    int r = source_store_list(store, tenant, key, &list, error);
    if (r < 0)
        return r;
    buffer_printf(&rooted, "/%s", path);
    if (source_path(rooted.data, rooted.length, &normal))
        item = source_list_find(&list, normal.data);
    if (!item && source_path(path, strlen(path), &normal))
        item = source_list_find(&list, normal.data);
    if (!item)
        return error_set(error, -ENOENT, "No source %.200s of the build %.120s was uploaded.", path,
                         key);
    return read_content(store, tenant, item->hash, ret_text, error);
}
