// SPDX-License-Identifier: Apache-2.0
// Callgrind's output (also cachegrind's and other tools' in the same format): costs of lines, and
// of calls. See docs/formats/callgrind.md.

#include <stdlib.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/format.h"
#include "format/graph/graph.h"

#define NAME_IDS_MAX (1u << 24)
#define NAME_IDS_SPARSE (1u << 20)
#define POSITIONS_MAX 4

enum name_kind { NAME_FUNCTION, NAME_FILE, NAME_OBJECT, NAME_KINDS };

/* "(12) name" gives the name of a number, "(12)" uses it. */
struct names {
    uint32_t *strings; /* of the profile, by number */
    size_t count, capacity;
};

struct known_function {
    uint32_t name, file, object; /* strings */
    uint32_t node;               /* of the graph */
};

struct callgrind {
    struct source *source;
    struct profile *profile;
    struct error *error;
    uint64_t line;
    struct names names[NAME_KINDS];
    struct call_graph graph;
    struct known_function *functions;
    size_t function_count, function_capacity;
    struct id_table function_index;
    uint64_t seed;
    uint32_t events[GRAPH_VALUES_MAX]; /* strings */
    unsigned event_count;
    unsigned positions;     /* columns before the costs: 1, or 2 with instructions */
    unsigned line_position; /* which of them is the line */
    uint64_t last[POSITIONS_MAX];
    uint32_t file;                                        /* the last that was named */
    uint32_t function_file, function, object;             /* where costs belong */
    uint32_t called_file, called_function, called_object; /* 0: as the caller's */
    uint32_t current; /* node of the graph; UINT32_MAX: not known yet */
    bool in_call;     /* the next line of costs is of a call */
};

static void callgrind_release(struct callgrind *file)
{
    for (unsigned i = 0; i < NAME_KINDS; i++)
        free(file->names[i].strings);
    call_graph_release(&file->graph);
    free(file->functions);
    id_table_release(&file->function_index);
}

static int fail_at(struct callgrind *file, const char *problem)
{
    return error_set(file->error, -EBADMSG, "%s in line %llu.", problem,
                     (unsigned long long)file->line);
}

/* ---- names ---- */

static int take_name(struct callgrind *file, enum name_kind kind, const char *text, size_t length,
                     uint32_t *ret_string)
{
    struct names *names = &file->names[kind];
    const char *close = length && *text == '(' ? memchr(text, ')', length) : NULL;
    uint64_t number;
    if (!close || !text_to_u64(text + 1, (size_t)(close - text) - 1, &number)) {
        *ret_string = profile_string(file->profile, text, length);
        return 0;
    }
    const char *name = close + 1, *end = text + length;
    while (name < end && *name == ' ')
        name++;
    /* Valgrind also numbers what it leaves out, but a huge number in a small file is an error. */
    if (number >= NAME_IDS_MAX ||
        (name < end && number > NAME_IDS_SPARSE + source_offset(file->source)))
        return fail_at(file, "A name has an invalid number");
    if (name < end) {
        array_reserve(names->strings, names->capacity, number + 1);
        while (names->count <= number)
            names->strings[names->count++] = 0;
        names->strings[number] = profile_string(file->profile, name, (size_t)(end - name));
    }
    if (number < names->count && names->strings[number])
        *ret_string = names->strings[number];
    else /* defined in a part that is not here: its number tells a function from others */
        *ret_string = kind == NAME_FUNCTION
                          ? profile_string(file->profile, text, (size_t)(close + 1 - text))
                          : 0;
    return 0;
}

/* The graph's function. */
static uint32_t function_node(struct callgrind *file, uint32_t name, uint32_t path, uint32_t object)
{
    uint64_t hash = hash_word(name ^ file->seed ^ hash_word((uint64_t)path << 32 | object));
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&file->function_index, &probe)) != ID_NONE) {
        const struct known_function *known = &file->functions[found];
        if (known->name == name && known->file == path && known->object == object)
            return known->node;
    }
    struct profile *profile = file->profile;
    struct profile_function function = {.name = name, .file = path};
    struct profile_frame frame = {.function = profile_function(profile, &function)};
    if (object)
        frame.mapping = profile_mapping(profile, &(struct profile_mapping){.file = object});
    struct known_function known = {name, path, object, call_graph_function(&file->graph, &frame)};
    array_reserve(file->functions, file->function_capacity, file->function_count + 1);
    id_table_insert(&file->function_index, hash, (uint32_t)file->function_count);
    file->functions[file->function_count++] = known;
    return known.node;
}

/* ---- lines ---- */

static bool next_word(const char **at, const char *end, const char **ret_word, size_t *ret_length)
{
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
    *ret_word = *at;
    while (*at < end && **at != ' ' && **at != '\t')
        ++*at;
    *ret_length = (size_t)(*at - *ret_word);
    return *ret_length > 0;
}

static bool number_of(const char *text, size_t length, uint64_t *ret_value)
{
    if (length > 2 && length <= 18 && text[0] == '0' && text[1] == 'x') {
        uint64_t value = 0;
        for (size_t i = 2; i < length; i++) {
            const char *digits = "0123456789abcdef";
            const char *digit = memchr(digits, text[i] | 0x20, 16);
            if (!digit)
                return false;
            value = value << 4 | (uint64_t)(digit - digits);
        }
        *ret_value = value;
        return true;
    }
    return text_to_u64(text, length, ret_value);
}

/* A column of a position: a number, a difference to the last one, or "*", the same. */
static bool take_position(struct callgrind *file, unsigned column, const char *word, size_t length)
{
    uint64_t value;
    if (length == 1 && *word == '*')
        return true;
    char sign = *word;
    if (sign == '+' || sign == '-')
        word++, length--;
    if (!number_of(word, length, &value))
        return false;
    file->last[column] = sign == '+'   ? file->last[column] + value
                         : sign == '-' ? file->last[column] - value
                                       : value;
    return true;
}

static int take_costs(struct callgrind *file, const char *line, size_t length)
{
    const char *at = line, *end = line + length, *word;
    size_t word_length;
    int64_t values[GRAPH_VALUES_MAX] = {0};
    for (unsigned i = 0; i < file->positions; i++)
        if (!next_word(&at, end, &word, &word_length) || !take_position(file, i, word, word_length))
            return fail_at(file, "Malformed position");
    for (unsigned i = 0; next_word(&at, end, &word, &word_length); i++) {
        uint64_t value;
        if (!number_of(word, word_length, &value))
            return fail_at(file, "Malformed cost");
        if (i < file->event_count)
            values[i] = (int64_t)MIN(value, (uint64_t)INT64_MAX);
    }
    if (file->current == UINT32_MAX)
        file->current = function_node(file, file->function, file->function_file, file->object);
    uint64_t row = file->last[file->line_position];
    if (file->in_call) {
        file->in_call = false;
        uint32_t callee = function_node(file, file->called_function,
                                        file->called_file ? file->called_file : file->file,
                                        file->called_object ? file->called_object : file->object);
        file->called_file = file->called_object = file->called_function = 0;
        call_graph_add_call(&file->graph, file->current, callee, values[0]);
    } else {
        call_graph_add_self(
            &file->graph, file->current,
            file->profile->detail & PROFILE_LINES && row < UINT32_MAX ? (uint32_t)row : 0, values);
    }
    return 0;
}

static int take_events(struct callgrind *file, const char *text, size_t length)
{
    const char *at = text, *end = text + length, *word;
    size_t word_length;
    if (file->event_count) /* a part of another run: the same events follow */
        return 0;
    while (next_word(&at, end, &word, &word_length) && file->event_count < GRAPH_VALUES_MAX)
        file->events[file->event_count++] = profile_string(file->profile, word, word_length);
    file->graph.width = file->event_count;
    return file->event_count ? 0 : fail_at(file, "There are no events");
}

static int take_positions(struct callgrind *file, const char *text, size_t length)
{
    const char *at = text, *end = text + length, *word;
    size_t word_length;
    file->positions = 0;
    file->line_position = 0;
    while (next_word(&at, end, &word, &word_length)) {
        if (file->positions == POSITIONS_MAX)
            return fail_at(file, "There are too many positions");
        if (word_length == 4 && !memcmp(word, "line", 4))
            file->line_position = file->positions;
        file->positions++;
    }
    return file->positions ? 0 : fail_at(file, "There are no positions");
}

static bool begins(const char **at, const char *end, const char *prefix)
{
    size_t length = strlen(prefix);
    if ((size_t)(end - *at) < length || memcmp(*at, prefix, length))
        return false;
    *at += length;
    return true;
}

static int take_line(struct callgrind *file, const char *line, size_t length)
{
    const char *at = line, *end = line + length;
    int r;
#define REST at, (size_t)(end - at)
    if (!length || *line == '#')
        return 0;
    if ((*line >= '0' && *line <= '9') || *line == '+' || *line == '-' || *line == '*')
        return file->event_count ? take_costs(file, line, length)
                                 : fail_at(file, "Costs come before the line of events");
    if (begins(&at, end, "fn=")) {
        r = take_name(file, NAME_FUNCTION, REST, &file->function);
        file->function_file = file->file;
        file->current = UINT32_MAX;
        return r;
    }
    if (begins(&at, end, "cfn="))
        return take_name(file, NAME_FUNCTION, REST, &file->called_function);
    /* The latter two are of inlined code, whose costs stay with the function. */
    if (begins(&at, end, "fl=") || begins(&at, end, "fi=") || begins(&at, end, "fe="))
        return take_name(file, NAME_FILE, REST, &file->file);
    if (begins(&at, end, "cfi=") || begins(&at, end, "cfl="))
        return take_name(file, NAME_FILE, REST, &file->called_file);
    if (begins(&at, end, "cob="))
        return take_name(file, NAME_OBJECT, REST, &file->called_object);
    if (begins(&at, end, "ob=")) {
        file->current = UINT32_MAX;
        return take_name(file, NAME_OBJECT, REST, &file->object);
    }
    if (begins(&at, end, "calls=")) {
        file->in_call = true;
        return 0;
    }
    if (begins(&at, end, "events:"))
        return take_events(file, REST);
    if (begins(&at, end, "positions:"))
        return take_positions(file, REST);
#undef REST
    return 0; /* headers, totals, jumps */
}

static int add_types(struct callgrind *file, unsigned types[GRAPH_VALUES_MAX])
{
    struct profile *profile = file->profile;
    for (unsigned i = 0; i < file->event_count; i++) {
        types[i] = profile_type(profile, file->events[i], profile_cstring(profile, "count"));
        if (types[i] == PROFILE_TYPES_MAX)
            return error_set(file->error, -E2BIG,
                             "Together the profiles have more than %d sample types.",
                             PROFILE_TYPES_MAX);
    }
    if (!profile->default_type)
        profile->default_type = file->events[0];
    return 0;
}

static int callgrind_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(callgrind_release) struct callgrind file = {.source = source,
                                                          .profile = profile,
                                                          .error = error,
                                                          .positions = 1,
                                                          .current = UINT32_MAX};
    const char *line;
    size_t length;
    int r;
    if (getrandom(&file.seed, sizeof(file.seed), GRND_NONBLOCK) < 0)
        file.seed = 0;
    while ((r = source_line(source, &line, &length, error)) > 0) {
        file.line++;
        r = take_line(&file, line, length);
        if (r < 0)
            return r;
        if (profile_full(profile) || file.graph.function_count > PROFILE_IDS_MAX / 2)
            return fail_at(&file, "There are more functions than a profile can hold");
    }
    if (r < 0)
        return r;
    if (!file.event_count)
        return error_set(error, -EBADMSG, "The file has no line of events.");
    unsigned types[GRAPH_VALUES_MAX];
    r = add_types(&file, types);
    if (r == 0)
        r = call_graph_resolve(&file.graph, profile, types, error);
    if (r == 0)
        profile_note_source(profile, 0, 0);
    return r;
}

static bool has_line(const char *bytes, size_t length, const char *prefix)
{
    size_t words = strlen(prefix);
    for (const char *at = bytes; at;) {
        size_t left = length - (size_t)(at - bytes);
        if (left >= words && !memcmp(at, prefix, words))
            return true;
        at = memchr(at, '\n', left);
        at = at && (size_t)(at + 1 - bytes) < length ? at + 1 : NULL;
    }
    return false;
}

static int callgrind_detect(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes;
    if (has_line(text, length, "# callgrind format"))
        return FORMAT_CERTAIN;
    if (!has_line(text, length, "events:"))
        return 0;
    return has_line(text, length, "fn=") || has_line(text, length, "creator: callgrind") ||
                   has_line(text, length, "positions:")
               ? FORMAT_CERTAIN
               : 0;
}

const struct format format_callgrind = {
    .name = "callgrind",
    .text = true,
    .summary = "callgrind.out of Valgrind and tools that write the same",
    .extensions = "",
    .detect = callgrind_detect,
    .read = callgrind_read,
};
