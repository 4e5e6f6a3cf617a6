// SPDX-License-Identifier: Apache-2.0
// Judging limits: see gate.h.

#include "compare/gate/gate.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "compare/numbers.h"

void gate_result_release(struct gate_result *result)
{
    free(result->checks);
    *result = (struct gate_result){0};
}

struct judge {
    const struct compare_table *table;
    const struct gate_options *options;
    struct comparison *comparisons; /* by normalisation; `rows` is NULL until it is needed */
    const char *unit;
    struct gate_result *result;
};

static int need(struct judge *judge, enum compare_normalize normalize, struct error *error)
{
    struct compare_options options = {.normalize = normalize,
                                      .false_discovery_rate = judge->options->false_discovery_rate,
                                      .min_share = judge->options->min_share};
    if (judge->comparisons[normalize].rows)
        return 0;
    return compare(judge->table, &options, &judge->comparisons[normalize], error);
}

static struct gate_check *add_check(struct gate_result *result, const struct gate_check *check)
{
    array_reserve(result->checks, result->capacity, result->count + 1);
    result->checks[result->count] = *check;
    return &result->checks[result->count++];
}

/* How much more it takes until a difference as large as `distance` would be certain four times out
 * of five. Longer recordings have longer windows, so the degrees of freedom stay the same. */
static double more_needed(double distance, double variance, double df, double alpha)
{
    double needed = (numbers_t_quantile(alpha, df) + 0.8416) * sqrt(variance);
    double factor = distance > 0 ? needed / distance : INFINITY;
    return fmax(factor * factor - 1, 0);
}

static bool matches(const struct gate_limit *limit, const struct compare_row *row)
{
    /* A name that exceeds the match limit is judged rather than left out. */
    return !limit->function || regex_find(limit->function, row->function->name,
                                          row->function->length, 0, NULL) != REGEX_NO_MATCH;
}

/* Whether the limit names anything: one that doesn't would pass by accident. */
static int count_matches(const struct comparison *comparison, const struct gate_limit *limit,
                         struct error *error)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (matches(limit, &comparison->rows[i]))
            return 0;
    return error_set(error, -EINVAL,
                     "No function of either side matches \"%s\"; correct the expression, or "
                     "remove the limit.",
                     limit->pattern);
}

/* A growth that is to be judged. */
struct growth {
    const struct gate_limit *limit;
    const struct compare_row *row; /* NULL: the whole */
    const struct compare_measure *measure;
    const char *name;
};

/* All growths of all limits: one family of hypotheses, so that many limits don't fail more often by
 * chance than one does. */
struct growths {
    struct growth *list;
    double *p;   /* of a growth beyond the limit */
    double *any; /* of any growth, two-sided */
    size_t count, list_capacity, p_capacity, any_capacity;
};

static void add_growth(struct growths *growths, const struct comparison *comparison,
                       const struct growth *growth)
{
    array_reserve(growths->list, growths->list_capacity, growths->count + 1);
    array_reserve(growths->p, growths->p_capacity, growths->count + 1);
    array_reserve(growths->any, growths->any_capacity, growths->count + 1);
    growths->any[growths->count] = fmin(2 * compare_exceeds(comparison, growth->measure, 1), 1);
    growths->list[growths->count] = *growth;
    growths->p[growths->count++] =
        compare_exceeds(comparison, growth->measure, 1 + growth->limit->limit);
}

/* `alpha`: the level that a p-value had to reach. The interval is at the same one, so that its
 * lower end is above the limit exactly when the limit is failed. `grew`: there is a growth. */
static void judge_growth_of(struct judge *judge, const struct growth *growth, double p, bool grew,
                            double alpha)
{
    const struct gate_limit *limit = growth->limit;
    const struct compare_measure *measure = growth->measure;
    double rate = judge->options->false_discovery_rate;
    struct gate_check check = {.limit = limit,
                               .function = growth->row ? growth->row->function->name : NULL,
                               .measure = growth->name,
                               .base = measure->base,
                               .value = measure->new_value,
                               .growth = measure->growth,
                               .p = p};
    compare_growth_interval(measure, alpha, &check.change_low, &check.change_high);
    /* Certain in the whole graph, or among the limits and nearly certain to be beyond. */
    grew = (grew && p <= 2 * rate) || measure->verdict == COMPARE_GREW ||
           (!growth->row && measure->change > 0 && measure->p <= rate);
    if (p <= alpha) {
        check.outcome = GATE_FAILED;
        check.change_low = fmax(check.change_low, limit->limit);
    } else {
        check.change_low = fmin(check.change_low, limit->limit);
    }
    if (p > alpha && grew && measure->growth > limit->limit) {
        check.outcome = GATE_UNDECIDED;
        double factor = 1 + limit->limit;
        double variance =
            measure->variance[COMPARE_NEW] + factor * factor * measure->variance[COMPARE_BASE];
        check.more =
            more_needed(measure->new_value - factor * measure->base, variance, measure->df, alpha);
    }
    if (check.outcome != GATE_PASSED || !growth->row || limit->function)
        add_check(judge->result, &check);
}

/* The base of the gate's sensitivity: all samples, or where they are 100% by definition
 * the largest function. */
static const struct compare_measure *yardstick(const struct comparison *comparison,
                                               const char **ret_function)
{
    *ret_function = NULL;
    const struct compare_measure *largest = &comparison->whole;
    if (comparison->options.normalize != COMPARE_PER_TOTAL)
        return largest;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compare_measure *self = &comparison->rows[i].self;
        if (!*ret_function || self->base > largest->base) {
            largest = self;
            *ret_function = comparison->rows[i].function->name;
        }
    }
    return largest;
}

/* Data that couldn't have shown a large growth must not pass for lack of evidence. */
static void judge_sensitivity(struct judge *judge, const struct comparison *comparison,
                              const struct gate_limit *limit, const struct compare_measure *measure,
                              const char *function)
{
    struct gate_check check = {.limit = limit, .measure = "sensitivity", .function = function};
    double wanted = fmax(4 * limit->limit, GATE_SENSITIVITY);
    double t = numbers_t_quantile((1 - comparison->level) / 2, measure->df) + 0.8416;
    double variance = measure->variance[COMPARE_NEW] + measure->variance[COMPARE_BASE];
    check.base = wanted;
    check.value = measure->base > 0 ? t * sqrt(variance) / measure->base : INFINITY;
    check.change_low = check.change_high = check.growth = check.value;
    if (check.value <= wanted)
        return;
    double factor = check.value / wanted;
    check.outcome = GATE_UNDECIDED;
    check.more = factor * factor - 1;
    add_check(judge->result, &check);
}

static void add_growths_of(struct growths *growths, const struct comparison *comparison,
                           const struct gate_limit *limit, const struct compare_row *row)
{
    if (row->total.judged)
        add_growth(growths, comparison, &(struct growth){limit, row, &row->total, "total"});
    if (row->self.judged && row->self.counts[1] != row->total.counts[1])
        add_growth(growths, comparison, &(struct growth){limit, row, &row->self, "self"});
}

static double samples_of(const struct compare_row *row)
{
    return row->total.counts[COMPARE_BASE] + row->total.counts[COMPARE_NEW];
}

/* A limit of functions by name: they are judged as all are, and the largest of them even where it
 * holds less than the minimum share. It must be large enough for its limit, too. */
static int collect_named(struct judge *judge, const struct comparison *comparison,
                         const struct gate_limit *limit, struct growths *growths,
                         struct error *error)
{
    const struct compare_row *largest = NULL;
    size_t before = growths->count;
    int r = count_matches(comparison, limit, error);
    for (size_t i = 0; !r && i < comparison->count; i++) {
        const struct compare_row *row = &comparison->rows[i];
        if (!matches(limit, row))
            continue;
        add_growths_of(growths, comparison, limit, row);
        if (!largest || samples_of(row) > samples_of(largest))
            largest = row;
    }
    if (r < 0)
        return r;
    if (growths->count == before)
        add_growth(growths, comparison, &(struct growth){limit, largest, &largest->total, "total"});
    double rate = judge->options->false_discovery_rate;
    double wanted = 1 + fmax(4 * limit->limit, GATE_SENSITIVITY);
    if (compare_exceeds(comparison, &largest->total, 1 + limit->limit) > rate &&
        compare_stays_below(comparison, &largest->total, wanted) > rate)
        judge_sensitivity(judge, comparison, limit, &largest->total, largest->function->name);
    return 0;
}

static int collect_all(struct judge *judge, const struct comparison *comparison,
                       const struct gate_limit *limit, struct growths *growths, struct error *error)
{
    const char *function;
    const struct compare_measure *measure = yardstick(comparison, &function);
    if (!comparison->judged)
        return error_set(error, -EINVAL,
                         "No function has enough samples and the minimum share of %.4g%%; nothing "
                         "can be judged. Lower it with --min-share, or record longer.",
                         100 * comparison->options.min_share);
    add_growth(growths, comparison, &(struct growth){limit, NULL, &comparison->whole, "total"});
    for (size_t i = 0; i < comparison->count; i++)
        add_growths_of(growths, comparison, limit, &comparison->rows[i]);
    judge_sensitivity(judge, comparison, limit, measure, function);
    return 0;
}

static int collect_growths(struct judge *judge, const struct gate_limit *limit,
                           struct growths *growths, struct error *error)
{
    int r = need(judge, judge->options->normalize, error);
    const struct comparison *comparison = &judge->comparisons[judge->options->normalize];
    if (r < 0)
        return r;
    return limit->function ? collect_named(judge, comparison, limit, growths, error)
                           : collect_all(judge, comparison, limit, growths, error);
}

static int judge_growths(struct judge *judge, const struct gate_limits *limits, struct error *error)
{
    struct growths growths = {0};
    double rate = judge->options->false_discovery_rate;
    int r = 0;
    for (size_t i = 0; !r && i < limits->count; i++)
        if (limits->limits[i].kind == GATE_GROWTH)
            r = collect_growths(judge, &limits->limits[i], &growths, error);
    _cleanup_free_ double *adjusted = memory_alloc((growths.count + 1) * sizeof(*adjusted));
    size_t found = numbers_false_discovery(growths.p, growths.count, rate, adjusted);
    double alpha = rate * (double)MAX(found, (size_t)1) / (double)MAX(growths.count, (size_t)1);
    numbers_false_discovery(growths.any, growths.count, rate, adjusted);
    for (size_t i = 0; !r && i < growths.count; i++)
        judge_growth_of(judge, &growths.list[i], growths.p[i], adjusted[i] <= rate, alpha);
    free(growths.list);
    free(growths.p);
    free(growths.any);
    return r;
}

/* Values in the limit's unit are values of the comparison divided by this. */
static int unit_of(const struct judge *judge, const struct gate_limit *limit, double *ret_divisor,
                   struct error *error)
{
    *ret_divisor = 1;
    if (limit->kind != GATE_CORES)
        return 0;
    if (!strcmp(judge->unit, "nanoseconds"))
        *ret_divisor = 1e9;
    else if (!strcmp(judge->unit, "microseconds"))
        *ret_divisor = 1e6;
    else if (!strcmp(judge->unit, "milliseconds"))
        *ret_divisor = 1e3;
    else if (strcmp(judge->unit, "seconds"))
        return error_set(error, -EINVAL,
                         "The limit of %s is in cores, but the values are in %s; compare a type "
                         "that is a time.",
                         limit->name, judge->unit);
    return 0;
}

static int judge_value(struct judge *judge, const struct gate_limit *limit, struct error *error)
{
    static const enum compare_normalize normalize[] = {[GATE_SHARE] = COMPARE_PER_TOTAL,
                                                       [GATE_CORES] = COMPARE_PER_SECOND,
                                                       [GATE_PER_REQUEST] = COMPARE_PER_REQUEST};
    double divisor;
    int r = unit_of(judge, limit, &divisor, error);
    if (!r)
        r = need(judge, normalize[limit->kind], error);
    const struct comparison *comparison = &judge->comparisons[normalize[limit->kind]];
    if (!r && limit->function)
        r = count_matches(comparison, limit, error);
    if (r < 0)
        return r;
    double rate = judge->options->false_discovery_rate, bound = limit->limit * divisor;
    for (size_t i = 0; i <= comparison->count; i++) {
        const struct compare_row *row = i < comparison->count ? &comparison->rows[i] : NULL;
        /* Without an expression the limit is one of everything together. */
        if (row ? !limit->function || !matches(limit, row) : limit->function != NULL)
            continue;
        const struct compare_measure *measure = row ? &row->total : &comparison->whole;
        double above = compare_above(measure, COMPARE_NEW, bound);
        double below = compare_below(measure, COMPARE_NEW, bound);
        double width =
            sqrt(measure->variance[COMPARE_NEW]) * numbers_t_quantile(rate / 2, measure->df);
        struct gate_check check = {.limit = limit,
                                   .function = row ? row->function->name : NULL,
                                   .measure = "total",
                                   .base = measure->base / divisor,
                                   .value = measure->new_value / divisor,
                                   .growth = measure->growth,
                                   .change_low = fmax(measure->new_value - width, 0) / divisor,
                                   .change_high = (measure->new_value + width) / divisor,
                                   .p = above};
        if (above <= rate)
            check.outcome = GATE_FAILED;
        else if (below > rate)
            check.outcome = GATE_UNDECIDED;
        if (check.outcome == GATE_UNDECIDED)
            check.more = more_needed(fabs(measure->new_value - bound),
                                     measure->variance[COMPARE_NEW], measure->df, rate);
        add_check(judge->result, &check);
    }
    return 0;
}

static int compare_checks(const void *a, const void *b)
{
    static const int order[] = {[GATE_FAILED] = 0, [GATE_UNDECIDED] = 1, [GATE_PASSED] = 2};
    const struct gate_check *x = a, *y = b;
    if (x->outcome != y->outcome)
        return order[x->outcome] - order[y->outcome];
    double from = x->value - x->base, to = y->value - y->base;
    if (from != to)
        return from > to ? -1 : 1;
    return strcmp(x->function ? x->function : "", y->function ? y->function : "");
}

int gate_judge(const struct compare_table *table, const struct gate_options *options,
               const struct gate_limits *limits, const char *unit,
               struct comparison comparisons[static COMPARE_NORMALIZES],
               struct gate_result *ret_result, struct error *error)
{
    _cleanup_gate_result_ struct gate_result result = {0};
    struct judge judge = {.table = table,
                          .options = options,
                          .comparisons = comparisons,
                          .unit = unit,
                          .result = &result};
    int r = need(&judge, options->normalize, error);
    if (!r)
        r = judge_growths(&judge, limits, error);
    for (size_t i = 0; !r && i < limits->count; i++)
        if (limits->limits[i].kind != GATE_GROWTH)
            r = judge_value(&judge, &limits->limits[i], error);
    if (r < 0)
        return r;
    double seconds = fmax(table->seconds[0], table->seconds[1]);
    double samples = fmax(table->samples[0], table->samples[1]), more = 0;
    for (size_t i = 0; i < result.count; i++) {
        struct gate_check *check = &result.checks[i];
        if (table->level || isnan(check->more)) /* more time is not more snapshots */
            check->more = 0;
        check->more_seconds = seconds > 0 ? check->more * seconds : 0;
        result.failed += check->outcome == GATE_FAILED;
        result.undecided += check->outcome == GATE_UNDECIDED;
        more = fmax(more, check->more);
    }
    result.more_seconds = seconds > 0 ? more * seconds : 0;
    result.more_samples = samples > 0 ? more * samples : 0;
    result.outcome = result.failed ? GATE_FAILED : result.undecided ? GATE_UNDECIDED : GATE_PASSED;
    if (result.count)
        qsort(result.checks, result.count, sizeof(*result.checks), compare_checks);
    *ret_result = result;
    result = (struct gate_result){0};
    return 0;
}
