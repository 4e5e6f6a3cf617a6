// SPDX-License-Identifier: Apache-2.0
// Variance between hosts or files: see compare_parts.h.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "compare/compare_parts.h"

struct cluster_counts clusters_count(const struct compare_table *table)
{
    struct cluster_counts counts = {0};
    _cleanup_free_ bool *present = memory_zalloc((size_t)table->cluster_count * 2, sizeof(bool));
    for (size_t i = 0; i < table->replicate_count; i++)
        present[table->replicates[i].cluster * 2 + table->replicates[i].side] = true;
    for (uint32_t i = 0; i < table->cluster_count; i++) {
        counts.side[COMPARE_BASE] += present[2 * i];
        counts.side[COMPARE_NEW] += present[2 * i + 1];
        counts.both += present[2 * i] && present[2 * i + 1];
    }
    counts.paired = counts.both == table->cluster_count;
    if (counts.paired)
        counts.df = counts.both - 1.0;
    else if (counts.side[0] && counts.side[1])
        counts.df = counts.side[0] + counts.side[1] - 2.0;
    return counts;
}

size_t clusters_observations(const struct cluster_counts *counts, uint32_t clusters)
{
    size_t length = counts->paired ? clusters : 2 * (size_t)clusters;
    return MIN(length, (size_t)MODERATE_LENGTH_MAX);
}

double clusters_variance(const struct cluster_counts *counts, uint32_t clusters,
                         double *const influence[static COMPARE_SIDES],
                         double observations[static MODERATE_LENGTH_MAX])
{
    double squares[COMPARE_SIDES] = {0}, differences = 0;
    size_t length = clusters_observations(counts, clusters);
    for (uint32_t i = 0; i < clusters; i++) {
        double base = influence[COMPARE_BASE][i], now = influence[COMPARE_NEW][i];
        squares[COMPARE_BASE] += base * base;
        squares[COMPARE_NEW] += now * now;
        differences += (now - base) * (now - base);
        if (counts->paired && i < length)
            observations[i] = now - base;
        for (size_t k = 0; !counts->paired && k < 2; k++)
            if (2 * i + k < length)
                observations[2 * i + k] = k ? now : base;
    }
    /* Differences between hosts that serve both sides cancel out. */
    if (counts->paired)
        return differences * counts->both / (counts->both - 1.0);
    double variance = 0;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        double own = counts->side[side], other = counts->side[!side];
        if (own > 1)
            variance += squares[side] * own / (own - 1);
        else /* a single cluster is taken to vary as the other side's do */
            variance += squares[!side] * other * other / (other - 1);
    }
    return variance;
}
