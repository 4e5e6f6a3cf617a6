// SPDX-License-Identifier: Apache-2.0
// The variable at an address, by the file's symbol tables: see file.h. Tables are read in pieces.

#include <string.h>

#include "elf/file.h"

#define PIECE_SYMBOLS 512
#define SYMBOLS_MAX (4u << 20) /* 100 MB of them: the largest programs have a million */

struct search {
    uint64_t address;
    Elf64_Sym found;
    bool has;
};

static void look_at(struct search *search, const Elf64_Sym *symbol)
{
    if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_shndx == SHN_ABS || search->address < symbol->st_value ||
        search->address - symbol->st_value >= symbol->st_size)
        return;
    /* The smallest that has it: others are around it. */
    if (!search->has || symbol->st_size < search->found.st_size) {
        search->found = *symbol;
        search->has = true;
    }
}

static bool search_table(struct elf_file *file, const struct elf_section *table,
                         struct search *search)
{
    Elf64_Sym piece[PIECE_SYMBOLS];
    uint64_t count = table->size_bytes / sizeof(*piece);
    if (count > SYMBOLS_MAX)
        count = SYMBOLS_MAX;
    for (uint64_t first = 0; first < count; first += PIECE_SYMBOLS) {
        size_t some = count - first < PIECE_SYMBOLS ? (size_t)(count - first) : PIECE_SYMBOLS;
        if (elf_read(file, table->offset + first * sizeof(*piece), piece, some * sizeof(*piece)) <
            0)
            break;
        for (size_t i = 0; i < some; i++)
            look_at(search, &piece[i]);
    }
    return search->has;
}

static bool read_name(struct elf_file *file, const struct elf_section *strings, uint32_t at,
                      char ret_name[ELF_DATA_NAME_BYTES])
{
    char text[ELF_DATA_NAME_BYTES] = "";
    if (at >= strings->size_bytes)
        return false;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        if (at + i >= strings->size_bytes ||
            elf_read(file, strings->offset + at + i, &text[i], 1) < 0)
            return false;
        if (!text[i])
            break;
    }
    memcpy(ret_name, text, sizeof(text));
    return text[0] != '\0';
}

bool elf_data_symbol(struct elf_file *file, uint64_t address, char ret_name[ELF_DATA_NAME_BYTES],
                     uint64_t *ret_offset)
{
    static const struct {
        const char *symbols, *strings;
    } tables[] = {{".symtab", ".strtab"}, {".dynsym", ".dynstr"}};
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        struct search search = {.address = address};
        struct elf_section symbols, strings;
        if (!elf_find_section(file, tables[i].symbols, &symbols) ||
            !elf_find_section(file, tables[i].strings, &strings) ||
            !search_table(file, &symbols, &search) ||
            !read_name(file, &strings, search.found.st_name, ret_name))
            continue;
        *ret_offset = address - search.found.st_value;
        return true;
    }
    return false;
}
