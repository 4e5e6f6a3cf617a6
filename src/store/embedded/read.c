// SPDX-License-Identifier: Apache-2.0
// Merged profiles and time series from the embedded store.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "profile/views/calltree.h"
#include "store/apart.h"
#include "store/embedded/plan.h"

#define FOLDED_PARTS 16 /* a subtree that is large enough may be put together from as many */

/* ---- merging: values are added up by node of a file's tree, and then carried to the result ----
 *
 * Two threads may read services; what they have is carried in the order that services come in, so
 * that the result is the same as one thread's.
 */

struct merge_result { /* used by whose turn it is */
    struct profile *profile;
    unsigned type;
    size_t memory_bytes;    /* limit */
    _Atomic size_t scratch; /* of both threads */
    uint64_t smallest;      /* value of a subtree below which it is cut; 0: none is */
    uint32_t other_frame;   /* "(other)" */
    struct file *file;      /* whose frames `frames` carries */
    struct frame_map frames;
    int64_t *rest;    /* by group: of its total, what is cut off */
    uint32_t *mapped; /* by group: the result's node */
    size_t rest_capacity, mapped_capacity;
    struct apart_slots slots; /* where steps are kept apart */
};

struct merge { /* of one thread */
    struct reader reader;
    struct merge_result *result;
    int64_t *sums;   /* by node of the service being read */
    int64_t *totals; /* with all below */
    struct fold fold;
    struct apart_cells cells;
    struct block_rows rows;
    uint64_t *block_sums;
    size_t sums_capacity, totals_capacity, block_sums_capacity;
    size_t scratch; /* of it, what the result knows of */
    uint32_t node_count;
    bool any;
};

static void merge_release(struct merge *merge)
{
    free(merge->sums);
    free(merge->totals);
    free(merge->block_sums);
    apart_cells_release(&merge->cells);
    block_rows_release(&merge->rows);
    fold_release(&merge->fold);
}

static void merge_result_release(struct merge_result *result)
{
    frame_map_release(&result->frames);
    free(result->rest);
    free(result->mapped);
    apart_slots_release(&result->slots);
}

/* Whether lines and addresses are no part of the result. */
static bool is_plain(const struct merge_result *result)
{
    return !(result->profile->detail &
             (PROFILE_LINES | PROFILE_ADDRESSES | PROFILE_ORIGINAL_NAMES));
}

static void refresh_plain(struct file *file)
{
    struct catalog *catalog = &file->catalog;
    pthread_rwlock_rdlock(&file->lock);
    bool known = catalog->plain.count == catalog->tables.frame_count;
    pthread_rwlock_unlock(&file->lock);
    if (known)
        return;
    pthread_rwlock_wrlock(&file->lock);
    plain_frames_refresh(&catalog->plain, &catalog->tables);
    pthread_rwlock_unlock(&file->lock);
}

static int merge_begin(struct reader *reader, struct file *file, uint32_t service,
                       struct error *error)
{
    struct merge *merge = (struct merge *)reader;
    int r = file_load_tree(file, service, error);
    if (r < 0)
        return r;
    pthread_rwlock_rdlock(&file->lock);
    merge->node_count = file->catalog.services[service].tree.count;
    pthread_rwlock_unlock(&file->lock);
    if (merge->result->smallest && is_plain(merge->result))
        refresh_plain(file); /* after the nodes were counted: their frames are there */
    merge->any = false;
    if (reader->limits->apart)
        return 0;
    array_reserve(merge->sums, merge->sums_capacity, merge->node_count);
    memset(merge->sums, 0, merge->node_count * sizeof(*merge->sums));
    return 0;
}

/* All windows of a block in one step: its dictionary's sums, as a merge of all has them. */
static int add_block_apart(struct merge *merge, struct block_view *view, size_t first, size_t count,
                           uint32_t group)
{
    size_t entries = view->dictionary_count;
    array_reserve(merge->block_sums, merge->block_sums_capacity, entries + 1);
    memset(merge->block_sums, 0, entries * sizeof(*merge->block_sums));
    int r = block_sum(view, first, count, merge->block_sums);
    const struct apart_slots *slots = &merge->result->slots;
    uint32_t step = apart_step(slots, view->windows[first].start_ns);
    for (size_t i = 0; !r && i < entries; i++)
        if (merge->block_sums[i])
            apart_cells_add(&merge->cells, slots, group, step, view->dictionary[i],
                            block_scale(view, merge->block_sums[i]));
    return r;
}

static int add_windows_apart(struct merge *merge, struct block_view *view, size_t first,
                             size_t count, uint32_t group)
{
    const struct apart_slots *slots = &merge->result->slots;
    block_rows_clear(&merge->rows);
    int r = block_decode(view, first, count, &merge->rows);
    for (size_t w = 0; !r && w < merge->rows.window_count; w++) {
        const struct block_window *window = &merge->rows.windows[w];
        uint32_t step = apart_step(slots, window->start_ns);
        for (uint32_t i = window->first_row; i < window->first_row + window->row_count; i++) {
            if (merge->rows.nodes[i] >= merge->node_count)
                return -EBADMSG;
            apart_cells_add(&merge->cells, slots, group, step, merge->rows.nodes[i],
                            merge->rows.values[i]);
        }
    }
    return r;
}

static int merge_block_apart(struct reader *reader, struct file *file, uint32_t series,
                             struct block_view *view, size_t first, size_t count,
                             struct error *error)
{
    struct merge *merge = (struct merge *)reader;
    struct merge_result *result = merge->result;
    uint32_t group;
    pthread_rwlock_rdlock(&file->lock);
    int r = apart_group(&result->slots, &file->catalog.series[series].labels, &group, error);
    pthread_rwlock_unlock(&file->lock);
    if (r < 0 || !count)
        return r;
    if (block_open_stacks(view) < 0 ||
        (view->dictionary_count &&
         view->dictionary[view->dictionary_count - 1] >= merge->node_count))
        return -EBADMSG;
    merge->any = true;
    bool one = apart_step(&result->slots, view->windows[first].start_ns) ==
               apart_step(&result->slots, view->windows[first + count - 1].start_ns);
    r = one ? add_block_apart(merge, view, first, count, group)
            : add_windows_apart(merge, view, first, count, group);
    size_t scratch = merge->cells.capacity * sizeof(*merge->cells.list);
    if (!r && is_too_much(reader->limits, scratch, &result->memory_bytes))
        return error_memory(error, result->memory_bytes);
    return r;
}

static int merge_block(struct reader *reader, struct file *file, uint32_t series,
                       struct block_view *view, size_t first, size_t count, struct error *error)
{
    struct merge *merge = (struct merge *)reader;
    if (reader->limits->apart)
        return merge_block_apart(reader, file, series, view, first, count, error);
    if (block_open_stacks(view) < 0)
        return -EBADMSG;
    size_t entries = view->dictionary_count;
    if (entries && view->dictionary[entries - 1] >= merge->node_count)
        return -EBADMSG;
    array_reserve(merge->block_sums, merge->block_sums_capacity, entries + 1);
    memset(merge->block_sums, 0, entries * sizeof(*merge->block_sums));
    int r = block_sum(view, first, count, merge->block_sums);
    if (r < 0)
        return r;
    for (size_t i = 0; i < entries; i++) {
        int64_t *sum = &merge->sums[view->dictionary[i]];
        *sum = add_saturated(*sum, block_scale(view, merge->block_sums[i]));
    }
    merge->any = true;
    return 0;
}

static void add_value(struct merge_result *result, uint32_t node, int64_t value)
{
    size_t row = profile_sample(result->profile, node, 0, 0, 0);
    profile_add_value(result->profile, row, result->type, value);
}

static void add_totals(struct merge *merge, const struct profile_node *nodes)
{
    uint32_t count = merge->node_count;
    array_reserve(merge->totals, merge->totals_capacity, count);
    int64_t *totals = merge->totals;
    memcpy(totals, merge->sums, count * sizeof(*totals));
    for (uint32_t i = count - 1; i; i--)
        totals[nodes[i].parent] = add_saturated(totals[nodes[i].parent], totals[i]);
}

/* Adds subtrees that are large enough; what is below the others' tops is one value under "(other)"
 * of the node above. Group by group in order of ids: parents come first. */
static void add_large(struct merge *merge)
{
    struct merge_result *result = merge->result;
    const struct fold_group *groups = merge->fold.groups;
    size_t count = merge->fold.count;
    array_reserve(result->rest, result->rest_capacity, count);
    array_reserve(result->mapped, result->mapped_capacity, count);
    int64_t *rest = result->rest;
    uint32_t *mapped = result->mapped;
    mapped[0] = 0;
    rest[0] = groups[0].total - groups[0].self;
    for (size_t i = 1; i < count; i++) {
        uint32_t parent = groups[i].parent;
        mapped[i] = ID_NONE;
        if ((uint64_t)magnitude(groups[i].total) < result->smallest || mapped[parent] == ID_NONE)
            continue;
        uint32_t frame = frame_map_frame(&result->frames, groups[i].frame);
        mapped[i] = profile_child(result->profile, mapped[parent], frame);
        rest[parent] -= groups[i].total;
        rest[i] = groups[i].total - groups[i].self;
    }
    struct store_quality *quality = merge->reader.quality;
    for (size_t i = 0; i < count; i++) {
        if (mapped[i] == ID_NONE)
            continue;
        if (groups[i].self)
            add_value(result, mapped[i], groups[i].self);
        if (rest[i]) {
            add_value(result, profile_child(result->profile, mapped[i], result->other_frame),
                      rest[i]);
            quality->cut = add_saturated(quality->cut, rest[i]);
        }
    }
}

static void add_all(struct merge *merge, const struct profile_node *nodes)
{
    struct merge_result *result = merge->result;
    struct node_map map;
    node_map_init(&map, &result->frames, nodes, merge->node_count, NULL, result->profile);
    for (uint32_t i = 0; i < merge->node_count; i++)
        if (merge->sums[i] && store_limits_has(merge->reader.limits, i))
            add_value(result, node_map_node(&map, i), merge->sums[i]);
    node_map_release(&map);
}

/* Most stacks are in every step, so nodes are carried over once and for all. */
static void add_apart(struct merge *merge, const struct profile_node *nodes)
{
    struct merge_result *result = merge->result;
    struct node_map map;
    node_map_init(&map, &result->frames, nodes, merge->node_count, NULL, result->profile);
    for (size_t i = 0; i < merge->cells.count; i++) {
        const struct apart_cell *cell = &merge->cells.list[i];
        if (cell->value && store_limits_has(merge->reader.limits, cell->node))
            apart_put(&result->slots, cell->slot, node_map_node(&map, cell->node), result->type,
                      cell->value);
    }
    node_map_release(&map);
    apart_cells_clear(&merge->cells);
}

static void note_scratch(struct merge *merge)
{
    size_t scratch =
        (merge->sums_capacity + merge->totals_capacity + merge->block_sums_capacity) * 8 +
        merge->cells.capacity * sizeof(*merge->cells.list) + block_rows_memory(&merge->rows) +
        fold_memory(&merge->fold) + covering_memory(merge->reader.covering);
    atomic_fetch_add(&merge->result->scratch, scratch - merge->scratch);
    merge->scratch = scratch;
}

static int merge_end(struct reader *reader, struct file *file, uint32_t service,
                     struct error *error)
{
    struct merge *merge = (struct merge *)reader;
    struct merge_result *result = merge->result;
    if (!merge->any)
        return 0;
    struct catalog *catalog = &file->catalog;
    if (result->smallest) {
        pthread_rwlock_rdlock(&file->lock);
        const struct profile_node *nodes = catalog->services[service].tree.nodes;
        add_totals(merge, nodes);
        fold_nodes(&merge->fold, is_plain(result) ? catalog->plain.same : NULL, nodes,
                   merge->node_count, merge->sums, merge->totals,
                   MAX(result->smallest / FOLDED_PARTS, (uint64_t)1));
        pthread_rwlock_unlock(&file->lock);
    }
    apart_cells_settle(&merge->cells);
    note_scratch(merge);
    int r = reader_wait_turn(reader, error);
    if (r)
        return r;
    pthread_rwlock_rdlock(&file->lock);
    if (result->file != file) {
        frame_map_release(&result->frames);
        frame_map_init(&result->frames, &catalog->tables, result->profile);
        result->file = file;
    }
    frame_map_refresh(&result->frames);
    if (result->smallest)
        add_large(merge);
    else if (reader->limits->apart)
        add_apart(merge, catalog->services[service].tree.nodes);
    else
        add_all(merge, catalog->services[service].tree.nodes);
    pthread_rwlock_unlock(&file->lock);
    size_t scratch = atomic_load(&result->scratch) +
                     result->rest_capacity * (sizeof(*result->rest) + sizeof(*result->mapped));
    if (profile_full(result->profile) ||
        is_too_much(reader->limits, profile_memory(result->profile) + scratch,
                    &result->memory_bytes))
        return error_memory(error, result->memory_bytes);
    return 0;
}

static const struct reader_calls merge_calls = {
    .begin = merge_begin, .block = merge_block, .end = merge_end};

static size_t memory_for(struct embedded *store, const struct store_limits *limits)
{
    return limits->memory_bytes ? limits->memory_bytes : store->memory_limit_bytes / 2;
}

static int set_smallest(struct merge *merge, const struct plan *plan, struct error *error)
{
    int64_t total;
    int r = reader_total(&merge->reader, plan, &total, error);
    if (r < 0)
        return r;
    struct merge_result *result = merge->result;
    double smallest = ceil((double)total * MIN(merge->reader.limits->smallest_share, 1));
    result->smallest = (uint64_t)MAX(smallest, 1);
    uint32_t name = profile_cstring(result->profile, CALLTREE_OTHER);
    uint32_t function = profile_function(result->profile, &(struct profile_function){.name = name});
    result->other_frame =
        profile_frame(result->profile, &(struct profile_frame){.function = function});
    return 0;
}

int embedded_merge(struct store *base, const struct store_selection *selection,
                   const struct store_limits *limits, struct profile *profile, unsigned type,
                   struct store_quality *quality, struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct store_quality other = {0};
    struct covering coverings[2];
    covering_init(&coverings[0], selection, 0);
    covering_init(&coverings[1], selection, 0);
    _cleanup_(merge_result_release) struct merge_result result = {
        .profile = profile,
        .type = type,
        .memory_bytes = memory_for(store, limits),
    };
    _cleanup_(merge_release) struct merge first = {.reader = {.store = store,
                                                              .selection = selection,
                                                              .limits = limits,
                                                              .calls = &merge_calls,
                                                              .quality = quality,
                                                              .covering = &coverings[0]},
                                                   .result = &result};
    _cleanup_(merge_release) struct merge second = first;
    second.reader.quality = &other;
    second.reader.covering = &coverings[1];
    struct plan plan;
    const struct store_apart *apart = limits->apart;
    struct store_timeseries_query steps = {.step_ns = apart ? apart->step_ns : 0,
                                           .aligned = true,
                                           .group_by = apart ? &apart->label : NULL,
                                           .group_count = apart && apart->label};
    int r = apart ? apart_slots_init(&result.slots, apart, selection, profile, error) : 0;
    if (r < 0)
        return r;
    r = plan_make(store, selection, apart ? &steps : NULL, limits, &plan, &quality->damaged_files,
                  error);
    if (r < 0)
        return r;
    if (limits->smallest_share > 0 && !apart)
        r = set_smallest(&first, &plan, error);
    if (!r)
        r = reader_run_pair(&first.reader, !limits->single_thread ? &second.reader : NULL, &plan,
                            error);
    plan_release(store, &plan);
    quality_cover(quality, &coverings[0]);
    covering_release(&coverings[0]);
    covering_release(&coverings[1]);
    return r;
}

/* ---- time series ---- */

struct timeseries {
    struct reader reader;
    const struct store_timeseries_query *query;
    struct point_groups *groups;
    size_t memory_bytes;
    bool *wanted; /* nodes that count, when a function is asked for */
    uint32_t node_count;
    int64_t *picked; /* by window of a block: the function's value */
    size_t picked_capacity;
};

static int timeseries_begin(struct reader *reader, struct file *file, uint32_t service,
                            struct error *error)
{
    struct timeseries *series = (struct timeseries *)reader;
    if (!series->query->function)
        return 0;
    int r = file_load_tree(file, service, error);
    if (r < 0)
        return r;
    free(series->wanted);
    pthread_rwlock_rdlock(&file->lock);
    series->wanted = catalog_function_nodes(&file->catalog, service, series->query->function,
                                            series->query->count == STORE_CUMULATIVE);
    series->node_count = file->catalog.services[service].tree.count;
    pthread_rwlock_unlock(&file->lock);
    return 0;
}

static int timeseries_block(struct reader *reader, struct file *file, uint32_t id,
                            struct block_view *view, size_t first, size_t count,
                            struct error *error)
{
    struct timeseries *series = (struct timeseries *)reader;
    pthread_rwlock_rdlock(&file->lock);
    uint32_t group = point_groups_find(series->groups, &file->catalog.series[id].labels);
    pthread_rwlock_unlock(&file->lock);
    if (group == ID_NONE)
        return error_set(error, -E2BIG,
                         "The answer has more than %d groups; group by fewer labels.",
                         STORE_GROUPS_MAX);
    reader->group = group;
    size_t covering = reader->covering ? covering_memory(reader->covering) : 0;
    if (is_too_much(reader->limits, point_groups_memory(series->groups) + covering,
                    &series->memory_bytes))
        return error_memory(error, series->memory_bytes);
    if (series->query->function) {
        array_reserve(series->picked, series->picked_capacity, count + 1);
        memset(series->picked, 0, count * sizeof(*series->picked));
        int r = block_open_stacks(view);
        if (!r && view->dictionary_count &&
            view->dictionary[view->dictionary_count - 1] >= series->node_count)
            r = -EBADMSG;
        if (!r)
            r = block_pick(view, first, count, series->wanted, series->picked);
        if (r < 0)
            return r;
    }
    for (size_t w = 0; w < count; w++) {
        const struct block_window *window = &view->windows[first + w];
        point_groups_add(series->groups, group, window->start_ns,
                         series->query->function ? series->picked[w] : window->total,
                         window->windows);
    }
    return 0;
}

static const struct reader_calls timeseries_calls = {.begin = timeseries_begin,
                                                     .block = timeseries_block};

int embedded_timeseries(struct store *base, const struct store_selection *selection,
                        const struct store_timeseries_query *query,
                        const struct store_limits *limits, struct point_groups *groups,
                        struct store_quality *quality, struct error *error)
{
    struct embedded *store = embedded_of(base);
    struct covering covering;
    struct store_selection steps = selection_of_steps(selection, query);
    covering_init(&covering, &steps, query->step_ns);
    struct timeseries series = {.reader = {.store = store,
                                           .selection = selection,
                                           .limits = limits,
                                           .calls = &timeseries_calls,
                                           .quality = quality,
                                           .covering = groups->ranking ? NULL : &covering},
                                .query = query,
                                .groups = groups,
                                .memory_bytes = memory_for(store, limits)};
    struct plan plan;
    int r = plan_make(store, selection, query, limits, &plan, &quality->damaged_files, error);
    if (!r) {
        r = reader_run(&series.reader, &plan, error);
        plan_release(store, &plan);
    }
    if (!r) {
        point_groups_cover(groups, &covering);
        quality_cover(quality, &covering);
    }
    covering_release(&covering);
    free(series.picked);
    free(series.wanted);
    return r;
}
