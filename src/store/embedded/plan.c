// SPDX-License-Identifier: Apache-2.0
// Choosing tiers for a range of time.

#include "store/embedded/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct times {
    int64_t *list; /* ascending */
    size_t count, capacity;
};

struct coverage { /* of one class */
    struct times slots[STORE_TIERS];
    struct times late[STORE_TIERS]; /* slots of the next tier that lack something */
};

static void coverage_release(struct coverage *coverage)
{
    for (unsigned tier = 0; tier < STORE_TIERS; tier++) {
        free(coverage->slots[tier].list);
        free(coverage->late[tier].list);
    }
    *coverage = (struct coverage){0};
}

bool plan_is_rollup_label(const char *name)
{
    static const char *const names[] = {LABEL_SERVICE_NAME, "version", LABEL_SOURCE,
                                        LABEL_RECORDING};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

void plan_rollup_labels(const struct labels *labels, struct labels *ret_labels)
{
    for (size_t i = 0; i < labels->count; i++)
        if (plan_is_rollup_label(labels->list[i].name))
            labels_set(ret_labels, labels->list[i].name, labels->list[i].value);
}

bool plan_selector_fits_rollups(const struct selector *selector)
{
    for (size_t i = 0; selector && i < selector->count; i++)
        if (!plan_is_rollup_label(selector->matchers[i].name))
            return false;
    return true;
}

static int read_times(struct file *file, struct connection *connection, enum sql which,
                      struct times *times, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, connection, which, error);
    if (!statement)
        return error->code;
    if (which == SQL_SLOTS) {
        sqlite3_bind_int64(statement, 1, INT64_MIN);
        sqlite3_bind_int64(statement, 2, INT64_MAX);
    }
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        array_reserve(times->list, times->capacity, times->count + 1);
        times->list[times->count++] = sqlite3_column_int64(statement, 0);
    }
    return r;
}

/* Files come in order of time, so the lists do. Raw files are read first: what is noted as late
 * afterwards was not there when the query began. */
static int read_coverage(struct embedded *store, const struct file_list *list, size_t first,
                         size_t end, struct coverage *coverage, unsigned *damaged_files,
                         struct error *error)
{
    for (size_t i = first; i < end; i++) {
        struct file *file = list->files[i];
        struct connection *connection = file_borrow(file, error);
        int r = connection ? file_run(file, connection, SQL_BEGIN_READ, error) : error->code;
        if (!r)
            r = file_check_notes(file, connection, error);
        if (!r && file->tier != STORE_DAY)
            r = read_times(file, connection, SQL_LATE, &coverage->late[file->tier], error);
        if (!r && file->tier != STORE_RAW)
            r = read_times(file, connection, SQL_SLOTS, &coverage->slots[file->tier], error);
        if (connection)
            file_run(file, connection, SQL_COMMIT, NULL);
        file_return(file, connection);
        if (embedded_is_damaged(store, file, r)) {
            embedded_set_aside(store, file, error->text);
            ++*damaged_files;
        } else if (r < 0) {
            return r;
        }
    }
    return 0;
}

static size_t first_from(const struct times *times, int64_t time_ns)
{
    size_t low = 0, high = times->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (times->list[middle] < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_between(const struct times *times, int64_t from_ns, int64_t to_ns)
{
    size_t at = first_from(times, from_ns);
    return at < times->count && times->list[at] < to_ns;
}

static bool fits(const struct coverage *coverage, enum store_tier tier, int64_t from_ns)
{
    int64_t to_ns = from_ns + tier_slot_ns[tier];
    if (!has_between(&coverage->slots[tier], from_ns, from_ns + 1))
        return false;
    for (unsigned source = 0; source < tier; source++)
        if (has_between(&coverage->late[source], from_ns, to_ns))
            return false;
    return true;
}

struct span {
    enum store_tier tier;
    int64_t from_ns, to_ns;
};

struct spans {
    struct span *list;
    size_t count, capacity;
};

static void add_span(struct spans *spans, enum store_tier tier, int64_t from_ns, int64_t to_ns)
{
    struct span *last = spans->count ? &spans->list[spans->count - 1] : NULL;
    if (last && last->tier == tier && last->to_ns == from_ns) {
        last->to_ns = to_ns;
        return;
    }
    array_reserve(spans->list, spans->capacity, spans->count + 1);
    spans->list[spans->count++] = (struct span){.tier = tier, .from_ns = from_ns, .to_ns = to_ns};
}

static bool fits_step(int64_t from_ns, int64_t slot_ns, const struct store_selection *selection,
                      int64_t step_ns)
{
    uint64_t offset = (uint64_t)from_ns - (uint64_t)selection->from_ns;
    return !step_ns ||
           offset / (uint64_t)step_ns == (offset + (uint64_t)slot_ns - 1) / (uint64_t)step_ns;
}

/* The coarsest tier that has a whole slot from this moment on. */
static enum store_tier choose(const struct coverage *coverage, int64_t time_ns,
                              const struct store_selection *selection, int64_t step_ns)
{
    for (unsigned tier = STORE_DAY; tier > STORE_RAW; tier--) {
        int64_t slot = tier_slot_ns[tier];
        if (time_ns % slot || slot > selection->to_ns - time_ns || !fits(coverage, tier, time_ns))
            continue;
        if (fits_step(time_ns, slot, selection, step_ns))
            return tier;
    }
    return STORE_RAW;
}

/* The plan for the files of one class. */
struct class_plan {
    struct embedded *store;
    struct plan *plan;
    size_t first, end; /* of the plan's list */
    const struct store_selection *selection;
    int64_t step_ns, from_ns, to_ns;
    bool moments; /* of windows, which rollups don't know */
    struct coverage coverage;
    struct spans spans;
    unsigned *damaged_files;
};

/* Slots that nobody has used are only made of all blocks while they are new: what is older is
 * rolled up soon. */
#define MADE_NS 7200000000000ll
/* A range that ends this long ago, or later, ends now: it lacks nothing that was pushed. */
#define NOW_NS 60000000000ll

/* Takes a slot that isn't rolled up from memory, where all of it is selected: 1 when that worked.
 */
static int take_live(struct class_plan *class, int64_t slot_ns, struct error *error)
{
    struct plan *plan = class->plan;
    int64_t slot_end = slot_ns + tier_slot_ns[STORE_TEN_MINUTES];
    int64_t now = embedded_now(class->store);
    struct file *file = NULL;
    for (size_t i = class->first; !file && i < class->end; i++)
        if (plan->list.files[i]->tier == STORE_RAW && !plan->list.files[i]->gone &&
            plan->list.files[i]->from_ns <= slot_ns && plan->list.files[i]->to_ns >= slot_end)
            file = plan->list.files[i];
    if (!file || !fits_step(slot_ns, slot_end - slot_ns, class->selection, class->step_ns))
        return 0;
    bool whole =
        class->from_ns <= slot_ns && (class->to_ns >= slot_end || class->to_ns >= now - NOW_NS);
    struct plan_live live = {.file = file};
    int r = live_take(class->store, file, slot_ns, class->from_ns, class->to_ns,
                      whole && slot_ns > now - MADE_NS, &live.blocks, error);
    if (r == 1) {
        array_reserve(plan->lives, plan->live_capacity, plan->live_count + 1);
        plan->lives[plan->live_count++] = live;
    } else {
        live_list_release(&live.blocks);
    }
    if (embedded_is_damaged(class->store, file, r)) {
        embedded_set_aside(class->store, file, error->text);
        ++*class->damaged_files;
        r = 0;
    }
    return r;
}

/* Whether all of that time is in raw files. */
static bool has_raw(const struct file_list *list, size_t first, size_t end, int64_t from_ns,
                    int64_t to_ns)
{
    for (size_t i = first; i < end; i++) {
        const struct file *file = list->files[i];
        if (file->tier == STORE_RAW && !file->gone &&
            MAX(file->from_ns, file->floor_ns) <= from_ns && file->to_ns >= to_ns)
            return true;
    }
    return false;
}

static int cover(struct class_plan *class, bool rollups, struct error *error)
{
    if (!rollups) {
        add_span(&class->spans, STORE_RAW, class->from_ns, class->to_ns);
        return 0;
    }
    int64_t finest = tier_slot_ns[STORE_TEN_MINUTES];
    int r = 0;
    for (int64_t at = class->from_ns, next; r >= 0 && at < class->to_ns; at = next) {
        enum store_tier tier = choose(&class->coverage, at, class->selection, class->step_ns);
        int64_t slot = at / finest * finest;
        bool raw = class->moments && has_raw(&class->plan->list, class->first, class->end, at,
                                             MIN(class->to_ns, at + tier_slot_ns[tier]));
        if (raw)
            tier = STORE_RAW;
        next = tier == STORE_RAW ? MIN(class->to_ns, slot + finest) : at + tier_slot_ns[tier];
        r = tier == STORE_RAW && !raw && !class->store->read_only ? take_live(class, slot, error)
                                                                  : 0;
        if (!r)
            add_span(&class->spans, tier, at, next);
    }
    return MIN(r, 0);
}

/* A raw block, an hour, of which some windows are wanted has to be gone through row by row. So
 * where a range begins or ends within an hour, taking all that is wanted of that hour from there
 * costs nothing more, and saves reading its ten-minute slots. */
static void widen_raw(struct spans *spans, const struct file_list *list, size_t first, size_t end)
{
    int64_t hour = tier_span_ns[STORE_RAW];
    for (size_t i = 0; i < spans->count; i++) {
        struct span *raw = &spans->list[i];
        if (raw->tier != STORE_RAW)
            continue;
        int64_t from = raw->from_ns / hour * hour, to = (raw->to_ns + hour - 1) / hour * hour;
        struct span *before = i ? raw - 1 : NULL, *after = i + 1 < spans->count ? raw + 1 : NULL;
        if (before && before->tier == STORE_TEN_MINUTES && from < raw->from_ns &&
            before->to_ns == raw->from_ns && has_raw(list, first, end, from, from + hour)) {
            raw->from_ns = MAX(from, before->from_ns);
            before->to_ns = raw->from_ns;
        }
        if (after && after->tier == STORE_TEN_MINUTES && to > raw->to_ns &&
            after->from_ns == raw->to_ns && has_raw(list, first, end, to - hour, to)) {
            raw->to_ns = MIN(to, after->to_ns);
            after->from_ns = raw->to_ns;
        }
    }
}

static void add_ranges(struct plan *plan, size_t first, size_t end, const struct spans *spans)
{
    for (size_t i = first; i < end; i++) {
        struct file *file = plan->list.files[i];
        for (size_t k = 0; k < spans->count; k++) {
            const struct span *span = &spans->list[k];
            int64_t from = MAX(span->from_ns, file->from_ns), to = MIN(span->to_ns, file->to_ns);
            if (span->tier != file->tier || from >= to)
                continue;
            array_reserve(plan->ranges, plan->capacity, plan->count + 1);
            plan->ranges[plan->count++] =
                (struct plan_range){.file = file, .from_ns = from, .to_ns = to};
        }
    }
}

int plan_make(struct embedded *store, const struct store_selection *selection,
              const struct store_timeseries_query *query, const struct store_limits *limits,
              struct plan *ret_plan, unsigned *damaged_files, struct error *error)
{
    struct plan plan = {
        .list = embedded_files(store, selection->tenant, selection->from_ns, selection->to_ns)};
    struct store_selection steps = query ? selection_of_steps(selection, query) : *selection;
    bool rollups = !limits->raw_only && plan_selector_fits_rollups(selection->selector);
    for (size_t i = 0; i < selection->excluded_count; i++)
        rollups &= !selection->excluded[i].label;
    for (size_t i = 0; query && i < query->group_count; i++)
        rollups &= plan_is_rollup_label(query->group_by[i]);
    int r = 0;
    for (size_t first = 0, end; !r && first < plan.list.count; first = end) {
        int64_t from = INT64_MAX, to = INT64_MIN;
        for (end = first; end < plan.list.count && !strcmp(plan.list.files[end]->class_name,
                                                           plan.list.files[first]->class_name);
             end++) {
            from = MIN(from, plan.list.files[end]->from_ns);
            to = MAX(to, plan.list.files[end]->to_ns);
        }
        struct class_plan class = {.store = store,
                                   .plan = &plan,
                                   .first = first,
                                   .end = end,
                                   .selection = &steps,
                                   .step_ns = query ? query->step_ns : 0,
                                   .moments = query && query->moments,
                                   .from_ns = MAX(from, selection->from_ns),
                                   .to_ns = MIN(to, selection->to_ns),
                                   .damaged_files = damaged_files};
        if (rollups)
            r = read_coverage(store, &plan.list, first, end, &class.coverage, damaged_files, error);
        if (!r)
            r = cover(&class, rollups, error);
        if (!r)
            widen_raw(&class.spans, &plan.list, first, end);
        add_ranges(&plan, first, end, &class.spans);
        coverage_release(&class.coverage);
        free(class.spans.list);
    }
    if (r < 0) {
        plan_release(store, &plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}

void plan_release(struct embedded *store, struct plan *plan)
{
    for (size_t i = 0; i < plan->live_count; i++)
        live_list_release(&plan->lives[i].blocks);
    free(plan->lives);
    embedded_release(store, &plan->list);
    free(plan->ranges);
    *plan = (struct plan){0};
}
