/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up program to profile: functions in packages and binaries, a call graph between them, the
 * locations (call sites and leaf addresses) that stacks consist of, and random walks over it. All
 * of it follows from the seed, on every machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct random {
    uint64_t state; /* never 0 */
};

struct random random_start(uint64_t seed);
uint64_t random_next(struct random *random);
/* 0 to limit - 1; limit > 0. */
uint32_t random_below(struct random *random, uint32_t limit);
bool random_percent(struct random *random, uint32_t percent);

/* Draws 0 to count - 1, rank r with a weight of 1 / (r + 1). */
struct zipf {
    double *sums;
    uint32_t count;
};

void zipf_init(struct zipf *zipf, uint32_t count);
void zipf_release(struct zipf *zipf);
uint32_t zipf_draw(const struct zipf *zipf, struct random *random);

struct program_function {
    const char *name;
    const char *file;
    uint32_t file_id; /* equal for functions of one file; less than program.function_count */
    uint32_t start_line;
    uint32_t binary;
    uint32_t first_call; /* into program.calls */
    uint32_t call_count;
    uint32_t runtime_calls; /* how many of them, the last ones, go to the runtime */
    uint32_t first_leaf;    /* into program.locations: where samples end in this function */
    uint32_t leaf_count;
    uint32_t code_bytes;
    uint64_t address;
};

struct program_call {
    uint32_t location; /* the call site, in the caller */
    uint32_t callee;
};

struct program_location {
    uint64_t address;
    uint32_t function;
    uint32_t line;
    uint32_t inlined; /* a function inlined at this place; UINT32_MAX: none */
    uint32_t inlined_line;
};

struct program_binary {
    const char *file;
    const char *build_id;
    uint64_t start;
    uint64_t limit;
};

#define PROGRAM_BINARIES 5

struct program {
    struct arena names;
    struct program_binary binaries[PROGRAM_BINARIES];
    struct program_function *functions;
    uint32_t function_count;
    uint32_t runtime_start; /* functions from here on are the runtime that everything calls */
    struct program_call *calls;
    size_t call_count, call_capacity;
    struct program_location *locations;
    size_t location_count, location_capacity;
};

void program_init(struct program *program, uint32_t function_count, struct random *random);
void program_release(struct program *program);

/* Distinct stacks, each of 8 to 48 locations, outermost caller first. */
struct stacks {
    uint32_t *locations;
    size_t location_count, location_capacity;
    size_t *starts; /* count + 1 of them */
    size_t count, capacity;
};

void stacks_release(struct stacks *stacks);

/* Adds `count` stacks that differ from each other and from those that are there. */
void stacks_add(struct stacks *stacks, const struct program *program, size_t count,
                struct random *random);
