// SPDX-License-Identifier: Apache-2.0
// `assay debuginfo upload --sources`: uploads the source files of a binary, as named by its debug
// information. A binary can come from anywhere, so only files below the given directories are ever
// read.

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/remote/debuginfo.h"
#include "http/client/client.h"
#include "io/json.h"
#include "symbol/index/build.h"
#include "symbol/sources/sources.h"
#include "symbol/store/store.h"

#define TIMEOUT_MS 120000

/* ---- finding a file ---- */

static bool is_below(const char *path, const char *root)
{
    size_t length = strlen(root);
    return !strncmp(path, root, length) &&
           (path[length] == '/' || (length && root[length - 1] == '/'));
}

int debuginfo_source_roots(struct debuginfo_sending *sending, struct error *error)
{
    struct option_list *roots = &sending->source_roots;
    for (size_t i = 0; i < sending->source_maps.count; i++) {
        const char *text = sending->source_maps.values[i], *equals = strchr(text, '=');
        if (!equals || equals == text || !equals[1])
            return error_set(error, -EINVAL, "--source-map must be OLD=NEW, not \"%.200s\".", text);
        if (roots->count < OPTION_LIST_MAX)
            roots->values[roots->count++] = equals + 1;
    }
    if (!roots->count)
        roots->values[roots->count++] = ".";
    for (size_t i = 0; i < roots->count; i++) {
        char *real = realpath(roots->values[i], NULL);
        if (!real)
            return error_set_errno(error, -errno, "The source directory %s", roots->values[i]);
        sending->real_roots[i] = real;
    }
    return 0;
}

void debuginfo_source_roots_release(struct debuginfo_sending *sending)
{
    for (size_t i = 0; i < OPTION_LIST_MAX; i++)
        free(sending->real_roots[i]);
}

/* A regular file below one of the roots, links followed; NULL: there is none. The caller frees. */
static char *accept(const struct debuginfo_sending *sending, const char *path)
{
    struct stat status;
    char *real = realpath(path, NULL);
    if (real && stat(real, &status) == 0 && S_ISREG(status.st_mode))
        for (size_t i = 0; i < sending->source_roots.count; i++)
            if (is_below(real, sending->real_roots[i]))
                return real;
    free(real);
    return NULL;
}

static char *find(const struct debuginfo_sending *sending, const char *path)
{
    char name[PATH_MAX];
    char *found = NULL;
    for (size_t i = 0; !found && i < sending->source_maps.count; i++) {
        const char *text = sending->source_maps.values[i], *equals = strchr(text, '=');
        size_t old = (size_t)(equals - text);
        while (old > 1 && text[old - 1] == '/')
            old--;
        if (strncmp(path, text, old) || (path[old] != '/' && text[old - 1] != '/'))
            continue;
        if (snprintf(name, sizeof(name), "%s/%s", equals + 1, path + old) < (int)sizeof(name))
            found = accept(sending, name);
    }
    if (!found && path[0] == '/')
        found = accept(sending, path);
    for (size_t i = 0; !found && path[0] != '/' && i < sending->source_roots.count; i++)
        if (snprintf(name, sizeof(name), "%s/%s", sending->real_roots[i], path) < (int)sizeof(name))
            found = accept(sending, name);
    return found;
}

/* ---- what a binary was made of ---- */

struct found {
    char hash[SOURCE_HASH_DIGITS + 1];
    char *file;
};

struct gathering {
    const struct debuginfo_sending *sending;
    struct found *files;
    size_t count, capacity;
    struct buffer list; /* for the server */
    uint64_t absent;
    char *example; /* of those */
};

static void gathering_release(struct gathering *gathering)
{
    for (size_t i = 0; i < gathering->count; i++)
        free(gathering->files[i].file);
    free(gathering->files);
    free(gathering->example);
    buffer_release(&gathering->list);
}

/* All of a regular file; what became another kind of file since is none. */
static bool read_source(const char *path, struct buffer *ret_text)
{
    struct stat status;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size <= (off_t)SOURCE_FILE_BYTES_DEFAULT) {
        size_t room = (size_t)status.st_size + 1;
        ret_text->length = 0;
        got = read(fd, buffer_reserve(ret_text, room), room);
        ret_text->length = got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    return got >= 0 && got == status.st_size;
}

static void gather_one(struct gathering *gathering, const char *path, struct buffer *scratch,
                       struct buffer *text)
{
    struct found found = {0};
    if (!path || !source_path(path, strlen(path), scratch))
        return;
    found.file = find(gathering->sending, buffer_text(scratch));
    if (!found.file || !read_source(found.file, text) ||
        !source_hash(text->data, text->length, found.hash)) {
        free(found.file);
        gathering->absent++;
        if (!gathering->example)
            gathering->example = memory_strndup(scratch->data, scratch->length);
        return;
    }
    buffer_printf(&gathering->list, "%s  %s\n", found.hash, buffer_text(scratch));
    array_reserve(gathering->files, gathering->capacity, gathering->count + 1);
    gathering->files[gathering->count++] = found;
}

static int gather(struct gathering *gathering, const char *path, struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0}, scratch = {0}, text = {0};
    struct symbol_index index;
    int r = symbol_index_build_path(path, NULL, &content, error);
    if (!r)
        r = symbol_index_open_memory(content.data, content.length, &index, error);
    for (uint32_t i = 1; !r && i < index.file_count && gathering->count < SOURCE_LIST_FILES_MAX;
         i++)
        gather_one(gathering, symbol_index_file(&index, i), &scratch, &text);
    return r;
}

/* ---- sending ---- */

static int send_content(struct http_client *client, const char *url, const struct found *found,
                        struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer address = {0}, text = {0};
    if (!read_source(found->file, &text))
        return error_set(error, -EIO, "The source %s can no longer be read.", found->file);
    buffer_printf(&address, "%s/api/v1/sources/%s", url, found->hash);
    struct http_call call = {.method = "POST",
                             .url = buffer_text(&address),
                             .body = text.data,
                             .body_length = text.length,
                             .timeout_ms = TIMEOUT_MS};
    int r = http_client_call_retrying(client, &call, &(struct http_retry){0}, &reply, error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    return r < 0 ? error_prefix(error, "%s", found->file) : 0;
}

static int by_hash(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return strcmp(a->hash, b->hash);
}

/* Each of those that the server's answer names. */
static int send_missing(struct http_client *client, const char *url, struct gathering *gathering,
                        const struct buffer *answer, struct debuginfo_source_counts *counts,
                        struct error *error)
{
    struct source source;
    struct json_string key, hash;
    int r = source_open_memory(&source, "answer", answer->data, answer->length, 64u << 20, error);
    if (r < 0)
        return r;
    qsort(gathering->files, gathering->count, sizeof(*gathering->files), by_hash);
    _cleanup_json_ struct json json;
    json_init(&json, &source, error);
    r = json_object(&json);
    while (r >= 0 && (r = json_next_key(&json, &key)) > 0) {
        if (!json_is(&key, "missing")) {
            r = json_skip(&json);
            continue;
        }
        r = json_array(&json);
        while (r >= 0 && (r = json_next_element(&json)) > 0 &&
               (r = json_string(&json, &hash)) >= 0) {
            struct found wanted = {0};
            if (hash.length != SOURCE_HASH_DIGITS)
                continue;
            memcpy(wanted.hash, hash.data, SOURCE_HASH_DIGITS);
            const struct found *found = bsearch(&wanted, gathering->files, gathering->count,
                                                sizeof(*gathering->files), by_hash);
            if (found && (r = send_content(client, url, found, error)) >= 0)
                counts->sent++;
        }
    }
    source_release(&source);
    return MIN(r, 0);
}

static int send_list(struct http_client *client, const char *url, const char *key,
                     struct gathering *gathering, struct debuginfo_source_counts *counts,
                     struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer address = {0};
    buffer_printf(&address, "%s/api/v1/sources?build_id=%s", url, key);
    struct http_call call = {.method = "POST",
                             .url = buffer_text(&address),
                             .body = gathering->list.data,
                             .body_length = gathering->list.length,
                             .timeout_ms = TIMEOUT_MS};
    int r = http_client_call_retrying(client, &call, &(struct http_retry){0}, &reply, error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    return r < 0 ? r : send_missing(client, url, gathering, &reply.body, counts, error);
}

int debuginfo_send_sources(const struct debuginfo_sending *sending, struct http_client *client,
                           const char *url, const char *path,
                           const struct symbol_identity *identity,
                           struct debuginfo_source_counts *counts, struct error *error)
{
    _cleanup_(gathering_release) struct gathering gathering = {.sending = sending};
    int r = gather(&gathering, path, error);
    if (!r && gathering.count)
        r = send_list(client, url, identity->key, &gathering, counts, error);
    /* Profiles of a Go program may know it by Go's build ID. */
    if (!r && gathering.count && *identity->other)
        r = send_list(client, url, identity->other, &gathering, counts, error);
    counts->named += gathering.count;
    counts->absent += gathering.absent;
    if (!counts->example)
        counts->example = TAKE_PTR(gathering.example);
    return r;
}
