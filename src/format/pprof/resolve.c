// SPDX-License-Identifier: Apache-2.0
// Reading pprof, last part: strings, functions, frames and stacks are interned in the profile, and
// the values added. References to strings are checked here.

#include <string.h>

#include "base/memory.h"
#include "format/pprof/reader.h"
#include "profile/unresolved.h"

int pprof_string(struct pprof_reader *reader, uint64_t index, const char *what,
                 struct raw_string *ret_string, struct error *error)
{
    if (index >= MAX(reader->string_count, (size_t)1))
        return error_set(error, -EBADMSG,
                         "%s refers to string %llu, but there are only %zu (file ends at offset "
                         "%llu).",
                         what, (unsigned long long)index, reader->string_count,
                         (unsigned long long)reader->end_offset);
    *ret_string = index ? reader->strings[index] : (struct raw_string){0};
    return 0;
}

static int resolve_string(struct pprof_reader *reader, uint64_t index, const char *what,
                          uint32_t *ret_string, struct error *error)
{
    struct raw_string string = {0};
    int r = pprof_string(reader, index, what, &string, error);
    if (r < 0)
        return r;
    if (index && reader->string_ids[index] == ID_NONE)
        reader->string_ids[index] = profile_string(
            reader->profile, buffer_text(&reader->text) + string.offset, string.length);
    *ret_string = index ? reader->string_ids[index] : 0;
    return 0;
}

static int resolve_mapping(struct pprof_reader *reader, struct raw_mapping *raw,
                           struct error *error)
{
    if (raw->resolved != ID_NONE)
        return 0;
    struct profile_mapping mapping = raw->mapping;
    int r = resolve_string(reader, mapping.file, "A mapping", &mapping.file, error);
    if (!r)
        r = resolve_string(reader, mapping.build_id, "A mapping", &mapping.build_id, error);
    if (!r)
        raw->resolved = profile_mapping(reader->profile, &mapping);
    return r;
}

static int resolve_function(struct pprof_reader *reader, struct raw_function *raw,
                            struct error *error)
{
    if (raw->resolved != ID_NONE)
        return 0;
    struct profile_function function = {.start_line = raw->start_line};
    int r = resolve_string(reader, raw->name, "A function", &function.name, error);
    if (!r)
        r = resolve_string(reader, raw->system_name, "A function", &function.system_name, error);
    if (!r)
        r = resolve_string(reader, raw->file, "A function", &function.file, error);
    if (r < 0)
        return r;
    /* An empty function (Go's threadcreate has one) must not hide the address. */
    bool named = function.name || function.system_name || function.file;
    raw->resolved = named ? profile_function(reader->profile, &function) : 0;
    return 0;
}

static int resolve_symbols(struct pprof_reader *reader, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < reader->mapping_count; i++)
        r = resolve_mapping(reader, &reader->mappings[i], error);
    for (size_t i = 0; !r && i < reader->function_count; i++)
        r = resolve_function(reader, &reader->functions[i], error);
    return r;
}

/* The frames of one location, outermost first: its last line is the function that was really
 * called, the ones before it were inlined. */
int pprof_resolve_location(struct pprof_reader *reader, size_t index, struct error *error)
{
    const struct raw_location *raw = &reader->locations[index];
    struct profile_frame frame = {.address = raw->address, .folded = raw->folded};
    struct location_frames frames = {.first = (uint32_t)reader->frame_count,
                                     .count = raw->line_count ? raw->line_count : 1};
    if (raw->mapping) {
        struct raw_mapping *mapping = &reader->mappings[raw->mapping - 1];
        int r = resolve_mapping(reader, mapping, error);
        if (r < 0)
            return r;
        frame.mapping = mapping->resolved;
        frame.address = profile_file_offset(&mapping->mapping, raw->address);
    }
    array_reserve(reader->frames, reader->frame_capacity, reader->frame_count + frames.count);
    for (uint32_t i = raw->line_count; i-- > 0;) {
        const struct raw_line *line = &reader->lines[raw->first_line + i];
        struct raw_function *function =
            line->function ? &reader->functions[line->function - 1] : NULL;
        int r = function ? resolve_function(reader, function, error) : 0;
        if (r < 0)
            return r;
        frame.function = function ? function->resolved : 0;
        frame.line = line->line;
        frame.column = line->column;
        frame.inlined = i + 1 < raw->line_count;
        reader->frames[reader->frame_count++] = profile_frame(reader->profile, &frame);
    }
    if (!raw->line_count)
        frames.first = profile_frame(reader->profile, &frame);
    else if (frames.count == 1)
        frames.first = reader->frames[--reader->frame_count];
    reader->location_frames[index] = frames;
    return 0;
}

/* A few bytes can name a location with many lines many times. Real stacks have a handful of lines
 * per location. */
#define FRAMES_ALWAYS (1u << 20)
#define FRAMES_PER_LOCATION 32

uint64_t pprof_frame_budget(const struct pprof_reader *reader)
{
    return FRAMES_ALWAYS + (uint64_t)reader->stack_location_count * FRAMES_PER_LOCATION;
}

int pprof_too_many_frames(const struct byte_entry *entry, struct error *error)
{
    return error_set(error, -E2BIG,
                     "The sample before offset %llu expands to too many inlined functions.",
                     (unsigned long long)entry->seen_at);
}

static int resolve_stack(struct pprof_reader *reader, const struct byte_entry *entry,
                         uint32_t *ret_node, struct error *error)
{
    const uint32_t *locations = reader->stack_locations + entry->offset;
    size_t count = 0;
    array_reserve(reader->path, reader->path_capacity, 1); /* empty stacks need a place, too */
    /* Locations come leaf first; fill from the end so that the result is outermost first. */
    for (uint32_t k = 0; k < entry->length; k++) {
        const struct location_frames *location = &reader->location_frames[locations[k]];
        if (location->count > reader->frames_left)
            return pprof_too_many_frames(entry, error);
        reader->frames_left -= location->count;
        if (count + location->count > reader->path_capacity) {
            size_t old = reader->path_capacity;
            array_reserve(reader->path, reader->path_capacity, count + location->count);
            memmove(reader->path + reader->path_capacity - count, reader->path + old - count,
                    count * sizeof(*reader->path));
        }
        uint32_t *end = reader->path + reader->path_capacity;
        if (likely(location->count == 1)) {
            end[-(ptrdiff_t)++count] = location->first;
            continue;
        }
        for (uint32_t i = location->count; i-- > 0;)
            end[-(ptrdiff_t)++count] = reader->frames[location->first + i];
    }
    const uint32_t *frames = reader->path + reader->path_capacity - count;
    *ret_node = (reader->alone ? profile_path : profile_stack)(reader->profile, frames, count);
    return 0;
}

static int resolve_label(struct pprof_reader *reader, const struct wire_field *message,
                         struct profile_label *ret_label, struct error *error)
{
    uint64_t key = 0, text = 0, unit = 0;
    struct wire wire = wire_of_field(message);
    struct wire_field field;
    int r;
    *ret_label = (struct profile_label){0};
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number == LABEL_KEY)
            key = field.value;
        else if (field.number == LABEL_TEXT)
            text = field.value;
        else if (field.number == LABEL_NUMBER)
            ret_label->number = (int64_t)field.value;
        else if (field.number == LABEL_UNIT)
            unit = field.value;
    }
    if (r < 0)
        return error_set(error, -EBADMSG, "A label is malformed.");
    r = resolve_string(reader, key, "A label", &ret_label->key, error);
    if (!r)
        r = resolve_string(reader, text, "A label", &ret_label->text, error);
    if (!r)
        r = resolve_string(reader, unit, "A label", &ret_label->unit, error);
    return r;
}

static int resolve_label_set(struct pprof_reader *reader, const struct byte_entry *entry,
                             struct profile_label **labels, size_t *capacity, uint32_t *ret_set,
                             struct error *error)
{
    struct wire wire = wire_of(reader->labels.bytes.data + entry->offset, entry->length);
    size_t count = 0;
    while (wire.at < wire.end) {
        uint64_t length;
        if (!wire_varint(&wire, &length))
            return error_set(error, -EBADMSG, "A label is malformed.");
        struct wire_field message = {.data = wire.at, .length = (size_t)length};
        wire.at += length;
        array_reserve(*labels, *capacity, count + 1);
        int r = resolve_label(reader, &message, &(*labels)[count], error);
        if (r < 0)
            return error_prefix(error, "The sample before offset %llu",
                                (unsigned long long)entry->seen_at);
        count++;
    }
    *ret_set = profile_label_set(reader->profile, *labels, count);
    return 0;
}

static int resolve_types(struct pprof_reader *reader, unsigned *ret_columns, struct error *error)
{
    if (reader->width && reader->width != reader->type_count)
        return error_set(error, -EBADMSG,
                         "Samples have %zu values, but the profile has %zu sample types (file ends "
                         "at offset %llu).",
                         reader->width, reader->type_count, (unsigned long long)reader->end_offset);
    for (size_t i = 0; i < reader->type_count; i++) {
        uint32_t type = 0, unit = 0;
        int r = resolve_string(reader, reader->types[i].type, "A sample type", &type, error);
        if (!r)
            r = resolve_string(reader, reader->types[i].unit, "A sample type", &unit, error);
        if (r < 0)
            return r;
        ret_columns[i] = profile_type(reader->profile, type, unit);
        if (ret_columns[i] == PROFILE_TYPES_MAX)
            return error_set(error, -E2BIG, "There are more than %d sample types together.",
                             PROFILE_TYPES_MAX);
    }
    return 0;
}

int pprof_resolve_rows(struct pprof_reader *reader, const unsigned *columns, const uint32_t *nodes,
                       struct error *error)
{
    _cleanup_free_ uint32_t *sets = memory_zalloc(reader->labels.count + 1, sizeof(*sets));
    struct profile_label *labels = NULL;
    size_t label_capacity = 0;
    int r = 0;
    for (size_t i = 0; !r && i < reader->labels.count; i++)
        r = resolve_label_set(reader, &reader->labels.entries[i], &labels, &label_capacity,
                              &sets[i + 1], error);
    free(labels);
    if (!nodes)
        profile_reserve_rows(reader->profile, reader->row_count);
    for (size_t i = 0; !r && i < reader->row_count; i++) {
        const struct raw_row *row = &reader->rows[i];
        /* The rows of one file differ already; unresolved stacks are added up by who takes them. */
        size_t target =
            nodes ? profile_sample(reader->profile, nodes[row->stack], sets[row->labels], 0, 0)
                  : profile_append_sample(reader->profile, row->stack + 1, sets[row->labels], 0);
        for (size_t k = 0; k < reader->width; k++)
            profile_add_value(reader->profile, target, columns[k],
                              reader->values[i * reader->width + k]);
    }
    return r;
}

static int resolve_stacks(struct pprof_reader *reader, uint32_t *nodes, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < reader->location_count; i++)
        r = pprof_resolve_location(reader, i, error);
    reader->frames_left = pprof_frame_budget(reader);
    for (size_t i = 0; !r && i < reader->stacks.count; i++) {
        r = resolve_stack(reader, &reader->stacks.entries[i], &nodes[i], error);
        if (!r && profile_full(reader->profile))
            r = error_set(error, -E2BIG, "The profiles hold more than %u distinct frames.",
                          PROFILE_IDS_MAX);
    }
    return r;
}

static int resolve_header(struct pprof_reader *reader, struct error *error)
{
    struct profile *profile = reader->profile;
    uint32_t type = 0, unit = 0, text = 0;
    int r = resolve_string(reader, reader->period_type.type, "The period type", &type, error);
    if (!r)
        r = resolve_string(reader, reader->period_type.unit, "The period type", &unit, error);
    if (r < 0)
        return r;
    profile_note_period(profile, type, unit, reader->period);
    profile_note_source(profile, reader->time_ns, reader->duration_ns);

    const struct {
        uint64_t index;
        uint32_t *field;
    } texts[] = {{reader->drop_frames, &profile->drop_frames},
                 {reader->keep_frames, &profile->keep_frames},
                 {reader->default_type, &profile->default_type},
                 {reader->doc_url, &profile->doc_url}};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        r = resolve_string(reader, texts[i].index, "The profile", &text, error);
        if (r < 0)
            return r;
        if (!*texts[i].field)
            *texts[i].field = text;
    }
    for (size_t i = 0; i < reader->comment_count; i++) {
        r = resolve_string(reader, reader->comments[i], "A comment", &text, error);
        if (r < 0)
            return r;
        profile_add_comment(profile, text);
    }
    return 0;
}

int pprof_resolve_head(struct pprof_reader *reader, struct profile *profile, unsigned *ret_columns,
                       struct error *error)
{
    reader->profile = profile;
    reader->string_ids = memory_alloc((reader->string_count + 1) * sizeof(*reader->string_ids));
    memset(reader->string_ids, 0xff, (reader->string_count + 1) * sizeof(*reader->string_ids));
    if (reader->string_count && reader->strings[0].length)
        return error_set(error, -EBADMSG, "The first entry of the string table is not empty.");
    reader->location_frames =
        memory_zalloc(reader->location_count, sizeof(*reader->location_frames));
    int r = resolve_types(reader, ret_columns, error);
    return r < 0 ? r : resolve_header(reader, error);
}

int pprof_resolve(struct pprof_reader *reader, struct profile *profile, struct error *error)
{
    unsigned columns[PROFILE_TYPES_MAX];
    reader->alone = profile->node_count == 1;
    profile_reserve(profile, reader->string_count, reader->function_count, reader->line_count,
                    reader->stacks.count, reader->row_count);
    int r = pprof_resolve_head(reader, profile, columns, error);
    if (!r)
        r = resolve_symbols(reader, error);
    if (r < 0)
        return r;
    _cleanup_free_ uint32_t *nodes = memory_zalloc(reader->stacks.count, sizeof(*nodes));
    r = resolve_stacks(reader, nodes, error);
    return r < 0 ? r : pprof_resolve_rows(reader, columns, nodes, error);
}
