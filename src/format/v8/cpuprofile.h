/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two halves of the .cpuprofile reader: cpuprofile.c walks the JSON and fills these
 * tables, cpuprofile_tree.c turns them into samples of the model. Samples and the time between them
 * are two arrays, in either order, so both are held until the end: twelve bytes for each sample.
 */
#pragma once

#include "base/idtable.h"
#include "format/format.h"
#include "io/json.h"

#define CPUPROFILE_NONE UINT32_MAX

struct cpuprofile_node {
    uint64_t hits;   /* or bytes, in a heap profile */
    uint32_t id;     /* as in the file */
    uint32_t parent; /* index of a node, or CPUPROFILE_NONE */
    uint32_t frame;  /* of the model */
    uint32_t stack;  /* node of the model, once the tree is known */
    bool root;       /* it is called "(root)" */
};

struct cpuprofile_edge { /* ids as in the file */
    uint32_t parent;
    uint32_t child;
};

struct cpuprofile {
    struct json json;
    struct profile *profile;

    struct cpuprofile_node *nodes;
    size_t node_count, node_capacity;
    struct id_table node_index; /* by id */
    uint64_t seed;
    struct cpuprofile_edge *edges;
    size_t edge_count, edge_capacity;

    uint32_t *samples; /* ids of nodes */
    size_t sample_count, sample_capacity;
    int64_t *times_ns; /* as read, the time since the previous sample unless `absolute` */
    size_t time_count, time_capacity;
    bool absolute;

    struct json_number start, end;
    bool has_start, has_end;
    bool has_nodes;
    bool nested;      /* the old form, in which start and end are in seconds */
    bool partial;     /* nodes may be missing: a trace can begin late, and lose pieces */
    uint64_t missing; /* samples that were left out for that */
};

void cpuprofile_init(struct cpuprofile *file, struct source *source, struct profile *profile,
                     struct error *error);
void cpuprofile_release(struct cpuprofile *file);

/* Adds a node, or fails when its id is taken. */
int cpuprofile_add_node(struct cpuprofile *file, const struct cpuprofile_node *node,
                        uint32_t *ret_index);

/* Reads the value of a key of a profile's object where it is one of its parts. */
int cpuprofile_read_member(struct cpuprofile *file, const struct json_string *key);

/* Reads a tree of nested nodes, with its functions in the nodes themselves or in call frames. */
int cpuprofile_read_head(struct cpuprofile *file);

/* Gives every node its stack in the model. */
int cpuprofile_resolve_stacks(struct cpuprofile *file);

/* chrome_trace_write.c */
int chrome_trace_write(struct buffer *out, const struct profile *profile,
                       const struct write_options *options, struct error *error);

/* Moves everything into the model. */
int cpuprofile_resolve(struct cpuprofile *file);
