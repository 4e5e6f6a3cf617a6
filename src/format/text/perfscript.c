// SPDX-License-Identifier: Apache-2.0
// The output of `perf script`: a header line per sample, its frames below it, innermost first, and
// a blank line. See docs/formats/perf-script.md for the mapping onto the model.

#include "format/text/perfscript.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "format/format.h"

/* A frame waits for the whole sample: an inlined one learns its binary from its caller, and the
 * source line may follow on a line of its own. */
struct pending_frame {
    uint64_t address;
    uint32_t name; /* string */
    uint32_t file; /* string: source file */
    uint32_t line;
    uint32_t mapping;
    enum frame_kind kind;
    bool inlined;
};

struct perf_reader {
    struct profile *profile;
    uint64_t line;
    unsigned samples_type;
    bool chose_default; /* the profile's default type is from this file */
    uint32_t clock;     /* name of the event that is "cpu"; 0: none yet */

    bool in_sample;
    unsigned event_type; /* PROFILE_TYPES_MAX: the sample has no value but one */
    int64_t value;
    uint32_t labels;
    uint64_t time_ns;
    struct pending_frame *frames; /* innermost first */
    size_t frame_count, frame_capacity;
    uint32_t *stack;
    size_t stack_capacity;

    /* Samples of events without periods have no value but one. As long as there is a single event,
     * samples/count is all that can be said; once there is another, each has a type of its own. */
    uint32_t first_event; /* string; 0: none yet */
    bool first_has_period, several_events;
    int64_t *counts_before; /* of samples/count: what other files had put there */
    size_t rows_before;

    uint32_t mapping_name; /* string: the latest mapping's, which is often the next one's too */
    uint32_t mapping;
    uint64_t sample_count, first_ns, last_ns;
    uint64_t skipped_count, first_skipped_line;
};

static uint32_t intern(struct perf_reader *reader, struct perf_text text)
{
    return text.length ? profile_string(reader->profile, text.at, text.length) : 0;
}

static bool begins(struct perf_text text, const char *prefix)
{
    size_t length = strlen(prefix);
    return text.length >= length && !memcmp(text.at, prefix, length);
}

static bool ends(struct perf_text text, const char *suffix)
{
    size_t length = strlen(suffix);
    return text.length >= length && !memcmp(text.at + text.length - length, suffix, length);
}

static bool contains(struct perf_text text, const char *word)
{
    return memmem(text.at, text.length, word, strlen(word)) != NULL;
}

/* Modules are "[name]", and so are a few things that are not the kernel's. */
static enum frame_kind kind_of_file(struct perf_text file)
{
    static const char *const user[] = {"[vdso",  "[vsyscall", "[heap",
                                       "[stack", "[anon",     "[uprobes"};
    if (!file.length)
        return FRAME_UNKNOWN;
    for (size_t i = 0; i < ARRAY_LENGTH(user); i++)
        if (begins(file, user[i]))
            return FRAME_NATIVE;
    const char *slash = memrchr(file.at, '/', file.length);
    struct perf_text base = file;
    if (slash) {
        base.at = slash + 1;
        base.length = (size_t)(file.at + file.length - base.at);
    }
    if (file.at[0] == '[' || begins(base, "vmlinux") || begins(base, "bpf_prog_") ||
        ends(base, ".ko") || contains(base, ".ko."))
        return FRAME_KERNEL;
    /* Whose the functions in a JIT compiler's map and in anonymous memory are, nothing says. */
    bool jit = begins(base, "perf-") && ends(base, ".map");
    return file.at[0] == '/' && !jit && !begins(file, "//anon") ? FRAME_NATIVE : FRAME_UNKNOWN;
}

static uint32_t mapping_of(struct perf_reader *reader, struct perf_text file)
{
    if (!file.length)
        return 0;
    uint32_t name = intern(reader, file);
    if (name != reader->mapping_name) {
        reader->mapping_name = name;
        reader->mapping = profile_mapping(reader->profile, &(struct profile_mapping){.file = name});
    }
    return reader->mapping;
}

static void add_frame(struct perf_reader *reader, const struct perf_frame *frame)
{
    array_reserve(reader->frames, reader->frame_capacity, reader->frame_count + 1);
    reader->frames[reader->frame_count++] = (struct pending_frame){
        .address = frame->address,
        .name = intern(reader, frame->symbol),
        .mapping = mapping_of(reader, frame->file),
        .kind = kind_of_file(frame->file),
        .inlined = frame->inlined,
    };
}

static uint32_t finish_stack(struct perf_reader *reader)
{
    struct profile *profile = reader->profile;
    array_reserve(reader->stack, reader->stack_capacity, reader->frame_count);
    size_t count = 0;
    const struct pending_frame *caller = NULL;
    for (size_t i = reader->frame_count; i-- > 0;) {
        struct pending_frame *pending = &reader->frames[i];
        /* The outermost frame has nothing that it could be inlined into. */
        if (pending->inlined && caller) {
            pending->mapping = caller->mapping;
            pending->kind = caller->kind;
        } else {
            pending->inlined = false;
        }
        struct profile_frame frame = {
            .address = pending->address,
            .mapping = pending->mapping,
            .line = pending->line,
            .kind = pending->kind,
            .inlined = pending->inlined,
        };
        if (pending->name)
            frame.function = profile_function(
                profile, &(struct profile_function){.name = pending->name, .file = pending->file});
        reader->stack[count++] = profile_frame(profile, &frame);
        caller = pending;
    }
    return profile_stack(profile, reader->stack, count);
}

static int finish_sample(struct perf_reader *reader, struct error *error)
{
    struct profile *profile = reader->profile;
    if (!reader->in_sample)
        return 0;
    reader->in_sample = false;
    uint32_t node = finish_stack(reader);
    reader->frame_count = 0;
    size_t row = profile_sample(profile, node, reader->labels, 0, reader->time_ns);
    profile_add_value(profile, row, reader->samples_type, 1);
    if (reader->event_type != PROFILE_TYPES_MAX)
        profile_add_value(profile, row, reader->event_type, reader->value);
    reader->sample_count++;
    if (profile_full(profile))
        return error_set(error, -E2BIG, "There are too many stacks by line %llu.",
                         (unsigned long long)reader->line);
    return 0;
}

static uint32_t label_set_of(struct profile *profile, const struct perf_header *header)
{
    if (!(profile->detail & PROFILE_LABELS))
        return 0;
    struct profile_label labels[3] = {
        {.key = profile_cstring(profile, "comm"),
         .text = profile_string(profile, header->comm.at, header->comm.length)}};
    size_t count = 1;
    if (header->pid >= 0)
        labels[count++] =
            (struct profile_label){.key = profile_cstring(profile, "pid"), .number = header->pid};
    if (header->tid >= 0)
        labels[count++] =
            (struct profile_label){.key = profile_cstring(profile, "tid"), .number = header->tid};
    return profile_label_set(profile, labels, count);
}

static int event_types_full(const struct perf_reader *reader, struct error *error)
{
    return error_set(error, -E2BIG, "There are more than %d different events by line %llu.",
                     PROFILE_TYPES_MAX, (unsigned long long)reader->line);
}

/* The type that counts samples of an event without a period; PROFILE_TYPES_MAX: too many. */
static unsigned samples_of_event(struct perf_reader *reader, uint32_t event)
{
    return profile_type(reader->profile, event, profile_cstring(reader->profile, "samples"));
}

/* All samples so far were of the first event. */
static int split_first_event(struct perf_reader *reader, struct error *error)
{
    const struct profile_samples *samples = &reader->profile->samples;
    unsigned type = samples_of_event(reader, reader->first_event);
    if (type == PROFILE_TYPES_MAX)
        return event_types_full(reader, error);
    for (size_t row = 0; row < samples->count; row++) {
        int64_t before = row < reader->rows_before ? reader->counts_before[row] : 0;
        profile_add_value(reader->profile, row, type,
                          samples->values[reader->samples_type][row] - before);
    }
    if (!reader->profile->default_type)
        reader->profile->default_type = reader->first_event;
    return 0;
}

/* Of events that differ in more than modifiers. */
static int tell_events_apart(struct perf_reader *reader, uint32_t event, bool has_period,
                             struct error *error)
{
    if (!reader->first_event) {
        reader->first_event = event;
        reader->first_has_period = has_period;
    }
    if (reader->several_events || event == reader->first_event)
        return 0;
    reader->several_events = true;
    return reader->first_has_period ? 0 : split_first_event(reader, error);
}

/* Sets the sample's type and value beside samples/count. Clocks count nanoseconds; of other events
 * the period says how many the sample stands for, and of tracepoints every one is printed. */
static int note_event(struct perf_reader *reader, const struct perf_header *header,
                      struct error *error)
{
    struct profile *profile = reader->profile;
    reader->event_type = PROFILE_TYPES_MAX;
    if (!header->event.length)
        return 0;
    struct perf_event event = perf_parse_event(header->event);
    bool has_value = header->has_period || event.is_tracepoint;
    uint32_t name = intern(reader, event.name);
    int r = tell_events_apart(reader, name, has_value, error);
    if (r < 0 || (!has_value && !reader->several_events))
        return r;
    if (!has_value) {
        reader->value = 1;
        reader->event_type = samples_of_event(reader, name);
        return reader->event_type == PROFILE_TYPES_MAX ? event_types_full(reader, error) : 0;
    }
    uint64_t value = header->has_period ? header->period : 1;
    reader->value = (int64_t)MIN(value, (uint64_t)INT64_MAX);
    /* Two clocks measure the same time, which would be counted twice. */
    bool is_cpu = event.is_clock && (!reader->clock || reader->clock == name);
    if (is_cpu)
        reader->clock = name;
    uint32_t type = is_cpu ? profile_cstring(profile, "cpu") : name;
    uint32_t unit = profile_cstring(profile, event.is_clock ? "nanoseconds" : "count");
    reader->event_type = profile_type(profile, type, unit);
    if (reader->event_type == PROFILE_TYPES_MAX)
        return event_types_full(reader, error);
    /* CPU time is what most people look for; otherwise the first event is. */
    if (!profile->default_type || (reader->chose_default && is_cpu)) {
        profile->default_type = type;
        reader->chose_default = true;
    }
    if (is_cpu)
        profile_note_period(profile, type, unit, reader->value);
    return 0;
}

static int begin_sample(struct perf_reader *reader, const struct perf_header *header,
                        struct error *error)
{
    int r = finish_sample(reader, error);
    if (r < 0 || header->is_record)
        return r;
    r = note_event(reader, header, error);
    if (r < 0)
        return r;
    reader->in_sample = true;
    reader->time_ns = header->time_ns;
    reader->labels = label_set_of(reader->profile, header);
    if (header->has_time) {
        if (!reader->first_ns || header->time_ns < reader->first_ns)
            reader->first_ns = header->time_ns;
        reader->last_ns = MAX(reader->last_ns, header->time_ns);
    }
    /* Without a recorded stack, perf prints the one frame it has behind the event. */
    struct perf_frame frame;
    if (!perf_parse_event(header->event).is_tracepoint &&
        perf_parse_frame(header->rest.at, header->rest.length, &frame))
        add_frame(reader, &frame);
    return 0;
}

/* Tools that trim lines leave frames without blanks before them. A word of hexadecimal letters
 * alone is too little then. */
static bool is_bare_frame(const struct perf_frame *frame)
{
    return frame->file.at || frame->inlined; /* also a file that is not known */
}

/* A line inside a sample that isn't a header: a frame, or the source line of the frame above it. */
static bool take_frame_line(struct perf_reader *reader, const char *text, size_t length)
{
    bool indented = text[0] == ' ' || text[0] == '\t';
    struct perf_frame frame;
    struct perf_text file;
    uint32_t line;
    if (perf_parse_frame(text, length, &frame) && (indented || is_bare_frame(&frame))) {
        add_frame(reader, &frame);
        return true;
    }
    if (!indented || !reader->frame_count || !perf_parse_source_line(text, length, &file, &line))
        return false;
    struct pending_frame *above = &reader->frames[reader->frame_count - 1];
    if (line) {
        above->file = intern(reader, file);
        above->line = line;
    }
    return true;
}

static int take_line(struct perf_reader *reader, const char *text, size_t length,
                     struct error *error)
{
    size_t blanks = 0;
    while (blanks < length && (text[blanks] == ' ' || text[blanks] == '\t'))
        blanks++;
    if (blanks == length)
        return finish_sample(reader, error);
    struct perf_header header;
    if (text[0] != '\t' && perf_parse_header(text, length, &header))
        return begin_sample(reader, &header, error);
    if (text[0] == '#')
        return 0;
    if (reader->in_sample && take_frame_line(reader, text, length))
        return 0;
    if (!reader->skipped_count++)
        reader->first_skipped_line = reader->line;
    return 0;
}

static int note_end(struct perf_reader *reader, struct source *source, struct error *error)
{
    struct profile *profile = reader->profile;
    source_note_skipped(source, reader->skipped_count, reader->first_skipped_line);
    if (!reader->sample_count && reader->skipped_count)
        return error_set(error, -EBADMSG,
                         "No `perf script` sample found; line %llu is the first malformed one.",
                         (unsigned long long)reader->first_skipped_line);
    if (reader->skipped_count) {
        char text[160];
        snprintf(text, sizeof(text),
                 "perf script: %llu lines that are not part of a sample were skipped, the first of "
                 "them line %llu",
                 (unsigned long long)reader->skipped_count,
                 (unsigned long long)reader->first_skipped_line);
        profile_add_comment(profile, profile_cstring(profile, text));
    }
    uint64_t duration_ns = reader->last_ns - MIN(reader->first_ns, reader->last_ns);
    profile_note_source(profile, 0, (int64_t)MIN(duration_ns, (uint64_t)INT64_MAX));
    return 0;
}

static int perf_script_read(struct source *source, struct profile *profile, struct error *error)
{
    struct perf_reader reader = {.profile = profile};
    reader.samples_type = profile_type(profile, profile_cstring(profile, "samples"),
                                       profile_cstring(profile, "count"));
    if (reader.samples_type == PROFILE_TYPES_MAX)
        return error_set(error, -E2BIG, "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    reader.rows_before = profile->samples.count;
    reader.counts_before = memory_alloc((reader.rows_before + 1) * sizeof(int64_t));
    if (reader.rows_before)
        memcpy(reader.counts_before, profile->samples.values[reader.samples_type],
               reader.rows_before * sizeof(int64_t));
    const char *text;
    size_t length;
    int r;
    while ((r = source_line(source, &text, &length, error)) > 0) {
        reader.line++;
        r = take_line(&reader, text, length, error);
        if (r < 0)
            break;
    }
    if (r >= 0)
        r = finish_sample(&reader, error);
    if (r >= 0)
        r = note_end(&reader, source, error);
    free(reader.counts_before);
    free(reader.frames);
    free(reader.stack);
    return r;
}

/* A header is unlikely by chance; one with a time and a frame below or behind it isn't. */
static int perf_script_detect(const uint8_t *bytes, size_t length)
{
    bool seen_header = false, seen_time = false, seen_perf = false;
    for (size_t at = 0; at < length;) {
        const char *text = (const char *)bytes + at;
        const char *newline = memchr(text, '\n', length - at);
        size_t line_length = newline ? (size_t)(newline - text) : length - at;
        at += line_length + 1;
        if (line_length && text[line_length - 1] == '\r')
            line_length--;
        struct perf_header header;
        struct perf_frame frame;
        if (!line_length)
            continue;
        if (text[0] != '\t' && perf_parse_header(text, line_length, &header)) {
            seen_header = true;
            seen_time |= header.has_time;
            if (header.is_record || perf_parse_frame(header.rest.at, header.rest.length, &frame))
                return seen_time ? 3 : 2;
        } else if (text[0] == '#') {
            seen_perf |= contains((struct perf_text){.at = text, .length = line_length}, "perf");
        } else if (seen_header && perf_parse_frame(text, line_length, &frame) &&
                   (text[0] == '\t' || text[0] == ' ' || is_bare_frame(&frame))) {
            return seen_time ? 3 : 2;
        } else if (!seen_header) {
            return 0;
        }
    }
    return seen_header ? 1 + seen_time : seen_perf;
}

const struct format format_perf_script = {
    .name = "perf-script",
    .text = true,
    .summary = "text output of `perf script`",
    .extensions = "",
    .detect = perf_script_detect,
    .read = perf_script_read,
};
