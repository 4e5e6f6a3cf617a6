// SPDX-License-Identifier: Apache-2.0
// Opening a file's DWARF, in the child. Sections that are compressed are inflated here, into a file
// in memory that has nothing else: libdw can't read zstd's, and would inflate zlib's much slower
// and also those that nobody asks for.

#include <gelf.h>
#include <libdeflate.h>
#include <zstd.h>

#include "base/memory.h"
#include "elf/file.h"
#include "symbol/dwarf_unit.h"

#define INFLATED_MAX (1ull << 40) /* more has no meaning; far less meets the limit of memory */

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* What functions and lines are read from; not where variables are, macros, indexes. */
static bool is_needed(const struct elf_section *section)
{
    static const char *const names[] = {
        ".debug_abbrev",   ".debug_addr",        ".debug_info",       ".debug_line",
        ".debug_line_str", ".debug_ranges",      ".debug_rnglists",   ".debug_str",
        ".debug_types",    ".debug_str_offsets", ".gnu_debugaltlink",
    };
    if (section->type == SHT_NOBITS)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (!strcmp(section->name, names[i]))
            return true;
    return false;
}

static bool is_packed(struct elf_file *file, const struct elf_section *section,
                      Elf64_Chdr *ret_header)
{
    return (section->flags & SHF_COMPRESSED) && section->size_bytes > sizeof(*ret_header) &&
           elf_read(file, section->offset, ret_header, sizeof(*ret_header)) == 0;
}

/* The bytes that the needed sections take when they are inflated; 0 when none of them is packed. */
static uint64_t inflated_bytes(struct elf_file *file)
{
    Elf64_Chdr header;
    uint64_t bytes = 0;
    bool any = false;
    for (size_t i = 0; i < file->section_count; i++) {
        if (!is_needed(&file->sections[i]))
            continue;
        bool packed = is_packed(file, &file->sections[i], &header);
        any |= packed;
        uint64_t size = packed ? header.ch_size : file->sections[i].size_bytes;
        bytes = MIN(bytes, INFLATED_MAX) + MIN(size, INFLATED_MAX);
    }
    return any ? bytes : 0;
}

static bool unpack(uint32_t method, const struct buffer *packed, char *room, size_t length)
{
    if (method == ELFCOMPRESS_ZSTD)
        return ZSTD_decompress(room, length, packed->data, packed->length) == length;
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    enum libdeflate_result result =
        inflater && method == ELFCOMPRESS_ZLIB
            ? libdeflate_zlib_decompress(inflater, packed->data, packed->length, room, length, NULL)
            : LIBDEFLATE_BAD_DATA;
    libdeflate_free_decompressor(inflater);
    return result == LIBDEFLATE_SUCCESS;
}

/* Appends the section's content, inflated; false when that can't be. */
static bool add_content(struct elf_file *file, const struct elf_section *section,
                        struct buffer *image)
{
    Elf64_Chdr header;
    if (!is_packed(file, section, &header))
        return elf_read_some(file, section->offset, section->size_bytes, image) == 0;
    _cleanup_buffer_ struct buffer packed = {0};
    if (elf_read_some(file, section->offset + sizeof(header), section->size_bytes - sizeof(header),
                      &packed) < 0 ||
        !unpack(header.ch_type, &packed, buffer_reserve(image, header.ch_size), header.ch_size))
        return false;
    image->length += header.ch_size;
    return true;
}

static void align(struct buffer *image)
{
    while (image->length % 8)
        buffer_add_char(image, '\0');
}

static void add_file_header(struct buffer *image, const struct elf_file *file, size_t sections)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = file->type,
        .e_machine = file->machine,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)sections,
        .e_shstrndx = (Elf64_Half)(sections - 1)};
    buffer_add(image, &header, sizeof(header));
}

static Elf64_Shdr section_header(const struct buffer *image, const struct buffer *names,
                                 uint32_t type)
{
    return (Elf64_Shdr){.sh_name = (Elf64_Word)names->length,
                        .sh_type = type,
                        .sh_offset = image->length,
                        .sh_addralign = 1};
}

/* An ELF file with the needed sections alone. */
static bool make_image(struct elf_file *file, uint64_t content_bytes, struct buffer *image)
{
    _cleanup_buffer_ struct buffer names = {0};
    size_t count = 2, used = 1; /* the first is none, the last has the names */
    for (size_t i = 0; i < file->section_count; i++)
        count += is_needed(&file->sections[i]);
    if (count >= SHN_LORESERVE)
        return false;
    _cleanup_free_ Elf64_Shdr *headers = memory_zalloc(count, sizeof(*headers));
    buffer_reserve(image, content_bytes + count * (8 + sizeof(*headers)) + 4096);
    add_file_header(image, file, count);
    buffer_add_char(&names, '\0');
    for (size_t i = 0; i < file->section_count; i++) {
        const struct elf_section *section = &file->sections[i];
        if (!is_needed(section))
            continue;
        headers[used] = section_header(image, &names, section->type);
        if (!add_content(file, section, image))
            return false;
        headers[used].sh_size = image->length - headers[used].sh_offset;
        buffer_add(&names, section->name, strlen(section->name) + 1);
        used++;
        align(image);
    }
    headers[used] = section_header(image, &names, SHT_STRTAB);
    buffer_add(&names, ".shstrtab", sizeof(".shstrtab"));
    headers[used].sh_size = names.length;
    buffer_add(image, names.data, names.length);
    align(image);
    ((Elf64_Ehdr *)image->data)->e_shoff = image->length;
    buffer_add(image, headers, count * sizeof(*headers));
    return true;
}

Dwarf *dwarf_file_open(int fd)
{
    struct elf_file file = {.fd = -1};
    struct buffer image = {0};
    if (elf_version(EV_CURRENT) == EV_NONE || elf_open_fd(fd, &file, NULL) < 0)
        return NULL;
    uint64_t bytes = inflated_bytes(&file);
    if (bytes >= INFLATED_MAX || (bytes && !make_image(&file, bytes, &image)))
        return NULL;
    Elf *elf = bytes ? elf_memory(image.data, image.length) : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    return elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
}
