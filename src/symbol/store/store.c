// SPDX-License-Identifier: Apache-2.0
// Opening and closing the symbol store, and where things lie in it: see store.h.

#include "symbol/store/store.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "symbol/store/internal.h"

#define FILE_BYTES_DEFAULT (2ull << 30)
#define TOTAL_BYTES_DEFAULT (20ull << 30)

const char *const symbol_file_names[SYMBOL_FILES] = {"executable", "debuginfo", "package"};

void symbol_store_path(const struct symbol_store *store, const char *tenant, const char *key,
                       const char *name, struct buffer *ret_path)
{
    ret_path->length = 0;
    buffer_printf(ret_path, "%s/" SYMBOL_BUILDS "/", store->directory);
    buffer_add_hex(ret_path, tenant, strlen(tenant));
    if (*key)
        buffer_printf(ret_path, "/%.2s/%s%s%s", key, key + 2, *name ? "/" : "", name);
    buffer_text(ret_path);
}

/* Uploads that the end of the server interrupted. */
static void clear_incoming(const char *folder)
{
    DIR *listing = opendir(folder);
    struct dirent *entry;
    while (listing && (entry = readdir(listing)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(listing), entry->d_name, 0);
    if (listing)
        closedir(listing);
}

int symbol_store_open(const struct symbol_store_options *options, struct symbol_store **ret_store,
                      struct error *error)
{
    static const char *const parts[] = {"", "/" SYMBOL_BUILDS, "/" SYMBOL_CONTENTS, "/incoming"};
    _cleanup_buffer_ struct buffer path = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        path.length = 0;
        buffer_printf(&path, "%s%s", options->directory, parts[i]);
        if (mkdir(buffer_text(&path), 0700) < 0 && errno != EEXIST)
            return error_set_errno(error, -errno, "Cannot create the symbol directory %s",
                                   buffer_text(&path));
    }
    clear_incoming(buffer_text(&path));
    struct symbol_store *store = memory_zalloc(1, sizeof(*store));
    store->options = *options;
    store->directory = memory_strdup(options->directory);
    store->options.directory = store->directory;
    if (!store->options.file_bytes_max)
        store->options.file_bytes_max = FILE_BYTES_DEFAULT;
    if (!store->options.total_bytes_max)
        store->options.total_bytes_max = TOTAL_BYTES_DEFAULT;
    pthread_mutex_init(&store->lock, NULL);
    pthread_mutex_init(&store->turn, NULL);
    pthread_mutex_init(&store->making, NULL);
    *ret_store = store;
    return 0;
}

void symbol_store_close(struct symbol_store *store)
{
    if (!store)
        return;
    while (store->source_count)
        symbol_store_forget(store, store->sources[store->source_count - 1]->tenant,
                            store->sources[store->source_count - 1]->key);
    pthread_mutex_destroy(&store->lock);
    pthread_mutex_destroy(&store->making);
    pthread_mutex_destroy(&store->turn);
    free(store->directory);
    free(store);
}

struct symbol_store_stats symbol_store_stats(struct symbol_store *store)
{
    pthread_mutex_lock(&store->lock);
    size_t open = store->source_count;
    uint64_t mapped = store->mapped_bytes;
    pthread_mutex_unlock(&store->lock);
    return (struct symbol_store_stats){.builds = store->builds,
                                       .bytes = store->bytes,
                                       .made = store->made,
                                       .refused = store->refused,
                                       .kept_out = store->kept_out,
                                       .removed = store->removed,
                                       .open = open,
                                       .mapped_bytes = mapped};
}
