// SPDX-License-Identifier: Apache-2.0
// Merges that keep steps of time apart: see apart.h.

#include "store/apart.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "store/internal.h"

#define SETTLE_LEAST 65536 /* cells, before they are added up between */

int apart_slots_init(struct apart_slots *slots, const struct store_apart *apart,
                     const struct store_selection *selection, struct profile *profile,
                     struct error *error)
{
    if (apart->step_ns < 1000000000)
        return error_set(error, -EINVAL, "A step must be at least a second.");
    struct store_timeseries_query query = {.step_ns = apart->step_ns, .aligned = true};
    struct store_selection steps_selection = selection_of_steps(selection, &query);
    int64_t from = steps_selection.from_ns;
    uint64_t range = selection->to_ns > from ? (uint64_t)selection->to_ns - (uint64_t)from : 0;
    uint64_t steps = range / (uint64_t)apart->step_ns + 1;
    if (steps > STORE_APART_STEPS_MAX)
        return error_set(error, -E2BIG, "The range has %llu steps; the limit is %d.",
                         (unsigned long long)steps, STORE_APART_STEPS_MAX);
    *slots =
        (struct apart_slots){.apart = apart, .from_ns = from, .profile = profile, .steps = steps};
    pthread_mutex_init(&slots->lock, NULL);
    return 0;
}

void apart_slots_release(struct apart_slots *slots)
{
    for (size_t i = 0; i < slots->count; i++)
        free(slots->values[i]);
    free(slots->values);
    if (slots->steps)
        pthread_mutex_destroy(&slots->lock);
    *slots = (struct apart_slots){0};
}

int apart_group(struct apart_slots *slots, const struct labels *labels, uint32_t *ret_group,
                struct error *error)
{
    const char *value = slots->apart->label ? labels_get(labels, slots->apart->label) : NULL;
    size_t at = 0;
    pthread_mutex_lock(&slots->lock);
    while (at < slots->count &&
           (value == NULL || slots->values[at] == NULL ? slots->values[at] != value
                                                       : strcmp(slots->values[at], value) != 0))
        at++;
    if (at == slots->count && at < STORE_APART_VALUES_MAX) {
        array_reserve(slots->values, slots->capacity, slots->count + 1);
        slots->values[slots->count++] = value ? memory_strdup(value) : NULL;
    }
    pthread_mutex_unlock(&slots->lock);
    if (at == STORE_APART_VALUES_MAX)
        return error_set(error, -E2BIG, "The label %s has more than %d values in this selection.",
                         slots->apart->label, STORE_APART_VALUES_MAX);
    *ret_group = (uint32_t)at;
    return 0;
}

uint32_t apart_step(const struct apart_slots *slots, int64_t start_ns)
{
    uint64_t offset = start_ns > slots->from_ns ? (uint64_t)start_ns - (uint64_t)slots->from_ns : 0;
    return (uint32_t)MIN(offset / (uint64_t)slots->apart->step_ns, slots->steps - 1);
}

void apart_cells_release(struct apart_cells *cells)
{
    free(cells->list);
    *cells = (struct apart_cells){0};
}

void apart_cells_clear(struct apart_cells *cells)
{
    cells->count = cells->sorted = 0;
}

static int compare_cells(const void *a, const void *b)
{
    const struct apart_cell *x = a, *y = b;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Blocks come by series and time with their nodes in order, so that mostly nothing has to move. */
static bool is_in_order(const struct apart_cells *cells)
{
    for (size_t i = 1; i < cells->count; i++)
        if (compare_cells(&cells->list[i - 1], &cells->list[i]) >= 0)
            return false;
    return true;
}

void apart_cells_settle(struct apart_cells *cells)
{
    if (cells->count && !is_in_order(cells)) {
        qsort(cells->list, cells->count, sizeof(*cells->list), compare_cells);
        size_t kept = 0;
        for (size_t i = 1; i < cells->count; i++) {
            if (!compare_cells(&cells->list[kept], &cells->list[i]))
                cells->list[kept].value =
                    add_saturated(cells->list[kept].value, cells->list[i].value);
            else
                cells->list[++kept] = cells->list[i];
        }
        cells->count = kept + 1;
    }
    cells->sorted = cells->count;
}

void apart_cells_add(struct apart_cells *cells, const struct apart_slots *slots, uint32_t group,
                     uint32_t step, uint32_t node, int64_t value)
{
    if (cells->count >= SETTLE_LEAST && cells->count >= 2 * cells->sorted)
        apart_cells_settle(cells);
    array_reserve(cells->list, cells->capacity, cells->count + 1);
    cells->list[cells->count++] =
        (struct apart_cell){node, (uint32_t)(group * slots->steps + step), value};
}

/* Called for every value, of which most are of the group before. */
static uint32_t label_set_of(struct apart_slots *slots, uint32_t group)
{
    struct profile *profile = slots->profile;
    if (slots->has_last && slots->last_group == group)
        return slots->last_set;
    pthread_mutex_lock(&slots->lock);
    const char *value = slots->values[group]; /* stays where it is */
    pthread_mutex_unlock(&slots->lock);
    slots->last_set = 0;
    if (value && *value) {
        struct profile_label label = {.key = profile_cstring(profile, slots->apart->label),
                                      .text = profile_cstring(profile, value)};
        slots->last_set = profile_label_set(profile, &label, 1);
    }
    slots->has_last = true;
    slots->last_group = group;
    return slots->last_set;
}

void apart_put(struct apart_slots *slots, uint32_t slot, uint32_t node, unsigned type,
               int64_t value)
{
    uint32_t group = (uint32_t)(slot / slots->steps);
    int64_t time_ns = slots->from_ns + (int64_t)(slot % slots->steps) * slots->apart->step_ns;
    size_t row = profile_sample(slots->profile, node, label_set_of(slots, group), 0,
                                (uint64_t)MAX(time_ns, 1));
    profile_add_value(slots->profile, row, type, value);
}
