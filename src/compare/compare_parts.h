/* SPDX-License-Identifier: Apache-2.0 */
/* Between compare.c and the files that estimate variances. */
#pragma once

#include "compare/compare.h"
#include "compare/moderate.h"

/* Sets the exposures, method and overdispersion, and of every row and the whole all that isn't a
 * test's result: values, variances, degrees of freedom, counts, shares. */
void variance_estimate(const struct compare_table *table, struct comparison *comparison);

/* ---- over time (variance_windows.c) ---- */

#define COSINES_LEAST 4
#define COSINES_MAX 32

struct cosines {
    double *table; /* by cosine, then by window */
    size_t count;
    uint32_t windows;
};

void cosines_init(struct cosines *cosines, uint32_t windows);
void cosines_release(struct cosines *cosines);

/* The variance of the sum of a side's windows from their residuals, which add up to zero. It has as
 * many degrees of freedom as there are cosines; `coefficients` are what it was made of. */
double cosines_variance(const struct cosines *cosines, const double *residual,
                        double coefficients[static COSINES_MAX]);

/* ---- between clusters (variance_clusters.c) ---- */

struct cluster_counts {
    uint32_t side[COMPARE_SIDES], both; /* clusters with replicates */
    bool paired;                        /* each has replicates on both sides */
    double df;                          /* of the variance between them; 0: it can't be known */
};

struct cluster_counts clusters_count(const struct compare_table *table);

/*
 * The variance of the change from the residuals of clusters, whose sums are zero on each side.
 * `influence` has, by side and cluster, what each contributes to the side's rate; `observations`
 * gets what the variance was made of, for moderation_add.
 */
double clusters_variance(const struct cluster_counts *counts, uint32_t clusters,
                         double *const influence[static COMPARE_SIDES],
                         double observations[static MODERATE_LENGTH_MAX]);
size_t clusters_observations(const struct cluster_counts *counts, uint32_t clusters);
