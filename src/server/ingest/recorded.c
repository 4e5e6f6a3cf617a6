// SPDX-License-Identifier: Apache-2.0
// Recordings with the time of each sample: see recorded.h.

#include "server/ingest/recorded.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "format/otlp/otlp.h"
#include "io/source.h"
#include "server/ingest/receive.h"

#define DIRECTORY "recorded"
#define SUFFIX ".otlp.zst"
#define RECORDING_ID_MAX 24
#define HEX 16
#define TENANT_HEX 32
#define DAY_NS 86400000000000ll
#define DETAIL (PROFILE_LABELS | PROFILE_ADDRESSES | PROFILE_LINES | PROFILE_TIMES)

const char *const recorded_labels[] = {"thread", "tid", NULL};

static bool is_word(const char *text, size_t length)
{
    return length && strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") == length;
}

/* The third part; NULL when there is none. */
static const char *recording_of(const char *batch_id)
{
    if (!batch_id || strspn(batch_id, "0123456789abcdef") != HEX || batch_id[HEX] != '-' ||
        strspn(batch_id + HEX + 1, "0123456789abcdef") != HEX || batch_id[2 * HEX + 1] != '-')
        return NULL;
    const char *id = batch_id + 2 * HEX + 2;
    return is_word(id, strlen(id)) && strlen(id) < RECORDING_ID_MAX ? id : NULL;
}

bool recorded_is(const char *batch_id)
{
    return recording_of(batch_id) != NULL;
}

/* ---- what is kept ---- */

static bool is_kept(const char *key)
{
    for (const char *const *at = recorded_labels; *at; at++)
        if (!strcmp(*at, key))
            return true;
    return !strcmp(key, "state");
}

static void drop_labels(struct profile *profile)
{
    uint32_t sets = profile_label_set_count(profile);
    _cleanup_free_ uint32_t *moved = memory_zalloc(sets + 1u, sizeof(*moved));
    for (uint32_t set = 0; set < sets; set++) {
        struct profile_label kept[4];
        size_t count, found = 0;
        const struct profile_label *labels = profile_labels(profile, set, &count);
        for (size_t i = 0; i < count && found < ARRAY_LENGTH(kept); i++)
            if (is_kept(profile_text(profile, labels[i].key)))
                kept[found++] = labels[i];
        moved[set] = profile_label_set(profile, kept, found);
    }
    for (size_t i = 0; i < profile->samples.count; i++)
        profile->samples.labels[i] = moved[profile->samples.labels[i]];
}

static int compress(const struct buffer *plain, struct buffer *out, struct error *error)
{
    size_t bound = ZSTD_compressBound(plain->length);
    char *room = buffer_try_reserve(out, bound);
    if (!room)
        return error_set(error, -ENOMEM, "failed to allocate %zu bytes", bound);
    size_t length = ZSTD_compress(room, bound, plain->data, plain->length, 3);
    if (ZSTD_isError(length))
        return error_set(error, -EIO, "%s", ZSTD_getErrorName(length));
    out->length += length;
    return 0;
}

int recorded_make(struct ingest *ingest, const void *body, size_t length, uint64_t limit,
                  struct buffer *ret_kept, struct error *error)
{
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer plain = {0};
    struct source source;
    profile_init(&profile, DETAIL);
    int r = source_open_memory(&source, "recording", body, length, limit, error);
    if (r < 0)
        return r;
    const struct format *format = &format_otlp;
    r = receive_format(&source, &format, &profile, error);
    source_release(&source);
    if (r < 0 || !profile.samples.time_ns)
        return r;
    drop_labels(&profile);
    ingest_redact(ingest, &profile);
    otlp_write(&plain, &profile);
    return compress(&plain, ret_kept, error);
}

/* ---- files ---- */

struct kept_file {
    char name[RECORDED_NAME_BYTES];
    uint64_t bytes;
    int64_t modified_ns;
};

struct kept_list {
    struct kept_file *files;
    size_t count, capacity;
    uint64_t bytes;
};

/* Tenants can have any name. */
static void name_of(char *out, size_t room, const char *data, const char *tenant,
                    const char *recording, const char *batch_id)
{
    XXH128_hash_t hash = XXH3_128bits(tenant, strlen(tenant));
    snprintf(out, room, "%s/" DIRECTORY "/%016" PRIx64 "%016" PRIx64 "-%s-%.33s" SUFFIX, data,
             hash.high64, hash.low64, recording, batch_id);
}

/* Tenant by tenant, the oldest first. */
static int by_tenant(const void *left, const void *right)
{
    const struct kept_file *a = left, *b = right;
    int order = strncmp(a->name, b->name, TENANT_HEX);
    if (order)
        return order;
    if (a->modified_ns != b->modified_ns)
        return a->modified_ns < b->modified_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Those whose name begins so, in that order. */
static void list_files(const char *data, const char *prefix, struct kept_list *list)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" DIRECTORY, data);
    DIR *directory = opendir(path);
    struct dirent *entry;
    *list = (struct kept_list){0};
    while (directory && (entry = readdir(directory))) {
        struct stat found;
        size_t length = strlen(entry->d_name);
        if (length >= RECORDED_NAME_BYTES || strncmp(entry->d_name, prefix, strlen(prefix)) ||
            fstatat(dirfd(directory), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(found.st_mode))
            continue;
        array_reserve(list->files, list->capacity, list->count + 1);
        struct kept_file *file = &list->files[list->count++];
        snprintf(file->name, sizeof(file->name), "%s", entry->d_name);
        file->bytes = (uint64_t)found.st_size;
        file->modified_ns = found.st_mtim.tv_sec * 1000000000ll + found.st_mtim.tv_nsec;
        list->bytes += file->bytes;
    }
    if (directory)
        closedir(directory);
    if (list->count)
        qsort(list->files, list->count, sizeof(*list->files), by_tenant);
}

static void remove_file(const char *data, const struct kept_file *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" DIRECTORY "/%s", data, file->name);
    unlink(path);
}

/* The oldest of the tenant that takes most; count: none is left. */
static size_t find_victim(const struct kept_list *list)
{
    size_t victim = list->count;
    uint64_t most = 0;
    for (size_t i = 0; i < list->count;) {
        size_t first = list->count, next = i;
        uint64_t bytes = 0;
        for (; next < list->count &&
               !strncmp(list->files[next].name, list->files[i].name, TENANT_HEX);
             next++) {
            if (list->files[next].bytes && first == list->count)
                first = next;
            bytes += list->files[next].bytes;
        }
        if (bytes > most) {
            most = bytes;
            victim = first;
        }
        i = next;
    }
    return victim;
}

/* A file that is gone has no bytes. */
static void drop(const char *data, struct kept_list *list, size_t i, size_t *left)
{
    remove_file(data, &list->files[i]);
    list->bytes -= list->files[i].bytes;
    list->files[i].bytes = 0;
    --*left;
}

static void make_room(const char *data, uint64_t bytes, int64_t now_ns)
{
    struct kept_list list;
    list_files(data, "", &list);
    size_t left = list.count;
    for (size_t i = 0; i < list.count; i++)
        if (!list.files[i].bytes || list.files[i].modified_ns <= now_ns - RECORDED_DAYS * DAY_NS)
            drop(data, &list, i, &left);
    while (list.bytes + bytes > RECORDED_BYTES_MAX || left >= RECORDED_FILES_MAX) {
        size_t victim = find_victim(&list);
        if (victim == list.count)
            break;
        drop(data, &list, victim, &left);
    }
    free(list.files);
}

void recorded_keep(const char *data, const char *tenant, const char *batch_id,
                   const struct buffer *kept, int64_t now_ns)
{
    const char *recording = recording_of(batch_id);
    struct error error = {0};
    char path[PATH_MAX];
    if (!data || !recording || !kept->length || kept->length > RECORDED_BYTES_MAX)
        return;
    snprintf(path, sizeof(path), "%s/" DIRECTORY, data);
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        log_warning("Failed to create %s: %m", path);
        return;
    }
    make_room(data, kept->length, now_ns);
    name_of(path, sizeof(path), data, tenant, recording, batch_id);
    if (file_write_atomic(path, kept->data, kept->length, &error) < 0)
        log_warning("The times of the recording %s are not kept: %s", recording, error.text);
}

static void tenant_prefix(char *out, size_t room, const char *tenant, const char *recording)
{
    XXH128_hash_t hash = XXH3_128bits(tenant, strlen(tenant));
    snprintf(out, room, "%016" PRIx64 "%016" PRIx64 "-%s%s", hash.high64, hash.low64, recording,
             *recording ? "-" : "");
}

static int read_file(const char *data, const struct kept_file *file, uint64_t limit,
                     struct profile *profile, struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0};
    struct source source;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" DIRECTORY "/%s", data, file->name);
    int r = file_read(path, RECORDED_BYTES_MAX, &content, error);
    if (!r)
        r = source_open_memory(&source, file->name, content.data, content.length, limit, error);
    if (r < 0)
        return r;
    const struct format *format = &format_otlp;
    r = content.length ? receive_format(&source, &format, profile, error) : -EBADMSG;
    source_release(&source);
    /* The client isn't to blame. */
    return r == -EBADMSG || r == -EINVAL || r == -ENOTSUP
               ? error_set(error, -EIO, "The file %s of the recording is damaged.", file->name)
               : r;
}

int recorded_read(const char *data, const char *tenant, const char *id, uint64_t limit,
                  struct profile *profile, struct error *error)
{
    char prefix[RECORDED_NAME_BYTES];
    struct kept_list list = {0};
    int r = 0;
    if (data && is_word(id, strlen(id)) && strlen(id) < RECORDING_ID_MAX) {
        tenant_prefix(prefix, sizeof(prefix), tenant, id);
        list_files(data, prefix, &list);
    }
    if (!list.count)
        r = error_set(error, -ENOENT, "No times of samples are kept of this recording.");
    for (size_t i = 0; i < list.count && !r; i++)
        r = read_file(data, &list.files[i], limit, profile, error);
    free(list.files);
    return r;
}

size_t recorded_forget(const char *data, const char *tenant)
{
    char prefix[RECORDED_NAME_BYTES];
    struct kept_list list = {0};
    if (!data)
        return 0;
    tenant_prefix(prefix, sizeof(prefix), tenant, "");
    list_files(data, prefix, &list);
    for (size_t i = 0; i < list.count; i++)
        remove_file(data, &list.files[i]);
    free(list.files);
    return list.count;
}
