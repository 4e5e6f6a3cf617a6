// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what reads source maps and mapping files, and, with FUZZ_KEPT, of what reads the
// name maps made of them: checksums are made to fit there, or nothing would get past them. Answers
// must be within the map.

#include <stdlib.h>
#include <string.h>

#include "symbol/maps/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void ask_javascript(const struct symbol_map *map)
{
    struct symbol_map_position at;
    uint32_t lines = MIN(map->line_count, 64u);
    for (uint32_t line = 0; line <= lines + 1; line++) {
        for (uint32_t column = 0; column < 40; column += 3)
            if (symbol_map_find(map, line, column, &at)) {
                require(strlen(at.source) < map->length);
                const char *name = symbol_map_function(map, line, column, "ab");
                require(!name || (*name && strlen(name) < map->length));
            }
        if (symbol_map_find_line(map, line, &at))
            require(strlen(at.source) < map->length);
    }
}

static void ask_jvm(const struct symbol_map *map)
{
    struct symbol_map_frame frames[SYMBOL_MAP_FRAMES_MAX];
    struct arena arena = {0};
    for (uint32_t i = 0; i < map->class_count && i < 32; i++) {
        const struct symbol_map_class *class = &map->classes[i];
        for (uint32_t k = 0; k <= class->method_count && k < 8; k++) {
            _cleanup_buffer_ struct buffer name = {0};
            const char *method =
                k < class->method_count
                    ? symbol_map_text(map, map->methods[class->first_method + k].name)
                    : "none";
            buffer_printf(&name, "%.1000s.%.1000s", symbol_map_text(map, class->name), method);
            for (uint32_t line = 0; line < 4; line++) {
                size_t count = symbol_map_method(map, buffer_text(&name), line, &arena, frames,
                                                 SYMBOL_MAP_FRAMES_MAX);
                require(count <= SYMBOL_MAP_FRAMES_MAX);
                for (size_t at = 0; at < count; at++)
                    require(frames[at].function && strlen(frames[at].function) > 0);
            }
        }
    }
    arena_release(&arena);
}

static void ask(const struct symbol_map *map)
{
    ask_javascript(map);
    ask_jvm(map);
}

#ifdef FUZZ_KEPT
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct symbol_map_header *header;
    struct symbol_map map;
    struct error error = {0};
    if (length < sizeof(*header))
        return 0;
    header = memory_alloc(length);
    memcpy(header, data, length);
    memcpy(header->magic, SYMBOL_MAP_MAGIC, sizeof(header->magic));
    header->version = SYMBOL_MAP_VERSION;
    header->header_bytes = sizeof(*header);
    header->file_bytes = length;
    header->checksum = symbol_map_checksum(header, length);
    int r = symbol_map_open_memory(header, length, &map, &error);
    if (r < 0)
        require(error.code == r && error.text[0]);
    else
        ask(&map);
    free(header);
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    _cleanup_buffer_ struct buffer built = {0};
    struct source source;
    struct symbol_map map;
    struct error error = {0};
    struct symbol_map_key key = {"tenant", "service", "version", "app.js"};
    if (source_open_memory(&source, "fuzz", data, length, 1u << 20, &error) < 0)
        return 0;
    int r = symbol_map_build(&source, &key, 1, &built, &error);
    source_release(&source);
    if (r < 0) {
        require(error.code == r && error.text[0]);
        return 0;
    }
    /* What is made can be opened. */
    require(symbol_map_open_memory(built.data, built.length, &map, &error) == 0);
    ask(&map);
    return 0;
}
#endif
