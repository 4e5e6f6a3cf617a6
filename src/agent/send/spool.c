// SPDX-License-Identifier: Apache-2.0
// A directory of batches, and a few in memory while the disk takes none: see spool.h.

#include "agent/send/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/send/spool_file.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/memory.h"

#define BLOCK_BYTES 4096    /* a file takes whole ones */
#define ASIDE_SHARE 8       /* of the limit for each directory of what was set aside */
#define ASIDE_COUNT_MAX 256 /* files in it */
#define DEFER_DOUBLINGS_MAX 16
#define DAMAGED "damaged"
#define REFUSED "refused"

struct batch {
    char id[SPOOL_ID_BYTES];
    uint64_t bytes;   /* that it takes, on disk or in memory */
    int64_t defer_ns; /* others go before it until then */
    unsigned deferrals;
    int64_t born_ns; /* by the steady clock; before it began for what an earlier process left */
    char *body;      /* NULL: it is on disk */
    size_t length;   /* of the body */
};

struct spool {
    struct spool_options options;
    char *folder;
    int lock_fd; /* -1: no directory yet */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch *batches; /* by id */
    size_t count, capacity;
    char sending[SPOOL_ID_BYTES]; /* what spool_next gave; never dropped meanwhile */
    bool woken;
    struct spool_stats stats;
};

/* Ids of files to remove once the lock is released, each with its NUL. */
struct doomed {
    struct buffer ids;
};

static bool is_id(const char *text, size_t length)
{
    if (!length || length >= SPOOL_ID_BYTES)
        return false;
    return strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") >=
           length;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct batch *)a)->id, ((const struct batch *)b)->id);
}

static uint64_t disk_bytes(uint64_t file_bytes)
{
    return (file_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* ---- the list; with the lock held ---- */

static struct batch *find(struct spool *spool, const char *id)
{
    struct batch key;
    snprintf(key.id, sizeof(key.id), "%s", id);
    return spool->count ? bsearch(&key, spool->batches, spool->count, sizeof(key), compare) : NULL;
}

static void count_bytes(struct spool *spool, const struct batch *batch, bool in)
{
    uint64_t *bytes = batch->body ? &spool->stats.memory_bytes : &spool->stats.bytes;
    uint64_t *count = batch->body ? &spool->stats.memory_batches : &spool->stats.batches;
    *bytes += in ? batch->bytes : -batch->bytes;
    *count += in ? 1 : -1ull;
}

/* Nearly always it is the latest. */
static void insert(struct spool *spool, const struct batch *batch)
{
    array_reserve(spool->batches, spool->capacity, spool->count + 1);
    size_t at = spool->count++;
    while (at && compare(batch, &spool->batches[at - 1]) < 0)
        at--;
    memmove(spool->batches + at + 1, spool->batches + at, (spool->count - 1 - at) * sizeof(*batch));
    spool->batches[at] = *batch;
    count_bytes(spool, batch, true);
}

static void take_out(struct spool *spool, struct batch *batch, struct doomed *doomed)
{
    size_t at = (size_t)(batch - spool->batches);
    count_bytes(spool, batch, false);
    if (!batch->body && doomed)
        buffer_add(&doomed->ids, batch->id, strlen(batch->id) + 1);
    free(batch->body);
    memmove(batch, batch + 1, (--spool->count - at) * sizeof(*batch));
}

static void drop(struct spool *spool, struct batch *batch, uint64_t *counter, struct doomed *doomed)
{
    take_out(spool, batch, doomed);
    ++*counter;
    spool->stats.dropped++;
}

/* The first that may go: of those in memory, or of all. */
static struct batch *oldest(struct spool *spool, bool in_memory)
{
    for (size_t i = 0; i < spool->count; i++)
        if ((!in_memory || spool->batches[i].body) &&
            strcmp(spool->batches[i].id, spool->sending) != 0)
            return &spool->batches[i];
    return NULL;
}

static void drop_old(struct spool *spool, struct doomed *doomed)
{
    int64_t limit = monotonic_ns() - spool->options.age_ns;
    for (size_t i = 0; i < spool->count;) {
        struct batch *batch = &spool->batches[i];
        /* Later batches are younger, unless the clock was set. */
        if (batch->born_ns >= limit)
            return;
        if (!strcmp(batch->id, spool->sending))
            i++;
        else
            drop(spool, batch, &spool->stats.dropped_old, doomed);
    }
}

static void keep_bounds(struct spool *spool, struct doomed *doomed)
{
    struct spool_stats *stats = &spool->stats;
    struct batch *batch;
    drop_old(spool, doomed);
    while ((stats->bytes > spool->options.limit_bytes || spool->count > SPOOL_BATCHES_MAX) &&
           (batch = oldest(spool, false)))
        drop(spool, batch, &stats->dropped_full, doomed);
    while (stats->memory_bytes > spool->options.memory_bytes && (batch = oldest(spool, true)))
        drop(spool, batch, &stats->dropped_memory, doomed);
}

static void remove_doomed(struct spool *spool, struct doomed *doomed)
{
    for (size_t at = 0; at < doomed->ids.length; at += strlen(doomed->ids.data + at) + 1)
        spool_file_remove(spool->folder, doomed->ids.data + at);
    buffer_release(&doomed->ids);
}

/* ---- the directory ---- */

/* Whether the disk may take it another time. */
static bool may_pass(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -EIO || code == -EROFS ||
           code == -ENOENT || code == -ESTALE || code == -EMFILE || code == -ENFILE ||
           code == -ENOMEM || code == -ENODEV || code == -ENXIO || code == -ETIMEDOUT;
}

/* Makes the directory and takes its lock. */
static int prepare_folder(struct spool *spool, struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (mkdir(spool->folder, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, -errno, "Failed to create the spool %s", spool->folder);
    buffer_printf(&path, "%s/lock", spool->folder);
    int fd = open(buffer_text(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(error, -errno, "Failed to use the spool %s", spool->folder);
    /* Of the process, so that children don't hold it when it was killed. */
    if (fcntl(fd, F_SETLK, &lock) < 0) {
        int code = -errno;
        close(fd);
        return code == -EAGAIN || code == -EACCES
                   ? error_set(error, -EBUSY,
                               "The spool %s is in use by another agent: stop that agent, or use "
                               "another directory with --data.",
                               spool->folder)
                   : error_set_errno(error, code, "Failed to lock the spool %s", spool->folder);
    }
    spool->lock_fd = fd;
    return 0;
}

static bool has_suffix(const char *name, size_t length, const char *suffix)
{
    size_t suffix_length = strlen(suffix);
    return length > suffix_length && !strcmp(name + length - suffix_length, suffix);
}

/* Files of an earlier process: batches, and incomplete files, which were never acknowledged. */
static int take_stock(struct spool *spool, struct error *error)
{
    DIR *folder = opendir(spool->folder);
    struct dirent *entry;
    struct stat found;
    int64_t now_ns = clock_ns(CLOCK_REALTIME), steady_ns = monotonic_ns();
    if (!folder)
        return error_set_errno(error, -errno, "Failed to read the spool %s", spool->folder);
    while ((entry = readdir(folder))) {
        size_t length = strlen(entry->d_name);
        if (has_suffix(entry->d_name, length, SPOOL_TEMPORARY))
            unlinkat(dirfd(folder), entry->d_name, 0);
        if (!has_suffix(entry->d_name, length, SPOOL_SUFFIX) ||
            !is_id(entry->d_name, length - strlen(SPOOL_SUFFIX)) ||
            fstatat(dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(found.st_mode))
            continue;
        int64_t age_ns = now_ns - (found.st_mtim.tv_sec * 1000000000ll + found.st_mtim.tv_nsec);
        struct batch batch = {.bytes = disk_bytes((uint64_t)found.st_size),
                              .born_ns = steady_ns - MAX(age_ns, 0)};
        snprintf(batch.id, sizeof(batch.id), "%.*s", (int)(length - strlen(SPOOL_SUFFIX)),
                 entry->d_name);
        array_reserve(spool->batches, spool->capacity, spool->count + 1);
        spool->batches[spool->count++] = batch;
        count_bytes(spool, &batch, true);
    }
    closedir(folder);
    if (spool->count)
        qsort(spool->batches, spool->count, sizeof(*spool->batches), compare);
    spool->stats.left = spool->count;
    return 0;
}

/* ---- lifecycle ---- */

static struct spool *make(const struct spool_options *options)
{
    struct spool *spool = memory_zalloc(1, sizeof(*spool));
    pthread_mutex_init(&spool->lock, NULL);
    pthread_cond_init(&spool->changed, NULL);
    spool->folder = memory_strdup(options->folder);
    spool->lock_fd = -1;
    spool->options = *options;
    spool->options.folder = spool->folder;
    if (!spool->options.limit_bytes)
        spool->options.limit_bytes = SPOOL_BYTES_DEFAULT;
    if (!spool->options.age_ns)
        spool->options.age_ns = SPOOL_AGE_DEFAULT_NS;
    if (!spool->options.memory_bytes)
        spool->options.memory_bytes = SPOOL_MEMORY_DEFAULT;
    return spool;
}

int spool_open(const struct spool_options *options, struct spool **ret_spool, struct error *error)
{
    struct spool *spool = make(options);
    struct doomed doomed = {0};
    int r = prepare_folder(spool, error);
    bool usable = !r || may_pass(r);
    if (r < 0 && usable) {
        log_warning("%s Profiles wait in memory until it is available.", error->text);
        snprintf(spool->stats.trouble, sizeof(spool->stats.trouble), "%s", error->text);
    }
    /* One that is read-only may still hold what is to be sent. */
    if (usable && access(options->folder, R_OK) == 0)
        usable = (r = take_stock(spool, error)) == 0;
    if (!usable) {
        spool_close(spool);
        return r;
    }
    keep_bounds(spool, &doomed);
    remove_doomed(spool, &doomed);
    *ret_spool = spool;
    return 0;
}

/* Writes the first batch that is only in memory. Returns 1, 0 when there is none, or a negative
 * errno. */
static int save_one(struct spool *spool)
{
    _cleanup_buffer_ struct buffer body = {0};
    char id[SPOOL_ID_BYTES];
    struct batch *batch = NULL;
    pthread_mutex_lock(&spool->lock);
    for (size_t i = 0; i < spool->count && !batch; i++)
        if (spool->batches[i].body)
            batch = &spool->batches[i];
    if (batch) {
        memcpy(id, batch->id, sizeof(id));
        buffer_add(&body, batch->body, batch->length);
    }
    pthread_mutex_unlock(&spool->lock);
    if (!batch)
        return 0;
    int r = spool_file_write(spool->folder, id, body.data, body.length, clock_ns(CLOCK_REALTIME));
    if (r < 0)
        return r;
    pthread_mutex_lock(&spool->lock);
    batch = find(spool, id);
    if (batch) {
        count_bytes(spool, batch, false);
        free(batch->body);
        batch->body = NULL;
        batch->bytes = disk_bytes(SPOOL_HEADER_BYTES + body.length);
        count_bytes(spool, batch, true);
    }
    pthread_mutex_unlock(&spool->lock);
    if (!batch) /* it was sent or dropped meanwhile */
        spool_file_remove(spool->folder, id);
    return 1;
}

void spool_close(struct spool *spool)
{
    if (!spool)
        return;
    while (spool->lock_fd >= 0 && save_one(spool) > 0)
        ;
    for (size_t i = 0; i < spool->count; i++)
        free(spool->batches[i].body);
    if (spool->lock_fd >= 0)
        close(spool->lock_fd);
    pthread_mutex_destroy(&spool->lock);
    pthread_cond_destroy(&spool->changed);
    free(spool->batches);
    free(spool->folder);
    free(spool);
}

/* ---- in ---- */

/* To disk, in a directory that may have gone away. */
static int write_batch(struct spool *spool, const char *id, const void *body, size_t length,
                       struct error *error)
{
    int r = spool->lock_fd < 0 ? prepare_folder(spool, error) : 0;
    if (r < 0)
        return r;
    r = spool_file_write(spool->folder, id, body, length, clock_ns(CLOCK_REALTIME));
    if (r == -ENOENT) { /* the directory was removed, and our lock with it */
        close(spool->lock_fd);
        spool->lock_fd = -1;
        r = prepare_folder(spool, error);
        if (!r)
            r = spool_file_write(spool->folder, id, body, length, clock_ns(CLOCK_REALTIME));
    }
    return r < 0 ? error_set_errno(error, r, "Failed to write to the spool %s", spool->folder) : 0;
}

/* With the lock held: said once per trouble. */
static void note_trouble(struct spool *spool, const char *text)
{
    char *trouble = spool->stats.trouble;
    if (*text && !*trouble)
        log_warning("%s Profiles wait in memory; the oldest are dropped.", text);
    else if (!*text && *trouble)
        log_info("Writing to the spool %s works again.", spool->folder);
    snprintf(trouble, sizeof(spool->stats.trouble), "%s", text);
}

/* A full disk has room for the new when the oldest that waits there goes. With the lock held. */
static bool give_way(struct spool *spool, struct doomed *doomed)
{
    struct batch *batch = oldest(spool, false);
    if (spool->stats.memory_bytes <= spool->options.memory_bytes || !batch || batch->body)
        return false;
    drop(spool, batch, &spool->stats.dropped_full, doomed);
    return true;
}

static void save_all(struct spool *spool, bool disk_full)
{
    for (bool again = true; again;) {
        struct doomed doomed = {0};
        int r;
        while ((r = save_one(spool)) > 0)
            ;
        pthread_mutex_lock(&spool->lock);
        again = r < 0 && disk_full && give_way(spool, &doomed);
        pthread_mutex_unlock(&spool->lock);
        remove_doomed(spool, &doomed);
    }
}

int spool_put(struct spool *spool, const char *batch_id, const void *body, size_t length,
              struct error *error)
{
    struct doomed doomed = {0};
    struct batch batch = {.bytes = disk_bytes(SPOOL_HEADER_BYTES + length),
                          .born_ns = monotonic_ns()};
    struct error trouble = {0};
    if (!is_id(batch_id, strlen(batch_id)) || length > SPOOL_BODY_BYTES_MAX)
        return error_set(error, -EINVAL, "The batch %.60s of %zu bytes is invalid for the spool.",
                         batch_id, length);
    snprintf(batch.id, sizeof(batch.id), "%s", batch_id);
    int r = write_batch(spool, batch_id, body, length, &trouble);
    if (r < 0) {
        batch.body = memory_alloc(length + 1);
        memcpy(batch.body, body, length);
        batch.bytes = batch.length = length;
    }
    pthread_mutex_lock(&spool->lock);
    note_trouble(spool, trouble.text);
    insert(spool, &batch);
    spool->stats.put++;
    bool waits_in_memory = spool->stats.memory_batches > 0;
    pthread_mutex_unlock(&spool->lock);
    bool full = r == -ENOSPC || r == -EDQUOT;
    if (waits_in_memory && (!r || full))
        save_all(spool, full);
    pthread_mutex_lock(&spool->lock);
    keep_bounds(spool, &doomed);
    pthread_cond_broadcast(&spool->changed);
    pthread_mutex_unlock(&spool->lock);
    remove_doomed(spool, &doomed);
    return r < 0;
}

/* ---- out ---- */

static struct batch *next_due(struct spool *spool)
{
    int64_t now = monotonic_ns();
    for (size_t i = 0; i < spool->count; i++)
        if (spool->batches[i].defer_ns <= now)
            return &spool->batches[i];
    return NULL;
}

/* With the lock held: waits until there is a batch. */
static void wait_for_batch(struct spool *spool, int timeout_ms)
{
    int64_t until_ns = monotonic_ns() + timeout_ms * 1000000ll;
    while (!next_due(spool) && !spool->woken)
        if (condition_wait_until(&spool->changed, &spool->lock, until_ns))
            break;
}

/* It can't be read now, and may be the next time. */
static bool is_passing(int code)
{
    return code == -EMFILE || code == -ENFILE || code == -ENOMEM || code == -EINTR ||
           code == -EAGAIN || code == -ETIMEDOUT;
}

/* No other batch goes before it, and its reader shouldn't come back at once. */
static void wait_in_vain(struct spool *spool, int timeout_ms)
{
    int64_t until_ns = monotonic_ns() + timeout_ms * 1000000ll;
    pthread_mutex_lock(&spool->lock);
    spool->sending[0] = '\0';
    while (!spool->woken)
        if (condition_wait_until(&spool->changed, &spool->lock, until_ns))
            break;
    pthread_mutex_unlock(&spool->lock);
}

/* The file is not what was written, or is gone. */
static void damaged(struct spool *spool, const char *id, int code)
{
    pthread_mutex_lock(&spool->lock);
    struct batch *batch = find(spool, id);
    if (batch) {
        take_out(spool, batch, NULL);
        spool->stats.damaged++;
    }
    spool->sending[0] = '\0';
    pthread_mutex_unlock(&spool->lock);
    if (batch)
        log_warning("The batch %s in %s is damaged and was set aside: %s.", id, spool->folder,
                    code == -EBADMSG ? "its checksum is wrong" : strerror(-code));
    spool_file_set_aside(spool->folder, id, DAMAGED, spool->options.limit_bytes / ASIDE_SHARE,
                         ASIDE_COUNT_MAX);
}

int spool_next(struct spool *spool, int timeout_ms, char ret_id[SPOOL_ID_BYTES],
               struct buffer *ret_body)
{
    for (;;) {
        struct doomed doomed = {0};
        pthread_mutex_lock(&spool->lock);
        bool loaded = false;
        wait_for_batch(spool, timeout_ms);
        drop_old(spool, &doomed);
        struct batch *batch = next_due(spool);
        bool found = batch;
        if (found) {
            memcpy(ret_id, batch->id, SPOOL_ID_BYTES);
            memcpy(spool->sending, batch->id, SPOOL_ID_BYTES);
            loaded = batch->body != NULL;
            ret_body->length = 0;
            if (loaded)
                buffer_add(ret_body, batch->body, batch->length);
        }
        pthread_mutex_unlock(&spool->lock);
        remove_doomed(spool, &doomed);
        if (!found || loaded)
            return found;
        int r = spool_file_read(spool->folder, ret_id, ret_body);
        if (!r)
            return 1;
        if (is_passing(r)) {
            wait_in_vain(spool, timeout_ms);
            return 0;
        }
        damaged(spool, ret_id, r);
        timeout_ms = 0;
    }
}

void spool_done(struct spool *spool, const char *batch_id, bool refused)
{
    struct doomed doomed = {0};
    bool on_disk = false;
    pthread_mutex_lock(&spool->lock);
    struct batch *batch = find(spool, batch_id);
    if (batch) {
        on_disk = !batch->body;
        take_out(spool, batch, refused ? NULL : &doomed);
        spool->stats.sent += !refused;
        spool->stats.refused += refused;
    }
    spool->sending[0] = '\0';
    pthread_mutex_unlock(&spool->lock);
    remove_doomed(spool, &doomed);
    if (refused && on_disk)
        spool_file_set_aside(spool->folder, batch_id, REFUSED,
                             spool->options.limit_bytes / ASIDE_SHARE, ASIDE_COUNT_MAX);
}

void spool_defer(struct spool *spool, const char *batch_id, int64_t wait_ns, int64_t longest_ns)
{
    pthread_mutex_lock(&spool->lock);
    struct batch *batch = find(spool, batch_id);
    if (batch) {
        unsigned doublings = MIN(batch->deferrals++, (unsigned)DEFER_DOUBLINGS_MAX);
        batch->defer_ns = monotonic_ns() + MIN(wait_ns << doublings, longest_ns);
    }
    spool->sending[0] = '\0';
    pthread_mutex_unlock(&spool->lock);
}

void spool_restore(struct spool *spool, const char *batch_id)
{
    pthread_mutex_lock(&spool->lock);
    struct batch *batch = find(spool, batch_id);
    if (batch) {
        batch->deferrals -= batch->deferrals > 0;
        batch->defer_ns = 0;
    }
    pthread_mutex_unlock(&spool->lock);
}

void spool_wake(struct spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    spool->woken = true;
    pthread_cond_broadcast(&spool->changed);
    pthread_mutex_unlock(&spool->lock);
}

struct spool_stats spool_stats(struct spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    struct spool_stats stats = spool->stats;
    stats.batches = spool->count;
    int64_t now = monotonic_ns();
    for (size_t i = 0; i < spool->count; i++)
        stats.deferred += spool->batches[i].defer_ns > now;
    pthread_mutex_unlock(&spool->lock);
    return stats;
}
