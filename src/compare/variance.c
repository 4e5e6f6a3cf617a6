// SPDX-License-Identifier: Apache-2.0
// How far replicates differ from each other: the variance of each function's value per unit of
// exposure. docs/comparison.md has the formulas and why each is there.
//
// All variances are multiples of that expected of counts. A multiple is estimated for each function
// from its own windows and clusters, and then corrected by those of the others (moderate.h).

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "compare/compare_parts.h"
#include "compare/numbers.h"

#define WINDOWS_LEAST 8    /* on each side, to judge by windows */
#define MEDIAN_LEAST 16    /* functions, to estimate an overdispersion from the graph */
#define DISPERSION_ALONE 2 /* where it can't be estimated */
#define FIT_LEAST 50       /* samples on a side, for a function to speak for others */

/* One quantity of one function as observed: a value per replicate. */
struct series {
    const struct compare_table *table;
    const struct comparison *comparison;
    struct cosines cosines[COMPARE_SIDES];
    struct cluster_counts clusters;
    const double *exposure;          /* by replicate */
    double *value;                   /* by replicate */
    double *residual[COMPARE_SIDES]; /* by window */
    double *cluster[COMPARE_SIDES];  /* by cluster: influence on the side's rate */
};

/* Estimates of one measure, before the whole graph is taken into account. */
struct estimate {
    struct compare_measure *measure;
    double counted[COMPARE_SIDES]; /* variance expected of counts */
    double floor[COMPARE_SIDES];   /* no estimate is better than this */
    double windows[COMPARE_SIDES]; /* as a multiple of it */
    double between;                /* variance between clusters */
    bool speaks;                   /* for others: a self value with enough samples */
};

struct graph {
    struct estimate *estimates; /* self and total of each row, and the whole */
    size_t count;
    struct moderation *windows; /* by side */
    struct moderation *clusters;
};

/* Samples are drawn one by one: Poisson counts, or at best, where the pace is steady, binomial
 * ones. */
static void set_counted(const struct compare_table *table, const struct comparison *comparison,
                        const double *sums, struct estimate *estimate)
{
    const double *exposure = comparison->exposure;
    double all = table->value[0] + table->value[1];
    double share = fmin((sums[0] + sums[1]) / all, 1);
    bool shares = comparison->options.normalize == COMPARE_PER_TOTAL;
    /* By what both sides have together, so that a side with few samples isn't trusted. */
    double rate = (sums[0] + sums[1]) / (exposure[0] + exposure[1]);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        double weight = table->samples[side] > 0 ? table->value[side] / table->samples[side] : 0;
        double expected = fmax(rate * exposure[side], sums[side]);
        double poisson = weight * expected / (exposure[side] * exposure[side]);
        estimate->counted[side] = shares ? poisson * (1 - share) : poisson;
        bool steady = shares || comparison->method == COMPARE_BY_WINDOWS;
        estimate->floor[side] = steady ? poisson * (1 - share) : poisson;
        /* Windows tell by themselves where nobody knows how many samples there were. */
        if (!table->samples_known && comparison->method == COMPARE_BY_WINDOWS)
            estimate->floor[side] = 0;
    }
}

static void gather(const struct series *series, const double *rates)
{
    const struct compare_table *table = series->table;
    const double *exposure = series->comparison->exposure;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        memset(series->residual[side], 0, table->window_count[side] * sizeof(double));
        memset(series->cluster[side], 0, table->cluster_count * sizeof(double));
    }
    for (size_t i = 0; i < table->replicate_count; i++) {
        const struct compare_replicate *replicate = &table->replicates[i];
        double residual = series->value[i] - rates[replicate->side] * series->exposure[i];
        residual /= exposure[replicate->side];
        series->residual[replicate->side][replicate->window] += residual;
        series->cluster[replicate->side][replicate->cluster] += residual;
    }
}

static void estimate_windows(struct series *series, struct graph *graph, struct estimate *estimate)
{
    double coefficients[COSINES_MAX];
    for (int side = 0; side < COMPARE_SIDES; side++) {
        double variance =
            cosines_variance(&series->cosines[side], series->residual[side], coefficients);
        estimate->windows[side] =
            estimate->counted[side] > 0 ? variance / estimate->counted[side] : 0;
        if (estimate->speaks)
            moderation_add(&graph->windows[side], estimate->windows[side],
                           estimate->measure->counts[side], coefficients);
    }
}

/* Everything but what the whole graph says. */
static void estimate_one(struct series *series, struct graph *graph,
                         struct compare_measure *measure, bool may_speak)
{
    const struct compare_table *table = series->table;
    const double *exposure = series->comparison->exposure;
    struct estimate *estimate = &graph->estimates[graph->count++];
    double sums[COMPARE_SIDES] = {0}, rates[COMPARE_SIDES];
    for (size_t i = 0; i < table->replicate_count; i++)
        sums[table->replicates[i].side] += series->value[i];
    for (int side = 0; side < COMPARE_SIDES; side++) {
        rates[side] = sums[side] / exposure[side];
        double weight = table->samples[side] > 0 ? table->value[side] / table->samples[side] : 0;
        measure->counts[side] = weight > 0 ? fmax(sums[side] / weight, 0) : 0;
    }
    estimate->measure = measure;
    estimate->speaks = may_speak && fmin(measure->counts[0], measure->counts[1]) >= FIT_LEAST;
    measure->base = rates[COMPARE_BASE];
    measure->new_value = rates[COMPARE_NEW];
    measure->change = rates[COMPARE_NEW] - rates[COMPARE_BASE];
    gather(series, rates);
    set_counted(table, series->comparison, sums, estimate);
    if (series->comparison->method == COMPARE_BY_WINDOWS)
        estimate_windows(series, graph, estimate);
    if (series->clusters.df > 0) {
        double observations[MODERATE_LENGTH_MAX] = {0};
        estimate->between = clusters_variance(&series->clusters, table->cluster_count,
                                              series->cluster, observations);
        double counted = estimate->counted[0] + estimate->counted[1];
        if (estimate->speaks && counted > 0)
            moderation_add(graph->clusters, estimate->between / counted,
                           measure->counts[0] + measure->counts[1], observations);
    }
}

/* ---- what the graph says ---- */

static double welch_df(const double *variance, const double *df)
{
    double sum = variance[0] + variance[1], below = 0;
    for (int side = 0; side < COMPARE_SIDES; side++)
        below += variance[side] * variance[side] / df[side];
    return fmin(below > 0 ? sum * sum / below : df[0] + df[1], NUMBERS_NORMAL_DF);
}

/* p-values decide which of two estimates is the more careful one. */
static bool is_more_careful(double variance, double df, const struct compare_measure *than)
{
    double other = than->variance[0] + than->variance[1];
    if (than->change == 0 || !(variance > 0) || !(other > 0))
        return variance > other;
    return numbers_t_tail(fabs(than->change) / sqrt(variance), df) >
           numbers_t_tail(fabs(than->change) / sqrt(other), than->df);
}

static void settle(const struct series *series, const struct graph *graph,
                   const struct estimate *estimate)
{
    struct compare_measure *measure = estimate->measure;
    double df[COMPARE_SIDES] = {NUMBERS_NORMAL_DF, NUMBERS_NORMAL_DF};
    for (int side = 0; side < COMPARE_SIDES; side++) {
        double factor = 1;
        if (series->comparison->method == COMPARE_BY_WINDOWS)
            factor = moderation_ratio(&graph->windows[side], estimate->windows[side],
                                      measure->counts[side], &df[side]);
        measure->variance[side] = fmax(factor * estimate->counted[side], estimate->floor[side]);
    }
    measure->df = welch_df(measure->variance, df);
    if (!(series->clusters.df > 0))
        return;
    double counted = estimate->counted[0] + estimate->counted[1], between_df;
    double ratio = moderation_ratio(graph->clusters, counted > 0 ? estimate->between / counted : 0,
                                    measure->counts[0] + measure->counts[1], &between_df);
    double between = fmax(ratio * counted, estimate->floor[0] + estimate->floor[1]);
    if (!is_more_careful(between, between_df, measure))
        return;
    double rest = measure->variance[0] + measure->variance[1];
    for (int side = 0; side < COMPARE_SIDES; side++)
        measure->variance[side] = rest > 0 ? measure->variance[side] * between / rest : between / 2;
    measure->df = between_df;
}

/* A single replicate on each side: most functions of a graph don't change, so the median of their
 * squared standardised changes, as shares, shows how much more than counts varies. */
static void apply_counts(const struct compare_table *table, struct comparison *comparison,
                         const struct graph *graph)
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
    for (size_t i = 0; i < graph->count; i++)
        for (int side = 0; side < COMPARE_SIDES; side++) {
            graph->estimates[i].measure->variance[side] *= comparison->overdispersion;
            graph->estimates[i].measure->counts[side] /= comparison->overdispersion;
        }
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
            exposure[i] = table->level ? replicate->seconds : part;
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
            estimate_one(series, graph, total ? &row->total : &row->self,
                         !total && !row->function->coarse);
        }
        for (size_t k = from; k < to; k++)
            series->value[table->cells[k].replicate] = 0;
        double sums[] = {row->total.base * comparison->exposure[0],
                         row->total.new_value * comparison->exposure[1]};
        for (int side = 0; side < COMPARE_SIDES; side++)
            row->share[side] = sums[side] / table->value[side];
    }
    for (size_t i = 0; i < table->replicate_count; i++)
        series->value[i] = table->replicates[i].value;
    estimate_one(series, graph, &comparison->whole, false);
}

/* Fits what all functions say together, and settles each. */
static void settle_all(const struct series *series, struct comparison *comparison,
                       struct graph *graph)
{
    bool windows = comparison->method == COMPARE_BY_WINDOWS;
    double independence = 0;
    for (int side = 0; windows && side < COMPARE_SIDES; side++) {
        moderation_fit(&graph->windows[side], 0);
        double own = moderation_independence(&graph->windows[side]);
        independence = side ? fmin(independence, own) : own;
    }
    moderation_fit(graph->clusters, independence);
    for (size_t i = 0; i < graph->count; i++)
        settle(series, graph, &graph->estimates[i]);
    if (windows)
        comparison->overdispersion =
            fmax(fmax(graph->windows[0].typical, graph->windows[1].typical), 1);
    if (series->clusters.df > 0) {
        comparison->overdispersion = fmax(comparison->overdispersion, graph->clusters->typical);
        if (!windows)
            comparison->method = COMPARE_BY_CLUSTERS;
    }
    if (comparison->method == COMPARE_BY_COUNTS)
        apply_counts(series->table, comparison, graph);
}

void variance_estimate(const struct compare_table *table, struct comparison *comparison)
{
    _cleanup_free_ double *exposure = exposures(table, comparison);
    _cleanup_free_ double *value = memory_zalloc(table->replicate_count + 1, sizeof(*value));
    _cleanup_free_ struct estimate *estimates =
        memory_zalloc(comparison->count * 2 + 1, sizeof(*estimates));
    _cleanup_free_ struct moderation *moderations = memory_zalloc(3, sizeof(*moderations));
    struct series series = {.table = table,
                            .comparison = comparison,
                            .clusters = clusters_count(table),
                            .exposure = exposure,
                            .value = value};
    struct graph graph = {
        .estimates = estimates, .windows = moderations, .clusters = &moderations[2]};
    comparison->counted = table->samples_known;
    bool windows = MIN(table->window_count[0], table->window_count[1]) >= WINDOWS_LEAST;
    if (windows)
        comparison->method = COMPARE_BY_WINDOWS;
    moderation_init(graph.clusters, clusters_observations(&series.clusters, table->cluster_count),
                    series.clusters.df);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        series.residual[side] = memory_zalloc(table->window_count[side], sizeof(double));
        series.cluster[side] = memory_zalloc(table->cluster_count, sizeof(double));
        if (!windows)
            continue;
        cosines_init(&series.cosines[side], table->window_count[side]);
        moderation_init(&graph.windows[side], series.cosines[side].count,
                        (double)series.cosines[side].count);
    }
    estimate_rows(&series, comparison, &graph);
    settle_all(&series, comparison, &graph);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        free(series.residual[side]);
        free(series.cluster[side]);
        cosines_release(&series.cosines[side]);
    }
    for (int i = 0; i < 3; i++)
        moderation_release(&moderations[i]);
}
