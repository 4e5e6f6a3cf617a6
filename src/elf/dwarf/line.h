/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables (.debug_line) of DWARF 2 to 5: which file and line each address came from. */
#pragma once

#include "elf/dwarf/unit.h"

/* From an address on, up to the next row of the same sequence. */
struct debug_line_row {
    uint64_t address;
    uint32_t file, line;
};

/* A stretch of code without gaps. Its rows are in the order of addresses, one for each. */
struct debug_line_sequence {
    uint64_t start, end;
    uint32_t first, count; /* of the rows; at least one */
};

/* Strings live as long as their sections; NULL when they can't be read. */
struct debug_line_file {
    const char *name;
    uint64_t folder;
};

/* Zero-initialised is empty. Everything can be used again for the next table. */
struct debug_lines {
    uint16_t version;
    const char *
        *folders; /* in DWARF 5, number 0 is where the compiler ran; before, there is none */
    size_t folder_count, folder_capacity;
    struct debug_line_file *files; /* before DWARF 5, number 0 is none */
    size_t file_count, file_capacity;
    struct debug_line_row *rows;
    size_t row_count, row_capacity;
    struct debug_line_sequence *sequences; /* in the order of the table */
    size_t sequence_count, sequence_capacity;
    uint64_t budget; /* bytes of programs that may still be run: units can share one */
};

/* Only sequences that start where that says so are kept. */
typedef bool (*debug_is_code_fn)(void *context, uint64_t address);

/* The table of a unit. False when it makes no sense; what was read before is there. */
bool debug_lines_read(struct debug_lines *lines, const struct debug_unit *unit,
                      const struct debug_sections *shared, debug_is_code_fn is_code, void *context);
void debug_lines_release(struct debug_lines *lines);
