// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of fuzz_elf into a directory: cc -Isrc -Itests/unit tests/fuzz/make_elf_seeds.c
// src/base/buffer.c src/base/memory.c, then ./a.out tests/fuzz/seeds/elf.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "elf_image.h"

static void save(const char *folder, const char *name, char mode, const struct buffer *content)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fputc(mode, file) == EOF ||
        fwrite(content->data, 1, content->length, file) != content->length || fclose(file))
        perror(path);
}

#define PROGRAM(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void put_frames(struct buffer *out, const struct frame_style *style)
{
    const uint64_t section = 0x10000;
    size_t cie = put_cie(out, style, NULL, 0);
    put_fde(out, style, cie, section, 0x1000, 0x1100,
            PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x20, 0x0a, 0x0c, 7, 8, 0xc6,
                    0x03, 1, 0, 0x0b));
    put_fde(out, style, cie, section, 0x1200, 0x2300,
            PROGRAM(0x0f, 5, 0x77, 0x28, 0x06, 0x23, 8, 0x41, 0x10, 6, 2, 0x76, 0, 0x41, 0x0f, 11,
                    0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22, 0x04, 1, 0, 0, 0,
                    0x0c, 3, 8));
    put_fde(out, style, cie, section, 0x2300, 0x2400,
            PROGRAM(0x07, 16, 0x41, 0x09, 16, 5, 0x41, 0x83, 2, 0x41, 0x16, 6, 1, 0x30, 0x41, 0x2e,
                    16, 0x11, 6, 4, 0x12, 7, 0x7c));
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_elf_seeds FOLDER\n");
        return 2;
    }
    static const struct frame_style styles[] = {
        {.version = 1, .augmentation = "zR", .encoding = 0x1b},
        {.version = 1, .augmentation = "zRS", .encoding = 0x1b},
        {.wide = true, .version = 3, .augmentation = "zPLR", .encoding = 0x1c},
        {.debug_frame = true, .version = 4, .augmentation = ""},
        {.debug_frame = true, .wide = true, .version = 1, .augmentation = ""},
    };
    static const char *const names[] = {"eh-frame", "signal", "wide", "debug-frame", "debug-wide"};
    for (size_t i = 0; i < ARRAY_LENGTH(styles); i++) {
        struct buffer frames = {0};
        put_frames(&frames, &styles[i]);
        save(argv[1], names[i], styles[i].debug_frame ? 3 : 2, &frames);
        buffer_release(&frames);
    }
    struct buffer image = {0};
    make_image(&image);
    save(argv[1], "file", 0, &image);
    memset(image.data + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
    save(argv[1], "no-sections", 0, &image);
    save(argv[1], "memory", 1, &image);
    buffer_release(&image);
    return 0;
}
