// SPDX-License-Identifier: Apache-2.0
// Symbol requests of the server, and which of the requested files are available: see symbols.h.
// symbols_send.c uploads them.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/symbols_parts.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "profile/naming.h"

#define WANTED_NS 300000000000ll    /* after the server last said so */
#define HELD_NS 180000000000ll      /* a file that was not requested */
#define REFUSED_NS 86400000000000ll /* what will never be taken isn't offered again */
#define FAILED_NS 600000000000ll    /* nor, for a while, what might be */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* ---- with the lock held ---- */

static struct wanted_build *find_wanted(struct agent_symbols *symbols, const char *key)
{
    for (size_t i = 0; i < symbols->wanted_count; i++)
        if (!strcmp(symbols->wanted[i].key, key))
            return &symbols->wanted[i];
    return NULL;
}

static struct held_file *find_held(struct agent_symbols *symbols, const char *key)
{
    for (size_t i = 0; i < SYMBOLS_HELD_MAX; i++)
        if (symbols->held[i].state != HELD_NONE && !strcmp(symbols->held[i].key, key))
            return &symbols->held[i];
    return NULL;
}

static bool was_refused(const struct agent_symbols *symbols, const char *key, int64_t now_ns)
{
    for (size_t i = 0; i < SYMBOLS_REFUSED_MAX; i++)
        if (symbols->refused[i].until_ns > now_ns && !strcmp(symbols->refused[i].key, key))
            return true;
    return false;
}

void held_file_release(struct held_file *held)
{
    if (held->state == HELD_NONE)
        return;
    if (held->fd >= 0)
        close(held->fd);
    free(held->path);
    free(held->name);
    *held = (struct held_file){.fd = -1};
}

void symbols_note_refusal(struct agent_symbols *symbols, const char *key, bool final)
{
    struct refused_build *refused =
        &symbols->refused[symbols->refusal_count++ % SYMBOLS_REFUSED_MAX];
    snprintf(refused->key, sizeof(refused->key), "%s", key);
    refused->until_ns = monotonic_ns() + (final ? REFUSED_NS : FAILED_NS);
}

static void tidy(struct agent_symbols *symbols, int64_t now_ns)
{
    for (size_t i = symbols->wanted_count; i-- > 0;)
        if (now_ns - symbols->wanted[i].said_ns > WANTED_NS)
            symbols->wanted[i] = symbols->wanted[--symbols->wanted_count];
    for (size_t i = 0; i < SYMBOLS_HELD_MAX; i++) {
        struct held_file *held = &symbols->held[i];
        if (held->state == HELD_OFFERED && now_ns - held->since_ns > HELD_NS)
            held_file_release(held);
    }
}

/* ---- what is at hand ---- */

static bool is_sought(struct agent_symbols *symbols, const char *key, int64_t now_ns)
{
    return find_wanted(symbols, key) && !find_held(symbols, key) &&
           !was_refused(symbols, key, now_ns);
}

static bool hold(struct agent_symbols *symbols, const char *key, const char *path, const char *file)
{
    for (size_t i = 0; i < SYMBOLS_HELD_MAX; i++) {
        struct held_file *held = &symbols->held[i];
        if (held->state != HELD_NONE)
            continue;
        int fd = open(path, OPEN_FLAGS);
        if (fd < 0)
            return false;
        *held = (struct held_file){.state = HELD_OFFERED,
                                   .fd = fd,
                                   .path = memory_strdup(path),
                                   .name = memory_strdup(path_base(file)),
                                   .since_ns = monotonic_ns()};
        snprintf(held->key, sizeof(held->key), "%s", key);
        return true;
    }
    return false;
}

bool agent_symbols_look(struct agent_symbols *symbols, struct capture *capture,
                        const struct profile *profile)
{
    bool any = false;
    if (!symbols)
        return false;
    int64_t now_ns = monotonic_ns();
    pthread_mutex_lock(&symbols->lock);
    tidy(symbols, now_ns);
    for (uint32_t i = 1; symbols->wanted_count && i < profile->mapping_count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[i];
        char key[SYMBOL_KEY_BYTES];
        if (!symbol_key(profile_text(profile, mapping->build_id), key) ||
            !is_sought(symbols, key, now_ns))
            continue;
        const char *path = capture_locate(capture, profile, i);
        if (path)
            any |= hold(symbols, key, path, profile_text(profile, mapping->file));
    }
    pthread_mutex_unlock(&symbols->lock);
    return any;
}

/* ---- with the server ---- */

void agent_symbols_write(struct agent_symbols *symbols, struct json_writer *json)
{
    static const char *const states[] = {"", "have", "have", "sending", "refused"};
    bool any = false;
    if (!symbols)
        return;
    pthread_mutex_lock(&symbols->lock);
    tidy(symbols, monotonic_ns());
    for (size_t i = 0; i < SYMBOLS_HELD_MAX; i++) {
        struct held_file *held = &symbols->held[i];
        if (held->state == HELD_NONE)
            continue;
        if (!any) {
            json_write_key(json, "symbols");
            json_write_array(json);
        }
        any = true;
        json_write_object(json);
        json_member_text(json, "build_id", held->key);
        json_member_text(json, "state", states[held->state]);
        json_member_text(json, "reason", held->reason);
        json_write_object_end(json);
        if (held->state == HELD_REFUSED) /* the server knows now */
            held_file_release(held);
    }
    if (any)
        json_write_array_end(json);
    pthread_mutex_unlock(&symbols->lock);
}

static void note_wanted(struct agent_symbols *symbols, const char *key, int64_t now_ns)
{
    struct wanted_build *wanted = find_wanted(symbols, key);
    if (!wanted && symbols->wanted_count == SYMBOLS_WANTED_MAX)
        return;
    if (!wanted)
        wanted = &symbols->wanted[symbols->wanted_count++];
    snprintf(wanted->key, sizeof(wanted->key), "%s", key);
    wanted->said_ns = now_ns;
}

static void note_order(struct agent_symbols *symbols, const char *key)
{
    struct held_file *held = find_held(symbols, key);
    if (!held || held->state != HELD_OFFERED)
        return;
    held->state = HELD_ORDERED;
    symbols->stats.asked++;
    pthread_cond_signal(&symbols->wake);
}

/* A list of builds; those that are none are passed over. */
static int read_list(struct agent_symbols *symbols, struct json *json, bool orders)
{
    struct json_string text;
    char build_id[SYMBOL_KEY_BYTES], key[SYMBOL_KEY_BYTES];
    int64_t now_ns = monotonic_ns();
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = json_string(json, &text);
        if (r < 0 || text.length >= sizeof(build_id) || memchr(text.data, 0, text.length))
            continue;
        memcpy(build_id, text.data, text.length);
        build_id[text.length] = 0;
        if (!symbols || !symbol_key(build_id, key))
            continue;
        pthread_mutex_lock(&symbols->lock);
        if (orders)
            note_order(symbols, key);
        else
            note_wanted(symbols, key, now_ns);
        pthread_mutex_unlock(&symbols->lock);
    }
    return r;
}

int agent_symbols_read(struct agent_symbols *symbols, struct json *json)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "wanted"))
            r = read_list(symbols, json, false);
        else if (json_is(&key, "send"))
            r = read_list(symbols, json, true);
    return r;
}

struct agent_symbols_stats agent_symbols_stats(struct agent_symbols *symbols)
{
    struct agent_symbols_stats stats = {0};
    if (!symbols)
        return stats;
    pthread_mutex_lock(&symbols->lock);
    stats = symbols->stats;
    stats.wanted = symbols->wanted_count;
    pthread_mutex_unlock(&symbols->lock);
    return stats;
}

/* ---- lifecycle ---- */

int agent_symbols_start(const struct agent_settings *settings, const char *agent_id,
                        struct agent_control *control, struct agent_symbols **ret_symbols,
                        struct error *error)
{
    *ret_symbols = NULL;
    if (settings->symbols == SYMBOLS_NONE)
        return 0;
    struct agent_symbols *symbols = memory_zalloc(1, sizeof(*symbols));
    symbols->settings = settings;
    symbols->agent_id = agent_id;
    symbols->control = control;
    for (size_t i = 0; i < SYMBOLS_HELD_MAX; i++)
        symbols->held[i].fd = -1;
    pthread_mutex_init(&symbols->lock, NULL);
    pthread_cond_init(&symbols->wake, NULL);
    int r = -pthread_create(&symbols->thread, NULL, symbols_send_files, symbols);
    symbols->started = !r;
    if (r < 0) {
        agent_symbols_stop(symbols);
        return error_set_errno(error, r, "Failed to start a thread");
    }
    *ret_symbols = symbols;
    return 0;
}

void agent_symbols_stop(struct agent_symbols *symbols)
{
    if (!symbols)
        return;
    pthread_mutex_lock(&symbols->lock);
    symbols->stop = true;
    if (symbols->client)
        http_client_cancel(symbols->client);
    pthread_cond_signal(&symbols->wake);
    pthread_mutex_unlock(&symbols->lock);
    if (symbols->started)
        pthread_join(symbols->thread, NULL);
    for (size_t i = 0; i < SYMBOLS_HELD_MAX; i++)
        held_file_release(&symbols->held[i]);
    pthread_mutex_destroy(&symbols->lock);
    pthread_cond_destroy(&symbols->wake);
    free(symbols);
}
