/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings whose frames have addresses as the linker gave them (PROFILE_BY_ADDRESS), and what files
 * have in their place. */
#pragma once

#include "profile/profile.h"

static inline bool profile_by_address(const struct profile_mapping *mapping)
{
    return mapping->offset == PROFILE_BY_ADDRESS;
}

/* In files, such a mapping covers all addresses from 0 on, as pprof has it. Readers ask this of
 * mappings that have a build ID: only by that can their frames get names. */
static inline bool profile_covers_all(uint64_t start, uint64_t limit, uint64_t offset)
{
    return !start && !offset && limit == UINT64_MAX;
}
