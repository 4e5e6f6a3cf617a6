// SPDX-License-Identifier: Apache-2.0
// Reads JavaScript source maps, version 3: JSON with a string of numbers in base 64 that says which
// place of the generated file comes from where, or a list of sections with such maps in them.

#include <string.h>

#include "base/memory.h"
#include "io/base64.h"
#include "io/json.h"
#include "symbol/maps/build.h"

#define SECTIONS_MAX (1u << 20)

/* One map, until all of its keys were seen: they may come in any order. */
struct sourcemap {
    struct symbol_map_builder *builder;
    struct json *json;
    struct buffer root, mappings;
    uint32_t *sources, *names; /* texts */
    size_t source_count, source_capacity, name_count, name_capacity;
    struct buffer paths; /* of sources, before the root is known: each ends with a 0 */
    bool has_mappings, has_sections;
};

static void sourcemap_release(struct sourcemap *map)
{
    buffer_release(&map->root);
    buffer_release(&map->mappings);
    buffer_release(&map->paths);
    free(map->sources);
    free(map->names);
}

/* ---- numbers ---- */

/* The next number, of 32 bits with its sign; false at the end. */
static bool take_number(const char **at, const char *end, int64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && shift <= 30; shift += 5) {
        int digit = base64_digit(**at);
        if (digit < 0)
            return false;
        (*at)++;
        value |= (uint64_t)(digit & 31) << shift;
        if (!(digit & 32)) {
            *ret_value = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
            return true;
        }
    }
    return false;
}

/* The values to which numbers in a string of mappings are relative. */
struct decoding {
    int64_t column, source, line, source_column, name;
};

static bool in_range(int64_t value, uint64_t limit)
{
    return value >= 0 && (uint64_t)value < limit;
}

/* One, four or five numbers. */
static bool read_segment(const struct sourcemap *map, const char **at, const char *end,
                         struct decoding *from, struct symbol_map_segment *ret_segment)
{
    int64_t *const fields[] = {&from->column, &from->source, &from->line, &from->source_column,
                               &from->name};
    size_t count = 0;
    while (count < ARRAY_LENGTH(fields) && *at < end && **at != ',' && **at != ';') {
        int64_t value;
        if (!take_number(at, end, &value))
            return false;
        *fields[count++] += value;
    }
    if ((count != 1 && count != 4 && count != 5) || !in_range(from->column, INT32_MAX))
        return false;
    *ret_segment = (struct symbol_map_segment){.column = (uint32_t)from->column};
    if (count == 1)
        return true;
    if (!in_range(from->source, map->source_count) || !in_range(from->line, INT32_MAX) ||
        !in_range(from->source_column, INT32_MAX) ||
        (count == 5 && !in_range(from->name, map->name_count)))
        return false;
    ret_segment->source = map->sources[from->source];
    ret_segment->source_line = (uint32_t)from->line + 1;
    ret_segment->source_column = (uint32_t)from->source_column + 1;
    ret_segment->name = count == 5 ? map->names[from->name] : 0;
    return true;
}

/* The place of a section in the generated file moves all of its lines, and its first line's
 * columns. */
static int decode(struct sourcemap *map, uint64_t first_line, uint64_t first_column)
{
    struct symbol_map_builder *builder = map->builder;
    const char *at = buffer_text(&map->mappings), *end = at + map->mappings.length;
    struct decoding from = {0};
    uint64_t line = first_line;
    while (at < end) {
        if (*at == ';' || *at == ',') {
            line += *at == ';';
            from.column = *at == ';' ? 0 : from.column;
            at++;
            continue;
        }
        struct symbol_map_segment segment;
        if (!read_segment(map, &at, end, &from, &segment) || (at < end && *at != ',' && *at != ';'))
            return json_fail(map->json,
                             "The character %zu of \"mappings\" is not in a valid segment",
                             (size_t)(at - map->mappings.data) + 1);
        if (line == first_line)
            segment.column += (uint32_t)first_column;
        if (line >= SYMBOL_MAP_LINES_MAX || builder->place_count == SYMBOL_MAP_SEGMENTS_MAX)
            return error_set(map->json->error, -E2BIG,
                             "The source map has more than %u lines or %u segments.",
                             SYMBOL_MAP_LINES_MAX, SYMBOL_MAP_SEGMENTS_MAX);
        array_reserve(builder->places, builder->place_capacity, builder->place_count + 1);
        builder->places[builder->place_count++] =
            (struct symbol_map_place){.line = (uint32_t)line, .segment = segment};
    }
    return 0;
}

/* ---- keys ---- */

static int read_text(struct json *json, struct buffer *text)
{
    struct json_string string;
    text->length = 0;
    if (json_kind(json) != JSON_STRING)
        return json_skip(json);
    int r = json_string(json, &string);
    if (r >= 0)
        buffer_add(text, string.data, string.length);
    return r;
}

static int read_names(struct sourcemap *map)
{
    struct json_string text;
    int r = json_array(map->json);
    while (r >= 0 && (r = json_next_element(map->json)) > 0) {
        bool is_text = json_kind(map->json) == JSON_STRING;
        r = is_text ? json_string(map->json, &text) : json_skip(map->json);
        if (r < 0)
            break;
        array_reserve(map->names, map->name_capacity, map->name_count + 1);
        map->names[map->name_count++] =
            is_text ? symbol_map_intern(map->builder, text.data, text.length) : 0;
    }
    return r;
}

/* A source may be null: the origin of that code is unknown. */
static int read_sources(struct sourcemap *map)
{
    struct json_string text;
    int r = json_array(map->json);
    while (r >= 0 && (r = json_next_element(map->json)) > 0) {
        bool is_text = json_kind(map->json) == JSON_STRING;
        r = is_text ? json_string(map->json, &text) : json_skip(map->json);
        if (r < 0)
            break;
        if (is_text)
            buffer_add(&map->paths, text.data, strnlen(text.data, text.length));
        buffer_add_char(&map->paths, '\0');
        map->source_count++;
    }
    return r;
}

/* The root is put before each source, with a slash between them. */
static void name_sources(struct sourcemap *map)
{
    _cleanup_buffer_ struct buffer path = {0};
    size_t at = 0;
    map->sources = memory_zalloc(map->source_count + 1, sizeof(*map->sources));
    for (size_t i = 0; i < map->source_count; i++) {
        const char *own = map->paths.data + at;
        at += strlen(own) + 1;
        path.length = 0;
        if (*own && map->root.length) {
            buffer_add(&path, map->root.data, map->root.length);
            if (path.data[path.length - 1] != '/')
                buffer_add_char(&path, '/');
        }
        buffer_add_text(&path, own);
        map->sources[i] = symbol_map_intern(map->builder, path.data ? path.data : "", path.length);
    }
}

/* 1: the key was one of a map's own. */
static int read_key(struct sourcemap *map, const struct json_string *key)
{
    int64_t version = 0;
    int r;
    if (json_is(key, "version")) {
        r = json_i64(map->json, &version);
        if (r >= 0 && version != 3)
            r = json_fail(map->json,
                          "The source map's version is %lld; only version 3 is supported,",
                          (long long)version);
    } else if (json_is(key, "sources")) {
        if (map->source_count)
            return json_fail(map->json, "The source map has a second list of sources");
        r = read_sources(map);
    } else if (json_is(key, "names")) {
        r = read_names(map);
    } else if (json_is(key, "sourceRoot")) {
        r = read_text(map->json, &map->root);
    } else if (json_is(key, "mappings")) {
        r = read_text(map->json, &map->mappings);
        map->has_mappings = true;
    } else {
        return 0;
    }
    return r < 0 ? r : 1;
}

/* ---- sections ---- */

static int read_offset(struct json *json, uint64_t *ret_line, uint64_t *ret_column)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "line"))
            r = json_u64(json, ret_line);
        else if (json_is(&key, "column"))
            r = json_u64(json, ret_column);
    if (r >= 0 && (*ret_line >= SYMBOL_MAP_LINES_MAX || *ret_column >= INT32_MAX))
        return json_fail(json, "A section begins beyond the limit of a file");
    return r;
}

static int read_section_map(struct sourcemap *map)
{
    struct json_string key;
    int r = json_object(map->json);
    while (r >= 0 && (r = json_next_key(map->json, &key)) > 0) {
        if (json_is(&key, "sections"))
            return json_fail(map->json, "A section has nested sections");
        r = read_key(map, &key);
    }
    return r;
}

static int read_section(struct symbol_map_builder *builder, struct json *json)
{
    _cleanup_(sourcemap_release) struct sourcemap map = {.builder = builder, .json = json};
    struct json_string key;
    uint64_t line = 0, column = 0;
    bool has_map = false;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "offset")) {
            r = read_offset(json, &line, &column);
        } else if (json_is(&key, "map")) {
            if (has_map)
                return json_fail(json, "A section has two maps");
            has_map = true;
            r = read_section_map(&map);
        } else if (json_is(&key, "url")) {
            return json_fail(json, "A section refers to another file, which can't be fetched,");
        }
    }
    if (r < 0)
        return r;
    name_sources(&map);
    return decode(&map, line, column);
}

static int read_sections(struct sourcemap *map)
{
    size_t count = 0;
    int r = json_array(map->json);
    while (r >= 0 && (r = json_next_element(map->json)) > 0) {
        if (count++ == SECTIONS_MAX)
            return json_fail(map->json, "The source map has too many sections");
        r = read_section(map->builder, map->json);
    }
    return r;
}

/* Servers put )]}' before JSON, so that no page can run it as a script; the line isn't JSON. */
static int skip_guard(struct source *source, struct error *error)
{
    const char *line;
    size_t length;
    int r = source_need(source, 3, error);
    if (r < 0 || source_available(source) < 3 || memcmp(source_data(source), ")]}", 3) != 0)
        return r;
    r = source_line(source, &line, &length, error);
    return r < 0 ? r : 0;
}

int sourcemap_read(struct source *source, struct symbol_map_builder *builder, struct error *error)
{
    _cleanup_json_ struct json json;
    struct json_string key;
    int r = skip_guard(source, error);
    json_init(&json, source, error);
    _cleanup_(sourcemap_release) struct sourcemap map = {.builder = builder, .json = &json};
    if (!r)
        r = json_object(&json);
    while (r >= 0 && (r = json_next_key(&json, &key)) > 0) {
        if (json_is(&key, "sections")) {
            map.has_sections = true;
            r = read_sections(&map);
        } else if (json_is(&key, "file")) {
            r = read_text(&json, &builder->file);
        } else {
            r = read_key(&map, &key);
        }
    }
    if (r >= 0)
        r = json_end(&json);
    if (r >= 0 && map.has_mappings == map.has_sections)
        r = json_fail(&json, map.has_mappings ? "The source map has both mappings and sections"
                                              : "The source map has no mappings");
    if (r < 0)
        return r;
    name_sources(&map);
    return decode(&map, 0, 0);
}
