// SPDX-License-Identifier: Apache-2.0
// Deletes files that are older than the retention of their class, but for pinned ones, and the
// oldest files above the disk limit, pinned ones last of their tier. A clock jump would make
// everything old at once, so retention stops if the clock disagrees with its last run, which a file
// of the directory records, or with the newest data.

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/embedded/embedded.h"

#define STATE_FILE "retention"
#define SAVE_NS 60000000000ll

/* ---- what is known of the time ---- */

static void state_path(const struct embedded *store, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/" STATE_FILE, store->directory);
}

/* A file that isn't there, or is damaged, says nothing. */
void embedded_load_retention(struct embedded *store)
{
    char path[PATH_MAX];
    _cleanup_buffer_ struct buffer content = {0};
    long long ran = 0, resumed = 0;
    state_path(store, path);
    if (file_read(path, 256, &content, NULL) >= 0 &&
        sscanf(buffer_text(&content), "ran %lld resumed %lld", &ran, &resumed) == 2) {
        store->ran_ns = ran;
        store->resumed_ns = resumed;
    }
}

static int save(struct embedded *store, struct error *error)
{
    char path[PATH_MAX], text[96];
    state_path(store, path);
    int length = snprintf(text, sizeof(text), "ran %lld resumed %lld\n", (long long)store->ran_ns,
                          (long long)store->resumed_ns);
    store->saved_ns = monotonic_ns();
    return file_write_atomic(path, text, (size_t)length, error);
}

/* The end of the latest day with data; 0: there is none. */
static int64_t newest_ns(const struct file_list *list)
{
    int64_t newest = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->files[i]->tier == STORE_RAW && !list->files[i]->gone)
            newest = MAX(newest, list->files[i]->to_ns);
    return newest;
}

static bool is_expired(struct embedded *store, const struct file *file, int64_t now)
{
    unsigned days = embedded_class(store, file->class_name)->days[file->tier];
    return !file->gone && days && file->to_ns <= now - days * DAY_NS &&
           !embedded_is_pinned(store, file);
}

static void time_text(int64_t time_ns, char text[32])
{
    time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M", &tm))
        snprintf(text, 32, "-");
}

static void hold(struct embedded *store, int64_t now, int64_t known, const char *what)
{
    char clock[32], other[32];
    time_text(now, clock);
    time_text(known, other);
    pthread_mutex_lock(&store->lock);
    if (!store->held[0]) /* said once, not every minute anew */
        snprintf(store->held, sizeof(store->held),
                 "Retention is stopped: the clock reads %s UTC, more than %lld hours from %s (%s). "
                 "Correct the clock, or continue with `assay store retention resume`.",
                 clock, (long long)(store->clock_limit_ns / 3600000000000ll), what, other);
    pthread_mutex_unlock(&store->lock);
}

static bool is_far(const struct embedded *store, int64_t a, int64_t b)
{
    int64_t apart;
    return __builtin_sub_overflow(MAX(a, b), MIN(a, b), &apart) || apart > store->clock_limit_ns;
}

/* Whether files may be removed by what the clock says. */
static bool trusts_clock(struct embedded *store, const struct file_list *list, int64_t now)
{
    int64_t newest = newest_ns(list), known = MAX(newest, store->resumed_ns);
    bool expires = false;
    for (size_t i = 0; i < list->count; i++)
        expires |= is_expired(store, list->files[i], now);
    if (store->clock_limit_ns && list->count) {
        if (store->ran_ns && is_far(store, now, store->ran_ns)) {
            hold(store, now, store->ran_ns, "its last run");
            return false;
        }
        if (expires && newest && now > known && is_far(store, now, known)) {
            hold(store, now, known, known == newest ? "the newest data" : "the last resumption");
            return false;
        }
    }
    pthread_mutex_lock(&store->lock);
    store->held[0] = '\0';
    pthread_mutex_unlock(&store->lock);
    store->ran_ns = now;
    if (!store->saved_ns || monotonic_ns() - store->saved_ns > SAVE_NS)
        save(store, NULL); /* on a full disk the next round will do */
    return true;
}

bool embedded_retention_held(struct embedded *store, char text[static ERROR_TEXT_BYTES])
{
    pthread_mutex_lock(&store->lock);
    snprintf(text, ERROR_TEXT_BYTES, "%s", store->held);
    pthread_mutex_unlock(&store->lock);
    return *text;
}

int embedded_resume_retention(struct store *base, struct error *error)
{
    struct embedded *store = embedded_of(base);
    if (store->read_only)
        return error_set(error, -EROFS, "The store is open read-only.");
    pthread_mutex_lock(&store->maintenance);
    store->ran_ns = store->resumed_ns = embedded_now(store);
    pthread_mutex_lock(&store->lock);
    store->held[0] = '\0';
    pthread_mutex_unlock(&store->lock);
    int r = save(store, error);
    pthread_mutex_unlock(&store->maintenance);
    return r;
}

/* ---- age ---- */

static void note(struct embedded *store, const char *text)
{
    if (store->note)
        store->note(store->note_context, text);
}

static void remove_expired(struct embedded *store, struct file *file)
{
    char text[PATH_MAX + 128], end[32];
    time_text(file->to_ns, end);
    snprintf(text, sizeof(text),
             "Retention deleted %s: its period ended %s UTC, and the retention is %u days.",
             file->path, end, embedded_class(store, file->class_name)->days[file->tier]);
    embedded_remove(store, file);
    note(store, text);
    pthread_mutex_lock(&store->lock);
    store->stats.expired_files++;
    pthread_mutex_unlock(&store->lock);
}

void embedded_expire(struct embedded *store)
{
    struct file_list list = embedded_files(store, NULL, INT64_MIN, INT64_MAX);
    int64_t now = embedded_now(store);
    if (trusts_clock(store, &list, now))
        for (size_t i = 0; i < list.count; i++)
            if (is_expired(store, list.files[i], now))
                remove_expired(store, list.files[i]);
    embedded_release(store, &list);
}

/* ---- the disk limit ---- */

/* The finest tier's oldest file, pinned ones last, but never the one that is being written to. */
static struct file *to_shed(struct embedded *store, const struct file_list *list)
{
    struct file *oldest = NULL;
    bool oldest_pinned = false;
    int64_t now = embedded_now(store);
    for (size_t i = 0; i < list->count; i++) {
        struct file *file = list->files[i];
        if (file->gone || file->to_ns > now)
            continue;
        bool pinned = embedded_is_pinned(store, file);
        if (!oldest || file->tier < oldest->tier ||
            (file->tier == oldest->tier &&
             (pinned != oldest_pinned ? oldest_pinned : file->from_ns < oldest->from_ns))) {
            oldest = file;
            oldest_pinned = pinned;
        }
    }
    return oldest;
}

void embedded_keep_to_disk_limit(struct embedded *store)
{
    if (!store->disk_limit_bytes)
        return;
    struct file_list list = embedded_files(store, NULL, INT64_MIN, INT64_MAX);
    uint64_t bytes = 0;
    for (size_t i = 0; i < list.count; i++)
        bytes += file_bytes(list.files[i]);
    struct file *file;
    while (bytes > store->disk_limit_bytes && (file = to_shed(store, &list))) {
        uint64_t size = file_bytes(file);
        _cleanup_buffer_ struct buffer pins = {0};
        embedded_lose_pins(store, file, &pins);
        embedded_remove(store, file);
        bytes -= MIN(bytes, size);
        embedded_problem(store,
                         "%s was deleted early to stay below the disk limit of %llu MiB%s%s.",
                         file->path, (unsigned long long)(store->disk_limit_bytes >> 20),
                         pins.length ? "; dropped pins: " : "", buffer_text(&pins));
        pthread_mutex_lock(&store->lock);
        store->stats.shed_files++;
        store->shed[file->tier] = true;
        if (file->tier == STORE_RAW)
            store->stats.shed_until_ns = MAX(store->stats.shed_until_ns, file->to_ns);
        pthread_mutex_unlock(&store->lock);
    }
    pthread_mutex_lock(&store->lock);
    store->disk_full = bytes > store->disk_limit_bytes;
    pthread_mutex_unlock(&store->lock);
    embedded_release(store, &list);
}
