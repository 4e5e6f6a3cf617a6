// SPDX-License-Identifier: Apache-2.0
// Headers and programs of line tables: see dwarf_line.h.

#include "elf/dwarf/line.h"

#include <dwarf.h>

#define FORMATS_MAX 64

struct header {
    struct cursor program;
    uint8_t minimum_bytes, maximum_operations, range, opcode_base;
    uint8_t address_bytes, offset_bytes;
    int8_t line_base;
    const uint8_t *opcode_lengths; /* of opcode 1 and on */
};

/* ---- directories and files ---- */

static const char *inline_string(struct cursor *cursor)
{
    const uint8_t *start = cursor->at;
    const uint8_t *end = cursor_left(cursor) ? memchr(start, '\0', cursor_left(cursor)) : NULL;
    if (!end) {
        cursor->bad = true;
        return NULL;
    }
    cursor->at = end + 1;
    return (const char *)start;
}

static void add_folder(struct debug_lines *lines, const char *name)
{
    array_reserve(lines->folders, lines->folder_capacity, lines->folder_count + 1);
    lines->folders[lines->folder_count++] = name;
}

static void add_file(struct debug_lines *lines, const char *name, uint64_t folder)
{
    array_reserve(lines->files, lines->file_capacity, lines->file_count + 1);
    lines->files[lines->file_count++] = (struct debug_line_file){name, folder};
}

static void read_old_tables(struct debug_lines *lines, struct cursor *cursor)
{
    const char *name;
    add_folder(lines, NULL);
    add_file(lines, NULL, 0);
    while ((name = inline_string(cursor)) && name[0])
        add_folder(lines, name);
    while (!cursor->bad && (name = inline_string(cursor)) && name[0]) {
        uint64_t folder = cursor_uleb(cursor);
        cursor_uleb(cursor); /* when it was changed */
        cursor_uleb(cursor); /* its length */
        if (!cursor->bad)
            add_file(lines, name, folder);
    }
}

/* One of the two tables of DWARF 5, whose entries are described before them. */
static bool read_new_table(struct debug_lines *lines, struct cursor *cursor,
                           const struct debug_unit *unit, const struct debug_sections *shared,
                           bool is_files)
{
    struct debug_attribute formats[FORMATS_MAX];
    uint8_t format_count = cursor_u8(cursor);
    if (format_count > FORMATS_MAX)
        return false;
    for (uint8_t i = 0; i < format_count; i++) {
        uint64_t content = cursor_uleb(cursor), form = cursor_uleb(cursor);
        if (content > UINT16_MAX || form > UINT16_MAX)
            return false;
        formats[i] = (struct debug_attribute){.name = (uint16_t)content, .form = (uint16_t)form};
    }
    uint64_t count = cursor_uleb(cursor);
    if (cursor->bad || count > cursor_left(cursor))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const char *name = NULL;
        uint64_t folder = 0;
        for (uint8_t k = 0; k < format_count; k++) {
            struct debug_value value;
            if (!debug_value_read(unit, cursor, &formats[k], &value))
                return false;
            if (formats[k].name == DW_LNCT_path)
                name = debug_value_string(unit, &value, shared);
            else if (formats[k].name == DW_LNCT_directory_index)
                folder = value.value;
        }
        if (is_files)
            add_file(lines, name, folder);
        else
            add_folder(lines, name);
    }
    return true;
}

/* ---- the header ---- */

static bool read_sizes(struct header *header, struct debug_lines *lines, struct cursor *cursor,
                       uint64_t *ret_header_end)
{
    uint64_t length = cursor_u32(cursor);
    header->offset_bytes = 4;
    if (length == UINT32_MAX) {
        header->offset_bytes = 8;
        length = cursor_u64(cursor);
    }
    if (cursor->bad || length > cursor_left(cursor))
        return false;
    cursor->end = cursor->at + length;
    lines->version = cursor_u16(cursor);
    if (lines->version < 2 || lines->version > 5)
        return false;
    if (lines->version == 5) {
        header->address_bytes = cursor_u8(cursor);
        cursor_u8(cursor); /* size of segment selectors, which no compiler writes */
    }
    *ret_header_end = cursor_number(cursor, header->offset_bytes);
    return !cursor->bad && *ret_header_end <= cursor_left(cursor) &&
           (header->address_bytes == 4 || header->address_bytes == 8);
}

static bool read_header(struct header *header, struct debug_lines *lines, struct cursor cursor,
                        const struct debug_unit *unit, const struct debug_sections *shared)
{
    uint64_t header_bytes;
    if (!read_sizes(header, lines, &cursor, &header_bytes))
        return false;
    header->program = cursor;
    header->program.at += header_bytes;
    header->minimum_bytes = cursor_u8(&cursor);
    header->maximum_operations = lines->version >= 4 ? cursor_u8(&cursor) : 1;
    cursor_u8(&cursor); /* whether lines are statements at first */
    header->line_base = (int8_t)cursor_u8(&cursor);
    header->range = cursor_u8(&cursor);
    header->opcode_base = cursor_u8(&cursor);
    header->opcode_lengths =
        cursor_take(&cursor, header->opcode_base ? (uint64_t)header->opcode_base - 1 : 0);
    if (cursor.bad || !header->range || !header->opcode_base)
        return false;
    if (lines->version < 5) {
        read_old_tables(lines, &cursor);
        return true;
    }
    /* Offsets in the section are in a string's place of .debug_info's form. */
    struct debug_unit reader = *unit;
    reader.info = unit->program->list[DEBUG_LINE];
    reader.sections = unit->program;
    reader.offset_bytes = header->offset_bytes;
    reader.address_bytes = header->address_bytes;
    return read_new_table(lines, &cursor, &reader, shared, false) &&
           read_new_table(lines, &cursor, &reader, shared, true);
}

/* ---- the program ---- */

struct machine {
    uint64_t address;
    uint64_t file;
    uint32_t line;
    size_t first;  /* row of the sequence */
    bool is_wrong; /* addresses went back, or the start is no code: the sequence is left out */
    bool has_rows;
};

static void start_sequence(struct machine *machine, const struct debug_lines *lines)
{
    *machine = (struct machine){.file = 1, .line = 1, .first = lines->row_count};
}

static void add_row(struct debug_lines *lines, struct machine *machine, debug_is_code_fn is_code,
                    void *context)
{
    if (!machine->has_rows)
        machine->is_wrong = !is_code(context, machine->address);
    machine->has_rows = true;
    if (machine->is_wrong)
        return;
    struct debug_line_row row = {.address = machine->address,
                                 .file = machine->file <= UINT32_MAX ? (uint32_t)machine->file : 0,
                                 .line = machine->line};
    if (lines->row_count > machine->first) {
        struct debug_line_row *last = &lines->rows[lines->row_count - 1];
        machine->is_wrong = row.address < last->address;
        /* Of several rows of an address, the last one counts. */
        if (row.address == last->address) {
            *last = row;
            return;
        }
    }
    array_reserve(lines->rows, lines->row_capacity, lines->row_count + 1);
    lines->rows[lines->row_count++] = row;
}

static void end_sequence(struct debug_lines *lines, struct machine *machine)
{
    /* The last row may have no code. */
    if (lines->row_count > machine->first &&
        lines->rows[lines->row_count - 1].address == machine->address)
        lines->row_count--;
    size_t count = lines->row_count - machine->first;
    if (count && !machine->is_wrong &&
        machine->address > lines->rows[lines->row_count - 1].address) {
        array_reserve(lines->sequences, lines->sequence_capacity, lines->sequence_count + 1);
        lines->sequences[lines->sequence_count++] =
            (struct debug_line_sequence){.start = lines->rows[machine->first].address,
                                         .end = machine->address,
                                         .first = (uint32_t)machine->first,
                                         .count = (uint32_t)count};
    } else {
        lines->row_count = machine->first;
    }
    start_sequence(machine, lines);
}

static void extended(const struct header *header, struct cursor *cursor, struct debug_lines *lines,
                     struct machine *machine)
{
    uint64_t length = cursor_uleb(cursor);
    const uint8_t *bytes = cursor_take(cursor, length);
    if (!bytes || !length)
        return;
    struct cursor operands = cursor_of(bytes + 1, (size_t)length - 1);
    switch (bytes[0]) {
    case DW_LNE_end_sequence:
        end_sequence(lines, machine);
        break;
    case DW_LNE_set_address:
        machine->address = cursor_number(&operands, MIN(length - 1, header->address_bytes));
        break;
    case DW_LNE_define_file: {
        const char *name = inline_string(&operands);
        uint64_t folder = cursor_uleb(&operands);
        if (name && !operands.bad)
            add_file(lines, name, folder);
        break;
    }
    default:
        break;
    }
}

/* With several operations per instruction (VLIW), which no machine of ours has, the operation index
 * would count too. */
static void advance(const struct header *header, struct machine *machine, uint64_t operations)
{
    machine->address += operations * header->minimum_bytes;
}

static void standard(const struct header *header, struct cursor *cursor, uint8_t opcode,
                     struct machine *machine)
{
    switch (opcode) {
    case DW_LNS_advance_pc:
        advance(header, machine, cursor_uleb(cursor));
        break;
    case DW_LNS_advance_line:
        machine->line += (uint32_t)cursor_sleb(cursor);
        break;
    case DW_LNS_set_file:
        machine->file = cursor_uleb(cursor);
        break;
    case DW_LNS_const_add_pc:
        advance(header, machine, (uint64_t)(255 - header->opcode_base) / header->range);
        break;
    case DW_LNS_fixed_advance_pc:
        machine->address += cursor_u16(cursor);
        break;
    default:
        /* Instructions that don't matter here, or are unknown, state their number of operands. */
        for (uint8_t i = 0; i < header->opcode_lengths[opcode - 1]; i++)
            cursor_uleb(cursor);
        break;
    }
}

static void run(const struct header *header, struct debug_lines *lines, debug_is_code_fn is_code,
                void *context)
{
    struct cursor cursor = header->program;
    struct machine machine;
    start_sequence(&machine, lines);
    while (cursor_left(&cursor) && !cursor.bad && lines->row_count < UINT32_MAX) {
        uint8_t opcode = cursor_u8(&cursor);
        if (opcode >= header->opcode_base) {
            unsigned special = (unsigned)(opcode - header->opcode_base);
            advance(header, &machine, special / header->range);
            machine.line += (uint32_t)(header->line_base + (int)(special % header->range));
            add_row(lines, &machine, is_code, context);
        } else if (opcode == 0) {
            extended(header, &cursor, lines, &machine);
        } else if (opcode == DW_LNS_copy) {
            add_row(lines, &machine, is_code, context);
        } else {
            standard(header, &cursor, opcode, &machine);
        }
    }
    /* A sequence without an end is left out. */
    lines->row_count = machine.first;
}

bool debug_lines_read(struct debug_lines *lines, const struct debug_unit *unit,
                      const struct debug_sections *shared, debug_is_code_fn is_code, void *context)
{
    struct debug_bytes bytes = unit->program->list[DEBUG_LINE];
    struct header header = {.address_bytes = unit->address_bytes};
    lines->folder_count = lines->file_count = lines->row_count = lines->sequence_count = 0;
    if (!unit->has_lines || unit->lines >= bytes.length || !lines->budget)
        return false;
    struct cursor cursor =
        cursor_of(bytes.bytes + unit->lines, (size_t)(bytes.length - unit->lines));
    bool fine = read_header(&header, lines, cursor, unit, shared);
    uint64_t table_bytes = header.program.at ? (uint64_t)(header.program.end - cursor.at) : 0;
    lines->budget -= MIN(lines->budget, table_bytes + 1);
    if (!fine)
        return false;
    run(&header, lines, is_code, context);
    return true;
}

void debug_lines_release(struct debug_lines *lines)
{
    free(lines->folders);
    free(lines->files);
    free(lines->rows);
    free(lines->sequences);
    *lines = (struct debug_lines){0};
}
