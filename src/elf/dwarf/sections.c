// SPDX-License-Identifier: Apache-2.0
// Finding and unpacking sections of debug information: see dwarf_sections.h.

#include "elf/dwarf/sections.h"

static const char *const section_names[DEBUG_SECTION_COUNT] = {
    [DEBUG_INFO] = "info",         [DEBUG_ABBREV] = "abbrev",
    [DEBUG_LINE] = "line",         [DEBUG_STR] = "str",
    [DEBUG_LINE_STR] = "line_str", [DEBUG_STR_OFFSETS] = "str_offsets",
    [DEBUG_ADDR] = "addr",         [DEBUG_RANGES] = "ranges",
    [DEBUG_RNGLISTS] = "rnglists", [DEBUG_CU_INDEX] = "cu_index",
};

/* The name after ".debug_" or ".zdebug_"; NULL when it is another kind of section. */
static const char *debug_part_of_name(const char *name)
{
    if (!strncmp(name, ".debug_", 7))
        return name + 7;
    return strncmp(name, ".zdebug_", 8) ? NULL : name + 8;
}

static bool name_is(const char *part, const char *wanted, bool split)
{
    size_t length = strlen(wanted);
    return !strncmp(part, wanted, length) && !strcmp(part + length, split ? ".dwo" : "");
}

/* Strings end within their section: what is behind the last end is cut off. */
static void cut_strings(struct debug_bytes *strings)
{
    const uint8_t *last = strings->length ? memrchr(strings->bytes, '\0', strings->length) : NULL;
    strings->length = last ? (size_t)(last - strings->bytes) + 1 : 0;
}

static int load_section(struct debug_sections *sections, struct elf_file *file,
                        const struct elf_section *section, enum debug_section kind,
                        size_t limit_bytes, uint64_t *unpacked_left, struct error *error)
{
    struct debug_bytes *bytes = &sections->list[kind];
    bool packed = (section->flags & SHF_COMPRESSED) || section->name[1] == 'z';
    if (bytes->length || section->type == SHT_NOBITS)
        return 0;
    if (!packed && file->memory.bytes) {
        *bytes = debug_bytes_part((struct debug_bytes){file->memory.bytes, file->memory.length},
                                  section->offset, section->size_bytes);
        if (section->size_bytes && !bytes->length)
            return error_set(error, -EBADMSG, "The section %s is not within the file.",
                             section->name);
    } else {
        struct buffer *content = &sections->unpacked[kind];
        size_t limit = packed ? (size_t)MIN((uint64_t)limit_bytes, *unpacked_left) : limit_bytes;
        int r = elf_unpack_section(file, section, limit, content, error);
        if (r < 0)
            return r;
        *unpacked_left -= packed ? MIN((uint64_t)content->length, *unpacked_left) : 0;
        *bytes = (struct debug_bytes){(const uint8_t *)content->data, content->length};
    }
    if (kind == DEBUG_STR || kind == DEBUG_LINE_STR)
        cut_strings(bytes);
    return 0;
}

/* The unpacked size that a section states. */
static uint64_t unpacked_bytes(struct elf_file *file, const struct elf_section *section)
{
    Elf64_Chdr header;
    if (section->type == SHT_NOBITS)
        return 0;
    if (!(section->flags & SHF_COMPRESSED) ||
        elf_read(file, section->offset, &header, sizeof(header)) < 0)
        return section->size_bytes;
    return header.ch_size;
}

int debug_sections_load(struct debug_sections *sections, struct elf_file *file, bool split,
                        size_t limit_bytes, struct error *error)
{
    uint64_t unpacked_left = elf_unpack_limit(file);
    for (size_t i = 0; i < file->section_count; i++) {
        const struct elf_section *section = &file->sections[i];
        const char *part = debug_part_of_name(section->name);
        if (!part)
            continue;
        sections->total_bytes += MIN(unpacked_bytes(file, section), UINT32_MAX);
        for (int kind = 0; kind < DEBUG_SECTION_COUNT; kind++) {
            /* A package's index belongs to no unit, so it has its own name. */
            if (!name_is(part, section_names[kind], split && kind != DEBUG_CU_INDEX))
                continue;
            int r = load_section(sections, file, section, (enum debug_section)kind, limit_bytes,
                                 &unpacked_left, error);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

void debug_sections_release(struct debug_sections *sections)
{
    for (int kind = 0; kind < DEBUG_SECTION_COUNT; kind++)
        buffer_release(&sections->unpacked[kind]);
    *sections = (struct debug_sections){0};
}

struct debug_bytes debug_bytes_part(struct debug_bytes whole, uint64_t offset, uint64_t length)
{
    if (!length || offset > whole.length || length > whole.length - offset)
        return (struct debug_bytes){0};
    return (struct debug_bytes){whole.bytes + offset, (size_t)length};
}

const char *debug_string(const struct debug_sections *sections, enum debug_section section,
                         uint64_t offset)
{
    const struct debug_bytes *bytes = &sections->list[section];
    return offset < bytes->length ? (const char *)bytes->bytes + offset : NULL;
}

uint64_t debug_number(struct debug_bytes bytes, uint64_t offset, size_t length)
{
    uint64_t value = 0;
    if (length <= sizeof(value) && offset <= bytes.length && length <= bytes.length - offset &&
        length)
        memcpy(&value, bytes.bytes + offset, length);
    return value;
}

/* ---- packages ---- */

/* Columns of a package's index, by what they are called in its two versions. */
static int package_column(uint32_t version, uint32_t kind)
{
    switch (kind) {
    case 1:
        return DEBUG_INFO;
    case 3:
        return DEBUG_ABBREV;
    case 4:
        return DEBUG_LINE;
    case 6:
        return DEBUG_STR_OFFSETS;
    case 8:
        return version == 5 ? DEBUG_RNGLISTS : -1;
    default:
        return -1;
    }
}

struct package_index {
    uint32_t version, columns, rows, slots;
    struct debug_bytes ids, row_numbers, kinds, offsets, sizes;
};

static bool read_package_index(struct debug_bytes bytes, struct package_index *ret_index)
{
    struct cursor cursor = cursor_of(bytes.bytes, bytes.length);
    /* Before DWARF 5 the version has four bytes, and since then two and two of padding. */
    struct package_index index = {.version = cursor_u32(&cursor) & 0xffff};
    index.columns = cursor_u32(&cursor);
    index.rows = cursor_u32(&cursor);
    index.slots = cursor_u32(&cursor);
    if (cursor.bad || (index.version != 2 && index.version != 5) || !index.columns ||
        index.columns > 64 || !index.slots || (index.slots & (index.slots - 1)))
        return false;
    uint64_t at = 16, row_bytes = 4ull * index.columns;
    index.ids = debug_bytes_part(bytes, at, 8ull * index.slots);
    at += 8ull * index.slots;
    index.row_numbers = debug_bytes_part(bytes, at, 4ull * index.slots);
    at += 4ull * index.slots;
    index.kinds = debug_bytes_part(bytes, at, row_bytes);
    at += row_bytes;
    index.offsets = debug_bytes_part(bytes, at, row_bytes * index.rows);
    at += row_bytes * index.rows;
    index.sizes = debug_bytes_part(bytes, at, row_bytes * index.rows);
    *ret_index = index;
    return index.sizes.length > 0;
}

/* The row of an id, counted from 1; 0 when there is none. */
static uint32_t find_package_row(const struct package_index *index, uint64_t id)
{
    uint32_t mask = index->slots - 1, slot = (uint32_t)id & mask;
    uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;
    for (uint32_t tries = 0; tries < index->slots; tries++, slot = (slot + step) & mask) {
        uint32_t row = (uint32_t)debug_number(index->row_numbers, 4ull * slot, 4);
        if (!row)
            return 0;
        if (debug_number(index->ids, 8ull * slot, 8) == id)
            return row <= index->rows ? row : 0;
    }
    return 0;
}

bool debug_package_find(const struct debug_sections *package, uint64_t id,
                        struct debug_bytes ret_parts[DEBUG_SECTION_COUNT])
{
    struct package_index index;
    if (!read_package_index(package->list[DEBUG_CU_INDEX], &index))
        return false;
    uint32_t row = find_package_row(&index, id);
    if (!row)
        return false;
    struct debug_bytes parts[DEBUG_SECTION_COUNT] = {0};
    for (uint32_t i = 0; i < index.columns; i++) {
        int kind = package_column(index.version, (uint32_t)debug_number(index.kinds, 4ull * i, 4));
        uint64_t cell = 4ull * ((uint64_t)(row - 1) * index.columns + i);
        if (kind >= 0)
            parts[kind] =
                debug_bytes_part(package->list[kind], debug_number(index.offsets, cell, 4),
                                 debug_number(index.sizes, cell, 4));
    }
    memcpy(ret_parts, parts, sizeof(parts));
    return parts[DEBUG_INFO].length > 0;
}
