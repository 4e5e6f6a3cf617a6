// SPDX-License-Identifier: Apache-2.0
// Which series, labels and types there are in a time, from the files' catalogs: see catalog_index.c
// and file_spans.c. The database itself is asked only where memory can't tell: about rollups, which
// have few series, and about an hour that a range cuts.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/embedded/outlived.h"
#include "store/embedded/plan.h"

/* ---- one file ---- */

struct lister {
    struct file *file;
    const struct store_selection *selection;
    struct time_spans spans;
    struct connection *connection; /* when one was needed */
    struct error *error;
};

static void lister_release(struct lister *lister)
{
    file_return(lister->file, lister->connection);
    time_spans_release(&lister->spans);
}

/* 1 when the series has a block that meets the range. */
static int has_block(struct lister *lister, uint32_t series, const struct time_span *span)
{
    struct file *file = lister->file;
    if (!lister->connection && !(lister->connection = file_borrow(file, lister->error)))
        return lister->error->code;
    sqlite3_stmt *statement = file_sql(file, lister->connection, SQL_TOTALS, lister->error);
    if (!statement)
        return lister->error->code;
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, span->from_ns - tier_block_ns[file->tier]);
    sqlite3_bind_int64(statement, 3, span->to_ns);
    sqlite3_bind_int64(statement, 4, span->from_ns);
    int r = file_step(file, statement, lister->error);
    sqlite3_reset(statement);
    return r;
}

/* 1 when the series has windows in the file's spans. */
static int is_there(struct lister *lister, uint32_t series)
{
    int r = 0;
    for (size_t i = 0; !r && i < lister->spans.count; i++) {
        const struct time_span *span = &lister->spans.list[i];
        enum span_answer answer = file_span_meets(lister->file, series, span->from_ns, span->to_ns);
        r = answer == SPAN_MAYBE ? has_block(lister, series, span) : answer == SPAN_YES;
    }
    return r;
}

/* The time range of a series in the whole file. */
static int find_times(struct lister *lister, uint32_t id, int64_t *ret_first_ns,
                      int64_t *ret_last_ns)
{
    struct file *file = lister->file;
    if (file->catalog.spans_known) {
        *ret_first_ns = file->catalog.series[id].first_ns;
        *ret_last_ns = file->catalog.series[id].last_ns;
        return 1;
    }
    if (!lister->connection && !(lister->connection = file_borrow(file, lister->error)))
        return lister->error->code;
    sqlite3_stmt *statement = file_sql(file, lister->connection, SQL_SPANS, lister->error);
    if (!statement)
        return lister->error->code;
    sqlite3_bind_int64(statement, 1, id);
    int r = file_step(file, statement, lister->error);
    if (r == 1) {
        *ret_first_ns = sqlite3_column_int64(statement, 0);
        *ret_last_ns = sqlite3_column_int64(statement, 1);
    }
    sqlite3_reset(statement);
    return r;
}

/* Where a file's series count: a rollup's, which know less, only where nothing finer is left. */
static int find_spans(struct lister *lister, const struct file_list *list)
{
    const struct store_selection *selection = lister->selection;
    struct file *file = lister->file;
    struct time_spans *spans = &lister->spans;
    if (file->tier != STORE_RAW)
        return outlived_spans(list, file, selection->from_ns, selection->to_ns, spans,
                              lister->error);
    array_reserve(spans->list, spans->capacity, 1);
    spans->list[spans->count++] =
        (struct time_span){.from_ns = MAX(selection->from_ns, file->from_ns),
                           .to_ns = MIN(selection->to_ns, file->to_ns)};
    return 0;
}

/* ---- all files ---- */

typedef int lister_fn(struct lister *lister, void *context);

static int for_each_file(struct embedded *store, const struct file_list *list,
                         const struct store_selection *selection, lister_fn *fn, void *context,
                         struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < list->count; i++) {
        struct file *file = list->files[i];
        struct lister lister = {.file = file, .selection = selection, .error = error};
        r = find_spans(&lister, list);
        if (!r && lister.spans.count && !(r = file_load_series(file, error)) &&
            !(r = file_load_spans(file, error)))
            r = fn(&lister, context);
        lister_release(&lister);
        if (r == -EBADMSG) {
            embedded_set_aside(store, file, error->text);
            r = 0;
        }
    }
    return r;
}

/* ---- series ---- */

struct found_series {
    struct labels labels; /* the catalog's texts, which stay while the file is held */
    const char *type;
    uint64_t hash;
    int64_t first_ns, last_ns;
};

struct series_list {
    struct found_series *list;
    size_t count, capacity;
    struct id_table index;
};

static void add_found(struct series_list *list, const struct catalog_series *series,
                      int64_t first_ns, int64_t last_ns)
{
    struct id_probe probe = id_probe_start(series->hash);
    uint32_t id;
    while ((id = id_table_next(&list->index, &probe)) != ID_NONE) {
        struct found_series *found = &list->list[id];
        if (found->hash == series->hash && labels_equal(&found->labels, &series->labels) &&
            !strcmp(found->type, series->type)) {
            found->first_ns = MIN(found->first_ns, first_ns);
            found->last_ns = MAX(found->last_ns, last_ns);
            return;
        }
    }
    id = (uint32_t)list->count++;
    array_reserve(list->list, list->capacity, list->count);
    list->list[id] = (struct found_series){.labels = series->labels,
                                           .type = series->type,
                                           .hash = series->hash,
                                           .first_ns = first_ns,
                                           .last_ns = last_ns};
    id_table_insert(&list->index, series->hash, id);
}

static int select_ids(struct lister *lister, uint32_t **ret_ids, size_t *ret_count)
{
    const struct store_selection *selection = lister->selection;
    return catalog_select(&lister->file->catalog, &lister->file->lock, selection->type,
                          selection->selector, selection->matching, ret_ids, ret_count,
                          lister->error);
}

static int list_series(struct lister *lister, void *context)
{
    struct series_list *found = context;
    const struct catalog *catalog = &lister->file->catalog;
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count;
    int r = select_ids(lister, &ids, &count);
    if (r < 0)
        return r;
    pthread_rwlock_rdlock(&lister->file->lock);
    for (size_t i = 0; r >= 0 && i < count; i++) {
        int64_t first = 0, last = 0;
        r = is_there(lister, ids[i]);
        if (r == 1)
            r = find_times(lister, ids[i], &first, &last);
        if (r == 1)
            add_found(found, &catalog->series[ids[i]], first, last);
    }
    pthread_rwlock_unlock(&lister->file->lock);
    return MIN(r, 0);
}

int embedded_series(struct store *base, const struct store_selection *selection,
                    store_series_fn *fn, void *context, struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct series_list found = {0};
    struct file_list list =
        embedded_files(store, selection->tenant, selection->from_ns, selection->to_ns);
    int r = for_each_file(store, &list, selection, list_series, &found, error);
    for (size_t i = 0; !r && i < found.count; i++)
        r = fn(context, &found.list[i].labels, found.list[i].type, found.list[i].first_ns,
               found.list[i].last_ns);
    embedded_release(store, &list);
    free(found.list);
    id_table_release(&found.index);
    return r;
}

/* ---- names, values and types ---- */

struct texts_query {
    enum store_texts what;
    const char *name; /* of the label whose values are wanted */
    struct text_set *set;
};

/* 1 when any series that has the pair is there: most often the first one is. */
static int is_pair_there(struct lister *lister, uint32_t pair)
{
    const struct catalog *catalog = &lister->file->catalog;
    int r = 0;
    for (uint32_t id = catalog->index.pairs[pair].first; !r && id != ID_NONE;
         id = catalog_next_with(catalog, id, pair))
        r = is_there(lister, id);
    return r;
}

static int list_all_names(struct lister *lister, struct text_set *set)
{
    const struct label_index *index = &lister->file->catalog.index;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < index->name_count; i++) {
        r = 0;
        for (uint32_t pair = index->names[i].first; *index->names[i].text && !r && pair != ID_NONE;
             pair = index->pairs[pair].next)
            r = is_pair_there(lister, pair);
        if (r == 1)
            text_set_add(set, index->names[i].text);
    }
    return MIN(r, 0);
}

static int list_all_values(struct lister *lister, uint32_t name, struct text_set *set)
{
    const struct label_index *index = &lister->file->catalog.index;
    int r = 0;
    for (uint32_t pair = index->names[name].first; r >= 0 && pair != ID_NONE;
         pair = index->pairs[pair].next) {
        r = is_pair_there(lister, pair);
        if (r == 1)
            text_set_add(set, index->pairs[pair].value);
    }
    return MIN(r, 0);
}

/* Of the selected series: each text of the file is looked at once. */
static int list_selected(struct lister *lister, const struct texts_query *query, uint32_t name,
                         const uint32_t *ids, size_t count)
{
    const struct catalog *catalog = &lister->file->catalog;
    const struct label_index *index = &catalog->index;
    bool names = query->what == TEXTS_NAMES;
    _cleanup_free_ bool *seen =
        memory_zalloc(names ? index->name_count : index->pair_count, sizeof(bool));
    int r = 0;
    for (size_t i = 0; r >= 0 && i < count; i++) {
        const struct catalog_series *series = &catalog->series[ids[i]];
        const struct index_slot *slots = catalog_slots(series);
        int there = -1; /* not asked yet */
        for (size_t k = 0; k <= series->labels.count && there; k++) {
            uint32_t pair = slots[k].pair, pair_name = index->pairs[pair].name;
            if (names ? k == series->labels.count || seen[pair_name]
                      : pair_name != name || seen[pair])
                continue;
            if (there < 0 && (there = r = is_there(lister, ids[i])) <= 0)
                break;
            seen[names ? pair_name : pair] = true;
            text_set_add(query->set,
                         names ? index->names[pair_name].text : index->pairs[pair].value);
        }
    }
    return MIN(r, 0);
}

/* With the file's lock held; `ids` NULL: all series. */
static int list_locked(struct lister *lister, const struct texts_query *query, const uint32_t *ids,
                       size_t count)
{
    uint32_t name = ID_NONE;
    if (query->what != TEXTS_NAMES) {
        bool types = query->what == TEXTS_TYPES;
        name = label_index_name(&lister->file->catalog.index, types ? "" : query->name);
        if (name == ID_NONE || (!types && !*query->name))
            return 0;
    }
    if (ids)
        return list_selected(lister, query, name, ids, count);
    return name == ID_NONE ? list_all_names(lister, query->set)
                           : list_all_values(lister, name, query->set);
}

static int list_texts(struct lister *lister, void *context)
{
    const struct store_selection *selection = lister->selection;
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count = 0;
    int r = 0;
    if (selection->type || (selection->selector && selection->selector->count))
        r = select_ids(lister, &ids, &count);
    if (r < 0)
        return r;
    pthread_rwlock_rdlock(&lister->file->lock);
    r = list_locked(lister, context, ids, count);
    pthread_rwlock_unlock(&lister->file->lock);
    return r;
}

int embedded_texts(struct store *base, const struct store_selection *selection,
                   enum store_texts what, const char *name, struct text_set *set,
                   struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct texts_query query = {.what = what, .name = name, .set = set};
    struct file_list list =
        embedded_files(store, selection->tenant, selection->from_ns, selection->to_ns);
    int r = for_each_file(store, &list, selection, list_texts, &query, error);
    embedded_release(store, &list);
    return r;
}
