// SPDX-License-Identifier: Apache-2.0
// Slots that are not rolled up yet, in memory: see live.h.

#include "store/embedded/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/cover.h"
#include "store/embedded/plan.h"

#define SLOT_NS COVER_SLOT_NS
#define UNUSED_NS 900000000000ll  /* then a slot is forgotten */
#define MEMORY_PART 16            /* of the store's limit, for all slots */
#define UNSORTED_ROWS 4096        /* of a group, before rows of one stack are added up */
#define SERIES_BETWEEN_LOOKS 1024 /* at the memory, while a slot is made */
#define BLOCKS_BETWEEN_LOOKS 1024 /* likewise, while new ones are added */

struct live_group {
    uint32_t series; /* any of them, for the labels */
    uint64_t hash;
    struct block_window window; /* without cover */
    uint32_t *nodes;            /* the first `sorted` each once and in order */
    int64_t *values;
    size_t count, node_capacity, value_capacity, sorted;
    struct live_block *block; /* NULL: something has come since it was made */
};

struct live_service {
    struct live_group *groups;
    size_t count, capacity;
    struct covering covering;
    bool changed;
};

struct live_series {
    uint32_t id, service, group;
    struct cover_series cover;
};

struct live_slot {
    int64_t slot_ns, used_ns;
    int64_t first_ns, last_ns; /* starts of windows */
    struct live_service *services;
    size_t service_count, service_capacity;
    struct live_series *series;
    size_t series_count, series_capacity;
    struct id_table index;
    size_t bytes;
    unsigned damaged_blocks;
    bool disordered; /* a series' windows came out of order: to be made again */
    bool too_large;  /* for the memory: not held */
};

struct live {
    int64_t mark;        /* id of the last block that was added */
    int64_t known_ns;    /* slots from here on that aren't held are empty */
    unsigned spans_lost; /* of the catalog, when this began */
    struct live_slot **slots;
    size_t count, capacity;
    struct block_rows rows;
    uint64_t *sums;
    size_t sum_capacity;
    _Atomic size_t *store_bytes; /* of all files */
};

/* ---- lifetimes ---- */

static void block_unref(struct live_block *block)
{
    if (block && atomic_fetch_sub(&block->references, 1) == 1)
        free(block);
}

void live_list_release(struct live_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        block_unref(list->list[i]);
    free(list->list);
    *list = (struct live_list){0};
}

static void slot_free(struct live_slot *slot)
{
    for (size_t i = 0; i < slot->service_count; i++) {
        struct live_service *service = &slot->services[i];
        for (size_t g = 0; g < service->count; g++) {
            free(service->groups[g].nodes);
            free(service->groups[g].values);
            block_unref(service->groups[g].block);
        }
        free(service->groups);
        covering_release(&service->covering);
    }
    free(slot->services);
    free(slot->series);
    id_table_release(&slot->index);
    free(slot);
}

static void forget_slot(struct live *live, size_t at)
{
    struct live_slot *slot = live->slots[at];
    live->known_ns = MAX(live->known_ns, slot->slot_ns + SLOT_NS);
    atomic_fetch_sub(live->store_bytes, slot->bytes);
    slot_free(slot);
    live->slots[at] = live->slots[--live->count];
}

static void free_live(struct live *live)
{
    if (!live)
        return;
    while (live->count)
        forget_slot(live, live->count - 1);
    free(live->slots);
    block_rows_release(&live->rows);
    free(live->sums);
    free(live);
}

static void count_slot(struct live *live, struct live_slot *slot)
{
    size_t bytes = sizeof(*slot) + slot->series_capacity * (sizeof(*slot->series) + 16) +
                   slot->service_capacity * sizeof(*slot->services);
    for (size_t i = 0; i < slot->service_count; i++) {
        const struct live_service *service = &slot->services[i];
        bytes += service->capacity * sizeof(*service->groups) + covering_memory(&service->covering);
        for (size_t g = 0; g < service->count; g++) {
            const struct live_group *group = &service->groups[g];
            bytes += group->node_capacity * sizeof(*group->nodes) +
                     group->value_capacity * sizeof(*group->values) +
                     (group->block ? sizeof(*group->block) + group->block->length : 0);
        }
    }
    atomic_fetch_add(live->store_bytes, bytes - slot->bytes);
    slot->bytes = bytes;
}

static bool is_full(const struct embedded *store)
{
    return atomic_load(&store->live_bytes) > store->memory_limit_bytes / MEMORY_PART;
}

/* Other slots of the file go first, longest unused first. False when this one alone is too large,
 * or other files' are. */
static bool make_room(struct embedded *store, struct live *live, const struct live_slot *kept)
{
    while (is_full(store)) {
        size_t oldest = live->count;
        for (size_t i = 0; i < live->count; i++)
            if (live->slots[i] != kept &&
                (oldest == live->count || live->slots[i]->used_ns < live->slots[oldest]->used_ns))
                oldest = i;
        if (oldest == live->count)
            return false;
        forget_slot(live, oldest);
    }
    return true;
}

/* ---- adding blocks ---- */

static int64_t slot_of(int64_t time_ns)
{
    int64_t past = time_ns % SLOT_NS;
    return time_ns - (past < 0 ? past + SLOT_NS : past);
}

static struct live_slot *find_slot(const struct live *live, int64_t slot_ns, size_t *ret_at)
{
    for (size_t i = 0; i < live->count; i++)
        if (live->slots[i]->slot_ns == slot_ns) {
            if (ret_at)
                *ret_at = i;
            return live->slots[i];
        }
    return NULL;
}

static struct live_slot *add_slot(struct live *live, int64_t slot_ns)
{
    struct live_slot *slot = memory_zalloc(1, sizeof(*slot));
    *slot = (struct live_slot){
        .slot_ns = slot_ns, .used_ns = monotonic_ns(), .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    array_reserve(live->slots, live->capacity, live->count + 1);
    live->slots[live->count++] = slot;
    return slot;
}

static bool same_group(const struct catalog_series *a, const struct labels *labels,
                       const char *type)
{
    size_t k = 0;
    for (size_t i = 0; i < a->labels.count; i++) {
        const struct label *label = &a->labels.list[i];
        if (!plan_is_rollup_label(label->name))
            continue;
        if (k == labels->count || strcmp(labels->list[k].name, label->name) ||
            strcmp(labels->list[k].value, label->value))
            return false;
        k++;
    }
    return k == labels->count && !strcmp(a->type, type);
}

/* With the file's lock held. */
static uint32_t find_group(struct live_service *service, const struct catalog *catalog, uint32_t id)
{
    const struct catalog_series *series = &catalog->series[id];
    _cleanup_labels_ struct labels labels = {0};
    plan_rollup_labels(&series->labels, &labels);
    uint64_t hash = catalog_series_hash(&labels, series->type);
    for (uint32_t g = 0; g < service->count; g++)
        if (service->groups[g].hash == hash &&
            same_group(&catalog->series[service->groups[g].series], &labels, series->type))
            return g;
    array_reserve(service->groups, service->capacity, service->count + 1);
    service->groups[service->count] = (struct live_group){.series = id, .hash = hash};
    return (uint32_t)service->count++;
}

static const struct store_selection all_times = {.from_ns = INT64_MIN, .to_ns = INT64_MAX};

/* NULL: the catalog doesn't know it, nor does any query. */
static struct live_series *find_series(struct live_slot *slot, struct file *file, uint32_t id)
{
    uint64_t hash = hash_word(id + 1ul);
    struct id_probe probe = id_probe_start(hash);
    uint32_t at;
    while ((at = id_table_next(&slot->index, &probe)) != ID_NONE)
        if (slot->series[at].id == id)
            return &slot->series[at];
    pthread_rwlock_rdlock(&file->lock);
    const struct catalog *catalog = &file->catalog;
    if (id >= catalog->series_count) {
        pthread_rwlock_unlock(&file->lock);
        return NULL;
    }
    const struct catalog_series *series = &catalog->series[id];
    array_reserve(slot->services, slot->service_capacity, series->service + 1ul);
    for (; slot->service_count <= series->service; slot->service_count++) {
        slot->services[slot->service_count] = (struct live_service){0};
        covering_init(&slot->services[slot->service_count].covering, &all_times, 0);
    }
    struct live_service *service = &slot->services[series->service];
    uint32_t group = find_group(service, catalog, id);
    array_reserve(slot->series, slot->series_capacity, slot->series_count + 1);
    struct live_series *added = &slot->series[slot->series_count];
    covering_series(&service->covering, group, &series->labels, series->type);
    *added = (struct live_series){.id = id, .service = series->service, .group = group};
    covering_leave(&service->covering, &added->cover);
    added->cover.last_start_ns = added->cover.last_end_ns = INT64_MIN;
    pthread_rwlock_unlock(&file->lock);
    id_table_insert(&slot->index, hash, (uint32_t)slot->series_count++);
    return added;
}

static void add_up_rows(struct live *live, struct live_group *group)
{
    const struct block_window none = {0};
    block_rows_clear(&live->rows);
    block_rows_add(&live->rows, &none, group->nodes, group->values, group->count);
    group->count = group->sorted = live->rows.row_count;
    memcpy(group->nodes, live->rows.nodes, group->count * sizeof(*group->nodes));
    memcpy(group->values, live->rows.values, group->count * sizeof(*group->values));
}

static int add_rows(struct live *live, struct live_group *group, struct block_view *view,
                    size_t first, size_t count)
{
    size_t entries = view->dictionary_count;
    array_reserve(live->sums, live->sum_capacity, entries + 1);
    memset(live->sums, 0, entries * sizeof(*live->sums));
    int r = block_sum(view, first, count, live->sums);
    if (r < 0)
        return r;
    array_reserve(group->nodes, group->node_capacity, group->count + entries);
    array_reserve(group->values, group->value_capacity, group->count + entries);
    for (size_t i = 0; i < entries; i++) {
        if (!live->sums[i] && count < view->window_count)
            continue;
        group->nodes[group->count] = view->dictionary[i];
        group->values[group->count++] = block_scale(view, live->sums[i]);
    }
    if (group->count > 2 * group->sorted + UNSORTED_ROWS)
        add_up_rows(live, group);
    return 0;
}

/* Windows of one series and this slot. */
static void add_windows(struct live *live, struct live_slot *slot, struct file *file, uint32_t id,
                        struct block_view *view, size_t first, size_t count)
{
    struct live_series *series = find_series(slot, file, id);
    if (!series)
        return;
    struct live_service *service = &slot->services[series->service];
    struct live_group *group = &service->groups[series->group];
    if (view->windows[first].start_ns < series->cover.last_start_ns) {
        slot->disordered = true;
        return;
    }
    pthread_rwlock_rdlock(&file->lock);
    const struct catalog_service *of = &file->catalog.services[series->service];
    uint32_t nodes = of->loaded ? of->tree.count : UINT32_MAX;
    pthread_rwlock_unlock(&file->lock);
    if (block_open_stacks(view) < 0 ||
        (view->dictionary_count && view->dictionary[view->dictionary_count - 1] >= nodes) ||
        add_rows(live, group, view, first, count) < 0) {
        slot->damaged_blocks++;
        return;
    }
    covering_resume(&service->covering, &series->cover);
    struct block_window *to = &group->window;
    for (size_t w = first; w < first + count; w++) {
        const struct block_window *from = &view->windows[w];
        to->first_ns = to->windows ? MIN(to->first_ns, from->first_ns) : from->first_ns;
        to->last_ns = to->windows ? MAX(to->last_ns, from->last_ns) : from->last_ns;
        to->windows += from->windows;
        to->raw_rows += from->raw_rows;
        slot->first_ns = MIN(slot->first_ns, from->start_ns);
        slot->last_ns = MAX(slot->last_ns, from->start_ns);
        covering_window(&service->covering, from);
    }
    covering_leave(&service->covering, &series->cover);
    block_unref(group->block);
    group->block = NULL;
    service->changed = true;
}

static void add_to_slot(struct live *live, struct live_slot *slot, struct file *file, uint32_t id,
                        struct block_view *view)
{
    size_t first = 0, end = view->window_count;
    while (first < end && view->windows[first].start_ns < slot->slot_ns)
        first++;
    while (end > first && view->windows[end - 1].start_ns >= slot->slot_ns + SLOT_NS)
        end--;
    if (end > first)
        add_windows(live, slot, file, id, view, first, end - first);
}

/* ---- what has come since the last look ---- */

static int read_number(struct file *file, struct connection *connection, enum sql which,
                       int64_t *ret_number, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, connection, which, error);
    int r = statement ? file_step(file, statement, error) : error->code;
    if (r == 1)
        *ret_number = sqlite3_column_int64(statement, 0);
    if (statement)
        sqlite3_reset(statement);
    return MIN(r, 0);
}

static void add_new_block(struct live *live, struct file *file, struct block_codec *codec,
                          sqlite3_stmt *statement)
{
    uint32_t series = (uint32_t)sqlite3_column_int64(statement, 1);
    int64_t start = sqlite3_column_int64(statement, 2), last = sqlite3_column_int64(statement, 3);
    const void *data = sqlite3_column_blob(statement, 4);
    struct block_view view;
    bool opened = data && block_open_windows(
                              codec, data, (size_t)sqlite3_column_bytes(statement, 4), &view) >= 0;
    if (start < file->from_ns || last < start || last >= file->to_ns)
        return; /* damage, which whoever reads the block meets */
    for (int64_t at = slot_of(start); at <= last; at += SLOT_NS) {
        struct live_slot *slot = find_slot(live, at, NULL);
        if (!slot && at >= live->known_ns)
            slot = add_slot(live, at);
        if (!slot || slot->disordered || slot->too_large)
            continue;
        if (opened)
            add_to_slot(live, slot, file, series, &view);
        else
            slot->damaged_blocks++;
    }
}

static void keep_to_memory(struct embedded *store, struct live *live)
{
    for (size_t i = 0; i < live->count; i++)
        count_slot(live, live->slots[i]);
    make_room(store, live, NULL);
}

static int add_new(struct embedded *store, struct live *live, struct file *file,
                   struct connection *connection, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, connection, SQL_NEW_BLOCKS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, live->mark);
    struct block_codec *codec = NULL;
    size_t added = 0;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        live->mark = sqlite3_column_int64(statement, 0);
        codec = codec ? codec : embedded_codec(store);
        if (!sqlite3_column_int(statement, 5)) /* compaction's hold nothing new */
            add_new_block(live, file, codec, statement);
        if (++added % BLOCKS_BETWEEN_LOOKS == 0)
            keep_to_memory(store, live);
    }
    if (!codec)
        return r;
    embedded_codec_return(store, codec);
    keep_to_memory(store, live);
    return r;
}

static void drop_unused(struct live *live)
{
    int64_t before = monotonic_ns() - UNUSED_NS;
    for (size_t i = live->count; i; i--)
        if (live->slots[i - 1]->used_ns < before || live->slots[i - 1]->disordered)
            forget_slot(live, i - 1);
}

/* From which slot on a file has nothing yet. */
static int64_t find_known(struct file *file)
{
    int64_t last = file->from_ns - 1;
    pthread_rwlock_rdlock(&file->lock);
    const struct catalog *catalog = &file->catalog;
    bool known = catalog->spans_known;
    for (size_t i = 0; i < catalog->series_count; i++)
        if (catalog->series[i].hours)
            last = MAX(last, catalog->series[i].last_ns);
    pthread_rwlock_unlock(&file->lock);
    return known ? slot_of(last) + SLOT_NS : INT64_MAX;
}

/* Up to date, in a transaction for reading. */
static int refresh(struct embedded *store, struct file *file, struct connection *connection,
                   struct error *error)
{
    struct live *live = file->live;
    pthread_rwlock_rdlock(&file->lock);
    unsigned lost = file->catalog.spans_lost;
    pthread_rwlock_unlock(&file->lock);
    if (live && live->spans_lost != lost) {
        free_live(live);
        live = file->live = NULL;
    }
    if (live) {
        drop_unused(live); /* before more is added to them */
        int r = add_new(store, live, file, connection, error);
        drop_unused(live);
        return r;
    }
    int64_t mark = 0;
    int r = read_number(file, connection, SQL_LAST_BLOCK, &mark, error);
    if (r < 0)
        return r;
    live = file->live = memory_zalloc(1, sizeof(*live));
    file->free_live = free_live;
    *live = (struct live){.mark = mark,
                          .known_ns = find_known(file),
                          .spans_lost = lost,
                          .store_bytes = &store->live_bytes};
    return 0;
}

/* ---- a slot of all blocks ---- */

static int make_series(struct live *live, struct live_slot *slot, struct file *file,
                       struct connection *connection, struct block_codec *codec, uint32_t id,
                       struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, connection, SQL_BLOCKS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int64(statement, 2, slot->slot_ns - tier_block_ns[file->tier]);
    sqlite3_bind_int64(statement, 3, slot->slot_ns + SLOT_NS);
    sqlite3_bind_int64(statement, 4, slot->slot_ns);
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        struct block_view view;
        const void *data = sqlite3_column_blob(statement, 1);
        if (data &&
            block_open_windows(codec, data, (size_t)sqlite3_column_bytes(statement, 1), &view) >= 0)
            add_to_slot(live, slot, file, id, &view);
        else
            slot->damaged_blocks++;
    }
    return r;
}

static int make_slot(struct embedded *store, struct live *live, struct file *file,
                     struct connection *connection, int64_t slot_ns, struct error *error)
{
    struct live_slot *slot = add_slot(live, slot_ns);
    struct block_codec *codec = embedded_codec(store);
    pthread_rwlock_rdlock(&file->lock);
    size_t count = file->catalog.series_count;
    pthread_rwlock_unlock(&file->lock);
    int r = 0;
    for (uint32_t id = 0; !r && id < count; id++) {
        pthread_rwlock_rdlock(&file->lock);
        bool there = file_span_meets(file, id, slot_ns, slot_ns + SLOT_NS) != SPAN_NO;
        pthread_rwlock_unlock(&file->lock);
        if (there)
            r = make_series(live, slot, file, connection, codec, id, error);
        if (id % SERIES_BETWEEN_LOOKS)
            continue;
        count_slot(live, slot);
        if (!make_room(store, live, slot))
            break;
    }
    embedded_codec_return(store, codec);
    count_slot(live, slot);
    bool fits = make_room(store, live, slot);
    size_t at;
    if ((r < 0 || !fits) && find_slot(live, slot_ns, &at)) {
        forget_slot(live, at);
        if (r >= 0)
            add_slot(live, slot_ns)->too_large = true;
    }
    return r;
}

/* ---- giving ---- */

static void make_block(struct embedded *store, struct live *live, const struct live_slot *slot,
                       uint32_t service, struct live_group *group,
                       const struct block_window *window)
{
    _cleanup_buffer_ struct buffer data = {0};
    block_rows_clear(&live->rows);
    block_rows_add(&live->rows, window, group->nodes, group->values, group->count);
    group->count = group->sorted = live->rows.row_count;
    if (group->count) {
        memcpy(group->nodes, live->rows.nodes, group->count * sizeof(*group->nodes));
        memcpy(group->values, live->rows.values, group->count * sizeof(*group->values));
    }
    live->rows.windows[0].start_ns = slot->slot_ns;
    struct block_codec *codec = embedded_codec(store);
    block_encode(codec, &live->rows, 0, 1, &data);
    embedded_codec_return(store, codec);
    group->block = memory_alloc(sizeof(*group->block) + data.length);
    *group->block = (struct live_block){.references = 1,
                                        .service = service,
                                        .series = group->series,
                                        .hash = group->hash,
                                        .total = live->rows.windows[0].total,
                                        .length = data.length};
    memcpy(group->block->data, data.data, data.length);
}

/* Groups that something came for; all of a service's where they share processes. */
static void make_blocks(struct embedded *store, struct live *live, struct live_slot *slot,
                        uint32_t id)
{
    struct live_service *service = &slot->services[id];
    struct covering parts;
    if (!service->changed)
        return;
    covering_settle_copy(&service->covering, &parts);
    for (uint32_t g = 0; g < service->count; g++) {
        struct live_group *group = &service->groups[g];
        if (group->block && !service->covering.shared)
            continue;
        block_unref(group->block);
        group->block = NULL;
        if (!group->window.windows)
            continue;
        struct block_window window = group->window;
        window.start_ns = slot->slot_ns;
        covering_fill_slot(&parts, g, &window);
        make_block(store, live, slot, id, group, &window);
    }
    covering_release(&parts);
    service->changed = false;
}

static void give(struct embedded *store, struct live *live, struct live_slot *slot,
                 struct live_list *list)
{
    for (uint32_t id = 0; id < slot->service_count; id++) {
        make_blocks(store, live, slot, id);
        for (size_t g = 0; g < slot->services[id].count; g++) {
            struct live_block *block = slot->services[id].groups[g].block;
            if (!block)
                continue;
            atomic_fetch_add(&block->references, 1);
            array_reserve(list->list, list->capacity, list->count + 1);
            list->list[list->count++] = block;
        }
    }
    list->damaged_blocks += slot->damaged_blocks;
    slot->used_ns = monotonic_ns();
    count_slot(live, slot);
}

static int take(struct embedded *store, struct file *file, struct connection *connection,
                int64_t slot_ns, int64_t from_ns, int64_t to_ns, bool make, struct live_list *list,
                struct error *error)
{
    int r = refresh(store, file, connection, error);
    if (r < 0)
        return r;
    struct live *live = file->live;
    struct live_slot *slot = find_slot(live, slot_ns, NULL);
    if (!slot && slot_ns >= live->known_ns)
        return 1;
    if (!slot && make && !is_full(store)) {
        r = make_slot(store, live, file, connection, slot_ns, error);
        slot = r < 0 ? NULL : find_slot(live, slot_ns, NULL);
    }
    if (!slot || slot->too_large || slot->disordered ||
        (slot->series_count && (slot->first_ns < from_ns || slot->last_ns >= to_ns)))
        return MIN(r, 0);
    give(store, live, slot, list);
    return 1;
}

int live_take(struct embedded *store, struct file *file, int64_t slot_ns, int64_t from_ns,
              int64_t to_ns, bool make, struct live_list *list, struct error *error)
{
    if (file->tier != STORE_RAW || file->read_only)
        return 0;
    pthread_mutex_lock(&file->live_lock);
    bool any = file->live;
    pthread_mutex_unlock(&file->live_lock);
    if (!any && !make)
        return 0;
    int r = file_load_series(file, error);
    if (!r)
        r = file_load_spans(file, error);
    struct connection *connection = r < 0 ? NULL : file_borrow(file, error);
    if (!connection)
        return error->code;
    pthread_mutex_lock(&file->live_lock);
    r = file_run(file, connection, SQL_BEGIN_READ, error);
    if (!r)
        r = take(store, file, connection, slot_ns, from_ns, to_ns, make, list, error);
    file_run(file, connection, SQL_COMMIT, NULL);
    pthread_mutex_unlock(&file->live_lock);
    file_return(file, connection);
    return r;
}

/* ---- compaction ---- */

void live_forget(struct file *file)
{
    pthread_mutex_lock(&file->live_lock);
    free_live(file->live);
    file->live = NULL;
    pthread_mutex_unlock(&file->live_lock);
}

void live_settle(struct embedded *store, struct file *file)
{
    struct error error = {0};
    pthread_mutex_lock(&file->live_lock);
    struct connection *connection = file->live ? file_borrow(file, &error) : NULL;
    if (connection) {
        int r = file_run(file, connection, SQL_BEGIN_READ, &error);
        if (!r)
            r = refresh(store, file, connection, &error);
        file_run(file, connection, SQL_COMMIT, NULL);
        file_return(file, connection);
        connection = r < 0 ? NULL : connection;
    }
    if (!connection) {
        free_live(file->live);
        file->live = NULL;
    }
    pthread_mutex_unlock(&file->live_lock);
}

void live_remark(struct file *file)
{
    struct error error = {0};
    pthread_mutex_lock(&file->live_lock);
    if (file->live &&
        read_number(file, file->writer, SQL_LAST_BLOCK, &file->live->mark, &error) < 0) {
        free_live(file->live);
        file->live = NULL;
    }
    pthread_mutex_unlock(&file->live_lock);
}
