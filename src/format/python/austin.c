// SPDX-License-Identifier: Apache-2.0
// Austin's text output: folded stacks with process, thread, file, function and line, and one or
// three metrics. See docs/formats/austin.md.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/format.h"

struct austin {
    struct profile *profile;
    struct error *error;
    bool memory, full, cpu; /* the mode that the header names */
    bool has_types;
    unsigned samples_type, time_type, memory_type;
    uint32_t *frames;
    size_t capacity;
    uint64_t line, samples, skipped, first_skipped;
};

static int add_type(struct austin *file, const char *type, const char *unit, unsigned *ret_type)
{
    struct profile *profile = file->profile;
    *ret_type =
        profile_type(profile, profile_cstring(profile, type), profile_cstring(profile, unit));
    return *ret_type == PROFILE_TYPES_MAX
               ? error_set(file->error, -E2BIG,
                           "Together the profiles have more than %d sample types.",
                           PROFILE_TYPES_MAX)
               : 0;
}

static int add_types(struct austin *file)
{
    if (file->has_types)
        return 0;
    file->has_types = true;
    int r = add_type(file, "samples", "count", &file->samples_type);
    if (r == 0 && (file->full || !file->memory))
        r = add_type(file, file->cpu ? "cpu" : "wall", "nanoseconds", &file->time_type);
    if (r == 0 && (file->full || file->memory))
        r = add_type(file, "alloc_space", "bytes", &file->memory_type);
    if (r == 0 && !file->profile->default_type)
        file->profile->default_type =
            profile_cstring(file->profile, file->memory && !file->full ? "alloc_space"
                                           : file->cpu                 ? "cpu"
                                                                       : "wall");
    return r;
}

static bool is(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && !memcmp(text, word, length);
}

/* "# mode: wall" */
static void take_header(struct austin *file, const char *line, size_t length)
{
    static const char mode[] = "# mode:";
    if (length <= sizeof(mode) || memcmp(line, mode, sizeof(mode) - 1))
        return;
    line += sizeof(mode);
    length -= sizeof(mode);
    file->memory = is(line, length, "memory");
    file->full = is(line, length, "full");
    file->cpu = is(line, length, "cpu");
}

static const char *last_colon(const char *text, const char *end)
{
    return memrchr(text, ':', (size_t)(end - text));
}

/* "/path/file.py:function:12". Names and paths may have colons, lines have none. */
static uint32_t frame_of(struct austin *file, const char *text, size_t length)
{
    struct profile *profile = file->profile;
    struct profile_function function = {0};
    struct profile_frame frame = {.kind = FRAME_CPYTHON};
    const char *end = text + length;
    const char *line_mark = last_colon(text, end);
    uint64_t line;
    const char *name_mark = NULL;
    if (line_mark && text_to_u64(line_mark + 1, (size_t)(end - line_mark) - 1, &line) &&
        line < UINT32_MAX)
        name_mark = last_colon(text, line_mark);
    if (name_mark) {
        frame.line = (uint32_t)line;
        function.file = profile_string(profile, text, (size_t)(name_mark - text));
        function.name = profile_string(profile, name_mark + 1, (size_t)(line_mark - name_mark) - 1);
    } else {
        function.name = profile_string(profile, text, length);
        frame.kind = FRAME_UNKNOWN;
    }
    frame.function = profile_function(profile, &function);
    return profile_frame(profile, &frame);
}

struct metrics {
    int64_t values[3]; /* time, idle, memory; or the first alone */
    unsigned count;
};

static bool take_metrics(const char *text, size_t length, struct metrics *ret)
{
    const char *end = text + length;
    ret->count = 0;
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        if (ret->count == 3 || !text_to_i64(text, (size_t)(stop - text), &ret->values[ret->count]))
            return false;
        ret->count++;
        if (!comma)
            return ret->count == 1 || ret->count == 3;
        text = comma + 1;
    }
}

/* "P123" and "T0x7f12", or "T0:456" with the interpreter before the thread: labels. */
static bool take_identity(struct austin *file, const char *text, size_t length,
                          struct profile_label *ret)
{
    struct profile *profile = file->profile;
    if (length < 2 || (text[0] != 'P' && text[0] != 'T'))
        return false;
    uint64_t number;
    *ret = (struct profile_label){.key = profile_cstring(profile, text[0] == 'P' ? "pid" : "tid")};
    if (text_to_u64(text + 1, length - 1, &number) && number <= INT64_MAX)
        ret->number = (int64_t)number;
    else
        ret->text = profile_string(profile, text + 1, length - 1);
    return text[0] == 'P' ? !ret->text : true;
}

static int add_sample(struct austin *file, uint32_t labels, size_t count,
                      const struct metrics *metrics)
{
    struct profile *profile = file->profile;
    if (metrics->count == 3)
        file->full = true;
    int r = add_types(file);
    if (r < 0)
        return r;
    uint32_t node = profile_stack(profile, file->frames, count);
    size_t row = profile_sample(profile, node, labels, 0, 0);
    bool memory_only = metrics->count == 1 && file->memory;
    profile_add_value(profile, row, file->samples_type, 1);
    if (!memory_only) {
        int64_t time_ns;
        if (__builtin_mul_overflow(metrics->values[0], 1000, &time_ns))
            time_ns = INT64_MAX;
        profile_add_value(profile, row, file->time_type, time_ns);
    }
    int64_t bytes = memory_only ? metrics->values[0] : metrics->count == 3 ? metrics->values[2] : 0;
    if (bytes > 0 && (file->memory || file->full))
        profile_add_value(profile, row, file->memory_type, bytes);
    file->samples++;
    return profile_full(profile)
               ? error_set(file->error, -E2BIG, "There are too many stacks by line %llu.",
                           (unsigned long long)file->line)
               : 0;
}

static int take_line(struct austin *file, const char *line, size_t length)
{
    if (!length)
        return 0;
    if (*line == '#') {
        take_header(file, line, length);
        return 0;
    }
    const char *space = memrchr(line, ' ', length);
    struct metrics metrics;
    if (!space || !take_metrics(space + 1, length - (size_t)(space - line) - 1, &metrics) ||
        (file->has_types && metrics.count == 3 && !file->full)) {
        if (!file->skipped++)
            file->first_skipped = file->line;
        return 0;
    }
    struct profile_label labels[2];
    size_t label_count = 0, count = 0;
    for (const char *at = line; at < space;) {
        const char *semicolon = memchr(at, ';', (size_t)(space - at));
        const char *stop = semicolon ? semicolon : space;
        size_t part = (size_t)(stop - at);
        if (!count && label_count < 2 && take_identity(file, at, part, &labels[label_count])) {
            label_count++;
        } else if (part && !is(at, part, ":INVALID:") && !is(at, part, "::INVALID::")) {
            array_reserve(file->frames, file->capacity, count + 1);
            file->frames[count++] = frame_of(file, at, part);
        }
        at = semicolon ? semicolon + 1 : space;
    }
    uint32_t set = label_count && file->profile->detail & PROFILE_LABELS
                       ? profile_label_set(file->profile, labels, label_count)
                       : 0;
    return add_sample(file, set, count, &metrics);
}

static int austin_read(struct source *source, struct profile *profile, struct error *error)
{
    struct austin file = {.profile = profile, .error = error};
    const char *line;
    size_t length;
    int r;
    while ((r = source_line(source, &line, &length, error)) > 0) {
        file.line++;
        r = take_line(&file, line, length);
        if (r < 0)
            break;
    }
    free(file.frames);
    if (r < 0)
        return r;
    if (!file.samples && file.skipped)
        return error_set(error, -EBADMSG, "No sample found; line %llu is the first malformed one.",
                         (unsigned long long)file.first_skipped);
    source_note_skipped(source, file.skipped, file.first_skipped);
    profile_note_source(profile, 0, 0);
    return 0;
}

/* The header, or lines that begin with a process and a thread. */
static int austin_detect(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes;
    if (length > 9 && !memcmp(text, "# austin:", 9))
        return FORMAT_CERTAIN;
    if (length < 4 || text[0] != 'P' || text[1] < '0' || text[1] > '9')
        return 0;
    size_t at = 1;
    while (at < length && text[at] >= '0' && text[at] <= '9')
        at++;
    return at + 2 < length && text[at] == ';' && text[at + 1] == 'T' ? FORMAT_CERTAIN : 0;
}

const struct format format_austin = {
    .name = "austin",
    .text = true,
    .summary = "Austin's samples of Python programs",
    .extensions = "",
    .detect = austin_detect,
    .read = austin_read,
};
