/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up fleet: services with call graphs, hosts in regions that run them, versions that are
 * deployed, and the profiles that an agent on each host would upload. Everything follows from the
 * seed, the agent and the round: the same arguments give the same bytes, in any order, on any
 * machine.
 *
 * A fleet is not changed after fleet_init, except for scratch space that fleet_upload uses: one
 * thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"

#define FLEET_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define FLEET_PERIOD_NS 10000000ll /* CPU time that one sample stands for: 100 a second */

enum fleet_format { FLEET_OTLP, FLEET_PPROF };
enum fleet_coding { FLEET_GZIP, FLEET_ZSTD, FLEET_PLAIN };

struct fleet_options {
    uint64_t seed;
    uint32_t agents, services; /* at least 1 of each */
    uint32_t services_per_agent;
    uint32_t rows;       /* of one service in one upload */
    uint32_t stacks;     /* that a service has and comes back to */
    double known;        /* share of rows whose stack is one of these; the rest is never again */
    uint32_t deploy;     /* round from which on services run their second version; 0: none */
    double regression;   /* how much more the first service's second version takes in one place */
    int64_t start_ns;    /* of the first window */
    int64_t interval_ns; /* of a window */
    enum fleet_format format;
    enum fleet_coding coding;
};

struct fleet_stack { /* outermost first */
    uint32_t first, depth;
};

struct fleet_service {
    char name[32];
    uint32_t first_function; /* its own; ids below fleet.shared_functions are everybody's */
    struct fleet_stack *stacks;
    uint32_t *locations; /* of its stacks, one after the other */
    bool jit;            /* code that is made while it runs: new names all the time */
};

struct fleet_function {
    const char *name, *file;
    uint32_t line;
    uint32_t binary; /* see fleet.c; 0: the service's own */
};

struct fleet {
    struct fleet_options options;
    struct arena names;
    struct fleet_function *functions;
    uint32_t shared_functions, function_count;
    struct fleet_service *services;
    double *popularity; /* running sums of a stack's weight, by rank */
    uint32_t slow;      /* the function that gets slower */
    uint32_t *frame_of; /* scratch: by location, frames of the profile being made */
    uint32_t *frame_stamp, stamp;
    size_t location_count;
};

void fleet_init(struct fleet *fleet, const struct fleet_options *options);
void fleet_release(struct fleet *fleet);

/* How many uploads an agent makes in a round: one with OTLP, one for each service with pprof. */
uint32_t fleet_uploads(const struct fleet *fleet);

/* Uploads that hold every stack of every service once, as a fleet that has been running would have
 * sent before: fleet_upload with the round FLEET_PRIME and these as agents. */
#define FLEET_PRIME UINT32_MAX
uint32_t fleet_primers(const struct fleet *fleet);

/* The data sent for one service; rows that add up are one. */
struct fleet_sum {
    uint32_t service;
    uint64_t rows;
    int64_t value;
};

struct fleet_upload {
    struct buffer body;     /* compressed as asked for */
    char target[512];       /* path and parameters */
    char batch_id[64];      /* other for each upload of a fleet */
    struct fleet_sum *sums; /* one for each service in it */
    uint32_t sum_count;
    uint64_t rows;
};
void fleet_upload_release(struct fleet_upload *upload);

/* The agent's data of that round; `part` counts its uploads. */
void fleet_upload_make(struct fleet *fleet, uint32_t agent, uint32_t round, uint32_t part,
                       struct fleet_upload *ret_upload);

/* The function that is slower from the deployment on. */
const char *fleet_slow_function(const struct fleet *fleet);
