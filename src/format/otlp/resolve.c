// SPDX-License-Identifier: Apache-2.0
// From OTLP's tables to the model's: functions, mappings, frames, stacks and links, each resolved
// once and on first use, with every index checked. Index 0 of each table means "not set".

#include <string.h>

#include "format/otlp/model.h"

#define COLUMN_MAX 0xffffffu

static uint32_t *unresolved(size_t count)
{
    uint32_t *ids = memory_alloc((count + 1) * sizeof(*ids));
    memset(ids, 0xff, (count + 1) * sizeof(*ids));
    return ids;
}

void otlp_dictionary_prepare(struct otlp_dictionary *dictionary)
{
    dictionary->function_ids = unresolved(dictionary->function_count);
    dictionary->mapping_ids = unresolved(dictionary->mapping_count);
    dictionary->stack_nodes = unresolved(dictionary->stack_count);
    dictionary->link_ids = unresolved(dictionary->link_count);
    dictionary->labels =
        memory_zalloc(dictionary->attribute_count + 1, sizeof(*dictionary->labels));
    dictionary->location_frames =
        memory_zalloc(dictionary->location_count + 1, sizeof(*dictionary->location_frames));
}

int otlp_string_id(struct otlp_model *model, uint32_t index, const char *user, uint32_t *ret_id,
                   struct error *error)
{
    if (index && index >= model->dictionary.string_count)
        return otlp_bad_index(error, user, "string", index, model->dictionary.string_count);
    if (!index) {
        *ret_id = 0;
        return 0;
    }
    struct otlp_string *string = &model->dictionary.strings[index];
    if (string->id == UINT32_MAX)
        string->id = profile_string(model->profile, string->data, string->length);
    *ret_id = string->id;
    return 0;
}

/* 0 where the string is empty. */
static int string_index(const struct otlp_model *model, uint32_t index, uint32_t *ret_index,
                        struct error *error)
{
    const struct otlp_dictionary *dictionary = &model->dictionary;
    if (index && index >= dictionary->string_count)
        return otlp_bad_index(error, "A function", "string", index, dictionary->string_count);
    *ret_index = index && dictionary->strings[index].length ? index : 0;
    return 0;
}

int otlp_function_names(const struct otlp_model *model, uint32_t index,
                        struct profile_function *ret_function, struct error *error)
{
    const struct otlp_dictionary *dictionary = &model->dictionary;
    if (index >= dictionary->function_count)
        return otlp_bad_index(error, "A location", "function", index, dictionary->function_count);
    const struct otlp_function *raw = &dictionary->functions[index];
    struct profile_function function = {.start_line = raw->start_line};
    int r = string_index(model, raw->name, &function.name, error);
    if (!r)
        r = string_index(model, raw->system_name, &function.system_name, error);
    if (!r)
        r = string_index(model, raw->file, &function.file, error);
    if (r < 0)
        return r;
    if (!function.name)
        function.name = function.system_name;
    *ret_function = function;
    return 0;
}

static int function_id(struct otlp_model *model, uint32_t index, uint32_t *ret_id,
                       struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    if (index >= dictionary->function_count || dictionary->function_ids[index] == UINT32_MAX) {
        struct profile_function function;
        int r = otlp_function_names(model, index, &function, error);
        if (r < 0)
            return r;
        bool named = function.name || function.file;
        otlp_string_id(model, function.name, "A function", &function.name, NULL);
        otlp_string_id(model, function.system_name, "A function", &function.system_name, NULL);
        otlp_string_id(model, function.file, "A function", &function.file, NULL);
        dictionary->function_ids[index] = named ? profile_function(model->profile, &function) : 0;
    }
    *ret_id = dictionary->function_ids[index];
    return 0;
}

/* GNU build IDs first: debug info is found by them. */
int otlp_build_id(struct otlp_model *model, struct otlp_range attributes, uint32_t *ret_build_id,
                  struct error *error)
{
    unsigned best = UINT8_MAX;
    for (uint32_t i = 0; i < attributes.count; i++) {
        const struct otlp_label *label;
        int r = otlp_attribute_label(model, model->dictionary.indices[attributes.first + i], &label,
                                     error);
        if (r < 0)
            return r;
        if (label->role >= OTLP_BUILD_ID_GNU && label->role < best && label->label.text) {
            best = label->role;
            *ret_build_id = label->label.text;
        }
    }
    return 0;
}

static int mapping_id(struct otlp_model *model, uint32_t index, uint32_t *ret_id,
                      struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    if (index >= dictionary->mapping_count)
        return otlp_bad_index(error, "A location", "mapping", index, dictionary->mapping_count);
    if (dictionary->mapping_ids[index] == UINT32_MAX) {
        const struct otlp_mapping *raw = &dictionary->mappings[index];
        struct profile_mapping mapping = {
            .start = raw->start, .limit = raw->limit, .offset = raw->offset};
        int r = otlp_string_id(model, raw->file, "A mapping", &mapping.file, error);
        if (!r)
            r = otlp_build_id(model, raw->attributes, &mapping.build_id, error);
        if (r < 0)
            return r;
        dictionary->mapping_ids[index] = profile_mapping(model->profile, &mapping);
    }
    *ret_id = dictionary->mapping_ids[index];
    return 0;
}

const char *const otlp_kind_names[FRAME_KINDS] = {
    [FRAME_NATIVE] = "native",   [FRAME_KERNEL] = "kernel", [FRAME_JVM] = "jvm",
    [FRAME_CPYTHON] = "cpython", [FRAME_PHP] = "php",       [FRAME_RUBY] = "ruby",
    [FRAME_PERL] = "perl",       [FRAME_V8JS] = "v8js",     [FRAME_DOTNET] = "dotnet",
    [FRAME_BEAM] = "beam",       [FRAME_GO] = "go",
};

enum frame_kind otlp_kind_by_name(const char *name)
{
    for (unsigned kind = FRAME_UNKNOWN + 1; kind < FRAME_KINDS; kind++)
        if (!strcmp(otlp_kind_names[kind], name))
            return kind;
    /* Compiled code of a language the model has no kind for. */
    return strcmp(name, "rust") ? FRAME_UNKNOWN : FRAME_NATIVE;
}

static void add_frame(struct otlp_model *model, const struct profile_frame *frame)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    array_reserve(dictionary->frames, dictionary->frame_capacity, dictionary->frame_count + 1);
    dictionary->frames[dictionary->frame_count++] = profile_frame(model->profile, frame);
}

/* The last line is the function the code belongs to; those before it were inlined into it. */
int otlp_resolve_location(struct otlp_model *model, uint32_t index, struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    int r = otlp_check_location(model, index, error);
    if (r < 0)
        return r;
    struct otlp_range *frames = &dictionary->location_frames[index];
    if (frames->count)
        return 0;
    const struct otlp_location *location = &dictionary->locations[index];
    struct profile_frame frame;
    r = otlp_location_base(model, location, &frame, error);
    if (!r && location->mapping)
        r = mapping_id(model, location->mapping, &frame.mapping, error);
    if (r < 0)
        return r;
    size_t first = dictionary->frame_count;
    for (uint32_t i = location->lines.count; i-- > 0;) {
        const struct otlp_line *line = &dictionary->lines[location->lines.first + i];
        if (!line->function)
            continue;
        r = function_id(model, line->function, &frame.function, error);
        if (r < 0)
            return r;
        if (!frame.function)
            continue;
        frame.line = line->line;
        frame.column = MIN(line->column, COLUMN_MAX);
        add_frame(model, &frame);
        frame.inlined = 1;
    }
    if (first == dictionary->frame_count) {
        frame.function = 0;
        add_frame(model, &frame);
    }
    *frames = (struct otlp_range){.first = (uint32_t)first,
                                  .count = (uint32_t)(dictionary->frame_count - first)};
    return 0;
}

static int resolve_stack(struct otlp_model *model, uint32_t index, struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    struct otlp_range stack = dictionary->stacks[index];
    size_t count = 0;
    for (uint32_t i = stack.count; i-- > 0;) {
        uint32_t location = dictionary->indices[stack.first + i];
        if (!location)
            continue;
        bool resolved =
            location < dictionary->location_count && dictionary->location_frames[location].count;
        int r = resolved ? 0 : otlp_resolve_location(model, location, error);
        if (r < 0)
            return r;
        struct otlp_range frames = dictionary->location_frames[location];
        /* A few bytes can name a location of many lines many times. */
        if (unlikely(frames.count > model->frame_budget))
            return otlp_spend(model, &model->frame_budget, frames.count, "stacks", error);
        model->frame_budget -= frames.count;
        array_reserve(dictionary->stack_frames, dictionary->stack_frame_capacity,
                      count + frames.count);
        for (uint32_t k = 0; k < frames.count; k++)
            dictionary->stack_frames[count++] = dictionary->frames[frames.first + k];
    }
    dictionary->stack_nodes[index] = !count ? 0
                                            : (model->alone ? profile_path : profile_stack)(
                                                  model->profile, dictionary->stack_frames, count);
    return 0;
}

int otlp_stack_node(struct otlp_model *model, uint32_t index, uint32_t *ret_node,
                    struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    if (!index) {
        *ret_node = 0;
        return 0;
    }
    if (index >= dictionary->stack_count)
        return otlp_bad_index(error, "A sample", "stack", index, dictionary->stack_count);
    if (dictionary->stack_nodes[index] == UINT32_MAX) {
        int r = resolve_stack(model, index, error);
        if (r < 0)
            return r;
    }
    *ret_node = dictionary->stack_nodes[index];
    return 0;
}

int otlp_link_id(struct otlp_model *model, uint32_t index, uint32_t *ret_link, struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    if (!index) {
        *ret_link = 0;
        return 0;
    }
    if (index >= dictionary->link_count)
        return otlp_bad_index(error, "A sample", "link", index, dictionary->link_count);
    if (dictionary->link_ids[index] == UINT32_MAX)
        dictionary->link_ids[index] = profile_link(model->profile, &dictionary->links[index]);
    *ret_link = dictionary->link_ids[index];
    return 0;
}
