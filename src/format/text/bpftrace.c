// SPDX-License-Identifier: Apache-2.0
// bpftrace's maps of stacks: "@name[", frames, other keys, "]: count". See
// docs/formats/bpftrace.md.

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/text/stack_lines.h"

struct bpftrace {
    struct profile *profile;
    struct error *error;
    uint64_t line, entries, skipped, first_skipped;
    bool inside;
    unsigned type;           /* of the map at hand */
    struct line_stack stack; /* innermost first; the kernel's part comes first, too */
    struct profile_label keys[8];
    size_t key_count;
};

static const char *trim(const char *text, const char **end)
{
    while (text < *end && isspace((unsigned char)*text))
        text++;
    while (*end > text && isspace((unsigned char)(*end)[-1]))
        --*end;
    return text;
}

/* "]: 12" at the end of a line, outside of names: where it begins, or NULL. */
static const char *closing(const char *line, size_t length, int64_t *ret_count)
{
    const char *end = line + length, *at = end;
    while (at > line && (isdigit((unsigned char)at[-1]) || at[-1] == '-'))
        at--;
    if (at == end || at - line < 3 || memcmp(at - 3, "]: ", 3) ||
        !text_to_i64(at, (size_t)(end - at), ret_count))
        return NULL;
    return at - 3;
}

/* "@name[": the type is called as the map is. */
static bool opening(const char *line, size_t length, size_t *ret_name, size_t *ret_behind)
{
    size_t i = 1;
    if (length < 2 || line[0] != '@')
        return false;
    while (i < length && (isalnum((unsigned char)line[i]) || line[i] == '_'))
        i++;
    *ret_name = i - 1;
    *ret_behind = i + 1;
    return i < length && line[i] == '[';
}

static int begin_map(struct bpftrace *file, const char *name, size_t length)
{
    struct profile *profile = file->profile;
    uint32_t type =
        length ? profile_string(profile, name, length) : profile_cstring(profile, "samples");
    file->type = profile_type(profile, type, profile_cstring(profile, "count"));
    if (file->type == PROFILE_TYPES_MAX)
        return error_set(file->error, -E2BIG, "There are more than %d maps by line %llu.",
                         PROFILE_TYPES_MAX, (unsigned long long)file->line);
    if (!profile->default_type)
        profile->default_type = type;
    file->inside = true;
    file->stack.count = file->key_count = 0;
    return 0;
}

/* Keys beside the stacks are separated by commas. */
static void take_keys(struct bpftrace *file, const char *text, const char *end)
{
    struct profile *profile = file->profile;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end, *word = trim(text, &stop);
        if (stop > word && file->key_count < ARRAY_LENGTH(file->keys)) {
            char name[16];
            snprintf(name, sizeof(name), "key%zu", file->key_count + 1);
            file->keys[file->key_count++] = (struct profile_label){
                .key = profile_cstring(profile, name),
                .text = profile_string(profile, word, (size_t)(stop - word))};
        }
        text = comma ? comma + 1 : end;
    }
}

static int end_entry(struct bpftrace *file, int64_t count)
{
    struct profile *profile = file->profile;
    uint32_t labels = file->key_count && profile->detail & PROFILE_LABELS
                          ? profile_label_set(profile, file->keys, file->key_count)
                          : 0;
    uint32_t node = line_stack_take(&file->stack, profile);
    profile_add_value(profile, profile_sample(profile, node, labels, 0, 0), file->type, count);
    file->inside = false;
    file->entries++;
    return profile_full(profile)
               ? error_set(file->error, -E2BIG, "There are too many stacks by line %llu.",
                           (unsigned long long)file->line)
               : 0;
}

static int take_inside(struct bpftrace *file, const char *line, size_t length)
{
    const char *end = line + length;
    int64_t count;
    const char *close = closing(line, length, &count);
    const char *stop = close ? close : end;
    const char *text = trim(line, &stop);
    bool indented = length && isspace((unsigned char)*line);
    /* A frame is indented, and no key is. */
    if (stop > text && indented && *text != ',')
        line_stack_add(&file->stack, stack_line_frame(file->profile, text, (size_t)(stop - text)));
    else if (stop > text)
        take_keys(file, text, stop);
    return close ? end_entry(file, count) : 0;
}

static int take_line(struct bpftrace *file, const char *line, size_t length)
{
    size_t name, behind;
    if (file->inside)
        return take_inside(file, line, length);
    if (!length || !opening(line, length, &name, &behind)) {
        /* "Attaching 2 probes..." */
        if (length && line[0] != '#' && strncmp(line, "Attach", MIN(length, (size_t)6)) &&
            !file->skipped++)
            file->first_skipped = file->line;
        return 0;
    }
    int r = begin_map(file, line + 1, name);
    if (r < 0)
        return r;
    const char *rest = line + behind, *end = line + length;
    int64_t count;
    const char *close = closing(line, length, &count);
    if (close && close >= rest) {
        take_keys(file, rest, close);
        return end_entry(file, count);
    }
    take_keys(file, rest, end);
    return 0;
}

static int bpftrace_read(struct source *source, struct profile *profile, struct error *error)
{
    struct bpftrace file = {.profile = profile, .error = error};
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
        return error_set(error, -EBADMSG, "No map of stacks found in %llu lines.",
                         (unsigned long long)file.line);
    source_note_skipped(source, file.skipped, file.first_skipped);
    profile_note_source(profile, 0, 0);
    return 0;
}

/* A line that opens a map and ends there or in a comma. */
static int bpftrace_detect(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes, *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((newline ? newline : end) - text), name, behind;
        if (opening(text, line, &name, &behind)) {
            const char *stop = text + line;
            const char *rest = trim(text + behind, &stop);
            if (newline && (rest >= stop || stop[-1] == ','))
                return FORMAT_CERTAIN;
        }
        text = newline ? newline + 1 : end;
    }
    return 0;
}

const struct format format_bpftrace = {
    .name = "bpftrace",
    .text = true,
    .summary = "maps of stacks that bpftrace prints",
    .extensions = "",
    .detect = bpftrace_detect,
    .read = bpftrace_read,
};
