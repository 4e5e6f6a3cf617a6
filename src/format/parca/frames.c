// SPDX-License-Identifier: Apache-2.0
// Stacks of Parca's agent: lists of locations, each with an address and the lines that are known of
// it. The two versions of its schema differ in how lines name functions.

#include <string.h>

#include "base/memory.h"
#include "format/otlp/otlp.h"
#include "format/parca/internal.h"
#include "io/source.h"

#define FRAME_TYPE_BYTES 32

void parca_frames_begin(struct parca_frames *frames, struct profile *profile)
{
    frames->profile = profile;
    frames->frame_count = frames->node_count = 0;
    frames->locations = NULL;
    frames->unknown = 0;
    id_table_release(&frames->nodes_by_range);
}

void parca_frames_release(struct parca_frames *frames)
{
    free(frames->frames);
    free(frames->ranges);
    free(frames->nodes);
    free(frames->path);
    id_table_release(&frames->nodes_by_range);
}

static int too_many(struct error *error)
{
    return error_set(error, -E2BIG,
                     "The stacks of the request have more than %u frames in all, or one of them "
                     "more than %d.",
                     PARCA_FRAMES_MAX, PARCA_DEPTH_MAX);
}

/* The cell of a structure's member. */
static struct arrow_cell member(struct arrow_cell cell, const char *name)
{
    if (!cell.array || cell.array->field->kind != ARROW_STRUCT)
        return (struct arrow_cell){0};
    return arrow_cell(arrow_child(cell.array, name), cell.index);
}

static uint32_t member_string(struct profile *profile, struct arrow_cell cell, const char *name)
{
    const char *text;
    size_t length;
    return arrow_text(member(cell, name), &text, &length) ? profile_string(profile, text, length)
                                                          : 0;
}

static uint32_t member_line(struct arrow_cell cell, const char *name)
{
    int64_t number = 0;
    arrow_number(member(cell, name), &number);
    return number > 0 && number < UINT32_MAX ? (uint32_t)number : 0;
}

static bool is_text(const struct profile *profile, uint32_t string, const char *text)
{
    return !strcmp(profile_text(profile, string), text);
}

/* The agent has words for what it doesn't know. */
static uint32_t known(const struct profile *profile, uint32_t string)
{
    return is_text(profile, string, "UNKNOWN") || is_text(profile, string, "UNREPORTED") ? 0
                                                                                         : string;
}

static uint32_t line_function(struct profile *profile, struct arrow_cell line)
{
    struct arrow_cell cell = member(line, "function");
    struct profile_function function;
    if (cell.array) {
        function = (struct profile_function){.name = member_string(profile, cell, "system_name"),
                                             .file = member_string(profile, cell, "filename"),
                                             .start_line = member_line(cell, "start_line")};
    } else {
        function = (struct profile_function){
            .name = member_string(profile, line, "function_name"),
            .system_name = member_string(profile, line, "function_system_name"),
            .file = member_string(profile, line, "function_filename"),
            .start_line = member_line(line, "function_start_line")};
    }
    function.name = known(profile, function.name);
    function.file = known(profile, function.file);
    if (!function.name) {
        function.name = function.system_name;
        function.system_name = 0;
    }
    return function.name ? profile_function(profile, &function) : 0;
}

/* Where the walk ended early, for a reason that only the agent knows. */
static uint32_t truncated(struct profile *profile)
{
    uint32_t name = profile_cstring(profile, "[truncated]");
    return profile_function(profile, &(struct profile_function){.name = name});
}

static uint32_t location_mapping(struct profile *profile, struct arrow_cell location)
{
    struct profile_mapping mapping = {
        .start = PROFILE_BY_ADDRESS, .limit = PROFILE_BY_ADDRESS, .offset = PROFILE_BY_ADDRESS};
    mapping.file = known(profile, member_string(profile, location, "mapping_file"));
    mapping.build_id = member_string(profile, location, "mapping_build_id");
    return mapping.file || mapping.build_id ? profile_mapping(profile, &mapping) : 0;
}

static void add_frame(struct parca_frames *frames, const struct profile_frame *frame)
{
    array_reserve(frames->frames, frames->frame_capacity, frames->frame_count + 1);
    frames->frames[frames->frame_count++] = profile_frame(frames->profile, frame);
}

/* The last line is the function that holds the code; those before it were inlined into it. */
static int add_lines(struct parca_frames *frames, struct arrow_cell location,
                     const struct profile_frame *base, struct error *error)
{
    const struct arrow_array *lines;
    uint64_t first, count;
    bool inlined = false;
    if (!arrow_list(member(location, "lines"), &lines, &first, &count))
        return 0;
    if (count > frames->left)
        return too_many(error);
    frames->left -= count;
    for (uint64_t i = count; i-- > 0;) {
        struct arrow_cell line = arrow_cell(lines, first + i);
        struct profile_frame frame = *base;
        frame.function = line_function(frames->profile, line);
        if (!frame.function)
            continue;
        frame.address = 0; /* of interpreters it is a line */
        frame.line = member_line(line, "line");
        frame.column = MIN(member_line(line, "column"), 0xffffffu);
        frame.inlined = inlined;
        inlined = true;
        add_frame(frames, &frame);
    }
    return 0;
}

static int add_location(struct parca_frames *frames, struct arrow_cell location,
                        struct error *error)
{
    struct profile *profile = frames->profile;
    struct profile_frame frame = {0};
    size_t before = frames->frame_count;
    char kind[FRAME_TYPE_BYTES] = "";
    const char *text;
    size_t length;
    int64_t address = 0;
    if (arrow_text(member(location, "frame_type"), &text, &length) && length < sizeof(kind))
        memcpy(kind, text, length);
    if (!strcmp(kind, "abort-marker")) {
        frame.function = truncated(profile);
        add_frame(frames, &frame);
        return 0;
    }
    frame.kind = otlp_kind_by_name(kind);
    frame.mapping = location_mapping(profile, location);
    if (arrow_number(member(location, "address"), &address))
        frame.address = (uint64_t)address;
    int r = add_lines(frames, location, &frame, error);
    if (!r && frames->frame_count == before)
        add_frame(frames, &frame);
    return r;
}

/* The frames of a location, made when it is first met. */
static int location_range(struct parca_frames *frames, struct arrow_cell location,
                          struct parca_range *ret_range, struct error *error)
{
    if (frames->locations != location.array) {
        free(frames->ranges);
        frames->ranges = memory_zalloc(location.array->length + 1, sizeof(*frames->ranges));
        frames->locations = location.array;
    }
    struct parca_range *range = &frames->ranges[location.index];
    if (!range->count) {
        size_t first = frames->frame_count;
        int r = add_location(frames, location, error);
        if (!r)
            r = source_check_memory(error);
        if (r < 0)
            return r;
        *range = (struct parca_range){(uint32_t)first, (uint32_t)(frames->frame_count - first)};
    }
    *ret_range = *range;
    return 0;
}

/* A structure with an address for each, so that there are no more of them than bytes. */
static bool is_location(struct arrow_cell location)
{
    if (!location.array || location.array->field->kind != ARROW_STRUCT)
        return false;
    const struct arrow_array *address = arrow_child(location.array, "address");
    return address && !address->values && address->field->kind == ARROW_INTEGER;
}

static int make_stack(struct parca_frames *frames, const struct arrow_array *locations,
                      uint64_t first, uint64_t count, uint32_t *ret_node, struct error *error)
{
    size_t depth = 0;
    if (count > PARCA_DEPTH_MAX || count > frames->left || profile_full(frames->profile))
        return too_many(error);
    frames->left -= count;
    for (uint64_t i = count; i-- > 0;) {
        struct arrow_cell location = arrow_cell(locations, first + i);
        struct parca_range range;
        if (!is_location(location))
            return error_set(error, -EBADMSG, "A stack has a location that isn't there.");
        int r = location_range(frames, location, &range, error);
        if (r < 0)
            return r;
        if (depth + range.count > PARCA_DEPTH_MAX)
            return too_many(error);
        array_reserve(frames->path, frames->path_capacity, depth + range.count);
        memcpy(frames->path + depth, frames->frames + range.first,
               range.count * sizeof(*frames->path));
        depth += range.count;
    }
    *ret_node = profile_stack(frames->profile, frames->path, depth);
    return source_check_memory(error);
}

static uint32_t unknown_stack(struct parca_frames *frames)
{
    struct profile *profile = frames->profile;
    if (!frames->unknown) {
        uint32_t name = profile_cstring(profile, "[unknown]");
        uint32_t function = profile_function(profile, &(struct profile_function){.name = name});
        uint32_t frame = profile_frame(profile, &(struct profile_frame){.function = function});
        frames->unknown = profile_stack(profile, &frame, 1);
    }
    return frames->unknown;
}

int parca_node(struct parca_frames *frames, struct arrow_cell stack, uint32_t *ret_node,
               struct error *error)
{
    const struct arrow_array *locations;
    struct parca_node made;
    uint32_t id;
    if (!arrow_list(stack, &locations, &made.first, &made.count) || !made.count) {
        *ret_node = unknown_stack(frames);
        return 0;
    }
    uint64_t hash = hash_word(made.first << 20 ^ made.count);
    struct id_probe probe = id_probe_start(hash);
    while ((id = id_table_next(&frames->nodes_by_range, &probe)) != ID_NONE)
        if (frames->nodes[id].first == made.first && frames->nodes[id].count == made.count) {
            *ret_node = frames->nodes[id].node;
            return 0;
        }
    int r = make_stack(frames, locations, made.first, made.count, &made.node, error);
    if (r < 0)
        return r;
    array_reserve(frames->nodes, frames->node_capacity, frames->node_count + 1);
    id_table_insert(&frames->nodes_by_range, hash, (uint32_t)frames->node_count);
    frames->nodes[frames->node_count++] = made;
    *ret_node = made.node;
    return 0;
}
