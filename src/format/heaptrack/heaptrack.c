// SPDX-License-Identifier: Apache-2.0
// Heaptrack's data (heaptrack.PROGRAM.PID.zst or .gz): lines of text with hexadecimal numbers that
// define texts, instruction pointers, traces and allocations, and then say what was allocated and
// freed in which order. See docs/formats/heaptrack.md.

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "format/format.h"

#define INLINED_MAX 64
#define FILE_VERSION_MAX 3

struct place { /* an instruction pointer: its frames, innermost first */
    size_t first;
    uint32_t count;
};

struct trace {
    uint32_t place, parent; /* indexes from 1; parent 0: none */
};

struct allocation {
    uint64_t size;
    uint32_t trace;
    uint64_t made, live; /* how many */
    uint64_t live_at_peak;
    bool changed; /* since the peak */
};

struct heaptrack {
    struct profile *profile;
    struct error *error;
    uint64_t line, version;
    uint32_t *texts; /* strings of the profile; numbers in the file begin with 1 */
    size_t text_count, text_capacity;
    uint32_t *frames; /* of the profile */
    size_t frame_count, frame_capacity;
    struct place *places;
    size_t place_count, place_capacity;
    struct trace *traces;
    size_t trace_count, trace_capacity;
    struct allocation *allocations;
    size_t allocation_count, allocation_capacity;
    uint32_t *changed; /* allocations that differ from what they were at the peak */
    size_t changed_count, changed_capacity;
    uint64_t live_bytes, peak_bytes, skipped, first_skipped;
};

static int fail_at(struct heaptrack *file, const char *problem)
{
    return error_set(file->error, -EBADMSG, "%s in line %llu.", problem,
                     (unsigned long long)file->line);
}

static bool take_hex(const char **at, const char *end, uint64_t *ret_value)
{
    while (*at < end && **at == ' ')
        ++*at;
    const char *start = *at;
    uint64_t value = 0;
    while (*at < end && hex_digit(**at) >= 0)
        value = value << 4 | (unsigned)hex_digit(*(*at)++);
    *ret_value = value;
    return *at > start && *at - start <= 16 && (*at == end || **at == ' ');
}

static int take_text(struct heaptrack *file, const char *at, const char *end)
{
    uint64_t length;
    /* Since the third version of the format the length comes first. */
    if (file->version >= 3 && !take_hex(&at, end, &length))
        return fail_at(file, "A text has no length");
    if (at < end && *at == ' ')
        at++;
    array_reserve(file->texts, file->text_capacity, file->text_count + 1);
    file->texts[file->text_count++] = profile_string(file->profile, at, (size_t)(end - at));
    return 0;
}

/* A text by its number; 0 is none. */
static bool text_of(const struct heaptrack *file, uint64_t number, uint32_t *ret_text)
{
    if (number > file->text_count)
        return false;
    *ret_text = number ? file->texts[number - 1] : 0;
    return true;
}

static void add_frame(struct heaptrack *file, const struct profile_frame *frame)
{
    array_reserve(file->frames, file->frame_capacity, file->frame_count + 1);
    file->frames[file->frame_count++] = profile_frame(file->profile, frame);
}

/* "i ADDRESS MODULE [FUNCTION [FILE LINE] ...]" */
static int take_place(struct heaptrack *file, const char *at, const char *end)
{
    struct profile *profile = file->profile;
    struct place place = {.first = file->frame_count};
    uint64_t address, number, line;
    uint32_t module = 0, name = 0, path = 0;
    if (!take_hex(&at, end, &address) || !take_hex(&at, end, &number) ||
        !text_of(file, number, &module))
        return fail_at(file, "Malformed instruction pointer");
    uint32_t mapping =
        module ? profile_mapping(profile, &(struct profile_mapping){.file = module}) : 0;
    while (place.count < INLINED_MAX && take_hex(&at, end, &number)) {
        uint64_t path_number = 0;
        line = 0;
        if (take_hex(&at, end, &path_number) && !take_hex(&at, end, &line))
            return fail_at(file, "A source file has no line");
        if (!text_of(file, number, &name) || !text_of(file, path_number, &path))
            return fail_at(file, "A number of a text is not known");
        if (!name)
            continue;
        struct profile_function function = {.name = name, .file = path};
        add_frame(file, &(struct profile_frame){.function = profile_function(profile, &function),
                                                .mapping = mapping,
                                                .line = line < UINT32_MAX ? (uint32_t)line : 0,
                                                .kind = FRAME_NATIVE});
        place.count++;
    }
    if (!place.count) {
        /* Where the module was loaded is not known, so its name is all that can be said. */
        struct profile_function function = {.name = module};
        struct profile_frame frame = {
            .address = module ? 0 : address, .mapping = mapping, .kind = FRAME_NATIVE};
        if (module)
            frame.function = profile_function(profile, &function);
        add_frame(file, &frame);
        place.count = 1;
    }
    array_reserve(file->places, file->place_capacity, file->place_count + 1);
    file->places[file->place_count++] = place;
    return 0;
}

static int take_trace(struct heaptrack *file, const char *at, const char *end)
{
    uint64_t place, parent;
    if (!take_hex(&at, end, &place) || !take_hex(&at, end, &parent) || !place ||
        place > file->place_count || parent > file->trace_count)
        return fail_at(file, "Malformed trace");
    array_reserve(file->traces, file->trace_capacity, file->trace_count + 1);
    file->traces[file->trace_count++] = (struct trace){(uint32_t)place, (uint32_t)parent};
    return 0;
}

static int take_allocation(struct heaptrack *file, const char *at, const char *end)
{
    uint64_t size, trace;
    if (!take_hex(&at, end, &size) || !take_hex(&at, end, &trace) || trace > file->trace_count)
        return fail_at(file, "Malformed allocation");
    array_reserve(file->allocations, file->allocation_capacity, file->allocation_count + 1);
    file->allocations[file->allocation_count++] =
        (struct allocation){.size = size, .trace = (uint32_t)trace};
    return 0;
}

/* Since the peak, only what has changed is looked at when a new peak comes. */
static void note_change(struct heaptrack *file, uint32_t index)
{
    struct allocation *allocation = &file->allocations[index];
    if (allocation->changed)
        return;
    allocation->changed = true;
    array_reserve(file->changed, file->changed_capacity, file->changed_count + 1);
    file->changed[file->changed_count++] = index;
}

static void note_peak(struct heaptrack *file)
{
    if (file->live_bytes <= file->peak_bytes)
        return;
    file->peak_bytes = file->live_bytes;
    for (size_t i = 0; i < file->changed_count; i++) {
        struct allocation *allocation = &file->allocations[file->changed[i]];
        allocation->live_at_peak = allocation->live;
        allocation->changed = false;
    }
    file->changed_count = 0;
}

static int take_event(struct heaptrack *file, const char *at, const char *end, bool made)
{
    uint64_t index;
    if (!take_hex(&at, end, &index) || index >= file->allocation_count)
        return fail_at(file, "An allocation is not known");
    struct allocation *allocation = &file->allocations[index];
    if (!made && !allocation->live)
        return 0; /* allocated before heaptrack was attached */
    note_change(file, (uint32_t)index);
    if (made) {
        allocation->made++;
        allocation->live++;
        if (__builtin_add_overflow(file->live_bytes, allocation->size, &file->live_bytes))
            return fail_at(file, "The sizes of allocations are too large");
        note_peak(file);
    } else {
        allocation->live--;
        file->live_bytes -= allocation->size;
    }
    return 0;
}

static int take_line(struct heaptrack *file, const char *line, size_t length)
{
    const char *at = line + 1, *end = line + length;
    uint64_t number;
    if (!length)
        return 0;
    switch (*line) {
    case 'v':
        if (!take_hex(&at, end, &number) || !take_hex(&at, end, &file->version))
            return fail_at(file, "The file has no version");
        return file->version <= FILE_VERSION_MAX
                   ? 0
                   : error_set(file->error, -ENOTSUP,
                               "The file has version %llu of heaptrack's format; %d is supported.",
                               (unsigned long long)file->version, FILE_VERSION_MAX);
    case 's':
        return take_text(file, at, end);
    case 'i':
        return take_place(file, at, end);
    case 't':
        return take_trace(file, at, end);
    case 'a':
        return take_allocation(file, at, end);
    case '+':
        return take_event(file, at, end, true);
    case '-':
        return take_event(file, at, end, false);
    default: /* X command, I memory, R resident size, c time, A attached, S suppression, # */
        return 0;
    }
}

/* ---- the profile ---- */

enum { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, PEAK_SPACE, TYPES };

static int64_t product(uint64_t count, uint64_t size)
{
    uint64_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? INT64_MAX
                                                       : (int64_t)MIN(bytes, (uint64_t)INT64_MAX);
}

/* The nodes of all traces: a trace's parent is always defined before it. */
static uint32_t *trace_nodes(struct heaptrack *file)
{
    uint32_t *nodes = memory_zalloc(file->trace_count + 1, sizeof(*nodes));
    for (size_t i = 0; i < file->trace_count; i++) {
        const struct place *place = &file->places[file->traces[i].place - 1];
        uint32_t node = nodes[file->traces[i].parent];
        for (uint32_t k = place->count; k-- > 0;)
            node = profile_child(file->profile, node, file->frames[place->first + k]);
        nodes[i + 1] = node;
    }
    return nodes;
}

static int resolve(struct heaptrack *file)
{
    static const char *const names[TYPES][2] = {{"alloc_objects", "count"},
                                                {"alloc_space", "bytes"},
                                                {"inuse_objects", "count"},
                                                {"inuse_space", "bytes"},
                                                {"peak_space", "bytes"}};
    struct profile *profile = file->profile;
    unsigned types[TYPES];
    for (unsigned i = 0; i < TYPES; i++) {
        types[i] = profile_type(profile, profile_cstring(profile, names[i][0]),
                                profile_cstring(profile, names[i][1]));
        if (types[i] == PROFILE_TYPES_MAX)
            return error_set(file->error, -E2BIG,
                             "Together the profiles have more than %d sample types.",
                             PROFILE_TYPES_MAX);
    }
    if (!profile->default_type)
        profile->default_type = profile_cstring(profile, "peak_space");
    _cleanup_free_ uint32_t *nodes = trace_nodes(file);
    for (size_t i = 0; i < file->allocation_count; i++) {
        const struct allocation *allocation = &file->allocations[i];
        uint64_t at_peak = allocation->live_at_peak;
        if (!allocation->made)
            continue;
        size_t row = profile_sample(profile, nodes[allocation->trace], 0, 0, 0);
        const int64_t values[TYPES] = {
            product(allocation->made, 1), product(allocation->made, allocation->size),
            product(allocation->live, 1), product(allocation->live, allocation->size),
            product(at_peak, allocation->size)};
        for (unsigned t = 0; t < TYPES; t++)
            profile_add_value(profile, row, types[t], values[t]);
    }
    profile_note_source(profile, 0, 0);
    return profile_full(profile)
               ? error_set(file->error, -E2BIG, "The file has more stacks than a profile can hold.")
               : 0;
}

static void heaptrack_release(struct heaptrack *file)
{
    free(file->texts);
    free(file->frames);
    free(file->places);
    free(file->traces);
    free(file->allocations);
    free(file->changed);
}

static int heaptrack_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(heaptrack_release) struct heaptrack file = {.profile = profile, .error = error};
    const char *line;
    size_t length;
    int r;
    while ((r = source_line(source, &line, &length, error)) > 0) {
        file.line++;
        r = take_line(&file, line, length);
        if (r < 0)
            return r;
        if (profile_full(profile))
            return fail_at(&file, "There are more frames than a profile can hold");
    }
    return r < 0 ? r : resolve(&file);
}

/* "v 10400 3", and the command behind it. */
static int heaptrack_detect(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes, *end = text + length;
    uint64_t number;
    if (length < 8 || text[0] != 'v' || text[1] != ' ')
        return 0;
    const char *newline = memchr(text, '\n', length);
    const char *at = text + 1;
    if (!newline || newline + 2 >= end || !take_hex(&at, newline, &number) ||
        !take_hex(&at, newline, &number) || at != newline)
        return 0;
    return newline[1] == 'X' || newline[1] == 'A' || newline[1] == 'I' ? FORMAT_CERTAIN : 0;
}

const struct format format_heaptrack = {
    .name = "heaptrack",
    .text = true,
    .summary = "heaptrack's allocations, peak and leaks",
    .extensions = "",
    .detect = heaptrack_detect,
    .read = heaptrack_read,
};
