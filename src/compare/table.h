/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observations of a comparison: how much each function took in each replicate. A replicate is
 * a time window of one cluster; a cluster is a host or a file. docs/comparison.md has the terms.
 *
 * Sources that don't fit into memory at once can be added in parts.
 *
 * A profile can say itself which hosts its samples are from (a label), and which times each of them
 * covers: rows without a stack whose value of the type `covered/nanoseconds` is how much of the
 * step that begins at their time is covered. The server writes such profiles (docs/comparison.md).
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "profile/naming.h"
#include "profile/profile.h"

enum compare_side { COMPARE_BASE, COMPARE_NEW, COMPARE_SIDES };

struct compare_source {
    const struct profile *profile;
    const struct naming *naming;
    unsigned type;          /* of the profile's: the values to compare */
    unsigned requests_type; /* PROFILE_TYPES_MAX: it doesn't count requests */
    unsigned covered_type;  /* PROFILE_TYPES_MAX: from the profile's start for its duration */
    enum compare_side side;
    const char *cluster; /* clusters of the same name on both sides are paired */
    /* NULL, or the label whose values are clusters that were observed at the same time, so that
     * the source covers their time once. */
    const char *cluster_label;
    int64_t granularity_ns; /* times are multiples of it from the start; 0: they are exact */
    double factor;          /* values are multiplied by it: corrects for sampling rates */
};

/* Sets all but side, cluster and granularity, of a source with this sample type. */
void compare_source_init(struct compare_source *source, const struct profile *profile,
                         const struct naming *naming, unsigned type);

struct compare_replicate {
    enum compare_side side;
    uint32_t cluster;
    uint32_t window; /* of its side, from 0 */
    double seconds;  /* covered */
    double value;    /* sum over all its samples */
    double requests;
};

/* A function's value in a replicate; zero values have no cell. */
struct compare_cell {
    uint32_t function, replicate;
    double self, total;
};

struct compare_function {
    const char *name;
    size_t length;
    size_t first_cell; /* its cells are those up to the next function's first */
    bool coarse;       /* too small for the memory: one cell a side, and not judged */
};

struct compare_table {
    struct compare_function *functions; /* one more than there are: the end of the cells */
    size_t function_count;
    struct compare_replicate *replicates;
    size_t replicate_count;
    struct arena names;
    struct compare_cell *cells; /* by function, then by replicate */
    size_t cell_count;
    uint32_t cluster_count;               /* distinct names */
    uint32_t window_count[COMPARE_SIDES]; /* 1: the samples have no times */
    int64_t window_ns;                    /* length of windows; 0 without times */
    double seconds[COMPARE_SIDES];        /* covered, summed over clusters; 0: unknown */
    double value[COMPARE_SIDES];          /* sums */
    double requests[COMPARE_SIDES];       /* 0: not counted */
    double samples[COMPARE_SIDES];        /* how many samples the values come from, about */
    bool samples_known;                   /* else a number of rows: fewer than there were */
    bool level; /* docs/levels.md: `seconds` count snapshots, which are files or a server's steps */
    size_t coarse_count;    /* functions */
    uint64_t inlined_pairs; /* caller and callee: the callee was inlined on one side only */
};

#define COMPARE_COVERED_TYPE "covered"
#define COMPARE_COVERED_UNIT "nanoseconds"
#define COMPARE_CELLS_MAX (64u << 20)
#define COMPARE_SOURCES_MAX 4096
#define COMPARE_WINDOWS 64 /* wanted on each side */

/* -E2BIG when there are too many sources; -EINVAL when a value or duration makes no sense. */
int compare_table_build(const struct compare_source *sources, size_t count,
                        struct compare_table *ret_table, struct error *error);
void compare_table_release(struct compare_table *table);

/*
 * The same in parts, each of which may be freed once it has been added:
 *
 *     compare_table_begin(frames, frame_count, cells_max, &builder, &error);
 *     compare_table_add(builder, frames, frame_count); // for requests that they count
 *     compare_table_add(builder, parts, part_count);   // for each part, both sides of it
 *     compare_table_end(builder, &table);
 *
 * The frames say which times and clusters there are, and live until the end. Samples outside them
 * don't count. Which functions are judged at their caller because of inlining is found in each part
 * by itself. Where more than `cells_max` cells (0: COMPARE_CELLS_MAX) are needed, the smallest
 * functions so far become coarse.
 */
struct table_builder;
int compare_table_begin(const struct compare_source *frames, size_t count, size_t cells_max,
                        struct table_builder **ret_builder, struct error *error);
void compare_table_add(struct table_builder *builder, const struct compare_source *sources,
                       size_t count);
size_t compare_table_functions(const struct table_builder *builder); /* so far */
void compare_table_end(struct table_builder *builder, struct compare_table *ret_table);
void compare_table_abandon(struct table_builder *builder); /* instead of the end; takes NULL */
#define _cleanup_compare_table_ __attribute__((cleanup(compare_table_release)))
