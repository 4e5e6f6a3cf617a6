// SPDX-License-Identifier: Apache-2.0
// Verdicts: see compare.h. Variances come from variance.c; here they become intervals, p-values
// and decisions over all functions.

#include "compare/compare.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "compare/compare_parts.h"
#include "compare/numbers.h"

const char *const compare_normalize_names[] = {"duration", "total", "requests", "none"};
const char *const compare_verdict_names[] = {"noise", "undecided", "grew", "shrank", "too few"};
const char *const compare_method_names[] = {"counts", "windows", "hosts"};

#define SAMPLES_LEAST 10 /* of both sides together, for a verdict */
#define EXACT_BELOW 400  /* samples: from here on the normal approximation of counts is fine */

void comparison_release(struct comparison *comparison)
{
    free(comparison->rows);
    *comparison = (struct comparison){0};
}

static double contrast_variance(const struct compare_measure *measure, double factor)
{
    const double *variance = measure->variance;
    if (!(variance[COMPARE_BASE] >= 0 && variance[COMPARE_NEW] >= 0))
        return NAN; /* of negative values, which are no counts */
    return variance[COMPARE_NEW] + factor * factor * variance[COMPARE_BASE];
}

/* P(T > t) where a variance of zero means that the replicates never differed. Nothing is certain of
 * values without a variance. */
static double tail(double difference, double variance, double df)
{
    if (!(variance >= 0))
        return 1;
    if (variance > 0)
        return numbers_t_tail(difference / sqrt(variance), df);
    return difference > 0 ? 0 : difference < 0 ? 1 : 0.5;
}

/* The share of both sides' samples that the new side has if new = factor * base. */
static double expected_part(const struct comparison *comparison, double factor)
{
    double base = comparison->exposure[COMPARE_BASE];
    double other = factor * comparison->exposure[COMPARE_NEW];
    return other / (base + other);
}

double compare_exceeds(const struct comparison *comparison, const struct compare_measure *measure,
                       double factor)
{
    double p = tail(measure->new_value - factor * measure->base, contrast_variance(measure, factor),
                    measure->df);
    double count = measure->counts[COMPARE_BASE] + measure->counts[COMPARE_NEW];
    if (comparison->counted && count > 0 && count < EXACT_BELOW)
        p = fmax(p, numbers_binomial_upper(measure->counts[COMPARE_NEW], count,
                                           expected_part(comparison, factor)));
    return p;
}

double compare_stays_below(const struct comparison *comparison,
                           const struct compare_measure *measure, double factor)
{
    double p = tail(factor * measure->base - measure->new_value, contrast_variance(measure, factor),
                    measure->df);
    double count = measure->counts[COMPARE_BASE] + measure->counts[COMPARE_NEW];
    if (comparison->counted && count > 0 && count < EXACT_BELOW)
        p = fmax(p, numbers_binomial_lower(measure->counts[COMPARE_NEW], count,
                                           expected_part(comparison, factor)));
    return p;
}

double compare_above(const struct compare_measure *measure, enum compare_side side, double limit)
{
    double value = side == COMPARE_NEW ? measure->new_value : measure->base;
    return tail(value - limit, measure->variance[side], measure->df);
}

double compare_below(const struct compare_measure *measure, enum compare_side side, double limit)
{
    double value = side == COMPARE_NEW ? measure->new_value : measure->base;
    return tail(limit - value, measure->variance[side], measure->df);
}

static void set_p(const struct comparison *comparison, struct compare_measure *measure)
{
    double p = 2 * fmin(compare_exceeds(comparison, measure, 1),
                        compare_stays_below(comparison, measure, 1));
    measure->p = fmin(p, 1);
    measure->adjusted = 1;
}

/* The interval of new / base - 1: Fieller's, the factors that a test with this t doesn't reject. It
 * is unbounded where the base can't be told from zero: false. */
static bool growth_interval(const struct compare_measure *measure, double t, double *ret_low,
                            double *ret_high)
{
    double base = measure->base, now = measure->new_value, square = t * t;
    double a = base * base - square * measure->variance[COMPARE_BASE];
    double b = base * now;
    double c = now * now - square * measure->variance[COMPARE_NEW];
    double root = b * b - a * c;
    bool bounded = a > 0 && root >= 0;
    *ret_low = bounded ? fmax((b - sqrt(root)) / a - 1, -1) : -1;
    *ret_high = bounded ? (b + sqrt(root)) / a - 1 : INFINITY;
    return bounded;
}

static void set_growth_interval(struct compare_measure *measure, double t)
{
    double base = measure->base, now = measure->new_value;
    measure->growth = base > 0 ? now / base - 1 : now > 0 ? INFINITY : 0;
    /* Unbounded above; what is certain is that it grew from nearly nothing. */
    if (!growth_interval(measure, t, &measure->growth_low, &measure->growth_high) &&
        measure->low > 0)
        measure->growth_low = 0;
}

void compare_growth_interval(const struct compare_measure *measure, double alpha, double *ret_low,
                             double *ret_high)
{
    growth_interval(measure, numbers_t_quantile(fmin(alpha, 0.5), measure->df), ret_low, ret_high);
}

/* The interval at a level. Where the exact test of counts is more careful than the variance, the
 * interval is widened until it agrees with the test. */
static void set_interval(struct compare_measure *measure, double alpha)
{
    double error = sqrt(contrast_variance(measure, 1));
    double t = numbers_t_quantile(alpha / 2, measure->df);
    if (measure->p > 0 && measure->p < 1 && measure->change != 0) {
        double needed = fabs(measure->change) / numbers_t_quantile(measure->p / 2, measure->df);
        if (needed > error && error > 0) {
            double scale = needed * needed / (error * error);
            measure->variance[0] *= scale;
            measure->variance[1] *= scale;
        }
        error = fmax(error, needed);
    }
    bool known = isfinite(error);
    measure->low = known ? measure->change - t * error : -INFINITY;
    measure->high = known ? measure->change + t * error : INFINITY;
    set_growth_interval(measure, t);
}

/* Time on each side after which a change of this size would be found four times out of five. */
static double more_seconds(const struct compare_measure *measure, double alpha, double seconds)
{
    double error = sqrt(contrast_variance(measure, 1));
    double needed = (numbers_t_quantile(alpha / 2, measure->df) + 0.8416) * error;
    double factor = needed / fabs(measure->change);
    return fmax((factor * factor - 1) * seconds, 0);
}

static void decide(const struct compare_table *table, const struct comparison *comparison,
                   struct compare_measure *measure)
{
    double rate = comparison->options.false_discovery_rate;
    double alpha = 1 - comparison->level;
    set_interval(measure, alpha);
    if (!measure->judged) {
        measure->verdict = COMPARE_TOO_FEW;
        return;
    }
    measure->verdict = COMPARE_NOISE;
    if (measure->adjusted <= rate)
        measure->verdict = measure->change > 0 ? COMPARE_GREW : COMPARE_SHRANK;
    else if (measure->p <= rate)
        measure->verdict = COMPARE_UNDECIDED;
    double seconds = fmax(table->seconds[COMPARE_BASE], table->seconds[COMPARE_NEW]);
    if (measure->verdict == COMPARE_UNDECIDED && !table->level)
        measure->more_seconds = more_seconds(measure, alpha, seconds);
}

/* Self and total of a function that calls nothing are one hypothesis, not two. */
static bool is_leaf(const struct compare_row *row)
{
    return row->self.base == row->total.base && row->self.new_value == row->total.new_value;
}

static void choose_judged(const struct compare_table *table, struct comparison *comparison)
{
    double least = comparison->options.min_share;
    for (size_t i = 0; i < comparison->count; i++) {
        struct compare_row *row = &comparison->rows[i];
        struct compare_measure *measures[] = {&row->self, &row->total};
        for (int k = 0; k < 2; k++) {
            struct compare_measure *measure = measures[k];
            double samples = measure->counts[0] + measure->counts[1];
            if (comparison->method == COMPARE_BY_COUNTS)
                samples *= comparison->overdispersion;
            /* Chosen by what both sides have together: that says nothing about the difference, so
             * choosing by it doesn't bias the verdicts. */
            double share = (measure->base * comparison->exposure[COMPARE_BASE] +
                            measure->new_value * comparison->exposure[COMPARE_NEW]) /
                           (table->value[COMPARE_BASE] + table->value[COMPARE_NEW]);
            measure->judged = !row->function->coarse && samples >= SAMPLES_LEAST && share >= least;
        }
    }
}

static void judge(const struct compare_table *table, struct comparison *comparison)
{
    size_t most = comparison->count * 2, count = 0;
    _cleanup_free_ struct compare_measure **judged = memory_alloc((most + 1) * sizeof(*judged));
    _cleanup_free_ double *p = memory_alloc((most + 1) * sizeof(*p));
    _cleanup_free_ double *adjusted = memory_alloc((most + 1) * sizeof(*adjusted));
    for (size_t i = 0; i < comparison->count; i++) {
        struct compare_row *row = &comparison->rows[i];
        set_p(comparison, &row->self);
        set_p(comparison, &row->total);
        if (row->total.judged)
            judged[count++] = &row->total;
        if (row->self.judged && !is_leaf(row))
            judged[count++] = &row->self;
    }
    for (size_t i = 0; i < count; i++)
        p[i] = judged[i]->p;
    double rate = comparison->options.false_discovery_rate;
    comparison->judged = count;
    comparison->found = numbers_false_discovery(p, count, rate, adjusted);
    for (size_t i = 0; i < count; i++)
        judged[i]->adjusted = adjusted[i];
    /* Intervals at the level of the last discovery exclude zero for the discoveries alone. */
    comparison->level =
        1 - rate * (double)MAX(comparison->found, (size_t)1) / (double)MAX(count, (size_t)1);
    for (size_t i = 0; i < comparison->count; i++) {
        struct compare_row *row = &comparison->rows[i];
        if (is_leaf(row))
            row->self.adjusted = row->total.adjusted;
        decide(table, comparison, &row->self);
        decide(table, comparison, &row->total);
    }
}

static int check(const struct compare_table *table, const struct compare_options *options,
                 struct error *error)
{
    static const char *const sides[] = {"base", "new"};
    if (!(options->false_discovery_rate > 0 && options->false_discovery_rate < 1))
        return error_set(error, -EINVAL, "The false-discovery rate must be between 0 and 1.");
    for (int side = 0; side < COMPARE_SIDES; side++) {
        if (!(table->value[side] > 0) || !isfinite(table->value[side]))
            return error_set(error, -EINVAL,
                             "The %s side has no samples of this type; nothing can be compared.",
                             sides[side]);
        if (options->normalize == COMPARE_PER_SECOND && !(table->seconds[side] > 0))
            return error_set(error, -EINVAL,
                             "The %s side doesn't say which time it covers; normalize by total.",
                             sides[side]);
        if (options->normalize == COMPARE_PER_REQUEST && table->level)
            return error_set(error, -EINVAL,
                             "These values hold at a moment and are not spent on requests; "
                             "normalize by duration or total.");
        if (options->normalize == COMPARE_PER_REQUEST && !(table->requests[side] > 0))
            return error_set(error, -EINVAL,
                             "The number of requests on the %s side is unknown or zero; give it "
                             "with --%s-requests.",
                             sides[side], sides[side]);
    }
    return 0;
}

int compare(const struct compare_table *table, const struct compare_options *options,
            struct comparison *ret_comparison, struct error *error)
{
    int r = check(table, options, error);
    if (r < 0)
        return r;
    struct comparison comparison = {
        .options = *options, .count = table->function_count, .overdispersion = 1};
    comparison.rows = memory_zalloc(table->function_count + 1, sizeof(*comparison.rows));
    for (size_t i = 0; i < table->function_count; i++)
        comparison.rows[i].function = &table->functions[i];
    variance_estimate(table, &comparison);
    choose_judged(table, &comparison);
    judge(table, &comparison);
    comparison.whole.judged = true;
    set_p(&comparison, &comparison.whole);
    comparison.whole.adjusted = comparison.whole.p;
    decide(table, &comparison, &comparison.whole);
    *ret_comparison = comparison;
    return 0;
}
