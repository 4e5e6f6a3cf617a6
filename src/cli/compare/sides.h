/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the files of both sides of a comparison. Each file is a replicate of its side, and its
 * windows are replicates where its samples have times. */
#pragma once

#include "cli/input.h"
#include "compare/table.h"

struct sides_options {
    struct input_options input;
    struct filter_options filter;
    const char *type;
    struct option_list files[COMPARE_SIDES];
    double requests[COMPARE_SIDES]; /* 0: not given */
};

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
int sides_read(const struct sides_options *options, const char *command, struct sides *ret_sides);
void sides_release(struct sides *sides);
#define _cleanup_sides_ __attribute__((cleanup(sides_release)))
