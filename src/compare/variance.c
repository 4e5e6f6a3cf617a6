// SPDX-License-Identifier: Apache-2.0
// How far replicates differ from each other: the variance of each function's value per unit of
// exposure. docs/comparison.md has the formulas and why each is there.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "compare/compare_parts.h"
#include "compare/numbers.h"

#define WINDOWS_LEAST 8    /* on each side, to judge by windows */
#define BLOCKS_LEAST 5     /* of windows on each side */
#define BLOCKS_USUAL 12    /* unless load is bursty: few blocks cost power */
#define BURSTY_DF_MAX 12   /* of a side: correlation that was not seen makes windows worth less */
#define PRIOR_DF 4         /* weight of the graph's overdispersion against a function's own */
#define MEDIAN_LEAST 16    /* functions, to estimate an overdispersion from the graph */
#define DISPERSION_ALONE 2 /* where it can't be estimated */

/* One quantity of one function as observed: a value per replicate. */
struct series {
    const struct compare_table *table;
    const struct comparison *comparison;
    const double *exposure;          /* by replicate */
    double *value;                   /* by replicate */
    double *residual[COMPARE_SIDES]; /* by window, room for the coarsest use */
    double *cluster[COMPARE_SIDES];  /* by cluster */
    bool *present[COMPARE_SIDES];    /* cluster has replicates on the side */
    double ratio;                    /* out: variance between clusters over that of the rest */
};

struct spread {
    double variance[COMPARE_SIDES], df[COMPARE_SIDES];
};

/* Variance of a side's mean from the residuals of its blocks. Heavy tails leave fewer degrees of
 * freedom: a variance made of a few bursts is itself uncertain. */
static void block_spread(const double *residual, uint32_t windows, uint32_t length, double exposure,
                         enum compare_side side, struct spread *spread)
{
    double squares = 0, fourths = 0;
    uint32_t count = 0;
    for (uint32_t at = 0; at < windows; at += length, count++) {
        double sum = 0;
        for (uint32_t i = at; i < MIN(at + length, windows); i++)
            sum += residual[i];
        squares += sum * sum;
        fourths += sum * sum * sum * sum;
    }
    double n = count, kurtosis = squares > 0 ? n * fourths / (squares * squares) : 3;
    spread->variance[side] = n > 1 ? n / (n - 1) * squares / (exposure * exposure) : 0;
    spread->df[side] = fmax(fmin(n - 1, 2 * n / fmax(kurtosis - 1, 1)), 1);
}

/* How alike neighbouring blocks are, from -1 to 1: above 0 for load that comes in bursts longer
 * than a block. Corrected for its bias, which is one over the number of blocks. */
static double correlation(const double *const *residual, const uint32_t *windows, uint32_t length,
                          double *ret_count)
{
    double products = 0, squares = 0, count = 0;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        double previous = 0;
        for (uint32_t at = 0; at < windows[side]; at += length) {
            double sum = 0;
            for (uint32_t i = at; i < MIN(at + length, windows[side]); i++)
                sum += residual[side][i];
            products += at ? sum * previous : 0;
            squares += sum * sum;
            count += at ? 1 : 0;
            previous = sum;
        }
    }
    *ret_count = count;
    return squares > 0 ? products / squares + 2 / (count + 2) : 0;
}

static double welch_df(const struct spread *spread)
{
    double sum = spread->variance[0] + spread->variance[1], below = 0;
    for (int side = 0; side < COMPARE_SIDES; side++)
        below += spread->variance[side] * spread->variance[side] / spread->df[side];
    return below > 0 ? sum * sum / below : spread->df[0] + spread->df[1];
}

/* p-values decide which of two estimates is the more careful one. */
static bool is_more_careful(const struct spread *a, const struct spread *b, double change)
{
    double x = a->variance[0] + a->variance[1], y = b->variance[0] + b->variance[1];
    if (change == 0 || !(x > 0) || !(y > 0))
        return x > y;
    return numbers_t_tail(fabs(change) / sqrt(x), welch_df(a)) >
           numbers_t_tail(fabs(change) / sqrt(y), welch_df(b));
}

/* Samples are drawn one by one: no replicate can show less than this. */
static struct spread count_spread(const struct compare_table *table,
                                  const struct comparison *comparison, const double *sums)
{
    const double *exposure = comparison->exposure;
    /* Of samples that come at a steady pace a function gets a binomial number. Without windows
     * nobody knows how steady the pace was. */
    bool steady = comparison->method == COMPARE_BY_WINDOWS ||
                  comparison->options.normalize == COMPARE_PER_TOTAL;
    struct spread spread = {.df = {NUMBERS_NORMAL_DF, NUMBERS_NORMAL_DF}};
    double all = table->value[0] + table->value[1];
    double share = steady ? fmin((sums[0] + sums[1]) / all, 1) : 0;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        double weight = table->samples[side] > 0 ? table->value[side] / table->samples[side] : 0;
        /* By what both sides have together, so that a side with few samples isn't trusted. */
        double rate = (sums[0] + sums[1]) / (exposure[0] + exposure[1]);
        double expected = fmax(rate * exposure[side], sums[side]);
        spread.variance[side] = weight * expected * (1 - share) / (exposure[side] * exposure[side]);
    }
    return spread;
}

/* By windows: the most careful of block lengths up to where blocks are no longer alike, and one
 * more. */
static struct spread window_spread(const struct series *series, const double *exposure,
                                   double change)
{
    const uint32_t *windows = series->table->window_count;
    struct spread best = {0};
    bool last = false, bursty = false;
    double count;
    for (uint32_t length = 1; MIN(windows[0], windows[1]) / length >= BLOCKS_LEAST; length *= 2) {
        struct spread spread;
        for (int side = 0; side < COMPARE_SIDES; side++)
            block_spread(series->residual[side], windows[side], length, exposure[side],
                         (enum compare_side)side, &spread);
        double alike =
            correlation((const double *const *)series->residual, windows, length, &count);
        /* Load that is bursty at all is likely to be so on longer scales, where there are too few
         * blocks to see it: take the correlation's 90% bound. */
        bursty = bursty || alike > 2 / sqrt(count);
        double assumed = bursty ? alike + 1.2816 / sqrt(count) : alike;
        for (int side = 0; side < COMPARE_SIDES; side++) {
            spread.variance[side] *= 1 + 2 * fmin(fmax(assumed, 0), 1);
            spread.df[side] = bursty ? fmin(spread.df[side], BURSTY_DF_MAX) : spread.df[side];
        }
        if (length == 1 || is_more_careful(&spread, &best, change))
            best = spread;
        if (last || (!bursty && MIN(windows[0], windows[1]) / length / 2 < BLOCKS_USUAL))
            break;
        last = alike <= 0.6745 / sqrt(count);
    }
    return best;
}

/* Between clusters: of the side's mean, and of both sides together where all are paired. */
static double cluster_variance(const struct series *series, const double *exposure,
                               double *ret_variance, double *ret_covariance, double *ret_df)
{
    uint32_t clusters = series->table->cluster_count, both = 0, count[COMPARE_SIDES] = {0};
    double squares[COMPARE_SIDES] = {0}, products = 0;
    for (uint32_t i = 0; i < clusters; i++) {
        for (int side = 0; side < COMPARE_SIDES; side++) {
            double influence = series->cluster[side][i] / exposure[side];
            squares[side] += influence * influence;
            count[side] += series->present[side][i];
        }
        both += series->present[0][i] && series->present[1][i];
        products += series->cluster[0][i] / exposure[0] * series->cluster[1][i] / exposure[1];
    }
    *ret_covariance = 0;
    *ret_df = 0;
    if (both == clusters && both > 1) {
        double correction = (double)both / (both - 1);
        for (int side = 0; side < COMPARE_SIDES; side++)
            ret_variance[side] = squares[side] * correction;
        *ret_covariance = products * correction;
        *ret_df = both - 1;
        return fmax(ret_variance[0] + ret_variance[1] - 2 * *ret_covariance, 0);
    }
    for (int side = 0; side < COMPARE_SIDES; side++) {
        ret_variance[side] = count[side] > 1 ? squares[side] * count[side] / (count[side] - 1) : 0;
        *ret_df += count[side] - 1.0;
    }
    /* A side with one cluster is taken to vary as the other's do. */
    for (int side = 0; side < COMPARE_SIDES; side++)
        if (count[side] == 1 && count[!side] > 1)
            ret_variance[side] = ret_variance[!side] * count[!side];
    return ret_variance[0] + ret_variance[1];
}

static void gather(const struct series *series, const double *rates)
{
    const struct compare_table *table = series->table;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        memset(series->residual[side], 0, table->window_count[side] * sizeof(double));
        memset(series->cluster[side], 0, table->cluster_count * sizeof(double));
    }
    for (size_t i = 0; i < table->replicate_count; i++) {
        const struct compare_replicate *replicate = &table->replicates[i];
        double residual = series->value[i] - rates[replicate->side] * series->exposure[i];
        series->residual[replicate->side][replicate->window] += residual;
        series->cluster[replicate->side][replicate->cluster] += residual;
    }
}

static void scale_measure(struct compare_measure *measure, double factor, double df)
{
    for (int side = 0; side < COMPARE_SIDES; side++)
        measure->variance[side] *= factor;
    measure->df = fmin(measure->df, df);
}

/* Everything but what the whole graph says about overdispersion. */
static void estimate(struct series *series, struct compare_measure *measure)
{
    const struct compare_table *table = series->table;
    const double *exposure = series->comparison->exposure;
    double sums[COMPARE_SIDES] = {0}, rates[COMPARE_SIDES];
    for (size_t i = 0; i < table->replicate_count; i++)
        sums[table->replicates[i].side] += series->value[i];
    for (int side = 0; side < COMPARE_SIDES; side++) {
        rates[side] = sums[side] / exposure[side];
        double weight = table->samples[side] > 0 ? table->value[side] / table->samples[side] : 0;
        measure->counts[side] = weight > 0 ? fmax(sums[side] / weight, 0) : 0;
    }
    measure->base = rates[COMPARE_BASE];
    measure->new_value = rates[COMPARE_NEW];
    measure->change = rates[COMPARE_NEW] - rates[COMPARE_BASE];
    gather(series, rates);
    struct spread spread = count_spread(table, series->comparison, sums);
    if (series->comparison->method == COMPARE_BY_WINDOWS) {
        struct spread windows = window_spread(series, exposure, measure->change);
        if (is_more_careful(&windows, &spread, measure->change))
            spread = windows;
    }
    memcpy(measure->variance, spread.variance, sizeof(spread.variance));
    measure->df = welch_df(&spread);
    double between[COMPARE_SIDES], covariance, df;
    double variance = cluster_variance(series, exposure, between, &covariance, &df);
    double rest = spread.variance[0] + spread.variance[1];
    series->ratio = df > 0 && rest > 0 ? variance / rest : 0;
}

struct graph {
    double *ratio;     /* by measure: row * 2 + (0 self, 1 total) */
    double cluster_df; /* 0: a single cluster on each side */
};

static double cluster_df(const struct compare_table *table, const struct series *series)
{
    uint32_t both = 0, count[COMPARE_SIDES] = {0};
    for (uint32_t i = 0; i < table->cluster_count; i++) {
        for (int side = 0; side < COMPARE_SIDES; side++)
            count[side] += series->present[side][i];
        both += series->present[0][i] && series->present[1][i];
    }
    if (both == table->cluster_count)
        return both - 1.0;
    return count[0] + count[1] - 2.0;
}

/* Several clusters: their spread relative to the rest, shrunk towards the graph's median. */
static void apply_clusters(struct comparison *comparison, const struct graph *graph, double whole)
{
    size_t count = 0;
    _cleanup_free_ double *ratios = memory_alloc((comparison->count + 1) * sizeof(*ratios));
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->rows[i].total.counts[0] + comparison->rows[i].total.counts[1] >= 100)
            ratios[count++] = graph->ratio[2 * i + 1];
    double typical = numbers_median(ratios, count) / numbers_chi_square_median(graph->cluster_df);
    comparison->overdispersion = fmax(typical, 1);
    double df = PRIOR_DF + graph->cluster_df;
    for (size_t i = 0; i < comparison->count * 2 + 1; i++) {
        bool is_whole = i == comparison->count * 2;
        struct compare_measure *measure = is_whole ? &comparison->whole
                                          : i % 2  ? &comparison->rows[i / 2].total
                                                   : &comparison->rows[i / 2].self;
        double own = is_whole ? whole : graph->ratio[i];
        double factor = (PRIOR_DF * comparison->overdispersion + graph->cluster_df * own) / df;
        scale_measure(measure, fmax(factor, 1), df);
    }
    if (comparison->method == COMPARE_BY_COUNTS)
        comparison->method = COMPARE_BY_CLUSTERS;
}

/* A single replicate on each side: most functions of a graph don't change, so the median of their
 * squared standardised changes, as shares, shows how much more than counts varies. */
static void apply_counts(const struct compare_table *table, struct comparison *comparison)
{
    size_t count = 0;
    _cleanup_free_ double *squares = memory_alloc((comparison->count + 1) * sizeof(*squares));
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compare_measure *self = &comparison->rows[i].self;
        double x = self->counts[0], y = self->counts[1];
        if (x + y < 20)
            continue;
        double share = table->samples[1] / (table->samples[0] + table->samples[1]);
        double difference = y - (x + y) * share;
        squares[count++] = difference * difference / ((x + y) * share * (1 - share));
    }
    comparison->overdispersion =
        count < MEDIAN_LEAST ? DISPERSION_ALONE : fmax(numbers_median(squares, count) / 0.4549, 1);
    for (size_t i = 0; i < comparison->count; i++) {
        scale_measure(&comparison->rows[i].self, comparison->overdispersion, NUMBERS_NORMAL_DF);
        scale_measure(&comparison->rows[i].total, comparison->overdispersion, NUMBERS_NORMAL_DF);
    }
    scale_measure(&comparison->whole, comparison->overdispersion, NUMBERS_NORMAL_DF);
}

static double *exposures(const struct compare_table *table, struct comparison *comparison)
{
    double *exposure = memory_zalloc(table->replicate_count + 1, sizeof(*exposure));
    uint32_t replicates[COMPARE_SIDES] = {0};
    for (size_t i = 0; i < table->replicate_count; i++)
        replicates[table->replicates[i].side]++;
    for (size_t i = 0; i < table->replicate_count; i++) {
        const struct compare_replicate *replicate = &table->replicates[i];
        double seconds = table->seconds[replicate->side], part = 1.0 / replicates[replicate->side];
        if (seconds > 0)
            part = replicate->seconds / seconds;
        switch (comparison->options.normalize) {
        case COMPARE_PER_SECOND:
            exposure[i] = replicate->seconds;
            break;
        case COMPARE_PER_TOTAL:
            exposure[i] = replicate->value;
            break;
        case COMPARE_PER_REQUEST:
            exposure[i] = replicate->requests;
            break;
        default:
            exposure[i] = part;
        }
        comparison->exposure[replicate->side] += exposure[i];
    }
    return exposure;
}

static void estimate_rows(struct series *series, struct comparison *comparison, struct graph *graph)
{
    const struct compare_table *table = series->table;
    for (size_t i = 0; i < comparison->count; i++) {
        size_t from = table->functions[i].first_cell, to = table->functions[i + 1].first_cell;
        struct compare_row *row = &comparison->rows[i];
        for (int total = 0; total < 2; total++) {
            for (size_t k = from; k < to; k++)
                series->value[table->cells[k].replicate] =
                    total ? table->cells[k].total : table->cells[k].self;
            estimate(series, total ? &row->total : &row->self);
            graph->ratio[2 * i + (size_t)total] = series->ratio;
        }
        for (size_t k = from; k < to; k++)
            series->value[table->cells[k].replicate] = 0;
        double sums[] = {row->total.base * comparison->exposure[0],
                         row->total.new_value * comparison->exposure[1]};
        for (int side = 0; side < COMPARE_SIDES; side++)
            row->share[side] = sums[side] / table->value[side];
    }
}

void variance_estimate(const struct compare_table *table, struct comparison *comparison)
{
    _cleanup_free_ double *exposure = exposures(table, comparison);
    _cleanup_free_ double *value = memory_zalloc(table->replicate_count + 1, sizeof(*value));
    _cleanup_free_ double *ratio = memory_zalloc(comparison->count * 2 + 1, sizeof(*ratio));
    struct series series = {
        .table = table, .comparison = comparison, .exposure = exposure, .value = value};
    struct graph graph = {.ratio = ratio};
    for (int side = 0; side < COMPARE_SIDES; side++) {
        series.residual[side] = memory_zalloc(table->window_count[side], sizeof(double));
        series.cluster[side] = memory_zalloc(table->cluster_count, sizeof(double));
        series.present[side] = memory_zalloc(table->cluster_count, sizeof(bool));
    }
    for (size_t i = 0; i < table->replicate_count; i++)
        series.present[table->replicates[i].side][table->replicates[i].cluster] = true;
    if (MIN(table->window_count[0], table->window_count[1]) >= WINDOWS_LEAST)
        comparison->method = COMPARE_BY_WINDOWS;
    graph.cluster_df = cluster_df(table, &series);
    estimate_rows(&series, comparison, &graph);
    for (size_t i = 0; i < table->replicate_count; i++)
        value[i] = table->replicates[i].value;
    estimate(&series, &comparison->whole);
    if (graph.cluster_df > 0)
        apply_clusters(comparison, &graph, series.ratio);
    else if (comparison->method == COMPARE_BY_COUNTS)
        apply_counts(table, comparison);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        free(series.residual[side]);
        free(series.cluster[side]);
        free(series.present[side]);
    }
    for (size_t i = 0; i < comparison->count; i++)
        for (int side = 0; side < COMPARE_SIDES; side++) {
            comparison->rows[i].self.counts[side] /= comparison->overdispersion;
            comparison->rows[i].total.counts[side] /= comparison->overdispersion;
        }
}
