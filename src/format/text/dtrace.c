// SPDX-License-Identifier: Apache-2.0
// DTrace's aggregations of stacks: frames on lines of their own, then a count, then a blank line.
// See docs/formats/dtrace.md.

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/text/stack_lines.h"

/* Text of a line without blanks at its ends. */
static const char *trim(const char *line, size_t *length)
{
    while (*length && isspace((unsigned char)*line))
        line++, --*length;
    while (*length && isspace((unsigned char)line[*length - 1]))
        --*length;
    return line;
}

struct dtrace {
    struct profile *profile;
    struct error *error;
    struct line_stack stack;
    unsigned type;
    uint64_t line, entries, skipped, first_skipped;
};

static int take_line(struct dtrace *file, const char *line, size_t length)
{
    bool indented = length && isspace((unsigned char)*line);
    int64_t count;
    line = trim(line, &length);
    if (!length) {
        /* Frames that no count has followed belong to nothing, but a blank line may divide the
         * kernel's and the user's part of a stack. */
        return 0;
    }
    if (text_to_i64(line, length, &count)) {
        struct profile *profile = file->profile;
        if (!file->stack.count)
            return 0;
        uint32_t node = line_stack_take(&file->stack, profile);
        profile_add_value(profile, profile_sample(profile, node, 0, 0, 0), file->type, count);
        file->entries++;
        return profile_full(profile)
                   ? error_set(file->error, -E2BIG, "There are too many stacks by line %llu.",
                               (unsigned long long)file->line)
                   : 0;
    }
    /* DTrace's own: "dtrace: description ...", "CPU  ID  FUNCTION:NAME", and events, as in
     * "  0  64091   :tick-10s". */
    bool own = (isdigit((unsigned char)*line) && memchr(line, ' ', length)) ||
               (length > 7 && !memcmp(line, "dtrace:", 7)) ||
               (length > 4 && !memcmp(line, "CPU ", 4));
    if (!indented || own) {
        if (!own && !file->skipped++)
            file->first_skipped = file->line;
        file->stack.count = 0;
        return 0;
    }
    line_stack_add(&file->stack, stack_line_frame(file->profile, line, length));
    return 0;
}

static int dtrace_read(struct source *source, struct profile *profile, struct error *error)
{
    struct dtrace file = {.profile = profile, .error = error};
    file.type = profile_type(profile, profile_cstring(profile, "samples"),
                             profile_cstring(profile, "count"));
    if (file.type == PROFILE_TYPES_MAX)
        return error_set(error, -E2BIG, "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    const char *line;
    size_t length;
    int r;
    while ((r = source_line(source, &line, &length, error)) > 0) {
        file.line++;
        r = take_line(&file, line, length);
        if (r < 0)
            break;
    }
    free(file.stack.frames);
    if (r < 0)
        return r;
    if (!file.entries)
        return error_set(error, -EBADMSG, "No stack with a count found in %llu lines.",
                         (unsigned long long)file.line);
    source_note_skipped(source, file.skipped, file.first_skipped);
    profile_note_source(profile, 0, 0);
    return 0;
}

/* Indented lines with "module`function", and a count alone on a line. */
static int dtrace_detect(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes, *end = text + length;
    unsigned frames = 0, counts = 0;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        if (!newline && length >= FORMAT_SNIFF_BYTES)
            break;
        size_t line = (size_t)((newline ? newline : end) - text), inner = line;
        const char *word = trim(text, &inner);
        int64_t count;
        if (word > text && inner && memchr(word, '`', inner) && !memchr(word, ';', inner))
            frames++;
        else if (word > text && frames && text_to_i64(word, inner, &count))
            counts++;
        text = newline ? newline + 1 : end;
    }
    return frames && counts ? FORMAT_CERTAIN : frames > 5 ? 2 : 0;
}

const struct format format_dtrace = {
    .name = "dtrace",
    .text = true,
    .summary = "aggregations of stacks that DTrace prints",
    .extensions = "",
    .detect = dtrace_detect,
    .read = dtrace_read,
};
