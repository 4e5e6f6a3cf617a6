// SPDX-License-Identifier: Apache-2.0
// `assay debuginfo upload --service`: sends source maps and mapping files of one service and
// version to a server. Directories are searched for *.map and mapping.txt.

#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/remote/debuginfo.h"
#include "http/client/client.h"
#include "profile/naming.h"

#define FILES_MAX 100000
#define TIMEOUT_MS 600000 /* of one file */
#define FOLDERS_OPEN 16
#define MAP_SUFFIX ".map"

struct map_file {
    char *path;
    const char *name; /* part of it: what the generated file is called, with .map */
};

struct sending {
    const struct debuginfo_sending *options;
    struct buffer url, token;
    struct map_file *files;
    size_t count, capacity;
    uint64_t sent, bytes, failed;
};

/* ---- which files ---- */

static struct sending *walking; /* nftw has no context */
static size_t walking_from;     /* where a path's part below its directory begins */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && !strcmp(text + length - end_length, end);
}

static void add_file(struct sending *sending, const char *path, size_t name_at)
{
    array_reserve(sending->files, sending->capacity, sending->count + 1);
    struct map_file *file = &sending->files[sending->count++];
    file->path = memory_strdup(path);
    file->name = file->path + name_at;
}

/* Maps of style sheets are maps too, but nothing in a profile is from one. */
static int look_at(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)place;
    const char *base = path_base(path);
    if (kind != FTW_F || !S_ISREG(status->st_mode) || !status->st_size ||
        (strcmp(base, "mapping.txt") != 0 &&
         (!ends_with(base, MAP_SUFFIX) || ends_with(base, ".css" MAP_SUFFIX))))
        return 0;
    if (walking->count == FILES_MAX)
        return 1;
    add_file(walking, path, walking_from);
    return 0;
}

static int find_files(struct sending *sending, const char *const *paths, int count,
                      struct error *error)
{
    walking = sending;
    for (int i = 0; i < count; i++) {
        struct stat status;
        if (stat(paths[i], &status) < 0)
            return error_set_errno(error, -errno, "%s", paths[i]);
        if (!S_ISDIR(status.st_mode)) {
            add_file(sending, paths[i], (size_t)(path_base(paths[i]) - paths[i]));
            continue;
        }
        _cleanup_buffer_ struct buffer folder = {0};
        buffer_add_text(&folder, paths[i]);
        while (folder.length > 1 && folder.data[folder.length - 1] == '/')
            folder.length--;
        walking_from = folder.length + (folder.data[folder.length - 1] != '/');
        int r = nftw(buffer_text(&folder), look_at, FOLDERS_OPEN, FTW_PHYS);
        if (r > 0)
            return error_set(error, -E2BIG,
                             "There are more than %d maps; specify fewer directories.", FILES_MAX);
        if (r < 0)
            return error_set_errno(error, -errno, "Failed to search %s", paths[i]);
    }
    if (sending->count)
        return 0;
    return error_set(error, -ENOENT,
                     "No source map (*.map) and no mapping.txt found; specify the file itself if "
                     "it has another name.");
}

/* ---- sending ---- */

static void add_escaped(struct buffer *url, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (isalnum((unsigned char)text[i]) || strchr("-._~/", text[i]))
            buffer_add_char(url, text[i]);
        else
            buffer_printf(url, "%%%02X", (unsigned char)text[i]);
}

static void add_parameter(struct buffer *url, const char *name, const char *text, size_t length)
{
    buffer_printf(url, "%s=", name);
    add_escaped(url, text, length);
}

/* A file that isn't called *.map says itself of which it is, or is a mapping file. */
static int send_file(struct sending *sending, struct http_client *client,
                     const struct map_file *file, struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer url = {0};
    const struct debuginfo_sending *options = sending->options;
    struct stat status;
    buffer_printf(&url, "%s/api/v1/maps?", buffer_text(&sending->url));
    add_parameter(&url, "service", options->service, strlen(options->service));
    add_parameter(&url, "&version", options->version, strlen(options->version));
    if (ends_with(file->name, MAP_SUFFIX))
        add_parameter(&url, "&name", file->name, strlen(file->name) - strlen(MAP_SUFFIX));
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0) {
        int r = error_set_errno(error, -errno, "Failed to open it");
        if (fd >= 0)
            close(fd);
        return r;
    }
    struct http_call call = {.method = "POST",
                             .url = buffer_text(&url),
                             .body_from_file = true,
                             .body_fd = fd,
                             .body_length = (uint64_t)status.st_size,
                             .timeout_ms = TIMEOUT_MS};
    int r = http_client_call_retrying(client, &call, &(struct http_retry){0}, &reply, error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    close(fd);
    if (!r) {
        sending->sent++;
        sending->bytes += (uint64_t)status.st_size;
    }
    return r;
}

static int send_all(struct sending *sending, struct error *error)
{
    struct http_client *client = NULL;
    struct http_client_options options = {
        .bearer = sending->token.length ? buffer_text(&sending->token) : NULL,
        .ca_file = sending->options->ca,
        .timeout_ms = TIMEOUT_MS};
    int r = http_client_new(&options, &client, error);
    if (r < 0)
        return r;
    struct progress *progress = progress_start();
    for (size_t i = 0; i < sending->count; i++) {
        struct error failure = {0};
        char line[128];
        snprintf(line, sizeof(line), "map %zu of %zu, %" PRIu64 " sent", i + 1, sending->count,
                 sending->sent);
        progress_say(progress, line);
        if (send_file(sending, client, &sending->files[i], &failure) < 0) {
            _cleanup_buffer_ struct buffer said = {0};
            error_prefix(&failure, "%s", sending->files[i].path);
            text_escape_terminal(&said, failure.text, strlen(failure.text));
            fprintf(stderr, "assay: %s\n", buffer_text(&said));
            sending->failed++;
        }
    }
    progress_stop(&progress);
    http_client_free(client);
    return 0;
}

int debuginfo_upload_maps(const struct debuginfo_sending *options, const char *const *paths,
                          int count)
{
    struct sending sending = {.options = options};
    struct error error = {0};
    buffer_add_text(&sending.url, options->server);
    while (sending.url.length && sending.url.data[sending.url.length - 1] == '/')
        sending.url.length--;
    int r = debuginfo_read_token(options, &sending.token, &error);
    if (!r)
        r = find_files(&sending, paths, count, &error);
    if (!r)
        r = send_all(&sending, &error);
    if (!r)
        printf("%" PRIu64 " sent (%" PRIu64 " bytes), %" PRIu64 " failed.\n", sending.sent,
               sending.bytes, sending.failed);
    for (size_t i = 0; i < sending.count; i++)
        free(sending.files[i].path);
    free(sending.files);
    buffer_release(&sending.url);
    buffer_release(&sending.token);
    return r < 0 ? fail(&error) : sending.failed ? EXIT_FAILED : EXIT_FINE;
}
