/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as Parca's agent sends them: Arrow streams (docs/formats/parca.md). Those of its version
 * 2 hold everything; those of version 1 name stacks by ids, whose frames come in a second stream.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "profile/profile.h"

struct parca_input {
    const void *samples;
    size_t samples_length;
    const void *stacks; /* the second stream; NULL: none */
    size_t stacks_length;
    size_t expansion_limit; /* bytes that compressed parts may expand to, together */
    uint64_t row_limit;
};

/* Takes the samples of one type. `total`: values count from the start of their process. The profile
 * may be emptied. */
typedef int parca_take_fn(void *context, struct profile *profile, bool total, struct error *error);

/* A profile for each type of samples, each sample with its labels. */
int parca_read(const struct parca_input *input, enum profile_detail detail, parca_take_fn *take,
               void *context, struct error *error);

/* Of samples of version 1: appends an Arrow stream with the ids of all their stacks, which asks the
 * agent for their frames. Returns how many; 0: the samples hold their stacks, and nothing is
 * appended. */
int64_t parca_ask(const struct parca_input *input, struct buffer *out, struct error *error);
