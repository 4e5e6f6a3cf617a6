// SPDX-License-Identifier: Apache-2.0
// After a deletion: takes out of a file what nothing in it uses any more, names, stacks and label
// sets, so that what should never have been stored is nowhere. Ids are positions, so all that
// remains gets new ones, in one transaction that rewrites the tables and every block; then the log
// is cut off, since old pages are in there still. SQLite overwrites what it frees (secure_delete).
//
// `scrub` in a file's meta table says how far that is: SCRUB_TABLES all is to be done, SCRUB_LOG
// the log is to be cut off.

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/memory.h"
#include "store/embedded/embedded.h"
#include "store/embedded/live.h"

#define GATE_WAIT_NS 500000000ll /* that others wait at most behind us, when we have to wait */

enum { SCRUB_TABLES = 1, SCRUB_LOG = 2 };

int file_note_scrub(struct file *file, struct error *error)
{
    int r = file_set_meta(file, "scrub", SCRUB_TABLES, error);
    if (!r)
        file->scrub = SCRUB_TABLES;
    return r;
}

struct scrub {
    struct embedded *store;
    struct file *file;
    struct block_codec *codec;
    struct catalog fresh;
    bool **used;      /* by service and node */
    bool *has_blocks; /* by series */
    uint32_t **nodes; /* new ids, by service and node */
    uint32_t *series; /* new ids */
    int64_t *ids;     /* of blocks */
    size_t id_count, id_capacity;
    size_t service_count, series_count; /* before */
    unsigned damaged;
};

static void scrub_release(struct scrub *scrub)
{
    for (size_t i = 0; i < scrub->service_count; i++) {
        free(scrub->used[i]);
        free(scrub->nodes[i]);
    }
    free(scrub->used);
    free(scrub->nodes);
    free(scrub->has_blocks);
    free(scrub->series);
    free(scrub->ids);
    catalog_release(&scrub->fresh);
    embedded_codec_return(scrub->store, scrub->codec);
}

static int scrub_init(struct scrub *scrub, struct embedded *store, struct file *file,
                      struct error *error)
{
    *scrub = (struct scrub){.store = store, .file = file, .codec = embedded_codec(store)};
    int r = file_load(file, error);
    if (r < 0)
        return r;
    scrub->service_count = file->catalog.service_count;
    scrub->series_count = file->catalog.series_count;
    scrub->used = memory_zalloc(scrub->service_count + 1, sizeof(*scrub->used));
    scrub->nodes = memory_zalloc(scrub->service_count + 1, sizeof(*scrub->nodes));
    scrub->has_blocks = memory_zalloc(scrub->series_count + 1, sizeof(bool));
    scrub->series = memory_zalloc(scrub->series_count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; !r && i < scrub->service_count; i++) {
        r = file_load_tree(file, i, error);
        if (!r) {
            uint32_t count = file->catalog.services[i].tree.count;
            scrub->used[i] = memory_zalloc(count, sizeof(bool));
            scrub->nodes[i] = memory_zalloc(count, sizeof(uint32_t));
        }
    }
    return r;
}

/* The service of a series, or ID_NONE. */
static uint32_t service_of(const struct scrub *scrub, int64_t series)
{
    return series >= 0 && (size_t)series < scrub->series_count
               ? scrub->file->catalog.series[series].service
               : ID_NONE;
}

/* A block opened; false when it can't be read or doesn't fit the tables. */
static bool open_block(struct scrub *scrub, sqlite3_stmt *statement, uint32_t *ret_service,
                       struct block_view *view)
{
    uint32_t service = service_of(scrub, sqlite3_column_int64(statement, 0));
    const void *data = sqlite3_column_blob(statement, 1);
    if (service == ID_NONE || !data ||
        block_open(scrub->codec, data, (size_t)sqlite3_column_bytes(statement, 1), view) < 0)
        return false;
    *ret_service = service;
    return !view->dictionary_count || view->dictionary[view->dictionary_count - 1] <
                                          scrub->file->catalog.services[service].tree.count;
}

static sqlite3_stmt *find_block(struct scrub *scrub, int64_t id, int *ret, struct error *error)
{
    sqlite3_stmt *statement = file_sql(scrub->file, scrub->file->writer, SQL_BLOCK, error);
    if (!statement) {
        *ret = error->code;
        return NULL;
    }
    sqlite3_bind_int64(statement, 1, id);
    *ret = file_step(scrub->file, statement, error);
    return *ret == 1 ? statement : NULL;
}

static int mark_blocks(struct scrub *scrub, struct error *error)
{
    struct file *file = scrub->file;
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_BLOCK_IDS, error);
    if (!statement)
        return error->code;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        array_reserve(scrub->ids, scrub->id_capacity, scrub->id_count + 1);
        scrub->ids[scrub->id_count++] = sqlite3_column_int64(statement, 0);
    }
    for (size_t i = 0; !r && i < scrub->id_count; i++) {
        struct block_view view;
        uint32_t service;
        if (!(statement = find_block(scrub, scrub->ids[i], &r, error)))
            continue;
        if (open_block(scrub, statement, &service, &view)) {
            scrub->has_blocks[sqlite3_column_int64(statement, 0)] = true;
            for (size_t k = 0; k < view.dictionary_count; k++)
                scrub->used[service][view.dictionary[k]] = true;
        }
        sqlite3_reset(statement);
        r = 0;
    }
    return r;
}

static int mark_exemplars(struct scrub *scrub, struct error *error)
{
    struct file *file = scrub->file;
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_EXEMPLAR_NODES, error);
    if (!statement)
        return error->code;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        int64_t series = sqlite3_column_int64(statement, 1),
                node = sqlite3_column_int64(statement, 2);
        uint32_t service = service_of(scrub, series);
        if (service != ID_NONE && scrub->has_blocks[series] && node >= 0 &&
            node < file->catalog.services[service].tree.count)
            scrub->used[service][node] = true;
    }
    return r;
}

/* Ancestors of what is used are used. False when everything is: there is nothing to take out. */
static bool mark_parents(struct scrub *scrub)
{
    const struct catalog *catalog = &scrub->file->catalog;
    bool unused = false;
    for (size_t i = 0; i < scrub->service_count; i++) {
        const struct tree *tree = &catalog->services[i].tree;
        bool *used = scrub->used[i];
        for (uint32_t node = tree->count - 1; node; node--) {
            if (used[node])
                used[tree->nodes[node].parent] = true;
            else
                unused = true;
        }
    }
    for (size_t i = 0; i < scrub->series_count; i++)
        unused |= !scrub->has_blocks[i];
    return unused;
}

/* Nodes are added in the order they had, so blocks' dictionaries stay ascending. */
static void make_catalog(struct scrub *scrub)
{
    const struct catalog *old = &scrub->file->catalog;
    struct catalog *fresh = &scrub->fresh;
    struct frame_map frames;
    catalog_init(fresh);
    frame_map_init(&frames, &old->tables, &fresh->tables);
    for (size_t i = 0; i < scrub->series_count; i++)
        scrub->series[i] = scrub->has_blocks[i]
                               ? catalog_series(fresh, &old->series[i].labels, old->series[i].type)
                               : ID_NONE;
    for (uint32_t i = 0; i < scrub->service_count; i++) {
        const struct tree *tree = &old->services[i].tree;
        struct tree *to = NULL;
        for (size_t k = 0; !to && k < fresh->service_count; k++)
            if (!strcmp(fresh->services[k].name, old->services[i].name))
                to = &fresh->services[k].tree;
        for (uint32_t node = 1; to && node < tree->count; node++)
            if (scrub->used[i][node])
                scrub->nodes[i][node] =
                    tree_child(to, scrub->nodes[i][tree->nodes[node].parent],
                               frame_map_frame(&frames, tree->nodes[node].frame));
    }
    frame_map_release(&frames);
}

static int remove_block(struct scrub *scrub, int64_t id, struct error *error)
{
    scrub->damaged++;
    sqlite3_stmt *statement = file_sql(scrub->file, scrub->file->writer, SQL_REMOVE_BLOCK, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, id);
    return file_step(scrub->file, statement, error);
}

/* A block with the new ids. One that can't be read would name other stacks than it did, and is
 * dropped. */
static int move_block(struct scrub *scrub, int64_t id, struct block_rows *rows, struct buffer *data,
                      struct error *error)
{
    struct block_view view;
    uint32_t service, series = ID_NONE;
    int r;
    block_rows_clear(rows);
    data->length = 0;
    sqlite3_stmt *statement = find_block(scrub, id, &r, error);
    if (!statement)
        return r;
    if (open_block(scrub, statement, &service, &view) &&
        !block_decode(&view, 0, view.window_count, rows)) {
        series = scrub->series[sqlite3_column_int64(statement, 0)];
        for (size_t i = 0; i < rows->row_count; i++)
            rows->nodes[i] = scrub->nodes[service][rows->nodes[i]];
        block_encode(scrub->codec, rows, 0, rows->window_count, data);
    }
    sqlite3_reset(statement);
    if (series == ID_NONE)
        return remove_block(scrub, id, error);
    if (!(statement = file_sql(scrub->file, scrub->file->writer, SQL_MOVE_BLOCK, error)))
        return error->code;
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int64(statement, 2, series);
    sqlite3_bind_blob64(statement, 3, data->data, data->length, SQLITE_STATIC);
    return file_step(scrub->file, statement, error);
}

static int move_blocks(struct scrub *scrub, struct error *error)
{
    struct block_rows rows = {0};
    _cleanup_buffer_ struct buffer data = {0};
    int r = 0;
    for (size_t i = 0; !r && i < scrub->id_count; i++)
        r = move_block(scrub, scrub->ids[i], &rows, &data, error);
    block_rows_release(&rows);
    return r;
}

struct exemplar_place {
    int64_t id, series, node;
};

static int move_exemplar(struct scrub *scrub, const struct exemplar_place *place,
                         struct error *error)
{
    struct file *file = scrub->file;
    uint32_t service = service_of(scrub, place->series);
    bool stays = service != ID_NONE && scrub->series[place->series] != ID_NONE &&
                 place->node >= 0 && place->node < file->catalog.services[service].tree.count;
    sqlite3_stmt *statement =
        file_sql(file, file->writer, stays ? SQL_MOVE_EXEMPLAR : SQL_DROP_EXEMPLAR, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, place->id);
    if (stays) {
        sqlite3_bind_int64(statement, 2, scrub->series[place->series]);
        sqlite3_bind_int64(statement, 3, scrub->nodes[service][place->node]);
    }
    return file_step(file, statement, error);
}

static int move_exemplars(struct scrub *scrub, struct error *error)
{
    struct file *file = scrub->file;
    struct exemplar_place *places = NULL;
    size_t count = 0, capacity = 0;
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_EXEMPLAR_NODES, error);
    if (!statement)
        return error->code;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        array_reserve(places, capacity, count + 1);
        places[count++] = (struct exemplar_place){.id = sqlite3_column_int64(statement, 0),
                                                  .series = sqlite3_column_int64(statement, 1),
                                                  .node = sqlite3_column_int64(statement, 2)};
    }
    for (size_t i = 0; !r && i < count; i++)
        r = move_exemplar(scrub, &places[i], error);
    free(places);
    return r;
}

static void exchange_catalogs(struct scrub *scrub)
{
    live_forget(scrub->file);
    pthread_rwlock_wrlock(&scrub->file->lock);
    struct catalog other = scrub->file->catalog;
    scrub->file->catalog = scrub->fresh;
    scrub->fresh = other;
    pthread_rwlock_unlock(&scrub->file->lock);
}

static int clear_tables(struct file *file, struct error *error)
{
    static const enum sql clear[] = {SQL_CLEAR_CHUNKS, SQL_CLEAR_SERIES, SQL_CLEAR_SERVICES};
    int r = 0;
    for (size_t i = 0; !r && i < ARRAY_LENGTH(clear); i++)
        r = file_run(file, file->writer, clear[i], error);
    return r;
}

/* Within a transaction, which file_end completes with the new tables. */
static int rewrite(struct scrub *scrub, bool *ret_exchanged, struct error *error)
{
    int r = mark_blocks(scrub, error);
    if (!r)
        r = mark_exemplars(scrub, error);
    if (!r && mark_parents(scrub)) {
        make_catalog(scrub);
        r = move_blocks(scrub, error);
        if (!r)
            r = move_exemplars(scrub, error);
        if (!r)
            r = clear_tables(scrub->file, error);
        if (!r) {
            exchange_catalogs(scrub);
            *ret_exchanged = true;
        }
    }
    return r < 0 ? r : file_set_meta(scrub->file, "scrub", SCRUB_LOG, error);
}

static int scrub_tables(struct embedded *store, struct file *file, struct error *error)
{
    struct scrub scrub;
    bool exchanged = false;
    int r = scrub_init(&scrub, store, file, error);
    if (!r && !(r = file_begin(file, error))) {
        r = rewrite(&scrub, &exchanged, error);
        r = file_end(file, r, error);
        if (r < 0 && exchanged)
            exchange_catalogs(&scrub);
        if (!r)
            file->scrub = SCRUB_LOG;
    }
    if (!r && scrub.damaged)
        embedded_problem(store, "%s had %u unreadable blocks, which a deletion has removed.",
                         file->path, scrub.damaged);
    scrub_release(&scrub);
    return r;
}

static int scrub_file(struct embedded *store, struct file *file, struct error *error)
{
    int r = 0;
    pthread_mutex_lock(&file->write_lock);
    if (file->scrub == SCRUB_TABLES)
        r = scrub_tables(store, file, error);
    if (!r)
        r = file_empty_log(file, error);
    if (!r && !(r = file_begin(file, error))) {
        r = file_end(file, file_remove_meta(file, "scrub", error), error);
        if (!r)
            file->scrub = 0;
    }
    pthread_mutex_unlock(&file->write_lock);
    return r;
}

/* A rollup that is still to be made again has what it is to lose. */
static bool is_late_below(const struct file_list *list, const struct file *file)
{
    for (size_t i = 0; i < list->count; i++) {
        struct file *source = list->files[i];
        if (source->tier >= file->tier || source->from_ns >= file->to_ns ||
            source->to_ns <= file->from_ns || source->gone ||
            strcmp(source->class_name, file->class_name) || strcmp(source->tenant, file->tenant))
            continue;
        struct error local = {0};
        struct connection *connection = file_borrow(source, &local);
        sqlite3_stmt *statement =
            connection ? file_sql(source, connection, SQL_LATE, &local) : NULL;
        int r = statement ? file_step(source, statement, &local) : 0;
        if (statement)
            sqlite3_reset(statement);
        file_return(source, connection);
        if (r == 1)
            return true;
    }
    return false;
}

static int take_gate(struct embedded *store)
{
    return condition_write_lock_until(&store->gate, monotonic_ns() + GATE_WAIT_NS);
}

int embedded_scrub(struct embedded *store, struct error *error)
{
    struct file_list list = embedded_files(store, NULL, INT64_MIN, INT64_MAX);
    int r = 0, left = 0;
    for (size_t i = 0; !r && i < list.count; i++) {
        struct file *file = list.files[i];
        if (!file->scrub || file->gone)
            continue;
        if (is_late_below(&list, file) || take_gate(store)) {
            left = 1;
            continue;
        }
        r = scrub_file(store, file, error);
        pthread_rwlock_unlock(&store->gate);
        if (r == -EBUSY) { /* another process reads */
            left = 1;
            r = 0;
        } else if (r == -EBADMSG) {
            embedded_set_aside(store, file, error->text);
            r = 0;
        }
    }
    embedded_release(store, &list);
    return r < 0 ? r : left;
}
