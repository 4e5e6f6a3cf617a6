/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks and label sets that outlive the profile that they came in: an agent's profile lasts ten
 * seconds, an allocation may live for days. They are kept in a profile of their own and translated
 * both ways; what was translated once costs an array look-up for as long as the other profile is
 * the same. One thread at a time.
 */
#pragma once

#include "profile/profile.h"

struct kept_map {
    uint32_t *ids; /* id + 1 in the other profile; 0: not translated yet */
    size_t capacity;
};

struct kept {
    struct profile profile;
    uint64_t other; /* serial of the profile that the maps are of */
    struct kept_map frames_in, frames_out, labels_in, labels_out;
};

void kept_init(struct kept *kept);
void kept_release(struct kept *kept);

/* From `other` to what is kept, frames outermost first. */
uint32_t kept_stack_in(struct kept *kept, const struct profile *other, const uint32_t *frames,
                       size_t count);
uint32_t kept_labels_in(struct kept *kept, const struct profile *other, uint32_t labels);
/* And back. */
uint32_t kept_stack_out(struct kept *kept, struct profile *other, uint32_t stack);
uint32_t kept_labels_out(struct kept *kept, struct profile *other, uint32_t labels);
