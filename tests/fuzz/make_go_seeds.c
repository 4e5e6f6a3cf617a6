// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of fuzz_gopclntab into a directory: cc -Isrc -Itests/unit
// tests/fuzz/make_go_seeds.c src/base/buffer.c src/base/memory.c, then ./a.out
// tests/fuzz/seeds/gopclntab.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gotable.h"

static void save(const char *folder, const char *kind, int number, char mode,
                 const struct buffer *content)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s-%d", folder, kind, number);
    FILE *file = fopen(path, "wb");
    if (!file || fputc(mode, file) == EOF ||
        fwrite(content->data, 1, content->length, file) != content->length || fclose(file))
        perror(path);
}

int main(int argc, char **argv)
{
    static const struct go_image_options images[] = {
        {GOPCLNTAB_1_2},
        {GOPCLNTAB_1_16, .no_name = true},
        {GOPCLNTAB_1_18, .no_name = true, .relocations = true},
        {GOPCLNTAB_1_20},
    };
    if (argc != 2) {
        fprintf(stderr, "usage: make_go_seeds FOLDER\n");
        return 2;
    }
    for (int layout = GOPCLNTAB_1_2; layout <= GOPCLNTAB_1_20; layout++) {
        struct buffer table = {0}, image = {0};
        size_t tree = go_make_table(&table, layout, true);
        put_bytes(&table, tree, 2);
        save(argv[1], "table", layout, 0, &table);
        go_make_image(&image, &images[layout]);
        save(argv[1], "file", layout, 1, &image);
        buffer_release(&table);
        buffer_release(&image);
    }
    return 0;
}
