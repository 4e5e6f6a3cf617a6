// SPDX-License-Identifier: Apache-2.0
// Sending one file at a time, within the rate that the settings allow: see symbols.h.

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/send/client.h"
#include "agent/symbols_parts.h"
#include "base/log.h"
#include "base/memory.h"
#include "elf/extract.h"
#include "symbol/debugfile.h"

#define ANSWER_BYTES_MAX 65536
#define INDEXING_MS 600000 /* the server makes an index before it answers, one at a time */
#define TIMEOUT_MAX_MS (24 * 3600000ll)

/* ---- what is sent ---- */

struct parcel {
    struct elf_file file, debug;
    struct elf_extract extract;
    bool whole; /* the file as it is */
    uint64_t bytes;
};

static void parcel_release(struct parcel *parcel)
{
    elf_extract_release(&parcel->extract);
    elf_release(&parcel->file);
    elf_release(&parcel->debug);
}

static ssize_t give(void *context, uint64_t at, void *bytes, size_t length)
{
    struct parcel *parcel = context;
    if (parcel->whole)
        return pread(parcel->file.fd, bytes, length, (off_t)at);
    return elf_extract_read(&parcel->extract, at, bytes, length);
}

static bool has_content(struct elf_file *file, const char *name)
{
    struct elf_section section;
    return elf_find_section(file, name, &section) && section.type != SHT_NOBITS;
}

/* A stripped program's names are in its debug file, where that is installed. */
static bool is_stripped(struct elf_file *file)
{
    return !has_content(file, ".debug_info") && !has_content(file, ".zdebug_info") &&
           !has_content(file, ".symtab");
}

static int check_identity(struct elf_file *file, const char *key, struct error *error)
{
    struct symbol_identity identity;
    int r = symbol_identify(file, &identity, error);
    if (!r && strcmp(identity.key, key) && strcmp(identity.other, key))
        r = error_set(error, -ESTALE, "The file changed: its build ID is now %.120s.",
                      identity.key);
    return r;
}

static int make_parcel(const struct agent_settings *settings, const struct held_file *held,
                       struct parcel *parcel, struct error *error)
{
    int fd = fcntl(held->fd, F_DUPFD_CLOEXEC, 0);
    int r = fd < 0 ? error_set_errno(error, -errno, "Failed to read the file")
                   : elf_open_fd(fd, &parcel->file, error);
    if (r < 0) {
        if (fd >= 0)
            close(fd);
        return r;
    }
    r = check_identity(&parcel->file, held->key, error);
    if (r < 0)
        return r;
    if (settings->symbols == SYMBOLS_WHOLE) {
        parcel->whole = true;
        parcel->bytes = parcel->file.size_bytes;
    } else {
        bool separate = is_stripped(&parcel->file) &&
                        debug_file_open(&parcel->file, held->path, &parcel->debug) == 0;
        r = elf_extract_plan(separate ? &parcel->debug : &parcel->file, &parcel->file,
                             &parcel->extract, error);
        parcel->bytes = parcel->extract.size_bytes;
    }
    if (!r && parcel->bytes > settings->symbols_file_bytes)
        r = error_set(
            error, -E2BIG,
            "The file would be %llu MiB; the limit is %llu MiB (symbols.file_limit of the agent).",
            (unsigned long long)(parcel->bytes >> 20),
            (unsigned long long)(settings->symbols_file_bytes >> 20));
    return r;
}

/* ---- sending it ---- */

static void make_url(const struct agent_symbols *symbols, const struct held_file *held,
                     struct buffer *ret_url)
{
    agent_url(symbols->settings, "/api/v1/debuginfo?build_id=", ret_url);
    buffer_printf(ret_url, "%s&agent=%s&name=", held->key, symbols->agent_id);
    for (const char *at = held->name; *at; at++)
        if (isalnum((unsigned char)*at) || strchr("-._~", *at))
            buffer_add_char(ret_url, *at);
        else
            buffer_printf(ret_url, "%%%02X", (unsigned char)*at);
}

/* So that a thread that stops us can end the call. */
static bool set_client(struct agent_symbols *symbols, struct http_client *client)
{
    pthread_mutex_lock(&symbols->lock);
    symbols->client = client;
    bool stop = symbols->stop;
    pthread_mutex_unlock(&symbols->lock);
    return !stop;
}

/* *ret_final: the server will never take it. */
static int post(struct agent_symbols *symbols, const struct held_file *held, struct parcel *parcel,
                bool *ret_final, struct error *error)
{
    const struct agent_settings *settings = symbols->settings;
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer url = {0};
    struct http_client *client = NULL;
    const char *type = "Content-Type: application/octet-stream";
    uint64_t rate = MAX(settings->budget_symbols_bytes / 60, 1u);
    int64_t timeout_ms = (int64_t)(parcel->bytes / rate) * 2000 + INDEXING_MS;
    make_url(symbols, held, &url);
    struct http_call call = {.method = "POST",
                             .url = buffer_text(&url),
                             .headers = &type,
                             .header_count = 1,
                             .body_length = parcel->bytes,
                             .give = give,
                             .give_context = parcel,
                             .send_rate_bytes = rate};
    int r = agent_client_new(settings, (unsigned)MIN(timeout_ms, TIMEOUT_MAX_MS), ANSWER_BYTES_MAX,
                             &client, error);
    if (r < 0)
        return r;
    r = set_client(symbols, client) ? http_client_call(client, &call, &reply, error)
                                    : error_set(error, -ECANCELED, "The agent is shutting down.");
    set_client(symbols, NULL);
    http_client_free(client);
    *ret_final = !r && (reply.status == 400 || reply.status == 413 || reply.status == 422);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    return r;
}

/* A lease that isn't spoken of ends by itself, and the server asks again. */
static void note_result(struct agent_symbols *symbols, struct held_file *held, uint64_t bytes,
                        bool final, const struct error *error)
{
    struct agent_symbols_stats *stats = &symbols->stats;
    snprintf(stats->error, sizeof(stats->error), "%s", error->text);
    if (!error->code) {
        stats->sent++;
        stats->bytes += bytes;
        held_file_release(held);
        return;
    }
    stats->refused++;
    symbols_note_refusal(symbols, held->key, final);
    if (!final) {
        held_file_release(held);
        return;
    }
    snprintf(held->reason, sizeof(held->reason), "%s", error->text);
    held->state = HELD_REFUSED;
    close(held->fd);
    held->fd = -1;
}

static void send_one(struct agent_symbols *symbols, struct held_file *held)
{
    struct parcel parcel = {.file = {.fd = -1}, .debug = {.fd = -1}};
    struct error error = {0};
    bool final = true;
    int r = make_parcel(symbols->settings, held, &parcel, &error);
    if (r == -EMFILE || r == -ENFILE || r == -ENOMEM) /* temporary */
        final = false;
    if (!r)
        r = post(symbols, held, &parcel, &final, &error);
    if (!r)
        log_info("Uploaded the symbols of %s that the server requested: %llu KiB.", held->name,
                 (unsigned long long)(parcel.bytes >> 10));
    else if (r != -ECANCELED)
        log_warning("Symbol upload failed for %s: %s", held->name, error.text);
    pthread_mutex_lock(&symbols->lock);
    note_result(symbols, held, parcel.bytes, final, &error);
    pthread_mutex_unlock(&symbols->lock);
    parcel_release(&parcel);
    /* There may be another one to send. */
    if (symbols->control)
        agent_control_urge(symbols->control);
}

void *symbols_send_files(void *userdata)
{
    struct agent_symbols *symbols = userdata;
    pthread_setname_np(pthread_self(), "symbols");
    pthread_mutex_lock(&symbols->lock);
    while (!symbols->stop) {
        struct held_file *held = NULL;
        for (size_t i = 0; i < SYMBOLS_HELD_MAX && !held; i++)
            if (symbols->held[i].state == HELD_ORDERED)
                held = &symbols->held[i];
        if (!held) {
            pthread_cond_wait(&symbols->wake, &symbols->lock);
            continue;
        }
        /* From here on until the result, no other thread changes it. */
        held->state = HELD_SENDING;
        pthread_mutex_unlock(&symbols->lock);
        send_one(symbols, held);
        pthread_mutex_lock(&symbols->lock);
    }
    pthread_mutex_unlock(&symbols->lock);
    return NULL;
}
