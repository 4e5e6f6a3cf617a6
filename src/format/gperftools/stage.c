// SPDX-License-Identifier: Apache-2.0
// Staged stacks of gperftools profiles: addresses come first, and when the file has said all about
// symbols and memory maps, the stacks move into the profile. See gperftools.h.

#include "format/gperftools/gperftools.h"

#include <string.h>

#include "base/memory.h"

void gperftools_init(struct gperftools *reader, struct profile *profile, unsigned staged_types)
{
    *reader = (struct gperftools){.profile = profile};
    profile_init(&reader->staged, PROFILE_ALL);
    for (unsigned i = 0; i < staged_types; i++) {
        char name = (char)('0' + i);
        profile_type(&reader->staged, profile_string(&reader->staged, &name, 1), 0);
    }
}

void gperftools_release(struct gperftools *reader)
{
    if (!reader->profile)
        return;
    profile_release(&reader->staged);
    arena_release(&reader->text);
    free(reader->maps);
    free(reader->symbols);
    free(reader->addresses);
    free(reader->frames);
    buffer_release(&reader->group);
    *reader = (struct gperftools){0};
}

int gperftools_check_full(const struct gperftools *reader, struct error *error)
{
    if (!profile_full(reader->profile) && !profile_full(&reader->staged))
        return 0;
    return error_set(error, -E2BIG, "There are more distinct stacks than a profile can hold.");
}

static uint32_t frame_of(struct gperftools *reader, uint64_t address)
{
    return profile_frame(&reader->staged, &(struct profile_frame){.address = address});
}

void gperftools_add_address(struct gperftools *reader, uint64_t address)
{
    array_reserve(reader->frames, reader->frame_capacity, reader->frame_count + 1);
    reader->frames[reader->frame_count++] = frame_of(reader, address);
}

uint32_t gperftools_take_stack(struct gperftools *reader)
{
    for (size_t i = 0, j = reader->frame_count; i + 1 < j; i++) {
        uint32_t frame = reader->frames[i];
        reader->frames[i] = reader->frames[--j];
        reader->frames[j] = frame;
    }
    uint32_t node = profile_stack(&reader->staged, reader->frames, reader->frame_count);
    reader->frame_count = 0;
    return node;
}

/* ---- symbols ---- */

/* Functions inlined into each other at one address. Compilers stop long before. */
#define INLINED_MAX 64

void gperftools_add_symbol(struct gperftools *reader, uint64_t address, const char *name,
                           size_t name_length, const char *file, size_t file_length, uint32_t line)
{
    struct profile *profile = reader->profile;
    uint32_t frame = frame_of(reader, address);
    size_t known = reader->address_capacity;
    array_reserve(reader->addresses, reader->address_capacity, (size_t)frame + 1);
    memset(reader->addresses + known, 0,
           (reader->address_capacity - known) * sizeof(*reader->addresses));
    struct gperftools_address *entry = &reader->addresses[frame];
    entry->listed = true;
    if (!name_length || entry->symbol_count == INLINED_MAX)
        return;
    entry->symbol_count++;
    struct gperftools_symbol symbol = {
        .function = profile_function(
            profile,
            &(struct profile_function){.name = profile_string(profile, name, name_length),
                                       .file = profile_string(profile, file, file_length)}),
        .line = line,
    };
    array_reserve(reader->symbols, reader->symbol_capacity, reader->symbol_count + 1);
    reader->symbols[reader->symbol_count++] = symbol;
    if (entry->last_symbol)
        reader->symbols[entry->last_symbol - 1].next = (uint32_t)reader->symbol_count;
    else
        entry->first_symbol = (uint32_t)reader->symbol_count;
    entry->last_symbol = (uint32_t)reader->symbol_count;
}

static bool is_listed(const struct gperftools *reader, uint32_t frame)
{
    return frame < reader->address_capacity && reader->addresses[frame].listed;
}

bool gperftools_is_listed(struct gperftools *reader, uint64_t address)
{
    /* Looking it up may stage a frame that no stack has; there are no more of those than lines. */
    return is_listed(reader, frame_of(reader, address));
}

/* ---- into the profile ---- */

static uint32_t mapping_of(struct gperftools *reader, struct gperftools_map *map)
{
    struct profile *profile = reader->profile;
    if (!map->mapping) {
        if (map->extended) {
            map->start -= map->offset;
            map->offset = 0;
        }
        map->mapping = profile_mapping(
            profile,
            &(struct profile_mapping){.start = map->start,
                                      .limit = map->limit,
                                      .offset = map->offset,
                                      .file = profile_cstring(profile, map->file),
                                      .build_id = profile_cstring(profile, map->build_id)});
    }
    return map->mapping;
}

/* Which frames of the profile each staged frame becomes: several when functions were inlined. */
struct expansion {
    uint32_t *frames;
    size_t frame_count, frame_capacity;
    size_t *first; /* by staged frame, and one more */
};

/* Outermost first, as the tree wants them. Symbols are in the opposite order. */
static void expand_symbols(struct gperftools *reader, struct expansion *expansion,
                           const struct profile_frame *base, uint32_t symbol)
{
    size_t start = expansion->frame_count;
    for (; symbol; symbol = reader->symbols[symbol - 1].next) {
        const struct gperftools_symbol *known = &reader->symbols[symbol - 1];
        struct profile_frame frame = *base;
        frame.function = known->function;
        frame.line = known->line;
        frame.inlined = known->next != 0;
        array_reserve(expansion->frames, expansion->frame_capacity, expansion->frame_count + 1);
        expansion->frames[expansion->frame_count++] = profile_frame(reader->profile, &frame);
    }
    for (size_t i = start, j = expansion->frame_count; i + 1 < j; i++) {
        uint32_t frame = expansion->frames[i];
        expansion->frames[i] = expansion->frames[--j];
        expansion->frames[j] = frame;
    }
}

/* Addresses that are explained but in no stack are left out. */
static void expand_frames(struct gperftools *reader, struct expansion *expansion)
{
    const struct profile *staged = &reader->staged;
    _cleanup_free_ bool *used = memory_zalloc(staged->frame_count, sizeof(*used));
    _cleanup_free_ struct gperftools_map **sorted = gperftools_sort_maps(reader);
    _cleanup_free_ struct gperftools_map **map_of =
        memory_zalloc(staged->frame_count, sizeof(*map_of));
    for (uint32_t i = 1; i < staged->node_count; i++)
        used[staged->nodes[i].frame] = true;
    for (uint32_t i = 1; i < staged->frame_count && !reader->java; i++)
        if (used[i])
            map_of[i] = gperftools_find_map(sorted, reader->map_count, staged->frames[i].address);
    if (reader->map_count)
        mapping_of(reader, &reader->maps[0]);

    expansion->first = memory_zalloc(staged->frame_count + 1, sizeof(*expansion->first));
    for (uint32_t i = 1; i < staged->frame_count; i++) {
        uint32_t symbol = i < reader->address_capacity ? reader->addresses[i].first_symbol : 0;
        struct profile_frame frame = {.address = staged->frames[i].address,
                                      .kind = reader->java ? FRAME_JVM : FRAME_UNKNOWN};
        if (map_of[i]) {
            frame.mapping = mapping_of(reader, map_of[i]);
            frame.address = frame.address - map_of[i]->start + map_of[i]->offset;
        }
        /* Java's addresses are serial numbers: of no use once there is a name. */
        if (reader->java && symbol)
            frame.address = 0;
        expansion->first[i] = expansion->frame_count;
        if (!used[i])
            continue;
        if (symbol) {
            expand_symbols(reader, expansion, &frame, symbol);
        } else {
            array_reserve(expansion->frames, expansion->frame_capacity, expansion->frame_count + 1);
            expansion->frames[expansion->frame_count++] = profile_frame(reader->profile, &frame);
        }
    }
    expansion->first[staged->frame_count] = expansion->frame_count;
}

/* Go lists the symbols of each stack, but for its own start and, in heap profiles, its allocator:
 * such frames at the ends of a stack would only be nameless. Narrows a stack to what lies between
 * the listed frames at its ends, if there are any. */
static void trim_stack(const struct gperftools *reader, size_t *first, size_t *end)
{
    size_t low = *first, high = *end;
    if (!reader->symbol_count || reader->java)
        return;
    while (low < high && !is_listed(reader, reader->frames[low]))
        low++;
    while (low < high && !is_listed(reader, reader->frames[high - 1]))
        high--;
    if (low < high) {
        *first = low;
        *end = high;
    }
}

static uint32_t move_stack(struct gperftools *reader, struct expansion *expansion, uint32_t node)
{
    const struct profile *staged = &reader->staged;
    size_t first = 0, end = 0;
    for (; node; node = staged->nodes[node].parent) {
        array_reserve(reader->frames, reader->frame_capacity, end + 1);
        reader->frames[end++] = staged->nodes[node].frame;
    }
    trim_stack(reader, &first, &end);
    uint32_t moved = 0;
    while (end > first) {
        uint32_t frame = reader->frames[--end];
        for (size_t i = expansion->first[frame]; i < expansion->first[frame + 1]; i++)
            moved = profile_child(reader->profile, moved, expansion->frames[i]);
    }
    return moved;
}

static uint32_t move_labels(struct gperftools *reader, uint32_t label_set)
{
    size_t count;
    const struct profile_label *labels = profile_labels(&reader->staged, label_set, &count);
    if (!count)
        return 0;
    /* There is never more than the one that says how large the blocks were. */
    struct profile_label label = labels[0];
    label.key = profile_cstring(reader->profile, profile_text(&reader->staged, label.key));
    return profile_label_set(reader->profile, &label, 1);
}

void gperftools_finish(struct gperftools *reader, int64_t duration_ns, const unsigned *types,
                       unsigned type_count)
{
    struct profile *profile = reader->profile;
    const struct profile_samples *rows = &reader->staged.samples;
    struct expansion expansion = {0};
    expand_frames(reader, &expansion);
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t node = move_stack(reader, &expansion, rows->node[i]);
        size_t row = profile_sample(profile, node, move_labels(reader, rows->labels[i]), 0, 0);
        for (unsigned type = 0; type < type_count; type++)
            profile_add_value(profile, row, types[type], rows->values[type][i]);
    }
    free(expansion.frames);
    free(expansion.first);
    profile_note_source(profile, 0, duration_ns);
}
