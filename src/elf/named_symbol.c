// SPDX-License-Identifier: Apache-2.0
// Variables by their names, of .symtab, which has no index: see file.h. It is read in pieces.

#include <string.h>

#include "elf/file.h"

#define PIECE_SYMBOLS 512
#define SYMBOLS_MAX (4u << 20)
#define NAMES_MAX 65536 /* that are read, of variables of a wanted size */

static bool has_name(struct elf_file *file, const struct elf_section *strings, uint32_t at,
                     const char *name)
{
    char text[ELF_DATA_NAME_BYTES];
    size_t length = strlen(name) + 1;
    return length <= sizeof(text) && at < strings->size_bytes &&
           length <= strings->size_bytes - at &&
           elf_read(file, strings->offset + at, text, length) >= 0 && !memcmp(text, name, length);
}

static size_t look_at(struct elf_file *file, const struct elf_section *strings,
                      const Elf64_Sym *symbol, struct elf_variable *wanted, size_t count,
                      size_t *names)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    if ((type != STT_OBJECT && type != STT_TLS) || symbol->st_shndx == SHN_UNDEF)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (wanted[i].found || wanted[i].is_thread_local != (type == STT_TLS) ||
            symbol->st_size < wanted[i].bytes_min || symbol->st_size > wanted[i].bytes_max ||
            !*names)
            continue;
        --*names;
        if (!has_name(file, strings, symbol->st_name, wanted[i].name))
            continue;
        wanted[i].found = true;
        wanted[i].address = symbol->st_value;
        wanted[i].size_bytes = symbol->st_size;
        return 1;
    }
    return 0;
}

size_t elf_variables(struct elf_file *file, struct elf_variable *wanted, size_t count)
{
    Elf64_Sym piece[PIECE_SYMBOLS];
    struct elf_section symbols, strings;
    size_t found = 0, names = NAMES_MAX;
    if (!elf_find_section(file, ".symtab", &symbols) ||
        !elf_find_section(file, ".strtab", &strings))
        return 0;
    uint64_t all = symbols.size_bytes / sizeof(*piece);
    if (all > SYMBOLS_MAX)
        all = SYMBOLS_MAX;
    for (uint64_t first = 0; first < all && found < count; first += PIECE_SYMBOLS) {
        size_t some = all - first < PIECE_SYMBOLS ? (size_t)(all - first) : PIECE_SYMBOLS;
        if (elf_read(file, symbols.offset + first * sizeof(*piece), piece, some * sizeof(*piece)) <
            0)
            break;
        for (size_t i = 0; i < some; i++)
            found += look_at(file, &strings, &piece[i], wanted, count, &names);
    }
    return found;
}
