// SPDX-License-Identifier: Apache-2.0
// The report of macOS's `sample` (and of spindump and Activity Monitor): a call tree by
// indentation. See docs/formats/macos-sample.md.

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/format.h"

#define DEPTH_MAX 4096

struct level {
    size_t column; /* of its count */
    uint32_t node;
    uint32_t labels;
    int64_t count, children;
};

struct macsample {
    struct profile *profile;
    struct error *error;
    struct level levels[DEPTH_MAX];
    size_t depth;
    bool in_graph, seen;
    unsigned samples_type, time_type;
    int64_t interval_ns;
    uint64_t line;
};

static void close_level(struct macsample *file)
{
    const struct level *level = &file->levels[--file->depth];
    int64_t own = level->count - level->children;
    if (own <= 0)
        return;
    size_t row = profile_sample(file->profile, level->node, level->labels, 0, 0);
    int64_t time;
    if (__builtin_mul_overflow(own, file->interval_ns, &time))
        time = INT64_MAX;
    profile_add_value(file->profile, row, file->samples_type, own);
    if (file->interval_ns)
        profile_add_value(file->profile, row, file->time_type, time);
}

static const char *find(const char *text, const char *end, const char *words)
{
    return memmem(text, (size_t)(end - text), words, strlen(words));
}

/* "name  (in module) + 12  [0x1234]  file.c:12" */
static uint32_t frame_of(struct macsample *file, const char *text, const char *end)
{
    struct profile *profile = file->profile;
    struct profile_function function = {0};
    struct profile_frame frame = {0};
    const char *in = find(text, end, "  (in "), *name_end = end;
    const char *bracket = find(text, end, "  [0x");
    if (in) {
        const char *close = memchr(in, ')', (size_t)(end - in));
        name_end = in;
        if (close)
            frame.mapping = profile_mapping(
                profile, &(struct profile_mapping){
                             .file = profile_string(profile, in + 6, (size_t)(close - in) - 6)});
    } else if (bracket) {
        name_end = bracket;
    }
    const char *behind = bracket ? memchr(bracket, ']', (size_t)(end - bracket)) : NULL;
    if (behind) {
        const char *source = behind + 1;
        uint32_t row = 0;
        while (source < end && *source == ' ')
            source++;
        const char *mark = source < end ? text_number_before(source, end, &row) : NULL;
        if (mark && mark > source) {
            function.file = profile_string(profile, source, (size_t)(mark - source));
            frame.line = row;
        }
    }
    while (name_end > text && name_end[-1] == ' ')
        name_end--;
    function.name = profile_string(profile, text, (size_t)(name_end - text));
    frame.function = profile_function(profile, &function);
    return profile_frame(profile, &frame);
}

/* Threads are the tree's first level: a label, and no frame. */
static uint32_t thread_label(struct macsample *file, const char *text, const char *end)
{
    struct profile *profile = file->profile;
    if (!(profile->detail & PROFILE_LABELS))
        return 0;
    struct profile_label label = {.key = profile_cstring(profile, "thread"),
                                  .text = profile_string(profile, text, (size_t)(end - text))};
    return profile_label_set(profile, &label, 1);
}

static int take_tree_line(struct macsample *file, const char *line, size_t length)
{
    const char *end = line + length;
    size_t column = 0;
    while (column < length && strchr(" +!:|\t", line[column]))
        column++;
    const char *number = line + column, *at = number;
    while (at < end && isdigit((unsigned char)*at))
        at++;
    uint64_t count;
    if (at == number || at == end || *at != ' ' ||
        !text_to_u64(number, (size_t)(at - number), &count) || count > INT64_MAX)
        return 0;
    while (at < end && *at == ' ')
        at++;
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    while (file->depth && file->levels[file->depth - 1].column >= column)
        close_level(file);
    if (file->depth == DEPTH_MAX)
        return error_set(file->error, -E2BIG, "The call tree is deeper than %d in line %llu.",
                         DEPTH_MAX, (unsigned long long)file->line);
    struct level level = {.column = column, .count = (int64_t)count};
    bool is_thread = !file->depth && (size_t)(end - at) > 6 && !strncmp(at, "Thread", 6);
    if (file->depth) {
        struct level *parent = &file->levels[file->depth - 1];
        parent->children = add_saturated(parent->children, level.count);
        level.node = parent->node;
        level.labels = parent->labels;
    }
    if (is_thread)
        level.labels = thread_label(file, at, end);
    else
        level.node = profile_child(file->profile, level.node, frame_of(file, at, end));
    file->levels[file->depth++] = level;
    file->seen = true;
    return profile_full(file->profile)
               ? error_set(file->error, -E2BIG, "There are too many stacks by line %llu.",
                           (unsigned long long)file->line)
               : 0;
}

/* "Analysis of sampling x (pid 1) every 1 millisecond" */
static void take_interval(struct macsample *file, const char *line, size_t length)
{
    const char *end = line + length, *every = find(line, end, " every ");
    uint64_t value = 0;
    if (!every)
        return;
    const char *number = every + 7, *at = number;
    while (at < end && isdigit((unsigned char)*at))
        at++;
    if (!text_to_u64(number, (size_t)(at - number), &value) || value > 1000000)
        return;
    int64_t unit = find(at, end, "microsecond")   ? 1000
                   : find(at, end, "millisecond") ? 1000000
                                                  : 1000000000;
    file->interval_ns = (int64_t)value * unit;
}

static int take_line(struct macsample *file, const char *line, size_t length)
{
    if (!file->in_graph) {
        if (length >= 11 && !memcmp(line, "Call graph:", 11))
            file->in_graph = true;
        else if (length > 20 && !memcmp(line, "Analysis of sampling", 20))
            take_interval(file, line, length);
        return 0;
    }
    /* The tree ends with a heading, which is not indented. */
    if (length && line[0] != ' ' && line[0] != '+' && line[0] != '\t') {
        file->in_graph = false;
        while (file->depth)
            close_level(file);
        return 0;
    }
    return take_tree_line(file, line, length);
}

static int add_types(struct macsample *file)
{
    struct profile *profile = file->profile;
    file->samples_type = profile_type(profile, profile_cstring(profile, "samples"),
                                      profile_cstring(profile, "count"));
    file->time_type = profile_type(profile, profile_cstring(profile, "wall"),
                                   profile_cstring(profile, "nanoseconds"));
    return file->samples_type == PROFILE_TYPES_MAX || file->time_type == PROFILE_TYPES_MAX
               ? error_set(file->error, -E2BIG,
                           "Together the profiles have more than %d sample types.",
                           PROFILE_TYPES_MAX)
               : 0;
}

static int macsample_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_free_ struct macsample *file = memory_zalloc(1, sizeof(*file));
    file->profile = profile;
    file->error = error;
    file->interval_ns = 1000000; /* the default of `sample` */
    int r = add_types(file);
    const char *line;
    size_t length;
    if (r < 0)
        return r;
    while ((r = source_line(source, &line, &length, error)) > 0) {
        file->line++;
        r = take_line(file, line, length);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    while (file->depth)
        close_level(file);
    if (!file->seen)
        return error_set(error, -EBADMSG, "No call graph found in %llu lines.",
                         (unsigned long long)file->line);
    profile_note_period(profile, profile_cstring(profile, "wall"),
                        profile_cstring(profile, "nanoseconds"), file->interval_ns);
    profile_note_source(profile, 0, 0);
    return 0;
}

static int macsample_detect(const uint8_t *bytes, size_t length)
{
#define HAS(word) memmem(bytes, length, word, strlen(word))
    if (length >= 20 && !memcmp(bytes, "Analysis of sampling", 20))
        return FORMAT_CERTAIN;
    return HAS("\nCall graph:\n") && HAS("Process:") ? FORMAT_CERTAIN : 0;
#undef HAS
}

const struct format format_macos_sample = {
    .name = "macos-sample",
    .text = true,
    .summary = "reports of macOS's `sample`",
    .extensions = "",
    .detect = macsample_detect,
    .read = macsample_read,
};
