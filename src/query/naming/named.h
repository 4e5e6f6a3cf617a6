/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a profile has names, and which binaries lack them. */
#pragma once

#include "profile/profile.h"

struct query_named {
    /* Over all frames of all samples, with the samples' values of the first type. */
    double named, all;
    struct query_nameless {
        uint32_t mapping; /* of the profile */
        double value;     /* of the samples with such a frame on their stack */
        uint64_t frames;  /* distinct */
    } * list;             /* most expensive first */
    size_t count;
};
void query_named_release(struct query_named *named);
#define _cleanup_query_named_ __attribute__((cleanup(query_named_release)))

/* Frames of the kernel and of code without a file count too, as mapping 0 or their own. */
void query_count_named(const struct profile *profile, struct query_named *ret_named);
