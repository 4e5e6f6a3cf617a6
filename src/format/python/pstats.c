// SPDX-License-Identifier: Apache-2.0
// Statistics of Python's cProfile: a dictionary as Python's marshal module writes it, of functions
// with their times and those of their callers. See docs/formats/pstats.md.

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "format/format.h"
#include "format/graph/graph.h"

#define FILE_BYTES_MAX ((size_t)1 << 30)
#define FLAG_REF 0x80

/* A value of the file, as far as such files have it. References are to earlier values. */
enum kind { KIND_OTHER, KIND_NUMBER, KIND_TEXT, KIND_TUPLE };

struct value {
    enum kind kind;
    double number;
    uint32_t text; /* string of the profile */
    /* A tuple of three is a function's name; others are only passed over. */
    uint32_t file, line, name;
    bool is_function;
};

struct pstats {
    const uint8_t *at, *end, *start;
    struct profile *profile;
    struct error *error;
    struct value *refs;
    size_t ref_count, ref_capacity;
    struct call_graph graph;
    struct {
        uint32_t file, name, line, node;
    } * functions;
    size_t function_count, function_capacity;
    struct id_table index;
    uint64_t seed;
};

static int bad(struct pstats *file, const char *problem)
{
    return error_set(file->error, -EBADMSG, "%s at offset %zu.", problem,
                     (size_t)(file->at - file->start));
}

static bool need(const struct pstats *file, size_t bytes)
{
    return (size_t)(file->end - file->at) >= bytes;
}

static uint32_t load_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static int read_text(struct pstats *file, size_t length, struct value *ret)
{
    if (!need(file, length))
        return bad(file, "A text is longer than the file");
    *ret = (struct value){.kind = KIND_TEXT,
                          .text = profile_string(file->profile, (const char *)file->at, length)};
    file->at += length;
    return 0;
}

/* Digits of 15 bits each; a negative count is a negative number. */
static int read_long(struct pstats *file, struct value *ret)
{
    if (!need(file, 4))
        return bad(file, "The file ends in a number");
    int32_t count = (int32_t)load_u32(file->at);
    uint32_t digits = count < 0 ? 0u - (uint32_t)count : (uint32_t)count;
    file->at += 4;
    if (digits > 1000 || !need(file, 2 * (size_t)digits))
        return bad(file, "The file ends in a number");
    *ret = (struct value){.kind = KIND_NUMBER};
    for (uint32_t i = digits; i-- > 0;)
        ret->number = ret->number * 32768 + (file->at[2 * i] | file->at[2 * i + 1] << 8);
    if (count < 0)
        ret->number = -ret->number;
    file->at += 2 * (size_t)digits;
    return 0;
}

static int read_simple(struct pstats *file, uint8_t type, struct value *ret);

/* Any value that isn't a dictionary; of tuples only those of three with a name at their end. */
static int read_value(struct pstats *file, struct value *ret)
{
    if (!need(file, 1))
        return bad(file, "The file ends before a value");
    uint8_t byte = *file->at++, type = byte & (uint8_t)~FLAG_REF;
    size_t slot = SIZE_MAX;
    if (byte & FLAG_REF) {
        slot = file->ref_count;
        array_reserve(file->refs, file->ref_capacity, file->ref_count + 1);
        file->refs[file->ref_count++] = (struct value){0};
    }
    *ret = (struct value){0};
    int r = 0;
    if (type == '(' || type == ')') {
        if (!need(file, type == '(' ? 4 : 1))
            return bad(file, "The file ends in a tuple");
        size_t count = type == '(' ? load_u32(file->at) : *file->at;
        file->at += type == '(' ? 4 : 1;
        if (count > 8)
            return bad(file, "A tuple is longer than those of cProfile");
        struct value parts[8] = {0};
        for (size_t i = 0; i < count && r == 0; i++) {
            if (need(file, 1) &&
                (*file->at == '{' || (*file->at & 0x7f) == '(' || (*file->at & 0x7f) == ')'))
                return bad(file, "A tuple has parts that those of cProfile don't have");
            r = read_value(file, &parts[i]);
        }
        ret->kind = KIND_TUPLE;
        ret->is_function = count == 3 && parts[0].kind == KIND_TEXT &&
                           parts[1].kind == KIND_NUMBER && parts[2].kind == KIND_TEXT;
        ret->file = parts[0].text;
        ret->line =
            parts[1].number > 0 && parts[1].number < UINT32_MAX ? (uint32_t)parts[1].number : 0;
        ret->name = parts[2].text;
    } else {
        r = read_simple(file, type, ret);
    }
    if (r == 0 && slot != SIZE_MAX)
        file->refs[slot] = *ret;
    return r;
}

static int read_simple(struct pstats *file, uint8_t type, struct value *ret)
{
    uint32_t index;
    switch (type) {
    case 'i':
        if (!need(file, 4))
            return bad(file, "The file ends in a number");
        *ret = (struct value){.kind = KIND_NUMBER, .number = (int32_t)load_u32(file->at)};
        file->at += 4;
        return 0;
    case 'g':
        if (!need(file, 8))
            return bad(file, "The file ends in a number");
        ret->kind = KIND_NUMBER;
        memcpy(&ret->number, file->at, 8);
        if (!isfinite(ret->number))
            ret->number = 0;
        file->at += 8;
        return 0;
    case 'l':
        return read_long(file, ret);
    case 'z':
    case 'Z':
        if (!need(file, 1))
            return bad(file, "The file ends in a text");
        return file->at++, read_text(file, file->at[-1], ret);
    case 'u':
    case 't':
    case 's':
    case 'a':
    case 'A':
        if (!need(file, 4))
            return bad(file, "The file ends in a text");
        return file->at += 4, read_text(file, load_u32(file->at - 4), ret);
    case 'r':
        if (!need(file, 4))
            return bad(file, "The file ends in a reference");
        index = load_u32(file->at);
        file->at += 4;
        if (index >= file->ref_count)
            return bad(file, "A reference leads nowhere");
        *ret = file->refs[index];
        return 0;
    case 'N':
    case 'T':
    case 'F':
        return 0;
    default:
        return file->at--, bad(file, "A value has a type that cProfile doesn't write");
    }
}

/* ---- functions ---- */

static uint32_t function_of(struct pstats *file, const struct value *value)
{
    uint64_t hash =
        hash_word(value->name ^ file->seed ^ hash_word((uint64_t)value->file << 32 | value->line));
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&file->index, &probe)) != ID_NONE)
        if (file->functions[found].name == value->name &&
            file->functions[found].file == value->file &&
            file->functions[found].line == value->line)
            return file->functions[found].node;
    struct profile *profile = file->profile;
    /* Built-in functions have no file: cProfile calls it "~". */
    bool builtin = !strcmp(profile_text(profile, value->file), "~");
    struct profile_function function = {
        .name = value->name, .file = builtin ? 0 : value->file, .start_line = value->line};
    struct profile_frame frame = {.function = profile_function(profile, &function),
                                  .kind = FRAME_CPYTHON};
    array_reserve(file->functions, file->function_capacity, file->function_count + 1);
    found = (uint32_t)file->function_count++;
    file->functions[found].name = value->name;
    file->functions[found].file = value->file;
    file->functions[found].line = value->line;
    file->functions[found].node = call_graph_function(&file->graph, &frame);
    id_table_insert(&file->index, hash, found);
    return file->functions[found].node;
}

/* The nearest integer; a file may have any number. */
static int64_t whole(double number)
{
    return number < 0 ? 0 : number > 9e18 ? INT64_MAX : llround(number);
}

static int64_t nanoseconds(const struct value *value)
{
    return whole(value->kind == KIND_NUMBER ? value->number * 1e9 : 0);
}

/* The four numbers of a function or of a caller: calls, all of them, own time, time with callees.
 */
static int read_numbers(struct pstats *file, struct value numbers[4])
{
    for (unsigned i = 0; i < 4; i++) {
        int r = read_value(file, &numbers[i]);
        if (r < 0)
            return r;
        if (numbers[i].kind != KIND_NUMBER)
            return bad(file, "A statistic is not a number");
    }
    return 0;
}

static int open_tuple(struct pstats *file, unsigned expected, bool *ret_reference)
{
    if (!need(file, 2))
        return bad(file, "The file ends before a tuple");
    uint8_t type = *file->at & (uint8_t)~FLAG_REF;
    *ret_reference = type == 'r';
    if (type == 'r')
        return 0;
    if (*file->at & FLAG_REF) {
        array_reserve(file->refs, file->ref_capacity, file->ref_count + 1);
        file->refs[file->ref_count++] = (struct value){.kind = KIND_TUPLE};
    }
    size_t head = type == '(' ? 5 : 2;
    if ((type != '(' && type != ')') || !need(file, head) ||
        (type == '(' ? load_u32(file->at + 1) : file->at[1]) != expected)
        return bad(file, "Not a tuple of cProfile's statistics");
    file->at += head;
    return 0;
}

static int open_dictionary(struct pstats *file)
{
    if (!need(file, 1) || (*file->at & 0x7f) != '{')
        return bad(file, "Not a dictionary");
    if (*file->at & FLAG_REF) {
        array_reserve(file->refs, file->ref_capacity, file->ref_count + 1);
        file->refs[file->ref_count++] = (struct value){0};
    }
    file->at++;
    return 0;
}

/* 1, or 0 at the dictionary's end. */
static int next_function(struct pstats *file, uint32_t *ret_node)
{
    struct value key;
    if (need(file, 1) && *file->at == '0') {
        file->at++;
        return 0;
    }
    int r = read_value(file, &key);
    if (r < 0)
        return r;
    if (!key.is_function)
        return bad(file, "A key is not a function");
    if (profile_full(file->profile))
        return error_set(file->error, -E2BIG,
                         "The file has more functions than a profile can hold.");
    *ret_node = function_of(file, &key);
    return 1;
}

static int read_callers(struct pstats *file, uint32_t callee)
{
    int r = open_dictionary(file);
    uint32_t caller = 0;
    while (r >= 0 && (r = next_function(file, &caller)) > 0) {
        struct value numbers[4] = {0};
        bool reference;
        r = open_tuple(file, 4, &reference);
        if (r == 0 && reference)
            return bad(file, "Statistics are a reference");
        if (r == 0)
            r = read_numbers(file, numbers);
        if (r == 0)
            call_graph_add_call(&file->graph, caller, callee, nanoseconds(&numbers[3]));
    }
    return r;
}

static int read_statistics(struct pstats *file)
{
    uint32_t function = 0;
    int r = open_dictionary(file);
    while (r >= 0 && (r = next_function(file, &function)) > 0) {
        struct value numbers[4] = {0};
        bool reference;
        r = open_tuple(file, 5, &reference);
        if (r == 0 && reference)
            return bad(file, "Statistics are a reference");
        if (r == 0)
            r = read_numbers(file, numbers);
        if (r == 0) {
            int64_t values[2] = {nanoseconds(&numbers[2]), whole(numbers[1].number)};
            call_graph_add_self(&file->graph, function, 0, values);
            r = read_callers(file, function);
        }
    }
    return r;
}

static void pstats_release(struct pstats *file)
{
    free(file->refs);
    free(file->functions);
    id_table_release(&file->index);
    call_graph_release(&file->graph);
}

static int pstats_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(pstats_release) struct pstats file = {.profile = profile, .error = error};
    int r = source_need_all(source, FILE_BYTES_MAX, error);
    if (r < 0)
        return r;
    file.start = file.at = source_data(source);
    file.end = file.start + source_available(source);
    file.graph.width = 2;
    if (getrandom(&file.seed, sizeof(file.seed), GRND_NONBLOCK) < 0)
        file.seed = 0;
    r = read_statistics(&file);
    if (r < 0)
        return r;
    uint32_t wall = profile_cstring(profile, "wall");
    unsigned types[] = {profile_type(profile, wall, profile_cstring(profile, "nanoseconds")),
                        profile_type(profile, profile_cstring(profile, "calls"),
                                     profile_cstring(profile, "count"))};
    if (types[0] == PROFILE_TYPES_MAX || types[1] == PROFILE_TYPES_MAX)
        return error_set(error, -E2BIG, "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    if (!profile->default_type)
        profile->default_type = wall;
    r = call_graph_resolve(&file.graph, profile, types, error);
    if (r == 0)
        profile_note_source(profile, 0, 0);
    return r;
}

/* A dictionary whose first key is a tuple of three that begins with a text. */
static int pstats_detect(const uint8_t *bytes, size_t length)
{
    if (length < 8 || (bytes[0] & 0x7f) != '{')
        return 0;
    bool small = (bytes[1] & 0x7f) == ')' && bytes[2] == 3;
    bool large = (bytes[1] & 0x7f) == '(' && load_u32(bytes + 2) == 3;
    if (!small && !large)
        return 0;
    return memchr("zZutaAs", bytes[small ? 3 : 6] & 0x7f, 7) ? FORMAT_CERTAIN : 0;
}

const struct format format_pstats = {
    .name = "pstats",
    .summary = "statistics of Python's cProfile",
    .extensions = "",
    .detect = pstats_detect,
    .read = pstats_read,
};
