// SPDX-License-Identifier: Apache-2.0
// Sites that climb: see leaks.h. A site is the innermost function that is not an allocator's. Each
// has a value for each process and step; all sites of a process that fall together are a restart,
// which begins another block of its trend, and one that falls alone is a cache being emptied.

#include "server/watch/leaks.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "compare/table.h"
#include "profile/names/allocator.h"

#define HOUR_NS 3.6e12
#define LARGE 0.001       /* of a process: only sites that held so much say whether it restarted */
#define RESTART_SITES 0.6 /* so many of them fall together in a restart */
#define RESTART_FALL 0.5  /* to less than so much of what they held */
#define LEAST_SPAN_HOURS .5 /* that a process must have been seen */

struct cells {
    double *values;  /* [site][process][step] */
    double *covered; /* [process][step] in seconds; 0: not seen */
    uint32_t *block; /* [process][step] */
    uint64_t first_step;
    size_t sites, processes, steps;
    uint32_t processes_of[LEAK_PROCESSES_MAX]; /* label sets */
    uint32_t entries[LEAK_SITES_MAX];          /* of the naming; NAMING_NONE: no stack */
};

static void cells_release(struct cells *cells)
{
    free(cells->values);
    free(cells->covered);
    free(cells->block);
}

static double *value_at(const struct cells *cells, size_t site, size_t process, size_t step)
{
    return &cells->values[(site * cells->processes + process) * cells->steps + step];
}

static double *covered_at(const struct cells *cells, size_t process, size_t step)
{
    return &cells->covered[process * cells->steps + step];
}

/* ---- sites ---- */

static bool is_allocator(const struct naming_entry *entry)
{
    return name_is_allocator(entry->name, entry->length) || !strncmp(entry->binary, "libassay", 8);
}

/* The entry that each node's samples belong to. */
static uint32_t *sites_of_nodes(const struct profile *profile, const struct naming *naming)
{
    uint32_t *site = memory_alloc((profile->node_count + 1ul) * sizeof(*site));
    _cleanup_free_ bool *own = memory_zalloc(profile->node_count + 1ul, sizeof(*own));
    site[0] = NAMING_NONE;
    for (uint32_t node = 1; node < profile->node_count; node++) {
        uint32_t parent = profile->nodes[node].parent;
        uint32_t entry = naming->of_frame[profile->nodes[node].frame];
        bool named = entry != NAMING_NONE && !is_allocator(&naming->entries[entry]);
        site[node] = named || !own[parent] ? entry : site[parent];
        own[node] = named || own[parent];
    }
    return site;
}

struct sum {
    uint32_t id;
    double value;
};

static int by_value(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    return x->value > y->value ? -1 : x->value < y->value ? 1 : x->id < y->id ? -1 : x->id > y->id;
}

/* ---- filling ---- */

static unsigned covered_type(const struct profile *profile)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        if (!strcmp(profile_text(profile, profile->types[i].type), COMPARE_COVERED_TYPE))
            return i;
    return PROFILE_TYPES_MAX;
}

static void choose_sites(const struct profile *profile, const struct naming *naming,
                         const uint32_t *site, struct cells *cells)
{
    _cleanup_free_ struct sum *sums = memory_zalloc(naming->count + 1ul, sizeof(*sums));
    for (uint32_t i = 0; i <= naming->count; i++)
        sums[i].id = i < naming->count ? i : NAMING_NONE;
    for (size_t row = 0; row < profile->samples.count; row++) {
        uint32_t entry = site[profile->samples.node[row]];
        sums[MIN(entry, naming->count)].value += (double)profile->samples.values[0][row];
    }
    qsort(sums, naming->count + 1ul, sizeof(*sums), by_value);
    while (cells->sites < LEAK_SITES_MAX && cells->sites <= naming->count &&
           sums[cells->sites].value > 0) {
        cells->entries[cells->sites] = sums[cells->sites].id;
        cells->sites++;
    }
}

/* Label sets that cover time: those that cover the most. */
static void choose_processes(const struct profile *profile, unsigned type, struct cells *cells)
{
    struct sum *sums = NULL;
    size_t count = 0, capacity = 0;
    for (size_t row = 0; row < profile->samples.count; row++) {
        if (profile->samples.values[type][row] <= 0)
            continue;
        uint32_t set = profile->samples.labels[row];
        size_t at = 0;
        while (at < count && sums[at].id != set)
            at++;
        if (at == count) {
            array_reserve(sums, capacity, count + 1);
            sums[count++] = (struct sum){.id = set};
        }
        sums[at].value += (double)profile->samples.values[type][row];
    }
    if (count)
        qsort(sums, count, sizeof(*sums), by_value);
    cells->processes = MIN(count, (size_t)LEAK_PROCESSES_MAX);
    for (size_t i = 0; i < cells->processes; i++)
        cells->processes_of[i] = sums[i].id;
    free(sums);
}

static void choose_steps(const struct profile *profile, uint64_t step_ns, struct cells *cells)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t row = 0; row < profile->samples.count; row++) {
        first = MIN(first, profile->samples.time_ns[row] / step_ns);
        last = MAX(last, profile->samples.time_ns[row] / step_ns);
    }
    cells->first_step = first;
    cells->steps = first <= last ? (size_t)MIN(last - first + 1, (uint64_t)LEAK_STEPS_MAX) : 0;
}

static size_t process_of(const struct cells *cells, uint32_t set)
{
    size_t at = 0;
    while (at < cells->processes && cells->processes_of[at] != set)
        at++;
    return at;
}

static void fill(const struct profile *profile, const struct naming *naming, const uint32_t *site,
                 unsigned covered, uint64_t step_ns, struct cells *cells)
{
    size_t area = cells->processes * cells->steps;
    _cleanup_free_ uint32_t *of_entry = memory_alloc((naming->count + 1ul) * sizeof(*of_entry));
    memset(of_entry, 0xff, (naming->count + 1ul) * sizeof(*of_entry));
    for (size_t i = 0; i < cells->sites; i++)
        of_entry[MIN(cells->entries[i], naming->count)] = (uint32_t)i;
    cells->values = memory_zalloc(cells->sites * area + 1, sizeof(double));
    cells->covered = memory_zalloc(area + 1, sizeof(double));
    cells->block = memory_zalloc(area + 1, sizeof(uint32_t));
    for (size_t row = 0; row < profile->samples.count; row++) {
        size_t process = process_of(cells, profile->samples.labels[row]);
        uint64_t step = profile->samples.time_ns[row] / step_ns - cells->first_step;
        uint32_t at = of_entry[MIN(site[profile->samples.node[row]], naming->count)];
        if (process == cells->processes || step >= cells->steps)
            continue;
        *covered_at(cells, process, step) += (double)profile->samples.values[covered][row] / 1e9;
        if (at != UINT32_MAX)
            *value_at(cells, at, process, step) += (double)profile->samples.values[0][row];
    }
    /* Snapshots count a second each: docs/levels.md. */
    for (size_t i = 0; i < cells->sites; i++)
        for (size_t k = 0; k < area; k++)
            if (cells->covered[k] > 0)
                cells->values[i * area + k] /= cells->covered[k];
}

/* ---- restarts ---- */

static bool restarts(const struct cells *cells, size_t process, size_t before, size_t step)
{
    double total = 0;
    size_t large = 0, fell = 0;
    for (size_t i = 0; i < cells->sites; i++)
        total += *value_at(cells, i, process, before);
    for (size_t i = 0; i < cells->sites; i++) {
        double old = *value_at(cells, i, process, before);
        if (old <= LARGE * total)
            continue;
        large++;
        fell += *value_at(cells, i, process, step) < RESTART_FALL * old;
    }
    /* With one site only, a cache that is emptied can't be told from a restart. */
    return large >= 2 && (double)fell >= RESTART_SITES * (double)large;
}

static void find_restarts(struct cells *cells)
{
    uint32_t block = 0;
    for (size_t process = 0; process < cells->processes; process++) {
        size_t before = SIZE_MAX, earlier = SIZE_MAX;
        block++;
        for (size_t step = 0; step < cells->steps; step++) {
            if (*covered_at(cells, process, step) <= 0)
                continue;
            if (before != SIZE_MAX && restarts(cells, process, before, step)) {
                block++;
            } else if (earlier != SIZE_MAX && restarts(cells, process, earlier, step)) {
                /* The restart is within the step between, which is of neither. */
                *covered_at(cells, process, before) = 0;
                block++;
            }
            earlier = before;
            before = step;
            cells->block[process * cells->steps + step] = block;
        }
    }
}

/* ---- judging ---- */

static size_t points_of(const struct cells *cells, size_t site, double step_hours,
                        struct trend_point *points)
{
    size_t count = 0;
    for (size_t process = 0; process < cells->processes; process++)
        for (size_t step = 0; step < cells->steps; step++)
            if (*covered_at(cells, process, step) > 0)
                points[count++] =
                    (struct trend_point){.time = (double)step * step_hours,
                                         .value = *value_at(cells, site, process, step),
                                         .block = cells->block[process * cells->steps + step]};
    return count;
}

/* On average over processes, of the last step of each. */
static void measure(const struct cells *cells, size_t site, struct leak *leak)
{
    double held = 0, all = 0;
    for (size_t process = 0; process < cells->processes; process++) {
        size_t step = cells->steps;
        while (step > 0 && *covered_at(cells, process, step - 1) <= 0)
            step--;
        if (!step)
            continue;
        held += *value_at(cells, site, process, step - 1);
        for (size_t i = 0; i < cells->sites; i++)
            all += *value_at(cells, i, process, step - 1);
    }
    leak->site_bytes = held / (double)cells->processes;
    leak->process_bytes = all / (double)cells->processes;
    leak->share = all > 0 ? held / all : 0;
}

static void add_leak(const struct leak *leak, struct leak *leaks, size_t *count)
{
    size_t at = *count < LEAKS_MAX ? (*count)++ : LEAKS_MAX;
    for (; at && leaks[at - 1].trend.slope < leak->trend.slope; at--)
        if (at < LEAKS_MAX)
            leaks[at] = leaks[at - 1];
    if (at < LEAKS_MAX)
        leaks[at] = *leak;
}

size_t leaks_find(const struct profile *profile, const struct naming *naming, int64_t step_ns,
                  double least_rate, struct leak leaks[static LEAKS_MAX])
{
    struct cells cells = {0};
    unsigned covered = covered_type(profile);
    size_t found = 0;
    if (covered >= PROFILE_TYPES_MAX || !profile->samples.time_ns)
        return 0;
    _cleanup_free_ uint32_t *site = sites_of_nodes(profile, naming);
    choose_sites(profile, naming, site, &cells);
    choose_processes(profile, covered, &cells);
    choose_steps(profile, (uint64_t)step_ns, &cells);
    fill(profile, naming, site, covered, (uint64_t)step_ns, &cells);
    find_restarts(&cells);
    _cleanup_free_ struct trend_point *points =
        memory_alloc((cells.processes * cells.steps + 1) * sizeof(*points));
    for (size_t i = 0; i < cells.sites; i++) {
        struct leak leak = {.site = LEAK_WHOLE, .site_length = strlen(LEAK_WHOLE)};
        size_t count = points_of(&cells, i, (double)step_ns / HOUR_NS, points);
        if (!trend_of(points, count, &leak.trend) || leak.trend.span < LEAST_SPAN_HOURS ||
            !trend_climbs(&leak.trend, least_rate))
            continue;
        if (cells.entries[i] != NAMING_NONE) {
            leak.site = naming->entries[cells.entries[i]].name;
            leak.site_length = naming->entries[cells.entries[i]].length;
        }
        measure(&cells, i, &leak);
        add_leak(&leak, leaks, &found);
    }
    cells_release(&cells);
    return found;
}
