/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of debug information (DWARF 2 to 5) of one file, decompressed where needed, and the
 * parts that can be read without knowing units: strings, and where a package (.dwp) has the parts
 * of a unit. Their readers are in dwarf_unit.h, dwarf_ranges.h and dwarf_line.h.
 *
 * All of it is for files that are in memory as a whole (elf_open_memory), a mapping for instance:
 * sections that are not compressed are not copied. Everything in them is checked.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "elf/cursor.h"
#include "elf/file.h"

/* Borrowed. */
struct debug_bytes {
    const uint8_t *bytes;
    size_t length;
};

enum debug_section {
    DEBUG_INFO,
    DEBUG_ABBREV,
    DEBUG_LINE,
    DEBUG_STR,
    DEBUG_LINE_STR,
    DEBUG_STR_OFFSETS,
    DEBUG_ADDR,
    DEBUG_RANGES,
    DEBUG_RNGLISTS,
    DEBUG_CU_INDEX, /* of a package */
    DEBUG_SECTION_COUNT,
};

struct debug_sections {
    struct debug_bytes list[DEBUG_SECTION_COUNT];
    struct buffer unpacked[DEBUG_SECTION_COUNT];
    uint64_t total_bytes; /* of all sections of debug information, unpacked; known ones or not */
};

/*
 * The file's sections; of a file that a compiler split off (.dwo, .dwp), those whose names end in
 * ".dwo". `file` must outlive them. A file without any is fine; one that can't be unpacked is not.
 */
int debug_sections_load(struct debug_sections *sections, struct elf_file *file, bool split,
                        size_t limit_bytes, struct error *error);
void debug_sections_release(struct debug_sections *sections);

/* A part of a section; empty when it isn't within it. */
struct debug_bytes debug_bytes_part(struct debug_bytes whole, uint64_t offset, uint64_t length);
/* The string at an offset, which lives as long as the section; NULL when there is none. */
const char *debug_string(const struct debug_sections *sections, enum debug_section section,
                         uint64_t offset);
/* A number of 4 or 8 bytes, or any other width; 0 when it isn't there. */
uint64_t debug_number(struct debug_bytes bytes, uint64_t offset, size_t length);

/* Where a package has the sections of the unit with an id; those that it hasn't are empty. */
bool debug_package_find(const struct debug_sections *package, uint64_t id,
                        struct debug_bytes ret_parts[DEBUG_SECTION_COUNT]);
