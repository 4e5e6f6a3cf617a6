// SPDX-License-Identifier: Apache-2.0
// Reads stackprof's JSON (`stackprof --json`, Rails' and Rack's middleware): a table of frames by
// id, and an array of stacks that refer to them. See docs/formats/stackprof.md.

#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "format/format.h"
#include "io/json.h"

struct frame {
    uint64_t id;
    uint32_t function; /* of the model */
    uint64_t samples;  /* in which it was the innermost */
};

/* An array of integers as the file has it: of ids and counts, or of lines. */
struct column {
    uint64_t *values;
    size_t count, capacity;
};

struct stackprof {
    struct json json;
    struct profile *profile;
    struct frame *frames;
    size_t frame_count, frame_capacity;
    struct id_table frame_index; /* by id */
    uint64_t seed;
    struct column raw;   /* per stack: its length, the frames' ids from the outermost on, a count */
    struct column lines; /* as long, with lines in the place of ids; or empty */
    char mode[16];       /* "cpu", "wall", "object", or a name of the program's own */
    uint64_t interval;   /* microseconds, or allocations in the mode "object" */
};

static void stackprof_release(struct stackprof *file)
{
    json_release(&file->json);
    id_table_release(&file->frame_index);
    free(file->frames);
    free(file->raw.values);
    free(file->lines.values);
}

static const struct frame *find_frame(const struct stackprof *file, uint64_t id)
{
    struct id_probe probe = id_probe_start(hash_word(id ^ file->seed));
    uint32_t index;
    while ((index = id_table_next(&file->frame_index, &probe)) != ID_NONE)
        if (file->frames[index].id == id)
            return &file->frames[index];
    return NULL;
}

/* ---- the file ---- */

static int read_string(struct stackprof *file, uint32_t *ret_string)
{
    struct json_string text;
    if (json_kind(&file->json) != JSON_STRING)
        return json_skip(&file->json);
    int r = json_string(&file->json, &text);
    if (r == 0)
        *ret_string = profile_string(file->profile, text.data, text.length);
    return r;
}

static int read_frame(struct stackprof *file, uint64_t id)
{
    struct json *json = &file->json;
    struct profile_function function = {0};
    struct frame frame = {.id = id};
    uint64_t line = 0;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "name"))
            r = read_string(file, &function.name);
        else if (json_is(&key, "file"))
            r = read_string(file, &function.file);
        else if (json_is(&key, "line") && json_kind(json) == JSON_NUMBER)
            r = json_u64(json, &line);
        else if (json_is(&key, "samples") && json_kind(json) == JSON_NUMBER)
            r = json_u64(json, &frame.samples);
    }
    if (r < 0)
        return r;
    if (find_frame(file, id))
        return json_fail(json, "A second frame with the id %llu ends", (unsigned long long)id);
    if (file->frame_count >= PROFILE_IDS_MAX || profile_full(file->profile))
        return error_set(json->error, -E2BIG, "The file has more frames than a profile can hold.");
    function.start_line = line < UINT32_MAX ? (uint32_t)line : 0;
    frame.function = profile_function(file->profile, &function);
    array_reserve(file->frames, file->frame_capacity, file->frame_count + 1);
    id_table_insert(&file->frame_index, hash_word(id ^ file->seed), (uint32_t)file->frame_count);
    file->frames[file->frame_count++] = frame;
    return 0;
}

static int read_frames(struct stackprof *file)
{
    struct json_string key;
    uint64_t id = 0;
    int r = json_object(&file->json);
    while (r >= 0 && (r = json_next_key(&file->json, &key)) > 0)
        r = text_to_u64(key.data, key.length, &id)
                ? read_frame(file, id)
                : json_fail(&file->json, "A frame's id is not a number");
    return r;
}

static int read_column(struct json *json, struct column *column)
{
    uint64_t value = 0;
    if (json_null(json))
        return 0;
    if (column->count)
        return json_fail(json, "The file has a second array of stacks");
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = json_u64(json, &value);
        if (r < 0)
            break;
        array_reserve(column->values, column->capacity, column->count + 1);
        column->values[column->count++] = value;
    }
    return r;
}

static int read_mode(struct stackprof *file)
{
    struct json_string text;
    int r = json_string(&file->json, &text);
    if (r == 0 && text.length < sizeof(file->mode))
        memcpy(file->mode, text.data, text.length), file->mode[text.length] = '\0';
    return r;
}

/* ---- samples ---- */

struct value_types {
    unsigned count, weight;
    uint64_t scale; /* of one sample in the weight's unit */
};

static bool add_types(struct stackprof *file, struct value_types *types)
{
    struct profile *profile = file->profile;
    bool object = !strcmp(file->mode, "object");
    bool timed = !strcmp(file->mode, "cpu") || !strcmp(file->mode, "wall");
    types->count = profile_type(profile, profile_cstring(profile, "samples"),
                                profile_cstring(profile, "count"));
    types->weight = PROFILE_TYPES_MAX;
    types->scale = 0;
    if ((object || timed) && file->interval && file->interval < UINT32_MAX) {
        types->weight =
            profile_type(profile, profile_cstring(profile, object ? "alloc_objects" : file->mode),
                         profile_cstring(profile, object ? "count" : "nanoseconds"));
        types->scale = object ? file->interval : file->interval * 1000;
        if (types->weight >= PROFILE_TYPES_MAX)
            return false;
    }
    return types->count < PROFILE_TYPES_MAX;
}

static void add_sample(struct profile *profile, const struct value_types *types, uint32_t node,
                       uint64_t count)
{
    size_t row = profile_sample(profile, node, 0, 0, 0);
    uint64_t weight;
    profile_add_value(profile, row, types->count, (int64_t)MIN(count, (uint64_t)INT64_MAX));
    if (!types->scale)
        return;
    if (__builtin_mul_overflow(count, types->scale, &weight))
        weight = INT64_MAX;
    profile_add_value(profile, row, types->weight, (int64_t)MIN(weight, (uint64_t)INT64_MAX));
}

static uint32_t intern_frame(struct profile *profile, const struct frame *frame, uint64_t line)
{
    struct profile_frame interned = {
        .function = frame->function,
        .line = line < UINT32_MAX ? (uint32_t)line : 0,
        .kind = FRAME_RUBY,
    };
    return profile_frame(profile, &interned);
}

/* The stack whose length is at `at`; *ret_next is where the one after it begins. */
static int add_stack(struct stackprof *file, const struct value_types *types, size_t at,
                     size_t *ret_next)
{
    const struct column *raw = &file->raw;
    uint64_t length = raw->values[at];
    uint32_t node = 0;
    if (length >= raw->count - at - 1)
        return error_set(file->json.error, -EBADMSG,
                         "The stack at element %zu of \"raw\" has %llu frames, but the array ends "
                         "before its count.",
                         at, (unsigned long long)length);
    for (size_t i = at + 1; i <= at + length; i++) {
        const struct frame *frame = find_frame(file, raw->values[i]);
        if (!frame)
            return error_set(file->json.error, -EBADMSG,
                             "Element %zu of \"raw\" refers to frame %llu, which the file doesn't "
                             "have.",
                             i, (unsigned long long)raw->values[i]);
        uint64_t line = file->lines.count ? file->lines.values[i] : 0;
        node = profile_child(file->profile, node, intern_frame(file->profile, frame, line));
    }
    if (profile_full(file->profile))
        return error_set(file->json.error, -E2BIG,
                         "The file has more stacks than a profile can hold.");
    *ret_next = at + 2 + length;
    add_sample(file->profile, types, node, raw->values[at + 1 + length]);
    return 0;
}

/* A file without stacks still has how often each function was the innermost. */
static void add_functions(struct stackprof *file, const struct value_types *types)
{
    for (size_t i = 0; i < file->frame_count; i++) {
        const struct frame *frame = &file->frames[i];
        if (frame->samples)
            add_sample(file->profile, types,
                       profile_child(file->profile, 0, intern_frame(file->profile, frame, 0)),
                       frame->samples);
    }
}

static int resolve(struct stackprof *file)
{
    struct value_types types;
    int r = 0;
    if (!add_types(file, &types))
        return error_set(file->json.error, -E2BIG,
                         "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    if (file->lines.count && file->lines.count != file->raw.count)
        return error_set(file->json.error, -EBADMSG,
                         "\"raw\" has %zu elements, but \"raw_lines\" has %zu.", file->raw.count,
                         file->lines.count);
    for (size_t at = 0; at < file->raw.count && r == 0;)
        r = add_stack(file, &types, at, &at);
    if (r == 0 && !file->raw.count)
        add_functions(file, &types);
    if (r == 0)
        profile_note_source(file->profile, 0, 0);
    return r;
}

static int stackprof_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(stackprof_release) struct stackprof file = {.profile = profile};
    struct json *json = &file.json;
    struct json_string key;
    bool has_frames = false;
    json_init(json, source, error);
    file.seed = random_bits();
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "frames"))
            r = read_frames(&file), has_frames = true;
        else if (json_is(&key, "raw"))
            r = read_column(json, &file.raw);
        else if (json_is(&key, "raw_lines"))
            r = read_column(json, &file.lines);
        else if (json_is(&key, "mode") && json_kind(json) == JSON_STRING)
            r = read_mode(&file);
        else if (json_is(&key, "interval") && json_kind(json) == JSON_NUMBER)
            r = json_u64(json, &file.interval);
    }
    if (r >= 0)
        r = json_end(json);
    if (r >= 0 && !has_frames)
        r = json_fail(json, "The file has no \"frames\" before its end");
    return r < 0 ? r : resolve(&file);
}

static int stackprof_detect(const uint8_t *bytes, size_t length)
{
#define HAS(key) json_sniff_key(bytes, length, key)
    if (!json_sniff_object(bytes, length) || !HAS("mode") || !HAS("interval") || !HAS("samples"))
        return 0;
    return HAS("gc_samples") || HAS("missed_samples") || HAS("frames") ? 3 : 1;
#undef HAS
}

const struct format format_stackprof = {
    .name = "stackprof",
    .text = true,
    .summary = "Ruby's stackprof, as JSON",
    .extensions = "",
    .detect = stackprof_detect,
    .read = stackprof_read,
};
