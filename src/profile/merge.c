// SPDX-License-Identifier: Apache-2.0
// Adding one profile to another: every table is interned anew and ids are translated by arrays, so
// the cost is one lookup per distinct thing, never per sample and frame.

#include <string.h>

#include "base/memory.h"
#include "profile/profile.h"
#include "profile/rename.h"

struct translation {
    uint32_t *string, *function, *mapping, *node, *label_set, *link;
    /* Frame i is replaced by frames[first_frame[i]] up to frames[first_frame[i + 1]]. */
    uint32_t *frames, *first_frame;
    size_t frame_count, frame_capacity;
    unsigned type[PROFILE_TYPES_MAX];
    profile_namer_fn namer; /* or NULL */
    void *context;
    bool all; /* frames with a function are renamed, too */
};

static void translation_release(struct translation *map)
{
    free(map->string);
    free(map->function);
    free(map->mapping);
    free(map->frames);
    free(map->first_frame);
    free(map->node);
    free(map->label_set);
    free(map->link);
}

/* Where all frames may be renamed, only what keeps its name is taken over. */
static uint32_t translate_function(struct profile *to, const struct profile *from,
                                   struct translation *map, uint32_t id)
{
    struct profile_function function = from->functions[id];
    if (!id || map->function[id])
        return map->function[id];
    function.name = map->string[function.name];
    function.system_name = map->string[function.system_name];
    function.file = map->string[function.file];
    return map->function[id] = profile_function(to, &function);
}

static void translate_symbols(struct profile *to, const struct profile *from,
                              struct translation *map)
{
    map->string = memory_zalloc(from->string_count, sizeof(uint32_t));
    for (uint32_t i = 0; i < from->string_count; i++)
        map->string[i] = profile_string(to, from->strings[i].data, from->strings[i].length);

    map->function = memory_zalloc(from->function_count, sizeof(uint32_t));
    for (uint32_t i = 1; !map->all && i < from->function_count; i++)
        translate_function(to, from, map, i);

    map->mapping = memory_zalloc(from->mapping_count, sizeof(uint32_t));
    for (uint32_t i = 1; i < from->mapping_count; i++) {
        struct profile_mapping mapping = from->mappings[i];
        mapping.file = map->string[mapping.file];
        mapping.build_id = map->string[mapping.build_id];
        map->mapping[i] = profile_mapping(to, &mapping);
    }
}

/* False when there are too many. */
static bool translate_frames(struct profile *to, const struct profile *from,
                             struct translation *map)
{
    struct profile_frame renamed[PROFILE_EXPANSION_MAX];
    map->first_frame = memory_zalloc((size_t)from->frame_count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < from->frame_count; i++) {
        size_t count = 1;
        renamed[0] = from->frames[i];
        renamed[0].function = map->function[renamed[0].function];
        renamed[0].mapping = map->mapping[renamed[0].mapping];
        if (i && map->namer && (map->all || !renamed[0].function))
            count = map->namer(map->context, from, i, to, renamed);
        if (!count) {
            renamed[0].function = translate_function(to, from, map, from->frames[i].function);
            count = 1;
        }
        if (count > PROFILE_IDS_MAX - map->frame_count)
            return false;
        array_reserve(map->frames, map->frame_capacity, map->frame_count + count);
        for (size_t k = 0; k < count; k++)
            map->frames[map->frame_count++] = i ? profile_frame(to, &renamed[k]) : 0;
        map->first_frame[i + 1] = (uint32_t)map->frame_count;
    }
    return true;
}

/* Parents come before their children, so one forward pass knows every parent already. */
static bool translate_stacks(struct profile *to, const struct profile *from,
                             struct translation *map)
{
    map->node = memory_zalloc(from->node_count, sizeof(uint32_t));
    for (uint32_t i = 1; i < from->node_count && !profile_full(to); i++) {
        const struct profile_node *node = &from->nodes[i];
        uint32_t at = map->node[node->parent];
        for (uint32_t k = map->first_frame[node->frame]; k < map->first_frame[node->frame + 1]; k++)
            at = profile_child(to, at, map->frames[k]);
        map->node[i] = at;
    }
    return !profile_full(to);
}

static void translate_labels(struct profile *to, const struct profile *from,
                             struct translation *map)
{
    uint32_t sets = profile_label_set_count(from);
    struct profile_label *scratch = NULL;
    size_t capacity = 0;
    map->label_set = memory_zalloc(sets, sizeof(uint32_t));
    for (uint32_t i = 1; i < sets; i++) {
        size_t count;
        const struct profile_label *labels = profile_labels(from, i, &count);
        array_reserve(scratch, capacity, count);
        for (size_t k = 0; k < count; k++) {
            scratch[k] = labels[k];
            scratch[k].key = map->string[labels[k].key];
            scratch[k].text = map->string[labels[k].text];
            scratch[k].unit = map->string[labels[k].unit];
        }
        map->label_set[i] = profile_label_set(to, scratch, count);
    }
    free(scratch);

    map->link = memory_zalloc(from->link_count, sizeof(uint32_t));
    for (uint32_t i = 1; i < from->link_count; i++)
        map->link[i] = profile_link(to, &from->links[i]);
}

static void add_rows(struct profile *to, const struct profile *from, const struct translation *map)
{
    const struct profile_samples *samples = &from->samples;
    for (size_t row = 0; row < samples->count; row++) {
        size_t target =
            profile_sample(to, map->node[samples->node[row]], map->label_set[samples->labels[row]],
                           map->link[samples->link ? samples->link[row] : 0],
                           samples->time_ns ? samples->time_ns[row] : 0);
        for (unsigned type = 0; type < from->type_count; type++)
            profile_add_value(to, target, map->type[type], samples->values[type][row]);
    }
}

static int merge(struct profile *to, const struct profile *from, profile_namer_fn namer, bool all,
                 void *context, struct error *error)
{
    _cleanup_(translation_release) struct translation map = {
        .namer = namer, .all = all, .context = context};
    translate_symbols(to, from, &map);
    for (unsigned i = 0; i < from->type_count; i++) {
        map.type[i] =
            profile_type(to, map.string[from->types[i].type], map.string[from->types[i].unit]);
        if (map.type[i] == PROFILE_TYPES_MAX)
            return error_set(error, -E2BIG, "The profiles have more than %d sample types together.",
                             PROFILE_TYPES_MAX);
    }
    if (!translate_frames(to, from, &map) || !translate_stacks(to, from, &map))
        return error_set(error, -E2BIG, "The profile has more than %u frames or stacks.",
                         PROFILE_IDS_MAX);
    translate_labels(to, from, &map);
    add_rows(to, from, &map);

    uint64_t sources = to->source_count;
    profile_note_source(to, from->time_ns, from->duration_ns);
    to->source_count = sources + from->source_count;
    profile_note_period(to, map.string[from->period_type.type], map.string[from->period_type.unit],
                        from->period);
    for (size_t i = 0; i < from->comment_count; i++)
        profile_add_comment(to, map.string[from->comments[i]]);
    if (!to->default_type)
        to->default_type = map.string[from->default_type];
    if (!to->drop_frames)
        to->drop_frames = map.string[from->drop_frames];
    if (!to->keep_frames)
        to->keep_frames = map.string[from->keep_frames];
    if (!to->doc_url)
        to->doc_url = map.string[from->doc_url];
    return 0;
}

int profile_merge(struct profile *to, const struct profile *from, struct error *error)
{
    return merge(to, from, NULL, false, NULL, error);
}

int profile_rename(const struct profile *from, profile_namer_fn namer, void *context,
                   struct profile *to, struct error *error)
{
    return merge(to, from, namer, false, context, error);
}

int profile_rename_all(const struct profile *from, profile_namer_fn namer, void *context,
                       struct profile *to, struct error *error)
{
    return merge(to, from, namer, true, context, error);
}
