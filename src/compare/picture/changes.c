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
        if (total->base == 0 && total->new_value == 0)
            continue;
        enum compare_verdict verdict =
            total->verdict == COMPARE_TOO_FEW ? COMPARE_NOISE : total->verdict;
        enum compare_cause cause = compare_cause(causes, comparison, i, true);
        changes[count++] = (struct flame_change){
            .name = function->name,
            .length = function->length,
            .verdict = compare_verdict_names[verdict],
            .cause = cause == COMPARE_CAUSE_UNKNOWN ? NULL : compare_cause_names[cause],
            .certain = verdict == COMPARE_GREW || verdict == COMPARE_SHRANK,
            .low = total->low * exposure,
            .high = total->high * exposure,
            .more_seconds = verdict == COMPARE_UNDECIDED ? total->more_seconds : 0,
        };
    }
    *ret_count = count;
    return changes;
}
