// SPDX-License-Identifier: Apache-2.0
// Uploaded profiles in memory: see adhoc.h.

#include "server/pyroscope/adhoc.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"

#define PROFILES_MAX 100

struct adhoc_profile {
    char *tenant, *name;
    char id[ADHOC_ID_BYTES];
    int64_t uploaded_ms;
    struct buffer bytes;
};

struct adhoc {
    pthread_mutex_t lock;
    struct adhoc_profile profiles[PROFILES_MAX]; /* the oldest first */
    size_t count, bytes;
};

struct adhoc *adhoc_new(void)
{
    struct adhoc *adhoc = memory_zalloc(1, sizeof(*adhoc));
    pthread_mutex_init(&adhoc->lock, NULL);
    return adhoc;
}

static void drop_oldest(struct adhoc *adhoc)
{
    struct adhoc_profile *oldest = &adhoc->profiles[0];
    adhoc->bytes -= oldest->bytes.length;
    free(oldest->tenant);
    free(oldest->name);
    buffer_release(&oldest->bytes);
    adhoc->count--;
    memmove(oldest, oldest + 1, adhoc->count * sizeof(*oldest));
}

void adhoc_free(struct adhoc *adhoc)
{
    if (!adhoc)
        return;
    while (adhoc->count)
        drop_oldest(adhoc);
    pthread_mutex_destroy(&adhoc->lock);
    free(adhoc);
}

void adhoc_put(struct adhoc *adhoc, const char *tenant, const char *name,
               const struct buffer *bytes, size_t total_bytes, char ret_id[ADHOC_ID_BYTES],
               int64_t *ret_uploaded_ms)
{
    struct adhoc_profile profile = {.tenant = memory_strdup(tenant),
                                    .name = memory_strdup(name),
                                    .uploaded_ms = clock_ns(CLOCK_REALTIME) / 1000000};
    /* Without entropy an id can be guessed, but only by the tenant whose profile it is. */
    snprintf(profile.id, sizeof(profile.id), "%016llx%016llx", (unsigned long long)random_bits(),
             (unsigned long long)random_bits());
    buffer_add(&profile.bytes, bytes->data, bytes->length);
    pthread_mutex_lock(&adhoc->lock);
    while (adhoc->count &&
           (adhoc->count == PROFILES_MAX || adhoc->bytes + bytes->length > total_bytes))
        drop_oldest(adhoc);
    adhoc->profiles[adhoc->count++] = profile;
    adhoc->bytes += bytes->length;
    pthread_mutex_unlock(&adhoc->lock);
    strcpy(ret_id, profile.id);
    *ret_uploaded_ms = profile.uploaded_ms;
}

bool adhoc_get(struct adhoc *adhoc, const char *tenant, const char *id, struct buffer *ret_bytes,
               char **ret_name, int64_t *ret_uploaded_ms)
{
    bool found = false;
    pthread_mutex_lock(&adhoc->lock);
    for (size_t i = 0; !found && i < adhoc->count; i++) {
        const struct adhoc_profile *profile = &adhoc->profiles[i];
        if (strcmp(profile->id, id) || strcmp(profile->tenant, tenant))
            continue;
        buffer_add(ret_bytes, profile->bytes.data, profile->bytes.length);
        *ret_name = memory_strdup(profile->name);
        *ret_uploaded_ms = profile->uploaded_ms;
        found = true;
    }
    pthread_mutex_unlock(&adhoc->lock);
    return found;
}

void adhoc_list(struct adhoc *adhoc, const char *tenant, adhoc_list_fn *fn, void *context)
{
    pthread_mutex_lock(&adhoc->lock);
    for (size_t i = adhoc->count; i-- > 0;)
        if (!strcmp(adhoc->profiles[i].tenant, tenant))
            fn(context, adhoc->profiles[i].id, adhoc->profiles[i].name,
               adhoc->profiles[i].uploaded_ms);
    pthread_mutex_unlock(&adhoc->lock);
}
