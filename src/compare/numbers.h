/* SPDX-License-Identifier: Apache-2.0 */
/* The distributions that comparisons need. All functions are pure and defined for every input. */
#pragma once

#include <stddef.h>

/* Degrees of freedom from which Student's distribution is treated as the normal one. */
#define NUMBERS_NORMAL_DF 1e6

/* I_x(a, b), the regularised incomplete beta function; a, b > 0. */
double numbers_beta(double a, double b, double x);

/* P(T > t) of Student's t with `df` degrees of freedom. */
double numbers_t_tail(double t, double df);

/* The t with P(T > t) = p, for 0 < p <= 0.5. */
double numbers_t_quantile(double p, double df);

/* P(X >= x) and P(X <= x) of a binomial distribution; `n` and `x` need not be whole. */
double numbers_binomial_upper(double x, double n, double p);
double numbers_binomial_lower(double x, double n, double p);

/* The derivatives of log gamma, for x > 0, and the x with trigamma(x) = y, for y > 0. */
double numbers_digamma(double x);
double numbers_trigamma(double x);
double numbers_trigamma_inverse(double y);

/* Median of a chi-square distribution divided by its degrees of freedom. */
double numbers_chi_square_median(double df);

/* Sorts `values` and returns their median; 0 without any. */
double numbers_median(double *values, size_t count);

/*
 * Benjamini-Hochberg. Sets adjusted[i], the smallest false-discovery rate at which p[i] is a
 * discovery, and returns how many are at `rate`. `p` and `adjusted` may not overlap.
 */
size_t numbers_false_discovery(const double *p, size_t count, double rate, double *adjusted);
