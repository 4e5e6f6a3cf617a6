// SPDX-License-Identifier: Apache-2.0
// Pyroscope's selection of stacks: those of a call site, and for Go's profile-guided optimisation
// the innermost calls only, which is all that the compiler looks at.

#include <string.h>

#include "query/graft.h"
#include "server/pyroscope/querier.h"

bool querier_stacks_selected(const struct rpc_request *stack)
{
    return stack && (stack->call_site.count || (stack->pgo && (stack->pgo->keep_locations > 0 ||
                                                               stack->pgo->aggregate_callees)));
}

/* Which nodes are in the calls that, from the root, begin with these names. */
static bool *find_inside(const struct profile *profile, const struct rpc_texts *names)
{
    _cleanup_free_ uint32_t *depth = memory_zalloc(profile->node_count, sizeof(*depth));
    _cleanup_free_ bool *begins = memory_zalloc(profile->node_count, sizeof(*begins));
    bool *inside = memory_zalloc(profile->node_count, sizeof(*inside));
    begins[0] = true;
    inside[0] = !names->count;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        const struct profile_frame *frame = &profile->frames[node->frame];
        uint32_t at = depth[node->parent];
        depth[i] = at + 1;
        begins[i] = begins[node->parent] &&
                    (at >= names->count ||
                     !strcmp(profile_text(profile, profile->functions[frame->function].name),
                             names->list[at]));
        inside[i] = begins[i] && depth[i] >= names->count;
    }
    return inside;
}

/* The innermost of a stack's frames, as many as their locations take; what was inlined is in the
 * location of what it was inlined into. Callees are one, wherever in them samples were taken. */
static uint32_t cut_stack(struct graft *graft, uint32_t node, const struct rpc_request *pgo,
                          uint32_t **path, size_t *capacity)
{
    const struct profile *from = graft->from;
    size_t count = 0;
    int64_t locations = 0;
    for (; node; node = from->nodes[node].parent) {
        const struct profile_frame *frame = &from->frames[from->nodes[node].frame];
        array_reserve(*path, *capacity, count + 1);
        uint32_t id = graft_frame(graft, from->nodes[node].frame);
        if (!count && pgo->aggregate_callees) {
            struct profile_frame callee = graft->to->frames[id];
            callee.line = 0;
            callee.address = frame->inlined ? callee.address : 0;
            id = profile_frame(graft->to, &callee);
        }
        (*path)[count++] = id;
        locations += !frame->inlined;
        if (pgo->keep_locations > 0 && locations >= pgo->keep_locations)
            break;
    }
    for (size_t i = 0; i < count / 2; i++) { /* the outermost first */
        uint32_t swap = (*path)[i];
        (*path)[i] = (*path)[count - 1 - i];
        (*path)[count - 1 - i] = swap;
    }
    return profile_stack(graft->to, *path, count);
}

static uint32_t copy_text(const struct profile *from, struct profile *to, uint32_t string)
{
    const char *text = profile_text(from, string);
    return profile_string(to, text, strlen(text));
}

void querier_select_stacks(const struct rpc_request *stack, const struct profile *from,
                           struct profile *to)
{
    _cleanup_graft_ struct graft graft = {.to = to};
    _cleanup_free_ bool *inside = find_inside(from, &stack->call_site);
    _cleanup_free_ uint32_t *path = NULL;
    size_t capacity = 0;
    bool cut = stack->pgo && querier_stacks_selected(&(struct rpc_request){.pgo = stack->pgo});
    graft_from(&graft, from);
    for (unsigned type = 0; type < from->type_count; type++)
        profile_type(to, copy_text(from, to, from->types[type].type),
                     copy_text(from, to, from->types[type].unit));
    profile_note_period(to, copy_text(from, to, from->period_type.type),
                        copy_text(from, to, from->period_type.unit), from->period);
    to->time_ns = from->time_ns;
    to->duration_ns = from->duration_ns;
    for (size_t row = 0; from->type_count && row < from->samples.count; row++) {
        uint32_t node = from->samples.node[row];
        int64_t value = from->samples.values[0][row];
        if (!value || !inside[node])
            continue;
        node =
            cut ? cut_stack(&graft, node, stack->pgo, &path, &capacity) : graft_node(&graft, node);
        profile_add_value(to, profile_sample(to, node, 0, 0, 0), 0, value);
    }
}
