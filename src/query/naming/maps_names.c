// SPDX-License-Identifier: Apache-2.0
// Source names of frames, by the maps of one service and version: see maps.h.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/idtable.h"
#include "base/memory.h"
#include "base/text.h"
#include "profile/naming.h"
#include "profile/rename.h"
#include "query/naming/maps.h"
#include "symbol/jit/name.h"

#define ANONYMOUS "(anonymous)"

_Static_assert(SYMBOL_MAP_FRAMES_MAX <= PROFILE_EXPANSION_MAX, "all frames of one fit");

struct known_file {
    char *file;
    struct symbol_map_use *use; /* NULL: it has no map */
};

struct query_maps {
    struct symbol_maps *maps;
    char *tenant, *service, *version;
    struct symbol_map_key key;
    struct symbol_map_use *jvm;
    bool jvm_asked;
    struct known_file *files;
    size_t file_count, file_capacity;
    struct id_table file_index;
    struct arena arena; /* of one frame's texts */
};

/* A frame as the source has it. */
struct original {
    const char *name, *file; /* file: NULL: not known */
    uint32_t line, column, start_line;
};

struct query_maps *query_maps_new(struct symbol_maps *symbol_maps, const char *tenant,
                                  const char *service, const char *version)
{
    struct query_maps *maps = memory_zalloc(1, sizeof(*maps));
    maps->maps = symbol_maps;
    maps->tenant = memory_strdup(tenant);
    maps->service = memory_strdup(service);
    maps->version = memory_strdup(version);
    maps->key = (struct symbol_map_key){maps->tenant, maps->service, maps->version, ""};
    return maps;
}

void query_maps_free(struct query_maps *maps)
{
    if (!maps)
        return;
    for (size_t i = 0; i < maps->file_count; i++) {
        symbol_maps_give_back(maps->maps, maps->files[i].use);
        free(maps->files[i].file);
    }
    symbol_maps_give_back(maps->maps, maps->jvm);
    free(maps->files);
    id_table_release(&maps->file_index);
    arena_release(&maps->arena);
    free(maps->tenant);
    free(maps->service);
    free(maps->version);
    free(maps);
}

/* ---- JavaScript ---- */

static const struct symbol_map *map_of_file(struct query_maps *maps, const char *file)
{
    uint64_t hash = XXH3_64bits(file, strlen(file));
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&maps->file_index, &probe)) != ID_NONE)
        if (!strcmp(maps->files[id].file, file))
            break;
    if (id == ID_NONE) {
        id = (uint32_t)maps->file_count++;
        array_reserve(maps->files, maps->file_capacity, maps->file_count);
        maps->files[id] = (struct known_file){memory_strdup(file),
                                              symbol_maps_javascript(maps->maps, &maps->key, file)};
        id_table_insert(&maps->file_index, hash, id);
    }
    return maps->files[id].use ? &maps->files[id].use->map : NULL;
}

/*
 * Where the function starts. V8's own names of code end in file:line:column; its CPU profiles, and
 * what is made of them, have a function's start as the place of all its frames. Others have the
 * line of the sample, or no column: then it isn't known.
 */
static bool find_start(const struct profile *profile, const struct profile_frame *frame,
                       uint32_t *ret_line, uint32_t *ret_column)
{
    const struct profile_function *function = &profile->functions[frame->function];
    const char *tagged = profile_text(profile, function->system_name);
    if (jit_name_is_v8(tagged)) {
        const char *colon = text_number_before(tagged, tagged + strlen(tagged), ret_column);
        return colon && text_number_before(tagged, colon, ret_line);
    }
    *ret_line = frame->line;
    *ret_column = frame->column;
    return frame->line && frame->column &&
           (function->start_line == frame->line ||
            (!function->start_line && frame->kind == FRAME_UNKNOWN));
}

/* Functions without a name are distinguished by their place. */
static const char *name_anonymous(struct query_maps *maps, const struct symbol_map_position *start)
{
    char name[320];
    int length =
        snprintf(name, sizeof(name), ANONYMOUS " %.255s:%u", path_base(start->source), start->line);
    return arena_strndup(&maps->arena, name, (size_t)length);
}

static bool name_javascript(struct query_maps *maps, const struct profile *profile,
                            const struct profile_frame *frame, struct original *ret_original)
{
    const struct profile_function *function = &profile->functions[frame->function];
    const char *name = profile_text(profile, function->name);
    const char *file = profile_text(profile, function->file);
    const struct symbol_map *map = *file ? map_of_file(maps, file) : NULL;
    struct symbol_map_position start, at;
    uint32_t line, column;
    if (!map)
        return false;
    bool has_start =
        find_start(profile, frame, &line, &column) && symbol_map_find(map, line, column, &start);
    bool has_place = frame->column ? symbol_map_find(map, frame->line, frame->column, &at)
                                   : symbol_map_find_line(map, frame->line, &at);
    if (!has_start && !has_place)
        return false;
    const char *renamed =
        has_start && *name != '(' ? symbol_map_function(map, line, column, name) : NULL;
    *ret_original = (struct original){.name = renamed ? renamed : name,
                                      .file = has_start ? start.source : at.source,
                                      .line = has_place ? at.line : start.line,
                                      .column = has_place ? at.column : start.column,
                                      .start_line = has_start ? start.line : 0};
    if (!strncmp(name, ANONYMOUS, strlen(ANONYMOUS)))
        ret_original->name = name_anonymous(maps, has_start ? &start : &at);
    return true;
}

/* ---- JVMs ---- */

static size_t name_jvm(struct query_maps *maps, const struct profile *profile,
                       const struct profile_frame *frame, struct original *originals)
{
    struct symbol_map_frame frames[SYMBOL_MAP_FRAMES_MAX];
    if (!maps->jvm_asked)
        maps->jvm = symbol_maps_jvm(maps->maps, &maps->key);
    maps->jvm_asked = true;
    if (!maps->jvm)
        return 0;
    const struct profile_function *function = &profile->functions[frame->function];
    size_t count = symbol_map_method(&maps->jvm->map, profile_text(profile, function->name),
                                     frame->line, &maps->arena, frames, SYMBOL_MAP_FRAMES_MAX);
    for (size_t i = 0; i < count; i++)
        originals[i] = (struct original){
            .name = frames[i].function, .file = frames[i].file, .line = frames[i].line};
    return count;
}

/* ---- frames ---- */

/* How many frames it was, the outermost first; 0: no map knows it. */
static size_t find_originals(struct query_maps *maps, const struct profile *profile, uint32_t id,
                             struct original originals[SYMBOL_MAP_FRAMES_MAX])
{
    const struct profile_frame *frame = &profile->frames[id];
    size_t count = 0;
    arena_release(&maps->arena);
    if (!frame->function)
        return 0;
    if (frame->kind == FRAME_V8JS || frame->kind == FRAME_UNKNOWN)
        count = name_javascript(maps, profile, frame, &originals[0]);
    if (!count && (frame->kind == FRAME_JVM || frame->kind == FRAME_UNKNOWN))
        count = name_jvm(maps, profile, frame, originals);
    return count;
}

/* The stored name becomes the system name. */
static size_t rename_frame(void *context, const struct profile *from, uint32_t id,
                           struct profile *to, struct profile_frame renamed[PROFILE_EXPANSION_MAX])
{
    struct original originals[SYMBOL_MAP_FRAMES_MAX];
    size_t count = find_originals(context, from, id, originals);
    const struct profile_function *known = &from->functions[from->frames[id].function];
    const char *raw = profile_text(from, known->system_name ? known->system_name : known->name);
    struct profile_frame frame = renamed[0];
    for (size_t i = 0; i < count; i++) {
        const struct original *original = &originals[i];
        struct profile_function function = {.name = profile_cstring(to, original->name),
                                            .start_line = original->start_line};
        if (strcmp(raw, original->name) != 0)
            function.system_name = profile_cstring(to, raw);
        if (original->file)
            function.file = profile_cstring(to, original->file);
        renamed[i] = frame;
        renamed[i].function = profile_function(to, &function);
        renamed[i].line = original->line;
        renamed[i].column = MIN(original->column, (1u << 24) - 1) & 0xffffff;
        renamed[i].inlined = i ? 1 : frame.inlined;
    }
    return count;
}

int query_maps_rename(struct query_maps *maps, const struct profile *from, struct profile *to,
                      struct error *error)
{
    return profile_rename_all(from, rename_frame, maps, to, error);
}

uint32_t query_maps_node(struct query_maps *maps, struct graft *graft, uint32_t node)
{
    _cleanup_free_ uint32_t *path = NULL;
    size_t depth = 0, room = 0;
    uint32_t at = 0;
    for (; node; node = graft->from->nodes[node].parent) {
        array_reserve(path, room, depth + 1);
        path[depth++] = graft->from->nodes[node].frame;
    }
    while (depth--) {
        struct profile_frame renamed[PROFILE_EXPANSION_MAX];
        uint32_t frame = graft_frame(graft, path[depth]);
        renamed[0] = graft->to->frames[frame];
        size_t count = rename_frame(maps, graft->from, path[depth], graft->to, renamed);
        for (size_t i = 0; i < count; i++)
            at = profile_child(graft->to, at, profile_frame(graft->to, &renamed[i]));
        if (!count)
            at = profile_child(graft->to, at, frame);
    }
    return at;
}

bool query_maps_is(struct query_maps *maps, const struct profile *profile, uint32_t frame,
                   const char *function)
{
    struct original originals[SYMBOL_MAP_FRAMES_MAX];
    size_t count = find_originals(maps, profile, frame, originals);
    if (!count)
        return profile->frames[frame].function &&
               !strcmp(
                   profile_text(profile, profile->functions[profile->frames[frame].function].name),
                   function);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(originals[i].name, function))
            return true;
    return false;
}
