// SPDX-License-Identifier: Apache-2.0
// From the rows of a comparison to what a picture shows of them: see changes.h.

#include "compare/picture/changes.h"

#include "base/memory.h"

double changes_exposure(const struct compare_table *table, const struct comparison *comparison)
{
    double exposure = comparison->exposure[COMPARE_NEW];
    if (table->level) /* an average over snapshots */
        exposure /= table->seconds[COMPARE_NEW];
    return exposure > 0 ? exposure : 0;
}

static bool has_value(const struct compare_measure *measure)
{
    return measure->base != 0 || measure->new_value != 0;
}

static struct flame_finding finding_of(const struct compare_measure *measure,
                                       enum compare_cause cause, double exposure)
{
    if (!has_value(measure))
        return (struct flame_finding){0};
    enum compare_verdict verdict =
        measure->verdict == COMPARE_TOO_FEW ? COMPARE_NOISE : measure->verdict;
    return (struct flame_finding){
        .verdict = compare_verdict_names[verdict],
        .cause = cause == COMPARE_CAUSE_UNKNOWN ? NULL : compare_cause_names[cause],
        .certain = verdict == COMPARE_GREW || verdict == COMPARE_SHRANK,
        .low = measure->low * exposure,
        .high = measure->high * exposure,
        .more_seconds = verdict == COMPARE_UNDECIDED ? measure->more_seconds : 0,
    };
}

struct flame_change *changes_list(const struct compare_table *table,
                                  const struct comparison *comparison,
                                  const struct compare_causes *causes, size_t *ret_count)
{
    struct flame_change *changes = memory_alloc((comparison->count + 1) * sizeof(*changes));
    double exposure = changes_exposure(table, comparison);
    size_t count = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compare_function *function = comparison->rows[i].function;
        const struct compare_measure *total = &comparison->rows[i].total;
        /* One that was inlined on one side only is judged at its caller. */
        if (!has_value(total))
            continue;
        changes[count++] = (struct flame_change){
            .name = function->name,
            .length = function->length,
            .total = finding_of(total, compare_cause(causes, comparison, i, true), exposure),
            .self = finding_of(&comparison->rows[i].self,
                               compare_cause(causes, comparison, i, false), exposure),
        };
    }
    *ret_count = count;
    return changes;
}
