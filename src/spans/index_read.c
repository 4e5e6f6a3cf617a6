// SPDX-License-Identifier: Apache-2.0
// Reads the index, and keeps it within its limits.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "spans/index_parts.h"

/* ---- reading ---- */

/* The segments of a range, as they are now. */
struct listing {
    struct segment *list;
    size_t count, capacity;
    size_t unreadable; /* files that may have been some of them */
};

static void list_segments(struct span_index *index, const struct span_query *query,
                          struct listing *listing)
{
    pthread_mutex_lock(&index->lock);
    for (size_t i = 0; i < index->tenant_count; i++) {
        const struct span_tenant *tenant = &index->tenants[i];
        if (strcmp(tenant->name, query->tenant))
            continue;
        listing->unreadable = tenant->unreadable_count;
        for (size_t k = 0; k < tenant->count; k++) {
            const struct segment *segment = &tenant->segments[k];
            if ((!segment->spans && !segment->damaged) || segment->last_ns < query->from_ns ||
                segment->first_ns >= query->to_ns)
                continue;
            array_reserve(listing->list, listing->capacity, listing->count + 1);
            listing->list[listing->count++] = *segment;
        }
    }
    /* Those with a descriptor may get another one, or lose it. */
    for (size_t i = 0; i < listing->count; i++)
        if (listing->list[i].fd >= 0 &&
            segment_open(index, query->tenant, &listing->list[i], &listing->list[i].fd) < 0)
            listing->list[i].fd = -1;
    pthread_mutex_unlock(&index->lock);
}

/* Damage that reading has found is a problem from then on. */
static void note_damage(struct span_index *index, const char *tenant, uint64_t number,
                        uint64_t places)
{
    pthread_mutex_lock(&index->lock);
    struct segment *segment = index_segment(index_tenant(index, tenant), number);
    if (segment) {
        segment->damaged = MAX(segment->damaged, places);
        segment->sorted = true;
    }
    pthread_mutex_unlock(&index->lock);
}

int span_index_read(struct span_index *index, const struct span_query *query, span_block_fn *fn,
                    void *context, struct span_read *ret_read, struct error *error)
{
    struct listing listing = {0};
    struct span_read read = {0};
    int r = 0;
    list_segments(index, query, &listing);
    read.damaged = listing.unreadable;
    for (size_t i = 0; i < listing.count; i++) {
        struct segment *segment = &listing.list[i];
        off_t end = 0;
        /* A full segment may have been sorted meanwhile: its file is another, with its own end. Or
         * it is gone. */
        bool by_path = segment->fd < 0;
        if (!r && by_path) {
            r = segment_open(index, query->tenant, segment, &segment->fd);
            r = r == -ENOENT ? 0 : r;
            if (segment->fd >= 0)
                end = lseek(segment->fd, 0, SEEK_END);
        }
        uint64_t damaged = read.damaged;
        if (!r && segment->fd >= 0)
            r = segment_read(segment->fd, by_path ? (uint64_t)MAX(end, 0) : segment->bytes, query,
                             fn, context, &read);
        if (read.damaged > damaged)
            note_damage(index, query->tenant, segment->number, read.damaged - damaged);
        if (segment->fd >= 0)
            close(segment->fd);
    }
    free(listing.list);
    pthread_mutex_lock(&index->lock);
    index->stats.damaged += read.damaged;
    pthread_mutex_unlock(&index->lock);
    if (r == -ECANCELED)
        error_set(error, r, "The query was cancelled.");
    else if (r < 0 && error && !error->code)
        error_set_errno(error, r, "Cannot read spans");
    *ret_read = read;
    return r;
}

/* ---- maintenance ---- */

/* Takes a segment out of the list; the lock is held. */
static void remove_segment(struct span_index *index, struct span_tenant *tenant, size_t at)
{
    struct segment *segment = &tenant->segments[at];
    char path[PATH_MAX];
    if (segment->fd >= 0)
        close(segment->fd);
    if (index->directory) {
        segment_path(index, tenant->name, segment->number, path);
        unlink(path);
    }
    memmove(segment, segment + 1, (tenant->count - at - 1) * sizeof(*segment));
    tenant->count--;
}

/* Nothing is appended to it any more. Nothing may be writing. */
static void fill(struct span_index *index, struct segment *segment)
{
    if (index->directory && segment->fd >= 0) {
        close(segment->fd);
        segment->fd = -1;
    }
    segment->full = true;
}

static uint64_t tenant_bytes(const struct span_tenant *tenant)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < tenant->count; i++)
        bytes += tenant->segments[i].bytes;
    return bytes;
}

static int64_t newest_ns(const struct span_index *index)
{
    int64_t newest = 0;
    for (size_t i = 0; i < index->tenant_count; i++)
        for (size_t k = 0; k < index->tenants[i].count; k++)
            newest = MAX(newest, index->tenants[i].segments[k].last_ns);
    return newest;
}

static bool is_far(const struct span_index *index, int64_t a, int64_t b)
{
    int64_t apart;
    return __builtin_sub_overflow(MAX(a, b), MIN(a, b), &apart) ||
           apart > index->options.clock_limit_ns;
}

static void hold(struct span_index *index, const char *what)
{
    if (index->held[0])
        return;
    snprintf(
        index->held, sizeof(index->held),
        "Retention of spans is stopped: the clock is more than %lld hours from %s. Correct the "
        "clock, or continue with `assay store retention resume`.",
        (long long)(index->options.clock_limit_ns / SEGMENT_AGE_NS), what);
    log_error("%s", index->held);
}

/* Whether spans may be removed by what the clock says: see span_index_maintain. */
static bool trusts_clock(struct span_index *index, int64_t now_ns, bool expires)
{
    int64_t newest = newest_ns(index), known = MAX(newest, index->resumed_ns);
    if (index->options.clock_limit_ns && newest) {
        if (index->maintained_ns && is_far(index, now_ns, index->maintained_ns)) {
            hold(index, "its last run");
            return false;
        }
        if (expires && now_ns > known && is_far(index, now_ns, known)) {
            hold(index, "the newest span");
            return false;
        }
    }
    index->held[0] = 0;
    index->maintained_ns = now_ns;
    return true;
}

static bool is_expired(const struct span_index *index, const struct segment *segment,
                       int64_t now_ns)
{
    return segment->full && segment->last_ns < now_ns - index->options.retention_ns;
}

/* Segments of tenants that push nothing any more become too old, too. */
static void fill_old(struct span_index *index, int64_t now_ns)
{
    for (size_t i = 0; i < index->tenant_count && !index->writing; i++)
        for (size_t k = 0; k < index->tenants[i].count; k++) {
            struct segment *segment = &index->tenants[i].segments[k];
            if (!segment->full && now_ns - segment->begun_ns >= SEGMENT_AGE_NS)
                fill(index, segment);
        }
}

static void expire(struct span_index *index, int64_t now_ns)
{
    bool any = false;
    fill_old(index, now_ns);
    for (size_t i = 0; i < index->tenant_count; i++)
        for (size_t k = 0; k < index->tenants[i].count; k++)
            any |= is_expired(index, &index->tenants[i].segments[k], now_ns);
    if (!trusts_clock(index, now_ns, any))
        return;
    for (size_t i = 0; i < index->tenant_count; i++) {
        struct span_tenant *tenant = &index->tenants[i];
        for (size_t k = tenant->count; k-- > 0;) {
            const struct segment *segment = &tenant->segments[k];
            if (!is_expired(index, segment, now_ns))
                continue;
            log_info("Retention removes %llu spans of tenant %s.",
                     (unsigned long long)segment->spans, tenant->name);
            index->stats.expired += segment->spans;
            remove_segment(index, tenant, k);
        }
    }
}

/* The oldest full segments of who has most go until the rest fits. */
static void keep_to_limit(struct span_index *index)
{
    for (;;) {
        struct span_tenant *largest = NULL;
        uint64_t sum = 0;
        for (size_t i = 0; i < index->tenant_count; i++) {
            uint64_t bytes = tenant_bytes(&index->tenants[i]);
            sum += bytes;
            if (index->tenants[i].count && index->tenants[i].segments[0].full &&
                (!largest || bytes > tenant_bytes(largest)))
                largest = &index->tenants[i];
        }
        if (sum <= index->options.disk_limit_bytes || !largest)
            return;
        log_info("The disk limit of spans removes %llu spans of tenant %s.",
                 (unsigned long long)largest->segments[0].spans, largest->name);
        index->stats.shed += largest->segments[0].spans;
        remove_segment(index, largest, 0);
    }
}

static bool is_unsorted(const struct segment *segment)
{
    return segment->full && !segment->sorted &&
           segment->blocks > segment->spans / SPAN_BLOCK_SPANS + 1;
}

static bool find_unsorted(struct span_index *index, char *tenant, struct segment *ret_segment)
{
    for (size_t i = 0; i < index->tenant_count; i++)
        for (size_t k = 0; k < index->tenants[i].count; k++)
            if (is_unsorted(&index->tenants[i].segments[k])) {
                strcpy(tenant, index->tenants[i].name);
                *ret_segment = index->tenants[i].segments[k];
                return true;
            }
    return false;
}

/* The rest of a segment. */
struct gathering {
    struct span_batch batch;
    const struct span_query *remove; /* NULL: nothing */
    span_select_fn *selects;
    void *context;
    struct error *error;
    uint64_t selected;
};

static int is_selected(const struct gathering *gathering, const struct span_batch *batch,
                       const struct span *span)
{
    if (!gathering->remove || span->start_ns < gathering->remove->from_ns ||
        span->start_ns >= gathering->remove->to_ns)
        return false;
    return gathering->selects
               ? gathering->selects(gathering->context, batch, span, gathering->error)
               : true;
}

static int gather(void *context, const struct span_batch *batch)
{
    struct gathering *gathering = context;
    struct span_batch *to = &gathering->batch;
    size_t kept = to->count;
    span_batch_append(to, batch); /* in the same order */
    int r = gathering->remove && gathering->selects
                ? gathering->selects(gathering->context, batch, NULL, gathering->error)
                : 0;
    if (r < 0)
        return r;
    for (size_t i = 0; i < batch->count; i++) {
        int selected = is_selected(gathering, batch, &batch->list[i]);
        if (selected < 0)
            return selected;
        gathering->selected += (uint64_t)selected;
        if (!selected) {
            to->list[kept] = to->list[to->count - batch->count + i];
            kept++;
        }
    }
    to->count = kept;
    return 0;
}

/* Reads a full segment, keeps what is wanted and writes it anew. Called with `maintaining` held,
 * so that the segment stays. */
static int rewrite(struct span_index *index, const char *tenant, struct segment *segment,
                   struct gathering *gathering, bool dry_run, struct error *error)
{
    struct span_query query = {.tenant = tenant, .from_ns = INT64_MIN, .to_ns = INT64_MAX};
    struct span_read read = {0};
    struct segment after = *segment;
    int fd, r = segment_open(index, tenant, segment, &fd);
    if (r < 0)
        return error_set_errno(error, r, "Cannot open a segment of spans");
    uint64_t selected = gathering->selected;
    r = segment_read(fd, segment->bytes, &query, gather, gathering, &read);
    close(fd);
    if (r < 0)
        return error && error->code ? r
                                    : error_set_errno(error, r, "Cannot read a segment of spans");
    if (dry_run || (gathering->remove && gathering->selected == selected))
        return 0;
    if (!gathering->remove && read.damaged) {
        note_damage(index, tenant, segment->number, read.damaged);
        return 0; /* the file shows what happened to it for as long as it is there */
    }
    r = segment_replace(index, tenant, &after, &gathering->batch, error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&index->lock);
    index->stats.damaged += read.damaged;
    struct span_tenant *own = index_tenant(index, tenant);
    struct segment *place = index_segment(own, segment->number);
    *place = after;
    if (!after.spans)
        remove_segment(index, own, (size_t)(place - own->segments));
    pthread_mutex_unlock(&index->lock);
    return 0;
}

int span_index_maintain(struct span_index *index, struct error *error)
{
    struct gathering gathering = {.error = error};
    struct segment segment;
    char tenant[NAME_MAX];
    int r = 0;
    pthread_mutex_lock(&index->maintaining);
    pthread_mutex_lock(&index->lock);
    expire(index, index_now(index));
    keep_to_limit(index);
    bool found = find_unsorted(index, tenant, &segment);
    pthread_mutex_unlock(&index->lock);
    if (found)
        r = rewrite(index, tenant, &segment, &gathering, false, error);
    pthread_mutex_unlock(&index->maintaining);
    span_batch_release(&gathering.batch);
    return r < 0 ? r : found;
}

/* Nothing is appended to any segment of a tenant from now on. */
static void fill_segments(struct span_index *index, const char *tenant)
{
    struct span_tenant *own = index_tenant(index, tenant);
    while (index->writing)
        pthread_cond_wait(&index->changed, &index->lock);
    for (size_t i = 0; i < own->count; i++)
        fill(index, &own->segments[i]);
}

int span_index_delete(struct span_index *index, const struct span_query *query,
                      span_select_fn *selects, void *context, bool dry_run, uint64_t *ret_spans,
                      struct error *error)
{
    const char *tenant = query->tenant;
    struct listing listing = {0};
    uint64_t selected = 0;
    int r = 0;
    pthread_mutex_lock(&index->maintaining);
    pthread_mutex_lock(&index->lock);
    fill_segments(index, tenant);
    if (!dry_run) /* what is sent again is new */
        memset(index->recent, 0, sizeof(index->recent));
    pthread_mutex_unlock(&index->lock);
    list_segments(index, query, &listing);
    for (size_t i = 0; i < listing.count; i++) {
        struct gathering gathering = {
            .remove = query, .selects = selects, .context = context, .error = error};
        if (listing.list[i].fd >= 0) { /* the descriptor of the listing is a copy */
            close(listing.list[i].fd);
            pthread_mutex_lock(&index->lock);
            listing.list[i] = *index_segment(index_tenant(index, tenant), listing.list[i].number);
            pthread_mutex_unlock(&index->lock);
        }
        if (!r)
            r = rewrite(index, tenant, &listing.list[i], &gathering, dry_run, error);
        selected += gathering.selected;
        span_batch_release(&gathering.batch);
    }
    pthread_mutex_unlock(&index->maintaining);
    free(listing.list);
    *ret_spans = selected;
    return r;
}
