// SPDX-License-Identifier: Apache-2.0
// Views, notes and pins in memory: see saved.h.

#include "server/saved/saved.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"

const char *const saved_kind_names[SAVED_KINDS] = {
    [SAVED_VIEW] = "view",
    [SAVED_NOTE] = "note",
    [SAVED_PIN] = "pin",
};

/* ---- the file ---- */

static int read_file(struct saved *saved, struct error *error)
{
    _cleanup_buffer_ struct buffer text = {0};
    if (!saved->path || (access(saved->path, F_OK) < 0 && errno == ENOENT))
        return 0;
    int r = file_read(saved->path, SAVED_FILE_BYTES_MAX, &text, error);
    if (r >= 0)
        r = saved_read(saved, text.data, text.length, error);
    saved->unsaved = false;
    if (r < 0) {
        struct error found = *error;
        error_set(error, r,
                  "Failed to read the file %s: %s Repair it, or move it away: then saved views, "
                  "notes and pins begin anew.",
                  saved->path, found.text);
    }
    return r;
}

int saved_open(const char *directory, const struct saved_limits *limits, struct saved **ret_saved,
               struct error *error)
{
    struct saved *saved = memory_zalloc(1, sizeof(*saved));
    saved->limits = *limits;
    pthread_mutex_init(&saved->lock, NULL);
    pthread_mutex_init(&saved->saving, NULL);
    if (directory) {
        _cleanup_buffer_ struct buffer path = {0};
        buffer_printf(&path, "%s/%s", directory, SAVED_FILE);
        saved->path = memory_strdup(buffer_text(&path));
    }
    int r = read_file(saved, error);
    if (r < 0) {
        saved_close(saved);
        return r;
    }
    *ret_saved = saved;
    return 0;
}

static void item_release(struct saved_item *item)
{
    free(item->text);
    free(item->address);
    free(item->service);
    free(item->by);
    free(item->why);
}

void saved_close(struct saved *saved)
{
    if (!saved)
        return;
    for (size_t i = 0; i < saved->tenant_count; i++) {
        struct saved_tenant *tenant = &saved->tenants[i];
        for (size_t k = 0; k < tenant->count; k++)
            item_release(&tenant->items[k]);
        free(tenant->items);
        free(tenant->name);
    }
    free(saved->tenants);
    free(saved->path);
    pthread_mutex_destroy(&saved->lock);
    pthread_mutex_destroy(&saved->saving);
    free(saved);
}

int saved_save(struct saved *saved, struct error *error)
{
    _cleanup_buffer_ struct buffer text = {0};
    int r = 0;
    pthread_mutex_lock(&saved->saving);
    pthread_mutex_lock(&saved->lock);
    bool wanted = saved->unsaved && saved->path;
    saved->unsaved = false;
    if (wanted)
        saved_write(saved, &text);
    pthread_mutex_unlock(&saved->lock);
    if (wanted)
        r = file_write_atomic(saved->path, text.data, text.length, error);
    if (r < 0) {
        pthread_mutex_lock(&saved->lock);
        saved->unsaved = true;
        pthread_mutex_unlock(&saved->lock);
    }
    pthread_mutex_unlock(&saved->saving);
    return r;
}

/* ---- items ---- */

struct saved_tenant *saved_tenant(struct saved *saved, const char *name)
{
    for (size_t i = 0; i < saved->tenant_count; i++)
        if (!strcmp(saved->tenants[i].name, name))
            return &saved->tenants[i];
    array_reserve(saved->tenants, saved->tenant_capacity, saved->tenant_count + 1);
    struct saved_tenant *tenant = &saved->tenants[saved->tenant_count++];
    *tenant = (struct saved_tenant){.name = memory_strdup(name)};
    return tenant;
}

static struct saved_item *view_of(struct saved_tenant *tenant, const char *name)
{
    for (size_t i = 0; i < tenant->count; i++)
        if (tenant->items[i].kind == SAVED_VIEW && !strcmp(tenant->items[i].text, name))
            return &tenant->items[i];
    return NULL;
}

static size_t item_bytes(const struct saved_item *item)
{
    const char *const texts[] = {item->text, item->address, item->service, item->by};
    size_t bytes = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        bytes += texts[i] ? strlen(texts[i]) : 0;
    return bytes;
}

static uint64_t count_of(const struct saved_tenant *tenant, enum saved_kind kind)
{
    uint64_t count = 0;
    for (size_t i = 0; i < tenant->count; i++)
        count += tenant->items[i].kind == kind;
    return count;
}

static char *copy(const char *text)
{
    return memory_strdup(text ? text : "");
}

static struct saved_item copy_item(const struct saved_item *item)
{
    struct saved_item copied = *item;
    copied.text = copy(item->text);
    copied.address = copy(item->address);
    copied.service = copy(item->service);
    copied.by = copy(item->by);
    copied.why = copy(item->why);
    return copied;
}

int saved_add(struct saved *saved, struct saved_tenant *tenant, const struct saved_item *item,
              struct saved_item **ret_item, struct error *error)
{
    const uint64_t most[SAVED_KINDS] = {SAVED_VIEWS_MAX, SAVED_NOTES_MAX, saved->limits.count};
    struct saved_item *place = item->kind == SAVED_VIEW ? view_of(tenant, item->text) : NULL;
    if (!place && count_of(tenant, item->kind) >= most[item->kind])
        return error_set(error, -EDQUOT, "There are %llu %ss, the limit; delete some first.",
                         (unsigned long long)most[item->kind], saved_kind_names[item->kind]);
    size_t bytes = tenant->bytes - (place ? item_bytes(place) : 0) + item_bytes(item);
    if (bytes > SAVED_BYTES_MAX)
        return error_set(error, -EDQUOT,
                         "Views, notes and pins would take %zu bytes of text; the limit is %u. "
                         "Delete some first.",
                         bytes, SAVED_BYTES_MAX);
    tenant->bytes = bytes;
    struct saved_item added = copy_item(item);
    if (place) {
        memcpy(added.id, place->id, sizeof(added.id));
        item_release(place);
    } else {
        array_reserve(tenant->items, tenant->capacity, tenant->count + 1);
        place = &tenant->items[tenant->count++];
        if (!*added.id)
            snprintf(added.id, sizeof(added.id), "%c%010llx", *saved_kind_names[item->kind],
                     (unsigned long long)random_bits() & 0xffffffffffull);
    }
    *place = added;
    saved->unsaved = true;
    *ret_item = place;
    return 0;
}

int saved_remove(struct saved *saved, struct saved_tenant *tenant, enum saved_kind kind,
                 const char *id, struct error *error)
{
    for (size_t i = 0; i < tenant->count; i++) {
        struct saved_item *item = &tenant->items[i];
        if (item->kind != kind || strcmp(item->id, id))
            continue;
        tenant->bytes -= item_bytes(item);
        item_release(item);
        memmove(item, item + 1, (--tenant->count - i) * sizeof(*item));
        saved->unsaved = true;
        return 0;
    }
    return error_set(error, -ENOENT, "Unknown %s %s.", saved_kind_names[kind], id);
}

void saved_drop(struct saved *saved, struct saved_item *pin, int64_t now_ns, const char *why)
{
    free(pin->why);
    pin->why = memory_strdup(why);
    pin->dropped_ns = now_ns;
    saved->dropped_pins++;
    saved->unsaved = true;
}
