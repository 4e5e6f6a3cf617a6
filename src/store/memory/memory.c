// SPDX-License-Identifier: Apache-2.0
// The store in memory: the same contract with nothing to wait for, for tests and for servers that
// need no history. One lock; a tenant's stacks are one profile, a series is its windows' rows.

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "profile/unresolved.h"
#include "store/apart.h"
#include "store/block/block.h"
#include "store/cover.h"
#include "store/file/catalog.h"
#include "store/internal.h"
#include "store/tree.h"
#include "store/witness.h"

struct memory_exemplar {
    uint32_t series;
    struct store_exemplar exemplar;
    int64_t start_ns; /* of its window */
};

struct memory_series {
    struct labels labels;
    char *type;
    struct block_rows rows;
};

struct memory_tenant {
    char *name;
    struct profile stacks;
    struct memory_series *series;
    struct memory_exemplar *exemplars;
    char **batches;
    size_t series_count, series_capacity, exemplar_count, exemplar_capacity, batch_count,
        batch_capacity;
    struct id_table series_index, batch_index;
};

struct memory_store {
    struct store store;
    pthread_mutex_t lock;
    struct memory_tenant *tenants;
    size_t tenant_count, tenant_capacity;
    size_t memory_limit_bytes;
    int64_t (*now)(void *context);
    void *now_context;
    unsigned keep_days;
    struct store_stats stats;
};

static struct memory_store *of(struct store *store)
{
    return (struct memory_store *)store;
}

static void unlock(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}
#define LOCKED(store)                                                                              \
    _cleanup_(unlock) pthread_mutex_t *locked_ = &(store)->lock;                                   \
    pthread_mutex_lock(locked_)

static void memory_close(struct store *base)
{
    struct memory_store *store = of(base);
    for (size_t t = 0; t < store->tenant_count; t++) {
        struct memory_tenant *tenant = &store->tenants[t];
        for (size_t i = 0; i < tenant->series_count; i++) {
            labels_release(&tenant->series[i].labels);
            free(tenant->series[i].type);
            block_rows_release(&tenant->series[i].rows);
        }
        for (size_t i = 0; i < tenant->batch_count; i++)
            free(tenant->batches[i]);
        free(tenant->series);
        free(tenant->exemplars);
        free(tenant->batches);
        free(tenant->name);
        id_table_release(&tenant->series_index);
        id_table_release(&tenant->batch_index);
        profile_release(&tenant->stacks);
    }
    free(store->tenants);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static struct memory_tenant *find_tenant(struct memory_store *store, const char *name)
{
    for (size_t i = 0; i < store->tenant_count; i++)
        if (!strcmp(store->tenants[i].name, name))
            return &store->tenants[i];
    return NULL;
}

static struct memory_tenant *add_tenant(struct memory_store *store, const char *name)
{
    struct memory_tenant *tenant = find_tenant(store, name);
    if (tenant)
        return tenant;
    array_reserve(store->tenants, store->tenant_capacity, store->tenant_count + 1);
    tenant = &store->tenants[store->tenant_count++];
    *tenant = (struct memory_tenant){.name = memory_strdup(name)};
    profile_init(&tenant->stacks, PROFILE_ALL);
    return tenant;
}

static uint32_t add_series(struct memory_tenant *tenant, const struct labels *labels,
                           const char *type)
{
    uint64_t hash = labels_hash(labels);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tenant->series_index, &probe)) != ID_NONE)
        if (labels_equal(&tenant->series[id].labels, labels) &&
            !strcmp(tenant->series[id].type, type))
            return id;
    id = (uint32_t)tenant->series_count++;
    array_reserve(tenant->series, tenant->series_capacity, tenant->series_count);
    tenant->series[id] = (struct memory_series){.type = memory_strdup(type)};
    labels_copy(&tenant->series[id].labels, labels);
    id_table_insert(&tenant->series_index, hash, id);
    return id;
}

/* True when the id was there already. */
static bool add_batch(struct memory_tenant *tenant, const char *batch)
{
    uint64_t hash = 14695981039346656037ull;
    for (const char *c = batch; *c; c++)
        hash = hash_word(hash ^ (unsigned char)*c);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tenant->batch_index, &probe)) != ID_NONE)
        if (!strcmp(tenant->batches[id], batch))
            return true;
    array_reserve(tenant->batches, tenant->batch_capacity, tenant->batch_count + 1);
    tenant->batches[tenant->batch_count] = memory_strdup(batch);
    id_table_insert(&tenant->batch_index, hash, (uint32_t)tenant->batch_count++);
    return false;
}

static size_t memory_used(const struct memory_store *store)
{
    size_t bytes = 0;
    for (size_t t = 0; t < store->tenant_count; t++) {
        const struct memory_tenant *tenant = &store->tenants[t];
        bytes += profile_memory(&tenant->stacks) +
                 tenant->exemplar_capacity * sizeof(*tenant->exemplars);
        for (size_t i = 0; i < tenant->series_count; i++)
            bytes += sizeof(tenant->series[i]) + block_rows_memory(&tenant->series[i].rows);
    }
    return bytes;
}

/* Unresolved stacks as nodes: all are put together, for there is nothing to win by knowing them.
 * NULL when there are none. */
static uint32_t *settle(struct unresolved_stacks *unresolved)
{
    if (!unresolved)
        return NULL;
    _cleanup_free_ uint32_t *scratch = memory_alloc((unresolved->deepest + 1ul) * sizeof(*scratch));
    uint32_t *nodes = memory_zalloc(unresolved->count, sizeof(*nodes));
    for (uint32_t i = 0; i < unresolved->count; i++)
        if (unresolved->digests[i].high)
            nodes[i] = unresolved_node(unresolved, i, scratch);
    return nodes;
}

static void write_window(struct memory_tenant *tenant, const struct store_profile *window,
                         const uint32_t *settled, struct node_map *map)
{
    uint32_t id = add_series(tenant, window->labels, window->type);
    struct memory_series *series = &tenant->series[id];
    _cleanup_free_ uint32_t *nodes = memory_zalloc(window->row_count + 1, sizeof(*nodes));
    _cleanup_free_ int64_t *values = memory_zalloc(window->row_count + 1, sizeof(*values));
    for (size_t i = 0; i < window->row_count; i++) {
        uint32_t node = window->rows[i].node;
        nodes[i] = node_map_node(map, settled ? settled[node] : node);
        values[i] = window->rows[i].value;
    }
    struct block_window added = {.start_ns = window->time_ns,
                                 .duration_ns = window->duration_ns,
                                 .first_ns = window->time_ns,
                                 .last_ns = window->time_ns,
                                 .windows = 1};
    block_rows_add(&series->rows, &added, nodes, values, window->row_count);
    for (size_t i = 0; i < window->exemplar_count; i++) {
        array_reserve(tenant->exemplars, tenant->exemplar_capacity, tenant->exemplar_count + 1);
        struct memory_exemplar *exemplar = &tenant->exemplars[tenant->exemplar_count++];
        *exemplar = (struct memory_exemplar){
            .series = id, .start_ns = window->time_ns, .exemplar = window->exemplars[i]};
        uint32_t node = window->exemplars[i].node;
        exemplar->exemplar.node = node_map_node(map, settled ? settled[node] : node);
    }
}

static int memory_write(struct store *base, const struct store_batch *batch, struct error *error)
{
    struct memory_store *store = of(base);
    LOCKED(store);
    if (memory_used(store) > store->memory_limit_bytes)
        return error_set(error, -ENOSPC, "The store has reached its memory limit of %zu MiB.",
                         store->memory_limit_bytes >> 20);
    int64_t oldest = store->now(store->now_context) - store->keep_days * 86400000000000ll;
    for (size_t i = 0; i < batch->count; i++)
        if (store->keep_days && batch->profiles[i].time_ns < oldest)
            return error_set(error, -ERANGE,
                             "A profile is older than the retention period of %u days.",
                             store->keep_days);
    struct memory_tenant *tenant = add_tenant(store, batch->tenant);
    if (batch->batch_id && add_batch(tenant, batch->batch_id)) {
        store->stats.repeated_batches++;
        return error_set(error, -EALREADY, "The batch is already stored.");
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct frame_map frames;
        struct node_map map;
        const struct profile *profile = batch->profiles[i].profile;
        _cleanup_free_ uint32_t *settled = settle(profile->unresolved);
        frame_map_init(&frames, profile, &tenant->stacks);
        node_map_init(&map, &frames, profile->nodes, profile->node_count, NULL, &tenant->stacks);
        do {
            write_window(tenant, &batch->profiles[i], settled, &map);
            store->stats.written_rows += batch->profiles[i].row_count;
        } while (i + 1 < batch->count && batch->profiles[i + 1].profile == profile && ++i);
        node_map_release(&map);
        frame_map_release(&frames);
    }
    store->stats.written_batches++;
    if (batch->done_reading)
        batch->done_reading(batch->context);
    return 0;
}

/* ---- reading ---- */

/* Series of a tenant, which never go: the selected among those that there were at first. */
struct chosen {
    bool *list;
    size_t count;
};

static void chosen_release(struct chosen *chosen)
{
    free(chosen->list);
}
#define _cleanup_chosen_ _cleanup_(chosen_release)

static int is_selected(struct matching *matching, const struct store_selection *selection,
                       const struct labels *labels, const char *type, bool *ret_selected,
                       struct error *error)
{
    const struct selector *selector = selection->selector;
    bool selected = !selection->type || !strcmp(selection->type, type);
    int r = 0;
    for (size_t i = 0; !r && selected && selector && i < selector->count; i++) {
        const char *value = labels_get(labels, selector->matchers[i].name);
        r = matching_test(matching, &selector->matchers[i], value ? value : "", &selected, error);
    }
    *ret_selected = !r && selected;
    return r;
}

/* Looks at copies of the lists of labels, whose texts stay: expressions run without the lock. */
static int choose(struct memory_store *store, const struct store_selection *selection,
                  struct chosen *ret_chosen, struct error *error)
{
    pthread_mutex_lock(&store->lock);
    const struct memory_tenant *tenant = find_tenant(store, selection->tenant);
    size_t count = tenant ? tenant->series_count : 0;
    _cleanup_free_ struct memory_series *series = memory_zalloc(count + 1, sizeof(*series));
    if (count)
        memcpy(series, tenant->series, count * sizeof(*series));
    pthread_mutex_unlock(&store->lock);
    struct chosen chosen = {.list = memory_zalloc(count + 1, sizeof(bool)), .count = count};
    struct matching matching;
    int r = 0;
    matching_begin(&matching, selection->matching);
    for (size_t i = 0; !r && i < count; i++)
        r = is_selected(&matching, selection, &series[i].labels, series[i].type, &chosen.list[i],
                        error);
    matching_end(&matching);
    if (r < 0)
        chosen_release(&chosen);
    else
        *ret_chosen = chosen;
    return r;
}

static bool is_chosen(const struct chosen *chosen, size_t series)
{
    return series < chosen->count && chosen->list[series];
}

static bool in_range(const struct store_selection *selection, int64_t start_ns)
{
    return start_ns >= selection->from_ns && start_ns < selection->to_ns;
}

static int memory_series(struct store *base, const struct store_selection *selection,
                         store_series_fn *fn, void *context, struct error *error)
{
    struct memory_store *store = of(base);
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = choose(store, selection, &chosen, error);
    LOCKED(store);
    struct memory_tenant *tenant = find_tenant(store, selection->tenant);
    for (size_t i = 0; !r && tenant && i < tenant->series_count; i++) {
        const struct memory_series *series = &tenant->series[i];
        if (!is_chosen(&chosen, i))
            continue;
        int64_t first = INT64_MAX, last = INT64_MIN;
        bool inside = false;
        for (size_t w = 0; w < series->rows.window_count; w++) {
            int64_t start = series->rows.windows[w].start_ns;
            inside |= in_range(selection, start);
            first = MIN(first, start);
            last = MAX(last, start);
        }
        r = inside ? fn(context, &series->labels, series->type, first, last) : 0;
    }
    return r;
}

/* Series that are not chosen, of processes of which others are. */
static void cover_witnesses(struct covering *covering, const struct memory_tenant *tenant,
                            const struct store_selection *selection, const struct chosen *chosen)
{
    _cleanup_witnesses_ struct witnesses witnesses = {.selector = selection->selector};
    for (size_t i = 0; i < tenant->series_count; i++)
        if (is_chosen(chosen, i))
            witnesses_note(&witnesses, &tenant->series[i].labels);
    for (size_t i = 0; witnesses.count && i < tenant->series_count; i++) {
        const struct memory_series *series = &tenant->series[i];
        if (is_chosen(chosen, i) || strcmp(series->type, selection->type) != 0 ||
            is_excluded(selection, &series->labels) || !witnesses_has(&witnesses, &series->labels))
            continue;
        covering_series(covering, COVER_WITNESS, &series->labels, series->type);
        for (size_t w = 0; w < series->rows.window_count; w++)
            if (in_range(selection, series->rows.windows[w].start_ns))
                covering_window(covering, &series->rows.windows[w]);
    }
}

static int merge_series(const struct memory_series *series, const struct store_selection *selection,
                        const struct store_limits *limits, struct node_map *map, unsigned type,
                        struct apart_slots *slots, struct store_quality *quality,
                        struct covering *covering, struct error *error)
{
    struct profile *profile = map->to_profile;
    struct apart_cells cells = {0};
    bool any = false;
    uint32_t group = 0;
    int r = slots ? apart_group(slots, &series->labels, &group, error) : 0;
    if (r < 0)
        return r;
    covering_series(covering, 0, &series->labels, series->type);
    for (size_t w = 0; w < series->rows.window_count; w++) {
        const struct block_window *window = &series->rows.windows[w];
        if (!in_range(selection, window->start_ns))
            continue;
        any = true;
        quality_add(quality, window->start_ns, window->start_ns, 1, window->row_count,
                    window->total);
        covering_window(covering, window);
        for (uint32_t i = window->first_row; i < window->first_row + window->row_count; i++) {
            if (!store_limits_has(limits, series->rows.nodes[i]))
                continue;
            uint32_t node = node_map_node(map, series->rows.nodes[i]);
            if (slots)
                apart_cells_add(&cells, slots, group, apart_step(slots, window->start_ns), node,
                                series->rows.values[i]);
            else
                profile_add_value(profile, profile_sample(profile, node, 0, 0, 0), type,
                                  series->rows.values[i]);
        }
        if (is_cancelled(limits))
            r = error_cancelled(error);
        else if (limits->memory_bytes && profile_memory(profile) > limits->memory_bytes)
            r = error_memory(error, limits->memory_bytes);
        if (r < 0)
            break;
    }
    apart_cells_settle(&cells);
    for (size_t i = 0; !r && i < cells.count; i++)
        if (cells.list[i].value)
            apart_put(slots, cells.list[i].slot, cells.list[i].node, type, cells.list[i].value);
    apart_cells_release(&cells);
    quality->series += any;
    return r;
}

static int memory_merge(struct store *base, const struct store_selection *selection,
                        const struct store_limits *limits, struct profile *profile, unsigned type,
                        struct store_quality *quality, struct error *error)
{
    struct memory_store *store = of(base);
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = choose(store, selection, &chosen, error);
    LOCKED(store);
    struct memory_tenant *tenant = find_tenant(store, selection->tenant);
    if (r < 0 || !tenant)
        return r;
    struct frame_map frames;
    struct node_map map;
    struct covering covering;
    _cleanup_(apart_slots_release) struct apart_slots slots = {0};
    if (limits->apart)
        r = apart_slots_init(&slots, limits->apart, selection, profile, error);
    if (r < 0)
        return r;
    covering_init(&covering, selection, 0);
    frame_map_init(&frames, &tenant->stacks, profile);
    node_map_init(&map, &frames, tenant->stacks.nodes, tenant->stacks.node_count, NULL, profile);
    for (size_t i = 0; !r && i < tenant->series_count; i++)
        if (is_chosen(&chosen, i) && !is_excluded(selection, &tenant->series[i].labels))
            r = merge_series(&tenant->series[i], selection, limits, &map, type,
                             limits->apart ? &slots : NULL, quality, &covering, error);
    cover_witnesses(&covering, tenant, selection, &chosen);
    covering_settle(&covering);
    quality_cover(quality, &covering);
    covering_release(&covering);
    quality->tiers = quality->windows ? 1 << STORE_RAW : 0;
    node_map_release(&map);
    frame_map_release(&frames);
    return r;
}

/* Which nodes count for a function: its own, or all with it anywhere on the stack. */
static bool *nodes_of(const struct profile *stacks, const struct store_function *function,
                      enum store_count count)
{
    return function_nodes(stacks, stacks->nodes, stacks->node_count, function,
                          count == STORE_CUMULATIVE);
}

static int64_t window_value(const struct block_rows *rows, const struct block_window *window,
                            const bool *wanted)
{
    if (!wanted)
        return window->total;
    int64_t value = 0;
    for (uint32_t i = window->first_row; i < window->first_row + window->row_count; i++)
        if (wanted[rows->nodes[i]])
            value = add_saturated(value, rows->values[i]);
    return value;
}

static int memory_timeseries(struct store *base, const struct store_selection *selection,
                             const struct store_timeseries_query *query,
                             const struct store_limits *limits, struct point_groups *groups,
                             struct store_quality *quality, struct error *error)
{
    struct memory_store *store = of(base);
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = choose(store, selection, &chosen, error);
    LOCKED(store);
    struct memory_tenant *tenant = find_tenant(store, selection->tenant);
    if (r < 0 || !tenant)
        return r;
    _cleanup_free_ bool *wanted =
        query->function ? nodes_of(&tenant->stacks, query->function, query->count) : NULL;
    _cleanup_(covering_release) struct covering covering;
    struct store_selection steps = selection_of_steps(selection, query);
    covering_init(&covering, &steps, query->step_ns);
    for (size_t i = 0; i < tenant->series_count; i++) {
        const struct memory_series *series = &tenant->series[i];
        if (!is_chosen(&chosen, i) || is_excluded(selection, &series->labels))
            continue;
        uint32_t group = ID_NONE;
        for (size_t w = 0; w < series->rows.window_count; w++) {
            const struct block_window *window = &series->rows.windows[w];
            if (!in_range(selection, window->start_ns))
                continue;
            if (group == ID_NONE) {
                group = point_groups_find(groups, &series->labels);
                covering_series(&covering, group, &series->labels, series->type);
            }
            if (group == ID_NONE)
                return error_set(error, -E2BIG, "The answer has more than %d groups.",
                                 STORE_GROUPS_MAX);
            point_groups_add(groups, group, window->start_ns,
                             window_value(&series->rows, window, wanted), 1);
            quality_add(quality, window->start_ns, window->start_ns, 1, window->row_count,
                        window->total);
            covering_window(&covering, window);
        }
        quality->series += group != ID_NONE;
        if (limits->memory_bytes && point_groups_memory(groups) > limits->memory_bytes)
            return error_memory(error, limits->memory_bytes);
        if (is_cancelled(limits))
            return error_cancelled(error);
    }
    cover_witnesses(&covering, tenant, selection, &chosen);
    covering_settle(&covering);
    point_groups_cover(groups, &covering);
    quality_cover(quality, &covering);
    quality->tiers = quality->windows ? 1 << STORE_RAW : 0;
    return 0;
}

static int memory_frames(struct store *base, const struct store_selection *selection,
                         const struct store_timeseries_query *query,
                         const struct store_limits *limits, store_frame_fn *fn, void *context,
                         struct error *error)
{
    struct memory_store *store = of(base);
    (void)query;
    (void)limits;
    (void)error;
    LOCKED(store);
    struct memory_tenant *tenant = find_tenant(store, selection->tenant);
    const struct profile *stacks = tenant ? &tenant->stacks : NULL;
    return tenant ? give_frames(stacks, stacks->nodes, stacks->node_count, fn, context) : 0;
}

static int memory_exemplars(struct store *base, const struct store_selection *selection,
                            const struct store_function *function,
                            const struct store_limits *limits, store_exemplar_fn *fn, void *context,
                            struct error *error)
{
    struct memory_store *store = of(base);
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = choose(store, selection, &chosen, error);
    LOCKED(store);
    struct memory_tenant *tenant = find_tenant(store, selection->tenant);
    if (r < 0 || !tenant)
        return r;
    _cleanup_free_ bool *wanted =
        function ? nodes_of(&tenant->stacks, function, STORE_CUMULATIVE) : NULL;
    for (size_t i = 0; i < tenant->exemplar_count; i++) {
        const struct memory_exemplar *exemplar = &tenant->exemplars[i];
        const struct memory_series *series = &tenant->series[exemplar->series];
        if (!in_range(selection, exemplar->start_ns) || !is_chosen(&chosen, exemplar->series) ||
            is_excluded(selection, &series->labels) || (wanted && !wanted[exemplar->exemplar.node]))
            continue;
        if (is_cancelled(limits))
            return error_cancelled(error);
        r = fn(context, &series->labels, &tenant->stacks, &exemplar->exemplar);
        if (r)
            return r;
    }
    return 0;
}

static int scan_window(struct memory_tenant *tenant, size_t id, const struct block_window *window,
                       store_window_fn *fn, void *context)
{
    const struct memory_series *series = &tenant->series[id];
    _cleanup_free_ struct store_row *rows = memory_zalloc(window->row_count + 1ul, sizeof(*rows));
    _cleanup_free_ struct store_exemplar *exemplars =
        memory_zalloc(tenant->exemplar_count + 1, sizeof(*exemplars));
    size_t exemplar_count = 0;
    for (size_t i = 0; i < tenant->exemplar_count; i++)
        if (tenant->exemplars[i].series == id && tenant->exemplars[i].start_ns == window->start_ns)
            exemplars[exemplar_count++] = tenant->exemplars[i].exemplar;
    for (uint32_t i = 0; i < window->row_count; i++)
        rows[i] = (struct store_row){.node = series->rows.nodes[window->first_row + i],
                                     .value = series->rows.values[window->first_row + i]};
    return fn(context, &(struct store_profile){.labels = &series->labels,
                                               .type = series->type,
                                               .time_ns = window->start_ns,
                                               .duration_ns = window->duration_ns,
                                               .profile = &tenant->stacks,
                                               .rows = rows,
                                               .row_count = window->row_count,
                                               .exemplars = exemplars,
                                               .exemplar_count = exemplar_count});
}

static int memory_scan(struct store *base, const struct store_selection *selection,
                       const struct store_limits *limits, store_window_fn *fn, void *context,
                       struct error *error)
{
    struct memory_store *store = of(base);
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = choose(store, selection, &chosen, error);
    LOCKED(store);
    struct memory_tenant *tenant = find_tenant(store, selection->tenant);
    for (size_t i = 0; !r && tenant && i < tenant->series_count; i++) {
        if (!is_chosen(&chosen, i) || is_excluded(selection, &tenant->series[i].labels))
            continue;
        const struct block_rows *rows = &tenant->series[i].rows;
        for (size_t w = 0; w < rows->window_count; w++) {
            if (!in_range(selection, rows->windows[w].start_ns))
                continue;
            if (is_cancelled(limits))
                return error_cancelled(error);
            r = scan_window(tenant, i, &rows->windows[w], fn, context);
            if (r)
                return r;
        }
    }
    return r;
}

/* ---- keeping house ---- */

/* Removes windows of a series in [from, to). */
static void remove_windows(struct memory_series *series, const struct store_selection *selection,
                           bool dry_run, struct store_deleted *deleted)
{
    struct block_rows kept = {0};
    for (size_t w = 0; w < series->rows.window_count; w++) {
        const struct block_window *window = &series->rows.windows[w];
        if (in_range(selection, window->start_ns)) {
            deleted->windows++;
            deleted->rows += window->row_count;
        } else if (!dry_run)
            block_rows_add(&kept, window, series->rows.nodes + window->first_row,
                           series->rows.values + window->first_row, window->row_count);
    }
    if (dry_run)
        return;
    block_rows_release(&series->rows);
    series->rows = kept;
}

/* Of chosen series, or of all. */
static void remove_exemplars(struct memory_tenant *tenant, const struct store_selection *selection,
                             const struct chosen *chosen)
{
    size_t kept = 0;
    for (size_t i = 0; i < tenant->exemplar_count; i++) {
        const struct memory_exemplar *exemplar = &tenant->exemplars[i];
        if (!in_range(selection, exemplar->start_ns) ||
            (chosen && !is_chosen(chosen, exemplar->series)))
            tenant->exemplars[kept++] = *exemplar;
    }
    tenant->exemplar_count = kept;
}

static int memory_delete(struct store *base, const struct store_selection *selection, bool dry_run,
                         struct store_deleted *deleted, struct error *error)
{
    struct memory_store *store = of(base);
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = choose(store, selection, &chosen, error);
    LOCKED(store);
    struct memory_tenant *tenant = find_tenant(store, selection->tenant);
    if (r < 0 || !tenant)
        return r;
    for (size_t i = 0; i < tenant->series_count; i++)
        if (is_chosen(&chosen, i))
            remove_windows(&tenant->series[i], selection, dry_run, deleted);
    if (!dry_run)
        remove_exemplars(tenant, selection, &chosen);
    return 0;
}

static int memory_maintain(struct store *base, const atomic_bool *cancelled, struct error *error)
{
    struct memory_store *store = of(base);
    LOCKED(store);
    (void)cancelled;
    (void)error;
    int64_t oldest = store->now(store->now_context) - store->keep_days * 86400000000000ll;
    struct store_selection old = {.from_ns = INT64_MIN, .to_ns = oldest};
    struct store_deleted dropped = {0};
    for (size_t t = 0; store->keep_days && t < store->tenant_count; t++) {
        for (size_t i = 0; i < store->tenants[t].series_count; i++)
            remove_windows(&store->tenants[t].series[i], &old, false, &dropped);
        remove_exemplars(&store->tenants[t], &old, NULL);
    }
    return 0;
}

static int memory_stats(struct store *base, struct store_stats *stats, struct error *error)
{
    struct memory_store *store = of(base);
    LOCKED(store);
    (void)error;
    *stats = store->stats;
    for (size_t t = 0; t < store->tenant_count; t++) {
        stats->series += store->tenants[t].series_count;
        for (size_t i = 0; i < store->tenants[t].series_count; i++) {
            stats->rows += store->tenants[t].series[i].rows.row_count;
            stats->windows += store->tenants[t].series[i].rows.window_count;
        }
    }
    stats->memory_bytes = memory_used(store);
    return 0;
}

static int memory_tenants(struct store *base, store_text_fn *fn, void *context, struct error *error)
{
    struct memory_store *store = of(base);
    LOCKED(store);
    (void)error;
    const char *last = NULL;
    for (size_t given = 0; given < store->tenant_count; given++) {
        const char *next = NULL;
        for (size_t i = 0; i < store->tenant_count; i++) {
            const char *name = store->tenants[i].name;
            if ((!last || strcmp(name, last) > 0) && (!next || strcmp(name, next) < 0))
                next = name;
        }
        int r = fn(context, next);
        if (r)
            return r;
        last = next;
    }
    return 0;
}

static unsigned raw_days(const struct store_options *options)
{
    return options->class_count ? options->classes[options->class_count - 1].days[STORE_RAW] : 14;
}

static int memory_set_retention(struct store *base, const struct store_options *options,
                                struct error *error)
{
    struct memory_store *store = (struct memory_store *)base;
    (void)error;
    pthread_mutex_lock(&store->lock);
    store->keep_days = raw_days(options);
    pthread_mutex_unlock(&store->lock);
    return 0;
}

static const struct store_operations operations = {
    .name = "memory",
    .close = memory_close,
    .write = memory_write,
    .series = memory_series,
    .merge = memory_merge,
    .timeseries = memory_timeseries,
    .frames = memory_frames,
    .exemplars = memory_exemplars,
    .scan = memory_scan,
    .maintain = memory_maintain,
    .set_retention = memory_set_retention,
    .delete = memory_delete,
    .stats = memory_stats,
    .tenants = memory_tenants,
};

static int64_t wall_clock(void *context)
{
    (void)context;
    return clock_ns(CLOCK_REALTIME);
}

int store_open_memory(const struct store_options *options, struct store **ret_store,
                      struct error *error)
{
    (void)error;
    struct memory_store *store = memory_zalloc(1, sizeof(*store));
    store->store.operations = &operations;
    pthread_mutex_init(&store->lock, NULL);
    store->memory_limit_bytes =
        options->memory_limit_bytes ? options->memory_limit_bytes : 256ul << 20;
    store->now = options->now ? options->now : wall_clock;
    store->now_context = options->now_context;
    store->keep_days = raw_days(options);
    *ret_store = &store->store;
    return 0;
}
