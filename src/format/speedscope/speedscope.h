/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the speedscope reader's two halves: speedscope_read.c walks the JSON and fills these
 * tables, speedscope_stacks.c moves them into a profile. A file may give its frames, units and
 * names after the stacks that use them, so stacks are kept as indexes into the file's own frames
 * until its end; memory follows the number of distinct stacks.
 */
#pragma once

#include "base/idtable.h"
#include "format/format.h"
#include "io/json.h"

/* Our own files name profiles after sample types; this prefix identifies them. */
#define SPEEDSCOPE_EXPORTER "assay@"

/* In 10^-12 of the file's unit: weights are often fractions, and must not vanish by rounding. */
typedef __int128 speedscope_amount;
#define SPEEDSCOPE_DIGITS 12
#define SPEEDSCOPE_AMOUNT_MAX ((speedscope_amount)1 << 120)

/* Sums stop at the limit. Single amounts are below 2^104, so that nothing overflows on the way. */
static inline speedscope_amount speedscope_sum(speedscope_amount a, speedscope_amount b)
{
    speedscope_amount sum = a + b;
    if (sum > SPEEDSCOPE_AMOUNT_MAX)
        return SPEEDSCOPE_AMOUNT_MAX;
    return sum < -SPEEDSCOPE_AMOUNT_MAX ? -SPEEDSCOPE_AMOUNT_MAX : sum;
}

struct speedscope_row {
    speedscope_amount amount;
    speedscope_amount at; /* where it begins, from its profile's `origin` */
    uint32_t node;
    uint32_t profile;
};

struct speedscope_profile {
    speedscope_amount origin; /* what the rows' `at` counts from */
    speedscope_amount duration;
    uint32_t name; /* string of the model */
    bool bytes;
    bool time;
    int power; /* of ten, from the unit to nanoseconds */
};

struct speedscope_stack {
    uint64_t hash[2]; /* stands for the stack itself, as in the model */
    uint32_t node;
};

struct speedscope {
    struct json json;
    struct profile *profile;

    uint32_t *frames; /* the file's frames: frames of the model */
    size_t frame_count, frame_capacity;
    uint64_t largest_frame, largest_offset; /* that a stack asks for, and where */

    struct profile_node
        *nodes; /* as in the model, but `frame` is an index into the file's frames */
    size_t node_count, node_capacity;
    struct id_table node_index;
    struct speedscope_stack *stacks;
    size_t stack_count, stack_capacity;
    struct id_table stack_index;
    uint64_t seed;

    struct speedscope_row *rows;
    size_t row_count, row_capacity;
    size_t *row_of_node; /* the node's latest row */
    size_t row_of_node_capacity;

    struct speedscope_profile *profiles;
    size_t profile_count, profile_capacity;
    uint32_t exporter, name; /* strings of the model */
    uint64_t active_profile;
};

void speedscope_init(struct speedscope *reader, struct source *source, struct profile *profile,
                     struct error *error);
void speedscope_release(struct speedscope *reader);

/* The node of a stack that ends with `frame` above `parent`; 0 is the empty stack. */
uint32_t speedscope_child(struct speedscope *reader, uint32_t parent, uint32_t frame);

/* The node of a whole stack, outermost first. Known stacks cost one hash. */
uint32_t speedscope_stack(struct speedscope *reader, const uint32_t *frames, size_t count);

/* Adds to the last profile. */
void speedscope_add(struct speedscope *reader, uint32_t node, speedscope_amount amount,
                    speedscope_amount at);

/* True when the tables near what 32-bit ids can count. */
bool speedscope_full(const struct speedscope *reader);

/* Moves everything into the model. */
int speedscope_resolve(struct speedscope *reader);

int speedscope_read(struct source *source, struct profile *profile, struct error *error);
int speedscope_write(struct buffer *out, const struct profile *profile,
                     const struct write_options *options, struct error *error);
