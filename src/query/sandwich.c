// SPDX-License-Identifier: Apache-2.0
// A function with its callers and callees: see sandwich.h.

#include "query/sandwich.h"

#include <string.h>

#include "base/memory.h"
#include "query/graft.h"

void sandwich_release(struct sandwich *sandwich)
{
    ranking_release(&sandwich->callers);
    ranking_release(&sandwich->callees);
    profile_release(&sandwich->above);
    profile_release(&sandwich->below);
}

int sandwich_simplify(const struct profile *profile, const struct calltree_simpler *simpler,
                      struct profile *ret_simple, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    profile_init(ret_simple, profile->detail & PROFILE_ORIGINAL_NAMES);
    calltree_init(&tree);
    int r = calltree_add(&tree, profile, CALLTREE_NEW, error);
    if (r < 0 || !tree.type_count)
        return r;
    calltree_simplify(&tree, simpler);
    const struct calltree_type *type = &tree.types[0];
    profile_type(ret_simple, profile_cstring(ret_simple, type->name),
                 profile_cstring(ret_simple, type->unit));
    _cleanup_free_ uint32_t *nodes = memory_zalloc(tree.node_count, sizeof(*nodes));
    for (uint32_t i = 1; i < tree.node_count; i++) {
        const struct calltree_function *function = &tree.functions[tree.nodes[i].function];
        struct profile_frame frame = {.kind = function->kind, .inlined = tree.nodes[i].inlined};
        frame.function = profile_function(
            ret_simple, &(struct profile_function){
                            .name = profile_string(ret_simple, function->name, function->length),
                            .file = profile_cstring(ret_simple, function->file)});
        if (function->binary[0])
            frame.mapping = profile_mapping(
                ret_simple,
                &(struct profile_mapping){.limit = UINT64_MAX,
                                          .file = profile_cstring(ret_simple, function->binary)});
        nodes[i] = profile_child(ret_simple, nodes[tree.nodes[i].parent],
                                 profile_frame(ret_simple, &frame));
        if (type->self[CALLTREE_NEW][i])
            profile_add_value(ret_simple, profile_sample(ret_simple, nodes[i], 0, 0, 0), 0,
                              type->self[CALLTREE_NEW][i]);
    }
    return 0;
}

struct cutting {
    const struct profile *profile;
    const struct naming *naming;
    const bool *chosen;
    struct graft above, below;
    uint32_t *path; /* frames of one stack, the outermost first */
    size_t path_room;
};

static void add_stack(struct graft *graft, const uint32_t *frames, size_t count, bool upwards,
                      int64_t value)
{
    uint32_t node = 0;
    for (size_t i = 0; i < count; i++)
        node =
            profile_child(graft->to, node, graft_frame(graft, frames[upwards ? count - 1 - i : i]));
    profile_add_value(graft->to, profile_sample(graft->to, node, 0, 0, 0), 0, value);
}

/* Returns whether the function is on the stack at all. */
static bool cut(struct cutting *cutting, uint32_t leaf, int64_t value)
{
    const struct profile_node *nodes = cutting->profile->nodes;
    size_t depth = 0, outermost = SIZE_MAX;
    for (uint32_t node = leaf; node; node = nodes[node].parent) {
        array_reserve(cutting->path, cutting->path_room, depth + 1);
        cutting->path[depth] = nodes[node].frame;
        if (cutting->chosen[cutting->naming->of_frame[nodes[node].frame]])
            outermost = depth;
        depth++;
    }
    if (outermost == SIZE_MAX)
        return false;
    /* The path runs from the leaf to the root here. */
    add_stack(&cutting->above, cutting->path + outermost, depth - outermost, false, value);
    add_stack(&cutting->below, cutting->path, outermost + 1, true, value);
    return true;
}

static void prepare(struct profile *part, const struct profile *profile, struct graft *graft)
{
    const struct profile_type *type = &profile->types[0];
    graft->to = part;
    graft_from(graft, profile);
    profile_type(part, profile_cstring(part, profile_text(profile, type->type)),
                 profile_cstring(part, profile_text(profile, type->unit)));
}

bool sandwich_init(struct sandwich *sandwich, const struct profile *profile,
                   const struct naming *naming, const char *function)
{
    *sandwich = (struct sandwich){0};
    profile_init(&sandwich->above, profile->detail & PROFILE_ORIGINAL_NAMES);
    profile_init(&sandwich->below, profile->detail & PROFILE_ORIGINAL_NAMES);
    _cleanup_free_ bool *chosen = memory_zalloc(naming->count + 1u, sizeof(*chosen));
    bool known = false;
    for (uint32_t i = 0; i < naming->count; i++)
        known |= chosen[i] = !strcmp(naming->entries[i].name, function);
    if (!known || !profile->type_count)
        return false;
    struct cutting cutting = {.profile = profile, .naming = naming, .chosen = chosen};
    prepare(&sandwich->above, profile, &cutting.above);
    prepare(&sandwich->below, profile, &cutting.below);
    _cleanup_free_ int64_t *values = profile_node_values(profile, 0);
    for (uint32_t node = 1; node < profile->node_count; node++)
        if (values[node] && cut(&cutting, node, values[node]))
            sandwich->cumulative = add_saturated(sandwich->cumulative, values[node]);
    graft_release(&cutting.above);
    graft_release(&cutting.below);
    free(cutting.path);
    int64_t none;
    rank_neighbours(profile, naming, 0, chosen, RANK_CALLERS, &sandwich->callers, &none);
    rank_neighbours(profile, naming, 0, chosen, RANK_CALLEES, &sandwich->callees, &sandwich->flat);
    sandwich->total = sandwich->callees.total;
    return true;
}
