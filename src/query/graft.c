// SPDX-License-Identifier: Apache-2.0
// Copies stacks between profiles: see graft.h.

#include "query/graft.h"

#include <string.h>

#include "base/memory.h"

void graft_release(struct graft *graft)
{
    free(graft->frames);
    free(graft->nodes);
    free(graft->path);
    *graft = (struct graft){0};
}

static void make_room(uint32_t **list, size_t *room, size_t needed)
{
    size_t had = *room;
    array_reserve(*list, *room, needed);
    if (*room > had)
        memset(*list + had, 0, (*room - had) * sizeof(**list));
}

void graft_from(struct graft *graft, const struct profile *from)
{
    if (graft->from_serial != from->serial) {
        if (graft->frame_room)
            memset(graft->frames, 0, graft->frame_room * sizeof(*graft->frames));
        if (graft->node_room)
            memset(graft->nodes, 0, graft->node_room * sizeof(*graft->nodes));
    }
    graft->from = from;
    graft->from_serial = from->serial;
    make_room(&graft->frames, &graft->frame_room, from->frame_count);
    make_room(&graft->nodes, &graft->node_room, from->node_count);
}

static uint32_t copy_string(struct graft *graft, uint32_t string)
{
    const struct profile_string *text = &graft->from->strings[string];
    return profile_string(graft->to, text->data, text->length);
}

static uint32_t copy_function(struct graft *graft, uint32_t id)
{
    if (!id)
        return 0;
    struct profile_function function = graft->from->functions[id];
    function.name = copy_string(graft, function.name);
    function.system_name = copy_string(graft, function.system_name);
    function.file = copy_string(graft, function.file);
    return profile_function(graft->to, &function);
}

static uint32_t copy_mapping(struct graft *graft, uint32_t id)
{
    if (!id)
        return 0;
    struct profile_mapping mapping = graft->from->mappings[id];
    mapping.file = copy_string(graft, mapping.file);
    mapping.build_id = copy_string(graft, mapping.build_id);
    return profile_mapping(graft->to, &mapping);
}

uint32_t graft_frame(struct graft *graft, uint32_t frame)
{
    if (!frame || graft->frames[frame])
        return graft->frames[frame];
    struct profile_frame copy = graft->from->frames[frame];
    copy.function = copy_function(graft, copy.function);
    copy.mapping = copy_mapping(graft, copy.mapping);
    return graft->frames[frame] = profile_frame(graft->to, &copy);
}

uint32_t graft_node(struct graft *graft, uint32_t node)
{
    size_t depth = 0;
    for (; node && !graft->nodes[node]; node = graft->from->nodes[node].parent) {
        array_reserve(graft->path, graft->path_room, depth + 1);
        graft->path[depth++] = node;
    }
    uint32_t at = graft->nodes[node];
    while (depth) {
        uint32_t next = graft->path[--depth];
        at = profile_child(graft->to, at, graft_frame(graft, graft->from->nodes[next].frame));
        graft->nodes[next] = at;
    }
    return at;
}
