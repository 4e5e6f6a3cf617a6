/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the samples of a picture were taken, and in which thread: the member `times` of
 * docs/formats/flame-data.md, for heat maps and timelines of threads.
 */
#pragma once

#include "format/timeline/timeline.h"
#include "io/json_write.h"
#include "profile/views/calltree.h"

/* Some tens of megabytes in a page; a profile with more has none. */
#define FLAME_TIMES_MAX 1000000

struct flame_times {
    struct timeline timeline;
    bool there; /* the profile's samples have times */
};

/* Of one of the profile's types, after states were added; the tree follows the samples' nodes from
 * then on. There are none of levels, and of profiles without times or with too many samples. */
void flame_times_init(struct flame_times *times, struct calltree *tree,
                      const struct profile *profile, unsigned type);
void flame_times_release(struct flame_times *times);
#define _cleanup_flame_times_ __attribute__((cleanup(flame_times_release)))

/* Adds the member, or nothing when there are none. */
void flame_times_write(struct json_writer *json, const struct calltree *tree,
                       const struct flame_times *times);
