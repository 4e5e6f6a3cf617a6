/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as viewers of time want them: thread by thread, in the order of their times. Shared by
 * the writers of Firefox's and Chrome's formats.
 */
#pragma once

#include "profile/naming.h"
#include "profile/profile.h"

struct timeline_thread {
    int64_t pid, tid;            /* 0: not known */
    uint32_t name, process_name; /* strings of the profile; 0: not known */
    size_t first, count;         /* in `samples` */
};

struct timeline_sample {
    uint32_t thread;
    uint32_t node;
    uint32_t labels;  /* the label set */
    int64_t time_ns;  /* since `start_ns` */
    int64_t value;    /* of the type, above 0 */
    int64_t until_ns; /* the thread's next sample; of the last one, its own length behind it */
};

struct timeline {
    const struct profile *profile;
    struct naming naming;
    unsigned type;
    int64_t start_ns; /* since the epoch; 0: not known */
    bool timed;       /* samples have times; otherwise they follow each other in the tree's order */
    struct timeline_thread *threads;
    size_t thread_count, thread_capacity;
    struct timeline_sample *samples;
    size_t sample_count;
};

/* Rows of one sample type (-1: the default) with a value above 0. */
int timeline_init(struct timeline *timeline, const struct profile *profile, int type,
                  struct error *error);
void timeline_release(struct timeline *timeline);
#define _cleanup_timeline_ __attribute__((cleanup(timeline_release)))

static inline const char *timeline_unit(const struct timeline *timeline)
{
    return profile_text(timeline->profile, timeline->profile->types[timeline->type].unit);
}
