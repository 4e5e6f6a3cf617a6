// SPDX-License-Identifier: Apache-2.0
// Prepares recordings of Java Flight Recorder before they are split: adds CPU time where only the
// wall clock was sampled.

#include <string.h>

#include "server/ingest/ingest.h"

static bool runs(const struct profile *profile, uint32_t label_set)
{
    size_t count;
    const struct profile_label *labels = profile_labels(profile, label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, labels[i].key), "state"))
            return strcmp(profile_text(profile, labels[i].text), "STATE_SLEEPING") != 0;
    return false;
}

void ingest_cpu_of_wall(struct profile *profile)
{
    uint32_t unit = profile_cstring(profile, "nanoseconds");
    unsigned wall = profile_find_type(profile, "wall/nanoseconds");
    if (wall == PROFILE_TYPES_MAX || profile->unresolved ||
        profile_find_type(profile, "cpu/nanoseconds") != PROFILE_TYPES_MAX)
        return;
    unsigned cpu = profile_type(profile, profile_cstring(profile, "cpu"), unit);
    if (cpu == PROFILE_TYPES_MAX)
        return;
    struct profile_samples *samples = &profile->samples;
    for (size_t i = 0; i < samples->count; i++)
        samples->values[cpu][i] = runs(profile, samples->labels[i]) ? samples->values[wall][i] : 0;
}
