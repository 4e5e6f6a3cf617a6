// SPDX-License-Identifier: Apache-2.0
// Trees of stacks, and carrying stacks from one set of tables to another.

#include "store/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void tree_init(struct tree *tree)
{
    *tree = (struct tree){0};
    tree_append(tree, 0, 0);
}

void tree_release(struct tree *tree)
{
    free(tree->nodes);
    id_table_release(&tree->branches);
    digest_table_release(&tree->stacks);
    *tree = (struct tree){0};
}

size_t tree_memory(const struct tree *tree)
{
    return tree->capacity * sizeof(*tree->nodes) + digest_table_bytes(&tree->stacks) +
           (tree->branches.slots ? (tree->branches.mask + 1) * sizeof(uint64_t) : 0);
}

void tree_append(struct tree *tree, uint32_t parent, uint32_t frame)
{
    array_reserve(tree->nodes, tree->capacity, tree->count + 1ul);
    tree->nodes[tree->count++] = (struct profile_node){.parent = parent, .frame = frame};
}

static uint64_t child_hash(uint32_t parent, uint32_t frame)
{
    return hash_word((uint64_t)parent << 32 | frame);
}

/* Only trees that are written to need the index. A node's first child most often follows it at
 * once and is found without. */
static void make_index(struct tree *tree)
{
    for (uint32_t i = 1; i < tree->count; i++)
        if (i != tree->nodes[i].parent + 1)
            id_table_insert(&tree->branches,
                            child_hash(tree->nodes[i].parent, tree->nodes[i].frame), i);
    tree->indexed = true;
}

uint32_t tree_child(struct tree *tree, uint32_t parent, uint32_t frame)
{
    const struct profile_node *next = &tree->nodes[parent + 1];
    if (parent + 1 == tree->count) { /* the last node has no children: they come after it */
        tree_append(tree, parent, frame);
        return parent + 1;
    }
    if (next->parent == parent && next->frame == frame)
        return parent + 1;
    if (!tree->indexed)
        make_index(tree);
    uint64_t hash = child_hash(parent, frame);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tree->branches, &probe)) != ID_NONE)
        if (tree->nodes[id].parent == parent && tree->nodes[id].frame == frame)
            return id;
    id = tree->count;
    tree_append(tree, parent, frame);
    id_table_insert(&tree->branches, hash, id);
    return id;
}

static uint32_t *widen(uint32_t *ids, uint32_t *count, uint32_t needed)
{
    if (needed <= *count)
        return ids;
    /* A table that grows while it is in use grows again: leave some room. */
    uint32_t room = *count ? needed + needed / 4 : needed;
    ids = memory_resize(ids, room, sizeof(*ids));
    memset(ids + *count, 0, (room - *count) * sizeof(*ids));
    *count = room;
    return ids;
}

void frame_map_init(struct frame_map *map, const struct profile *from, struct profile *to)
{
    *map = (struct frame_map){.from = from, .to = to};
    frame_map_refresh(map);
}

void frame_map_refresh(struct frame_map *map)
{
    const struct profile *from = map->from;
    map->string = widen(map->string, &map->string_count, from->string_count);
    map->function = widen(map->function, &map->function_count, from->function_count);
    map->mapping = widen(map->mapping, &map->mapping_count, from->mapping_count);
    map->frame = widen(map->frame, &map->frame_count, from->frame_count);
}

void frame_map_release(struct frame_map *map)
{
    free(map->string);
    free(map->function);
    free(map->mapping);
    free(map->frame);
    *map = (struct frame_map){0};
}

static uint32_t map_string(struct frame_map *map, uint32_t string)
{
    if (string && !map->string[string]) {
        const struct profile_string *text = &map->from->strings[string];
        map->string[string] = profile_string(map->to, text->data, text->length);
    }
    return map->string[string];
}

static uint32_t map_function(struct frame_map *map, uint32_t function)
{
    if (function && !map->function[function]) {
        struct profile_function copy = map->from->functions[function];
        copy.name = map_string(map, copy.name);
        copy.system_name = map_string(map, copy.system_name);
        copy.file = map_string(map, copy.file);
        map->function[function] = profile_function(map->to, &copy);
    }
    return map->function[function];
}

static uint32_t map_mapping(struct frame_map *map, uint32_t mapping)
{
    if (mapping && !map->mapping[mapping]) {
        struct profile_mapping copy = map->from->mappings[mapping];
        copy.file = map_string(map, copy.file);
        copy.build_id = map_string(map, copy.build_id);
        map->mapping[mapping] = profile_mapping(map->to, &copy);
    }
    return map->mapping[mapping];
}

uint32_t frame_map_frame(struct frame_map *map, uint32_t frame)
{
    if (frame && !map->frame[frame]) {
        struct profile_frame copy = map->from->frames[frame];
        copy.function = map_function(map, copy.function);
        copy.mapping = map_mapping(map, copy.mapping);
        map->frame[frame] = profile_frame(map->to, &copy);
    }
    return map->frame[frame];
}

void node_map_init(struct node_map *map, struct frame_map *frames, const struct profile_node *nodes,
                   uint32_t node_count, struct tree *to_tree, struct profile *to_profile)
{
    *map = (struct node_map){
        .frames = frames,
        .nodes = nodes,
        .node_count = node_count,
        .node = memory_zalloc(node_count, sizeof(uint32_t)),
        .to_tree = to_tree,
        .to_profile = to_profile,
    };
}

void node_map_release(struct node_map *map)
{
    free(map->node);
    free(map->path);
    free(map->carried);
    *map = (struct node_map){0};
}

void node_map_reuse(struct node_map *map, struct tree *to_tree)
{
    for (size_t i = 0; i < map->carried_count; i++)
        map->node[map->carried[i]] = 0;
    map->carried_count = 0;
    map->reused = true;
    map->to_tree = to_tree;
}

static void note_carried(struct node_map *map, uint32_t node)
{
    array_reserve(map->carried, map->carried_capacity, map->carried_count + 1);
    map->carried[map->carried_count++] = node;
}

uint32_t node_map_node(struct node_map *map, uint32_t node)
{
    if (!node || map->node[node])
        return map->node[node];
    size_t depth = 0;
    uint32_t at = node;
    for (; at && !map->node[at]; at = map->nodes[at].parent) {
        array_reserve(map->path, map->path_capacity, depth + 1);
        map->path[depth++] = at;
    }
    uint32_t target = at ? map->node[at] : 0;
    while (depth) {
        at = map->path[--depth];
        uint32_t frame = frame_map_frame(map->frames, map->nodes[at].frame);
        target = map->to_tree ? tree_child(map->to_tree, target, frame)
                              : profile_child(map->to_profile, target, frame);
        map->node[at] = target;
        if (map->reused)
            note_carried(map, at);
    }
    return target;
}

/* ---- functions ---- */

/* By the name that it is shown by, or by the original. */
static bool is_called(const struct profile *tables, const struct profile_function *function,
                      const char *name)
{
    return !strcmp(profile_text(tables, function->name), name) ||
           !strcmp(profile_text(tables, function->system_name), name);
}

void store_frame_read(const struct profile *tables, uint32_t id, struct store_frame *ret_frame)
{
    const struct profile_frame *frame = &tables->frames[id];
    const struct profile_function *function = &tables->functions[frame->function];
    const struct profile_mapping *mapping = &tables->mappings[frame->mapping];
    *ret_frame = (struct store_frame){.address = frame->address,
                                      .line = frame->line,
                                      .column = frame->column,
                                      .start_line = function->start_line,
                                      .kind = (uint8_t)frame->kind,
                                      .function = profile_text(tables, function->name),
                                      .system_name = profile_text(tables, function->system_name),
                                      .source = profile_text(tables, function->file),
                                      .file = profile_text(tables, mapping->file),
                                      .build_id = profile_text(tables, mapping->build_id)};
}

/* Numbers first: they tell most frames apart. */
int store_frame_compare(const struct store_frame *a, const struct store_frame *b)
{
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    if (a->start_line != b->start_line)
        return a->start_line < b->start_line ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int order = strcmp(a->function, b->function);
    order = order ? order : strcmp(a->build_id, b->build_id);
    order = order ? order : strcmp(a->file, b->file);
    order = order ? order : strcmp(a->source, b->source);
    return order ? order : strcmp(a->system_name, b->system_name);
}

static int compare_frames(const void *a, const void *b)
{
    return store_frame_compare(a, b);
}

static bool is_wanted(const struct profile *tables, uint32_t frame,
                      const struct store_function *function, bool cumulative)
{
    uint32_t id = tables->frames[frame].function;
    if (!function->frames_only && id && is_called(tables, &tables->functions[id], function->name))
        return true;
    if (!function->frame_count)
        return false;
    struct store_frame wanted;
    store_frame_read(tables, frame, &wanted);
    const struct store_frame *found =
        bsearch(&wanted, function->frames, function->frame_count, sizeof(wanted), compare_frames);
    return found && (cumulative || !found->encloses);
}

/* Each frame is looked at once, and only those of the tree. */
bool *function_nodes(const struct profile *tables, const struct profile_node *nodes, uint32_t count,
                     const struct store_function *function, bool cumulative)
{
    enum { UNKNOWN, NO, YES };
    _cleanup_free_ uint8_t *frames = memory_zalloc(tables->frame_count + 1ul, sizeof(*frames));
    bool *wanted = memory_zalloc(count + 1ul, sizeof(*wanted));
    for (uint32_t i = 1; i < count; i++) {
        uint32_t frame = nodes[i].frame;
        if (frames[frame] == UNKNOWN)
            frames[frame] = is_wanted(tables, frame, function, cumulative) ? YES : NO;
        wanted[i] = frames[frame] == YES || (cumulative && wanted[nodes[i].parent]);
    }
    return wanted;
}

int give_frames(const struct profile *tables, const struct profile_node *nodes, uint32_t count,
                store_frame_fn *fn, void *context)
{
    _cleanup_free_ bool *given = memory_zalloc(tables->frame_count + 1ul, sizeof(*given));
    int r = 0;
    for (uint32_t i = 1; !r && i < count; i++)
        if (!given[nodes[i].frame]) {
            given[nodes[i].frame] = true;
            r = fn(context, tables, nodes[i].frame);
        }
    return r;
}
