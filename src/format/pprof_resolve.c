// SPDX-License-Identifier: Apache-2.0
// Reading pprof, last part: strings, functions, frames and stacks are interned in the profile, and
// the values added. References to strings are checked here.

#include <string.h>

#include "base/memory.h"
#include "format/pprof_reader.h"

static int resolve_string(struct pprof_reader *reader, uint64_t index, const char *what,
                          uint32_t *ret_string, struct error *error)
{
    if (!index) {
        *ret_string = 0;
        return 0;
    }
    if (index >= reader->string_count)
        return error_set(error, -EBADMSG,
                         "%s refers to string %llu, but there are only %zu (file ends at offset "
                         "%llu).",
                         what, (unsigned long long)index, reader->string_count,
                         (unsigned long long)reader->end_offset);
    *ret_string = reader->string_ids[index];
    return 0;
}

static int resolve_mappings(struct pprof_reader *reader, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < reader->mapping_count; i++) {
        struct raw_mapping *raw = &reader->mappings[i];
        uint32_t file = raw->mapping.file, build_id = raw->mapping.build_id;
        r = resolve_string(reader, file, "A mapping", &raw->mapping.file, error);
        if (!r)
            r = resolve_string(reader, build_id, "A mapping", &raw->mapping.build_id, error);
        if (!r)
            raw->resolved = profile_mapping(reader->profile, &raw->mapping);
    }
    return r;
}

static int resolve_functions(struct pprof_reader *reader, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < reader->function_count; i++) {
        struct raw_function *raw = &reader->functions[i];
        struct profile_function function = {.start_line = raw->start_line};
        r = resolve_string(reader, raw->name, "A function", &function.name, error);
        if (!r)
            r = resolve_string(reader, raw->system_name, "A function", &function.system_name,
                               error);
        if (!r)
            r = resolve_string(reader, raw->file, "A function", &function.file, error);
        /* A function that says nothing (Go's threadcreate has one) must not hide the address. */
        if (!r && (function.name || function.system_name || function.file))
            raw->resolved = profile_function(reader->profile, &function);
    }
    return r;
}

/* The frames of one location, outermost first: its last line is the function that was really
 * called, the ones before it were inlined. */
static void resolve_location(struct pprof_reader *reader, size_t index)
{
    const struct raw_location *raw = &reader->locations[index];
    struct profile_frame frame = {.address = raw->address, .folded = raw->folded};
    if (raw->mapping) {
        const struct raw_mapping *mapping = &reader->mappings[raw->mapping - 1];
        frame.mapping = mapping->resolved;
        frame.address = profile_file_offset(&mapping->mapping, raw->address);
    }
    struct location_frames *frames = &reader->location_frames[index];
    frames->first = (uint32_t)reader->frame_count;
    frames->count = raw->line_count ? raw->line_count : 1;
    array_reserve(reader->frames, reader->frame_capacity, reader->frame_count + frames->count);
    if (!raw->line_count) {
        frames->first = profile_frame(reader->profile, &frame);
        return;
    }
    for (uint32_t i = raw->line_count; i-- > 0;) {
        const struct raw_line *line = &reader->lines[raw->first_line + i];
        frame.function = line->function ? reader->functions[line->function - 1].resolved : 0;
        frame.line = line->line;
        frame.column = line->column;
        frame.inlined = i + 1 < raw->line_count;
        reader->frames[reader->frame_count++] = profile_frame(reader->profile, &frame);
    }
    if (frames->count == 1)
        frames->first = reader->frames[--reader->frame_count];
}

/* A few bytes can name a location with many lines many times. Real stacks have a handful of lines
 * per location. */
#define FRAMES_ALWAYS (1u << 20)
#define FRAMES_PER_LOCATION 32

static int resolve_stack(struct pprof_reader *reader, const struct byte_entry *entry,
                         uint32_t **frames, size_t *capacity, uint32_t *ret_node,
                         struct error *error)
{
    const uint32_t *locations = reader->stack_locations + entry->offset;
    size_t count = 0;
    /* Locations come leaf first; fill from the end so that the result is outermost first. */
    for (uint32_t k = 0; k < entry->length; k++) {
        const struct location_frames *location = &reader->location_frames[locations[k]];
        if (location->count > reader->frames_left)
            return error_set(error, -E2BIG,
                             "The sample before offset %llu expands to an absurd number of inlined "
                             "functions.",
                             (unsigned long long)entry->seen_at);
        reader->frames_left -= location->count;
        if (count + location->count > *capacity) {
            size_t old = *capacity;
            array_reserve(*frames, *capacity, count + location->count);
            memmove(*frames + *capacity - count, *frames + old - count, count * sizeof(**frames));
        }
        if (likely(location->count == 1)) {
            (*frames)[*capacity - ++count] = location->first;
            continue;
        }
        for (uint32_t i = location->count; i-- > 0;)
            (*frames)[*capacity - ++count] = reader->frames[location->first + i];
    }
    *ret_node = profile_stack(reader->profile, *frames + *capacity - count, count);
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
                         "Samples have %zu values, but the profile names %zu sample types (file "
                         "ends at offset %llu).",
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

static int resolve_samples(struct pprof_reader *reader, const unsigned *columns, uint32_t *nodes,
                           uint32_t *sets, struct error *error)
{
    uint32_t *frames = NULL;
    struct profile_label *labels = NULL;
    size_t frame_capacity = 0, label_capacity = 0;
    array_reserve(frames, frame_capacity, 1); /* empty stacks need a place, too */
    int r = 0;
    reader->frames_left =
        FRAMES_ALWAYS + (uint64_t)reader->stack_location_count * FRAMES_PER_LOCATION;
    for (size_t i = 0; !r && i < reader->stacks.count; i++) {
        r = resolve_stack(reader, &reader->stacks.entries[i], &frames, &frame_capacity, &nodes[i],
                          error);
        if (!r && profile_full(reader->profile))
            r = error_set(error, -E2BIG, "The profiles hold more than %u distinct frames.",
                          PROFILE_IDS_MAX);
    }
    for (size_t i = 0; !r && i < reader->labels.count; i++)
        r = resolve_label_set(reader, &reader->labels.entries[i], &labels, &label_capacity,
                              &sets[i + 1], error);
    free(frames);
    free(labels);
    for (size_t i = 0; !r && i < reader->row_count; i++) {
        const struct raw_row *row = &reader->rows[i];
        size_t target = profile_sample(reader->profile, nodes[row->stack], sets[row->labels], 0, 0);
        for (size_t k = 0; k < reader->width; k++)
            profile_add_value(reader->profile, target, columns[k],
                              reader->values[i * reader->width + k]);
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

static void resolve_strings(struct pprof_reader *reader)
{
    reader->string_ids = memory_zalloc(reader->string_count, sizeof(*reader->string_ids));
    const char *text = buffer_text(&reader->text); /* not NULL, even when all strings are empty */
    for (size_t i = 0; i < reader->string_count; i++)
        reader->string_ids[i] = profile_string(reader->profile, text + reader->strings[i].offset,
                                               reader->strings[i].length);
}

int pprof_resolve(struct pprof_reader *reader, struct profile *profile, struct error *error)
{
    unsigned columns[PROFILE_TYPES_MAX];
    reader->profile = profile;
    resolve_strings(reader);
    if (reader->string_count && reader->strings[0].length)
        return error_set(error, -EBADMSG, "The first entry of the string table is not empty.");
    int r = resolve_types(reader, columns, error);
    if (!r)
        r = resolve_mappings(reader, error);
    if (!r)
        r = resolve_functions(reader, error);
    if (!r)
        r = resolve_header(reader, error);
    if (r < 0)
        return r;
    reader->location_frames =
        memory_zalloc(reader->location_count, sizeof(*reader->location_frames));
    for (size_t i = 0; i < reader->location_count; i++)
        resolve_location(reader, i);
    _cleanup_free_ uint32_t *nodes = memory_zalloc(reader->stacks.count, sizeof(*nodes));
    _cleanup_free_ uint32_t *sets = memory_zalloc(reader->labels.count + 1, sizeof(*sets));
    return resolve_samples(reader, columns, nodes, sets, error);
}
