// SPDX-License-Identifier: Apache-2.0
// Robust trends: see trend.h. Sen's slope and Kendall's S within blocks (Hirsch and Slack), with
// the variance of S raised for values that depend on the one before.

#include "query/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define WIDE 3.29  /* of a normal distribution: 99.9% on both sides */
#define USUAL 1.96 /* 95% */
#define STILL 0.5  /* of the slope: what climbs by less in the end is levelling off */
#define FALLS 0.5  /* of the climb: what falls by more goes up and down */
#define CORRELATION_MAX 0.9

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_size);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The end of the block that begins at a point. */
static size_t block_end(const struct trend_point *points, size_t count, size_t from)
{
    size_t to = from;
    while (to < count && points[to].block == points[from].block)
        to++;
    return to;
}

/* By how much more S varies than if values were independent, from what is left without the slope:
 * the correlation with the point before. */
static double dependence(const struct trend_point *points, size_t count, double slope)
{
    double products = 0, squares = 0;
    for (size_t from = 0, to; from < count; from = to) {
        double left[TREND_BLOCK_POINTS_MAX], sorted[TREND_BLOCK_POINTS_MAX];
        to = block_end(points, count, from);
        for (size_t i = from; i < to; i++)
            left[i - from] = points[i].value - slope * points[i].time;
        memcpy(sorted, left, (to - from) * sizeof(*left));
        double middle = median(sorted, to - from);
        for (size_t i = 0; i < to - from; i++) {
            squares += (left[i] - middle) * (left[i] - middle);
            products += i ? (left[i] - middle) * (left[i - 1] - middle) : 0;
        }
    }
    double correlation = squares > 0 ? fmin(fmax(products / squares, 0), CORRELATION_MAX) : 0;
    return (1 + correlation) / (1 - correlation);
}

/* Pairs of equal values say nothing about a direction, and reduce how much S varies. */
static double variance(const struct trend_point *points, size_t count)
{
    double sum = 0;
    for (size_t from = 0, to; from < count; from = to) {
        double sorted[TREND_BLOCK_POINTS_MAX];
        to = block_end(points, count, from);
        double n = (double)(to - from);
        for (size_t i = from; i < to; i++)
            sorted[i - from] = points[i].value;
        qsort(sorted, to - from, sizeof(*sorted), by_size);
        sum += n * (n - 1) * (2 * n + 5) / 18;
        for (size_t i = 0, k; i < to - from; i = k) {
            for (k = i; k < to - from && sorted[k] <= sorted[i]; k++)
                ;
            double ties = (double)(k - i);
            sum -= ties * (ties - 1) * (2 * ties + 5) / 18;
        }
    }
    return sum;
}

struct sen {
    double slope, low, high;
};

static struct sen sen_of(const struct trend_point *points, size_t count, double deviations)
{
    struct sen sen = {0, -INFINITY, INFINITY};
    size_t pairs = 0, room = 0;
    for (size_t from = 0, to; from < count; from = to) {
        to = block_end(points, count, from);
        room += (to - from) * (to - from - 1) / 2;
    }
    _cleanup_free_ double *slopes = memory_alloc((room + 1) * sizeof(*slopes));
    for (size_t from = 0, to; from < count; from = to) {
        to = block_end(points, count, from);
        for (size_t i = from; i < to; i++)
            for (size_t k = i + 1; k < to; k++)
                if (points[k].time > points[i].time)
                    slopes[pairs++] =
                        (points[k].value - points[i].value) / (points[k].time - points[i].time);
    }
    if (!pairs)
        return sen;
    sen.slope = median(slopes, pairs);
    double width =
        deviations * sqrt(variance(points, count) * dependence(points, count, sen.slope));
    double below = ((double)pairs - width) / 2, above = ((double)pairs + width) / 2;
    if (below >= 0)
        sen.low = slopes[(size_t)below];
    if (above + 1 < (double)pairs)
        sen.high = slopes[(size_t)above + 1];
    else if (below >= 0)
        sen.high = slopes[pairs - 1];
    return sen;
}

static double middle_of(const struct trend_point *points, size_t count)
{
    double values[TREND_BLOCK_POINTS_MAX];
    for (size_t i = 0; i < count; i++)
        values[i] = points[i].value;
    return median(values, count);
}

static void add_block(struct trend *trend, const struct trend_point *points, size_t count)
{
    size_t quarter = MAX(count / 4, (size_t)1);
    double greatest = points[0].value, fall = 0;
    for (size_t i = 0; i < count; i++) {
        greatest = fmax(greatest, points[i].value);
        fall = fmax(fall, greatest - points[i].value);
    }
    trend->climb += middle_of(points + count - quarter, quarter) - middle_of(points, quarter);
    trend->fall += fall;
    trend->span = fmax(trend->span, points[count - 1].time - points[0].time);
}

/* The blocks that are long enough, and of those the later halves. */
static size_t take(const struct trend_point *points, size_t count, bool later,
                   struct trend_point *to)
{
    size_t taken = 0;
    for (size_t from = 0, end; from < count; from = end) {
        end = block_end(points, count, from);
        size_t length = MIN(end - from, (size_t)TREND_BLOCK_POINTS_MAX);
        if (length < TREND_BLOCK_POINTS_MIN || taken + length > TREND_POINTS_MAX)
            continue;
        size_t skipped = later ? length / 2 : 0;
        memcpy(to + taken, points + from + skipped, (length - skipped) * sizeof(*to));
        taken += length - skipped;
    }
    return taken;
}

bool trend_of(const struct trend_point *points, size_t count, struct trend *ret_trend)
{
    _cleanup_free_ struct trend_point *taken = memory_alloc(TREND_POINTS_MAX * sizeof(*taken));
    struct trend trend = {.points = take(points, count, false, taken)};
    if (!trend.points)
        return false;
    struct sen sen = sen_of(taken, trend.points, WIDE);
    for (size_t from = 0, to; from < trend.points; from = to) {
        to = block_end(taken, trend.points, from);
        add_block(&trend, taken + from, to - from);
    }
    size_t later = take(points, count, true, taken);
    struct sen late = sen_of(taken, later, USUAL);
    trend.slope = sen.slope;
    trend.low = sen.low;
    trend.high = sen.high;
    trend.late = late.slope;
    trend.late_low = late.low;
    *ret_trend = trend;
    return true;
}

bool trend_climbs(const struct trend *trend, double least_slope)
{
    return trend->slope >= least_slope && trend->low > 0 && trend->late_low > 0 &&
           trend->late >= STILL * trend->slope && trend->fall <= FALLS * trend->climb;
}
