/* SPDX-License-Identifier: Apache-2.0 */
/* A sample's context in terms of the profile: a link to its span, and labels of
 * its attributes. */
#pragma once

#include "capture/record/contexts.h"
#include "profile/profile.h"

struct recorder;

struct sample_context {
    uint32_t link; /* 0: it was in no span */
    struct profile_label labels[CONTEXT_ATTRIBUTES_MAX + 1];
    size_t label_count;
};

/* As read in the kernel. */
void sample_context_of(struct recorder *recorder, struct process *process,
                       const struct bpf_sample_context *read, struct sample_context *ret_context);

/* The label set of the context alone, and a label set with those of another. NULL is none. */
uint32_t sample_context_set(struct profile *profile, const struct sample_context *context);
uint32_t sample_context_add(struct profile *profile, uint32_t labels, uint32_t more);
