// SPDX-License-Identifier: Apache-2.0
// Stats and problems of the embedded store.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/embedded/embedded.h"

/* Distinct names, by hash. */
struct names {
    char **list;
    size_t count, capacity;
    struct id_table index;
};

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
    id_table_release(&names->index);
}

static void add_name(struct names *names, const char *name)
{
    uint64_t hash = 0;
    for (const char *c = name; *c; c++)
        hash = hash_word(hash ^ (unsigned char)*c);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&names->index, &probe)) != ID_NONE)
        if (!strcmp(names->list[id], name))
            return;
    array_reserve(names->list, names->capacity, names->count + 1);
    names->list[names->count] = memory_strdup(name);
    id_table_insert(&names->index, hash, (uint32_t)names->count++);
}

static int read_names(struct file *file, struct connection *connection, struct names *names,
                      struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, connection, SQL_SERVICES, error);
    int r = statement ? 0 : error->code;
    while (statement && (r = file_step(file, statement, error)) == 1) {
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        if (name)
            add_name(names, name);
    }
    return r;
}

/* `names` may be NULL. */
static int read_stats(struct file *file, struct names *names, struct store_file *ret_file,
                      struct error *error)
{
    *ret_file = (struct store_file){.path = file->path,
                                    .tenant = file->tenant,
                                    .class_name = file->class_name,
                                    .tier = file->tier,
                                    .from_ns = file->from_ns,
                                    .to_ns = file->to_ns,
                                    .bytes = file_bytes(file)};
    struct connection *connection = file_borrow(file, error);
    sqlite3_stmt *statement = connection ? file_sql(file, connection, SQL_FILE_STATS, error) : NULL;
    int r = statement ? file_step(file, statement, error) : error->code;
    if (r == 1) {
        ret_file->blocks = (uint64_t)sqlite3_column_int64(statement, 0);
        ret_file->windows = (uint64_t)sqlite3_column_int64(statement, 1);
        ret_file->rows = (uint64_t)sqlite3_column_int64(statement, 2);
        ret_file->fresh_blocks = (uint64_t)sqlite3_column_int64(statement, 3);
        ret_file->first_ns = sqlite3_column_int64(statement, 4);
        ret_file->last_ns = sqlite3_column_int64(statement, 5);
        sqlite3_reset(statement);
        r = 0;
    }
    if (!r && (statement = file_sql(file, connection, SQL_COUNT_SERIES, error)))
        r = file_step(file, statement, error);
    if (r == 1) {
        ret_file->series = (uint64_t)sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
        r = 0;
    }
    if (!r && names)
        r = read_names(file, connection, names, error);
    file_return(file, connection);
    return r;
}

static void add_stats(struct store_stats *stats, const struct store_file *file)
{
    stats->files[file->tier]++;
    stats->bytes[file->tier] += file->bytes;
    stats->blocks[file->tier] += file->blocks;
    if (file->blocks) {
        int64_t *first = &stats->first_ns[file->tier], *last = &stats->last_ns[file->tier];
        *first = *first ? MIN(*first, file->first_ns) : file->first_ns;
        *last = MAX(*last, file->last_ns);
    }
    if (file->tier == STORE_RAW) {
        stats->windows += file->windows;
        stats->rows += file->rows;
        stats->fresh_blocks += file->fresh_blocks;
        stats->series += file->series;
    }
}

int embedded_stats(struct store *base, struct store_stats *stats, struct error *error)
{
    struct embedded *store = embedded_of(base);
    _cleanup_(names_release) struct names names = {0};
    pthread_mutex_lock(&store->lock);
    *stats = store->stats;
    stats->retention_stopped = store->held[0];
    pthread_mutex_unlock(&store->lock);
    struct file_list list = embedded_files(store, NULL, INT64_MIN, INT64_MAX);
    int r = 0;
    for (size_t i = 0; !r && i < list.count; i++) {
        struct file *file = list.files[i];
        struct store_file listed;
        r = read_stats(file, &names, &listed, error);
        if (r == -EBADMSG) {
            embedded_set_aside(store, file, error->text);
            r = 0;
            continue;
        }
        add_stats(stats, &listed);
        pthread_rwlock_rdlock(&file->lock);
        stats->memory_bytes += file->loaded ? catalog_memory(&file->catalog) : 0;
        pthread_rwlock_unlock(&file->lock);
    }
    stats->services = names.count;
    stats->free_bytes = embedded_free_bytes(store);
    stats->damaged_files = embedded_damaged_files(
        base, &(struct store_selection){.from_ns = INT64_MIN, .to_ns = INT64_MAX});
    embedded_release(store, &list);
    return r;
}

int embedded_list_files(struct store *base, store_file_fn *fn, void *context, struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct file_list list = embedded_files(store, NULL, INT64_MIN, INT64_MAX);
    int r = 0;
    for (size_t i = 0; !r && i < list.count; i++) {
        struct store_file listed;
        r = read_stats(list.files[i], NULL, &listed, error);
        if (r == -EBADMSG) {
            embedded_set_aside(store, list.files[i], error->text);
            r = 0;
        } else if (!r) {
            r = fn(context, &listed);
        }
    }
    embedded_release(store, &list);
    return r;
}

int embedded_tenants(struct store *base, store_text_fn *fn, void *context, struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct file_list list = embedded_files(store, NULL, INT64_MIN, INT64_MAX);
    (void)error;
    int r = 0;
    for (size_t i = 0; !r && i < list.count; i++)
        if (!i || strcmp(list.files[i]->tenant, list.files[i - 1]->tenant))
            r = fn(context, list.files[i]->tenant);
    embedded_release(store, &list);
    return r;
}
