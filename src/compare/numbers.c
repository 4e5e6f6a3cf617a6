// SPDX-License-Identifier: Apache-2.0
// Distributions for comparisons: see numbers.h.

#include "compare/numbers.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* The continued fraction of the incomplete beta function, evaluated from the front (Lentz). It
 * converges within a few hundred terms wherever it is used: x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int m = 1; m <= 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        value *= d * c;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        value *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return value;
}

/* lgamma() writes a global; comparisons run on several threads of a server. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double numbers_beta(double a, double b, double x)
{
    if (!(x > 0))
        return 0;
    if (x >= 1)
        return 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double numbers_t_tail(double t, double df)
{
    if (isnan(t))
        return 0.5;
    if (df >= NUMBERS_NORMAL_DF)
        return erfc(t / M_SQRT2) / 2;
    double half = numbers_beta(df / 2, 0.5, df / (df + t * t)) / 2;
    return t >= 0 ? half : 1 - half;
}

/* Newton's steps on the logarithm of the tail, within a bracket that halves where they leave it. */
double numbers_t_quantile(double p, double df)
{
    bool normal = df >= NUMBERS_NORMAL_DF;
    double scale = normal ? -0.5 * log(2 * M_PI)
                          : log_gamma((df + 1) / 2) - log_gamma(df / 2) - 0.5 * log(df * M_PI);
    double low = 0, high = 2;
    while (numbers_t_tail(high, df) > p && high < 1e150) {
        low = high;
        high *= 2;
    }
    double t = (low + high) / 2;
    for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
        double tail = numbers_t_tail(t, df);
        double density = exp(scale - (normal ? t * t / 2 : (df + 1) / 2 * log1p(t * t / df)));
        *(tail > p ? &low : &high) = t;
        double next = t + (log(tail) - log(p)) * tail / density;
        if (!(next > low && next < high))
            next = (low + high) / 2;
        if (fabs(next - t) < 1e-12 * high)
            break;
        t = next;
    }
    return t;
}

/* Both by recurrence to where the asymptotic series is exact to 12 digits. */
double numbers_digamma(double x)
{
    double sum = 0;
    for (; x < 12; x++)
        sum -= 1 / x;
    double y = 1 / (x * x);
    return sum + log(x) - 0.5 / x -
           y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240))));
}

double numbers_trigamma(double x)
{
    double sum = 0;
    for (; x < 12; x++)
        sum += 1 / (x * x);
    double y = 1 / (x * x);
    return sum + 1 / x + y / 2 +
           y / x * (1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y * (1.0 / 30))));
}

double numbers_trigamma_inverse(double y)
{
    double low = 1e-8, high = 1e8;
    for (int i = 0; i < 200 && high / low > 1 + 1e-12; i++) {
        double middle = sqrt(low * high);
        if (numbers_trigamma(middle) > y)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double numbers_binomial_upper(double x, double n, double p)
{
    if (!(x > 0))
        return 1;
    return x > n ? 0 : numbers_beta(x, n - x + 1, p);
}

double numbers_binomial_lower(double x, double n, double p)
{
    if (x >= n)
        return 1;
    return x < 0 ? 0 : 1 - numbers_beta(x + 1, n - x, p);
}

/* Wilson and Hilferty's approximation: within 1% from one degree of freedom on. */
double numbers_chi_square_median(double df)
{
    double root = 1 - 2 / (9 * df);
    return root * root * root;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double numbers_median(double *values, size_t count)
{
    if (!count)
        return 0;
    qsort(values, count, sizeof(*values), compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static int compare_by_p(const void *a, const void *b, void *p)
{
    return compare_doubles((const double *)p + *(const size_t *)a,
                           (const double *)p + *(const size_t *)b);
}

size_t numbers_false_discovery(const double *p, size_t count, double rate, double *adjusted)
{
    if (!count)
        return 0;
    _cleanup_free_ size_t *order = memory_alloc(count * sizeof(*order));
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof(*order), compare_by_p, (void *)p);
    size_t found = 0;
    double smallest = 1;
    for (size_t rank = count; rank > 0; rank--) {
        size_t at = order[rank - 1];
        smallest = fmin(smallest, p[at] * (double)count / (double)rank);
        adjusted[at] = smallest;
        if (smallest <= rate && !found)
            found = rank;
    }
    return found;
}
