// SPDX-License-Identifier: Apache-2.0
// One part of the call tree, which a page requests to show more detail there. Stacks keep their
// beginning, so the part fits into the original tree.

#include "query/focus.h"

#include <string.h>

#include "base/memory.h"

#define OUTSIDE UINT32_MAX

/* How many of the names lead to each node; OUTSIDE where another frame is on the way. */
static uint32_t *follow(const struct profile *profile, const struct naming *naming,
                        const char *const *names, size_t count)
{
    uint32_t *reached = memory_zalloc(profile->node_count, sizeof(*reached));
    for (uint32_t node = 1; node < profile->node_count; node++) {
        uint32_t above = reached[profile->nodes[node].parent];
        uint32_t entry = naming->of_frame[profile->nodes[node].frame];
        if (above == OUTSIDE || above == count)
            reached[node] = above;
        else if (entry != NAMING_NONE && !strcmp(naming->entries[entry].name, names[above]))
            reached[node] = above + 1;
        else
            reached[node] = OUTSIDE;
    }
    return reached;
}

bool focus_below(struct profile *profile, const struct naming *naming, const char *const *names,
                 size_t count)
{
    _cleanup_free_ uint32_t *reached = follow(profile, naming, names, count);
    const struct profile_samples *samples = &profile->samples;
    bool found = false;
    for (size_t row = 0; row < samples->count && !found; row++)
        found = reached[samples->node[row]] == count;
    for (size_t row = 0; found && row < samples->count; row++)
        for (unsigned type = 0; type < profile->type_count; type++)
            if (reached[samples->node[row]] != count)
                samples->values[type][row] = 0;
    return found;
}
