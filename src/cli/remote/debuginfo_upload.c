// SPDX-License-Identifier: Apache-2.0
// `assay debuginfo upload`: sends binaries and debug files to a server, as from a build.
// Directories are searched; what the server has in as good a form stays here.

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
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
#include "elf/file.h"
#include "http/client/client.h"
#include "io/json.h"
#include "profile/naming.h"
#include "symbol/index/build.h"
#include "symbol/index/split_package.h"
#include "symbol/store/store.h"

#define JOBS 4
#define JOBS_MAX 32
#define FILES_MAX 1000000
#define TIMEOUT_MS 1800000 /* of one file: indexing takes its time */
#define FOLDERS_OPEN 16

struct upload {
    struct debuginfo_sending *sending;
    struct buffer url, token;
    char **files;
    size_t count, capacity;
    struct progress *progress;
    bool shared; /* now those that others need; the others come after them */

    pthread_mutex_t lock;
    size_t next;
    uint64_t sent, bytes, known, no_better, failed;
    struct debuginfo_source_counts sources;
    struct error first; /* of failures */
};

/* ---- which files ---- */

static struct upload *walking; /* nftw has no context */

static int add_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)place;
    if (kind != FTW_F || !S_ISREG(status->st_mode) || status->st_size < (off_t)sizeof(Elf64_Ehdr))
        return 0;
    if (walking->count == FILES_MAX)
        return 1;
    array_reserve(walking->files, walking->capacity, walking->count + 1);
    walking->files[walking->count++] = memory_strdup(path);
    return 0;
}

static int find_files(struct upload *upload, const char *const *paths, int count,
                      struct error *error)
{
    walking = upload;
    for (int i = 0; i < count; i++) {
        struct stat status;
        if (stat(paths[i], &status) < 0)
            return error_set_errno(error, -errno, "%s", paths[i]);
        int r = S_ISDIR(status.st_mode) ? nftw(paths[i], add_file, FOLDERS_OPEN, FTW_PHYS)
                                        : add_file(paths[i], &status, FTW_F, NULL);
        if (r > 0)
            return error_set(error, -E2BIG,
                             "There are more than %d files; specify fewer directories.", FILES_MAX);
        if (r < 0)
            return error_set_errno(error, -errno, "Failed to search %s", paths[i]);
    }
    return 0;
}

/* Linked programs and libraries, and their debug files; or, what dwz put into a file of its own,
 * which calls itself an object file and has a build ID. False for anything else. */
static bool identify(int fd, bool shared, struct symbol_identity *ret_identity)
{
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length;
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return false;
    if (elf_open_foreign_fd(copy, &file, NULL) < 0) {
        close(copy);
        return false;
    }
    if (shared ? file.type != ET_REL || !elf_build_id(&file, id, &length)
               : file.type != ET_EXEC && file.type != ET_DYN)
        return false;
    return symbol_identify(&file, ret_identity, NULL) == 0;
}

/* ---- sending one ---- */

struct known {
    bool has_inlines, has_executable;
};

static void read_known(const struct buffer *answer, struct known *ret_known)
{
    struct source source;
    struct json_string key, text;
    uint64_t bytes;
    if (source_open_memory(&source, "answer", answer->data, answer->length, 1u << 20, NULL) < 0)
        return;
    _cleanup_json_ struct json json;
    json_init(&json, &source, NULL);
    int r = json_object(&json);
    while (r >= 0 && (r = json_next_key(&json, &key)) > 0)
        if (json_is(&key, "quality") && (r = json_string(&json, &text)) >= 0)
            ret_known->has_inlines = json_is(&text, "inlines");
        else if (json_is(&key, "executable_bytes") && (r = json_u64(&json, &bytes)) >= 0)
            ret_known->has_executable = bytes > 0;
    source_release(&source);
}

/* 1: the server has it in as good a form. */
static int ask(struct upload *upload, struct http_client *client,
               const struct symbol_identity *identity, struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer url = {0};
    struct known known = {0};
    buffer_printf(&url, "%s/api/v1/debuginfo/%s", buffer_text(&upload->url), identity->key);
    struct http_call call = {.url = buffer_text(&url)};
    int r = http_client_call_retrying(client, &call, &(struct http_retry){0}, &reply, error);
    if (r < 0 || reply.status == 404)
        return r;
    if (reply.status != 200)
        return http_reply_error(&call, &reply, error);
    read_known(&reply.body, &known);
    if (!identity->has_debug_information)
        return known.has_executable;
    return known.has_inlines && (!identity->has_code || known.has_executable);
}

static void add_escaped(struct buffer *url, const char *text)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text))
            buffer_add_char(url, *text);
        else
            buffer_printf(url, "%%%02X", (unsigned char)*text);
}

static int send_file(struct upload *upload, struct http_client *client, const char *path, int fd,
                     uint64_t bytes, const char *key, bool *ret_stored, struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer url = {0};
    buffer_printf(&url, "%s/api/v1/debuginfo?build_id=%s&name=", buffer_text(&upload->url), key);
    add_escaped(&url, path_base(path));
    struct http_call call = {.method = "POST",
                             .url = buffer_text(&url),
                             .body_from_file = true,
                             .body_fd = fd,
                             .body_length = bytes,
                             .timeout_ms = TIMEOUT_MS};
    int r = http_client_call_retrying(client, &call, &(struct http_retry){0}, &reply, error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    if (!r)
        *ret_stored = strstr(buffer_text(&reply.body), "\"stored\":true") != NULL;
    return r;
}

static int send_package_file(struct upload *upload, struct http_client *client, const char *path,
                             int fd, const char *key, bool *stored, uint64_t *bytes,
                             struct error *error)
{
    _cleanup_buffer_ struct buffer name = {0};
    struct stat status;
    bool taken = false;
    int r = 0;
    buffer_printf(&name, "%s.dwp", path);
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        r = send_file(upload, client, buffer_text(&name), fd, (uint64_t)status.st_size, key, &taken,
                      error);
    if (r < 0)
        error_prefix(error, "%s", buffer_text(&name));
    else if (taken)
        *bytes = (*stored ? *bytes : 0) + (uint64_t)status.st_size;
    *stored |= taken;
    return r;
}

static void warn_absent(const char *path, const struct split_package *package)
{
    _cleanup_buffer_ struct buffer line = {0};
    text_escape_terminal(&line, path, strlen(path));
    fprintf(stderr,
            "assay: %s: %zu of its %zu split files (.dwo) were not found; functions inlined there "
            "have no names.\n",
            buffer_text(&line), package->absent, package->units);
}

/* Uploads split debug information after the program: PROGRAM.dwp where it was packed, and else a
 * package of its .dwo files. */
static int send_package(struct upload *upload, struct http_client *client, const char *path,
                        const char *key, bool *stored, uint64_t *bytes, struct error *error)
{
    struct symbol_index_found found;
    struct split_package package = {.fd = -1};
    int r = symbol_index_find(path, NULL, &found, error);
    int fd = r < 0 ? -1 : found.input.package;
    if (r >= 0 && fd < 0)
        r = split_package_make(&found.input, &package, error);
    if (r >= 0 && package.absent)
        warn_absent(path, &package);
    if (r >= 0 && (fd >= 0 || package.fd >= 0))
        r = send_package_file(upload, client, path, fd >= 0 ? fd : package.fd, key, stored, bytes,
                              error);
    split_package_release(&package);
    symbol_index_close_input(&found.input);
    return r;
}

/* With the lock held; `bytes` were sent and stored. */
static void note(struct upload *upload, const char *path, int r, bool known, uint64_t bytes,
                 struct error *error)
{
    upload->known += known;
    upload->sent += bytes > 0;
    upload->bytes += bytes;
    upload->no_better += !r && !known && !bytes;
    if (r < 0) {
        error_prefix(error, "%s", path);
        _cleanup_buffer_ struct buffer line = {0};
        text_escape_terminal(&line, error->text, strlen(error->text));
        fprintf(stderr, "assay: %s\n", buffer_text(&line));
        upload->failed++;
    }
}

/* A file that is no program is passed over without a word: directories have all sorts. */
static void take_one(struct upload *upload, struct http_client *client, const char *path)
{
    struct symbol_identity identity;
    struct error error = {0};
    struct stat status;
    bool stored = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) < 0 || !identify(fd, upload->shared, &identity)) {
        if (fd >= 0)
            close(fd);
        return;
    }
    uint64_t bytes = (uint64_t)status.st_size;
    int r = ask(upload, client, &identity, &error);
    bool known = r > 0;
    if (!r)
        r = send_file(upload, client, path, fd, bytes, identity.key, &stored, &error);
    close(fd);
    if (!r && identity.has_debug_information)
        r = send_package(upload, client, path, identity.key, &stored, &bytes, &error);
    struct debuginfo_source_counts sources = {0};
    if (r >= 0 && upload->sending->sources && !upload->shared)
        r = debuginfo_send_sources(upload->sending, client, buffer_text(&upload->url), path,
                                   &identity, &sources, &error);
    pthread_mutex_lock(&upload->lock);
    upload->sources.named += sources.named;
    upload->sources.sent += sources.sent;
    upload->sources.absent += sources.absent;
    if (!upload->sources.example)
        upload->sources.example = TAKE_PTR(sources.example);
    free(sources.example);
    note(upload, path, r, known, stored ? bytes : 0, &error);
    pthread_mutex_unlock(&upload->lock);
}

static void *run(void *userdata)
{
    struct upload *upload = userdata;
    struct http_client *client = NULL;
    struct http_client_options options = {
        .bearer = upload->token.length ? buffer_text(&upload->token) : NULL,
        .ca_file = upload->sending->ca,
        .timeout_ms = TIMEOUT_MS};
    char line[128];
    if (http_client_new(&options, &client, &upload->first) < 0)
        return NULL;
    for (;;) {
        pthread_mutex_lock(&upload->lock);
        size_t at = upload->next++;
        if (at < upload->count) {
            snprintf(line, sizeof(line), "file %zu of %zu, %" PRIu64 " sent", at + 1, upload->count,
                     upload->sent);
            progress_say(upload->progress, line);
        }
        pthread_mutex_unlock(&upload->lock);
        if (at >= upload->count)
            break;
        take_one(upload, client, upload->files[at]);
    }
    http_client_free(client);
    return NULL;
}

static void run_all(struct upload *upload)
{
    pthread_t threads[JOBS_MAX];
    size_t wanted = (size_t)MIN(upload->sending->jobs ? upload->sending->jobs : JOBS, JOBS_MAX);
    size_t started = 0;
    wanted = MIN(wanted, upload->count);
    upload->progress = progress_start();
    while (started < wanted && pthread_create(&threads[started], NULL, run, upload) == 0)
        started++;
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    progress_stop(&upload->progress);
}

int debuginfo_read_token(const struct debuginfo_sending *sending, struct buffer *token,
                         struct error *error)
{
    const char *text = getenv("ASSAY_TOKEN");
    if (sending->token_file && file_read(sending->token_file, 4096, token, error) < 0)
        return error->code;
    if (!sending->token_file && text)
        buffer_add_text(token, text);
    while (token->length && isspace((unsigned char)token->data[token->length - 1]))
        token->length--;
    return 0;
}

static void say_sources(const struct debuginfo_source_counts *sources)
{
    _cleanup_buffer_ struct buffer example = {0};
    if (sources->example) {
        buffer_add_text(&example, ", such as ");
        text_escape_terminal(&example, sources->example, strlen(sources->example));
    }
    printf("Sources: %" PRIu64 " sent, %" PRIu64 " found locally, %" PRIu64
           " not found below the source directories%s.\n",
           sources->sent, sources->named, sources->absent, buffer_text(&example));
}

int debuginfo_upload(struct debuginfo_sending *sending, const char *const *paths, int count)
{
    struct upload upload = {.sending = sending, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct error error = {0};
    buffer_add_text(&upload.url, sending->server);
    while (upload.url.length && upload.url.data[upload.url.length - 1] == '/')
        upload.url.length--;
    int r = debuginfo_read_token(sending, &upload.token, &error);
    if (!r && sending->sources)
        r = debuginfo_source_roots(sending, &error);
    if (!r)
        r = find_files(&upload, paths, count, &error);
    if (!r) {
        buffer_text(&upload.url);
        buffer_text(&upload.token);
        upload.shared = true;
        run_all(&upload);
        upload.shared = false;
        upload.next = 0;
        run_all(&upload);
        r = upload.first.code;
        error = upload.first;
    }
    if (!r && !upload.sent && !upload.known && !upload.no_better && !upload.failed)
        r = error_set(
            &error, -ENOENT,
            "None of the files is a linked program, a library or a debug file (64-bit ELF).");
    if (!r)
        printf("%" PRIu64 " sent (%" PRIu64 " bytes), %" PRIu64 " known, %" PRIu64
               " not better than the stored ones, %" PRIu64 " failed.\n",
               upload.sent, upload.bytes, upload.known, upload.no_better, upload.failed);
    if (!r && sending->sources)
        say_sources(&upload.sources);
    free(upload.sources.example);
    debuginfo_source_roots_release(sending);
    for (size_t i = 0; i < upload.count; i++)
        free(upload.files[i]);
    free(upload.files);
    buffer_release(&upload.url);
    buffer_release(&upload.token);
    return r < 0 ? fail(&error) : upload.failed ? EXIT_FAILED : EXIT_FINE;
}
