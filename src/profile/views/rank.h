/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rankings: functions by flat and cumulative value, the callers and callees of a function,
 * and its lines. In all of them a stack counts once for a function (or an edge, or a line),
 * however often recursion puts it there.
 */
#pragma once

#include "base/number.h"
#include "profile/naming.h"
#include "profile/profile.h"

struct rank_row {
    uint32_t entry; /* of the naming; or a node of another kind, see each function */
    int64_t flat;
    int64_t cumulative;
};

struct ranking {
    struct rank_row *rows;
    size_t count;
    int64_t total;    /* sum over all samples */
    int64_t absolute; /* sum of their magnitudes: what percentages are of */
};

enum rank_order { RANK_BY_FLAT, RANK_BY_CUMULATIVE };

void ranking_release(struct ranking *ranking);
#define _cleanup_ranking_ __attribute__((cleanup(ranking_release)))

/* All functions, the largest first. */
void rank_functions(const struct profile *profile, const struct naming *naming, unsigned type,
                    enum rank_order order, struct ranking *ret_ranking);

/* A set of functions to look at: chosen[entry] for each entry of the naming. */
enum rank_direction { RANK_CALLERS, RANK_CALLEES };

/*
 * The direct neighbours of the chosen functions, by the value that flows over the edge (in
 * `cumulative`). RANK_ROOT as entry stands for "no caller"; for callees `flat` of the ranking's
 * rows is 0 and the chosen functions' own flat value is *ret_self.
 */
#define RANK_ROOT (UINT32_MAX - 1)
void rank_neighbours(const struct profile *profile, const struct naming *naming, unsigned type,
                     const bool *chosen, enum rank_direction direction, struct ranking *ret_ranking,
                     int64_t *ret_self);

struct line_row {
    uint32_t entry; /* function */
    uint32_t file;  /* string */
    uint32_t line;
    int64_t flat;
    int64_t cumulative;
};

/* The lines of the chosen functions, by function, file and line. The caller frees the array. */
struct line_row *rank_lines(const struct profile *profile, const struct naming *naming,
                            unsigned type, const bool *chosen, size_t *ret_count);

/* Sum of a type's values per node: the caller frees it. */
int64_t *profile_node_values(const struct profile *profile, unsigned type);
