/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the files of both sides of a comparison. Each file is a replicate of its side, and its
 * windows are replicates where its samples have times. */
#pragma once

#include "cli/input.h"
#include "cli/remote/inputs.h"
#include "compare/table.h"

struct sides_options {
    struct input_options input;
    struct filter_options filter;
    const char *type;
    struct option_list files[COMPARE_SIDES];
    double requests[COMPARE_SIDES]; /* 0: not given */
    struct remote_inputs remote;
};

/* The label of a profile's samples that names hosts, when it has several values; NULL: none. */
const char *sides_host_label(const struct profile *profile);

/* Sets requests that were given, by side; 0: those that the profiles count, if they do. */
void sides_set_requests(struct compare_table *table, const double *requests);

/* The sample type that is compared: `name`, or the default one; never what a profile says of
 * itself beside its values (covered times and requests). Returns 0 or an exit code. */
int sides_type(const struct profile *profile, const char *name, const char *command,
               unsigned *ret_type);

/* Divides the values of a type; their sum is rounded once. */
void sides_divide(struct profile *profile, unsigned type, double divisor);

struct sides_file {
    struct profile profile;
    struct naming naming;
};

struct sides {
    struct sides_file *files; /* those of the base first */
    struct compare_source *sources;
    size_t count;
    struct compare_table table;
    const char *type, *unit; /* of the values that are compared */
};

/* Reads and checks everything, and explains on stderr what is wrong. Returns 0 or an exit code. */
int sides_read(struct sides_options *options, const char *command, struct sides *ret_sides);
void sides_release(struct sides *sides);
#define _cleanup_sides_ __attribute__((cleanup(sides_release)))
