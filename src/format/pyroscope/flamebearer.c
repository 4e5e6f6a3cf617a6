// SPDX-License-Identifier: Apache-2.0
// Reads flamebearer JSON, Pyroscope's format for drawing: rows of bars, each with its distance from
// the bar to its left, its total, its own value and a name. See docs/formats/flamebearer.md.

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "format/format.h"
#include "io/json.h"

#define BAR_VALUES 4 /* distance, total, self, name */

struct bar {
    int64_t start, end;
    uint32_t node;
};

/* One row of the drawing: the bars that the next one stands on. */
struct row {
    struct bar *bars;
    size_t count, capacity;
};

struct flamebearer {
    struct json json;
    struct profile *profile;
    uint32_t *names; /* strings of the model */
    size_t name_count, name_capacity;
    int64_t *values; /* all levels, one after the other */
    size_t value_count, value_capacity;
    size_t *ends; /* of each level in `values` */
    size_t level_count, level_capacity;
    bool compared;   /* two profiles side by side */
    char units[32];  /* "samples", "bytes", "objects" */
    uint64_t rate;   /* samples per second */
    uint64_t points; /* of the timeline, */
    uint64_t step_s; /* the duration of each */
    int64_t start_s;
};

static void flamebearer_release(struct flamebearer *file)
{
    json_release(&file->json);
    free(file->names);
    free(file->values);
    free(file->ends);
}

/* ---- the file ---- */

static int read_names(struct flamebearer *file)
{
    struct json *json = &file->json;
    struct json_string text;
    if (file->name_count)
        return json_fail(json, "The file has a second list of names");
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = json_string(json, &text);
        if (r < 0)
            break;
        if (profile_full(file->profile))
            return error_set(json->error, -E2BIG,
                             "The file has more names than a profile can hold.");
        array_reserve(file->names, file->name_capacity, file->name_count + 1);
        file->names[file->name_count++] = profile_string(file->profile, text.data, text.length);
    }
    return r;
}

static int read_levels(struct flamebearer *file)
{
    struct json *json = &file->json;
    int64_t value = 0;
    if (file->level_count)
        return json_fail(json, "The file has a second list of levels");
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = json_array(json);
        while (r >= 0 && (r = json_next_element(json)) > 0) {
            r = json_i64(json, &value);
            if (r < 0)
                break;
            array_reserve(file->values, file->value_capacity, file->value_count + 1);
            file->values[file->value_count++] = value;
        }
        if (r < 0)
            break;
        array_reserve(file->ends, file->level_capacity, file->level_count + 1);
        file->ends[file->level_count++] = file->value_count;
    }
    return r;
}

static int read_flame(struct flamebearer *file)
{
    struct json_string key;
    int r = json_object(&file->json);
    while (r >= 0 && (r = json_next_key(&file->json, &key)) > 0) {
        if (json_is(&key, "names"))
            r = read_names(file);
        else if (json_is(&key, "levels"))
            r = read_levels(file);
    }
    return r;
}

static int read_metadata(struct flamebearer *file)
{
    struct json *json = &file->json;
    struct json_string key, text;
    if (json_null(json))
        return 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        bool units = json_is(&key, "units"), format = json_is(&key, "format");
        if (json_is(&key, "sampleRate") && json_kind(json) == JSON_NUMBER)
            r = json_u64(json, &file->rate);
        else if ((units || format) && json_kind(json) == JSON_STRING)
            r = json_string(json, &text);
        else
            continue;
        if (r == 0 && format)
            file->compared = json_is(&text, "double");
        if (r == 0 && units && text.length < sizeof(file->units))
            memcpy(file->units, text.data, text.length), file->units[text.length] = '\0';
    }
    return r;
}

static int read_timeline(struct flamebearer *file)
{
    struct json *json = &file->json;
    struct json_string key;
    if (json_null(json))
        return 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "startTime") && json_kind(json) == JSON_NUMBER) {
            r = json_i64(json, &file->start_s);
        } else if (json_is(&key, "durationDelta") && json_kind(json) == JSON_NUMBER) {
            r = json_u64(json, &file->step_s);
        } else if (json_is(&key, "samples") && json_kind(json) == JSON_ARRAY) {
            r = json_array(json);
            while (r >= 0 && (r = json_next_element(json)) > 0)
                file->points++;
        }
    }
    return r;
}

/* ---- values ---- */

/* How a value is called in the model; Pyroscope's names of units say more than the unit. */
static const struct kind {
    const char *units, *type, *unit;
} kinds[] = {
    {"samples", "samples", "count"},          {"bytes", "space", "bytes"},
    {"objects", "objects", "count"},          {"goroutines", "goroutine", "count"},
    {"nanoseconds", "wall", "nanoseconds"},   {"lock_nanoseconds", "delay", "nanoseconds"},
    {"lock_samples", "contentions", "count"}, {"trace_samples", "trace_samples", "count"},
    {"exceptions", "exceptions", "count"},    {"", "samples", "count"},
};

struct scale {
    unsigned type;
    uint64_t rate; /* samples per second that become nanoseconds; 0: values stay as they are */
};

static int choose_type(struct flamebearer *file, struct scale *ret_scale)
{
    struct profile *profile = file->profile;
    bool timed = !strcmp(file->units, "samples") && file->rate > 1;
    const char *type = file->units, *unit = "count";
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (!strcmp(kinds[i].units, file->units))
            type = kinds[i].type, unit = kinds[i].unit;
    if (timed)
        type = "cpu", unit = "nanoseconds";
    unsigned index =
        profile_type(profile, profile_cstring(profile, type), profile_cstring(profile, unit));
    if (index >= PROFILE_TYPES_MAX)
        return error_set(file->json.error, -E2BIG,
                         "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    *ret_scale = (struct scale){.type = index, .rate = timed ? file->rate : 0};
    return 0;
}

static int64_t scaled(const struct scale *scale, int64_t value)
{
    if (!scale->rate)
        return value;
    __int128 time = (__int128)value * 1000000000 / scale->rate;
    return time > INT64_MAX ? INT64_MAX : (int64_t)time;
}

/* ---- bars ---- */

static int fail_bar(struct flamebearer *file, size_t level, size_t bar, const char *what)
{
    return error_set(file->json.error, -EBADMSG, "Bar %zu of level %zu %s.", bar, level, what);
}

static uint32_t intern_frame(struct flamebearer *file, uint32_t name)
{
    struct profile_function function = {.name = name};
    struct profile_frame frame = {.function = profile_function(file->profile, &function)};
    return profile_frame(file->profile, &frame);
}

/* Adds the bars of one level, which stand on those of `below`, to `row`. */
static int add_level(struct flamebearer *file, const struct scale *scale, size_t level,
                     const struct row *below, struct row *row)
{
    size_t first = level ? file->ends[level - 1] : 0, end = file->ends[level];
    size_t parent = 0;
    int64_t x = 0;
    row->count = 0;
    if ((end - first) % BAR_VALUES)
        return error_set(file->json.error, -EBADMSG,
                         "Level %zu has %zu numbers, which is not a multiple of %d.", level,
                         end - first, BAR_VALUES);
    for (size_t at = first, index = 0; at < end; at += BAR_VALUES, index++) {
        const int64_t *bar = &file->values[at];
        int64_t total = bar[1], self = bar[2], right;
        if (bar[0] < 0 || self < 0 || total < self || __builtin_add_overflow(x, bar[0], &x) ||
            __builtin_add_overflow(x, total, &right))
            return fail_bar(file, level, index, "has values that can't be drawn");
        if (bar[3] < 0 || (uint64_t)bar[3] >= file->name_count)
            return fail_bar(file, level, index, "has a name that the file doesn't have");
        if (!total)
            continue;
        while (level && parent < below->count && below->bars[parent].end <= x)
            parent++;
        if (level && (parent == below->count || below->bars[parent].start > x ||
                      below->bars[parent].end < right))
            return fail_bar(file, level, index, "stands on no bar of the level before it");
        /* The one bar at the bottom is the sum of all, not a function. */
        uint32_t node = !level ? 0
                               : profile_child(file->profile, below->bars[parent].node,
                                               intern_frame(file, file->names[bar[3]]));
        if (profile_full(file->profile))
            return error_set(file->json.error, -E2BIG,
                             "The file has more stacks than a profile can hold.");
        array_reserve(row->bars, row->capacity, row->count + 1);
        row->bars[row->count++] = (struct bar){.start = x, .end = right, .node = node};
        if (self)
            profile_add_value(file->profile, profile_sample(file->profile, node, 0, 0, 0),
                              scale->type, scaled(scale, self));
        x = right;
    }
    return 0;
}

static int resolve(struct flamebearer *file)
{
    struct scale scale = {0};
    struct row rows[2] = {0};
    if (file->compared)
        return error_set(file->json.error, -ENOTSUP,
                         "The file compares two profiles; export each of them, or use `assay "
                         "diff` on their pprof files.");
    int r = choose_type(file, &scale);
    for (size_t level = 0; level < file->level_count && r == 0; level++)
        r = add_level(file, &scale, level, &rows[(level + 1) % 2], &rows[level % 2]);
    free(rows[0].bars);
    free(rows[1].bars);
    if (r < 0)
        return r;
    int64_t start_ns = 0;
    uint64_t duration_ns = 0;
    if (file->start_s < 0 || __builtin_mul_overflow(file->start_s, 1000000000, &start_ns))
        start_ns = 0;
    if (__builtin_mul_overflow(file->points, file->step_s, &duration_ns) ||
        __builtin_mul_overflow(duration_ns, 1000000000u, &duration_ns) || duration_ns > INT64_MAX)
        duration_ns = 0;
    profile_note_source(file->profile, start_ns, (int64_t)duration_ns);
    return 0;
}

static int flamebearer_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(flamebearer_release) struct flamebearer file = {.profile = profile};
    struct json *json = &file.json;
    struct json_string key;
    bool has_flame = false;
    json_init(json, source, error);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "flamebearer"))
            r = read_flame(&file), has_flame = true;
        else if (json_is(&key, "metadata"))
            r = read_metadata(&file);
        else if (json_is(&key, "timeline"))
            r = read_timeline(&file);
    }
    if (r >= 0)
        r = json_end(json);
    if (r >= 0 && !has_flame)
        r = json_fail(json, "The file has no \"flamebearer\" before its end");
    return r < 0 ? r : resolve(&file);
}

static int flamebearer_detect(const uint8_t *bytes, size_t length)
{
    return json_sniff_object(bytes, length) && json_sniff_key(bytes, length, "flamebearer") ? 3 : 0;
}

const struct format format_flamebearer = {
    .name = "flamebearer",
    .text = true,
    .summary = "Pyroscope's flamebearer JSON",
    .extensions = "",
    .detect = flamebearer_detect,
    .read = flamebearer_read,
};
