// SPDX-License-Identifier: Apache-2.0
// More calls or slower ones: see cause.h.

#include "compare/cause.h"

#include <stdlib.h>

#include "base/memory.h"

const char *const compare_cause_names[] = {"unknown", "requests", "cost per request"};

/* Requests per second, or their number where values are not divided by anything. */
static double rate(const struct compare_table *table, enum compare_normalize normalize,
                   enum compare_side side)
{
    return normalize == COMPARE_RAW ? table->requests[side]
                                    : table->requests[side] / table->seconds[side];
}

int compare_causes_find(const struct compare_table *table, const struct compare_options *options,
                        struct compare_causes *ret_causes, struct error *error)
{
    _cleanup_comparison_ struct comparison comparison = {0};
    struct compare_options per_request = *options;
    *ret_causes = (struct compare_causes){0};
    bool flow = options->normalize == COMPARE_RAW ||
                (options->normalize == COMPARE_PER_SECOND && table->seconds[COMPARE_BASE] > 0 &&
                 table->seconds[COMPARE_NEW] > 0);
    if (!flow || table->level || !(table->requests[COMPARE_BASE] > 0) ||
        !(table->requests[COMPARE_NEW] > 0))
        return 0;
    per_request.normalize = COMPARE_PER_REQUEST;
    int r = compare(table, &per_request, &comparison, error);
    if (r < 0)
        return r;
    uint8_t *verdicts = memory_alloc(2 * comparison.count + 1);
    for (size_t i = 0; i < comparison.count; i++) {
        verdicts[2 * i] = (uint8_t)comparison.rows[i].self.verdict;
        verdicts[2 * i + 1] = (uint8_t)comparison.rows[i].total.verdict;
    }
    double before = rate(table, options->normalize, COMPARE_BASE);
    double after = rate(table, options->normalize, COMPARE_NEW);
    *ret_causes = (struct compare_causes){verdicts, (after > before) - (after < before)};
    return 0;
}

void compare_causes_release(struct compare_causes *causes)
{
    free(causes->verdicts);
    *causes = (struct compare_causes){0};
}

enum compare_cause compare_cause(const struct compare_causes *causes,
                                 const struct comparison *comparison, size_t row, bool total)
{
    const struct compare_row *of = &comparison->rows[row];
    enum compare_verdict verdict = total ? of->total.verdict : of->self.verdict;
    if (verdict != COMPARE_GREW && verdict != COMPARE_SHRANK)
        return COMPARE_CAUSE_UNKNOWN;
    if (comparison->options.normalize == COMPARE_PER_REQUEST)
        return COMPARE_CAUSE_COST;
    if (!causes->verdicts)
        return COMPARE_CAUSE_UNKNOWN;
    enum compare_verdict cost = (enum compare_verdict)causes->verdicts[2 * row + total];
    int direction = verdict == COMPARE_GREW ? 1 : -1;
    if (cost == verdict)
        return COMPARE_CAUSE_COST;
    bool other = cost == COMPARE_NOISE || cost == COMPARE_GREW || cost == COMPARE_SHRANK;
    return other && causes->direction == direction ? COMPARE_CAUSE_REQUESTS : COMPARE_CAUSE_UNKNOWN;
}
