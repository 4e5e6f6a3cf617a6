// SPDX-License-Identifier: Apache-2.0
// Stacks that are too deep, as endless recursion makes them, lose their outermost frames.

#include <string.h>

#include "base/memory.h"
#include "server/ingest/ingest.h"

/* How deep each node is; returns the deepest. */
static uint32_t node_depths(const struct profile *profile, uint32_t **ret_depths)
{
    uint32_t *depths = memory_alloc(MAX(profile->node_count, 1u) * sizeof(*depths));
    uint32_t deepest = depths[0] = 0;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        depths[i] = depths[profile->nodes[i].parent] + 1;
        deepest = MAX(deepest, depths[i]);
    }
    *ret_depths = depths;
    return deepest;
}

uint64_t ingest_cut_stacks(struct profile *profile, uint64_t limit)
{
    uint32_t *depths;
    uint64_t cut = 0;
    if (!limit || profile->unresolved) /* unresolved ones were settled if any is too deep */
        return 0;
    if (node_depths(profile, &depths) <= limit) {
        free(depths);
        return 0;
    }
    struct profile_function function = {.name = profile_cstring(profile, "[truncated]")};
    struct profile_frame frame = {.function = profile_function(profile, &function)};
    uint32_t *frames = memory_alloc((limit + 1) * sizeof(*frames));
    frames[0] = profile_frame(profile, &frame);
    /* All stacks are cut at multiples of half the limit. Those that shared their callers still
     * share them then; if each kept as much as it may, every depth would be a tree of its own. */
    uint64_t half = MAX(limit / 2, 1u);
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t node = profile->samples.node[i];
        if (depths[node] <= limit)
            continue;
        uint64_t off = (depths[node] - (limit - 1) + half - 1) / half * half;
        size_t kept = depths[node] > off ? depths[node] - off : 1;
        for (size_t at = kept; at; at--, node = profile->nodes[node].parent)
            frames[at] = profile->nodes[node].frame;
        profile->samples.node[i] = profile_stack(profile, frames, kept + 1);
        cut++;
    }
    free(frames);
    free(depths);
    return cut;
}
