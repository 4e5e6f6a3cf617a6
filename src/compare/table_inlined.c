// SPDX-License-Identifier: Apache-2.0
// Inlining differs from build to build. A callee that was inlined into a caller on one side only,
// or whose inlined frames only one side's debug information has, would look as if it had come or
// gone while its caller shrank or grew. Such pairs are counted at the caller on both sides.

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "compare/table_parts.h"

/* Every pair of caller and callee, with a bit for each side on which it was inlined. */
struct pair_list {
    uint64_t *keys;
    uint8_t *inlined;
    size_t count, key_capacity, inlined_capacity;
    struct id_table index;
};

static uint64_t pair_key(uint32_t caller, uint32_t callee)
{
    return (uint64_t)caller << 32 | callee;
}

static uint64_t pair_hash(uint64_t key)
{
    return XXH3_64bits(&key, sizeof(key));
}

static uint32_t find_pair(const struct id_table *index, const uint64_t *keys, uint64_t key)
{
    struct id_probe probe = id_probe_start(pair_hash(key));
    uint32_t id;
    while ((id = id_table_next(index, &probe)) != ID_NONE)
        if (keys[id] == key)
            return id;
    return ID_NONE;
}

static void note_pair(struct pair_list *pairs, uint64_t key, enum compare_side side)
{
    uint32_t id = find_pair(&pairs->index, pairs->keys, key);
    if (id == ID_NONE) {
        array_reserve(pairs->keys, pairs->key_capacity, pairs->count + 1);
        array_reserve(pairs->inlined, pairs->inlined_capacity, pairs->count + 1);
        id = (uint32_t)pairs->count++;
        pairs->keys[id] = key;
        pairs->inlined[id] = 0;
        id_table_insert(&pairs->index, pair_hash(key), id);
    }
    pairs->inlined[id] |= (uint8_t)(1u << side);
}

/* Where a side has no stacks, nothing shows what it inlines. */
static bool has_both_sides(const struct table_builder *builder)
{
    bool stacks[COMPARE_SIDES] = {false};
    for (size_t i = 0; i < builder->source_count; i++)
        if (builder->sources[i].profile->node_count > 1)
            stacks[builder->sources[i].side] = true;
    return stacks[COMPARE_BASE] && stacks[COMPARE_NEW];
}

void table_find_inlined(struct table_builder *builder)
{
    struct pair_list pairs = {0};
    if (!has_both_sides(builder))
        return;
    for (size_t i = 0; i < builder->source_count; i++) {
        const struct compare_source *source = &builder->sources[i];
        const struct profile *profile = source->profile;
        for (uint32_t node = 1; node < profile->node_count; node++) {
            uint32_t parent = profile->nodes[node].parent;
            uint32_t frame = profile->nodes[node].frame;
            if (!parent || !profile->frames[frame].inlined)
                continue;
            uint32_t caller = source->naming->of_frame[profile->nodes[parent].frame];
            uint32_t callee = source->naming->of_frame[frame];
            if (caller != NAMING_NONE && callee != NAMING_NONE && caller != callee)
                note_pair(
                    &pairs,
                    pair_key(builder->function_of[i][caller], builder->function_of[i][callee]),
                    source->side);
        }
    }
    for (size_t i = 0; i < pairs.count; i++) {
        if (pairs.inlined[i] == ((1u << COMPARE_BASE) | (1u << COMPARE_NEW)))
            continue;
        size_t id = builder->pair_count++;
        builder->table.inlined_pairs++;
        array_reserve(builder->pair_keys, builder->pair_capacity, id + 1);
        builder->pair_keys[id] = pairs.keys[i];
        id_table_insert(&builder->pairs, pair_hash(pairs.keys[i]), (uint32_t)id);
    }
    free(pairs.keys);
    free(pairs.inlined);
    id_table_release(&pairs.index);
}

bool table_is_inlined(const struct table_builder *builder, uint32_t caller, uint32_t callee)
{
    return builder->pair_count &&
           find_pair(&builder->pairs, builder->pair_keys, pair_key(caller, callee)) != ID_NONE;
}
