/* SPDX-License-Identifier: Apache-2.0 */
/* Which sites of a level, such as memory in use, climb without a plateau (docs/watch.md). */
#pragma once

#include "profile/naming.h"
#include "query/trend.h"

struct leak_options {
    int64_t range_ns;  /* that is looked at */
    double least_rate; /* bytes per hour and process */
};

#define LEAK_SITES_MAX 128    /* those that hold the most are looked at */
#define LEAK_PROCESSES_MAX 32 /* likewise, those that were seen the longest */
#define LEAK_STEPS_MAX TREND_BLOCK_POINTS_MAX
#define LEAKS_MAX 8 /* of one service and type */
#define LEAK_WHOLE "(whole process)" /* the site of samples without a stack */

struct leak {
    const char *site; /* the naming's, or constant */
    size_t site_length;
    struct trend trend; /* in bytes and hours, of one process */
    double site_bytes, process_bytes; /* at the end, on average over processes */
    double share;
};

/*
 * Judges a profile of the first type's level that has the values of steps apart, and what they
 * cover (server/compare/replicates.h). Returns how many sites certainly climb, the fastest first.
 */
size_t leaks_find(const struct profile *profile, const struct naming *naming, int64_t step_ns,
                  double least_rate, struct leak leaks[static LEAKS_MAX]);
