// SPDX-License-Identifier: Apache-2.0
// Reading the blocks that a plan names, file by file and service by service.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/embedded/plan.h"
#include "store/witness.h"

#define MANY_SERIES 1000 /* of a file: knowing when each has windows is worth the memory */

struct selected_series {
    uint32_t service, series;
    bool witness; /* only its windows' times count */
};

static int compare_series(const void *a, const void *b)
{
    const struct selected_series *x = a, *y = b;
    if (x->service != y->service)
        return x->service < y->service ? -1 : 1;
    return x->series < y->series ? -1 : x->series > y->series;
}

static int compare_exactly(const void *a, const void *b)
{
    const struct selected_series *x = a, *y = b;
    int order = compare_series(a, b);
    return order ? order : (int)x->witness - (int)y->witness;
}

static bool may_meet(const struct file *file, uint32_t series, const struct plan_range *ranges,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (file_span_meets(file, series, ranges[i].from_ns, ranges[i].to_ns) != SPAN_NO)
            return true;
    return false;
}

/* Those that the selection names and that may have something in the ranges, by service. */
static int select_series(struct reader *reader, const struct plan_range *ranges, size_t range_count,
                         struct selected_series **ret_list, size_t *ret_count, struct error *error)
{
    const struct store_selection *selection = reader->selection;
    struct file *file = ranges->file;
    struct error ignored;
    pthread_rwlock_rdlock(&file->lock);
    bool many = file->catalog.series_count > MANY_SERIES;
    pthread_rwlock_unlock(&file->lock);
    if (many) /* when that fails, each is looked up */
        file_load_spans(file, &ignored);
    bool any = false;
    pthread_rwlock_rdlock(&file->lock);
    for (size_t i = 0; i < range_count; i++)
        any |= file_meets(file, ranges[i].from_ns, ranges[i].to_ns);
    pthread_rwlock_unlock(&file->lock);
    if (!any) {
        *ret_list = memory_zalloc(1, sizeof(**ret_list));
        *ret_count = 0;
        return 0;
    }
    const struct catalog *catalog = &file->catalog;
    _cleanup_free_ uint32_t *ids = NULL;
    size_t selected, count = 0;
    int r = catalog_select(catalog, &file->lock, selection->type, selection->selector,
                           selection->matching, &ids, &selected, error);
    if (r < 0)
        return r;
    pthread_rwlock_rdlock(&file->lock);
    struct selected_series *list = memory_zalloc(selected + 1, sizeof(*list));
    for (size_t i = 0; i < selected; i++)
        if (may_meet(file, ids[i], ranges, range_count) &&
            !is_excluded(selection, &catalog->series[ids[i]].labels))
            list[count++] = (struct selected_series){.service = catalog->series[ids[i]].service,
                                                     .series = ids[i]};
    pthread_rwlock_unlock(&file->lock);
    if (count)
        qsort(list, count, sizeof(*list), compare_series);
    *ret_list = list;
    *ret_count = count;
    return 0;
}

/* ---- witnesses ---- */

static void note_selected(struct witnesses *witnesses, struct file *file,
                          const struct selected_series *list, size_t count)
{
    pthread_rwlock_rdlock(&file->lock);
    for (size_t i = 0; i < count; i++)
        witnesses_note(witnesses, &file->catalog.series[list[i].series].labels);
    pthread_rwlock_unlock(&file->lock);
}

/* Adds the series that only tell when a selected process was observed. They are looked for among
 * all of its service: labels of samples are not in rollups. */
static int add_witnesses(struct reader *reader, const struct witnesses *witnesses,
                         const struct plan_range *ranges, size_t range_count,
                         struct selected_series **list, size_t *count, struct error *error)
{
    const struct selector *selector = reader->selection->selector;
    _cleanup_free_ struct matcher *matchers = memory_zalloc(selector->count + 1, sizeof(*matchers));
    struct selector of_service = {.matchers = matchers};
    for (size_t i = 0; i < selector->count; i++)
        if (plan_is_rollup_label(selector->matchers[i].name))
            matchers[of_service.count++] = selector->matchers[i];
    struct store_selection selection = *reader->selection;
    selection.selector = &of_service;
    struct reader other = {.selection = &selection};
    struct selected_series *all;
    size_t all_count, kept = 0;
    int r = select_series(&other, ranges, range_count, &all, &all_count, error);
    if (r < 0)
        return r;
    const struct catalog *catalog = &ranges->file->catalog;
    pthread_rwlock_rdlock(&ranges->file->lock);
    for (size_t i = 0; i < all_count; i++)
        if (witnesses_has(witnesses, &catalog->series[all[i].series].labels) &&
            !bsearch(&all[i], *list, *count, sizeof(**list), compare_series)) {
            all[kept] = all[i];
            all[kept++].witness = true;
        }
    pthread_rwlock_unlock(&ranges->file->lock);
    if (kept) {
        size_t capacity = *count;
        array_reserve(*list, capacity, *count + kept);
        memcpy(*list + *count, all, kept * sizeof(*all));
        *count += kept;
        qsort(*list, *count, sizeof(**list), compare_exactly);
    }
    free(all);
    return 0;
}

/* ---- blocks ---- */

static void note_hash(struct reader *reader, uint64_t hash)
{
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&reader->seen, &probe)) != ID_NONE)
        if (reader->hashes[id] == hash)
            return;
    array_reserve(reader->hashes, reader->hash_capacity, reader->hash_count + 1);
    reader->hashes[reader->hash_count] = hash;
    id_table_insert(&reader->seen, hash, (uint32_t)reader->hash_count++);
    reader->quality->series++;
}

static void note_series(struct reader *reader, struct file *file, uint32_t series)
{
    pthread_rwlock_rdlock(&file->lock);
    uint64_t hash = file->catalog.series[series].hash;
    pthread_rwlock_unlock(&file->lock);
    note_hash(reader, hash);
}

/* Windows of the block in [from, to): they are in order of time. */
static void find_windows(const struct block_view *view, int64_t from_ns, int64_t to_ns,
                         size_t *ret_first, size_t *ret_count)
{
    size_t first = 0, end = view->window_count;
    while (first < end && view->windows[first].start_ns < from_ns)
        first++;
    while (end > first && view->windows[end - 1].start_ns >= to_ns)
        end--;
    *ret_first = first;
    *ret_count = end - first;
}

static void cover_block(struct reader *reader, struct file *file, uint32_t series, uint32_t group,
                        bool slots, const struct block_window *windows, size_t count)
{
    if (slots) {
        for (size_t w = 0; w < count; w++)
            covering_slot(reader->covering, group, &windows[w]);
        return;
    }
    pthread_rwlock_rdlock(&file->lock);
    const struct catalog_series *of = &file->catalog.series[series];
    covering_series(reader->covering, group, &of->labels, of->type);
    pthread_rwlock_unlock(&file->lock);
    for (size_t w = 0; w < count; w++)
        covering_window(reader->covering, &windows[w]);
}

static void leave_out(struct reader *reader, struct file *file)
{
    if (reader->quality)
        reader->quality->damaged_blocks++;
    embedded_note_damaged_block(reader->store, file);
}

/* `slots`: its windows are those of a rollup. */
static int use_block(struct reader *reader, struct file *file, uint32_t series, bool slots,
                     struct block_view *view, size_t first, size_t count, bool *any,
                     struct error *error)
{
    int r = reader->calls->block(reader, file, series, view, first, count, error);
    if (r == -EBADMSG) {
        leave_out(reader, file);
        return 0;
    }
    if (reader->quality) {
        reader->quality->blocks++;
        for (size_t w = first; w < first + count; w++) {
            const struct block_window *window = &view->windows[w];
            quality_add(reader->quality, window->first_ns, window->last_ns, window->windows,
                        window->raw_rows, window->total);
        }
    }
    if (reader->covering)
        cover_block(reader, file, series, reader->group, slots, view->windows + first, count);
    *any = true;
    return r;
}

static int read_block(struct reader *reader, struct file *file,
                      const struct selected_series *selected, const void *data, size_t length,
                      const struct plan_range *range, bool *any, struct error *error)
{
    struct block_view view;
    uint32_t series = selected->series;
    size_t first, count;
    if (!data || block_open_windows(reader->codec, data, length, &view) < 0) {
        leave_out(reader, file);
        return 0;
    }
    find_windows(&view, range->from_ns, range->to_ns, &first, &count);
    if (!count)
        return 0;
    if (selected->witness) {
        cover_block(reader, file, series, COVER_WITNESS, false, view.windows + first, count);
        return 0;
    }
    return use_block(reader, file, series, file->tier != STORE_RAW, &view, first, count, any,
                     error);
}
static void bind_range(sqlite3_stmt *statement, uint32_t series, const struct plan_range *range)
{
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, range->from_ns - tier_block_ns[range->file->tier]);
    sqlite3_bind_int64(statement, 3, range->to_ns);
    sqlite3_bind_int64(statement, 4, range->from_ns);
}

static int read_series(struct reader *reader, const struct selected_series *selected,
                       const struct plan_range *ranges, size_t count, struct error *error)
{
    uint32_t series = selected->series;
    struct file *file = ranges->file;
    bool any = false;
    int r = 0;
    for (size_t i = 0; !r && i < count; i++) {
        sqlite3_stmt *statement = file_sql(file, reader->connection, SQL_BLOCKS, error);
        if (!statement)
            return error->code;
        bind_range(statement, series, &ranges[i]);
        while ((r = file_step(file, statement, error)) == 1) {
            const void *data = sqlite3_column_blob(statement, 1);
            size_t length = (size_t)sqlite3_column_bytes(statement, 1);
            r = read_block(reader, file, selected, data, length, &ranges[i], &any, error);
            if (!r && is_cancelled(reader->limits))
                r = error_cancelled(error);
            if (r) {
                sqlite3_reset(statement);
                break;
            }
        }
    }
    if (any && reader->quality) {
        note_series(reader, file, series);
        reader->quality->tiers |= 1u << file->tier;
    }
    return r;
}

static int read_live(struct reader *reader, struct file *file, const struct live_block *block,
                     struct error *error)
{
    struct block_view view;
    bool any = false;
    int r = block_open_windows(reader->codec, block->data, block->length, &view);
    if (!r)
        r = use_block(reader, file, block->series, true, &view, 0, view.window_count, &any, error);
    if (any && reader->quality) {
        note_hash(reader, block->hash);
        reader->quality->tiers |= 1u << file->tier;
    }
    return !r && is_cancelled(reader->limits) ? error_cancelled(error) : r;
}

/* ---- units of work: a service of a file ---- */

struct reader_unit {
    struct file *file;
    uint32_t service;
    const struct plan_range *ranges; /* of its file */
    size_t range_count;
    const struct selected_series *series;
    size_t series_count;
    struct live_block *const *lives;
    size_t live_count;
    bool done;
};

struct reader_work {
    struct embedded *store;
    struct reader_unit *units;
    size_t count, capacity;
    void **lists; /* what units point into */
    size_t list_count, list_capacity;
    struct file **damaged; /* set aside */
    size_t damaged_count, damaged_capacity;

    pthread_mutex_t lock; /* for what is above but the units, and for what follows */
    pthread_cond_t changed;
    size_t next, turn; /* units nobody has taken yet; all before the turn are done */
    int result;
    struct error error;
};

static void work_release(struct reader_work *work)
{
    for (size_t i = 0; i < work->list_count; i++)
        free(work->lists[i]);
    free(work->lists);
    free(work->units);
    free(work->damaged);
    pthread_mutex_destroy(&work->lock);
    pthread_cond_destroy(&work->changed);
}

struct selected_file {
    struct file *file;
    const struct plan_range *ranges;
    size_t range_count;
    struct selected_series *list;
    size_t count;
    struct live_block **lives; /* by service; the plan's */
    size_t live_count, live_capacity;
};

static void keep_list(struct reader_work *work, void *list)
{
    array_reserve(work->lists, work->list_capacity, work->list_count + 1);
    work->lists[work->list_count++] = list;
}

/* Which takes the file's lists. */
static void add_units(struct reader_work *work, const struct selected_file *file)
{
    keep_list(work, file->list);
    keep_list(work, file->lives);
    size_t i = 0, k = 0;
    while (i < file->count || k < file->live_count) {
        uint32_t service = MIN(i < file->count ? file->list[i].service : UINT32_MAX,
                               k < file->live_count ? file->lives[k]->service : UINT32_MAX);
        struct reader_unit unit = {.file = file->file,
                                   .service = service,
                                   .ranges = file->ranges,
                                   .range_count = file->range_count,
                                   .series = file->list + i,
                                   .lives = file->lives + k};
        while (i < file->count && file->list[i].service == service) {
            unit.series_count++;
            i++;
        }
        while (k < file->live_count && file->lives[k]->service == service) {
            unit.live_count++;
            k++;
        }
        array_reserve(work->units, work->capacity, work->count + 1);
        work->units[work->count++] = unit;
    }
}

static void note_damaged(struct reader *reader, struct file *file, const struct error *error)
{
    struct reader_work *work = reader->work;
    embedded_set_aside(work->store, file, error->text);
    pthread_mutex_lock(&work->lock);
    bool known = false;
    for (size_t i = 0; i < work->damaged_count; i++)
        known |= work->damaged[i] == file;
    if (!known) {
        array_reserve(work->damaged, work->damaged_capacity, work->damaged_count + 1);
        work->damaged[work->damaged_count++] = file;
        if (reader->quality)
            reader->quality->damaged_files++;
    }
    pthread_mutex_unlock(&work->lock);
}

static int test_labels(const struct store_selection *selection, const struct labels *labels,
                       bool *ret_wanted, struct error *error)
{
    const struct selector *selector = selection->selector;
    struct matching matching;
    bool wanted = true;
    int r = 0;
    matching_begin(&matching, selection->matching);
    for (size_t i = 0; !r && wanted && selector && i < selector->count; i++) {
        const char *value = labels_get(labels, selector->matchers[i].name);
        r = matching_test(&matching, &selector->matchers[i], value ? value : "", &wanted, error);
    }
    matching_end(&matching);
    *ret_wanted = wanted && !r;
    return r;
}

/* Slots from memory: those of the groups that are selected. Selectors that rollups don't know
 * never get here. */
static int select_live(struct reader *reader, const struct plan_live *live,
                       struct selected_file *selected, struct error *error)
{
    const struct store_selection *selection = reader->selection;
    const struct live_list *blocks = &live->blocks;
    int r = 0;
    for (size_t i = 0; !r && i < blocks->count; i++) {
        struct live_block *block = blocks->list[i];
        bool wanted = false;
        pthread_rwlock_rdlock(&live->file->lock);
        const struct catalog_series *series = &live->file->catalog.series[block->series];
        struct labels labels = series->labels; /* its texts stay where they are */
        const char *type = series->type;
        pthread_rwlock_unlock(&live->file->lock);
        if ((!selection->type || !strcmp(type, selection->type)) &&
            !is_excluded(selection, &labels))
            r = test_labels(selection, &labels, &wanted, error);
        if (!wanted)
            continue;
        array_reserve(selected->lives, selected->live_capacity, selected->live_count + 1);
        selected->lives[selected->live_count++] = block;
    }
    return r;
}

static int compare_lives(const void *a, const void *b)
{
    const struct live_block *x = *(struct live_block *const *)a,
                            *y = *(struct live_block *const *)b;
    if (x->service != y->service)
        return x->service < y->service ? -1 : 1;
    return x->series < y->series ? -1 : x->series > y->series;
}

static int load_file(struct reader *reader, struct file *file, bool *ret_damaged,
                     struct error *error)
{
    int r = file_load(file, error);
    embedded_count_catalog(reader->store, file);
    *ret_damaged = embedded_is_damaged(reader->store, file, r);
    if (*ret_damaged)
        note_damaged(reader, file, error);
    return *ret_damaged ? 0 : r;
}

/* The plan's files, each once, with what is selected of it. */
static int select_files(struct reader *reader, const struct plan *plan, struct selected_file *files,
                        size_t *ret_count, struct error *error)
{
    size_t count = 0;
    int r = 0;
    for (size_t i = 0, end; i < plan->count; i = end) {
        for (end = i; end < plan->count && plan->ranges[end].file == plan->ranges[i].file; end++)
            ;
        files[count++] = (struct selected_file){
            .file = plan->ranges[i].file, .ranges = &plan->ranges[i], .range_count = end - i};
    }
    for (size_t i = 0; i < plan->live_count; i++) {
        size_t at = 0;
        while (at < count && files[at].file != plan->lives[i].file)
            at++;
        if (at == count)
            files[count++] = (struct selected_file){.file = plan->lives[i].file};
    }
    *ret_count = count;
    for (size_t i = 0; !r && i < count; i++) {
        bool damaged;
        struct selected_file *file = &files[i];
        if ((r = load_file(reader, file->file, &damaged, error)) < 0 || damaged)
            continue;
        if (file->range_count)
            r = select_series(reader, file->ranges, file->range_count, &file->list, &file->count,
                              error);
        for (size_t k = 0; !r && k < plan->live_count; k++)
            if (plan->lives[k].file == file->file) {
                r = select_live(reader, &plan->lives[k], file, error);
                if (reader->quality)
                    reader->quality->damaged_blocks += plan->lives[k].blocks.damaged_blocks;
                if (plan->lives[k].blocks.damaged_blocks)
                    embedded_note_damaged_block(reader->store, file->file);
            }
        if (file->live_count)
            qsort(file->lives, file->live_count, sizeof(*file->lives), compare_lives);
    }
    return r;
}

/* All files are asked for what is selected before any is for witnesses: a process may have series
 * of both kinds in different files. */
static int find_units(struct reader *reader, const struct plan *plan, struct error *error)
{
    _cleanup_witnesses_ struct witnesses witnesses = {.selector = reader->selection->selector};
    _cleanup_free_ struct selected_file *files =
        memory_zalloc(plan->count + plan->live_count + 1, sizeof(*files));
    size_t file_count;
    int r = select_files(reader, plan, files, &file_count, error);
    for (size_t i = 0; !r && reader->covering && i < file_count; i++)
        if (files[i].file->tier == STORE_RAW)
            note_selected(&witnesses, files[i].file, files[i].list, files[i].count);
    for (size_t i = 0; i < file_count; i++) {
        struct selected_file *file = &files[i];
        if (!r && file->list && witnesses.count && file->file->tier == STORE_RAW)
            r = add_witnesses(reader, &witnesses, file->ranges, file->range_count, &file->list,
                              &file->count, error);
        add_units(reader->work, file);
    }
    return r;
}

static void leave_file(struct reader *reader)
{
    if (reader->connection && !sqlite3_get_autocommit(reader->connection->db))
        file_run(reader->file, reader->connection, SQL_COMMIT, NULL);
    if (reader->file)
        file_return(reader->file, reader->connection);
    reader->connection = NULL;
    reader->file = NULL;
}

static int enter_file(struct reader *reader, struct file *file, struct error *error)
{
    if (reader->file == file)
        return 0;
    leave_file(reader);
    reader->connection = file_borrow(file, error);
    reader->file = reader->connection ? file : NULL;
    return reader->connection ? 0 : error->code;
}

/* A transaction each: one that is held open lets the log grow. */
static int read_unit(struct reader *reader, const struct reader_unit *unit, struct error *error)
{
    struct file *file = unit->file;
    uint32_t service = unit->service;
    int r = enter_file(reader, file, error);
    if (!r)
        r = file_run(file, reader->connection, SQL_BEGIN_READ, error);
    if (!r && reader->calls->begin)
        r = reader->calls->begin(reader, file, service, error);
    for (size_t i = 0; !r && reader->calls->block && i < unit->series_count; i++)
        r = read_series(reader, &unit->series[i], unit->ranges, unit->range_count, error);
    for (size_t i = 0; !r && reader->calls->block && i < unit->live_count; i++)
        r = read_live(reader, file, unit->lives[i], error);
    if (reader->covering) /* processes are of one service */
        covering_settle(reader->covering);
    if (!r && reader->calls->end)
        r = reader->calls->end(reader, file, service, error);
    return r ? r : file_run(file, reader->connection, SQL_COMMIT, error);
}

static bool take_unit(struct reader *reader)
{
    struct reader_work *work = reader->work;
    pthread_mutex_lock(&work->lock);
    bool taken = !work->result && work->next < work->count;
    if (taken)
        reader->unit = work->next++;
    pthread_mutex_unlock(&work->lock);
    return taken;
}

static void finish_unit(struct reader *reader, int result, const struct error *error)
{
    struct reader_work *work = reader->work;
    pthread_mutex_lock(&work->lock);
    work->units[reader->unit].done = true;
    while (work->turn < work->count && work->units[work->turn].done)
        work->turn++;
    if (result && !work->result) {
        work->result = result;
        work->error = *error;
    }
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

int reader_wait_turn(struct reader *reader, struct error *error)
{
    struct reader_work *work = reader->work;
    pthread_mutex_lock(&work->lock);
    while (work->turn != reader->unit && !work->result)
        pthread_cond_wait(&work->changed, &work->lock);
    int r = work->result;
    if (r)
        *error = work->error;
    pthread_mutex_unlock(&work->lock);
    return r;
}

static void read_units(void *context)
{
    struct reader *reader = context;
    struct reader_work *work = reader->work;
    reader->codec = embedded_codec(reader->store);
    while (take_unit(reader)) {
        struct reader_unit *unit = &work->units[reader->unit];
        struct error error = {0};
        bool damaged = false;
        pthread_mutex_lock(&work->lock);
        for (size_t i = 0; i < work->damaged_count; i++)
            damaged |= work->damaged[i] == unit->file;
        pthread_mutex_unlock(&work->lock);
        int r = damaged ? 0 : read_unit(reader, unit, &error);
        if (r)
            leave_file(reader);
        if (embedded_is_damaged(reader->store, unit->file, r)) {
            note_damaged(reader, unit->file, &error);
            r = 0;
        }
        finish_unit(reader, r, &error);
    }
    leave_file(reader);
    embedded_codec_return(reader->store, reader->codec);
    reader->codec = NULL;
}

static void join_stats(struct reader *first, const struct reader *second)
{
    struct store_quality *to = first->quality;
    const struct store_quality *from = second->quality;
    if (!to)
        return;
    for (size_t i = 0; i < second->hash_count; i++)
        note_hash(first, second->hashes[i]);
    if (from->windows)
        quality_add(to, from->first_ns, from->last_ns, from->windows, from->rows, from->total);
    to->blocks += from->blocks;
    to->cut = add_saturated(to->cut, from->cut);
    to->tiers |= from->tiers;
    to->damaged_blocks += from->damaged_blocks;
    to->damaged_files += from->damaged_files;
}

static void forget_series(struct reader *reader)
{
    id_table_release(&reader->seen);
    free(reader->hashes);
    reader->hashes = NULL;
    reader->hash_count = reader->hash_capacity = 0;
}

int reader_run_pair(struct reader *first, struct reader *second, const struct plan *plan,
                    struct error *error)
{
    struct reader_work work = {.store = first->store,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .changed = PTHREAD_COND_INITIALIZER};
    first->work = &work;
    int r = find_units(first, plan, error);
    if (!r) {
        struct helper *helper = NULL;
        if (second && work.count > 1) {
            second->work = &work;
            helper = helpers_call(&first->store->helpers, read_units, second);
        }
        read_units(first);
        helper_wait(helper);
        if (second)
            join_stats(first, second);
        if (second && first->covering)
            covering_join(first->covering, second->covering);
        if ((r = work.result))
            *error = work.error;
    }
    forget_series(first);
    if (second)
        forget_series(second);
    work_release(&work);
    return r;
}

int reader_run(struct reader *reader, const struct plan *plan, struct error *error)
{
    return reader_run_pair(reader, NULL, plan, error);
}

static int file_total(struct reader *reader, const struct plan_range *range, int64_t *total,
                      struct error *error)
{
    struct file *file = range->file;
    size_t count;
    _cleanup_free_ struct selected_series *list = NULL;
    int r = file_load(file, error);
    if (!r)
        r = select_series(reader, range, 1, &list, &count, error);
    struct connection *connection = r < 0 ? NULL : file_borrow(file, error);
    if (!connection)
        return error->code;
    file_run(file, connection, SQL_BEGIN_READ, NULL);
    for (size_t i = 0; !r && i < count; i++) {
        sqlite3_stmt *statement = file_sql(file, connection, SQL_TOTALS, error);
        if (!statement) {
            r = error->code;
            break;
        }
        bind_range(statement, list[i].series, range);
        while ((r = file_step(file, statement, error)) == 1)
            *total = add_saturated(*total, magnitude(sqlite3_column_int64(statement, 0)));
    }
    file_run(file, connection, SQL_COMMIT, NULL);
    file_return(file, connection);
    return r;
}

int reader_total(struct reader *reader, const struct plan *plan, int64_t *ret_total,
                 struct error *error)
{
    int64_t total = 0;
    for (size_t i = 0; i < plan->count; i++) {
        int r = file_total(reader, &plan->ranges[i], &total, error);
        if (r < 0 && r != -EBADMSG) /* that will be noticed again, and dealt with */
            return r;
    }
    for (size_t i = 0; i < plan->live_count; i++) {
        struct selected_file selected = {0};
        int r = select_live(reader, &plan->lives[i], &selected, error);
        for (size_t k = 0; k < selected.live_count; k++)
            total = add_saturated(total, magnitude(selected.lives[k]->total));
        free(selected.lives);
        if (r < 0)
            return r;
    }
    *ret_total = total;
    return 0;
}
