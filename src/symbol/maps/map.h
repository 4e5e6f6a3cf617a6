/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name maps: from what a minifier or an obfuscator made of a program back to its source. Made once
 * from a JavaScript source map (version 3) or a ProGuard or R8 mapping file, kept as one compact
 * file (docs/formats/name-map.md), mapped into memory and asked without allocation.
 *
 * An open map is only read: threads can share it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "io/source.h"
#include "symbol/maps/format.h"

/* The limits of one file; -E2BIG beyond them. */
#define SYMBOL_MAP_SEGMENTS_MAX (4u << 20)
#define SYMBOL_MAP_LINES_MAX (4u << 20)
#define SYMBOL_MAP_METHODS_MAX (4u << 20)
#define SYMBOL_MAP_CLASSES_MAX (1u << 20)
#define SYMBOL_MAP_TEXT_BYTES_MAX (256u << 20)
#define SYMBOL_MAP_KEY_BYTES_MAX 1024 /* of a service, a version, a name */

enum symbol_map_kind { SYMBOL_MAP_JAVASCRIPT = 1, SYMBOL_MAP_JVM = 2 };

/* Whose it is. `name` is the generated file's, or a part of its path; "" for JVMs. */
struct symbol_map_key {
    const char *tenant, *service, *version, *name;
};

/* ---- making one (map_build.c, sourcemap.c, proguard.c) ---- */

/* The kind of source is detected by its beginning. Without a name in the key, a source map's is the
 * file that it claims to describe. -EBADMSG: it can't be read. */
int symbol_map_build(struct source *source, const struct symbol_map_key *key, int64_t added,
                     struct buffer *ret_map, struct error *error);

/* ---- opening one (map.c) ---- */

struct symbol_map {
    const uint8_t *bytes;
    size_t length;
    bool mapped; /* ours to unmap */
    const struct symbol_map_header *header;
    const char *texts;
    const uint32_t *lines;
    const struct symbol_map_segment *segments;
    const struct symbol_map_class *classes;
    const struct symbol_map_method *methods;
    uint32_t line_count, segment_count, class_count, method_count;
};

/* Everything is checked here, and nothing later. */
int symbol_map_open(const char *path, struct symbol_map *ret_map, struct error *error);
int symbol_map_open_memory(const void *bytes, size_t length, struct symbol_map *ret_map,
                           struct error *error);
void symbol_map_close(struct symbol_map *map);

static inline const char *symbol_map_text(const struct symbol_map *map, uint32_t text)
{
    return map->texts + text;
}

/* ---- asking a source map: lines and columns count from 1 ---- */

struct symbol_map_position {
    const char *source;
    uint32_t line, column;
    const char *name; /* of the token there; NULL: as it is in the generated file */
};

/* False: nothing is known of that place. */
bool symbol_map_find(const struct symbol_map *map, uint32_t line, uint32_t column,
                     struct symbol_map_position *ret_position);

/* Where a generated line comes from, when all of it comes from one line: its first place. */
bool symbol_map_find_line(const struct symbol_map *map, uint32_t line,
                          struct symbol_map_position *ret_position);

/*
 * The source's name of the function that is called `generated` in the generated file and starts at
 * that place, as V8 counts it: at the bracket before its parameters, or at an arrow function's
 * first token. NULL: the map doesn't rename it.
 */
const char *symbol_map_function(const struct symbol_map *map, uint32_t line, uint32_t column,
                                const char *generated);

/* ---- asking a mapping of a JVM's names (map_jvm.c) ---- */

#define SYMBOL_MAP_FRAMES_MAX 64

struct symbol_map_frame {
    const char *function; /* in the arena: "com.example.Class.method" */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
};

/*
 * The source's names of `class.method` (or class/with/slashes.method) at a line (0: not known): the
 * outermost function first, those that were inlined into it after it. Several methods may have got
 * one name; where no line distinguishes them, all are named, as in `com.example.Class.add|put`. 0:
 * unknown class.
 */
size_t symbol_map_method(const struct symbol_map *map, const char *name, uint32_t line,
                         struct arena *arena, struct symbol_map_frame *frames, size_t most);
