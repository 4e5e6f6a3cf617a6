// SPDX-License-Identifier: Apache-2.0
// Contents of a store file: loads its catalog, and runs the transactions that add to it.

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "store/file/file.h"

static int damaged(struct file *file, const char *what, struct error *error)
{
    return error_set(error, -EBADMSG, "%s: %s is unreadable.", file->path, what);
}

/* All chunks of one table, in order. */
static int load_chunks(struct file *file, struct connection *connection, enum catalog_table table,
                       uint32_t service, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, connection, SQL_CHUNKS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int(statement, 1, (int)table);
    sqlite3_bind_int64(statement, 2, table == TABLE_NODES ? service : 0);
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        int64_t first = sqlite3_column_int64(statement, 0);
        const void *data = sqlite3_column_blob(statement, 1);
        size_t length = (size_t)sqlite3_column_bytes(statement, 1);
        if (first < 0 || first > UINT32_MAX || !data ||
            catalog_unpack(&file->catalog, table, service, (uint32_t)first, data, length) < 0) {
            sqlite3_reset(statement);
            return damaged(file, table == TABLE_NODES ? "a stack tree" : "a table of symbols",
                           error);
        }
    }
    return r;
}

static int load_services(struct file *file, struct connection *connection, struct error *error)
{
    struct catalog *catalog = &file->catalog;
    sqlite3_stmt *statement = file_sql(file, connection, SQL_SERVICES, error);
    if (!statement)
        return error->code;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        uint32_t id = name ? catalog_service(catalog, name) : ID_NONE;
        if (id != sqlite3_column_int64(statement, 0)) {
            sqlite3_reset(statement);
            return damaged(file, "the list of services", error);
        }
        catalog->services[id].loaded = false; /* its tree comes when it is wanted */
    }
    catalog->kept_services = catalog->service_count;
    return r;
}

static int load_series(struct file *file, struct connection *connection, struct error *error)
{
    struct catalog *catalog = &file->catalog;
    sqlite3_stmt *statement = file_sql(file, connection, SQL_SERIES, error);
    if (!statement)
        return error->code;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        struct catalog_row row = {.id = sqlite3_column_int64(statement, 0),
                                  .service = sqlite3_column_int64(statement, 1),
                                  .type = (const char *)sqlite3_column_text(statement, 2)};
        const void *data = sqlite3_column_blob(statement, 3);
        size_t length = (size_t)sqlite3_column_bytes(statement, 3);
        _cleanup_labels_ struct labels labels = {0};
        size_t services = catalog->service_count;
        bool good = row.type && data && !catalog_unpack_row(&row, data, length, &labels) &&
                    catalog_series(catalog, &labels, row.type) == row.id;
        if (!good || catalog->service_count != services) {
            sqlite3_reset(statement);
            return damaged(file, "the list of series", error);
        }
    }
    catalog->kept_series = catalog->series_count;
    return r;
}

/* An index by which rows are found, and what its entries and the rows have in common, the row's id
 * last. */
static const struct indexed {
    enum sql index, table;
    int columns;
    const char *name;
} indexed_tables[] = {
    {SQL_INDEX_ENTRIES, SQL_BLOCK_ENTRIES, 6, "the index of blocks"},
    {SQL_INDEX_CHUNKS, SQL_CHUNK_ENTRIES, 4, "the index of tables"},
    {SQL_INDEX_EXEMPLARS, SQL_EXEMPLAR_ENTRIES, 3, "the index of exemplars"},
};

#define COLUMNS_MAX 6

struct entries {
    int64_t last[COLUMNS_MAX];
    uint64_t count, sum; /* of hashes, in any order */
};

/* The row that the statement is at; with `ordered`, it has to come after the one before. */
static bool add_entry(struct entries *entries, sqlite3_stmt *statement, int columns, bool ordered)
{
    bool greater = !ordered || !entries->count, equal = true;
    for (int column = 0; column < columns; column++) {
        int64_t value = sqlite3_column_int64(statement, column);
        if (sqlite3_column_type(statement, column) != SQLITE_INTEGER)
            return false;
        greater |= equal && value > entries->last[column];
        equal &= value == entries->last[column];
        entries->last[column] = value;
    }
    entries->count++;
    entries->sum += XXH3_64bits(entries->last, (size_t)columns * sizeof(*entries->last));
    return greater;
}

static int read_entries(struct file *file, struct connection *connection,
                        const struct indexed *indexed, bool index, struct entries *entries,
                        struct error *error)
{
    bool blocks = indexed->table == SQL_BLOCK_ENTRIES;
    sqlite3_stmt *statement =
        file_sql(file, connection, index ? indexed->index : indexed->table, error);
    int r = statement ? 0 : error->code;
    while (statement && (r = file_step(file, statement, error)) == 1) {
        bool good = add_entry(entries, statement, indexed->columns, index);
        if (!good || (blocks && (entries->last[0] < 0 ||
                                 entries->last[0] >= (int64_t)file->catalog.series_count))) {
            sqlite3_reset(statement);
            return damaged(file, indexed->name, error);
        }
    }
    return r;
}

int file_verify(struct file *file, struct connection *connection, struct error *error)
{
    int r = file_check_notes(file, connection, error);
    for (size_t i = 0; !r && i < ARRAY_LENGTH(indexed_tables); i++) {
        struct entries indexed = {0}, stored = {0};
        r = read_entries(file, connection, &indexed_tables[i], true, &indexed, error);
        if (!r)
            r = read_entries(file, connection, &indexed_tables[i], false, &stored, error);
        if (!r && (indexed.count != stored.count || indexed.sum != stored.sum))
            return damaged(file, indexed_tables[i].name, error);
    }
    return r;
}

static int load_lists(struct file *file, struct connection *connection, struct error *error)
{
    catalog_init(&file->catalog);
    int r = load_services(file, connection, error);
    if (!r)
        r = load_series(file, connection, error);
    if (!r)
        r = file_verify(file, connection, error);
    if (r < 0)
        catalog_release(&file->catalog);
    return r;
}

static int load_symbols(struct file *file, struct connection *connection, struct error *error)
{
    int r = 0;
    for (unsigned table = 0; !r && table < CATALOG_TABLES; table++) {
        r = load_chunks(file, connection, table, 0, error);
        file->catalog.kept[table] = catalog_count(&file->catalog, table, 0);
    }
    if (r < 0) { /* the lists stay: somebody may be reading them */
        profile_release(&file->catalog.tables);
        profile_init(&file->catalog.tables, PROFILE_ALL);
        for (unsigned table = 0; table < CATALOG_TABLES; table++)
            file->catalog.kept[table] = 1;
    }
    return r;
}

static int load_part(struct file *file, bool symbols, struct error *error)
{
    pthread_rwlock_rdlock(&file->lock);
    bool there = file->loaded && (file->named || !symbols);
    pthread_rwlock_unlock(&file->lock);
    if (there)
        return 0;
    struct error local = {0};
    struct connection *connection = file_borrow(file, &local);
    int r = connection ? file_run(file, connection, SQL_BEGIN_READ, &local) : local.code;
    pthread_rwlock_wrlock(&file->lock);
    if (!r && !file->loaded) {
        r = load_lists(file, connection, &local);
        file->loaded = !r;
    }
    if (!r && symbols && !file->named) {
        r = load_symbols(file, connection, &local);
        file->named = !r;
    }
    pthread_rwlock_unlock(&file->lock);
    if (connection)
        file_run(file, connection, SQL_COMMIT, NULL);
    file_return(file, connection);
    if (r < 0 && error)
        *error = local;
    return r;
}

int file_load(struct file *file, struct error *error)
{
    return load_part(file, true, error);
}

int file_load_series(struct file *file, struct error *error)
{
    return load_part(file, false, error);
}

int file_load_tree(struct file *file, uint32_t service, struct error *error)
{
    pthread_rwlock_rdlock(&file->lock);
    bool loaded = file->catalog.services[service].loaded;
    pthread_rwlock_unlock(&file->lock);
    if (loaded)
        return 0;
    struct error local = {0};
    struct connection *connection = file_borrow(file, &local);
    if (!connection) {
        if (error)
            *error = local;
        return local.code;
    }
    int r = 0;
    pthread_rwlock_wrlock(&file->lock);
    struct catalog_service *entry = &file->catalog.services[service];
    if (!entry->loaded) {
        /* Frames that the tree names may be newer than the catalog when another process writes. */
        r = load_chunks(file, connection, TABLE_NODES, service, &local);
        if (r < 0) {
            tree_release(&entry->tree);
            tree_init(&entry->tree);
        }
        entry->loaded = !r;
        entry->kept = entry->tree.count;
    }
    pthread_rwlock_unlock(&file->lock);
    file_return(file, connection);
    if (r < 0 && error)
        *error = local;
    return r;
}

/* ---- transactions ---- */

static int run_with_id(struct file *file, enum sql which, const void *id, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, which, error);
    if (!statement)
        return error->code;
    sqlite3_bind_blob(statement, 1, id, 16, SQLITE_STATIC);
    return file_step(file, statement, error);
}

/* Batches that are still in `unsure` afterwards are undecided. */
static int remove_settled(struct file *file, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < file->settled_count; i++)
        r = run_with_id(file, SQL_REMOVE_UNSURE, file->settled[i], error);
    return r;
}

static int remove_lost(struct file *file, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < file->lost_count; i++)
        r = file_remove_unsure(file, file->lost[i], error);
    return r;
}

int file_begin(struct file *file, struct error *error)
{
    struct error local = {0};
    int r = file_open(file, &local);
    file->added_count = 0;
    file->removed = file->notes_changed = false;
    if (!r)
        r = file_run(file, file->writer, SQL_BEGIN, &local);
    if (!r && !file->knows_rolled) {
        file->rolled_until_ns = file->from_ns;
        r = file_check_notes(file, file->writer, &local);
        if (!r)
            r = file_get_meta(file, file->writer, "rolled_until", &file->rolled_until_ns, &local);
        if (r >= 0)
            file->knows_rolled = true;
        else
            file_run(file, file->writer, SQL_ROLLBACK, NULL);
        r = r < 0 ? r : 0;
    }
    if (!r && ((r = remove_settled(file, &local)) < 0 || (r = remove_lost(file, &local)) < 0))
        file_run(file, file->writer, SQL_ROLLBACK, NULL);
    if (r < 0 && error)
        *error = local;
    return r;
}

static int add_chunk(struct file *file, enum catalog_table table, uint32_t service, uint32_t first,
                     uint32_t count, struct error *error)
{
    _cleanup_buffer_ struct buffer data = {0};
    catalog_pack(&file->catalog, table, service, first, count, &data);
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_ADD_CHUNK, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int(statement, 1, (int)table);
    sqlite3_bind_int64(statement, 2, service);
    sqlite3_bind_int64(statement, 3, first);
    sqlite3_bind_int64(statement, 4, count);
    sqlite3_bind_blob64(statement, 5, data.data, data.length, SQLITE_STATIC);
    return file_step(file, statement, error);
}

static int add_names(struct file *file, struct error *error)
{
    struct catalog *catalog = &file->catalog;
    int r = 0;
    for (size_t i = catalog->kept_services; !r && i < catalog->service_count; i++) {
        sqlite3_stmt *statement = file_sql(file, file->writer, SQL_ADD_SERVICE, error);
        if (!statement)
            return error->code;
        sqlite3_bind_int64(statement, 1, (int64_t)i);
        sqlite3_bind_text(statement, 2, catalog->services[i].name, -1, SQLITE_STATIC);
        r = file_step(file, statement, error);
    }
    for (size_t i = catalog->kept_series; !r && i < catalog->series_count; i++) {
        _cleanup_buffer_ struct buffer labels = {0};
        catalog_pack_row(&(struct catalog_row){.id = (int64_t)i,
                                               .service = catalog->series[i].service,
                                               .type = catalog->series[i].type},
                         &catalog->series[i].labels, &labels);
        sqlite3_stmt *statement = file_sql(file, file->writer, SQL_ADD_SERIES, error);
        if (!statement)
            return error->code;
        sqlite3_bind_int64(statement, 1, (int64_t)i);
        sqlite3_bind_int64(statement, 2, catalog->series[i].service);
        sqlite3_bind_text(statement, 3, catalog->series[i].type, -1, SQLITE_STATIC);
        sqlite3_bind_blob64(statement, 4, labels.data, labels.length, SQLITE_STATIC);
        r = file_step(file, statement, error);
    }
    return r;
}

/* How far the catalog went when a transaction wrote it. */
struct marks {
    uint32_t tables[CATALOG_TABLES];
    uint32_t *nodes;
    size_t services, series;
};

static int add_catalog(struct file *file, struct marks *marks, struct error *error)
{
    struct catalog *catalog = &file->catalog;
    *marks = (struct marks){.services = catalog->service_count, .series = catalog->series_count};
    marks->nodes = memory_zalloc(marks->services + 1, sizeof(*marks->nodes));
    int r = add_names(file, error);
    for (unsigned table = 0; !r && table < CATALOG_TABLES; table++) {
        uint32_t count = marks->tables[table] = catalog_count(catalog, table, 0);
        if (count > catalog->kept[table])
            r = add_chunk(file, table, 0, catalog->kept[table], count - catalog->kept[table],
                          error);
    }
    for (uint32_t i = 0; !r && i < marks->services; i++) {
        const struct catalog_service *service = &catalog->services[i];
        marks->nodes[i] = service->loaded ? service->tree.count : service->kept;
        if (marks->nodes[i] > service->kept)
            r = add_chunk(file, TABLE_NODES, i, service->kept, marks->nodes[i] - service->kept,
                          error);
    }
    return r;
}

static void note_kept(struct file *file, const struct marks *marks)
{
    struct catalog *catalog = &file->catalog;
    /* Tables and trees may have been loaded meanwhile, and then more of them is kept. */
    for (unsigned table = 0; table < CATALOG_TABLES; table++)
        catalog->kept[table] = MAX(catalog->kept[table], marks->tables[table]);
    catalog->kept_services = marks->services;
    catalog->kept_series = marks->series;
    for (size_t i = 0; i < marks->services; i++)
        catalog->services[i].kept = MAX(catalog->services[i].kept, marks->nodes[i]);
}

int file_end(struct file *file, int result, struct error *error)
{
    struct marks marks = {0};
    if (result >= 0) {
        struct error local = {0};
        pthread_rwlock_rdlock(&file->lock);
        if (file->loaded)
            result = add_catalog(file, &marks, &local);
        pthread_rwlock_unlock(&file->lock);
        if (result >= 0)
            result = file_seal_notes(file, &local);
        if (result >= 0 && file->added_count) { /* before anybody can see them */
            pthread_rwlock_wrlock(&file->lock);
            if (file->loaded)
                file_keep_spans(file);
            pthread_rwlock_unlock(&file->lock);
        }
        if (result >= 0)
            result = file_run(file, file->writer, SQL_COMMIT, &local);
        if (result < 0 && error)
            *error = local;
        file->changes += result >= 0;
        if (result >= 0)
            file->settled_count = file->lost_count = 0;
    }
    if (result >= 0 && marks.nodes) {
        pthread_rwlock_wrlock(&file->lock);
        note_kept(file, &marks);
        pthread_rwlock_unlock(&file->lock);
    }
    if (result < 0 || file->removed)
        file_lose_spans(file);
    /* SQLite may have rolled back by itself; then there is nothing to do. */
    if (result < 0 && !sqlite3_get_autocommit(file->writer->db))
        file_run(file, file->writer, SQL_ROLLBACK, NULL);
    free(marks.nodes);
    return result;
}

void file_remove_lost(struct file *file)
{
    struct error ignored;
    if (file->lost_count && !file_begin(file, &ignored))
        file_end(file, 0, &ignored);
}

int file_add_block(struct file *file, const struct file_block *block, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_ADD_BLOCK, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, block->series);
    sqlite3_bind_int64(statement, 2, block->start_ns);
    sqlite3_bind_int64(statement, 3, block->last_ns);
    sqlite3_bind_int64(statement, 4, block->level);
    sqlite3_bind_int64(statement, 5, (int64_t)block->windows);
    sqlite3_bind_int64(statement, 6, (int64_t)block->rows);
    sqlite3_bind_int64(statement, 7, block->total);
    if (block->unsure)
        sqlite3_bind_blob(statement, 8, block->unsure, 16, SQLITE_STATIC);
    sqlite3_bind_blob64(statement, 9, block->data, block->length, SQLITE_STATIC);
    if (!block->level)
        file->fresh++;
    file_note_span(file, block->series, block->start_ns, block->last_ns);
    return file_step(file, statement, error);
}

int file_remove_unsure(struct file *file, const void *id, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_UNSURE_STARTS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_blob(statement, 1, id, 16, SQLITE_STATIC);
    int r, noted = 0;
    while ((r = file_step(file, statement, error)) == 1 && !noted)
        noted = file_note_late(file, sqlite3_column_int64(statement, 0), error);
    if (noted < 0) {
        sqlite3_reset(statement);
        return noted;
    }
    file->removed = true;
    if (!r)
        r = run_with_id(file, SQL_REMOVE_UNSURE_BLOCKS, id, error);
    if (!r)
        r = run_with_id(file, SQL_REMOVE_UNSURE_EXEMPLARS, id, error);
    return r < 0 ? r : run_with_id(file, SQL_REMOVE_UNSURE, id, error);
}

static int read_number(struct file *file, enum sql which, int64_t *ret_number, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, which, error);
    int r = statement ? file_step(file, statement, error) : error->code;
    if (r == 1) {
        *ret_number = sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
    }
    return MIN(r, 0);
}

/* Compaction leaves small blocks' pages behind. While a file is written to, they are used again. */
int file_shrink(struct file *file, struct error *error)
{
    int64_t pages = 0, unused = 0, left = 0;
    pthread_mutex_lock(&file->write_lock);
    int r = file_open(file, error);
    if (!r)
        r = read_number(file, SQL_PAGES, &pages, error);
    if (!r)
        r = read_number(file, SQL_FREE_PAGES, &unused, error);
    sqlite3_stmt *statement = NULL;
    if (!r && unused > pages / 64 && !(statement = file_sql(file, file->writer, SQL_SHRINK, error)))
        r = error->code;
    if (statement) {
        while ((r = file_step(file, statement, error)) == 1)
            ;
        if (!r)
            r = read_number(file, SQL_FREE_PAGES, &left, error);
    }
    pthread_mutex_unlock(&file->write_lock);
    return r < 0 ? r : left < unused && left > pages / 64; /* not if nothing was given back */
}
