// SPDX-License-Identifier: Apache-2.0
// Rollups: each tier's slots are made from the tier below, by service, version and type.
//
// The order makes it safe to stop anywhere. First the source notes, in one transaction, how far it
// is rolled up, and all slots up to there as late; whatever comes for that time from then on is
// noted as late too. Then each late slot is made, in one transaction of the target that replaces
// what was there, and its note is removed if nothing came meanwhile.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/embedded/plan.h"

#define SLOTS_AT_ONCE 36 /* of a round, so that other files get their turn */

struct group { /* a series of the target, while a service is read */
    uint32_t series;
    struct block_window window;
    int64_t *sums;
};

struct rollup {
    struct reader reader;
    struct file *target;
    struct block_codec *codec; /* the reader's is busy */
    int64_t slot_ns;           /* the slot being made */
    struct group *groups;
    size_t group_count, group_capacity;
    uint32_t node_count;
    uint64_t *block_sums;
    size_t block_sums_capacity;
    struct frame_map
        frames; /* of the source in the target; target's lock is held while it is used */
    bool has_frames;
    uint32_t *rows_nodes;
    int64_t *rows_values;
    size_t node_capacity, value_capacity;
};

static int rollup_begin(struct reader *reader, struct file *file, uint32_t service,
                        struct error *error)
{
    struct rollup *rollup = (struct rollup *)reader;
    int r = file_load_tree(file, service, error);
    if (r < 0)
        return r;
    pthread_rwlock_rdlock(&file->lock);
    rollup->node_count = file->catalog.services[service].tree.count;
    pthread_rwlock_unlock(&file->lock);
    rollup->group_count = 0;
    return 0;
}

/* The target's series that one of the source counts for. */
static uint32_t target_series(struct rollup *rollup, struct file *file, uint32_t series)
{
    _cleanup_labels_ struct labels labels = {0};
    _cleanup_free_ char *type = NULL;
    pthread_rwlock_rdlock(&file->lock);
    plan_rollup_labels(&file->catalog.series[series].labels, &labels);
    type = memory_strdup(file->catalog.series[series].type);
    pthread_rwlock_unlock(&file->lock);
    pthread_rwlock_wrlock(&rollup->target->lock);
    uint32_t id = catalog_series(&rollup->target->catalog, &labels, type);
    pthread_rwlock_unlock(&rollup->target->lock);
    return id;
}

static struct group *find_group(struct rollup *rollup, struct file *file, uint32_t series)
{
    uint32_t id = target_series(rollup, file, series);
    for (size_t i = 0; i < rollup->group_count; i++)
        if (rollup->groups[i].series == id)
            return &rollup->groups[i];
    array_reserve(rollup->groups, rollup->group_capacity, rollup->group_count + 1);
    struct group *group = &rollup->groups[rollup->group_count++];
    *group = (struct group){.series = id,
                            .window = {.start_ns = rollup->slot_ns},
                            .sums = memory_zalloc(rollup->node_count, sizeof(int64_t))};
    return group;
}

static int rollup_block(struct reader *reader, struct file *file, uint32_t series,
                        struct block_view *view, size_t first, size_t count, struct error *error)
{
    struct rollup *rollup = (struct rollup *)reader;
    size_t entries = view->dictionary_count;
    (void)error;
    if (block_open_stacks(view) < 0 ||
        (entries && view->dictionary[entries - 1] >= rollup->node_count))
        return -EBADMSG;
    array_reserve(rollup->block_sums, rollup->block_sums_capacity, entries + 1);
    memset(rollup->block_sums, 0, entries * sizeof(*rollup->block_sums));
    int r = block_sum(view, first, count, rollup->block_sums);
    if (r < 0)
        return r;
    struct group *group = find_group(rollup, file, series);
    reader->group = (uint32_t)(group - rollup->groups);
    for (size_t i = 0; i < entries; i++) {
        int64_t *sum = &group->sums[view->dictionary[i]];
        *sum = add_saturated(*sum, block_scale(view, rollup->block_sums[i]));
    }
    for (size_t w = first; w < first + count; w++) {
        const struct block_window *from = &view->windows[w];
        struct block_window *to = &group->window;
        to->first_ns = to->windows ? MIN(to->first_ns, from->first_ns) : from->first_ns;
        to->last_ns = to->windows ? MAX(to->last_ns, from->last_ns) : from->last_ns;
        to->windows += from->windows;
        to->raw_rows += from->raw_rows;
    }
    return 0;
}

/* Carries a group's stacks to the target's tree; the rows are in rows_nodes and rows_values. */
static size_t carry_rows(struct rollup *rollup, struct file *file, uint32_t service,
                         const struct group *group)
{
    size_t count = 0;
    pthread_rwlock_rdlock(&file->lock);
    pthread_rwlock_wrlock(&rollup->target->lock);
    struct catalog *target = &rollup->target->catalog;
    if (!rollup->has_frames)
        frame_map_init(&rollup->frames, &file->catalog.tables, &target->tables);
    rollup->has_frames = true;
    frame_map_refresh(&rollup->frames);
    struct node_map map;
    node_map_init(&map, &rollup->frames, file->catalog.services[service].tree.nodes,
                  rollup->node_count, &target->services[target->series[group->series].service].tree,
                  NULL);
    for (uint32_t i = 0; i < rollup->node_count; i++) {
        if (!group->sums[i])
            continue;
        array_reserve(rollup->rows_nodes, rollup->node_capacity, count + 1);
        array_reserve(rollup->rows_values, rollup->value_capacity, count + 1);
        rollup->rows_nodes[count] = node_map_node(&map, i);
        rollup->rows_values[count++] = group->sums[i];
    }
    node_map_release(&map);
    pthread_rwlock_unlock(&rollup->target->lock);
    pthread_rwlock_unlock(&file->lock);
    return count;
}

static int load_target_tree(struct rollup *rollup, uint32_t series, struct error *error)
{
    struct file *target = rollup->target;
    pthread_rwlock_rdlock(&target->lock);
    uint32_t service = target->catalog.series[series].service;
    pthread_rwlock_unlock(&target->lock);
    return file_load_tree(target, service, error);
}

/* One window, of the slot, as a block of the target. */
static int write_window(struct rollup *rollup, uint32_t series, const struct block_rows *rows,
                        size_t at, struct error *error)
{
    _cleanup_buffer_ struct buffer data = {0};
    const struct block_window *window = &rows->windows[at];
    block_encode(rollup->codec, rows, at, 1, &data);
    return file_add_block(rollup->target,
                          &(struct file_block){.series = series,
                                               .start_ns = rollup->slot_ns,
                                               .last_ns = rollup->slot_ns,
                                               .windows = window->windows,
                                               .rows = window->raw_rows,
                                               .total = window->total,
                                               .data = data.data,
                                               .length = data.length},
                          error);
}

static int write_group(struct rollup *rollup, struct file *file, uint32_t service,
                       const struct group *group, struct error *error)
{
    int r = load_target_tree(rollup, group->series, error);
    if (r < 0)
        return r;
    size_t count = carry_rows(rollup, file, service, group);
    struct block_rows rows = {0};
    block_rows_add(&rows, &group->window, rollup->rows_nodes, rollup->rows_values, count);
    r = write_window(rollup, group->series, &rows, 0, error);
    block_rows_release(&rows);
    return r;
}

/* ---- of a slot that was added up in memory already ---- */

/* With both files' locks held. */
static void carry_block(struct rollup *rollup, const struct live_block *block,
                        struct block_codec *codec, struct node_map *map, struct block_rows *rows)
{
    struct block_view view;
    struct block_rows from = {0};
    int r = block_open(codec, block->data, block->length, &view);
    if (!r)
        r = block_decode(&view, 0, view.window_count, &from);
    size_t kept = 0;
    for (size_t i = 0; !r && i < from.row_count; i++)
        if (from.nodes[i] < map->node_count) {
            from.nodes[kept] = node_map_node(map, from.nodes[i]);
            from.values[kept++] = from.values[i];
        }
    struct block_window window = {.start_ns = rollup->slot_ns};
    if (!r)
        window = from.windows[0];
    rollup->reader.quality->damaged_blocks += r < 0 || kept < from.row_count;
    block_rows_add(rows, &window, from.nodes, from.values, kept);
    block_rows_release(&from);
}

static void carry_blocks(struct rollup *rollup, struct file *file, struct live_block *const *blocks,
                         size_t count, uint32_t series, struct block_rows *rows)
{
    struct block_codec *codec = embedded_codec(rollup->reader.store);
    pthread_rwlock_rdlock(&file->lock);
    pthread_rwlock_wrlock(&rollup->target->lock);
    struct catalog *target = &rollup->target->catalog;
    const struct tree *tree = &file->catalog.services[blocks[0]->service].tree;
    if (!rollup->has_frames)
        frame_map_init(&rollup->frames, &file->catalog.tables, &target->tables);
    rollup->has_frames = true;
    frame_map_refresh(&rollup->frames);
    struct node_map map;
    node_map_init(&map, &rollup->frames, tree->nodes, tree->count,
                  &target->services[target->series[series].service].tree, NULL);
    for (size_t i = 0; i < count; i++)
        carry_block(rollup, blocks[i], codec, &map, rows);
    node_map_release(&map);
    pthread_rwlock_unlock(&rollup->target->lock);
    pthread_rwlock_unlock(&file->lock);
    embedded_codec_return(rollup->reader.store, codec);
}

/* The blocks of one service. */
static int write_service(struct rollup *rollup, struct file *file, struct live_block *const *blocks,
                         size_t count, struct error *error)
{
    _cleanup_free_ uint32_t *series = memory_zalloc(count + 1, sizeof(*series));
    struct block_rows rows = {0};
    for (size_t i = 0; i < count; i++)
        series[i] = target_series(rollup, file, blocks[i]->series);
    int r = file_load_tree(file, blocks[0]->service, error);
    if (!r)
        r = load_target_tree(rollup, series[0], error);
    if (!r)
        carry_blocks(rollup, file, blocks, count, series[0], &rows);
    for (size_t i = 0; !r && i < count; i++)
        r = write_window(rollup, series[i], &rows, i, error);
    block_rows_release(&rows);
    return r;
}

static int write_live(struct rollup *rollup, struct file *file, const struct live_list *list,
                      struct error *error)
{
    int r = 0;
    for (size_t i = 0, end; !r && i < list->count; i = end) {
        for (end = i; end < list->count && list->list[end]->service == list->list[i]->service;
             end++)
            ;
        r = write_service(rollup, file, list->list + i, end - i, error);
    }
    return r;
}

static int rollup_end(struct reader *reader, struct file *file, uint32_t service,
                      struct error *error)
{
    struct rollup *rollup = (struct rollup *)reader;
    int r = 0;
    for (size_t i = 0; i < rollup->group_count; i++) {
        covering_fill_slot(reader->covering, (uint32_t)i, &rollup->groups[i].window);
        if (!r)
            r = write_group(rollup, file, service, &rollup->groups[i], error);
        free(rollup->groups[i].sums);
    }
    rollup->group_count = 0;
    covering_release(reader->covering);
    covering_init(reader->covering, reader->selection, 0);
    return r;
}

static const struct reader_calls rollup_calls = {
    .begin = rollup_begin, .block = rollup_block, .end = rollup_end};

/* Takes out what an earlier making put in. */
static int clear_slot(struct rollup *rollup, struct error *error)
{
    struct file *target = rollup->target;
    sqlite3_stmt *statement = file_sql(target, target->writer, SQL_SLOTS, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, rollup->slot_ns);
    sqlite3_bind_int64(statement, 2, rollup->slot_ns + 1);
    int made = file_step(target, statement, error);
    sqlite3_reset(statement);
    if (made <= 0)
        return made;
    pthread_rwlock_rdlock(&target->lock);
    size_t count = target->catalog.series_count;
    pthread_rwlock_unlock(&target->lock);
    struct store_deleted removed = {0};
    int r = 0;
    for (uint32_t i = 0; !r && i < count; i++)
        r = file_remove_windows(target, rollup->codec, i, rollup->slot_ns,
                                rollup->slot_ns + tier_slot_ns[target->tier], &removed, error);
    return r;
}

/* One slot, in one transaction of the target. A source that is damaged is the caller's business: a
 * slot is only made of all of it. 1 when the target is damaged: it is set aside, and the next round
 * makes another from the beginning. */
static int make_slot(struct rollup *rollup, struct file *source, int64_t slot_ns,
                     struct error *error)
{
    struct file *target = rollup->target;
    struct plan_range range = {
        .file = source, .from_ns = slot_ns, .to_ns = slot_ns + tier_slot_ns[target->tier]};
    struct plan plan = {.ranges = &range, .count = 1};
    struct store_quality quality = {0};
    _cleanup_(live_list_release) struct live_list live = {0};
    struct error ignored; /* a damaged source is met again */
    bool taken =
        !file_load(source, &ignored) && live_take(rollup->reader.store, source, slot_ns, INT64_MIN,
                                                  INT64_MAX, true, &live, &ignored) == 1;
    quality.damaged_blocks = taken ? live.damaged_blocks : 0;
    rollup->slot_ns = slot_ns;
    rollup->reader.quality = &quality;
    int r = file_load(target, error);
    pthread_mutex_lock(&target->write_lock);
    if (!r)
        r = file_begin(target, error);
    if (!r) {
        r = clear_slot(rollup, error);
        if (!r)
            r = taken ? write_live(rollup, source, &live, error)
                      : reader_run(&rollup->reader, &plan, error);
        for (size_t i = 0; i < rollup->group_count; i++)
            free(rollup->groups[i].sums); /* of a service that failed halfway */
        rollup->group_count = 0;
        covering_release(rollup->reader.covering);
        covering_init(rollup->reader.covering, rollup->reader.selection, 0);
        if (!r && quality.damaged_files)
            r = error_set(error, -EBADMSG, "%s is damaged.", source->path);
        if (!r)
            r = file_add_slot(target, slot_ns, error);
        if (!r)
            r = file_note_late(target, slot_ns, error);
        r = file_end(target, r, error);
    }
    pthread_mutex_unlock(&target->write_lock);
    if (r == -EBADMSG && !quality.damaged_files) {
        embedded_set_aside(rollup->reader.store, target, error->text);
        return 1;
    }
    /* Queries of the rollup no longer meet the damage. */
    if (!r && quality.damaged_blocks)
        embedded_mark_damaged(rollup->reader.store, source,
                              "blocks of it are unreadable, and rollups were made without them");
    return r;
}

/* Says in the source that everything before `until` is rolled up, and that it is yet to be done. */
static int note_due(struct file *source, int64_t from_ns, int64_t until_ns, struct error *error)
{
    int64_t slot = tier_slot_ns[source->tier + 1];
    pthread_mutex_lock(&source->write_lock);
    int r = file_begin(source, error);
    if (!r) {
        int64_t before = source->rolled_until_ns;
        r = file_set_meta(source, "rolled_until", until_ns, error);
        source->rolled_until_ns = until_ns;
        for (int64_t at = from_ns; !r && at < until_ns; at += slot)
            r = file_note_late(source, at, error);
        r = file_end(source, r, error);
        if (r < 0)
            source->rolled_until_ns = before;
    }
    pthread_mutex_unlock(&source->write_lock);
    return r;
}

static int get_rolled(struct file *source, int64_t *ret_rolled, struct error *error)
{
    struct connection *connection = file_borrow(source, error);
    if (!connection)
        return error->code;
    int64_t rolled = source->from_ns;
    int r = file_run(source, connection, SQL_BEGIN_READ, error);
    if (!r)
        r = file_check_notes(source, connection, error);
    if (!r)
        r = file_get_meta(source, connection, "rolled_until", &rolled, error);
    file_run(source, connection, SQL_COMMIT, NULL);
    file_return(source, connection);
    *ret_rolled = rolled;
    return r < 0 ? r : 0;
}

/* From where to where the source is complete beyond *from, which is how far it is rolled up: raw
 * data until some time before now, a rollup as far as its slots follow each other. Days that
 * nothing came from have no slots, and are passed over. */
static int find_complete(struct embedded *store, struct file *source, int64_t *from_ns,
                         int64_t *ret_until, struct error *error)
{
    int64_t slot = tier_slot_ns[source->tier + 1];
    if (source->tier == STORE_RAW) {
        int64_t until = embedded_now(store) - store->late_ms * 1000000ll;
        *ret_until = MIN(until, source->to_ns) / slot * slot;
        return 0;
    }
    struct connection *connection = file_borrow(source, error);
    sqlite3_stmt *statement = connection ? file_sql(source, connection, SQL_SLOTS, error) : NULL;
    int r = statement ? 0 : error->code;
    int64_t until = *from_ns;
    if (statement) {
        sqlite3_bind_int64(statement, 1, *from_ns);
        sqlite3_bind_int64(statement, 2, INT64_MAX);
        bool first = true;
        while ((r = file_step(source, statement, error)) == 1) {
            int64_t start = sqlite3_column_int64(statement, 0);
            if (first)
                *from_ns = until = MAX(*from_ns, start / slot * slot);
            if (start > until && !first) {
                sqlite3_reset(statement);
                r = 0;
                break;
            }
            first = false;
            until = start + tier_slot_ns[source->tier];
        }
    }
    file_return(source, connection);
    *ret_until = until / slot * slot;
    return r;
}

struct late_slot {
    int64_t slot_ns, count;
};

static int read_late(struct file *source, struct late_slot *list, size_t *ret_count,
                     struct error *error)
{
    struct connection *connection = file_borrow(source, error);
    sqlite3_stmt *statement = connection ? file_sql(source, connection, SQL_LATE, error) : NULL;
    int r = statement ? 0 : error->code;
    size_t count = 0;
    while (statement && (r = file_step(source, statement, error)) == 1) {
        if (count == SLOTS_AT_ONCE) {
            sqlite3_reset(statement);
            r = 0;
            break;
        }
        list[count++] = (struct late_slot){.slot_ns = sqlite3_column_int64(statement, 0),
                                           .count = sqlite3_column_int64(statement, 1)};
    }
    file_return(source, connection);
    *ret_count = count;
    return r;
}

static int remove_late(struct file *source, const struct late_slot *late, struct error *error)
{
    pthread_mutex_lock(&source->write_lock);
    int r = file_begin(source, error);
    if (!r)
        r = file_end(source, file_remove_late(source, late->slot_ns, late->count, error), error);
    pthread_mutex_unlock(&source->write_lock);
    return r;
}

/* The target that a slot belongs to: its period may end within the source's. */
static int find_target(struct embedded *store, struct rollup *rollup, struct file *source,
                       int64_t slot_ns, struct error *error)
{
    struct file *target = rollup->target;
    if (target && slot_ns >= target->from_ns && slot_ns < target->to_ns)
        return 0;
    embedded_unref(store, target);
    frame_map_release(&rollup->frames);
    rollup->has_frames = false;
    rollup->target = embedded_file(store, source->tenant, source->class_name, source->tier + 1,
                                   slot_ns, true, error);
    return rollup->target ? 0 : error->code;
}

/* A target that was set aside since has lost what was rolled up: from the beginning, then, unless
 * it is so old that it went by itself, or it had to go for the disk limit. */
static bool has_lost_target(struct embedded *store, struct file *source, int64_t rolled_ns)
{
    struct error local = {0};
    unsigned days = embedded_class(store, source->class_name)->days[source->tier + 1];
    if (days && source->to_ns < embedded_now(store) - days * DAY_NS)
        return false;
    pthread_mutex_lock(&store->lock);
    bool shed = store->shed[source->tier + 1];
    pthread_mutex_unlock(&store->lock);
    if (shed)
        return false;
    struct file *target = embedded_file(store, source->tenant, source->class_name, source->tier + 1,
                                        rolled_ns - 1, false, &local);
    embedded_unref(store, target);
    return !target;
}

static int make_late(struct embedded *store, struct rollup *rollup, struct file *source,
                     const struct late_slot *late, struct error *error)
{
    int r = find_target(store, rollup, source, late->slot_ns, error);
    if (!r)
        r = make_slot(rollup, source, late->slot_ns, error);
    if (!r)
        r = remove_late(source, late, error);
    if (!r) {
        pthread_mutex_lock(&store->lock);
        store->stats.rolled_slots++;
        pthread_mutex_unlock(&store->lock);
    }
    return r;
}

static int roll(struct embedded *store, struct rollup *rollup, struct file *source,
                struct error *error)
{
    int64_t rolled = 0, until = 0;
    struct late_slot late[SLOTS_AT_ONCE];
    size_t late_count = 0;
    int r = get_rolled(source, &rolled, error);
    if (r < 0)
        return r;
    int64_t base = MAX(source->from_ns, source->floor_ns);
    if (rolled > base && has_lost_target(store, source, rolled))
        rolled = base;
    r = find_complete(store, source, &rolled, &until, error);
    if (!r && until > rolled)
        r = note_due(source, rolled, until, error);
    if (!r)
        r = read_late(source, late, &late_count, error);
    for (size_t i = 0; !r && i < late_count; i++)
        r = make_late(store, rollup, source, &late[i], error);
    return r ? r : late_count == SLOTS_AT_ONCE;
}

int embedded_roll_up(struct embedded *store, struct file *source, struct error *error)
{
    if (source->tier == STORE_DAY)
        return 0;
    static const struct store_selection all = {.from_ns = INT64_MIN, .to_ns = INT64_MAX};
    static const struct store_limits none;
    struct covering covering;
    covering_init(&covering, &all, 0);
    struct rollup rollup = {.reader = {.store = store,
                                       .selection = &all,
                                       .limits = &none,
                                       .calls = &rollup_calls,
                                       .covering = &covering},
                            .codec = embedded_codec(store)};
    int r = roll(store, &rollup, source, error);
    embedded_unref(store, rollup.target);
    embedded_codec_return(store, rollup.codec);
    frame_map_release(&rollup.frames);
    covering_release(&covering);
    free(rollup.groups);
    free(rollup.block_sums);
    free(rollup.rows_nodes);
    free(rollup.rows_values);
    return r;
}
