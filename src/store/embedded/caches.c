// SPDX-License-Identifier: Apache-2.0
// Memory of the files' catalogs. Those of files that nobody uses are forgotten, longest unused
// first, down to half of the limit: the other half is for work. What was used a moment ago will be
// wanted again and may take three quarters, since reading it anew is most of what a query costs.
// A file that is being written to needs its catalog; it can do without the digests of stacks that
// were seen, and when even that isn't enough, pushes have to wait for the next day or more memory.

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/embedded/embedded.h"

#define IDLE_NS 600000000000ll
#define RECENT_NS 60000000000ll

#define TRIM_NS 500000000ll /* between trims that growth calls for */
#define FULL_SHARE(limit) ((limit) / 4 * 3)

/* With the store's lock held. A file that somebody adds to is as large as it last was. */
static size_t count_catalogs(struct embedded *store, struct file **ret_oldest)
{
    size_t bytes = 0;
    for (size_t i = 0; i < store->file_count; i++) {
        struct file *file = store->files[i];
        bool loaded = true;
        if (!pthread_rwlock_tryrdlock(&file->lock)) {
            loaded = file->loaded;
            atomic_store(&file->counted_bytes, loaded ? catalog_memory(&file->catalog) : 0);
            pthread_rwlock_unlock(&file->lock);
        }
        bytes += atomic_load(&file->counted_bytes);
        if (loaded && !file->references && (!*ret_oldest || file->used_ns < (*ret_oldest)->used_ns))
            *ret_oldest = file;
    }
    bytes += atomic_load(&store->live_bytes);
    atomic_store(&store->catalog_bytes, bytes);
    return bytes;
}

static void forget_digests(struct embedded *store)
{
    for (size_t i = 0; i < store->file_count; i++) {
        struct file *file = store->files[i];
        if (pthread_rwlock_trywrlock(&file->lock))
            continue;
        for (size_t k = 0; file->loaded && k < file->catalog.service_count; k++)
            digest_table_release(&file->catalog.services[k].tree.stacks);
        pthread_rwlock_unlock(&file->lock);
    }
}

void embedded_trim_caches(struct embedded *store, bool short_of_memory)
{
    int64_t now = monotonic_ns(), long_ago = now - IDLE_NS;
    size_t bytes, limit = store->memory_limit_bytes;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->file_count; i++)
        if (!store->files[i]->references && store->files[i]->used_ns < long_ago)
            file_unload(store->files[i]);
    for (;;) {
        struct file *oldest = NULL;
        bytes = count_catalogs(store, &oldest);
        bool recent = oldest && oldest->used_ns > now - RECENT_NS;
        size_t kept = short_of_memory ? limit / 4 : recent ? FULL_SHARE(limit) : limit / 2;
        if (bytes <= kept || (short_of_memory && !oldest && bytes <= limit / 2))
            break;
        if (!oldest) {
            forget_digests(store);
            bytes = count_catalogs(store, &oldest);
            break;
        }
        file_unload(oldest); /* without references nobody is in there, and nobody can get in */
    }
    atomic_store(&store->memory_full, bytes > FULL_SHARE(limit));
    pthread_mutex_unlock(&store->lock);
}

void embedded_count_catalog(struct embedded *store, struct file *file)
{
    pthread_rwlock_rdlock(&file->lock);
    size_t bytes = file->loaded ? catalog_memory(&file->catalog) : 0;
    pthread_rwlock_unlock(&file->lock);
    size_t grown = bytes - atomic_exchange(&file->counted_bytes, bytes);
    size_t all = atomic_fetch_add(&store->catalog_bytes, grown) + grown;
    /* Others' catalogs go at once, not only in the next round: as long as there are any. */
    int64_t now = monotonic_ns(), trimmed = atomic_load(&store->trimmed_ns);
    if (all > store->memory_limit_bytes / 2 && now - trimmed > TRIM_NS &&
        atomic_compare_exchange_strong(&store->trimmed_ns, &trimmed, now))
        embedded_trim_caches(store, false);
    else if (all > FULL_SHARE(store->memory_limit_bytes))
        atomic_store(&store->memory_full, true);
}

void embedded_trim(struct store *base)
{
    struct embedded *store = embedded_of(base);
    pthread_rwlock_rdlock(&store->gate);
    embedded_trim_caches(store, true);
    pthread_rwlock_unlock(&store->gate);
}
