// SPDX-License-Identifier: Apache-2.0
// Finding source files by the paths that profiles have: see report_source.h.

#include "cli/file/report_source.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "http/client/client.h"
#include "symbol/sources/sources.h"
#include "symbol/store/store.h"

#define SOURCE_BYTES_MAX (16u << 20)
#define FOLDERS_MAX 64 /* of a path that are left out, one after the other */
#define TIMEOUT_MS 30000

static void source_text_release(struct source_text *source)
{
    buffer_release(&source->content);
    buffer_release(&source->why);
    free(source->lines);
    free(source->lengths);
}

static void forget(struct report_sources *sources, size_t at)
{
    source_text_release(&sources->kept[at].text);
    free(sources->kept[at].path);
    free(sources->kept[at].build_id);
}

void report_sources_release(struct report_sources *sources)
{
    for (size_t i = 0; i < sources->kept_count; i++)
        forget(sources, i);
    http_client_free(sources->client);
}

static void split(struct source_text *source)
{
    size_t capacity = 0, lengths_capacity = 0;
    const char *at = source->content.data, *end = at + source->content.length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        array_reserve(source->lines, capacity, source->count + 1);
        array_reserve(source->lengths, lengths_capacity, source->count + 1);
        source->lines[source->count] = at;
        source->lengths[source->count++] = (size_t)(stop - at);
        at = stop + 1;
    }
}

/* ---- on this machine ---- */

/* A profile may name any path: only regular files are read, and a pipe is not waited for. */
static bool read_file(const char *path, struct buffer *ret_content)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (fd >= 0)
        close(fd);
    return is_file && file_read(path, SOURCE_BYTES_MAX, ret_content, NULL) == 0;
}

/* Below a directory, by as much of the path's end as there is: /build/a/b.c, a/b.c, b.c. */
static bool read_below(const char *folder, const char *path, struct buffer *ret_content)
{
    char name[PATH_MAX];
    for (unsigned i = 0; path && i < FOLDERS_MAX; i++) {
        while (*path == '/')
            path++;
        if (snprintf(name, sizeof(name), "%s/%s", folder, path) < (int)sizeof(name) &&
            read_file(name, ret_content))
            return true;
        path = strchr(path, '/');
    }
    return false;
}

static bool read_folders(const struct report_sources *sources, const char *path,
                         struct buffer *ret_content)
{
    for (size_t i = 0; i < sources->folders.count; i++)
        if (read_below(sources->folders.values[i], path, ret_content))
            return true;
    return false;
}

/* ---- from a server ---- */

static int start_client(struct report_sources *sources, struct error *error)
{
    _cleanup_buffer_ struct buffer token = {0};
    const char *text = getenv("ASSAY_TOKEN");
    if (sources->client)
        return 0;
    if (sources->token_file && file_read(sources->token_file, 4096, &token, error) < 0)
        return error->code;
    if (!sources->token_file && text)
        buffer_add_text(&token, text);
    while (token.length && isspace((unsigned char)token.data[token.length - 1]))
        token.length--;
    struct http_client_options options = {.bearer = token.length ? buffer_text(&token) : NULL,
                                          .ca_file = sources->ca,
                                          .timeout_ms = TIMEOUT_MS,
                                          .answer_limit_bytes = SOURCE_BYTES_MAX};
    return http_client_new(&options, &sources->client, error);
}

/* /buildid/KEY/source/PATH, with slashes as they are: they are part of an address, too. */
static void build_url(struct buffer *url, const char *server, const char *key, const char *path)
{
    size_t length = strlen(server);
    while (length && server[length - 1] == '/')
        length--;
    buffer_printf(url, "%.*s/buildid/%s/source%s", (int)length, server, key,
                  *path == '/' ? "" : "/");
    for (; *path; path++)
        if (isalnum((unsigned char)*path) || strchr("-_.~/", *path))
            buffer_add_char(url, *path);
        else
            buffer_printf(url, "%%%02X", (unsigned char)*path);
}

/* 0; -ENOENT: the server doesn't have it; other codes: the server can't be reached. */
static int fetch(struct report_sources *sources, const char *path, const char *key,
                 struct buffer *ret_content, struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer url = {0};
    int r = start_client(sources, error);
    if (r < 0)
        return r;
    build_url(&url, sources->debuginfod, key, path);
    struct http_call call = {.url = buffer_text(&url)};
    r = http_client_call(sources->client, &call, &reply, error);
    if (!r && reply.status == 404)
        return -ENOENT;
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    if (!r) {
        *ret_content = reply.body;
        reply.body = (struct buffer){0};
    }
    return r;
}

static bool read_remote(struct report_sources *sources, const char *path, const char *build_id,
                        struct source_text *source)
{
    char key[SYMBOL_KEY_BYTES];
    if (!*build_id || !symbol_key(build_id, key)) {
        buffer_add_text(&source->why,
                        "the profile has no build ID, which a debuginfod server requires");
        return false;
    }
    if (!sources->failure.code) {
        int r = fetch(sources, path, key, &source->content, &sources->failure);
        if (r == -ENOENT) {
            sources->failure = (struct error){0};
            buffer_printf(&source->why,
                          "not found locally, and %s has no such source for the build %s",
                          sources->debuginfod, key);
        }
        if (!r || r == -ENOENT)
            return !r;
    }
    size_t length = strcspn(sources->failure.text, "\n");
    length -= length && sources->failure.text[length - 1] == '.';
    buffer_printf(&source->why, "not found locally, and %.*s", (int)length, sources->failure.text);
    return false;
}

static void load(struct report_sources *sources, const char *path, const char *build_id,
                 struct source_text *source)
{
    _cleanup_buffer_ struct buffer normal = {0};
    if (!source_path(path, strlen(path), &normal)) {
        buffer_add_text(&source->why, "the profile doesn't name the file");
        return;
    }
    bool found = read_folders(sources, normal.data, &source->content);
    if (!found && sources->debuginfod)
        found = read_remote(sources, normal.data, build_id, source);
    if (!found && normal.data[0] == '/')
        found = read_file(normal.data, &source->content);
    if (found)
        source->why.length = 0;
    else if (!source->why.length)
        buffer_add_text(&source->why, "not found locally; set --source-path or --debuginfod");
    split(source);
    if (found && !source->count)
        buffer_add_text(&source->why, "the file found is empty");
}

const struct source_text *report_sources_find(struct report_sources *sources, const char *path,
                                              const char *build_id)
{
    for (size_t i = 0; i < sources->kept_count; i++)
        if (!strcmp(sources->kept[i].path, path) && !strcmp(sources->kept[i].build_id, build_id))
            return &sources->kept[i].text;
    size_t at = sources->kept_next;
    sources->kept_next = (at + 1) % REPORT_SOURCES_KEPT;
    if (at < sources->kept_count)
        forget(sources, at);
    else
        sources->kept_count++;
    sources->kept[at].path = memory_strdup(path);
    sources->kept[at].build_id = memory_strdup(build_id);
    sources->kept[at].text = (struct source_text){0};
    load(sources, path, build_id, &sources->kept[at].text);
    return &sources->kept[at].text;
}
