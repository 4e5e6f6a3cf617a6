// SPDX-License-Identifier: Apache-2.0
// dump-map FILE: reads lines and columns of the generated file (from 1) from standard input, and
// prints for each where our reader of source maps says it comes from: source, line, column (from 1)
// and name, with tabs in between; an empty line for nowhere. "function LINE COLUMN NAME" asks for a
// function's name in the source. With --keep OUT it only writes the name map made of the file.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "symbol/maps/map.h"

static void answer(const struct symbol_map *map, const char *asked)
{
    struct symbol_map_position at;
    uint32_t line, column;
    char name[256];
    if (sscanf(asked, "function %" SCNu32 " %" SCNu32 " %255s", &line, &column, name) == 3) {
        const char *original = symbol_map_function(map, line, column, name);
        puts(original ? original : name);
    } else if (sscanf(asked, "%" SCNu32 " %" SCNu32, &line, &column) == 2 &&
               symbol_map_find(map, line, column, &at)) {
        printf("%s\t%" PRIu32 "\t%" PRIu32 "\t%s\n", at.source, at.line, at.column,
               at.name ? at.name : "");
    } else {
        puts("");
    }
}

int main(int argc, char **argv)
{
    struct symbol_map_key key = {"tenant", "service", "version", "app.js"};
    _cleanup_buffer_ struct buffer built = {0};
    struct source source;
    struct symbol_map map;
    struct error error = {0};
    char asked[512];
    bool keep = argc == 4 && !strcmp(argv[2], "--keep");
    if (argc != 2 && !keep)
        return 2;
    if (source_open(&source, argv[1], 0, &error) < 0 ||
        symbol_map_build(&source, &key, 1, &built, &error) < 0 ||
        symbol_map_open_memory(built.data, built.length, &map, &error) < 0 ||
        (keep && file_write_atomic(argv[3], built.data, built.length, &error) < 0)) {
        fprintf(stderr, "dump-map: %s\n", error.text);
        return 1;
    }
    while (!keep && fgets(asked, sizeof(asked), stdin))
        answer(&map, asked);
    source_release(&source);
    return 0;
}
