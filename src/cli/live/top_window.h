/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `assay top` counts: the profiles of the last few refreshes, and tables of functions,
 * processes and the neighbours of a function over all of them. A function is its name and its
 * binary here: every program has a main, and a machine has many programs. One thread at a time.
 */
#pragma once

#include "profile/profile.h"

/* The samples of one refresh, named. Stacks begin with a frame that is called as the process is,
 * and rows have a label "pid". */
struct top_slice {
    struct profile profile;
    int64_t duration_ns;
    uint64_t samples;
    uint64_t lost; /* samples that are not in the profile */
    char loss[96]; /* what is missing most, such as "stacks cut: ..."; "" when nothing is */
    uint64_t loss_count;
};

#define TOP_SLICES_MAX 64
#define TOP_NODES_MAX (8u << 20) /* of all slices: older ones go beyond it */

/* A sliding window, the newest last. Zero-initialised with a duration is empty and ready. */
struct top_window {
    struct top_slice *slices[TOP_SLICES_MAX];
    size_t count;
    int64_t duration_ns; /* how long it may be; the newest slice always stays */
};

struct top_slice *top_slice_new(enum profile_detail detail);
void top_slice_free(struct top_slice *slice);

/* Takes the slice over; slices that have become too old go. */
void top_window_add(struct top_window *window, struct top_slice *slice);
void top_window_clear(struct top_window *window);

enum top_order { TOP_BY_SELF, TOP_BY_TOTAL };

struct top_query {
    enum top_order order;
    bool no_kernel;     /* kernel frames count for the function that called the kernel */
    uint32_t pid;       /* only this process; 0: all */
    const char *filter; /* rows with this in name or binary, in any case; NULL or "": all */
};

enum top_relation { TOP_ITSELF, TOP_CALLER, TOP_CALLEE };

struct top_row {
    const char *name;   /* not escaped; never empty */
    const char *binary; /* or "" */
    uint32_t pid;       /* of processes */
    enum top_relation relation;
    bool kernel;
    int64_t self_ns, total_ns; /* CPU time; of neighbours total_ns, what flows over the edge */
};

/* Rows in the order that was asked for, before the filter; the strings live as long as it does. */
struct top_table {
    struct top_row *rows;
    size_t count;
    size_t hidden;    /* rows that the filter left out */
    int64_t whole_ns; /* what shares are of */
    uint64_t samples; /* what they rest on, of the chosen process */
    uint64_t lost;    /* of all processes */
    const char *loss; /* of the newest slice that has one, or "" */
    uint64_t loss_count;
    int64_t duration_ns;
    struct profile names;
};

void top_table_release(struct top_table *table);
#define _cleanup_top_table_ __attribute__((cleanup(top_table_release)))

void top_functions(const struct top_window *window, const struct top_query *query,
                   struct top_table *ret_table);

/* One row per process, whatever the query says about one. */
void top_processes(const struct top_window *window, const struct top_query *query,
                   struct top_table *ret_table);

/* The callers of a function, largest first, the function itself, and what it calls. A stack counts
 * once for an edge, however often recursion goes over it. */
void top_neighbours(const struct top_window *window, const struct top_query *query,
                    const char *name, const char *binary, struct top_table *ret_table);
