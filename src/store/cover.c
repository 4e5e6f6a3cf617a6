// SPDX-License-Identifier: Apache-2.0
// Covered time of processes, series and selections. See cover.h and docs/covered-time.md.

#include "store/cover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/number.h"
#include "profile/level.h"

#define SPANS_MAX 1024 /* of a process in a part: further ones extend the one before */
#define USED_PART 10   /* of the time that is covered at least, for pauses to be filled */
#define SECOND_NS 1000000000ll

struct span {
    int64_t from_ns, to_ns;
};

struct cover_cell {
    uint64_t process;
    uint32_t group;
    uint32_t span_count, span_capacity;
    bool level;
    bool crowded; /* windows of one series overlap: processes that share their labels */
    int64_t from_ns, to_ns;
    int64_t longest_ns;
    double value;
    struct span *spans; /* ascending, apart from each other */
};

struct cover_part {
    uint32_t group;
    int64_t key_ns;
    struct united { /* times of which sums are known, within an extent */
        int64_t from_ns, to_ns;
        double sum, most, extent;
    } covered, present;
    double process;
    double value;    /* of processes with covered time */
    double estimate; /* what they would have while they were present, */
    double used;     /* likewise, where pauses between windows tell it */
};

struct cover_stay {
    uint64_t process;
    uint32_t group;
    int64_t part_from_ns, part_to_ns;
    int64_t begin_ns, end_ns; /* of the first and the last window */
    double rate;
};

void covering_init(struct covering *covering, const struct store_selection *selection,
                   int64_t step_ns)
{
    *covering = (struct covering){.from_ns = selection->from_ns,
                                  .to_ns = selection->to_ns,
                                  .step_ns = step_ns,
                                  .cell = ID_NONE};
}

static void clear_cells(struct covering *covering)
{
    for (size_t i = 0; i < covering->cell_count; i++)
        free(covering->cells[i].spans);
    covering->cell_count = 0;
    covering->cell = ID_NONE;
    covering->span_bytes = 0;
    id_table_clear(&covering->cell_index);
}

void covering_release(struct covering *covering)
{
    clear_cells(covering);
    free(covering->cells);
    free(covering->parts);
    free(covering->stays);
    id_table_release(&covering->cell_index);
    id_table_release(&covering->part_index);
    *covering = (struct covering){0};
}

size_t covering_memory(const struct covering *covering)
{
    return covering->cell_capacity * (sizeof(struct cover_cell) + 16) + covering->span_bytes +
           covering->part_capacity * (sizeof(struct cover_part) + 16) +
           covering->stay_capacity * sizeof(struct cover_stay);
}

/* ---- windows of a process ---- */

uint64_t cover_process(const struct labels *labels)
{
    const char *split = labels_get(labels, LABEL_SPLIT);
    if (!split)
        return labels_hash(labels);
    _cleanup_labels_ struct labels own = {0};
    labels_copy(&own, labels);
    labels_remove(&own, LABEL_SPLIT);
    for (const char *name = split; *name;) {
        size_t length = strcspn(name, LABEL_SPLIT_SEPARATOR);
        labels_set_n(&own, name, length, "", 0);
        name += length + (name[length] != 0);
    }
    return labels_hash(&own);
}

void covering_series(struct covering *covering, uint32_t group, const struct labels *labels,
                     const char *type)
{
    uint64_t hash = labels_hash(labels), kind = XXH3_64bits(type, strlen(type));
    if (covering->series == (hash ^ kind) && covering->group == group)
        return; /* another block of the same */
    covering->series = hash ^ kind;
    covering->group = group;
    covering->process = cover_process(labels) ^ kind;
    covering->level = level_is_type(type);
    covering->shared |= group == COVER_WITNESS || (group && labels_get(labels, LABEL_SPLIT));
    covering->cell = ID_NONE;
    covering->last_start_ns = covering->last_end_ns = INT64_MIN;
}

void covering_leave(const struct covering *covering, struct cover_series *ret_series)
{
    *ret_series = (struct cover_series){.process = covering->process,
                                        .group = covering->group,
                                        .cell = covering->cell,
                                        .level = covering->level,
                                        .last_start_ns = covering->last_start_ns,
                                        .last_end_ns = covering->last_end_ns};
}

void covering_resume(struct covering *covering, const struct cover_series *series)
{
    covering->series = 0;
    covering->process = series->process;
    covering->group = series->group;
    covering->cell = series->cell;
    covering->level = series->level;
    covering->last_start_ns = series->last_start_ns;
    covering->last_end_ns = series->last_end_ns;
}

/* The part that a moment is in. */
static struct span find_part(const struct covering *covering, int64_t time_ns)
{
    int64_t slot = time_ns - time_ns % COVER_SLOT_NS;
    struct span part = {.from_ns = MAX(slot, covering->from_ns),
                        .to_ns = MIN(add_saturated(slot, COVER_SLOT_NS), covering->to_ns)};
    if (covering->step_ns) {
        uint64_t step = (uint64_t)covering->step_ns, from = (uint64_t)covering->from_ns;
        int64_t start = (int64_t)(from + ((uint64_t)time_ns - from) / step * step);
        part.from_ns = MAX(part.from_ns, start);
        part.to_ns = MIN(part.to_ns, add_saturated(start, covering->step_ns));
    }
    return part;
}

static uint64_t key_hash(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t key[] = {a, b, c};
    return XXH3_64bits(key, sizeof(key));
}

static struct cover_cell *find_cell(struct covering *covering, int64_t time_ns)
{
    if (covering->cell != ID_NONE) {
        struct cover_cell *cell = &covering->cells[covering->cell];
        if (time_ns >= cell->from_ns && time_ns < cell->to_ns)
            return cell;
    }
    struct span part = find_part(covering, time_ns);
    uint64_t hash = key_hash(covering->process, covering->group, (uint64_t)part.from_ns);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&covering->cell_index, &probe)) != ID_NONE) {
        const struct cover_cell *cell = &covering->cells[id];
        if (cell->process == covering->process && cell->group == covering->group &&
            cell->from_ns == part.from_ns)
            break;
    }
    if (id == ID_NONE) {
        id = (uint32_t)covering->cell_count++;
        array_reserve(covering->cells, covering->cell_capacity, covering->cell_count);
        covering->cells[id] = (struct cover_cell){.process = covering->process,
                                                  .group = covering->group,
                                                  .level = covering->level,
                                                  .from_ns = part.from_ns,
                                                  .to_ns = part.to_ns};
        id_table_insert(&covering->cell_index, hash, id);
    }
    covering->cell = id;
    return &covering->cells[id];
}

/* How many spans begin at this time or before. */
static size_t spans_until(const struct cover_cell *cell, int64_t from_ns)
{
    size_t low = 0, high = cell->span_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cell->spans[middle].from_ns <= from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_span(struct covering *covering, struct cover_cell *cell, struct span span)
{
    size_t at = spans_until(cell, span.from_ns), end;
    bool joins = at && (cell->spans[at - 1].to_ns >= span.from_ns || cell->span_count == SPANS_MAX);
    if (joins) {
        at--;
    } else if (cell->span_count == SPANS_MAX) {
        cell->spans[0].from_ns = span.from_ns;
    } else {
        size_t before = cell->span_capacity;
        size_t capacity = before;
        array_reserve(cell->spans, capacity, cell->span_count + 1ul);
        cell->span_capacity = (uint32_t)capacity;
        covering->span_bytes += (capacity - before) * sizeof(span);
        memmove(cell->spans + at + 1, cell->spans + at,
                (cell->span_count - at) * sizeof(*cell->spans));
        cell->spans[at] = span;
        cell->span_count++;
    }
    struct span *into = &cell->spans[at];
    into->to_ns = MAX(into->to_ns, span.to_ns);
    for (end = at + 1; end < cell->span_count && cell->spans[end].from_ns <= into->to_ns; end++)
        into->to_ns = MAX(into->to_ns, cell->spans[end].to_ns);
    memmove(cell->spans + at + 1, cell->spans + end,
            (cell->span_count - end) * sizeof(*cell->spans));
    cell->span_count -= (uint32_t)(end - at - 1);
}

void covering_window(struct covering *covering, const struct block_window *window)
{
    struct cover_cell *cell = find_cell(covering, window->start_ns);
    int64_t duration = cell->level ? 1 : window->duration_ns;
    struct span span = {window->start_ns, add_saturated(window->start_ns, duration)};
    if (covering->group != COVER_WITNESS)
        cell->value += (double)magnitude(window->total);
    cell->crowded |=
        window->start_ns >= covering->last_start_ns && window->start_ns < covering->last_end_ns;
    covering->last_start_ns = window->start_ns;
    covering->last_end_ns = MAX(covering->last_end_ns, span.to_ns);
    cell->longest_ns = MAX(cell->longest_ns, duration);
    if (duration > 0)
        add_span(covering, cell, span);
}

/* ---- parts ---- */

static struct cover_part *get_part(struct covering *covering, uint32_t group, int64_t key_ns)
{
    uint64_t hash = key_hash(group, (uint64_t)key_ns, 0);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&covering->part_index, &probe)) != ID_NONE)
        if (covering->parts[id].group == group && covering->parts[id].key_ns == key_ns)
            return &covering->parts[id];
    id = (uint32_t)covering->part_count++;
    array_reserve(covering->parts, covering->part_capacity, covering->part_count);
    covering->parts[id] = (struct cover_part){.group = group,
                                              .key_ns = key_ns,
                                              .covered = {INT64_MAX, INT64_MIN},
                                              .present = {INT64_MAX, INT64_MIN}};
    id_table_insert(&covering->part_index, hash, id);
    return &covering->parts[id];
}

static void unite(struct united *to, const struct united *from)
{
    to->from_ns = MIN(to->from_ns, from->from_ns);
    to->to_ns = MAX(to->to_ns, from->to_ns);
    to->sum += from->sum;
    to->most = MAX(to->most, from->most);
    to->extent += from->extent;
}

static struct united united_one(int64_t from_ns, int64_t to_ns, int64_t length_ns)
{
    return (struct united){from_ns, to_ns, (double)length_ns, (double)length_ns,
                           (double)(to_ns - from_ns)};
}

/* At least the longest, at most the sum; between them, as dense as the times are in their own
 * extents. */
static double united_length(const struct united *united)
{
    double extent = (double)(united->to_ns - united->from_ns);
    double dense = united->extent > 0 ? extent * MIN(united->sum / united->extent, 1) : 0;
    return MIN(united->sum, MAX(united->most, dense));
}

/* Rare windows say too little of what is between them. */
static int64_t used_time(int64_t covered_ns, int64_t with_pauses_ns)
{
    return covered_ns < with_pauses_ns && covered_ns >= with_pauses_ns / USED_PART ? with_pauses_ns
                                                                                   : 0;
}

/* `per_ns` is what the value is to be divided by, and not 0; without `used_ns`, the value is what
 * was used. */
static void add_to_part(struct cover_part *part, const struct cover *cover, double value)
{
    struct united covered = united_one(cover->begin_ns, cover->end_ns, cover->covered_ns);
    struct united present = united_one(cover->from_ns, cover->to_ns, cover->present_ns);
    unite(&part->covered, &covered);
    unite(&part->present, &present);
    part->process += (double)cover->process_ns;
    part->value += value;
    part->estimate += value / (double)cover->per_ns * (double)cover->present_ns;
    part->used += cover->used_ns ? value / (double)cover->per_ns * (double)cover->used_ns : value;
}

void covering_slot(struct covering *covering, uint32_t group, const struct block_window *window)
{
    struct cover_part *part = get_part(covering, group, window->start_ns);
    struct cover cover = {.covered_ns = window->covered_ns,
                          .process_ns = window->duration_ns,
                          .per_ns = window->per_ns,
                          .begin_ns = window->begin_ns,
                          .end_ns = window->end_ns,
                          .present_ns = window->present_ns,
                          .from_ns = window->from_ns,
                          .to_ns = window->to_ns};
    if (cover.per_ns > 0 && cover.from_ns >= 0 && cover.to_ns >= cover.from_ns &&
        cover.begin_ns >= 0 && cover.end_ns >= cover.begin_ns) {
        /* Without pauses of all processes at once, the rate has those of each. */
        cover.used_ns = cover.covered_ns < cover.end_ns - cover.begin_ns
                            ? used_time(cover.covered_ns, cover.present_ns)
                            : cover.covered_ns;
        add_to_part(part, &cover, (double)magnitude(window->total));
    }
}

/* When the process was there: from its first to its last window, and half a pause more at both
 * ends, or to the part's end when that isn't farther than a pause. A single window tells nothing of
 * pauses, and stands for the whole part. */
static struct span find_presence(const struct cover_cell *cell, int64_t length_ns)
{
    struct span part = {cell->from_ns, cell->to_ns};
    if (length_ns <= cell->longest_ns)
        return part;
    const struct span *first = &cell->spans[0], *last = &cell->spans[cell->span_count - 1];
    int64_t pauses = last->to_ns - first->from_ns - length_ns;
    int64_t pause = cell->span_count > 1 ? pauses / (cell->span_count - 1) : 0;
    bool begins = first->from_ns - part.from_ns > pause, ends = part.to_ns - last->to_ns > pause;
    return (struct span){begins ? first->from_ns - pause / 2 : part.from_ns,
                         ends ? last->to_ns + pause / 2 : part.to_ns};
}

static void settle_cell(struct covering *covering, const struct cover_cell *cell)
{
    struct cover_part *part = get_part(covering, cell->group, cell->from_ns);
    int64_t length = 0;
    for (uint32_t i = 0; i < cell->span_count; i++)
        length = add_saturated(length, cell->spans[i].to_ns - cell->spans[i].from_ns);
    if (!length)
        return;
    struct span there = find_presence(cell, length);
    if (cell->crowded && !cell->level)
        length = MIN(length, MAX(cell->to_ns - cell->from_ns, cell->longest_ns));
    struct cover cover = {.covered_ns = length,
                          .per_ns = length,
                          .begin_ns = cell->spans[0].from_ns,
                          .end_ns = cell->spans[cell->span_count - 1].to_ns,
                          .present_ns = there.to_ns - there.from_ns,
                          .from_ns = there.from_ns,
                          .to_ns = there.to_ns};
    /* Windows and the pauses behind them: as many as there are windows, of the same length. */
    uint32_t count = cell->span_count;
    if (count > 1 && !cell->crowded)
        cover.used_ns =
            used_time(length, (cell->spans[count - 1].from_ns - cell->spans[0].from_ns) /
                                  (count - 1) * count);
    if (cell->level) {
        cover.covered_ns = cover.present_ns;
        cover.begin_ns = cover.from_ns;
        cover.end_ns = cover.to_ns;
        cover.per_ns = length * SECOND_NS;
    }
    cover.process_ns = cover.covered_ns;
    add_to_part(part, &cover, cell->value);
    if (!covering->step_ns || covering->step_ns >= COVER_SLOT_NS || cell->group == COVER_WITNESS)
        return;
    array_reserve(covering->stays, covering->stay_capacity, covering->stay_count + 1);
    covering->stays[covering->stay_count++] =
        (struct cover_stay){.process = cell->process,
                            .group = cell->group,
                            .part_from_ns = cell->from_ns,
                            .part_to_ns = cell->to_ns,
                            .begin_ns = cell->spans[0].from_ns,
                            .end_ns = cell->spans[count - 1].to_ns,
                            .rate = cell->value / (double)cover.per_ns};
}

/* ---- parts of a process in several groups ---- */

static int compare_cells(const void *a, const void *b)
{
    const struct cover_cell *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return x->group < y->group ? -1 : x->group > y->group;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The groups of a process's cells in ascending order, each once; witnesses only where there is no
 * other, since they are no group of an answer. */
static size_t list_groups(const struct cover_cell *cells, size_t count, uint32_t *groups)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        groups[i] = cells[i].group;
    qsort(groups, count, sizeof(*groups), compare_numbers);
    for (size_t i = 0; i < count; i++)
        if (!kept || groups[kept - 1] != groups[i])
            groups[kept++] = groups[i];
    return kept > 1 && groups[kept - 1] == COVER_WITNESS ? kept - 1 : kept;
}

/* The cells of a process in one part, ascending by group. */
static void settle_shared(struct covering *covering, const struct cover_cell *cells, size_t count,
                          const uint32_t *groups, size_t group_count)
{
    struct cover_cell whole = cells[0];
    whole.spans = NULL;
    whole.span_count = whole.span_capacity = 0;
    for (size_t i = 0; i < count; i++) {
        whole.crowded |= cells[i].crowded;
        whole.longest_ns = MAX(whole.longest_ns, cells[i].longest_ns);
        for (uint32_t k = 0; k < cells[i].span_count; k++)
            add_span(covering, &whole, cells[i].spans[k]);
    }
    for (size_t g = 0, at = 0; g < group_count; g++) {
        while (at < count && cells[at].group < groups[g])
            at++;
        bool own = at < count && cells[at].group == groups[g];
        whole.group = groups[g];
        whole.value = own ? cells[at].value : 0;
        settle_cell(covering, &whole);
    }
    free(whole.spans);
}

static void settle_processes(struct covering *covering)
{
    struct cover_cell *cells = covering->cells;
    size_t count = covering->cell_count;
    _cleanup_free_ uint32_t *groups = memory_alloc((count + 1) * sizeof(*groups));
    qsort(cells, count, sizeof(*cells), compare_cells);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && cells[end].process == cells[i].process; end++)
            ;
        size_t group_count = list_groups(cells + i, end - i, groups);
        for (size_t part = i, next; part < end; part = next) {
            for (next = part + 1; next < end && cells[next].from_ns == cells[part].from_ns; next++)
                ;
            settle_shared(covering, cells + part, next - part, groups, group_count);
        }
    }
}

void covering_settle(struct covering *covering)
{
    if (covering->shared && covering->cell_count > 1)
        settle_processes(covering);
    else
        for (size_t i = 0; i < covering->cell_count; i++)
            settle_cell(covering, &covering->cells[i]);
    clear_cells(covering);
}

void covering_settle_copy(const struct covering *covering, struct covering *ret_parts)
{
    struct covering parts = {.from_ns = covering->from_ns,
                             .to_ns = covering->to_ns,
                             .step_ns = covering->step_ns,
                             .shared = covering->shared,
                             .cell = ID_NONE,
                             .cell_count = covering->cell_count};
    parts.cells = memory_alloc((parts.cell_count + 1) * sizeof(*parts.cells));
    if (parts.cell_count) /* their spans stay the other's */
        memcpy(parts.cells, covering->cells, parts.cell_count * sizeof(*parts.cells));
    if (parts.shared && parts.cell_count > 1)
        settle_processes(&parts);
    else
        for (size_t i = 0; i < parts.cell_count; i++)
            settle_cell(&parts, &parts.cells[i]);
    free(parts.cells);
    parts.cells = NULL;
    parts.cell_count = parts.span_bytes = 0;
    *ret_parts = parts;
}

static void add_part(struct cover_part *to, const struct cover_part *from)
{
    unite(&to->covered, &from->covered);
    unite(&to->present, &from->present);
    to->process += from->process;
    to->value += from->value;
    to->estimate += from->estimate;
    to->used += from->used;
}

void covering_join(struct covering *covering, const struct covering *other)
{
    for (size_t i = 0; i < other->part_count; i++)
        add_part(get_part(covering, other->parts[i].group, other->parts[i].key_ns),
                 &other->parts[i]);
    if (!other->stay_count)
        return;
    array_reserve(covering->stays, covering->stay_capacity,
                  covering->stay_count + other->stay_count);
    memcpy(covering->stays + covering->stay_count, other->stays,
           other->stay_count * sizeof(*other->stays));
    covering->stay_count += other->stay_count;
}

/* ---- steps between the windows of a process ---- */

static int compare_stays(const void *a, const void *b)
{
    const struct cover_stay *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->part_from_ns < y->part_from_ns ? -1 : x->part_from_ns > y->part_from_ns;
}

static int compare_parts(const void *a, const void *b)
{
    const struct cover_part *const *x = a, *const *y = b;
    if ((*x)->group != (*y)->group)
        return (*x)->group < (*y)->group ? -1 : 1;
    return (*x)->key_ns < (*y)->key_ns ? -1 : (*x)->key_ns > (*y)->key_ns;
}

struct part_list {
    const struct covering *covering;
    struct cover_part **list; /* in the order of compare_parts */
    size_t count;
};

/* The process is present in the parts of its group that begin in this time and have windows. */
static void fill(const struct part_list *parts, const struct cover_stay *stay, int64_t from_ns,
                 int64_t to_ns)
{
    size_t low = 0, high = parts->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct cover_part *part = parts->list[middle];
        if (part->group < stay->group || (part->group == stay->group && part->key_ns < from_ns))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < parts->count; low++) {
        struct cover_part *part = parts->list[low];
        if (part->group != stay->group || part->key_ns >= to_ns)
            return;
        if (!(part->covered.sum > 0))
            continue;
        struct span whole = find_part(parts->covering, part->key_ns);
        struct united present = united_one(whole.from_ns, whole.to_ns, whole.to_ns - whole.from_ns);
        unite(&part->present, &present);
        part->estimate += stay->rate * (double)(whole.to_ns - whole.from_ns);
    }
}

/* As find_presence, with the query's range as the part. */
static void fill_process(const struct part_list *parts, const struct cover_stay *stays,
                         size_t count)
{
    int64_t from_ns = parts->covering->from_ns, to_ns = parts->covering->to_ns, pauses = 0;
    size_t pause_count = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        int64_t pause = stays[i + 1].begin_ns - stays[i].end_ns;
        if (pause > COVER_SLOT_NS)
            continue;
        fill(parts, &stays[i], stays[i].part_to_ns, stays[i + 1].part_from_ns);
        pauses += MAX(pause, (int64_t)0);
        pause_count++;
    }
    if (!pause_count)
        return;
    const struct cover_stay *first = &stays[0], *last = &stays[count - 1];
    int64_t pause = pauses / (int64_t)pause_count;
    bool begins = first->begin_ns - from_ns > pause, ends = to_ns - last->end_ns > pause;
    fill(parts, first, begins ? first->begin_ns - pause / 2 : from_ns, first->part_from_ns);
    fill(parts, last, last->part_to_ns, ends ? last->end_ns + pause / 2 : to_ns);
}

void covering_fill_pauses(struct covering *covering)
{
    struct cover_stay *stays = covering->stays;
    size_t count = covering->stay_count;
    if (count < 2)
        return;
    struct part_list parts = {.covering = covering, .count = covering->part_count};
    _cleanup_free_ struct cover_part **list = memory_alloc((parts.count + 1) * sizeof(*list));
    parts.list = list;
    for (size_t i = 0; i < parts.count; i++)
        list[i] = &covering->parts[i];
    qsort(list, parts.count, sizeof(struct cover_part *), compare_parts);
    qsort(stays, count, sizeof(*stays), compare_stays);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && stays[end].group == stays[i].group &&
                          stays[end].process == stays[i].process;
             end++)
            ;
        fill_process(&parts, stays + i, end - i);
    }
    covering->stay_count = 0;
}

/* ---- results ---- */

struct sum {                       /* of parts, one after the other */
    double covered, value, amount; /* the amount is the rate times covered time */
    double present, process, used;
    int64_t begin_ns, end_ns, from_ns, to_ns;
};

static void sum_part(struct sum *sum, const struct cover_part *part)
{
    if (!(part->present.sum > 0))
        return;
    double covered = united_length(&part->covered), present = united_length(&part->present);
    bool any = sum->present > 0;
    sum->begin_ns = any ? MIN(sum->begin_ns, part->covered.from_ns) : part->covered.from_ns;
    sum->end_ns = any ? MAX(sum->end_ns, part->covered.to_ns) : part->covered.to_ns;
    sum->from_ns = any ? MIN(sum->from_ns, part->present.from_ns) : part->present.from_ns;
    sum->to_ns = any ? MAX(sum->to_ns, part->present.to_ns) : part->present.to_ns;
    sum->covered += covered;
    sum->present += present;
    sum->process += part->process;
    sum->value += part->value;
    sum->used += part->used;
    sum->amount += part->estimate / present * covered;
}

static int64_t to_ns(double ns)
{
    return ns >= 9e18 ? INT64_MAX : llround(ns);
}

static struct cover finish(const struct sum *sum)
{
    double per = sum->amount > 0 ? sum->value * sum->covered / sum->amount : sum->covered;
    double used = sum->value > 0 ? sum->used / sum->value * per : per;
    return (struct cover){.covered_ns = to_ns(sum->covered),
                          .process_ns = to_ns(sum->process),
                          .per_ns = sum->covered > 0 ? MAX(to_ns(per), (int64_t)1) : 0,
                          .begin_ns = sum->begin_ns,
                          .end_ns = sum->end_ns,
                          .present_ns = to_ns(sum->present),
                          .from_ns = sum->from_ns,
                          .to_ns = sum->to_ns,
                          .used_ns = to_ns(used)};
}

struct cover covering_total(const struct covering *covering, uint32_t group)
{
    struct sum sum = {0};
    if (group != COVER_ALL) {
        for (size_t i = 0; i < covering->part_count; i++)
            if (covering->parts[i].group == group)
                sum_part(&sum, &covering->parts[i]);
        return finish(&sum);
    }
    struct covering all = {0};
    for (size_t i = 0; i < covering->part_count; i++)
        add_part(get_part(&all, 0, covering->parts[i].key_ns), &covering->parts[i]);
    for (size_t i = 0; i < all.part_count; i++)
        sum_part(&sum, &all.parts[i]);
    covering_release(&all);
    return finish(&sum);
}

void covering_fill_slot(const struct covering *covering, uint32_t group,
                        struct block_window *window)
{
    struct cover cover = covering_total(covering, group);
    window->duration_ns = cover.process_ns;
    window->covered_ns = cover.covered_ns;
    window->per_ns = cover.per_ns;
    window->begin_ns = cover.begin_ns;
    window->end_ns = cover.end_ns;
    window->present_ns = cover.present_ns;
    window->from_ns = cover.from_ns;
    window->to_ns = cover.to_ns;
}

struct step {
    uint32_t group;
    int64_t start_ns;
    const struct cover_part *part;
};

static int compare_steps(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

void covering_steps(const struct covering *covering, cover_step_fn *fn, void *context)
{
    uint64_t length = (uint64_t)covering->step_ns, from = (uint64_t)covering->from_ns;
    _cleanup_free_ struct step *steps = memory_alloc((covering->part_count + 1) * sizeof(*steps));
    for (size_t i = 0; i < covering->part_count; i++) {
        const struct cover_part *part = &covering->parts[i];
        uint64_t at = ((uint64_t)part->key_ns - from) / length;
        steps[i] = (struct step){part->group, (int64_t)(from + at * length), part};
    }
    if (covering->part_count)
        qsort(steps, covering->part_count, sizeof(*steps), compare_steps);
    for (size_t i = 0, end; i < covering->part_count; i = end) {
        struct sum sum = {0};
        for (end = i; end < covering->part_count && !compare_steps(&steps[end], &steps[i]); end++)
            sum_part(&sum, steps[end].part);
        struct cover cover = finish(&sum);
        fn(context, steps[i].group, steps[i].start_ns, &cover);
    }
}
