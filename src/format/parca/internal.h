/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of Parca's reader. */
#pragma once

#include "base/idtable.h"
#include "format/parca/parca.h"
#include "io/arrow/arrow.h"

#define PARCA_LABELS_MAX 128

/* Lines and frames that one request may have us look at: lists may overlap, so that the size of a
 * request doesn't bound them. */
#define PARCA_FRAMES_MAX (16u << 20)
#define PARCA_DEPTH_MAX 65536

struct parca_range {
    uint32_t first, count;
};

/* Frames and nodes of the profile that is being made. */
struct parca_frames {
    struct profile *profile;
    uint32_t *frames; /* of locations, one after the other, outermost first */
    size_t frame_count, frame_capacity;
    const struct arrow_array *locations; /* what `ranges` are of */
    struct parca_range *ranges;          /* by location; count 0: not looked at yet */
    struct id_table nodes_by_range;
    struct parca_node {
        uint64_t first, count;
        uint32_t node;
    } * nodes; /* of lists */
    size_t node_count, node_capacity;
    uint32_t *path; /* of a stack, outermost first */
    size_t path_capacity;
    uint32_t unknown; /* the node of samples without a stack; 0: not made yet */
    uint64_t left;    /* of PARCA_FRAMES_MAX */
};

void parca_frames_begin(struct parca_frames *frames, struct profile *profile);
void parca_frames_release(struct parca_frames *frames);

/* The node of a stack, which is a list of locations, innermost first. */
int parca_node(struct parca_frames *frames, struct arrow_cell stack, uint32_t *ret_node,
               struct error *error);
