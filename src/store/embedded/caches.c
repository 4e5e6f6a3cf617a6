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

/* With the store's lock held. */
static size_t count_catalogs(struct embedded *store, struct file **ret_oldest)
{
    size_t bytes = 0;
    for (size_t i = 0; i < store->file_count; i++) {
        struct file *file = store->files[i];
        if (pthread_rwlock_tryrdlock(&file->lock))
            continue;
        bool loaded = file->loaded;
        bytes += loaded ? catalog_memory(&file->catalog) : 0;
        pthread_rwlock_unlock(&file->lock);
        if (loaded && !file->references && (!*ret_oldest || file->used_ns < (*ret_oldest)->used_ns))
            *ret_oldest = file;
    }
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

void embedded_trim_caches(struct embedded *store)
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
        if (bytes <= (recent ? limit / 4 * 3 : limit / 2))
            break;
        if (!oldest) {
            forget_digests(store);
            bytes = count_catalogs(store, &oldest);
            break;
        }
        file_unload(oldest); /* without references nobody is in there, and nobody can get in */
    }
    bool full = bytes > limit / 4 * 3;
    atomic_store(&store->memory_full, full);
    pthread_mutex_unlock(&store->lock);
}
