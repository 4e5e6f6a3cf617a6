// SPDX-License-Identifier: Apache-2.0
// Unresolved stacks become nodes, and their samples rows of these: see unresolved.h.

#include "profile/unresolved.h"

#include "base/memory.h"
#include "profile/tables.h"

uint32_t unresolved_node(struct unresolved_stacks *unresolved, uint32_t stack, uint32_t *scratch)
{
    uint32_t count = unresolved->stack(unresolved, stack, scratch);
    for (uint32_t i = 0; i < count; i++)
        scratch[i] = unresolved->frame(unresolved, scratch[i]);
    return profile_path(unresolved->profile, scratch, count);
}

void profile_settle(struct profile *profile)
{
    struct unresolved_stacks *unresolved = profile->unresolved;
    if (!unresolved)
        return;
    _cleanup_free_ uint32_t *scratch = memory_alloc((unresolved->deepest + 1ul) * sizeof(*scratch));
    struct profile_samples from = profile->samples;
    profile->samples = (struct profile_samples){0};
    id_table_release(&profile->tables->sample_index);
    for (unsigned type = 0; type < profile->type_count; type++)
        profile->samples.values[type] = memory_zalloc(0, sizeof(int64_t));
    for (size_t i = 0; i < from.count; i++) {
        size_t row = profile_sample(profile, unresolved_node(unresolved, from.node[i], scratch),
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
    unresolved->free(unresolved);
    profile->unresolved = NULL;
}

void unresolved_choose_name(struct unresolved_function *function, struct name_text own,
                            struct name_text system, uint64_t seed)
{
    _cleanup_buffer_ struct buffer name = {0};
    if (!name_of_function(own, system, &name))
        return;
    if (!system.length)
        function->system_name = function->name;
    function->name = unresolved_string_hash(name.data, name.length, seed);
}
