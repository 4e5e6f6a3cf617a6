// SPDX-License-Identifier: Apache-2.0
// Extracts the symbols of an ELF file into a separate file: see extract.h.

#include "elf/extract.h"

#include <string.h>

#include "base/memory.h"

#define ALIGNMENT 16ull /* of pieces: more than any of these sections needs */

/* ---- which sections ---- */

static bool begins(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

/* By name, as other tools find them. Never code, whatever its name. */
static bool has_kept_name(const struct elf_section *section)
{
    static const char *const names[] = {
        ".symtab",           ".symtab_shndx",    ".strtab",
        ".shstrtab",         ".dynsym",          ".dynstr",
        ".gnu_debugdata",    ".gnu_debuglink",   ".gnu_debugaltlink",
        ".eh_frame",         ".eh_frame_hdr",    ".gopclntab",
        ".go.module",        ".note.go.buildid", ".data.rel.ro.gopclntab",
        ".note.gnu.build-id"};
    if (section->type == SHT_NULL || section->type == SHT_NOBITS || section->open_ended ||
        (section->flags & SHF_EXECINSTR))
        return false;
    if (!(section->flags & SHF_ALLOC) &&
        (begins(section->name, ".debug_") || begins(section->name, ".zdebug_")))
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (!strcmp(section->name, names[i]))
            return true;
    return false;
}

/* Whether anything can be named by it. */
static bool names_something(const struct elf_section *section)
{
    return has_kept_name(section) && strcmp(section->name, ".shstrtab") &&
           strcmp(section->name, ".strtab") && !begins(section->name, ".note.") &&
           !begins(section->name, ".gnu_debuglink");
}

/* ---- the plan ---- */

static void add_piece(struct elf_extract *extract, uint64_t offset, const char *bytes,
                      uint64_t length)
{
    uint64_t at = (extract->size_bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    array_reserve(extract->pieces, extract->piece_capacity, extract->piece_count + 1);
    extract->pieces[extract->piece_count++] =
        (struct elf_piece){.at = at, .length = length, .offset = offset, .bytes = bytes};
    extract->size_bytes = at + length;
}

static uint16_t add_segments(struct buffer *head, const struct elf_file *from)
{
    uint16_t count = 0;
    for (size_t i = 0; i < from->segment_count; i++) {
        const struct elf_segment *segment = &from->segments[i];
        if (segment->type != PT_LOAD)
            continue;
        Elf64_Phdr header = {.p_type = PT_LOAD,
                             .p_flags = segment->flags,
                             .p_offset = segment->offset,
                             .p_vaddr = segment->address,
                             .p_paddr = segment->address,
                             .p_filesz = segment->file_bytes,
                             .p_memsz = segment->memory_bytes,
                             .p_align = segment->alignment};
        buffer_add(head, &header, sizeof(header));
        count++;
    }
    return count;
}

static int read_headers(struct elf_file *file, Elf64_Ehdr *ret_header, struct buffer *ret_sections,
                        struct error *error)
{
    uint64_t bytes = file->section_count * sizeof(Elf64_Shdr);
    if (file->layout != ELF_LAYOUT_FILE || !file->section_count || file->sections_damaged)
        return error_set(error, -ENODATA, "The file has no readable section headers.");
    if (elf_read(file, 0, ret_header, sizeof(*ret_header)) < 0 ||
        elf_read_some(file, ret_header->e_shoff, bytes, ret_sections) < 0 ||
        ret_sections->length != bytes)
        return error_set(error, -EBADMSG, "The file changed while it was read.");
    return 0;
}

/* Sections that stay get a place, all others lose their content. Two sections may share bytes of a
 * file; that they don't do so without end is for all of them together to be no larger than it. */
static int place_sections(struct elf_extract *extract, size_t names, struct error *error)
{
    struct elf_file *file = extract->file;
    Elf64_Shdr *headers = (Elf64_Shdr *)extract->tail.data;
    if (names >= file->section_count || file->sections[names].type != SHT_STRTAB ||
        (file->sections[names].flags & (SHF_ALLOC | SHF_EXECINSTR)))
        return error_set(error, -EBADMSG, "The section names are not in a string table.");
    uint64_t left = file->size_bytes;
    for (size_t i = 0; i < file->section_count; i++) {
        const struct elf_section *section = &file->sections[i];
        Elf64_Shdr *header = &headers[i];
        if (section->type == SHT_NULL)
            continue;
        if (i != names && !has_kept_name(section)) {
            header->sh_type = SHT_NOBITS;
            header->sh_offset = extract->size_bytes;
            /* Data that isn't in memory either is gone. */
            header->sh_size = section->flags & SHF_ALLOC ? header->sh_size : 0;
            header->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
            continue;
        }
        if (section->size_bytes > left || section->offset > file->size_bytes - section->size_bytes)
            return error_set(
                error, -EBADMSG,
                "The section %.60s is not at its stated offset: the file is truncated or damaged.",
                section->name);
        left -= section->size_bytes;
        add_piece(extract, section->offset, NULL, section->size_bytes);
        header->sh_offset = extract->pieces[extract->piece_count - 1].at;
    }
    return 0;
}

static int plan(struct elf_extract *extract, const struct elf_file *segments, struct error *error)
{
    struct elf_file *file = extract->file;
    Elf64_Ehdr header;
    bool any = false;
    int r = read_headers(file, &header, &extract->tail, error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < file->section_count; i++)
        any |= names_something(&file->sections[i]);
    if (!any)
        return error_set(error, -ENODATA, "The file contains no symbols.");
    buffer_add(&extract->head, &header, sizeof(header));
    header.e_phnum = add_segments(&extract->head, segments ? segments : file);
    header.e_phoff = header.e_phnum ? sizeof(header) : 0;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_ehsize = sizeof(header);
    extract->size_bytes = 0;
    add_piece(extract, 0, NULL, extract->head.length);
    r = place_sections(extract,
                       header.e_shstrndx == SHN_XINDEX ? file->sections[0].link : header.e_shstrndx,
                       error);
    if (r < 0)
        return r;
    add_piece(extract, 0, extract->tail.data, extract->tail.length);
    header.e_shoff = extract->pieces[extract->piece_count - 1].at;
    memcpy(extract->head.data, &header, sizeof(header));
    extract->pieces[0].bytes = extract->head.data;
    return 0;
}

int elf_extract_plan(struct elf_file *file, const struct elf_file *segments,
                     struct elf_extract *ret_extract, struct error *error)
{
    struct elf_extract extract = {.file = file};
    int r = plan(&extract, segments, error);
    if (r < 0)
        elf_extract_release(&extract);
    else
        *ret_extract = extract;
    return r;
}

void elf_extract_release(struct elf_extract *extract)
{
    free(extract->pieces);
    buffer_release(&extract->head);
    buffer_release(&extract->tail);
    *extract = (struct elf_extract){0};
}

/* ---- its bytes ---- */

/* The last piece that begins at or before a place; there is one at 0. */
static size_t piece_at(const struct elf_extract *extract, uint64_t at)
{
    size_t low = 0, high = extract->piece_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (extract->pieces[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

ssize_t elf_extract_read(const struct elf_extract *extract, uint64_t at, void *buffer,
                         size_t length)
{
    char *to = buffer;
    size_t done = 0;
    if (at >= extract->size_bytes)
        return 0;
    length = (size_t)MIN(length, extract->size_bytes - at);
    for (size_t i = piece_at(extract, at); done < length; i++) {
        const struct elf_piece *piece = &extract->pieces[i];
        uint64_t end =
            i + 1 < extract->piece_count ? extract->pieces[i + 1].at : piece->at + piece->length;
        uint64_t inside = at + done - piece->at;
        size_t whole = (size_t)MIN(length - done, end - (at + done));
        size_t taken = inside < piece->length ? (size_t)MIN(whole, piece->length - inside) : 0;
        if (taken && piece->bytes)
            memcpy(to + done, piece->bytes + inside, taken);
        else if (taken && elf_read(extract->file, piece->offset + inside, to + done, taken) < 0)
            return -ENODATA;
        memset(to + done + taken, 0, whole - taken);
        done += whole;
    }
    return (ssize_t)done;
}
