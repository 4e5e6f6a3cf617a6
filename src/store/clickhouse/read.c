// SPDX-License-Identifier: Apache-2.0
// Merges and time series: ClickHouse adds up per stack, or per step; the windows say what was
// covered.

#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/apart.h"
#include "store/clickhouse/internal.h"

/* ---- windows ---- */

struct windows {
    const struct chosen *chosen;
    struct chosen_series *series; /* of the row before */
    struct covering *covering;
    struct store_quality *quality;
    struct point_groups *groups; /* NULL: a merge */
    bool totals;                 /* the values of points are those of windows */
    uint32_t group;
};

static int begin_series(struct windows *windows, uint64_t id, struct error *error)
{
    struct chosen_series *series = windows->series = chosen_find(windows->chosen, id);
    windows->group = 0;
    if (!series)
        return 0;
    if (series->selected && windows->groups) {
        windows->group = point_groups_find(windows->groups, &series->labels);
        if (windows->group == ID_NONE)
            return error_set(error, -E2BIG, "The answer has more than %d groups.",
                             STORE_GROUPS_MAX);
    }
    windows->quality->series += series->selected;
    covering_series(windows->covering, series->selected ? windows->group : COVER_WITNESS,
                    &series->labels, series->type);
    return 0;
}

static int take_window(void *context, struct row_reader *row, struct error *error)
{
    struct windows *windows = context;
    uint64_t id = row_get_u64(row);
    struct block_window window = {.start_ns = row_get_i64(row), .windows = 1};
    window.duration_ns = row_get_i64(row);
    window.total = row_get_i64(row);
    window.row_count = row_get_u32(row);
    window.first_ns = window.last_ns = window.start_ns;
    if (row->is_short)
        return 0;
    if (!windows->series || windows->series->id != id) {
        int r = begin_series(windows, id, error);
        if (r < 0)
            return r;
    }
    if (!windows->series)
        return 0;
    covering_window(windows->covering, &window);
    if (!windows->series->selected)
        return 0;
    quality_add(windows->quality, window.start_ns, window.start_ns, 1, window.row_count,
                window.total);
    if (windows->groups)
        point_groups_add(windows->groups, windows->group, window.start_ns,
                         windows->totals ? window.total : 0, 1);
    return 0;
}

static int read_windows(struct clickhouse *store, const struct store_selection *selection,
                        const struct store_limits *limits, struct windows *windows,
                        struct error *error)
{
    _cleanup_statement_ struct statement statement = {.cancelled = limits->cancelled};
    buffer_add_text(
        &statement.sql,
        "SELECT series, time, duration, value, `rows` FROM samples WHERE kind = 0 AND ");
    chosen_where(windows->chosen, selection, true, &statement.sql);
    buffer_add_text(&statement.sql, " ORDER BY series, time");
    int r = links_query(&store->links, &statement, take_window, windows, error);
    covering_settle(windows->covering);
    quality_cover(windows->quality, windows->covering);
    windows->quality->tiers = windows->quality->windows ? 1 << STORE_RAW : 0;
    return r;
}

/* ---- merge ---- */

struct sum {
    struct stack_ref stack;
    uint64_t series; /* with a label kept apart; else 0 */
    int64_t start_ns, value;
};

struct sums {
    struct sum *list;
    size_t count, capacity, memory;
    const struct store_limits *limits;
};

static int take_sum(void *context, struct row_reader *row, struct error *error)
{
    struct sums *sums = context;
    struct sum sum = {.stack = {.stream = row_get_u64(row), .stack = row_get_u64(row)}};
    sum.series = row_get_u64(row);
    sum.start_ns = row_get_i64(row);
    sum.value = row_get_i64(row);
    if (row->is_short)
        return 0;
    if (sums->memory && is_too_much(sums->limits, (sums->count + 1) * sizeof(sum), &sums->memory))
        return error_memory(error, sums->memory);
    array_reserve(sums->list, sums->capacity, sums->count + 1);
    sums->list[sums->count++] = sum;
    return 0;
}

static int read_sums(struct clickhouse *store, const struct store_selection *selection,
                     const struct chosen *chosen, const struct store_limits *limits,
                     struct sums *sums, struct error *error)
{
    _cleanup_statement_ struct statement statement = {.cancelled = limits->cancelled};
    const struct store_apart *apart = limits->apart;
    struct buffer *sql = &statement.sql;
    const char *series = apart && apart->label ? "series" : "toUInt64(0)";
    buffer_printf(sql, "SELECT stream, stack, %s AS one_series, ", series);
    if (apart)
        buffer_printf(sql, "toInt64(intDiv(time, %lld) * %lld)", (long long)apart->step_ns,
                      (long long)apart->step_ns);
    else
        buffer_add_text(sql, "toInt64(0)");
    buffer_add_text(sql, " AS step, toInt64(sum(value)) FROM samples WHERE kind = 1 AND ");
    chosen_where(chosen, selection, false, sql);
    if (limits->stack_parts > 1)
        buffer_printf(sql, " AND intDiv(bitAnd(stack, %d) * %u, %d) = %u",
                      STORE_STACK_PARTS_MAX - 1, limits->stack_parts, STORE_STACK_PARTS_MAX,
                      limits->stack_part);
    buffer_add_text(sql, " GROUP BY stream, stack, one_series, step");
    return links_query(&store->links, &statement, take_sum, sums, error);
}

static int add_sums(const struct sums *sums, const struct chosen *chosen,
                    const struct store_selection *selection, const struct stack_nodes *nodes,
                    const struct store_limits *limits, unsigned type, struct error *error)
{
    struct profile *profile = nodes->profile;
    _cleanup_(apart_slots_release) struct apart_slots slots = {0};
    struct apart_cells cells = {0};
    int r = limits->apart ? apart_slots_init(&slots, limits->apart, selection, profile, error) : 0;
    size_t memory = limits->memory_bytes;
    for (size_t i = 0; !r && i < sums->count; i++) {
        const struct sum *sum = &sums->list[i];
        uint32_t node = stack_nodes_find(nodes, sum->stack.stream, sum->stack.stack), group = 0;
        const struct chosen_series *series =
            limits->apart ? chosen_find(chosen, sum->series) : NULL;
        if (!limits->apart) {
            profile_add_value(profile, profile_sample(profile, node, 0, 0, 0), type, sum->value);
        } else {
            /* Without a label, any series is of the one group. */
            r = apart_group(&slots, &(series ? series : chosen->list)->labels, &group, error);
            if (!r)
                apart_cells_add(&cells, &slots, group,
                                apart_step(&slots, MAX(sum->start_ns, selection->from_ns)), node,
                                sum->value);
        }
        if (!r && is_cancelled(limits))
            r = error_cancelled(error);
        if (!r && memory && i % 1024 == 0 && is_too_much(limits, profile_memory(profile), &memory))
            r = error_memory(error, memory);
    }
    apart_cells_settle(&cells);
    for (size_t i = 0; !r && i < cells.count; i++)
        if (cells.list[i].value)
            apart_put(&slots, cells.list[i].slot, cells.list[i].node, type, cells.list[i].value);
    apart_cells_release(&cells);
    return r;
}

static int merge(struct clickhouse *store, const struct store_selection *selection,
                 const struct store_limits *limits, const struct chosen *chosen,
                 struct profile *profile, unsigned type, struct error *error)
{
    struct sums sums = {.limits = limits, .memory = limits->memory_bytes};
    struct stack_nodes nodes;
    stack_nodes_init(&nodes, profile);
    int r = read_sums(store, selection, chosen, limits, &sums, error);
    _cleanup_free_ struct stack_ref *stacks = memory_zalloc(sums.count + 1, sizeof(*stacks));
    for (size_t i = 0; i < sums.count; i++)
        stacks[i] = sums.list[i].stack;
    if (!r)
        r = stack_nodes_load(store, selection, &nodes, stacks, sums.count, limits, error);
    if (!r)
        r = add_sums(&sums, chosen, selection, &nodes, limits, type, error);
    stack_nodes_release(&nodes);
    free(sums.list);
    return r;
}

int clickhouse_merge(struct store *base, const struct store_selection *selection,
                     const struct store_limits *limits, struct profile *profile, unsigned type,
                     struct store_quality *quality, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_chosen_ struct chosen chosen = {0};
    if (is_cancelled(limits))
        return error_cancelled(error);
    int r = chosen_load(store, selection, CHOSEN_FOR_COVER, limits->cancelled, &chosen, error);
    if (r < 0 || !chosen.selected)
        return r;
    struct covering covering;
    struct windows windows = {.chosen = &chosen, .covering = &covering, .quality = quality};
    covering_init(&covering, selection, 0);
    r = read_windows(store, selection, limits, &windows, error);
    covering_release(&covering);
    return r ? r : merge(store, selection, limits, &chosen, profile, type, error);
}

/* ---- time series ---- */

struct steps {
    const struct chosen *chosen;
    struct point_groups *groups;
    const struct store_limits *limits;
};

static int take_step(void *context, struct row_reader *row, struct error *error)
{
    struct steps *steps = context;
    uint64_t id = row_get_u64(row);
    int64_t start_ns = row_get_i64(row), value = row_get_i64(row);
    struct chosen_series *series = row->is_short ? NULL : chosen_find(steps->chosen, id);
    if (!series)
        return 0;
    uint32_t group = point_groups_find(steps->groups, &series->labels);
    if (group == ID_NONE)
        return error_set(error, -E2BIG, "The answer has more than %d groups.", STORE_GROUPS_MAX);
    point_groups_add(steps->groups, group, start_ns, value, 0);
    return 0;
}

static int read_steps(struct clickhouse *store, const struct store_selection *selection,
                      const struct store_timeseries_query *query, const struct store_limits *limits,
                      struct steps *steps, struct error *error)
{
    _cleanup_statement_ struct statement statement = {.cancelled = limits->cancelled};
    struct buffer *sql = &statement.sql;
    int64_t from_ns = steps->groups->from_ns;
    buffer_printf(sql,
                  "SELECT series, toInt64(intDiv(time - (%lld), %lld) * %lld + (%lld)) AS step, "
                  "toInt64(sum(value)) FROM samples WHERE kind = 1 AND ",
                  (long long)from_ns, (long long)query->step_ns, (long long)query->step_ns,
                  (long long)from_ns);
    chosen_where(steps->chosen, selection, false, sql);
    stacks_where(selection, query->function, query->count == STORE_CUMULATIVE, sql);
    buffer_add_text(sql, " GROUP BY series, step");
    return links_query(&store->links, &statement, take_step, steps, error);
}

int clickhouse_timeseries(struct store *base, const struct store_selection *selection,
                          const struct store_timeseries_query *query,
                          const struct store_limits *limits, struct point_groups *groups,
                          struct store_quality *quality, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = chosen_load(store, selection, CHOSEN_FOR_COVER, limits->cancelled, &chosen, error);
    if (r < 0 || !chosen.selected)
        return r;
    _cleanup_(covering_release) struct covering covering;
    struct store_selection steps_of = selection_of_steps(selection, query);
    struct windows windows = {.chosen = &chosen,
                              .covering = &covering,
                              .quality = quality,
                              .groups = groups,
                              .totals = !query->function};
    struct steps steps = {.chosen = &chosen, .groups = groups, .limits = limits};
    covering_init(&covering, &steps_of, query->step_ns);
    r = read_windows(store, selection, limits, &windows, error);
    if (!r && query->function)
        r = read_steps(store, selection, query, limits, &steps, error);
    if (!r)
        point_groups_cover(groups, &covering);
    if (!r && limits->memory_bytes && point_groups_memory(groups) > limits->memory_bytes)
        r = error_memory(error, limits->memory_bytes);
    return r;
}
