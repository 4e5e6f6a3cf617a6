// SPDX-License-Identifier: Apache-2.0
// Stacks from one profile to another and back: see kept.h.

#include "capture/heap/kept.h"

#include <string.h>

#include "base/memory.h"

#define STACK_FRAMES_MAX 4096

void kept_init(struct kept *kept)
{
    *kept = (struct kept){0};
    profile_init(&kept->profile, PROFILE_LABELS | PROFILE_ADDRESSES | PROFILE_LINES);
}

void kept_release(struct kept *kept)
{
    struct kept_map *maps[] = {&kept->frames_in, &kept->frames_out, &kept->labels_in,
                               &kept->labels_out};
    for (size_t i = 0; i < ARRAY_LENGTH(maps); i++)
        free(maps[i]->ids);
    profile_release(&kept->profile);
    *kept = (struct kept){0};
}

static void clear(struct kept_map *map)
{
    if (map->ids)
        memset(map->ids, 0, map->capacity * sizeof(*map->ids));
}

static void follow(struct kept *kept, const struct profile *other)
{
    if (kept->other == other->serial)
        return;
    kept->other = other->serial;
    clear(&kept->frames_in);
    clear(&kept->frames_out);
    clear(&kept->labels_in);
    clear(&kept->labels_out);
}

static uint32_t *place(struct kept_map *map, uint32_t id)
{
    size_t before = map->capacity;
    array_reserve(map->ids, map->capacity, (size_t)id + 1);
    if (map->capacity > before)
        memset(map->ids + before, 0, (map->capacity - before) * sizeof(*map->ids));
    return &map->ids[id];
}

static uint32_t string(struct profile *to, const struct profile *from, uint32_t id)
{
    return profile_string(to, from->strings[id].data, from->strings[id].length);
}

static uint32_t frame(struct kept_map *map, struct profile *to, const struct profile *from,
                      uint32_t id)
{
    uint32_t *known = place(map, id);
    if (*known)
        return *known - 1;
    struct profile_frame moved = from->frames[id];
    if (moved.function) {
        struct profile_function function = from->functions[moved.function];
        function.name = string(to, from, function.name);
        function.system_name = string(to, from, function.system_name);
        function.file = string(to, from, function.file);
        moved.function = profile_function(to, &function);
    }
    if (moved.mapping) {
        struct profile_mapping mapping = from->mappings[moved.mapping];
        mapping.file = string(to, from, mapping.file);
        mapping.build_id = string(to, from, mapping.build_id);
        moved.mapping = profile_mapping(to, &mapping);
    }
    *known = profile_frame(to, &moved) + 1;
    return *known - 1;
}

static uint32_t labels(struct kept_map *map, struct profile *to, const struct profile *from,
                       uint32_t set)
{
    size_t count;
    uint32_t *known = place(map, set);
    if (*known)
        return *known - 1;
    const struct profile_label *list = profile_labels(from, set, &count);
    _cleanup_free_ struct profile_label *moved = memory_zalloc(count + 1, sizeof(*moved));
    for (size_t i = 0; i < count; i++) {
        moved[i] = list[i];
        moved[i].key = string(to, from, list[i].key);
        moved[i].text = string(to, from, list[i].text);
        moved[i].unit = string(to, from, list[i].unit);
    }
    *known = profile_label_set(to, moved, count) + 1;
    return *known - 1;
}

uint32_t kept_stack_in(struct kept *kept, const struct profile *other, const uint32_t *frames,
                       size_t count)
{
    uint32_t moved[STACK_FRAMES_MAX];
    follow(kept, other);
    count = MIN(count, (size_t)STACK_FRAMES_MAX);
    for (size_t i = 0; i < count; i++)
        moved[i] = frame(&kept->frames_in, &kept->profile, other, frames[i]);
    return profile_stack(&kept->profile, moved, count);
}

uint32_t kept_stack_out(struct kept *kept, struct profile *other, uint32_t stack)
{
    uint32_t moved[STACK_FRAMES_MAX];
    size_t at = STACK_FRAMES_MAX;
    follow(kept, other);
    for (uint32_t node = stack; node && at; node = kept->profile.nodes[node].parent)
        moved[--at] =
            frame(&kept->frames_out, other, &kept->profile, kept->profile.nodes[node].frame);
    return profile_stack(other, moved + at, STACK_FRAMES_MAX - at);
}

uint32_t kept_labels_in(struct kept *kept, const struct profile *other, uint32_t set)
{
    follow(kept, other);
    return labels(&kept->labels_in, &kept->profile, other, set);
}

uint32_t kept_labels_out(struct kept *kept, struct profile *other, uint32_t set)
{
    follow(kept, other);
    return labels(&kept->labels_out, other, &kept->profile, set);
}
