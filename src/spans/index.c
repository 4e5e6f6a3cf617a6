// SPDX-License-Identifier: Apache-2.0
// Opens and closes the index of spans, and knows its segments.

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "spans/index_parts.h"

#define DIRECTORY "spans"
#define SUFFIX ".spans"
#define SEGMENT_SPANS_DEFAULT 131072
#define TENANT_BYTES 65
#define RECENT_NS 60000000000ll /* how long a failed write is a problem */
#define SEGMENT_PART_BYTES 512  /* 16 segments of spans of 32 bytes */

int64_t index_now(const struct span_index *index)
{
    return index->options.now ? index->options.now(index->options.now_context)
                              : clock_ns(CLOCK_REALTIME);
}

struct span_tenant *index_tenant(struct span_index *index, const char *name)
{
    for (size_t i = 0; i < index->tenant_count; i++)
        if (!strcmp(index->tenants[i].name, name))
            return &index->tenants[i];
    array_reserve(index->tenants, index->tenant_capacity, index->tenant_count + 1);
    struct span_tenant *tenant = &index->tenants[index->tenant_count++];
    *tenant = (struct span_tenant){.name = memory_strdup(name)};
    return tenant;
}

struct segment *index_segment(struct span_tenant *tenant, uint64_t number)
{
    for (size_t i = 0; i < tenant->count; i++)
        if (tenant->segments[i].number == number)
            return &tenant->segments[i];
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* NNNNNNNNNNNN.spans; temporary files of a crash are removed. */
static int find_segment(struct span_index *index, struct span_tenant *tenant, const char *name,
                        struct error *error)
{
    char path[PATH_MAX], *end;
    struct segment segment = {.fd = -1, .full = true};
    snprintf(path, sizeof(path), "%s/%s/%s", index->directory, tenant->name, name);
    segment.number = strtoull(name, &end, 10);
    if (!isdigit((unsigned char)*name) || strcmp(end, SUFFIX)) {
        if (strstr(name, SUFFIX) && !index->options.read_only)
            unlink(path);
        return 0;
    }
    struct error nothing = {0};
    int r = segment_examine(path, !index->options.read_only, &segment, &nothing);
    if (r == -EBADMSG) { /* the others serve */
        if (!index->options.read_only)
            log_error("%s Remove it if it isn't needed.", nothing.text);
        array_reserve(tenant->unreadable, tenant->unreadable_capacity,
                      tenant->unreadable_count + 1);
        tenant->unreadable[tenant->unreadable_count++] = memory_strdup(path);
        index->next_number = MAX(index->next_number, segment.number + 1);
        return 0;
    }
    if (r < 0)
        return error_set(error, r, "%s", nothing.text);
    if (segment.damaged && !index->options.read_only)
        log_error("%s is damaged in %llu places: the spans there are lost.", path,
                  (unsigned long long)segment.damaged);
    index->next_number = MAX(index->next_number, segment.number + 1);
    array_reserve(tenant->segments, tenant->capacity, tenant->count + 1);
    tenant->segments[tenant->count++] = segment;
    return 0;
}

static int find_segments(struct span_index *index, const char *name, struct error *error)
{
    char path[PATH_MAX];
    struct dirent *entry;
    if (*name == '.' || strlen(name) >= TENANT_BYTES)
        return 0;
    snprintf(path, sizeof(path), "%s/%s", index->directory, name);
    DIR *directory = opendir(path);
    if (!directory)
        return errno == ENOTDIR ? 0 : error_set_errno(error, -errno, "Cannot open %s", path);
    struct span_tenant *tenant = index_tenant(index, name);
    int r = 0;
    while (!r && (entry = readdir(directory)))
        if (*entry->d_name != '.')
            r = find_segment(index, tenant, entry->d_name, error);
    closedir(directory);
    if (tenant->count)
        qsort(tenant->segments, tenant->count, sizeof(*tenant->segments), by_number);
    return r;
}

static int find_tenants(struct span_index *index, struct error *error)
{
    struct dirent *entry;
    if (index->options.read_only && access(index->directory, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (!index->options.read_only && mkdir(index->directory, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, -errno, "Cannot create %s", index->directory);
    DIR *directory = opendir(index->directory);
    if (!directory)
        return error_set_errno(error, -errno, "Cannot open %s", index->directory);
    int r = 0;
    while (!r && (entry = readdir(directory)))
        r = find_segments(index, entry->d_name, error);
    closedir(directory);
    return r;
}

static struct span_options with_defaults(const struct span_options *options)
{
    struct span_options own = *options;
    own.disk_limit_bytes = own.disk_limit_bytes ? own.disk_limit_bytes : SPAN_DISK_DEFAULT;
    own.retention_ns = own.retention_ns ? own.retention_ns : SPAN_RETENTION_DEFAULT;
    own.segment_spans = own.segment_spans ? own.segment_spans : SEGMENT_SPANS_DEFAULT;
    /* Segments go as a whole: each is a small part of what may be there. */
    own.segment_spans = MIN(own.segment_spans, own.disk_limit_bytes / SEGMENT_PART_BYTES + 1);
    return own;
}

int span_index_open(const char *directory, const struct span_options *options,
                    struct span_index **ret_index, struct error *error)
{
    struct span_index *index = memory_zalloc(1, sizeof(*index));
    char path[PATH_MAX];
    pthread_mutex_init(&index->maintaining, NULL);
    pthread_mutex_init(&index->lock, NULL);
    pthread_cond_init(&index->changed, NULL);
    index->options = with_defaults(options);
    index->pending_end = &index->pending;
    index->next_number = 1;
    if (directory) {
        snprintf(path, sizeof(path), "%s/" DIRECTORY, directory);
        index->directory = memory_strdup(path);
    }
    int r = directory ? find_tenants(index, error) : 0;
    if (r < 0) {
        span_index_close(index);
        return r;
    }
    *ret_index = index;
    return 0;
}

void span_index_close(struct span_index *index)
{
    if (!index)
        return;
    for (size_t i = 0; i < index->tenant_count; i++) {
        struct span_tenant *tenant = &index->tenants[i];
        for (size_t k = 0; k < tenant->count; k++)
            if (tenant->segments[k].fd >= 0)
                close(tenant->segments[k].fd);
        for (size_t k = 0; k < tenant->unreadable_count; k++)
            free(tenant->unreadable[k]);
        free(tenant->unreadable);
        free(tenant->segments);
        free(tenant->name);
    }
    free(index->tenants);
    pthread_cond_destroy(&index->changed);
    pthread_mutex_destroy(&index->lock);
    pthread_mutex_destroy(&index->maintaining);
    free(index->directory);
    free(index);
}

void span_index_set_limits(struct span_index *index, const struct span_options *options)
{
    struct span_options own = with_defaults(options);
    pthread_mutex_lock(&index->lock);
    index->options.disk_limit_bytes = own.disk_limit_bytes;
    index->options.retention_ns = own.retention_ns;
    index->options.clock_limit_ns = own.clock_limit_ns;
    pthread_mutex_unlock(&index->lock);
}

void span_index_stats(struct span_index *index, struct span_stats *ret_stats)
{
    pthread_mutex_lock(&index->lock);
    struct span_stats stats = index->stats;
    for (size_t i = 0; i < index->tenant_count; i++) {
        stats.damaged_files += index->tenants[i].unreadable_count;
        for (size_t k = 0; k < index->tenants[i].count; k++) {
            stats.segments++;
            stats.spans += index->tenants[i].segments[k].spans;
            stats.bytes += index->tenants[i].segments[k].bytes;
            stats.damaged_files += index->tenants[i].segments[k].damaged > 0;
        }
    }
    stats.retention_stopped = index->held[0];
    pthread_mutex_unlock(&index->lock);
    *ret_stats = stats;
}

/* The lock is held, so the sentences wait until it is not. */
static void list_damage(struct span_index *index, const struct span_tenant *tenant,
                        struct buffer *list)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < tenant->unreadable_count; i++)
        buffer_printf(list,
                      "%s is damaged: none of its spans can be read. Remove it and restart the "
                      "server.%c",
                      tenant->unreadable[i], 0);
    for (size_t i = 0; i < tenant->count && index->directory; i++) {
        if (!tenant->segments[i].damaged)
            continue;
        segment_path(index, tenant->name, tenant->segments[i].number, path);
        buffer_printf(list, "%s is damaged: spans in %llu places of it are lost.%c", path,
                      (unsigned long long)tenant->segments[i].damaged, 0);
    }
}

int span_index_problems(struct span_index *index, span_text_fn *fn, void *context)
{
    _cleanup_buffer_ struct buffer list = {0};
    int r = 0;
    pthread_mutex_lock(&index->lock);
    if (index->failure[0] && monotonic_ns() - index->failed_ns < RECENT_NS)
        buffer_printf(&list, "Spans could not be stored: %s%c", index->failure, 0);
    if (index->held[0])
        buffer_printf(&list, "%s%c", index->held, 0);
    for (size_t i = 0; i < index->tenant_count; i++)
        list_damage(index, &index->tenants[i], &list);
    pthread_mutex_unlock(&index->lock);
    for (size_t at = 0; !r && at < list.length; at += strlen(list.data + at) + 1)
        r = fn(context, list.data + at);
    return r;
}

static int read_nothing(void *context, const struct span_batch *batch)
{
    (void)context;
    (void)batch;
    return 0;
}

int span_index_check(const char *directory, span_text_fn *fn, void *context, struct error *error)
{
    struct span_options options = {.read_only = true};
    struct span_index *index;
    struct span_stats stats;
    struct span_read read;
    int r = span_index_open(directory, &options, &index, error);
    if (r < 0)
        return r;
    for (size_t i = 0; !r && i < index->tenant_count; i++) {
        struct span_query query = {
            .tenant = index->tenants[i].name, .from_ns = INT64_MIN, .to_ns = INT64_MAX};
        r = span_index_read(index, &query, read_nothing, NULL, &read, error);
    }
    if (!r)
        r = span_index_problems(index, fn, context);
    span_index_stats(index, &stats);
    if (!r && stats.damaged_files)
        r = error_set(error, -EBADMSG, "%llu damaged files of spans found in %s.",
                      (unsigned long long)stats.damaged_files, directory);
    span_index_close(index);
    return r;
}

void span_index_resume(struct span_index *index)
{
    pthread_mutex_lock(&index->lock);
    index->maintained_ns = index->resumed_ns = index_now(index);
    index->held[0] = 0;
    pthread_mutex_unlock(&index->lock);
}
