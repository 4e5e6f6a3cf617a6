// SPDX-License-Identifier: Apache-2.0
// Variance over time: see compare_parts.h. A side's windows are projected on the slowest cosines
// (Lazarus, Lewis, Stock and Watson 2018). Load that comes in bursts is large exactly there, so the
// mean square of these coefficients holds whatever the correlation of neighbouring windows is, as
// long as it doesn't reach over a good part of the recording.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "compare/compare_parts.h"

/* How many cosines. More give a steadier estimate, fewer one that holds for longer bursts; 0.4 *
 * windows^(2/3) is what the paper arrives at. */
static size_t cosine_count(uint32_t windows)
{
    size_t count = (size_t)llround(0.4 * cbrt((double)windows * windows));
    return MIN(MAX(count, (size_t)COSINES_LEAST), (size_t)COSINES_MAX);
}

void cosines_init(struct cosines *cosines, uint32_t windows)
{
    cosines->windows = windows;
    cosines->count = cosine_count(windows);
    cosines->table = memory_alloc(cosines->count * windows * sizeof(double));
    for (size_t k = 0; k < cosines->count; k++)
        for (uint32_t i = 0; i < windows; i++)
            cosines->table[k * windows + i] =
                M_SQRT2 * cos(M_PI * (double)(k + 1) * (i + 0.5) / windows);
}

void cosines_release(struct cosines *cosines)
{
    free(cosines->table);
    *cosines = (struct cosines){0};
}

double cosines_variance(const struct cosines *cosines, const double *residual,
                        double coefficients[static COSINES_MAX])
{
    double squares = 0;
    for (size_t k = 0; k < cosines->count; k++) {
        const double *row = cosines->table + k * cosines->windows;
        double sum = 0;
        for (uint32_t i = 0; i < cosines->windows; i++)
            sum += row[i] * residual[i];
        coefficients[k] = sum;
        squares += sum * sum;
    }
    return squares / (double)cosines->count;
}
