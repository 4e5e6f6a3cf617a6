// SPDX-License-Identifier: Apache-2.0
// Variances corrected by each other: see moderate.h.

#include "compare/moderate.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "compare/numbers.h"

#define EXCESS_GAIN 0.95       /* of the scatter that is left, for an excess to be believed */
#define OWN_DF_LEAST 4         /* for a function's own estimate to hold against the others' */
#define CORRELATION_DF_LEAST 3 /* to see which functions rise and fall together */
#define FUNCTIONS_LEAST 8      /* below that the scatter between functions can't be measured */

void moderation_init(struct moderation *moderation, size_t length, double own_df)
{
    *moderation =
        (struct moderation){.typical = 1, .length = MIN(length, (size_t)MODERATE_LENGTH_MAX)};
    moderation->own_df = own_df;
}

void moderation_release(struct moderation *moderation)
{
    free(moderation->entries);
    moderation->entries = NULL;
}

void moderation_add(struct moderation *moderation, double ratio, double samples,
                    const double *observations)
{
    size_t length = moderation->length;
    double norm = 0;
    for (size_t i = 0; i < length; i++)
        norm += observations[i] * observations[i];
    if (!(ratio > 0) || !(norm > 0) || !isfinite(ratio) || !isfinite(norm))
        return;
    array_reserve(moderation->entries, moderation->capacity, moderation->count + 1);
    moderation->entries[moderation->count++] = (struct moderation_entry){log(ratio), samples};
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < length; k++)
            moderation->products[i * length + k] += observations[i] * observations[k] / norm;
}

/* Mean and variance of the logarithms of the ratios, each relative to 1 + excess * samples. */
static double scatter_around(const struct moderation *moderation, double excess, double *ret_mean)
{
    double n = (double)moderation->count, sum = 0, squares = 0;
    for (size_t i = 0; i < moderation->count; i++) {
        const struct moderation_entry *entry = &moderation->entries[i];
        double value = entry->log_ratio - log1p(excess * entry->samples);
        sum += value;
        squares += value * value;
    }
    *ret_mean = sum / n;
    return (squares - sum * sum / n) / (n - 1);
}

/* The excess that leaves the least scatter; 0 unless another one explains clearly more. */
static double find_excess(const struct moderation *moderation)
{
    double mean, most = 0, best = 0, least = scatter_around(moderation, 0, &mean) * EXCESS_GAIN;
    for (size_t i = 0; i < moderation->count; i++)
        most = fmax(most, moderation->entries[i].samples);
    for (double excess = 1 / most; excess < 1e4; excess *= 1.5) {
        double scatter = scatter_around(moderation, excess, &mean);
        if (scatter < least) {
            least = scatter;
            best = excess;
        }
    }
    return best;
}

/* How many independent functions would average as well as these do: the mean squared correlation
 * between two of them says how much they repeat each other. Unrelated ones have 1 / df by chance.
 */
static double independent_count(const struct moderation *moderation)
{
    double n = (double)moderation->count, sum = 0, chance = 1 / moderation->own_df;
    for (size_t i = 0; i < moderation->length * moderation->length; i++)
        sum += moderation->products[i] * moderation->products[i];
    double squared = (sum - n) / (n * (n - 1));
    if (moderation->own_df > 1)
        squared = (squared - chance) / (1 - chance);
    squared = fmin(fmax(squared, 0), 1);
    return n / (1 + (n - 1) * squared);
}

double moderation_independence(const struct moderation *moderation)
{
    return moderation->count > 1 ? independent_count(moderation) / (double)moderation->count : 1;
}

void moderation_fit(struct moderation *moderation, double independence)
{
    double half = moderation->own_df / 2, mean;
    moderation->typical = 1;
    moderation->df = moderation->excess = 0;
    if (moderation->count < FUNCTIONS_LEAST || !(moderation->own_df > 0))
        return;
    moderation->excess = find_excess(moderation);
    double scatter = scatter_around(moderation, moderation->excess, &mean);
    /* The mean and variance of the logarithm of a chi-square divided by its degrees of freedom. */
    mean -= numbers_digamma(half) - log(half);
    double more = scatter - numbers_trigamma(half);
    bool measurable = moderation->own_df >= CORRELATION_DF_LEAST || !(independence > 0);
    double most = moderation->own_df * (measurable ? independent_count(moderation)
                                                   : independence * (double)moderation->count);
    if (more > 0) {
        double df = 2 * numbers_trigamma_inverse(more);
        moderation->typical = exp(mean + numbers_digamma(df / 2) - log(df / 2));
        moderation->df = fmin(df, most);
    } else {
        moderation->typical = exp(mean);
        moderation->df = most;
    }
}

double moderation_ratio(const struct moderation *moderation, double own, double samples,
                        double *ret_df)
{
    double typical = moderation->typical * (1 + moderation->excess * samples);
    *ret_df = moderation->df + moderation->own_df;
    double moderated = (moderation->df * typical + moderation->own_df * own) / *ret_df;
    /* A function that varies more than others do may be one of its kind: believe it, unless it
     * takes no more than chance to look so. */
    return moderation->own_df >= OWN_DF_LEAST ? fmax(moderated, own) : moderated;
}
