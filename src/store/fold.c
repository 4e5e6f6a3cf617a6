// SPDX-License-Identifier: Apache-2.0
// Folding a service's stacks to what an answer tells apart.

#include "store/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

static size_t table_memory(const struct id_table *table)
{
    return table->slots ? (table->mask + 1) * sizeof(*table->slots) : 0;
}

/* ---- frames ---- */

void plain_frames_release(struct plain_frames *plain)
{
    free(plain->same);
    id_table_release(&plain->index);
    free(plain->namesake);
    id_table_release(&plain->names);
    *plain = (struct plain_frames){0};
}

size_t plain_frames_memory(const struct plain_frames *plain)
{
    return plain->capacity * sizeof(*plain->same) + table_memory(&plain->index) +
           plain->function_capacity * sizeof(*plain->namesake) + table_memory(&plain->names);
}

/* Functions that are shown by one name are one, whatever each process called its own. */
static uint32_t find_namesake(struct plain_frames *plain, const struct profile *tables, uint32_t id)
{
    const struct profile_function *function = &tables->functions[id];
    uint64_t hash = hash_word((uint64_t)function->name << 32 | function->file);
    struct id_probe probe = id_probe_start(hash);
    uint32_t known;
    if (!id || !function->name)
        return id;
    while ((known = id_table_next(&plain->names, &probe)) != ID_NONE)
        if (tables->functions[known].name == function->name &&
            tables->functions[known].file == function->file)
            return known;
    id_table_insert(&plain->names, hash, id);
    return id;
}

static bool is_same(const struct plain_frames *plain, const struct profile_frame *a,
                    const struct profile_frame *b)
{
    return plain->namesake[a->function] == plain->namesake[b->function] &&
           a->mapping == b->mapping && a->kind == b->kind && a->inlined == b->inlined &&
           a->folded == b->folded;
}

static uint32_t find_same(struct plain_frames *plain, const struct profile *tables, uint32_t id)
{
    const struct profile_frame *frame = &tables->frames[id];
    if (!frame->function) /* its address is all it has */
        return id;
    uint64_t hash = hash_word((uint64_t)plain->namesake[frame->function] << 32 | frame->mapping);
    struct id_probe probe = id_probe_start(hash);
    uint32_t same;
    while ((same = id_table_next(&plain->index, &probe)) != ID_NONE)
        if (is_same(plain, &tables->frames[same], frame))
            return same;
    id_table_insert(&plain->index, hash, id);
    return id;
}

void plain_frames_refresh(struct plain_frames *plain, const struct profile *tables)
{
    array_reserve(plain->namesake, plain->function_capacity, tables->function_count);
    for (; plain->function_count < tables->function_count; plain->function_count++)
        plain->namesake[plain->function_count] =
            find_namesake(plain, tables, plain->function_count);
    array_reserve(plain->same, plain->capacity, tables->frame_count);
    for (; plain->count < tables->frame_count; plain->count++)
        plain->same[plain->count] = find_same(plain, tables, plain->count);
}

/* ---- stacks ---- */

void fold_release(struct fold *fold)
{
    free(fold->groups);
    free(fold->group);
    id_table_release(&fold->branches);
    *fold = (struct fold){0};
}

size_t fold_memory(const struct fold *fold)
{
    return fold->capacity * sizeof(*fold->groups) + fold->group_capacity * sizeof(*fold->group) +
           table_memory(&fold->branches);
}

static bool is_child(const struct fold *fold, uint32_t group, uint32_t parent, uint32_t frame)
{
    return fold->groups[group].parent == parent && fold->groups[group].frame == frame;
}

static uint32_t find_child(struct fold *fold, uint32_t parent, uint32_t frame)
{
    if (parent + 1 < fold->count && is_child(fold, parent + 1, parent, frame))
        return parent + 1;
    uint64_t hash = hash_word((uint64_t)parent << 32 | frame);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&fold->branches, &probe)) != ID_NONE)
        if (is_child(fold, id, parent, frame))
            return id;
    id = (uint32_t)fold->count++;
    array_reserve(fold->groups, fold->capacity, fold->count);
    fold->groups[id] = (struct fold_group){.parent = parent, .frame = frame};
    if (id != parent + 1)
        id_table_insert(&fold->branches, hash, id);
    return id;
}

void fold_nodes(struct fold *fold, const uint32_t *same, const struct profile_node *nodes,
                uint32_t count, const int64_t *sums, const int64_t *totals, uint64_t least)
{
    array_reserve(fold->group, fold->group_capacity, count);
    memset(fold->group, 0xff, count * sizeof(*fold->group)); /* ID_NONE */
    id_table_clear(&fold->branches);
    array_reserve(fold->groups, fold->capacity, 1);
    fold->groups[0] = (struct fold_group){.self = sums[0], .total = totals[0]};
    fold->count = 1;
    fold->group[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (likely((uint64_t)magnitude(totals[i]) < least))
            continue;
        uint32_t parent = fold->group[nodes[i].parent], frame = nodes[i].frame;
        if (parent == ID_NONE)
            continue;
        uint32_t id = find_child(fold, parent, same ? same[frame] : frame);
        fold->group[i] = id;
        struct fold_group *group = &fold->groups[id];
        group->self = add_saturated(group->self, sums[i]);
        group->total = add_saturated(group->total, totals[i]);
    }
}
