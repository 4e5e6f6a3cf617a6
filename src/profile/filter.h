/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving things out: samples by what is on their stack or in their labels, frames by their names.
 * Filters change the rows of a profile in place; tables stay as they are.
 */
#pragma once

#include "io/regex.h"
#include "profile/profile.h"

enum tag_relation { TAG_IS, TAG_IS_NOT, TAG_MATCHES };

struct tag_filter {
    const char *key;
    const char *value; /* compared with text labels, and with numbers as digits */
    enum tag_relation relation;
    const struct regex *pattern; /* for TAG_MATCHES */
};

/* Patterns are matched against a frame's function name, source file and binary. NULL: no filter. */
struct profile_filter {
    const struct regex *focus;     /* keep samples with such a frame */
    const struct regex *ignore;    /* then drop samples with such a frame */
    const struct regex *hide;      /* then take such frames out of the stacks */
    const struct tag_filter *tags; /* keep samples that pass all of them */
    size_t tag_count;
};

void profile_filter(struct profile *profile, const struct profile_filter *filter);

/*
 * Applies the profile's own drop_frames and keep_frames as pprof does when it opens a file: a stack
 * ends at the first frame (from the root) whose name matches the one and not the other, unless
 * nothing would be left. An expression that doesn't compile is an error; so is one that takes too
 * long (-EDOM).
 */
int profile_prune(struct profile *profile, struct error *error);
