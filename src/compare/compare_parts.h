/* SPDX-License-Identifier: Apache-2.0 */
/* Between compare.c and variance.c. */
#pragma once

#include "compare/compare.h"

/* Sets the exposures, method and overdispersion, and of every row and the whole all that isn't a
 * test's result: values, variances, degrees of freedom, counts, shares. */
void variance_estimate(const struct compare_table *table, struct comparison *comparison);
