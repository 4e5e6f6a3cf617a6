// SPDX-License-Identifier: Apache-2.0
// Marks and findings in memory: see book.h.

#include "server/watch/book.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"

#define FILE_BYTES_MAX (256u << 20)
#define DAMAGED_SUFFIX ".damaged"

const char *const watch_close_names[WATCH_CLOSES] = {
    [WATCH_OPEN] = "",
    [WATCH_GONE] = "no longer found",
    [WATCH_REPLACED] = "version no longer runs",
    [WATCH_NO_DATA] = "no data",
};

const char *const watch_kind_names[WATCH_KINDS] = {"regression", "leak", "change"};

/* ---- the file ---- */

static void mark_release(struct watch_mark *mark)
{
    free(mark->service);
    free(mark->version);
    free(mark->text);
    free(mark->by);
}

static void finding_release(struct watch_finding *finding)
{
    free(finding->service);
    free(finding->version);
    free(finding->base_version);
    free(finding->type);
    free(finding->function);
}

static void release_tenants(struct watch_book *book)
{
    for (size_t i = 0; i < book->tenant_count; i++) {
        struct watch_tenant *tenant = &book->tenants[i];
        for (size_t k = 0; k < tenant->mark_count; k++)
            mark_release(&tenant->marks[k]);
        for (size_t k = 0; k < tenant->finding_count; k++)
            finding_release(&tenant->findings[k]);
        free(tenant->marks);
        free(tenant->findings);
        free(tenant->name);
    }
    free(book->tenants);
    book->tenants = NULL;
    book->tenant_count = book->tenant_capacity = 0;
}

void watch_book_release(struct watch_book *book)
{
    release_tenants(book);
    free(book->damaged);
    free(book->path);
    pthread_mutex_destroy(&book->lock);
    pthread_mutex_destroy(&book->saving);
    *book = (struct watch_book){0};
}

int watch_book_open(const char *directory, struct watch_book *book, struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0}, text = {0}, aside = {0};
    *book = (struct watch_book){0};
    pthread_mutex_init(&book->lock, NULL);
    pthread_mutex_init(&book->saving, NULL);
    if (!directory)
        return 0;
    buffer_printf(&path, "%s/%s", directory, WATCH_FILE);
    book->path = memory_strdup(buffer_text(&path));
    buffer_printf(&aside, "%s" DAMAGED_SUFFIX, book->path);
    if (!access(buffer_text(&aside), F_OK))
        book->damaged = memory_strdup(buffer_text(&aside));
    if (access(book->path, F_OK) < 0 && errno == ENOENT)
        return 0;
    int r = file_read(book->path, FILE_BYTES_MAX, &text, error);
    if (!r)
        r = watch_book_read(book, text.data, text.length, error);
    book->unsaved = false;
    if (r == -ENOTSUP)
        return error_prefix(error, "%s", book->path);
    if (r != -EBADMSG && r != -E2BIG)
        return r;
    /* A damaged file of findings must not keep the server from starting. */
    release_tenants(book);
    if (rename(book->path, buffer_text(&aside)) < 0)
        return error_set_errno(error, -errno, "Failed to set %s aside", book->path);
    log_error("%s is damaged and was set aside as %s; marks and findings begin anew. %s",
              book->path, buffer_text(&aside), error->text);
    if (!book->damaged)
        book->damaged = memory_strdup(buffer_text(&aside));
    return 0;
}

int watch_book_save(struct watch_book *book, struct error *error)
{
    _cleanup_buffer_ struct buffer text = {0};
    int r = 0;
    pthread_mutex_lock(&book->saving);
    pthread_mutex_lock(&book->lock);
    bool wanted = book->unsaved && book->path;
    book->unsaved = false;
    if (wanted)
        watch_book_write(book, &text);
    pthread_mutex_unlock(&book->lock);
    if (wanted)
        r = file_write_atomic(book->path, text.data, text.length, error);
    if (r < 0) {
        pthread_mutex_lock(&book->lock);
        book->unsaved = true;
        pthread_mutex_unlock(&book->lock);
    }
    pthread_mutex_unlock(&book->saving);
    return r;
}

/* ---- tenants and marks ---- */

struct watch_tenant *watch_book_tenant(struct watch_book *book, const char *name)
{
    for (size_t i = 0; i < book->tenant_count; i++)
        if (!strcmp(book->tenants[i].name, name))
            return &book->tenants[i];
    array_reserve(book->tenants, book->tenant_capacity, book->tenant_count + 1);
    struct watch_tenant *tenant = &book->tenants[book->tenant_count++];
    *tenant = (struct watch_tenant){.name = memory_strdup(name)};
    return tenant;
}

struct watch_mark *watch_mark_of(struct watch_tenant *tenant, const char *service,
                                 const char *version)
{
    for (size_t i = 0; i < tenant->mark_count; i++)
        if (!strcmp(tenant->marks[i].service, service) &&
            !strcmp(tenant->marks[i].version, version))
            return &tenant->marks[i];
    return NULL;
}

static void remove_mark(struct watch_tenant *tenant, size_t position)
{
    mark_release(&tenant->marks[position]);
    memmove(tenant->marks + position, tenant->marks + position + 1,
            (--tenant->mark_count - position) * sizeof(*tenant->marks));
}

bool watch_mark_add(struct watch_book *book, struct watch_tenant *tenant,
                    const struct watch_mark *mark)
{
    struct watch_mark *known = *mark->service && *mark->version
                                   ? watch_mark_of(tenant, mark->service, mark->version)
                                   : NULL;
    uint64_t looks = known ? known->looks : mark->looks;
    if (known && !*mark->by)
        return true;
    if (known)
        remove_mark(tenant, (size_t)(known - tenant->marks));
    if (tenant->mark_count >= WATCH_MARKS_MAX) {
        book->dropped_marks++;
        if (mark->time_ns <= tenant->marks[0].time_ns)
            return false;
        remove_mark(tenant, 0);
    }
    array_reserve(tenant->marks, tenant->mark_capacity, tenant->mark_count + 1);
    size_t at = tenant->mark_count++;
    for (; at && tenant->marks[at - 1].time_ns > mark->time_ns; at--)
        tenant->marks[at] = tenant->marks[at - 1];
    tenant->marks[at] = (struct watch_mark){.time_ns = mark->time_ns,
                                            .service = memory_strdup(mark->service),
                                            .version = memory_strdup(mark->version),
                                            .text = memory_strdup(mark->text),
                                            .by = memory_strdup(mark->by),
                                            .looks = looks};
    book->unsaved = true;
    return true;
}

/* ---- findings ---- */

struct watch_finding *watch_finding_open(struct watch_tenant *tenant, enum watch_kind kind,
                                         const char *service, const char *type,
                                         const char *function)
{
    for (size_t i = 0; i < tenant->finding_count; i++) {
        struct watch_finding *finding = &tenant->findings[i];
        if (!finding->closed && finding->kind == kind && !strcmp(finding->service, service) &&
            !strcmp(finding->type, type) && !strcmp(finding->function, function))
            return finding;
    }
    return NULL;
}

/* The oldest that is closed goes; false: all are open. */
static bool make_room(struct watch_tenant *tenant)
{
    for (size_t i = 0; i < tenant->finding_count; i++) {
        if (!tenant->findings[i].closed)
            continue;
        finding_release(&tenant->findings[i]);
        memmove(tenant->findings + i, tenant->findings + i + 1,
                (--tenant->finding_count - i) * sizeof(*tenant->findings));
        return true;
    }
    return false;
}

struct watch_finding *watch_finding_add(struct watch_book *book, struct watch_tenant *tenant,
                                        const struct watch_finding *finding)
{
    if (tenant->finding_count >= WATCH_FINDINGS_MAX && !make_room(tenant)) {
        book->dropped_findings++;
        return NULL;
    }
    array_reserve(tenant->findings, tenant->finding_capacity, tenant->finding_count + 1);
    struct watch_finding *added = &tenant->findings[tenant->finding_count++];
    *added = *finding;
    added->service = memory_strdup(finding->service);
    added->version = memory_strdup(finding->version);
    added->base_version = memory_strdup(finding->base_version);
    added->type = memory_strdup(finding->type);
    added->function = memory_strdup(finding->function);
    if (!*added->id)
        snprintf(added->id, sizeof(added->id), "f%010llx",
                 (unsigned long long)(random_bits() & 0xffffffffffu));
    book->unsaved = true;
    return added;
}
