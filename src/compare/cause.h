/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a value per second changed: more calls, or slower ones? Numbers of requests tell these apart:
 * what also changed per request costs more, and what didn't was called more often.
 */
#pragma once

#include "compare/compare.h"

enum compare_cause {
    COMPARE_CAUSE_UNKNOWN,
    COMPARE_CAUSE_REQUESTS, /* their number */
    COMPARE_CAUSE_COST,     /* of one */
};
extern const char *const compare_cause_names[];

struct compare_causes {
    uint8_t *verdicts; /* per request, of a row's self and total value; NULL: unknown */
    int direction;     /* of the number of requests: 1, -1 or 0 */
};

/* Judges values per request where `options` divide by time or by nothing and requests are known.
 * Before the comparison itself, so that only one has to be in memory. */
int compare_causes_find(const struct compare_table *table, const struct compare_options *options,
                        struct compare_causes *ret_causes, struct error *error);
void compare_causes_release(struct compare_causes *causes);
#define _cleanup_compare_causes_ __attribute__((cleanup(compare_causes_release)))

/* Of a change that is certain, in a row of `comparison`. */
enum compare_cause compare_cause(const struct compare_causes *causes,
                                 const struct comparison *comparison, size_t row, bool total);
