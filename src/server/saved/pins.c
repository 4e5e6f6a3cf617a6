// SPDX-License-Identifier: Apache-2.0
// Pins and the store: which raw files are kept, how many bytes those are, and what became of them.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/audit/audit.h"
#include "server/saved/saved.h"
#include "store/store.h"

#define COUNT_NS 60000000000ll /* between counts of what is pinned */

static bool is_active(const struct saved_item *item)
{
    return item->kind == SAVED_PIN && !item->dropped_ns;
}

/* ---- what the store keeps ---- */

int pins_apply(struct server *server, struct error *error)
{
    struct saved *saved = server->saved;
    struct store_pin *pins = NULL;
    size_t count = 0, capacity = 0;
    pthread_mutex_lock(&saved->lock);
    for (size_t i = 0; i < saved->tenant_count; i++)
        for (size_t k = 0; k < saved->tenants[i].count; k++) {
            const struct saved_item *item = &saved->tenants[i].items[k];
            if (!is_active(item))
                continue;
            array_reserve(pins, capacity, count + 1);
            pins[count++] = (struct store_pin){.id = item->id,
                                               .tenant = saved->tenants[i].name,
                                               .from_ns = item->from_ns,
                                               .to_ns = item->to_ns};
        }
    int r = store_set_pins(server->store, pins, count, error);
    pthread_mutex_unlock(&saved->lock);
    free(pins);
    return r == -ENOTSUP && !count ? 0 : r;
}

/* ---- bytes ---- */

struct counting {
    const struct saved_tenant *tenant;
    const struct saved_item *more;
    uint64_t bytes;
};

static bool meets(const struct saved_item *pin, const struct store_file *file)
{
    return file->from_ns < pin->to_ns && pin->from_ns < file->to_ns;
}

/* A file that several pins keep counts once. */
static int count_file(void *context, const struct store_file *file)
{
    struct counting *counting = context;
    if (file->tier != STORE_RAW || strcmp(file->tenant, counting->tenant->name))
        return 0;
    bool kept = counting->more && meets(counting->more, file);
    for (size_t i = 0; !kept && i < counting->tenant->count; i++) {
        const struct saved_item *item = &counting->tenant->items[i];
        kept = is_active(item) && meets(item, file);
    }
    counting->bytes += kept ? file->bytes : 0;
    return 0;
}

uint64_t pins_bytes(struct server *server, const struct saved_tenant *tenant,
                    const struct saved_item *more)
{
    struct counting counting = {.tenant = tenant, .more = more};
    store_files(server->store, count_file, &counting, NULL);
    return counting.bytes;
}

/* ---- rounds ---- */

static void drop(struct server *server, struct saved_tenant *tenant, struct saved_item *pin,
                 int64_t now_ns, const char *why)
{
    saved_drop(server->saved, pin, now_ns, why);
    log_error("The pin %s of the tenant %s (%s) was dropped: %s", pin->id, tenant->name, pin->text,
              why);
    audit_write(server->audit, &(struct audit_entry){.actor = "server",
                                                     .tenant = tenant->name,
                                                     .action = "pin dropped",
                                                     .target = pin->id,
                                                     .outcome = why});
}

/* The pins that came last go first, when what is pinned has grown. */
static bool keep_to_quota(struct server *server, struct saved_tenant *tenant, int64_t now_ns)
{
    struct saved *saved = server->saved;
    bool changed = false;
    for (size_t i = tenant->count; i-- && pins_bytes(server, tenant, NULL) > saved->limits.bytes;) {
        struct saved_item *item = &tenant->items[i];
        char why[160];
        if (!is_active(item))
            continue;
        snprintf(why, sizeof(why), "The data of all pins has outgrown the quota of %llu MiB.",
                 (unsigned long long)(saved->limits.bytes >> 20));
        drop(server, tenant, item, now_ns, why);
        changed = true;
    }
    return changed;
}

/* Ids, each with its NUL. */
static int add_id(void *context, const char *id)
{
    struct buffer *ids = context;
    buffer_add(ids, id, strlen(id) + 1);
    return 0;
}

static bool is_among(const struct buffer *ids, const char *id)
{
    for (size_t at = 0; at < ids->length; at += strlen(ids->data + at) + 1)
        if (!strcmp(ids->data + at, id))
            return true;
    return false;
}

static bool drop_lost(struct server *server, struct saved_tenant *tenant, const struct buffer *lost,
                      int64_t now_ns)
{
    bool changed = false;
    for (size_t i = 0; i < tenant->count; i++) {
        struct saved_item *item = &tenant->items[i];
        if (!is_active(item) || !is_among(lost, item->id))
            continue;
        drop(server, tenant, item, now_ns, "Its data was deleted to stay below the disk limit.");
        changed = true;
    }
    return changed;
}

static bool end_expired(struct saved *saved, struct saved_tenant *tenant, int64_t now_ns)
{
    bool changed = false;
    for (size_t i = tenant->count; i--;) {
        const struct saved_item *item = &tenant->items[i];
        char id[SAVED_ID_BYTES];
        if (item->kind != SAVED_PIN || item->expires_ns > now_ns)
            continue;
        memcpy(id, item->id, sizeof(id));
        changed |= !saved_remove(saved, tenant, SAVED_PIN, id, NULL);
    }
    return changed;
}

static bool has_pins(const struct saved_tenant *tenant)
{
    for (size_t i = 0; i < tenant->count; i++)
        if (is_active(&tenant->items[i]))
            return true;
    return false;
}

void pins_round(struct server *server, int64_t now_ns)
{
    struct saved *saved = server->saved;
    _cleanup_buffer_ struct buffer lost = {0};
    struct error error = {0};
    bool changed = false;
    store_lost_pins(server->store, add_id, &lost, NULL);
    pthread_mutex_lock(&saved->lock);
    bool counts = monotonic_ns() - saved->counted_ns >= COUNT_NS;
    if (counts)
        saved->counted_ns = monotonic_ns();
    for (size_t i = 0; i < saved->tenant_count; i++) {
        struct saved_tenant *tenant = &saved->tenants[i];
        changed |= drop_lost(server, tenant, &lost, now_ns);
        changed |= end_expired(saved, tenant, now_ns);
        if (counts && has_pins(tenant))
            changed |= keep_to_quota(server, tenant, now_ns);
    }
    pthread_mutex_unlock(&saved->lock);
    if (changed && (pins_apply(server, &error) < 0 || saved_save(saved, &error) < 0))
        log_error("%s", error.text);
}
