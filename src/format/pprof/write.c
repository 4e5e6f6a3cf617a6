// SPDX-License-Identifier: Apache-2.0
// Writing pprof. Messages go out in the order Go's runtime uses: types, samples, tables, strings.
// Frames that were inlined join the location of the function they were inlined into.

#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hex.h"
#include "base/memory.h"
#include "format/pprof/pprof.h"
#include "io/wire.h"
#include "profile/address.h"

/* A location is a run of frames, innermost first, that share one address. */
struct location {
    uint32_t first, count; /* into location_frames */
};

struct writer {
    const struct profile *profile;
    struct buffer *out;
    uint32_t *string_index;         /* profile string -> index in the file; 0: not yet used */
    struct profile_string *strings; /* the file's table */
    size_t string_count, string_capacity;
    struct arena text;     /* of strings that the profile doesn't have */
    uint32_t link_keys[2]; /* strings "trace_id" and "span_id" once they are used */

    uint32_t *frame_location; /* frame -> location of that frame alone, counted from 1 */
    struct location *locations;
    size_t location_count, location_capacity;
    uint32_t *location_frames;
    size_t location_frame_count, location_frame_capacity;
    struct id_table location_index; /* of locations with inlined frames */
    uint32_t *scratch;
    size_t scratch_capacity;
    struct buffer stack; /* the current one, encoded */
};

static void writer_release(struct writer *writer)
{
    free(writer->string_index);
    free(writer->strings);
    arena_release(&writer->text);
    free(writer->frame_location);
    free(writer->locations);
    free(writer->location_frames);
    free(writer->scratch);
    buffer_release(&writer->stack);
    id_table_release(&writer->location_index);
}

static uint32_t add_string(struct writer *writer, struct profile_string string)
{
    array_reserve(writer->strings, writer->string_capacity, writer->string_count + 1);
    writer->strings[writer->string_count] = string;
    return (uint32_t)writer->string_count++;
}

static uint64_t use_string(struct writer *writer, uint32_t string)
{
    if (string && !writer->string_index[string])
        writer->string_index[string] = add_string(writer, writer->profile->strings[string]);
    return writer->string_index[string];
}

static uint64_t use_hex(struct writer *writer, const uint8_t *bytes, size_t count)
{
    char hex[33];
    hex_encode(bytes, count, hex);
    return add_string(writer,
                      (struct profile_string){.data = arena_strndup(&writer->text, hex, 2 * count),
                                              .length = 2 * count});
}

static uint32_t new_location(struct writer *writer, const uint32_t *frames, size_t count)
{
    array_reserve(writer->locations, writer->location_capacity, writer->location_count + 1);
    array_reserve(writer->location_frames, writer->location_frame_capacity,
                  writer->location_frame_count + count);
    memcpy(writer->location_frames + writer->location_frame_count, frames, count * sizeof(*frames));
    writer->locations[writer->location_count] = (struct location){
        .first = (uint32_t)writer->location_frame_count, .count = (uint32_t)count};
    writer->location_frame_count += count;
    return (uint32_t)++writer->location_count;
}

/* The id of a location with these frames, innermost first. */
static uint32_t use_location(struct writer *writer, const uint32_t *frames, size_t count)
{
    if (count == 1) {
        uint32_t *known = &writer->frame_location[frames[0]];
        if (!*known)
            *known = new_location(writer, frames, 1);
        return *known;
    }
    uint64_t hash = XXH3_64bits(frames, count * sizeof(*frames));
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&writer->location_index, &probe)) != ID_NONE) {
        const struct location *location = &writer->locations[id - 1];
        if (location->count == count &&
            !memcmp(writer->location_frames + location->first, frames, count * sizeof(*frames)))
            return id;
    }
    id = new_location(writer, frames, count);
    id_table_insert(&writer->location_index, hash, id);
    return id;
}

/* The packed location ids of a stack, leaf first. */
static void encode_stack(struct writer *writer, uint32_t node)
{
    const struct profile *profile = writer->profile;
    writer->stack.length = 0;
    while (node) {
        size_t count = 0;
        bool inlined;
        do {
            array_reserve(writer->scratch, writer->scratch_capacity, count + 1);
            writer->scratch[count++] = profile->nodes[node].frame;
            inlined = profile->frames[profile->nodes[node].frame].inlined;
            node = profile->nodes[node].parent;
        } while (inlined && node);
        wire_put_varint(&writer->stack, use_location(writer, writer->scratch, count));
    }
}

static void put_label(struct writer *writer, const struct profile_label *label)
{
    size_t mark = wire_begin(writer->out, SAMPLE_LABEL);
    wire_put_u64(writer->out, LABEL_KEY, use_string(writer, label->key));
    wire_put_u64(writer->out, LABEL_TEXT, use_string(writer, label->text));
    wire_put_i64(writer->out, LABEL_NUMBER, label->number);
    wire_put_u64(writer->out, LABEL_UNIT, use_string(writer, label->unit));
    wire_end(writer->out, mark);
}

/* pprof has no links to spans; the label names are those that Pyroscope gives them. */
static void put_link(struct writer *writer, uint32_t link)
{
    const struct profile_link *ids = &writer->profile->links[link];
    const struct {
        const char *key;
        const uint8_t *bytes;
        size_t count;
    } labels[] = {{"trace_id", ids->trace_id, 16}, {"span_id", ids->span_id, 8}};
    for (size_t i = 0; i < ARRAY_LENGTH(labels); i++) {
        struct profile_string key = {.data = labels[i].key, .length = strlen(labels[i].key)};
        if (!writer->link_keys[i])
            writer->link_keys[i] = add_string(writer, key);
        size_t mark = wire_begin(writer->out, SAMPLE_LABEL);
        wire_put_u64(writer->out, LABEL_KEY, writer->link_keys[i]);
        wire_put_u64(writer->out, LABEL_TEXT, use_hex(writer, labels[i].bytes, labels[i].count));
        wire_end(writer->out, mark);
    }
}

static void put_sample(struct writer *writer, size_t row)
{
    const struct profile *profile = writer->profile;
    const struct profile_samples *samples = &profile->samples;
    size_t mark = wire_begin(writer->out, PPROF_SAMPLE);
    if (writer->stack.length)
        wire_put_bytes(writer->out, SAMPLE_LOCATION, writer->stack.data, writer->stack.length);
    size_t values = wire_begin(writer->out, SAMPLE_VALUE);
    for (unsigned type = 0; type < profile->type_count; type++)
        wire_put_varint(writer->out, (uint64_t)samples->values[type][row]);
    wire_end(writer->out, values);
    size_t count;
    const struct profile_label *labels = profile_labels(profile, samples->labels[row], &count);
    for (size_t i = 0; i < count; i++)
        put_label(writer, &labels[i]);
    if (samples->link && samples->link[row])
        put_link(writer, samples->link[row]);
    wire_end(writer->out, mark);
}

/* Samples go out in the order of the tree: each stack is encoded once, and neighbours are alike,
 * which helps the compressor more than anything else could. */
static void put_samples(struct writer *writer)
{
    const struct profile *profile = writer->profile;
    const struct profile_samples *samples = &profile->samples;
    _cleanup_free_ uint32_t *first = memory_zalloc(profile->node_count, sizeof(*first));
    _cleanup_free_ uint32_t *next = memory_zalloc(samples->count, sizeof(*next));
    for (size_t row = samples->count; row-- > 0;) {
        next[row] = first[samples->node[row]];
        first[samples->node[row]] = (uint32_t)row + 1;
    }
    for (uint32_t node = 0; node < profile->node_count; node++) {
        if (!first[node])
            continue;
        encode_stack(writer, node);
        for (uint32_t row = first[node]; row; row = next[row - 1])
            put_sample(writer, row - 1);
        if (!buffer_pass(writer->out))
            return;
    }
}

/* pprof records whether a mapping still needs symbols: it does when a frame of it has no name. */
struct mapping_symbols {
    bool unnamed, named, files, lines, inlines;
};

static void put_mappings(struct writer *writer)
{
    const struct profile *profile = writer->profile;
    _cleanup_free_ struct mapping_symbols *symbols =
        memory_zalloc(profile->mapping_count, sizeof(*symbols));
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        struct mapping_symbols *has = &symbols[frame->mapping];
        has->unnamed |= !frame->function;
        has->named |= frame->function != 0;
        has->files |= profile->functions[frame->function].file != 0;
        has->lines |= frame->line != 0;
        has->inlines |= frame->inlined;
    }
    for (uint32_t i = 1; i < profile->mapping_count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[i];
        bool named = symbols[i].named && !symbols[i].unnamed;
        size_t mark = wire_begin(writer->out, PPROF_MAPPING);
        wire_put_u64(writer->out, MAPPING_ID, i);
        bool by_address = profile_by_address(mapping);
        wire_put_u64(writer->out, MAPPING_START, by_address ? 0 : mapping->start);
        wire_put_u64(writer->out, MAPPING_LIMIT, mapping->limit);
        wire_put_u64(writer->out, MAPPING_OFFSET, by_address ? 0 : mapping->offset);
        wire_put_u64(writer->out, MAPPING_FILE, use_string(writer, mapping->file));
        wire_put_u64(writer->out, MAPPING_BUILD_ID, use_string(writer, mapping->build_id));
        wire_put_u64(writer->out, MAPPING_HAS_FUNCTIONS, named);
        wire_put_u64(writer->out, MAPPING_HAS_FILENAMES, named && symbols[i].files);
        wire_put_u64(writer->out, MAPPING_HAS_LINES, named && symbols[i].lines);
        wire_put_u64(writer->out, MAPPING_HAS_INLINES, named && symbols[i].inlines);
        wire_end(writer->out, mark);
    }
}

static void put_locations(struct writer *writer, bool *function_used)
{
    const struct profile *profile = writer->profile;
    for (size_t i = 0; i < writer->location_count; i++) {
        const uint32_t *frames = writer->location_frames + writer->locations[i].first;
        uint32_t count = writer->locations[i].count;
        const struct profile_frame *outer = &profile->frames[frames[count - 1]];
        size_t mark = wire_begin(writer->out, PPROF_LOCATION);
        wire_put_u64(writer->out, LOCATION_ID, i + 1);
        wire_put_u64(writer->out, LOCATION_MAPPING, outer->mapping);
        wire_put_u64(writer->out, LOCATION_ADDRESS, profile_frame_address(profile, outer));
        for (uint32_t k = 0; k < count; k++) {
            const struct profile_frame *frame = &profile->frames[frames[k]];
            if (!frame->function)
                continue;
            function_used[frame->function] = true;
            size_t line = wire_begin(writer->out, LOCATION_LINE);
            wire_put_u64(writer->out, LINE_FUNCTION, frame->function);
            wire_put_u64(writer->out, LINE_LINE, frame->line);
            wire_put_u64(writer->out, LINE_COLUMN, frame->column);
            wire_end(writer->out, line);
        }
        wire_put_u64(writer->out, LOCATION_FOLDED, outer->folded);
        wire_end(writer->out, mark);
        if (!buffer_pass(writer->out))
            return;
    }
}

static void put_functions(struct writer *writer, const bool *function_used)
{
    const struct profile *profile = writer->profile;
    for (uint32_t i = 1; i < profile->function_count; i++) {
        const struct profile_function *function = &profile->functions[i];
        if (!function_used[i])
            continue;
        size_t mark = wire_begin(writer->out, PPROF_FUNCTION);
        wire_put_u64(writer->out, FUNCTION_ID, i);
        wire_put_u64(writer->out, FUNCTION_NAME, use_string(writer, function->name));
        wire_put_u64(writer->out, FUNCTION_SYSTEM_NAME, use_string(writer, function->system_name));
        wire_put_u64(writer->out, FUNCTION_FILE, use_string(writer, function->file));
        wire_put_u64(writer->out, FUNCTION_START_LINE, function->start_line);
        wire_end(writer->out, mark);
        if (!buffer_pass(writer->out))
            return;
    }
}

static void put_value_type(struct writer *writer, uint32_t number, struct profile_type type)
{
    size_t mark = wire_begin(writer->out, number);
    wire_put_u64(writer->out, VALUE_TYPE_TYPE, use_string(writer, type.type));
    wire_put_u64(writer->out, VALUE_TYPE_UNIT, use_string(writer, type.unit));
    wire_end(writer->out, mark);
}

static void put_header(struct writer *writer)
{
    const struct profile *profile = writer->profile;
    struct buffer *out = writer->out;
    wire_put_u64(out, PPROF_DROP_FRAMES, use_string(writer, profile->drop_frames));
    wire_put_u64(out, PPROF_KEEP_FRAMES, use_string(writer, profile->keep_frames));
    wire_put_i64(out, PPROF_TIME_NANOS, profile->time_ns);
    wire_put_i64(out, PPROF_DURATION_NANOS, profile->duration_ns);
    if (profile->period_type.type || profile->period_type.unit)
        put_value_type(writer, PPROF_PERIOD_TYPE, profile->period_type);
    wire_put_i64(out, PPROF_PERIOD, profile->period);
    for (size_t i = 0; i < profile->comment_count; i++)
        wire_put_u64(out, PPROF_COMMENT, use_string(writer, profile->comments[i]));
    wire_put_u64(out, PPROF_DEFAULT_SAMPLE_TYPE, use_string(writer, profile->default_type));
    wire_put_u64(out, PPROF_DOC_URL, use_string(writer, profile->doc_url));
}

int pprof_write(struct buffer *out, const struct profile *profile,
                const struct write_options *options, struct error *error)
{
    (void)options;
    (void)error;
    _cleanup_(writer_release) struct writer writer = {.profile = profile, .out = out};
    writer.string_index = memory_zalloc(profile->string_count, sizeof(uint32_t));
    add_string(&writer, profile->strings[0]);
    writer.frame_location = memory_zalloc(profile->frame_count, sizeof(uint32_t));
    _cleanup_free_ bool *function_used = memory_zalloc(profile->function_count, sizeof(bool));

    for (unsigned i = 0; i < profile->type_count; i++)
        put_value_type(&writer, PPROF_SAMPLE_TYPE, profile->types[i]);
    put_samples(&writer);
    put_mappings(&writer);
    put_locations(&writer, function_used);
    put_functions(&writer, function_used);
    put_header(&writer);
    for (size_t i = 0; i < writer.string_count && buffer_pass(out); i++)
        wire_put_bytes(out, PPROF_STRING, writer.strings[i].data, writer.strings[i].length);
    return 0;
}
