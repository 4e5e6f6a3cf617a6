// SPDX-License-Identifier: Apache-2.0
// Opening a name map, checking all of it once, and asking source maps: see map.h.

#include "symbol/maps/map.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "symbol/maps/build.h"

static const uint8_t element_bytes[SYMBOL_MAP_PART_COUNT] = {
    [SYMBOL_MAP_TEXTS] = 1,
    [SYMBOL_MAP_LINES] = sizeof(uint32_t),
    [SYMBOL_MAP_SEGMENTS] = sizeof(struct symbol_map_segment),
    [SYMBOL_MAP_CLASSES] = sizeof(struct symbol_map_class),
    [SYMBOL_MAP_METHODS] = sizeof(struct symbol_map_method),
};

static int damaged(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG, "The name map is damaged (%s). Upload its source again.",
                     what);
}

static int check_header(const struct symbol_map *map, struct error *error)
{
    const struct symbol_map_header *header = map->header;
    if (map->length < sizeof(*header) ||
        memcmp(header->magic, SYMBOL_MAP_MAGIC, sizeof(header->magic)) != 0)
        return error_set(error, -EBADMSG, "Not a name map.");
    if (header->version != SYMBOL_MAP_VERSION)
        return error_set(
            error, -ENOTSUP,
            "The name map has version %u, but this program reads %u. Upload its source again.",
            header->version, SYMBOL_MAP_VERSION);
    if (header->header_bytes != sizeof(*header) || header->file_bytes != map->length)
        return damaged(error, "its length");
    if (header->kind != SYMBOL_MAP_JAVASCRIPT && header->kind != SYMBOL_MAP_JVM)
        return damaged(error, "its kind");
    return symbol_map_checksum(map->bytes, map->length) == header->checksum
               ? 0
               : damaged(error, "its checksum");
}

static int find_parts(struct symbol_map *map, struct error *error)
{
    const uint8_t *parts[SYMBOL_MAP_PART_COUNT];
    uint32_t counts[SYMBOL_MAP_PART_COUNT];
    for (int i = 0; i < SYMBOL_MAP_PART_COUNT; i++) {
        uint64_t offset = map->header->parts[i].offset, length = map->header->parts[i].length;
        if (offset > map->length || length > map->length - offset || offset % 8 ||
            length % element_bytes[i] || length > UINT32_MAX)
            return damaged(error, "its parts");
        parts[i] = map->bytes + offset;
        counts[i] = (uint32_t)(length / element_bytes[i]);
    }
    map->texts = (const char *)parts[SYMBOL_MAP_TEXTS];
    map->lines = (const uint32_t *)parts[SYMBOL_MAP_LINES];
    map->segments = (const struct symbol_map_segment *)parts[SYMBOL_MAP_SEGMENTS];
    map->classes = (const struct symbol_map_class *)parts[SYMBOL_MAP_CLASSES];
    map->methods = (const struct symbol_map_method *)parts[SYMBOL_MAP_METHODS];
    map->line_count = counts[SYMBOL_MAP_LINES] ? counts[SYMBOL_MAP_LINES] - 1 : 0;
    map->segment_count = counts[SYMBOL_MAP_SEGMENTS];
    map->class_count = counts[SYMBOL_MAP_CLASSES];
    map->method_count = counts[SYMBOL_MAP_METHODS];
    /* Then every text ends within the part. */
    if (!counts[SYMBOL_MAP_TEXTS] || map->texts[counts[SYMBOL_MAP_TEXTS] - 1] || map->texts[0])
        return damaged(error, "its texts");
    return 0;
}

static bool are_texts(const struct symbol_map *map, const uint32_t *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (texts[i] >= map->header->parts[SYMBOL_MAP_TEXTS].length)
            return false;
    return true;
}

/* Texts of one byte or more; 0, no text, only where it is optional. */
static bool are_names(const struct symbol_map *map, const uint32_t *texts, size_t count,
                      bool optional)
{
    bool good = are_texts(map, texts, count);
    for (size_t i = 0; good && i < count; i++)
        good = map->texts[texts[i]] || (optional && !texts[i]);
    return good;
}

static bool are_segments_good(const struct symbol_map *map)
{
    uint32_t at = 0;
    if (map->line_count && map->lines[0])
        return false;
    for (uint32_t line = 0; line < map->line_count; line++) {
        uint32_t end = map->lines[line + 1];
        if (end < at || end > map->segment_count)
            return false;
        for (uint32_t first = at; at < end; at++) {
            const struct symbol_map_segment *segment = &map->segments[at];
            if ((at > first && segment->column < segment[-1].column) ||
                !are_names(map, (uint32_t[]){segment->source, segment->name}, 2, true))
                return false;
        }
    }
    return at == map->segment_count;
}

static bool are_classes_good(const struct symbol_map *map)
{
    for (uint32_t i = 0; i < map->class_count; i++) {
        const struct symbol_map_class *class = &map->classes[i];
        if (class->first_method > map->method_count ||
            class->method_count > map->method_count - class->first_method ||
            !are_names(map, (uint32_t[]){class->name, class->original}, 2, false) ||
            !are_names(map, &class->file, 1, true))
            return false;
    }
    for (uint32_t i = 0; i < map->method_count; i++) {
        const struct symbol_map_method *method = &map->methods[i];
        if (!are_names(map, (uint32_t[]){method->name, method->original}, 2, false) ||
            !are_names(map, &method->original_class, 1, true))
            return false;
    }
    return true;
}

int symbol_map_open_memory(const void *bytes, size_t length, struct symbol_map *ret_map,
                           struct error *error)
{
    struct symbol_map map = {.bytes = bytes, .length = length, .header = bytes};
    int r = check_header(&map, error);
    if (!r)
        r = find_parts(&map, error);
    const struct symbol_map_header *header = map.header;
    if (!r && !are_texts(&map,
                         (uint32_t[]){header->tenant, header->service, header->service_version,
                                      header->name},
                         4))
        r = damaged(error, "its key");
    if (!r && !are_segments_good(&map))
        r = damaged(error, "its segments");
    if (!r && !are_classes_good(&map))
        r = damaged(error, "its classes");
    if (!r)
        *ret_map = map;
    return r;
}

int symbol_map_open(const char *path, struct symbol_map *ret_map, struct error *error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &status) < 0) {
        int r = error_set_errno(error, -errno, "Failed to open the name map %s", path);
        if (fd >= 0)
            close(fd);
        return r;
    }
    size_t length = (size_t)status.st_size;
    void *bytes = length ? mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (bytes == MAP_FAILED)
        return error_set(error, -EBADMSG, "Failed to read the name map %s.", path);
    int r = symbol_map_open_memory(bytes, length, ret_map, error);
    if (r < 0)
        munmap(bytes, length);
    else
        ret_map->mapped = true;
    return r;
}

void symbol_map_close(struct symbol_map *map)
{
    if (map->mapped)
        munmap((void *)map->bytes, map->length);
    *map = (struct symbol_map){0};
}

/* ---- source maps ---- */

/* The last segment of a line that begins at the column (from 0) or before it. */
static const struct symbol_map_segment *segment_before(const struct symbol_map *map, uint32_t line,
                                                       uint32_t column)
{
    if (!line || line > map->line_count)
        return NULL;
    uint32_t first = map->lines[line - 1], end = map->lines[line], low = first;
    while (low < end) {
        uint32_t middle = low + (end - low) / 2;
        if (map->segments[middle].column <= column)
            low = middle + 1;
        else
            end = middle;
    }
    return low > first ? &map->segments[low - 1] : NULL;
}

static bool give(const struct symbol_map *map, const struct symbol_map_segment *segment,
                 struct symbol_map_position *ret_position)
{
    if (!segment || !segment->source)
        return false;
    *ret_position = (struct symbol_map_position){
        .source = symbol_map_text(map, segment->source),
        .line = segment->source_line,
        .column = segment->source_column,
        .name = segment->name ? symbol_map_text(map, segment->name) : NULL};
    return true;
}

bool symbol_map_find(const struct symbol_map *map, uint32_t line, uint32_t column,
                     struct symbol_map_position *ret_position)
{
    return column && give(map, segment_before(map, line, column - 1), ret_position);
}

bool symbol_map_find_line(const struct symbol_map *map, uint32_t line,
                          struct symbol_map_position *ret_position)
{
    const struct symbol_map_segment *found = NULL;
    if (!line || line > map->line_count)
        return false;
    for (uint32_t i = map->lines[line - 1]; i < map->lines[line]; i++) {
        const struct symbol_map_segment *segment = &map->segments[i];
        if (!segment->source)
            continue;
        if (found &&
            (segment->source != found->source || segment->source_line != found->source_line))
            return false;
        if (!found)
            found = segment;
    }
    return give(map, found, ret_position);
}

/* The length of a name as columns count: in units of UTF-16. */
static uint32_t columns_of(const char *text)
{
    uint32_t count = 0;
    for (; *text; text++)
        count += ((uint8_t)*text & 0xc0) != 0x80 ? 1 + ((uint8_t)*text >= 0xf0) : 0;
    return count;
}

/*
 * A map names tokens, and the token at a function's start is its first parameter, or a bracket. Its
 * own name stands before that: right before the bracket, as in `function f(` and `f(` of methods,
 * or before what stands between a variable and its value. The distances are those of such texts,
 * with and without blanks: a token that begins at just that place is the function's name, and a
 * token there without another name was not renamed.
 */
const char *symbol_map_function(const struct symbol_map *map, uint32_t line, uint32_t column,
                                const char *generated)
{
    static const char *const between[] = {"",
                                          "=",
                                          ":",
                                          ": ",
                                          " = ",
                                          "=function",
                                          ":function",
                                          ": function",
                                          " = function",
                                          "=function*",
                                          " = function ",
                                          "=async function",
                                          " = async function",
                                          "=async function*",
                                          ":async function",
                                          ": async function"};
    const char *point = strrchr(generated, '.');
    uint32_t length = columns_of(point ? point + 1 : generated);
    for (size_t i = 0; column && length && i < ARRAY_LENGTH(between); i++) {
        uint32_t back = length + (uint32_t)strlen(between[i]);
        if (back > column - 1)
            continue;
        const struct symbol_map_segment *segment = segment_before(map, line, column - 1 - back);
        if (segment && segment->source && segment->column == column - 1 - back)
            return segment->name ? symbol_map_text(map, segment->name) : NULL;
    }
    return NULL;
}
