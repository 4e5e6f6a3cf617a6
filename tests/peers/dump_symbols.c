// SPDX-License-Identifier: Apache-2.0
// dump-symbols FILE: reads addresses from standard input, one hexadecimal number per line, and
// prints for each what our table says: the start, the linker's name and the readable one.
// dump-symbols --frames FILE: prints what symbols and debug information say together, one line per
// frame, innermost first: the readable name, the linker's, where the function begins, file:line;
// and an empty line after each address.
// dump-symbols --package FILE: writes the package of what FILE was split into to standard output.

#include <inttypes.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "elf/file.h"
#include "symbol/index/split_package.h"
#include "symbol/naming/symbolizer.h"
#include "symbol/table.h"

static void dump_symbols(struct elf_file *file, const char *path)
{
    struct symbol_table *table = symbol_table_new(file, path);
    uint64_t address;
    while (scanf("%" SCNx64, &address) == 1) {
        struct symbol symbol;
        if (!symbol_table_find(table, address, &symbol))
            printf("-\t\t\n");
        else if (!symbol.name)
            printf("%" PRIx64 "\t\t\n", symbol.start);
        else
            printf("%" PRIx64 "\t%s\t%s\n", symbol.start,
                   symbol.system_name ? symbol.system_name : symbol.name, symbol.name);
    }
    symbol_table_free(table);
}

static void dump_frames(struct elf_file *file, const char *path)
{
    struct symbolizer *symbolizer = symbolizer_new();
    struct symbolizer_file *known = symbolizer_file(symbolizer, path, NULL);
    uint64_t address, *offsets = NULL;
    size_t count = 0, capacity = 0;
    while (scanf("%" SCNx64, &address) == 1) {
        array_reserve(offsets, capacity, count + 1);
        offsets[count] = UINT64_MAX;
        elf_address_to_offset(file, address, &offsets[count++]);
    }
    if (known)
        symbolizer_want(known, offsets, count);
    symbolizer_look_up(symbolizer);
    for (size_t i = 0; i < count; i++) {
        struct symbol_frame frames[SYMBOL_FRAMES_MAX];
        size_t frame_count = known ? symbolizer_file_frames(known, offsets[i], frames) : 0;
        for (size_t k = 0; k < frame_count; k++)
            printf("%s\t%s\t%u\t%s:%u\n", frames[k].name,
                   frames[k].system_name ? frames[k].system_name : frames[k].name,
                   frames[k].start_line, frames[k].file ? frames[k].file : "??", frames[k].line);
        printf("\n");
    }
    fprintf(stderr, "%" PRIu64 " with debug information, %" PRIu64 " that failed\n",
            symbolizer_stats(symbolizer).debug_files, symbolizer_stats(symbolizer).debug_failed);
    symbolizer_free(symbolizer);
    free(offsets);
}

static int dump_package(const char *path, struct error *error)
{
    struct symbol_index_found found;
    struct split_package package = {.fd = -1};
    int r = symbol_index_find(path, NULL, &found, error);
    if (r >= 0)
        r = split_package_make(&found.input, &package, error);
    symbol_index_close_input(&found.input);
    if (r >= 0 && (package.fd < 0 || package.absent))
        r = error_set(error, -ENOENT, "%zu of %zu units are absent.", package.absent,
                      package.units);
    for (uint64_t left = package.bytes; r >= 0 && left;) {
        ssize_t sent = sendfile(STDOUT_FILENO, package.fd, NULL, left);
        if (sent <= 0)
            r = error_set(error, -EIO, "The package can't be written.");
        left -= sent > 0 ? (uint64_t)sent : 0;
    }
    split_package_release(&package);
    return r;
}

int main(int argc, char **argv)
{
    struct error error = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    symbolizer_enter(argc, argv);
    if (argc == 3 && !strcmp(argv[1], "--package")) {
        if (dump_package(argv[2], &error) < 0)
            fprintf(stderr, "%s: %s\n", argv[2], error.text);
        return error.code ? 1 : 0;
    }
    bool frames = argc == 3 && !strcmp(argv[1], "--frames");
    if (argc != 2 + frames) {
        fprintf(stderr, "usage: dump-symbols [--frames] FILE\n");
        return 2;
    }
    const char *path = argv[argc - 1];
    if (elf_open(path, &file, &error) < 0) {
        fprintf(stderr, "%s: %s\n", path, error.text);
        return 1;
    }
    if (frames)
        dump_frames(&file, path);
    else
        dump_symbols(&file, path);
    return 0;
}
