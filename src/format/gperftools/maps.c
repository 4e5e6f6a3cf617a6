// SPDX-License-Identifier: Apache-2.0
// The memory maps at the end of gperftools profiles. They are understood as `pprof` does, including
// its repairs of what some profile handlers get wrong. See gperftools.h.

#include <ctype.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "format/gperftools/gperftools.h"

struct text {
    const char *at;
    const char *end;
};

static void skip_space(struct text *text)
{
    while (text->at < text->end && isspace((unsigned char)*text->at))
        text->at++;
}

static bool take_hex(struct text *text, uint64_t *ret_value)
{
    const char *at = text->at;
    if (text->end - at > 2 && at[0] == '0' && at[1] == 'x')
        at += 2;
    const char *digits = at;
    uint64_t value = 0;
    for (; at < text->end && hex_digit(*at) >= 0; at++)
        value = value << 4 | (uint64_t)hex_digit(*at);
    if (at == digits || at - digits > 16)
        return false;
    text->at = at;
    *ret_value = value;
    return true;
}

/* The next word; empty at the end. */
static struct text take_word(struct text *text)
{
    skip_space(text);
    struct text word = {.at = text->at};
    while (text->at < text->end && !isspace((unsigned char)*text->at))
        text->at++;
    word.end = text->at;
    return word;
}

static bool is_made_of(struct text word, const char *characters)
{
    if (word.at == word.end)
        return false;
    for (const char *at = word.at; at < word.end; at++)
        if (!*at || !strchr(characters, *at))
            return false;
    return true;
}

static bool is_hex(struct text word)
{
    return is_made_of(word, "0123456789abcdefABCDEF");
}

static bool is_device(struct text word)
{
    const char *colon = memchr(word.at, ':', (size_t)(word.end - word.at));
    return colon && is_hex((struct text){word.at, colon}) &&
           is_hex((struct text){colon + 1, word.end});
}

/* `$build` at the start of a file name stands for what a line `build=...` said. */
static const char *file_name(struct gperftools *reader, struct text name)
{
    static const char deleted[] = " (deleted)";
    size_t length = (size_t)(name.end - name.at);
    while (length && isspace((unsigned char)name.at[length - 1]))
        length--;
    if (length > strlen(deleted) &&
        !memcmp(name.at + length - strlen(deleted), deleted, strlen(deleted)))
        length -= strlen(deleted);
    for (size_t i = 0; length && *name.at == '$' && i < reader->variable_count; i++) {
        size_t known = strlen(reader->variables[i].name);
        if (length - 1 == known && !memcmp(name.at + 1, reader->variables[i].name, known))
            return reader->variables[i].value;
    }
    return arena_strndup(&reader->text, name.at, length);
}

static void add_variable(struct gperftools *reader, struct text line)
{
    const char *equals = memchr(line.at, '=', (size_t)(line.end - line.at));
    if (!equals || reader->variable_count == GPERFTOOLS_VARIABLES_MAX)
        return;
    struct text value = {equals + 1, line.end};
    skip_space(&value);
    while (value.end > value.at && isspace((unsigned char)value.end[-1]))
        value.end--;
    struct text name = {line.at, equals};
    name = take_word(&name);
    size_t index = reader->variable_count++;
    reader->variables[index].name =
        arena_strndup(&reader->text, name.at, (size_t)(name.end - name.at));
    reader->variables[index].value =
        arena_strndup(&reader->text, value.at, (size_t)(value.end - value.at));
}

/* The part after the addresses, in the format of /proc/self/maps: [permissions] [offset] device
 * inode [file]. False when it is not of that format. */
static bool parse_proc_tail(struct gperftools *reader, struct text rest, struct gperftools_map *map)
{
    struct text word = take_word(&rest);
    if (!is_device(word)) {
        struct text offset = word;
        word = take_word(&rest);
        if (!is_hex(offset) || !is_device(word) || !take_hex(&offset, &map->offset))
            return false;
    }
    if (!is_made_of(take_word(&rest), "0123456789"))
        return false;
    skip_space(&rest);
    map->file = file_name(reader, rest);
    return true;
}

/* The short format: [permissions] [file] [(@offset)] [build ID]. */
static void parse_brief_tail(struct gperftools *reader, struct text rest,
                             struct gperftools_map *map)
{
    map->file = file_name(reader, take_word(&rest));
    struct text before = rest, word = take_word(&rest);
    if (word.end - word.at > 3 && word.at[0] == '(' && word.at[1] == '@' && word.end[-1] == ')') {
        struct text offset = {word.at + 2, word.end - 1};
        take_hex(&offset, &map->offset);
    } else {
        rest = before;
    }
    word = take_word(&rest);
    if (is_hex(word))
        map->build_id = arena_strndup(&reader->text, word.at, (size_t)(word.end - word.at));
}

/* Log lines may have a prefix "file:line] ". */
static void skip_log_prefix(struct text *line)
{
    for (const char *at = line->at; at < line->end && *at != '['; at++) {
        if (*at != ']')
            continue;
        const char *digits = at;
        while (digits > line->at && isdigit((unsigned char)digits[-1]))
            digits--;
        if (digits < at && digits - line->at > 1 && digits[-1] == ':' && at + 1 < line->end &&
            isspace((unsigned char)at[1]))
            line->at = at + 2;
        return;
    }
}

/* False when the line is no mapping. */
static bool parse_map(struct gperftools *reader, struct text line)
{
    struct gperftools_map map = {.file = "", .build_id = ""};
    skip_space(&line);
    if (!take_hex(&line, &map.start))
        return false;
    const char *separator = line.at;
    if (line.at < line.end && *line.at == '-')
        line.at++;
    skip_space(&line);
    if (line.at == separator || !take_hex(&line, &map.limit))
        return false;
    if (line.at < line.end && *line.at == ':')
        line.at++;
    if (line.at < line.end && !isspace((unsigned char)*line.at))
        return false;
    struct text rest = line, permissions = take_word(&rest);
    if (is_made_of(permissions, "-rwxps")) {
        if (!memchr(permissions.at, 'x', (size_t)(permissions.end - permissions.at)))
            return true; /* nothing runs there */
        line = rest;
    }
    if (!parse_proc_tail(reader, line, &map))
        parse_brief_tail(reader, line, &map);
    if (map.start >= map.limit)
        return true;
    array_reserve(reader->maps, reader->map_capacity, reader->map_count + 1);
    reader->maps[reader->map_count++] = map;
    return true;
}

/* One mapping may have been split in two, by a page whose protection was changed, for instance. */
static bool is_continued(const struct gperftools_map *first, const struct gperftools_map *second)
{
    if (first->limit != second->start)
        return false;
    if (*first->file && *second->file && strcmp(first->file, second->file))
        return false;
    if (*first->build_id && *second->build_id && strcmp(first->build_id, second->build_id))
        return false;
    return !first->offset || !second->offset ||
           first->offset + (first->limit - first->start) == second->offset;
}

static void join_maps(struct gperftools *reader)
{
    size_t kept = 0;
    for (size_t i = 0; i < reader->map_count; i++) {
        const struct gperftools_map *map = &reader->maps[i];
        struct gperftools_map *last = kept ? &reader->maps[kept - 1] : NULL;
        if (!last || !is_continued(last, map)) {
            reader->maps[kept++] = *map;
            continue;
        }
        last->limit = map->limit;
        if (*map->file)
            last->file = map->file;
        if (*map->build_id)
            last->build_id = map->build_id;
    }
    reader->map_count = kept;
}

/* ".so" at the end, or followed by a version. */
static bool is_library(const char *file)
{
    for (const char *at = file; (at = strstr(at, ".so")); at += 3)
        if (!at[3] || ((at[3] == '.' || at[3] == '_') && isdigit((unsigned char)at[4])))
            return true;
    return false;
}

/* The program itself comes first: profiles are named after their first mapping. */
static void put_main_first(struct gperftools *reader)
{
    struct gperftools_map *maps = reader->maps;
    for (size_t i = 0; i < reader->map_count; i++) {
        if (!*maps[i].file || *maps[i].file == '[' || is_library(maps[i].file))
            continue;
        struct gperftools_map main = maps[i];
        maps[i] = maps[0];
        maps[0] = main;
        break;
    }
    if (reader->map_count > 1 && !strncmp(maps[0].file, "/anon_hugepage", 14) &&
        maps[0].limit == maps[1].start)
        memmove(maps, maps + 1, --reader->map_count * sizeof(*maps));
    /* Text that was moved to huge pages loses the start of its mapping. */
    if (reader->map_count && maps[0].start - maps[0].offset == 0x400000) {
        maps[0].start = 0x400000;
        maps[0].offset = 0;
    }
}

int gperftools_read_maps(struct gperftools *reader, struct source *source, struct error *error)
{
    const char *line;
    size_t length;
    int r;
    while ((r = source_line(source, &line, &length, error)) > 0) {
        reader->line++;
        struct text text = {line, line + length};
        skip_log_prefix(&text);
        if (!parse_map(reader, text))
            add_variable(reader, text);
    }
    if (r < 0)
        return r;
    join_maps(reader);
    put_main_first(reader);
    return 0;
}

static int compare_starts(const void *a, const void *b)
{
    const struct gperftools_map *x = *(struct gperftools_map *const *)a;
    const struct gperftools_map *y = *(struct gperftools_map *const *)b;
    return x->start < y->start ? -1 : x->start > y->start;
}

struct gperftools_map **gperftools_sort_maps(const struct gperftools *reader)
{
    struct gperftools_map **sorted = memory_zalloc(reader->map_count, sizeof(*sorted));
    for (size_t i = 0; i < reader->map_count; i++)
        sorted[i] = &reader->maps[i];
    if (reader->map_count)
        qsort(sorted, reader->map_count, sizeof(*sorted), compare_starts);
    return sorted;
}

/* Some profile handlers leave out the first part of a mapping that is split: an address before the
 * start but not before the file's belongs to it, too. */
struct gperftools_map *gperftools_find_map(struct gperftools_map **sorted, size_t count,
                                           uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sorted[middle]->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low && address < sorted[low - 1]->limit)
        return sorted[low - 1];
    if (low < count && sorted[low]->offset && sorted[low]->offset <= sorted[low]->start &&
        sorted[low]->start - sorted[low]->offset <= address) {
        sorted[low]->extended = true;
        return sorted[low];
    }
    return NULL;
}
