// SPDX-License-Identifier: Apache-2.0
// Time ranges whose raw files retention leaves alone. The disk limit takes them last.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/embedded/embedded.h"

#define PIN_ID_BYTES 32

struct pin {
    char id[PIN_ID_BYTES];
    char tenant[STORE_TENANT_BYTES_MAX + 1];
    int64_t from_ns, to_ns;
    bool lost;
};

static bool keeps(const struct pin *pin, const struct file *file)
{
    return file->tier == STORE_RAW && !pin->lost && file->from_ns < pin->to_ns &&
           pin->from_ns < file->to_ns && !strcmp(pin->tenant, file->tenant);
}

bool embedded_is_pinned(struct embedded *store, const struct file *file)
{
    bool pinned = false;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; !pinned && i < store->pin_count; i++)
        pinned = keeps(&store->pins[i], file);
    pthread_mutex_unlock(&store->lock);
    return pinned;
}

void embedded_lose_pins(struct embedded *store, const struct file *file, struct buffer *ids)
{
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->pin_count; i++)
        if (keeps(&store->pins[i], file)) {
            store->pins[i].lost = true;
            buffer_printf(ids, "%s%s", ids->length ? ", " : "", store->pins[i].id);
        }
    pthread_mutex_unlock(&store->lock);
}

/* With the lock held. */
static bool was_lost(const struct embedded *store, const struct pin *pin)
{
    for (size_t i = 0; i < store->pin_count; i++)
        if (!strcmp(store->pins[i].id, pin->id) && store->pins[i].from_ns == pin->from_ns &&
            store->pins[i].to_ns == pin->to_ns)
            return store->pins[i].lost;
    return false;
}

int embedded_set_pins(struct store *base, const struct store_pin *pins, size_t count)
{
    struct embedded *store = embedded_of(base);
    struct pin *list = memory_zalloc(count + 1, sizeof(*list));
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < count; i++) {
        struct pin *pin = &list[i];
        snprintf(pin->id, sizeof(pin->id), "%s", pins[i].id);
        snprintf(pin->tenant, sizeof(pin->tenant), "%s", pins[i].tenant);
        pin->from_ns = pins[i].from_ns;
        pin->to_ns = pins[i].to_ns;
        pin->lost = was_lost(store, pin);
    }
    free(store->pins);
    store->pins = list;
    store->pin_count = count;
    pthread_mutex_unlock(&store->lock);
    return 0;
}

int embedded_lost_pins(struct store *base, store_text_fn *fn, void *context)
{
    struct embedded *store = embedded_of(base);
    int r = 0;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; !r && i < store->pin_count; i++)
        if (store->pins[i].lost)
            r = fn(context, store->pins[i].id);
    pthread_mutex_unlock(&store->lock);
    return r;
}

void embedded_pins_release(struct embedded *store)
{
    free(store->pins);
    store->pins = NULL;
    store->pin_count = 0;
}
