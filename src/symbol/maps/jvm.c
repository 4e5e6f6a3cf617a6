// SPDX-License-Identifier: Apache-2.0
// Original names of a JVM's renamed classes and methods: see map.h.

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "symbol/maps/map.h"

#define CANDIDATES_MAX 4         /* that are named where several are possible */
#define METHODS_LOOKED_AT 65536u /* of one name in one class */

static const struct symbol_map_class *find_class(const struct symbol_map *map, const char *name)
{
    uint32_t low = 0, high = map->class_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int difference = strcmp(symbol_map_text(map, map->classes[middle].name), name);
        if (!difference)
            return &map->classes[middle];
        if (difference < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The first method of a class whose name isn't smaller, or is greater. */
static uint32_t bound(const struct symbol_map *map, const struct symbol_map_class *class,
                      const char *name, bool above)
{
    uint32_t low = class->first_method, high = low + class->method_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int difference = strcmp(symbol_map_text(map, map->methods[middle].name), name);
        if (difference < 0 || (above && !difference))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct asking {
    const struct symbol_map *map;
    const struct symbol_map_class *class;
    uint32_t line;
    struct arena *arena;
};

static const char *class_of(const struct asking *asking, const struct symbol_map_method *method)
{
    return symbol_map_text(asking->map, method->original_class ? method->original_class
                                                               : asking->class->original);
}

/* Only that of the class is known: what was inlined may be from other files. */
static const char *file_of(const struct asking *asking, const struct symbol_map_method *method)
{
    if (!asking->class->file || strcmp(class_of(asking, method),
                                       symbol_map_text(asking->map, asking->class->original)) != 0)
        return NULL;
    return symbol_map_text(asking->map, asking->class->file);
}

static const char *join(struct arena *arena, const char *class, const char *method)
{
    _cleanup_buffer_ struct buffer text = {0};
    buffer_printf(&text, "%s.%s", class, method);
    return arena_strndup(arena, text.data, text.length);
}

static bool has_range(const struct symbol_map_method *method)
{
    return method->last_line != SYMBOL_MAP_ANY_LINE;
}

static uint32_t original_line(const struct symbol_map_method *method, uint32_t line)
{
    if (!has_range(method)) /* lines were kept, unless it says which one it was */
        return method->original_first && method->original_first == method->original_last
                   ? method->original_first
                   : line;
    if (!line || line < method->first_line || line > method->last_line)
        return 0;
    uint32_t from_start = line - method->first_line;
    uint32_t length = method->original_last - method->original_first;
    return method->original_first + MIN(from_start, length);
}

/* Lines of one range that stand together are one place: the innermost function comes first. */
static uint32_t group_end(const struct symbol_map *map, uint32_t at, uint32_t end)
{
    const struct symbol_map_method *first = &map->methods[at];
    at++;
    while (has_range(first) && at < end && map->methods[at].first_line == first->first_line &&
           map->methods[at].last_line == first->last_line)
        at++;
    return at;
}

static size_t give_group(const struct asking *asking, uint32_t start, uint32_t end,
                         struct symbol_map_frame *frames, size_t most)
{
    size_t count = 0;
    for (uint32_t at = end; at > start && count < most; at--) {
        const struct symbol_map_method *method = &asking->map->methods[at - 1];
        frames[count++] = (struct symbol_map_frame){
            .function = join(asking->arena, class_of(asking, method),
                             symbol_map_text(asking->map, method->original)),
            .file = file_of(asking, method),
            .line = original_line(method, asking->line)};
    }
    return count;
}

/* Which methods it may be: the outermost of each place. */
struct candidates {
    const struct symbol_map_method *list[CANDIDATES_MAX];
    size_t count;
    bool more;
};

static void add_candidate(const struct asking *asking, struct candidates *candidates,
                          const struct symbol_map_method *method)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (candidates->list[i]->original == method->original &&
            !strcmp(class_of(asking, candidates->list[i]), class_of(asking, method)))
            return;
    if (candidates->count == CANDIDATES_MAX)
        candidates->more = true;
    else
        candidates->list[candidates->count++] = method;
}

/* "Class.add|put", with the class again where it is another. */
static size_t give_candidates(const struct asking *asking, const struct candidates *candidates,
                              struct symbol_map_frame *ret_frame)
{
    _cleanup_buffer_ struct buffer text = {0};
    const char *class = "";
    for (size_t i = 0; i < candidates->count; i++) {
        const struct symbol_map_method *method = candidates->list[i];
        const char *own = class_of(asking, method);
        buffer_add_text(&text, i ? "|" : "");
        if (strcmp(own, class) != 0)
            buffer_printf(&text, "%s.", own);
        buffer_add_text(&text, symbol_map_text(asking->map, method->original));
        class = own;
    }
    buffer_add_text(&text, candidates->more ? "|…" : "");
    *ret_frame = (struct symbol_map_frame){
        .function = arena_strndup(asking->arena, buffer_text(&text), text.length),
        .file = file_of(asking, candidates->list[0]),
        .line = candidates->count == 1 && !candidates->more
                    ? original_line(candidates->list[0], asking->line)
                    : 0};
    return 1;
}

static size_t find_method(const struct asking *asking, uint32_t start, uint32_t end,
                          struct symbol_map_frame *frames, size_t most)
{
    const struct symbol_map *map = asking->map;
    struct candidates here = {0}, anywhere = {0}, all = {0};
    uint32_t found = start, found_end = start, places = 0;
    for (uint32_t at = start, next; at < end; at = next) {
        next = group_end(map, at, end);
        const struct symbol_map_method *outermost = &map->methods[next - 1];
        add_candidate(asking, &all, outermost);
        if (!has_range(outermost)) {
            add_candidate(asking, &anywhere, outermost);
        } else if (asking->line && asking->line >= outermost->first_line &&
                   asking->line <= outermost->last_line) {
            add_candidate(asking, &here, outermost);
            found = at;
            found_end = next;
            places++;
        }
    }
    if (places == 1)
        return give_group(asking, found, found_end, frames, most);
    if (here.count)
        return give_candidates(asking, &here, frames);
    return give_candidates(asking, asking->line && anywhere.count ? &anywhere : &all, frames);
}

size_t symbol_map_method(const struct symbol_map *map, const char *name, uint32_t line,
                         struct arena *arena, struct symbol_map_frame *frames, size_t most)
{
    const char *point = strrchr(name, '.');
    if (!point || point == name || !most)
        return 0;
    char *class_name = arena_strndup(arena, name, (size_t)(point - name));
    for (char *c = class_name; *c; c++)
        *c = *c == '/' ? '.' : *c;
    struct asking asking = {.map = map, .line = line, .arena = arena};
    asking.class = find_class(map, class_name);
    if (!asking.class)
        return 0;
    uint32_t start = bound(map, asking.class, point + 1, false);
    uint32_t end = bound(map, asking.class, point + 1, true);
    if (start < end)
        return find_method(&asking, start, MIN(end, start + METHODS_LOOKED_AT), frames, most);
    frames[0] = (struct symbol_map_frame){
        .function = join(arena, symbol_map_text(map, asking.class->original), point + 1),
        .file = asking.class->file ? symbol_map_text(map, asking.class->file) : NULL,
        .line = line};
    return 1;
}
