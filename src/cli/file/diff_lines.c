// SPDX-License-Identifier: Apache-2.0
// Lines of a function as frames: see diff_lines.h. The cost of a line alone, and including its
// callees, are then a function's self and total value, and judged like those.

#include "cli/file/diff_lines.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "profile/naming.h"

bool diff_lines_is_line(const char *name)
{
    return strcmp(name, DIFF_LINES_ELSEWHERE) && strcmp(name, DIFF_LINES_BELOW);
}

static uint32_t named_frame(struct profile *profile, const char *name, const char *file)
{
    struct profile_function function = {.name = profile_cstring(profile, name),
                                        .file = profile_cstring(profile, file)};
    return profile_frame(profile,
                         &(struct profile_frame){.function = profile_function(profile, &function)});
}

static uint32_t line_frame(struct profile *to, const struct profile *from, uint32_t frame)
{
    const struct profile_function *function = &from->functions[from->frames[frame].function];
    const char *file = profile_text(from, function->file);
    struct buffer name = {0};
    buffer_printf(&name, "%s:%u", *file ? path_base(file) : "?", from->frames[frame].line);
    uint32_t id = named_frame(to, buffer_text(&name), file);
    buffer_release(&name);
    return id;
}

/* By node: the node of the result that its stack becomes. */
static uint32_t *map_nodes(const struct profile *from, const struct naming *naming,
                           const char *function, struct profile *to, bool *inside)
{
    uint32_t *map = memory_zalloc(from->node_count, sizeof(*map));
    uint32_t below = named_frame(to, DIFF_LINES_BELOW, "");
    for (uint32_t node = 1; node < from->node_count; node++) {
        uint32_t parent = from->nodes[node].parent, frame = from->nodes[node].frame;
        uint32_t entry = naming->of_frame[frame];
        bool is = entry != NAMING_NONE && !strcmp(naming->entries[entry].name, function);
        inside[node] = is || inside[parent];
        map[node] = map[parent];
        if (is) {
            /* Callees below another of its frames count as this one's again. */
            uint32_t above = map[parent];
            if (above && to->nodes[above].frame == below)
                above = to->nodes[above].parent;
            map[node] = profile_child(to, above, line_frame(to, from, frame));
        } else if (inside[parent] && to->nodes[map[parent]].frame != below) {
            map[node] = profile_child(to, map[parent], below);
        }
    }
    return map;
}

size_t diff_lines_of(struct profile *profile, const char *function)
{
    _cleanup_naming_ struct naming naming = {0};
    struct profile lines;
    size_t found = 0;
    profile_init(&lines, PROFILE_TIMES | PROFILE_LABELS);
    naming_init(&naming, profile);
    _cleanup_free_ bool *inside = memory_zalloc(profile->node_count, sizeof(*inside));
    _cleanup_free_ uint32_t *map = map_nodes(profile, &naming, function, &lines, inside);
    uint32_t elsewhere = profile_child(&lines, 0, named_frame(&lines, DIFF_LINES_ELSEWHERE, ""));
    const struct profile_samples *samples = &profile->samples;
    for (unsigned type = 0; type < profile->type_count; type++)
        profile_type(&lines,
                     profile_cstring(&lines, profile_text(profile, profile->types[type].type)),
                     profile_cstring(&lines, profile_text(profile, profile->types[type].unit)));
    for (size_t row = 0; row < samples->count; row++) {
        uint32_t node = samples->node[row];
        uint32_t to = !node ? 0 : inside[node] ? map[node] : elsewhere;
        size_t copy =
            profile_sample(&lines, to, 0, 0, samples->time_ns ? samples->time_ns[row] : 0);
        for (unsigned type = 0; type < profile->type_count; type++)
            profile_add_value(&lines, copy, type, samples->values[type][row]);
        found += node && inside[node];
    }
    lines.default_type = profile_cstring(&lines, profile_text(profile, profile->default_type));
    profile_note_source(&lines, profile->time_ns, profile->duration_ns);
    profile_note_period(
        &lines, profile_cstring(&lines, profile_text(profile, profile->period_type.type)),
        profile_cstring(&lines, profile_text(profile, profile->period_type.unit)), profile->period);
    naming_release(&naming);
    naming = (struct naming){0};
    profile_release(profile);
    *profile = lines;
    return found;
}
