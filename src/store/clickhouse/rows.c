// SPDX-License-Identifier: Apache-2.0
// Series, exemplars, and windows as they were written.

#include <stdlib.h>

#include "base/memory.h"
#include "store/clickhouse/internal.h"

/* ---- series ---- */

struct listing {
    const struct chosen *chosen;
    store_series_fn *fn;
    void *context;
};

static int take_span(void *context, struct row_reader *row, struct error *error)
{
    struct listing *listing = context;
    uint64_t id = row_get_u64(row);
    int64_t first_ns = row_get_i64(row), last_ns = row_get_i64(row);
    struct chosen_series *series = row->is_short ? NULL : chosen_find(listing->chosen, id);
    (void)error;
    return series && series->selected
               ? listing->fn(listing->context, &series->labels, series->type, first_ns, last_ns)
               : 0;
}

int clickhouse_series(struct store *base, const struct store_selection *selection,
                      store_series_fn *fn, void *context, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_statement_ struct statement statement = {0};
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = chosen_load(store, selection, CHOSEN_FOR_LIST, NULL, &chosen, error);
    if (r < 0 || !chosen.selected)
        return r;
    struct listing listing = {.chosen = &chosen, .fn = fn, .context = context};
    /* Whole days: what is stored of a series is told beyond the range, too. */
    struct store_selection days = *selection;
    days.from_ns = day_of(selection->from_ns) * DAY_NS;
    days.to_ns =
        selection->to_ns == INT64_MIN ? INT64_MIN : (day_of(selection->to_ns - 1) + 1) * DAY_NS;
    buffer_add_text(&statement.sql,
                    "SELECT series, min(time), max(time) FROM samples WHERE kind = 0 AND ");
    chosen_where(&chosen, &days, false, &statement.sql);
    buffer_printf(&statement.sql,
                  " GROUP BY series HAVING countIf(time >= %lld AND time < %lld) > 0",
                  (long long)MAX(selection->from_ns, (int64_t)0),
                  (long long)MAX(selection->to_ns, (int64_t)0));
    return links_query(&store->links, &statement, take_span, &listing, error);
}

/* ---- exemplars ---- */

struct exemplar_row {
    uint64_t series;
    struct stack_ref stack;
    struct store_exemplar exemplar;
};

struct exemplar_rows {
    struct exemplar_row *list;
    size_t count, capacity, memory;
    const struct store_limits *limits;
};

#define EXEMPLAR_BYTES (sizeof(struct profile_link) + sizeof(int64_t))

static bool parse_exemplar(struct row_text text, struct store_exemplar *exemplar)
{
    if (text.length != EXEMPLAR_BYTES)
        return false;
    memcpy(&exemplar->link, text.data, sizeof(exemplar->link));
    memcpy(&exemplar->time_ns, text.data + sizeof(exemplar->link), sizeof(int64_t));
    return true;
}

static int take_exemplar(void *context, struct row_reader *row, struct error *error)
{
    struct exemplar_rows *rows = context;
    struct exemplar_row one = {.series = row_get_u64(row)};
    one.stack.stream = row_get_u64(row);
    one.stack.stack = row_get_u64(row);
    one.exemplar.value = row_get_i64(row);
    struct row_text text = row_get_text(row);
    if (row->is_short || !parse_exemplar(text, &one.exemplar))
        return 0;
    if (rows->memory && is_too_much(rows->limits, (rows->count + 1) * sizeof(one), &rows->memory))
        return error_memory(error, rows->memory);
    array_reserve(rows->list, rows->capacity, rows->count + 1);
    rows->list[rows->count++] = one;
    return 0;
}

static int give_exemplars(struct clickhouse *store, const struct store_selection *selection,
                          const struct chosen *chosen, struct exemplar_rows *rows,
                          store_exemplar_fn *fn, void *context, struct error *error)
{
    _cleanup_profile_ struct profile profile;
    struct stack_nodes nodes;
    _cleanup_free_ struct stack_ref *stacks = memory_zalloc(rows->count + 1, sizeof(*stacks));
    for (size_t i = 0; i < rows->count; i++)
        stacks[i] = rows->list[i].stack;
    profile_init(&profile, PROFILE_ALL);
    stack_nodes_init(&nodes, &profile);
    int r = stack_nodes_load(store, selection, &nodes, stacks, rows->count, rows->limits, error);
    for (size_t i = 0; !r && i < rows->count; i++) {
        struct exemplar_row *row = &rows->list[i];
        const struct chosen_series *series = chosen_find(chosen, row->series);
        row->exemplar.node = stack_nodes_find(&nodes, row->stack.stream, row->stack.stack);
        if (is_cancelled(rows->limits))
            r = error_cancelled(error);
        else if (series)
            r = fn(context, &series->labels, &profile, &row->exemplar);
    }
    stack_nodes_release(&nodes);
    return r;
}

int clickhouse_exemplars(struct store *base, const struct store_selection *selection,
                         const struct store_function *function, const struct store_limits *limits,
                         store_exemplar_fn *fn, void *context, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_statement_ struct statement statement = {.cancelled = limits->cancelled};
    _cleanup_chosen_ struct chosen chosen = {0};
    struct exemplar_rows rows = {.limits = limits, .memory = limits->memory_bytes};
    int r = chosen_load(store, selection, CHOSEN_FOR_ROWS, limits->cancelled, &chosen, error);
    if (r < 0 || !chosen.selected)
        return r;
    buffer_add_text(&statement.sql, "SELECT series, stream, stack, value, exemplar FROM samples "
                                    "WHERE kind = 2 AND ");
    chosen_where(&chosen, selection, false, &statement.sql);
    if (function)
        stacks_where(selection, function, true, &statement.sql);
    r = links_query(&store->links, &statement, take_exemplar, &rows, error);
    if (!r)
        r = give_exemplars(store, selection, &chosen, &rows, fn, context, error);
    free(rows.list);
    return r;
}

/* ---- windows ---- */

#define SCAN_ROWS 50000 /* after so many, what is complete is given */

struct scan_row {
    uint64_t series;
    int64_t time_ns, value, duration_ns;
    enum row_kind kind;
    struct stack_ref stack;
    struct store_exemplar exemplar;
};

struct scan {
    struct clickhouse *store;
    const struct store_selection *selection;
    const struct store_limits *limits;
    const struct chosen *chosen;
    store_window_fn *fn;
    void *context;
    struct scan_row *list;
    size_t count, capacity;
    uint64_t generation;
};

static bool same_window(const struct scan_row *a, const struct scan_row *b)
{
    return a->series == b->series && a->time_ns == b->time_ns;
}

/* Rows of one series and time: windows first. Of several windows with the same start, the first has
 * all rows. */
static int give_windows(struct scan *scan, const struct scan_row *rows, size_t count,
                        const struct stack_nodes *nodes)
{
    const struct chosen_series *series = chosen_find(scan->chosen, rows->series);
    _cleanup_free_ struct store_row *list = memory_zalloc(count + 1, sizeof(*list));
    _cleanup_free_ struct store_exemplar *exemplars = memory_zalloc(count + 1, sizeof(*exemplars));
    size_t row_count = 0, exemplar_count = 0;
    int r = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t node = stack_nodes_find(nodes, rows[i].stack.stream, rows[i].stack.stack);
        if (rows[i].kind == ROW_SAMPLE) {
            list[row_count++] = (struct store_row){.node = node, .value = rows[i].value};
        } else if (rows[i].kind == ROW_EXEMPLAR) {
            exemplars[exemplar_count] = rows[i].exemplar;
            exemplars[exemplar_count++].node = node;
        }
    }
    for (size_t i = 0; series && !r && i < count && rows[i].kind == ROW_WINDOW; i++) {
        r = scan->fn(scan->context, &(struct store_profile){.labels = &series->labels,
                                                            .type = series->type,
                                                            .time_ns = rows[i].time_ns,
                                                            .duration_ns = rows[i].duration_ns,
                                                            .profile = nodes->profile,
                                                            .rows = list,
                                                            .row_count = row_count,
                                                            .exemplars = exemplars,
                                                            .exemplar_count = exemplar_count,
                                                            .generation = scan->generation});
        row_count = exemplar_count = 0;
    }
    return r;
}

/* The first `count` rows, which are whole windows. */
static int give_rows(struct scan *scan, size_t count, struct error *error)
{
    _cleanup_profile_ struct profile profile;
    struct stack_nodes nodes;
    _cleanup_free_ struct stack_ref *stacks = memory_zalloc(count + 1, sizeof(*stacks));
    scan->generation++;
    for (size_t i = 0; i < count; i++)
        stacks[i] = scan->list[i].stack;
    profile_init(&profile, PROFILE_ALL);
    stack_nodes_init(&nodes, &profile);
    int r =
        stack_nodes_load(scan->store, scan->selection, &nodes, stacks, count, scan->limits, error);
    for (size_t i = 0, end = 0; !r && i < count; i = end) {
        for (end = i; end < count && same_window(&scan->list[i], &scan->list[end]); end++)
            ;
        r = is_cancelled(scan->limits) ? error_cancelled(error)
                                       : give_windows(scan, scan->list + i, end - i, &nodes);
    }
    stack_nodes_release(&nodes);
    memmove(scan->list, scan->list + count, (scan->count - count) * sizeof(*scan->list));
    scan->count -= count;
    return r;
}

static int take_row(void *context, struct row_reader *row, struct error *error)
{
    struct scan *scan = context;
    struct scan_row one = {.series = row_get_u64(row)};
    one.time_ns = row_get_i64(row);
    one.kind = row_get_u8(row);
    one.stack.stream = row_get_u64(row);
    one.stack.stack = row_get_u64(row);
    one.value = row_get_i64(row);
    one.duration_ns = row_get_i64(row);
    struct row_text text = row_get_text(row);
    if (row->is_short)
        return 0;
    one.exemplar.value = one.value;
    parse_exemplar(text, &one.exemplar);
    int r = 0;
    if (scan->count >= SCAN_ROWS && !same_window(&scan->list[scan->count - 1], &one))
        r = give_rows(scan, scan->count, error);
    array_reserve(scan->list, scan->capacity, scan->count + 1);
    scan->list[scan->count++] = one;
    return r;
}

int clickhouse_scan(struct store *base, const struct store_selection *selection,
                    const struct store_limits *limits, store_window_fn *fn, void *context,
                    struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_statement_ struct statement statement = {.cancelled = limits->cancelled};
    _cleanup_chosen_ struct chosen chosen = {0};
    int r = chosen_load(store, selection, CHOSEN_FOR_ROWS, limits->cancelled, &chosen, error);
    if (r < 0 || !chosen.selected)
        return r;
    struct scan scan = {.store = store,
                        .selection = selection,
                        .limits = limits,
                        .chosen = &chosen,
                        .fn = fn,
                        .context = context};
    buffer_add_text(&statement.sql, "SELECT series, time, kind, stream, stack, value, duration, "
                                    "exemplar FROM samples WHERE ");
    chosen_where(&chosen, selection, false, &statement.sql);
    buffer_add_text(&statement.sql, " ORDER BY series, time, kind");
    r = links_query(&store->links, &statement, take_row, &scan, error);
    if (!r && scan.count)
        r = give_rows(&scan, scan.count, error);
    free(scan.list);
    return r;
}
