// SPDX-License-Identifier: Apache-2.0
// Writes speedscope's own file format: one "sampled" profile per sample type over shared frames.
// Stacks are in the order of time when samples have times, otherwise in the order of the tree, so
// that speedscope's first view is a flame graph and not confetti.

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/number.h"
#include "format/speedscope/speedscope.h"
#include "io/json_write.h"
#include "profile/naming.h"

/* Far more than a browser can open; a deep tree can ask for the square of its size. */
#define OUTPUT_LIMIT_BYTES (1ull << 30)

/* The identity of a frame in speedscope. Without padding, so that it can be hashed. */
struct output_frame {
    uint32_t name; /* entry of the naming */
    uint32_t file; /* string */
    uint32_t line;
    uint32_t column;
};

struct writer {
    const struct profile *profile;
    struct naming naming;
    struct output_frame *frames;
    size_t frame_count, frame_capacity;
    struct id_table frame_index;
    uint32_t *of_frame; /* frame of the model -> index into `frames` */
    size_t *rows;       /* in the order of writing */
    uint32_t *path;
    size_t path_capacity;
};

static void writer_release(struct writer *writer)
{
    naming_release(&writer->naming);
    id_table_release(&writer->frame_index);
    free(writer->frames);
    free(writer->of_frame);
    free(writer->rows);
    free(writer->path);
}

/* ---- frames ---- */

static uint32_t intern_frame(struct writer *writer, const struct output_frame *frame)
{
    uint64_t hash = XXH3_64bits(frame, sizeof(*frame));
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&writer->frame_index, &probe)) != ID_NONE)
        if (!memcmp(&writer->frames[id], frame, sizeof(*frame)))
            return id;
    array_reserve(writer->frames, writer->frame_capacity, writer->frame_count + 1);
    id = (uint32_t)writer->frame_count++;
    writer->frames[id] = *frame;
    id_table_insert(&writer->frame_index, hash, id);
    return id;
}

/* Which frames a sample's stack goes through. */
static bool *find_used_frames(const struct profile *profile)
{
    bool *used = memory_zalloc(profile->frame_count, sizeof(*used));
    _cleanup_free_ bool *reached = memory_zalloc(profile->node_count, sizeof(*reached));
    for (size_t i = 0; i < profile->samples.count; i++)
        reached[profile->samples.node[i]] = true;
    for (uint32_t i = profile->node_count; i-- > 1;)
        if (reached[i]) {
            reached[profile->nodes[i].parent] = true;
            used[profile->nodes[i].frame] = true;
        }
    return used;
}

static void number_frames(struct writer *writer)
{
    const struct profile *profile = writer->profile;
    _cleanup_free_ bool *used = find_used_frames(profile);
    naming_init(&writer->naming, profile);
    writer->of_frame = memory_zalloc(profile->frame_count, sizeof(*writer->of_frame));
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        if (!used[i])
            continue;
        const struct profile_frame *frame = &profile->frames[i];
        const struct profile_function *function = &profile->functions[frame->function];
        struct output_frame output = {
            .name = writer->naming.of_frame[i],
            .file = frame->function ? function->file : profile->mappings[frame->mapping].file,
            .line = frame->line ? frame->line : function->start_line,
            .column = frame->column == (1u << 24) - 1 ? 0 : frame->column,
        };
        writer->of_frame[i] = intern_frame(writer, &output);
    }
}

static void write_frames(struct writer *writer, struct json_writer *json)
{
    json_write_key(json, "shared");
    json_write_object(json);
    json_write_key(json, "frames");
    json_write_array(json);
    for (size_t i = 0; i < writer->frame_count && buffer_pass(json->out); i++) {
        const struct output_frame *frame = &writer->frames[i];
        const struct naming_entry *entry = &writer->naming.entries[frame->name];
        json_write_line(json);
        json_write_object(json);
        json_write_key(json, "name");
        json_write_bytes(json, entry->name, entry->length);
        if (frame->file) {
            const struct profile_string *file = &writer->profile->strings[frame->file];
            json_write_key(json, "file");
            json_write_bytes(json, file->data, file->length);
        }
        if (frame->line)
            json_member_unsigned(json, "line", frame->line);
        if (frame->column)
            json_member_unsigned(json, "col", frame->column);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_write_object_end(json);
}

/* ---- the order of stacks ---- */

/* Each node's place in a walk of the tree that enters the children of a node before its siblings:
 * a child's is its parent's plus the sizes of the subtrees before it. */
static uint32_t *walk_order(const struct profile *profile)
{
    uint32_t count = profile->node_count;
    uint32_t *place = memory_zalloc(count, sizeof(*place));
    _cleanup_free_ uint32_t *size = memory_zalloc(count, sizeof(*size));
    _cleanup_free_ uint32_t *used = memory_zalloc(count, sizeof(*used));
    for (uint32_t i = count; i-- > 1;)
        size[profile->nodes[i].parent] += ++size[i];
    for (uint32_t i = 1; i < count; i++) {
        uint32_t parent = profile->nodes[i].parent;
        place[i] = place[parent] + 1 + used[parent];
        used[parent] += size[i];
    }
    return place;
}

struct row_key {
    uint64_t time_ns; /* 0, none, is first */
    uint32_t place;
    size_t row;
};

static int compare_keys(const void *a, const void *b)
{
    const struct row_key *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (!x->time_ns && x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void order_rows(struct writer *writer)
{
    const struct profile_samples *samples = &writer->profile->samples;
    _cleanup_free_ uint32_t *place = walk_order(writer->profile);
    _cleanup_free_ struct row_key *keys = memory_zalloc(samples->count, sizeof(*keys));
    for (size_t i = 0; i < samples->count; i++) {
        keys[i] = (struct row_key){.time_ns = samples->time_ns ? samples->time_ns[i] : 0,
                                   .place = place[samples->node[i]],
                                   .row = i};
    }
    qsort(keys, samples->count, sizeof(*keys), compare_keys);
    writer->rows = memory_zalloc(samples->count, sizeof(*writer->rows));
    for (size_t i = 0; i < samples->count; i++)
        writer->rows[i] = keys[i].row;
}

/* ---- profiles ---- */

static const char *speedscope_unit(const char *unit)
{
    static const char *const known[] = {"nanoseconds", "microseconds", "milliseconds", "seconds",
                                        "bytes"};
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (!strcmp(unit, known[i]))
            return known[i];
    return "none";
}

static void write_stack(struct writer *writer, uint32_t node, struct json_writer *json)
{
    const struct profile *profile = writer->profile;
    size_t depth = 0;
    for (; node; node = profile->nodes[node].parent) {
        array_reserve(writer->path, writer->path_capacity, depth + 1);
        writer->path[depth++] = writer->of_frame[profile->nodes[node].frame];
    }
    json_write_array(json);
    while (depth)
        json_write_unsigned(json, writer->path[--depth]);
    json_write_array_end(json);
}

/* Rows without a time that differ only in labels or links are one stack here. */
static bool same_stack(const struct profile_samples *samples, size_t a, size_t b)
{
    return samples->node[a] == samples->node[b] &&
           (!samples->time_ns || (!samples->time_ns[a] && !samples->time_ns[b]));
}

/* The value of the stack at *at in the order of writing; moves *at behind it. */
static int64_t next_value(const struct writer *writer, unsigned type, size_t *at)
{
    const struct profile_samples *samples = &writer->profile->samples;
    const int64_t *values = samples->values[type];
    size_t row = writer->rows[*at];
    int64_t value = 0;
    do {
        if (__builtin_add_overflow(value, values[writer->rows[*at]], &value))
            value = values[writer->rows[*at]] < 0 ? INT64_MIN : INT64_MAX;
    } while (++*at < samples->count && same_stack(samples, row, writer->rows[*at]));
    return value;
}

/* Before anything is written: an answer that has begun can't be refused. */
static int check_values(const struct writer *writer, unsigned type, struct error *error)
{
    for (size_t i = 0; i < writer->profile->samples.count;)
        if (next_value(writer, type, &i) < 0)
            return error_set(error, -ENOTSUP,
                             "A speedscope file cannot hold negative values, but this profile has "
                             "some; write it as pprof instead.");
    return 0;
}

static int write_samples(struct writer *writer, unsigned type, struct json_writer *json,
                         struct error *error)
{
    const struct profile_samples *samples = &writer->profile->samples;
    json_write_key(json, "samples");
    json_write_array(json);
    for (size_t i = 0; i < samples->count && buffer_pass(json->out);) {
        size_t row = writer->rows[i];
        if (!next_value(writer, type, &i))
            continue;
        json_write_line(json);
        write_stack(writer, samples->node[row], json);
        if (buffer_written(json->out) > OUTPUT_LIMIT_BYTES)
            return error_set(error, -E2BIG,
                             "The profile is too large for a speedscope file: it would take more "
                             "than %llu MiB.",
                             OUTPUT_LIMIT_BYTES >> 20);
    }
    json_write_array_end(json);
    return 0;
}

/* Returns their sum. */
static int64_t write_weights(struct writer *writer, unsigned type, struct json_writer *json)
{
    int64_t total = 0;
    json_write_key(json, "weights");
    json_write_array(json);
    for (size_t i = 0; i < writer->profile->samples.count && buffer_pass(json->out);) {
        int64_t value = next_value(writer, type, &i);
        if (!value)
            continue;
        json_write_signed(json, value);
        total = add_saturated(total, value);
    }
    json_write_array_end(json);
    return total;
}

static int write_profile(struct writer *writer, unsigned type, struct json_writer *json,
                         struct error *error)
{
    const struct profile *profile = writer->profile;
    const struct profile_string *name = &profile->strings[profile->types[type].type];
    json_write_object(json);
    json_member_text(json, "type", "sampled");
    json_write_key(json, "name");
    json_write_bytes(json, name->data, name->length);
    json_member_text(json, "unit",
                     speedscope_unit(profile_text(profile, profile->types[type].unit)));
    int r = write_samples(writer, type, json, error);
    if (r < 0)
        return r;
    json_write_line(json);
    int64_t total = write_weights(writer, type, json);
    json_member_signed(json, "startValue", 0);
    json_member_signed(json, "endValue", total);
    json_write_object_end(json);
    return 0;
}

int speedscope_write(struct buffer *out, const struct profile *profile,
                     const struct write_options *options, struct error *error)
{
    _cleanup_(writer_release) struct writer writer = {.profile = profile};
    struct json_writer json = json_writer(out);
    bool one = options->type >= 0;
    unsigned first = one ? (unsigned)options->type : 0;
    unsigned end = one ? first + 1 : profile->type_count;
    if (end > profile->type_count)
        return error_set(error, -EINVAL, "The profile has no sample type %u.", first);
    number_frames(&writer);
    order_rows(&writer);
    for (unsigned type = first; type < end; type++) {
        int r = check_values(&writer, type, error);
        if (r < 0)
            return r;
    }
    json_write_object(&json);
    json_member_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_member_text(&json, "exporter", SPEEDSCOPE_EXPORTER ASSAY_VERSION);
    if (options->title)
        json_member_text(&json, "name", options->title);
    json_member_unsigned(&json, "activeProfileIndex", one ? 0 : profile_default_type(profile));
    json_write_line(&json);
    write_frames(&writer, &json);
    json_write_line(&json);
    json_write_key(&json, "profiles");
    json_write_array(&json);
    for (unsigned type = first; type < end; type++) {
        json_write_line(&json);
        int r = write_profile(&writer, type, &json, error);
        if (r < 0)
            return r;
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
    return 0;
}
