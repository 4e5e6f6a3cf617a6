/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many different values each label name of each tenant has lately. A value that has been seen
 * within a window or two is known; new ones are admitted until the limit is reached. Values that
 * stay away make room: pods come and go for years, but never all at once.
 *
 * Values are kept as 64-bit hashes with a random seed, 11 to 43 bytes each. Two values that share
 * one are counted as one, which costs nothing but exactness. Threads can share a table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cardinality_limits {
    uint32_t values; /* different values of a name of a tenant */
    uint32_t names;  /* different names of a tenant */
    uint32_t total;  /* values of all names of all tenants: bounds the memory */
    int64_t window_ns;
};

enum cardinality_answer {
    CARDINALITY_KNOWN,
    CARDINALITY_NEW,
    CARDINALITY_FULL,  /* this value is one too many */
    CARDINALITY_NAMES, /* so is this name */
};

/* One name of one tenant. */
struct cardinality_stats {
    const char *tenant, *name;
    uint32_t values;    /* known now */
    uint64_t refused;   /* times a value was one too many */
    int64_t refused_ns; /* when that was last; 0: never */
};

struct cardinality;

struct cardinality *cardinality_new(const struct cardinality_limits *limits);
void cardinality_free(struct cardinality *cardinality);

/* Notes that the value was seen now. `now_ns` only ever grows; a step back changes nothing. */
enum cardinality_answer cardinality_note(struct cardinality *cardinality, const char *tenant,
                                         const char *name, const char *value, int64_t now_ns);

/* All names, in no particular order; the texts are the callback's for as long as it runs. */
void cardinality_each(struct cardinality *cardinality,
                      void (*callback)(void *context, const struct cardinality_stats *stats),
                      void *context);
