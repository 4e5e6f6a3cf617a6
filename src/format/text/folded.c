// SPDX-License-Identifier: Apache-2.0
// Folded stacks, the text that flame-graph scripts exchange: one stack per line, outermost frame
// first, frames separated by semicolons, then a space and a count. See docs/formats/folded.md.

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/picture/pictures.h"

#define NUMBER_DIGITS_MAX 63

/* Every line repeats its whole stack, so a deep tree's text can be far larger than the tree. A line
 * that is longer could not be read again. */
#define PATH_BYTES_MAX (15u << 20)
#define OUTPUT_BYTES_MAX (2u << 30)

struct folded_line {
    const char *stack;
    size_t stack_length;
    int64_t counts[2]; /* the last is the samples; before it the base, in files of differences */
    unsigned count;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t trimmed(const char *text, size_t length)
{
    while (length && is_blank(text[length - 1]))
        length--;
    return length;
}

/* Fractions come from tools that scale; they are rounded. Words that strtod takes for numbers
 * ("nan", "0x1p3") are names here. */
static bool parse_count(const char *text, size_t length, int64_t *ret_count)
{
    if (text_to_i64(text, length, ret_count))
        return true;
    char copy[NUMBER_DIGITS_MAX + 1];
    if (!length || length > NUMBER_DIGITS_MAX ||
        !(isdigit((unsigned char)text[0]) || strchr("+-.", text[0])))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    double value;
    if (strspn(copy, "0123456789.eE+-") != length || !text_to_double(copy, &value) ||
        fabs(value) >= 0x1p63)
        return false;
    *ret_count = llround(value);
    return true;
}

/* Takes a number off the end of the line's stack. */
static bool take_count(struct folded_line *line, int64_t *ret_count)
{
    size_t start = line->stack_length;
    while (start && !is_blank(line->stack[start - 1]))
        start--;
    /* A line that is only a number is a frame whose count is missing, except after a blank. */
    if (!start || !parse_count(line->stack + start, line->stack_length - start, ret_count))
        return false;
    line->stack_length = start - 1; /* further blanks belong to the name */
    return true;
}

/* Splits a line into its stack and up to `wanted` counts; ->count says how many there were. */
static void split_line(const char *text, size_t length, unsigned wanted, struct folded_line *ret)
{
    *ret = (struct folded_line){.stack = text, .stack_length = trimmed(text, length)};
    int64_t count;
    while (ret->count < wanted && take_count(ret, &count)) {
        ret->counts[0] = count;
        if (!ret->count++)
            ret->counts[1] = count;
    }
}

/* "# text" and "// text" always; "#name 3" and "//anon;f 3" are stacks all the same. */
static bool is_comment(const char *text, size_t length)
{
    if (length > 2 && text[0] == '/' && text[1] == '/' && is_blank(text[2]))
        return true;
    if (!length || text[0] != '#')
        return false;
    struct folded_line line;
    split_line(text, length, 1, &line);
    return length == 1 || is_blank(text[1]) || !line.count;
}

/* ---- detecting ---- */

struct sniffed {
    unsigned lines;
    unsigned counted; /* lines that end in a number */
    unsigned twice;   /* lines that end in two */
    bool separators;  /* there is a semicolon */
};

/* Looks at the lines that the bytes hold in full; the last one only when nothing follows it. */
static void sniff(const char *bytes, size_t length, bool whole, struct sniffed *ret)
{
    *ret = (struct sniffed){0};
    for (size_t at = 0; at < length;) {
        const char *text = bytes + at;
        const char *newline = memchr(text, '\n', length - at);
        size_t line_length = newline ? (size_t)(newline - text) : length - at;
        at += line_length + 1;
        if (!newline && !whole && ret->lines)
            break;
        if (line_length && text[line_length - 1] == '\r')
            line_length--;
        if (!trimmed(text, line_length) || is_comment(text, line_length))
            continue;
        struct folded_line line;
        split_line(text, line_length, 2, &line);
        ret->lines++;
        ret->counted += line.count > 0;
        ret->twice += line.count == 2 && line.stack_length;
        ret->separators |= line.count && memchr(text, ';', line.stack_length) != NULL;
    }
}

static int folded_detect(const uint8_t *bytes, size_t length)
{
    if (memchr(bytes, '\0', length))
        return 0;
    bool plain = true; /* control characters are odd in names, but some have them */
    for (size_t i = 0; i < length; i++)
        plain &= bytes[i] >= 0x20 || bytes[i] == '\t' || bytes[i] == '\r' || bytes[i] == '\n';
    struct sniffed seen;
    sniff((const char *)bytes, length, length < FORMAT_SNIFF_BYTES, &seen);
    if (!seen.lines)
        return 0;
    /* One line that is longer than what can be seen: its count is out of sight. */
    if (length == FORMAT_SNIFF_BYTES && !memchr(bytes, '\n', length))
        return memchr(bytes, ';', length) && bytes[0] != '{' && bytes[0] != '[' && bytes[0] != '<';
    if (seen.counted == seen.lines)
        return seen.separators && plain ? 2 : 1;
    /* Some lines may be bad. */
    unsigned bad = seen.lines - seen.counted;
    return seen.separators && plain && bad <= MAX(seen.counted / 4, 1u) && seen.counted;
}

/* ---- reading ---- */

struct folded_reader {
    struct profile *profile;
    unsigned wanted; /* counts per line */
    unsigned types[2];
    uint32_t *frames;
    size_t frame_capacity;
    uint64_t line;
    uint64_t read_count, skipped_count, first_skipped_line;
};

static uint32_t intern_frame(struct profile *profile, const char *name, size_t length)
{
    uint32_t text = profile_string(profile, name, length);
    /* The suffix that stack collapsing scripts give to kernel functions. */
    bool kernel = length > 4 && !memcmp(name + length - 4, "_[k]", 4);
    return profile_frame(profile, &(struct profile_frame){
                                      .function = profile_function(
                                          profile, &(struct profile_function){.name = text}),
                                      .kind = kernel ? FRAME_KERNEL : FRAME_UNKNOWN,
                                  });
}

static uint32_t intern_stack(struct folded_reader *reader, const char *stack, size_t length)
{
    size_t count = 0;
    for (size_t at = 0; at < length;) {
        const char *separator = memchr(stack + at, ';', length - at);
        size_t name_length = separator ? (size_t)(separator - stack) - at : length - at;
        if (name_length) {
            array_reserve(reader->frames, reader->frame_capacity, count + 1);
            reader->frames[count++] = intern_frame(reader->profile, stack + at, name_length);
        }
        at += name_length + 1;
    }
    return profile_stack(reader->profile, reader->frames, count);
}

static int read_line(struct folded_reader *reader, const char *text, size_t length,
                     struct error *error)
{
    if (!trimmed(text, length) || is_comment(text, length))
        return 0;
    struct folded_line line;
    split_line(text, length, reader->wanted, &line);
    if (line.count < reader->wanted) {
        if (!reader->skipped_count++)
            reader->first_skipped_line = reader->line;
        return 0;
    }
    reader->read_count++;
    struct profile *profile = reader->profile;
    uint32_t node = intern_stack(reader, line.stack, line.stack_length);
    size_t row = profile_sample(profile, node, 0, 0, 0);
    for (unsigned i = 0; i < reader->wanted; i++)
        profile_add_value(profile, row, reader->types[i], line.counts[i]);
    if (profile_full(profile))
        return error_set(error, -E2BIG, "There are too many stacks by line %llu.",
                         (unsigned long long)reader->line);
    return 0;
}

/* Whether each line has two counts, as in files that compare two profiles, can only be guessed:
 * it must hold for everything in sight. */
static int start_reader(struct folded_reader *reader, struct source *source, struct error *error)
{
    int r = source_need(source, FORMAT_SNIFF_BYTES, error);
    if (r < 0)
        return r;
    size_t length = MIN(source_available(source), (size_t)FORMAT_SNIFF_BYTES);
    struct sniffed seen;
    sniff((const char *)source_data(source), length, length < FORMAT_SNIFF_BYTES, &seen);
    bool two = seen.twice && seen.twice == seen.counted && seen.separators;
    reader->wanted = two ? 2 : 1;
    uint32_t unit = profile_cstring(reader->profile, "count");
    if (two)
        reader->types[0] =
            profile_type(reader->profile, profile_cstring(reader->profile, "base"), unit);
    reader->types[two] =
        profile_type(reader->profile, profile_cstring(reader->profile, "samples"), unit);
    if (reader->types[0] == PROFILE_TYPES_MAX || reader->types[two] == PROFILE_TYPES_MAX)
        return error_set(error, -E2BIG, "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    return 0;
}

static int folded_read(struct source *source, struct profile *profile, struct error *error)
{
    struct folded_reader reader = {.profile = profile};
    int r = start_reader(&reader, source, error);
    const char *text;
    size_t length;
    while (r >= 0 && (r = source_line(source, &text, &length, error)) > 0) {
        reader.line++;
        r = read_line(&reader, text, length, error);
    }
    free(reader.frames);
    if (r >= 0 && reader.skipped_count && !reader.read_count)
        return error_set(error, -EBADMSG,
                         "Line %llu does not end in a space and a count that fits in 64 bits, and "
                         "no other line does.",
                         (unsigned long long)reader.first_skipped_line);
    if (r >= 0) {
        source_note_skipped(source, reader.skipped_count, reader.first_skipped_line);
        profile_note_source(profile, 0, 0);
        if (source->warning[0])
            profile_add_comment(profile, profile_cstring(profile, source->warning));
    }
    return r;
}

/* ---- writing ---- */

struct folded_writer {
    struct buffer *out;
    const struct calltree *tree;
    const int64_t *self;
    struct buffer path; /* "a;b;c" of the current node */
    size_t *lengths;    /* of the path at each depth */
    size_t lengths_capacity;
};

/* Characters with a meaning in the format are replaced: a name cannot hold a separator or
 * newline. */
static void add_name(struct buffer *path, const struct calltree_function *function)
{
    bool first = !path->length;
    if (!first)
        buffer_add_char(path, ';');
    for (size_t i = 0; i < function->length; i++) {
        char c = function->name[i];
        if (c == ';' || (first && !i && c == '#'))
            c = ':';
        else if ((unsigned char)c < 0x20)
            c = ' ';
        buffer_add_char(path, c);
    }
}

static void write_line(struct folded_writer *writer, int64_t value)
{
    buffer_add(writer->out, writer->path.data, writer->path.length);
    buffer_add_char(writer->out, ' ');
    buffer_add_i64(writer->out, value);
    buffer_add_char(writer->out, '\n');
}

/* In the order of names, depth first; `pending` is a stack of nodes still to visit. False when the
 * output grows beyond its limit. */
static bool write_tree(struct folded_writer *writer)
{
    const struct calltree *tree = writer->tree;
    uint32_t *first, *children;
    calltree_children(tree, NULL, &first, &children);
    uint32_t *pending = memory_zalloc(tree->node_count, sizeof(*pending));
    uint32_t *depth = memory_zalloc(tree->node_count, sizeof(*depth));
    size_t count = 1;
    bool wanted = true;
    while (count && wanted && buffer_written(writer->out) < OUTPUT_BYTES_MAX &&
           writer->path.length < PATH_BYTES_MAX) {
        uint32_t node = pending[--count];
        if (node) {
            depth[node] = depth[tree->nodes[node].parent] + 1;
            array_reserve(writer->lengths, writer->lengths_capacity, depth[node] + 1u);
            writer->path.length = depth[node] > 1 ? writer->lengths[depth[node] - 1] : 0;
            add_name(&writer->path, &tree->functions[tree->nodes[node].function]);
            writer->lengths[depth[node]] = writer->path.length;
            if (writer->self[node])
                write_line(writer, writer->self[node]);
            wanted = buffer_pass(writer->out);
        }
        for (uint32_t i = first[node + 1]; i-- > first[node];)
            pending[count++] = children[i];
    }
    free(pending);
    free(depth);
    free(first);
    free(children);
    return !wanted || (!count && writer->path.length < PATH_BYTES_MAX);
}

static int folded_write(struct buffer *out, const struct profile *profile,
                        const struct write_options *options, struct error *error)
{
    if (!profile->type_count)
        return 0;
    _cleanup_calltree_ struct calltree tree;
    unsigned type;
    calltree_init(&tree);
    int r = picture_tree(&tree, profile, options, &type, error);
    if (r < 0)
        return r;
    struct folded_writer writer = {
        .out = out, .tree = &tree, .self = tree.types[type].self[CALLTREE_NEW]};
    if (writer.self[0]) {
        buffer_add_text(&writer.path, "[no stack]");
        write_line(&writer, writer.self[0]);
    }
    bool whole = write_tree(&writer);
    buffer_release(&writer.path);
    free(writer.lengths);
    if (!whole)
        return error_set(error, -E2BIG,
                         "The profile's stacks are too deep for folded text: a line would exceed "
                         "%u MiB, or all of them %u.",
                         PATH_BYTES_MAX >> 20, OUTPUT_BYTES_MAX >> 20);
    return 0;
}

const struct format format_folded = {
    .name = "folded",
    .text = true,
    .summary = "folded stacks as text, one stack and its count per line",
    .extensions = ".folded .collapsed .stacks",
    .detect = folded_detect,
    .read = folded_read,
    .write = folded_write,
};
