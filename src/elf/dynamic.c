// SPDX-License-Identifier: Apache-2.0
// The dynamic section: finds the dynamic symbols of files without section headers, and of images in
// memory. See file.h.

#include "elf/cursor.h"
#include "elf/file.h"

#define DYNAMIC_BYTES_MAX 65536
#define HASH_BUCKETS_MAX (1u << 20)
#define HASH_CHAIN_MAX 65536 /* each link is a read; real chains have a dozen */

bool elf_dynamic(struct elf_file *file, struct elf_dynamic *ret_dynamic)
{
    const struct elf_segment *segment = elf_find_segment(file, PT_DYNAMIC);
    if (!segment)
        return false;
    size_t length = (size_t)MIN(segment->file_bytes, DYNAMIC_BYTES_MAX) / sizeof(Elf64_Dyn);
    _cleanup_free_ Elf64_Dyn *entries = memory_zalloc(length + 1, sizeof(*entries));
    if (elf_read_address(file, segment->address, entries, length * sizeof(*entries)) < 0)
        return false;
    struct elf_dynamic dynamic = {0};
    for (size_t i = 0; i < length && entries[i].d_tag != DT_NULL; i++) {
        uint64_t value = entries[i].d_un.d_val;
        switch (entries[i].d_tag) {
        case DT_STRTAB:
            dynamic.string_table = value;
            break;
        case DT_STRSZ:
            dynamic.string_bytes = value;
            break;
        case DT_SYMTAB:
            dynamic.symbol_table = value;
            break;
        case DT_HASH:
            dynamic.hash = value;
            break;
        case DT_GNU_HASH:
            dynamic.gnu_hash = value;
            break;
        case DT_RELA:
            dynamic.relocations = value;
            break;
        case DT_RELASZ:
            dynamic.relocation_bytes = value;
            break;
        case DT_JMPREL:
            dynamic.lazy_relocations = value;
            break;
        case DT_PLTRELSZ:
            dynamic.lazy_relocation_bytes = value;
            break;
        case DT_FLAGS_1:
            dynamic.flags_1 = value;
            break;
        case DT_SONAME:
            dynamic.has_soname = true;
            break;
        }
    }
    *ret_dynamic = dynamic;
    return true;
}

/*
 * The loader relocates the dynamic section's addresses in memory. In an image that was read from
 * memory they may be of either kind, and only the file's own lie in a segment.
 */
static bool section_at(struct elf_file *file, uint64_t address, uint64_t size_bytes,
                       struct elf_section *section)
{
    section->address = address;
    section->size_bytes = size_bytes;
    return address && elf_address_to_offset(file, address, &section->offset);
}

bool elf_dynamic_strings(struct elf_file *file, struct elf_section *ret_section)
{
    struct elf_dynamic dynamic;
    struct elf_section section = {.name = ".dynstr", .type = SHT_STRTAB};
    if (!elf_dynamic(file, &dynamic) ||
        !section_at(file, dynamic.string_table, dynamic.string_bytes, &section))
        return false;
    *ret_section = section;
    return true;
}

/* The last chain that a bucket starts ends at the last symbol. */
static uint64_t count_by_gnu_hash(struct elf_file *file, uint64_t address)
{
    uint32_t header[4]; /* buckets, first hashed symbol, bloom words, bloom shift */
    if (elf_read_address(file, address, header, sizeof(header)) < 0 || !header[0] ||
        header[0] > HASH_BUCKETS_MAX)
        return 0;
    _cleanup_free_ uint32_t *buckets = memory_zalloc(header[0], sizeof(*buckets));
    address += sizeof(header) + 8ull * header[2];
    if (elf_read_address(file, address, buckets, header[0] * sizeof(*buckets)) < 0)
        return 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < header[0]; i++)
        last = MAX(last, buckets[i]);
    if (last < header[1])
        return header[1]; /* nothing is exported */
    address += 4ull * header[0];
    for (uint32_t steps = 0; steps < HASH_CHAIN_MAX; steps++, last++) {
        uint32_t hash;
        if (elf_read_address(file, address + 4ull * (last - header[1]), &hash, sizeof(hash)) < 0)
            return 0;
        if (hash & 1)
            return (uint64_t)last + 1;
    }
    return 0;
}

bool elf_dynamic_symbols(struct elf_file *file, struct elf_section *ret_section)
{
    struct elf_dynamic dynamic;
    if (!elf_dynamic(file, &dynamic))
        return false;
    uint32_t header[2]; /* of DT_HASH: buckets, symbols */
    uint64_t count = 0;
    if (dynamic.hash && elf_read_address(file, dynamic.hash, header, sizeof(header)) == 0)
        count = header[1];
    else if (dynamic.gnu_hash)
        count = count_by_gnu_hash(file, dynamic.gnu_hash);
    struct elf_section section = {
        .name = ".dynsym", .type = SHT_DYNSYM, .entry_bytes = sizeof(Elf64_Sym)};
    if (!count || !section_at(file, dynamic.symbol_table, count * sizeof(Elf64_Sym), &section))
        return false;
    *ret_section = section;
    return true;
}
