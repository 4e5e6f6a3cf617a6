/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies single stacks from one profile into another. For a few of many stacks this need not
 * translate all tables, as profile_merge does: each frame and node is translated when it is first
 * met.
 */
#pragma once

#include "profile/profile.h"

/* Zero-initialised but for `to`. */
struct graft {
    struct profile *to;
    const struct profile *from;
    uint64_t from_serial;     /* another profile may be where one was */
    uint32_t *frames, *nodes; /* of `from`, what they are in `to`; 0: not known yet */
    size_t frame_room, node_room;
    uint32_t *path;
    size_t path_room;
};

void graft_release(struct graft *graft);
#define _cleanup_graft_ __attribute__((cleanup(graft_release)))

/* Sets the source. The profile may have grown since, but must not have changed otherwise. */
void graft_from(struct graft *graft, const struct profile *from);

uint32_t graft_frame(struct graft *graft, uint32_t frame);
uint32_t graft_node(struct graft *graft, uint32_t node);
