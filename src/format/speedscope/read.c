// SPDX-License-Identifier: Apache-2.0
// Reads speedscope's own file format: https://www.speedscope.app/file-format-schema.json. Keys may
// come in any order; see speedscope.h for how that is done without holding the file.

#include <string.h>

#include "base/memory.h"
#include "format/speedscope/speedscope.h"

/* One element of "profiles" while it is read. */
struct profile_reader {
    struct speedscope *file;

    /* Sampled: the stack at hand, outermost first. Evented: the frames that are open. */
    uint32_t *frames;
    uint32_t *nodes;
    size_t depth, frame_capacity, node_capacity;

    /* Sampled: of samples and weights, whichever array comes first waits for the other. */
    uint32_t *samples;
    size_t sample_count, sample_capacity;
    speedscope_amount *weights;
    size_t weight_count, weight_capacity;
    size_t samples_read, weights_read;

    speedscope_amount at, start, end;
    bool has_samples, has_events, has_end;
};

static void profile_reader_release(struct profile_reader *reader)
{
    free(reader->frames);
    free(reader->nodes);
    free(reader->samples);
    free(reader->weights);
}

static speedscope_amount amount_of(const struct json_number *number)
{
    const speedscope_amount limit = (speedscope_amount)INT64_MAX * 1000000000000;
    speedscope_amount amount = (speedscope_amount)number->digits;
    int exponent = number->exponent + SPEEDSCOPE_DIGITS;
    if (exponent < -20)
        amount = 0;
    for (; exponent > 0 && amount && amount < limit; exponent--)
        amount *= 10;
    if (exponent < 0 && amount) {
        for (; exponent < -1; exponent++)
            amount /= 10;
        amount = (amount + 5) / 10;
    }
    amount = MIN(amount, limit);
    return number->negative ? -amount : amount;
}

static int read_amount(struct json *json, speedscope_amount *ret_amount)
{
    struct json_number number;
    int r = json_number(json, &number);
    if (r == 0)
        *ret_amount = amount_of(&number);
    return r;
}

static int read_frame_index(struct speedscope *file, uint32_t *ret_frame)
{
    uint64_t frame, offset = source_offset(file->json.source);
    int r = json_u64(&file->json, &frame);
    if (r < 0)
        return r;
    if (frame > file->largest_frame || !file->largest_offset) {
        if (frame >= PROFILE_IDS_MAX)
            return json_fail(&file->json, "The frame number %llu is too large",
                             (unsigned long long)frame);
        file->largest_frame = frame;
        file->largest_offset = offset;
    }
    *ret_frame = (uint32_t)frame;
    return 0;
}

/* ---- sampled ---- */

static void add_weighted(struct profile_reader *reader, uint32_t node, speedscope_amount weight)
{
    speedscope_add(reader->file, node, weight, reader->at);
    if (weight > 0)
        reader->at = speedscope_sum(reader->at, weight);
}

static void take_sample(struct profile_reader *reader, uint32_t node)
{
    size_t index = reader->samples_read++;
    if (index < reader->weight_count) {
        add_weighted(reader, node, reader->weights[index]);
        return;
    }
    array_reserve(reader->samples, reader->sample_capacity, reader->sample_count + 1);
    reader->samples[reader->sample_count++] = node;
}

static void take_weight(struct profile_reader *reader, speedscope_amount weight)
{
    size_t index = reader->weights_read++;
    if (index < reader->sample_count) {
        add_weighted(reader, reader->samples[index], weight);
        return;
    }
    array_reserve(reader->weights, reader->weight_capacity, reader->weight_count + 1);
    reader->weights[reader->weight_count++] = weight;
}

static int read_stack(struct profile_reader *reader)
{
    struct speedscope *file = reader->file;
    size_t depth = 0;
    int r = json_array(&file->json);
    while (r >= 0 && (r = json_next_element(&file->json)) > 0) {
        array_reserve(reader->frames, reader->frame_capacity, depth + 1);
        r = read_frame_index(file, &reader->frames[depth++]);
    }
    if (r < 0)
        return r;
    take_sample(reader, speedscope_stack(file, reader->frames, depth));
    return 0;
}

static int too_large(struct json *json)
{
    return json->failed =
               error_set(json->error, -E2BIG, "The file has more stacks than a profile can hold.");
}

static int read_samples(struct profile_reader *reader)
{
    struct json *json = &reader->file->json;
    int r = json_array(json);
    if (reader->has_samples)
        return json_fail(json, "The profile has a second list of samples");
    reader->has_samples = true;
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = read_stack(reader);
        if (r >= 0 && speedscope_full(reader->file))
            r = too_large(json);
    }
    return r;
}

static int read_weights(struct profile_reader *reader)
{
    struct json *json = &reader->file->json;
    speedscope_amount weight = 0;
    int r = json_array(json);
    if (reader->weights_read)
        return json_fail(json, "The profile has a second list of weights");
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = read_amount(json, &weight);
        if (r >= 0)
            take_weight(reader, weight);
    }
    return r;
}

/* ---- evented ---- */

struct event {
    char type; /* 'O' or 'C' */
    uint32_t frame;
    bool has_frame, has_at;
    speedscope_amount at;
};

static int read_event(struct speedscope *file, struct event *event)
{
    struct json *json = &file->json;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "type")) {
            struct json_string type;
            r = json_string(json, &type);
            if (r >= 0)
                event->type = type.length == 1 ? type.data[0] : '?';
        } else if (json_is(&key, "at")) {
            event->has_at = true;
            r = read_amount(json, &event->at);
        } else if (json_is(&key, "frame")) {
            event->has_frame = true;
            r = read_frame_index(file, &event->frame);
        }
    }
    if (r < 0)
        return r;
    if ((event->type != 'O' && event->type != 'C') || !event->has_at || !event->has_frame)
        return json_fail(json,
                         "An event should have \"type\" O or C, \"at\" and \"frame\", but one "
                         "that ends");
    return 0;
}

/* Time passes in the innermost open frame. */
static void advance(struct profile_reader *reader, speedscope_amount at)
{
    if (reader->depth)
        speedscope_add(reader->file, reader->nodes[reader->depth - 1], at - reader->at, reader->at);
    reader->at = at;
}

static void open_frame(struct profile_reader *reader, uint32_t frame)
{
    size_t depth = reader->depth++;
    uint32_t parent = depth ? reader->nodes[depth - 1] : 0;
    array_reserve(reader->frames, reader->frame_capacity, depth + 1);
    array_reserve(reader->nodes, reader->node_capacity, depth + 1);
    reader->frames[depth] = frame;
    reader->nodes[depth] = speedscope_child(reader->file, parent, frame);
}

static int take_event(struct profile_reader *reader, const struct event *event, bool first)
{
    struct json *json = &reader->file->json;
    if (!first && event->at < reader->at)
        return json_fail(json, "Events should be in order, but one is before its predecessor");
    advance(reader, event->at);
    if (event->type == 'O') {
        open_frame(reader, event->frame);
        return speedscope_full(reader->file) ? too_large(json) : 0;
    }
    if (!reader->depth)
        return json_fail(json, "Frame %u is closed, but no frame is open", event->frame);
    uint32_t open = reader->frames[reader->depth - 1];
    if (open != event->frame)
        return json_fail(json, "Frame %u is closed, but the innermost open frame is %u",
                         event->frame, open);
    reader->depth--;
    return 0;
}

static int read_events(struct profile_reader *reader)
{
    struct json *json = &reader->file->json;
    int r = json_array(json);
    if (reader->has_events)
        return json_fail(json, "The profile has a second list of events");
    reader->depth = 0;
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        struct event event = {0};
        r = read_event(reader->file, &event);
        if (r >= 0)
            r = take_event(reader, &event, !reader->has_events);
        reader->has_events = true;
    }
    return r;
}

/* ---- profiles ---- */

static int read_unit(struct json *json, struct speedscope_profile *info)
{
    struct json_string unit;
    int r = json_string(json, &unit);
    if (r < 0)
        return r;
    info->bytes = json_is(&unit, "bytes");
    info->power = json_is(&unit, "seconds")        ? 9
                  : json_is(&unit, "milliseconds") ? 6
                  : json_is(&unit, "microseconds") ? 3
                                                   : 0;
    info->time = info->power || json_is(&unit, "nanoseconds");
    return 0;
}

static int read_text(struct speedscope *file, uint32_t *ret_string)
{
    struct json_string text;
    if (json_kind(&file->json) != JSON_STRING)
        return json_skip(&file->json);
    int r = json_string(&file->json, &text);
    if (r == 0)
        *ret_string = profile_string(file->profile, text.data, text.length);
    return r;
}

static int read_profile_type(struct json *json)
{
    struct json_string type;
    int r = json_string(json, &type);
    if (r >= 0 && !json_is(&type, "sampled") && !json_is(&type, "evented"))
        return json_fail(json,
                         "A profile should be \"sampled\" or \"evented\", but one is neither");
    return r;
}

static int end_profile(struct profile_reader *reader)
{
    struct json *json = &reader->file->json;
    struct speedscope_profile *info = &reader->file->profiles[reader->file->profile_count - 1];
    if (reader->samples_read != reader->weights_read)
        return json_fail(json, "The profile has %zu samples but %zu weights", reader->samples_read,
                         reader->weights_read);
    if (reader->has_events && reader->samples_read)
        return json_fail(json, "The profile has both samples and events");
    /* Frames that were never closed were open until the end. */
    if (reader->has_events && reader->has_end && reader->end > reader->at)
        advance(reader, reader->end);
    if (!reader->has_events)
        info->origin = reader->start;
    if (reader->has_end && reader->end > reader->start)
        info->duration = reader->end - reader->start;
    return 0;
}

static int read_profile(struct speedscope *file)
{
    struct json *json = &file->json;
    _cleanup_(profile_reader_release) struct profile_reader reader = {.file = file};
    array_reserve(file->profiles, file->profile_capacity, file->profile_count + 1);
    struct speedscope_profile *info = &file->profiles[file->profile_count++];
    *info = (struct speedscope_profile){0};
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "type"))
            r = read_profile_type(json);
        else if (json_is(&key, "name"))
            r = read_text(file, &info->name);
        else if (json_is(&key, "unit"))
            r = read_unit(json, info);
        else if (json_is(&key, "startValue"))
            r = read_amount(json, &reader.start);
        else if (json_is(&key, "endValue"))
            r = read_amount(json, &reader.end), reader.has_end = true;
        else if (json_is(&key, "samples"))
            r = read_samples(&reader);
        else if (json_is(&key, "weights"))
            r = read_weights(&reader);
        else if (json_is(&key, "events"))
            r = read_events(&reader);
    }
    return r < 0 ? r : end_profile(&reader);
}

/* ---- frames ---- */

static int read_position(struct json *json, uint32_t limit, uint32_t *ret_value)
{
    struct json_number number;
    if (json_kind(json) != JSON_NUMBER)
        return json_skip(json);
    int r = json_number(json, &number);
    if (r == 0) {
        int64_t value = json_number_scaled(&number, 0);
        *ret_value = value < 0 ? 0 : (uint32_t)MIN(value, (int64_t)limit);
    }
    return r;
}

static int read_frame(struct speedscope *file)
{
    struct json *json = &file->json;
    struct profile_function function = {0};
    uint32_t line = 0, column = 0;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "name"))
            r = read_text(file, &function.name);
        else if (json_is(&key, "file"))
            r = read_text(file, &function.file);
        else if (json_is(&key, "line"))
            r = read_position(json, UINT32_MAX, &line);
        else if (json_is(&key, "col"))
            r = read_position(json, (1u << 24) - 1, &column);
    }
    if (r < 0)
        return r;
    if (!function.name)
        function.name = profile_cstring(file->profile, "(unknown)");
    struct profile_frame frame = {
        .function = profile_function(file->profile, &function), .line = line, .column = column};
    array_reserve(file->frames, file->frame_capacity, file->frame_count + 1);
    file->frames[file->frame_count++] = profile_frame(file->profile, &frame);
    return speedscope_full(file) ? too_large(json) : 0;
}

static int read_shared(struct speedscope *file)
{
    struct json *json = &file->json;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (!json_is(&key, "frames"))
            continue;
        if (file->frame_count)
            return json_fail(json, "The file has a second list of frames");
        r = json_array(json);
        while (r >= 0 && (r = json_next_element(json)) > 0)
            r = read_frame(file);
    }
    return r;
}

static int read_profiles(struct speedscope *file)
{
    int r = json_array(&file->json);
    while (r >= 0 && (r = json_next_element(&file->json)) > 0) {
        if (file->profile_count == PROFILE_IDS_MAX)
            return too_large(&file->json);
        r = read_profile(file);
    }
    return r;
}

int speedscope_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(speedscope_release) struct speedscope file;
    speedscope_init(&file, source, profile, error);
    struct json *json = &file.json;
    struct json_string key;
    bool has_profiles = false;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "shared"))
            r = read_shared(&file);
        else if (json_is(&key, "profiles"))
            r = read_profiles(&file), has_profiles = true;
        else if (json_is(&key, "name"))
            r = read_text(&file, &file.name);
        else if (json_is(&key, "exporter"))
            r = read_text(&file, &file.exporter);
        else if (json_is(&key, "activeProfileIndex") && json_kind(json) == JSON_NUMBER)
            r = json_u64(json, &file.active_profile);
    }
    if (r >= 0)
        r = json_end(json);
    if (r >= 0 && !has_profiles)
        r = json_fail(json, "The file has no \"profiles\" before its end");
    return r < 0 ? r : speedscope_resolve(&file);
}
