// SPDX-License-Identifier: Apache-2.0
// Loose stacks become nodes, and their samples rows of these: see loose.h.

#include "profile/loose.h"

#include "base/memory.h"
#include "profile/tables.h"

uint32_t loose_node(struct loose_stacks *loose, uint32_t stack, uint32_t *scratch)
{
    uint32_t count = loose->stack(loose, stack, scratch);
    for (uint32_t i = 0; i < count; i++)
        scratch[i] = loose->frame(loose, scratch[i]);
    return profile_path(loose->profile, scratch, count);
}

void profile_settle(struct profile *profile)
{
    struct loose_stacks *loose = profile->loose;
    if (!loose)
        return;
    _cleanup_free_ uint32_t *scratch = memory_alloc((loose->deepest + 1ul) * sizeof(*scratch));
    struct profile_samples from = profile->samples;
    profile->samples = (struct profile_samples){0};
    id_table_release(&profile->tables->sample_index);
    for (unsigned type = 0; type < profile->type_count; type++)
        profile->samples.values[type] = memory_zalloc(0, sizeof(int64_t));
    for (size_t i = 0; i < from.count; i++) {
        size_t row = profile_sample(profile, loose_node(loose, from.node[i], scratch),
                                    from.labels[i], from.link ? from.link[i] : 0, 0);
        for (unsigned type = 0; type < profile->type_count; type++)
            profile_add_value(profile, row, type, from.values[type][i]);
    }
    free(from.node);
    free(from.labels);
    free(from.link);
    free(from.time_ns);
    for (unsigned type = 0; type < profile->type_count; type++)
        free(from.values[type]);
    loose->free(loose);
    profile->loose = NULL;
}
