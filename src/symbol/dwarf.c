// SPDX-License-Identifier: Apache-2.0
// From addresses to functions, files and lines by a file's DWARF, in the child: see dwarf.h.

#include "symbol/dwarf.h"

#include <dwarf.h>

#include "symbol/dwarf_unit.h"

struct dwarf_reader {
    struct dwarf_unit unit;
    bool *answered; /* by index of the address */
    struct dwarf_writer writer;
    /* Functions that were named: the entry that has the name, and the function's number. */
    struct id_table index;
    struct named_function {
        const void *entry;
        uint32_t number;
    } * functions;
    size_t function_count, function_capacity;
    struct buffer text;
};

/* ---- functions ---- */

/* Copies of a function, inlined or not, refer to one entry with what they have in common; but the
 * variants of C++ constructors have linkage names of their own. */
static Dwarf_Die original_of(Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    Dwarf_Die original;
    if (!dwarf_hasattr(function, DW_AT_linkage_name) &&
        dwarf_attr(function, DW_AT_abstract_origin, &attribute) &&
        dwarf_formref_die(&attribute, &original))
        return original;
    return *function;
}

/* 0 when it has no name. */
static uint32_t function_number(struct dwarf_reader *reader, Dwarf_Die *function)
{
    Dwarf_Die original = original_of(function);
    uint64_t hash = hash_word((uint64_t)(uintptr_t)original.addr);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&reader->index, &probe)) != ID_NONE)
        if (reader->functions[id].entry == original.addr)
            return reader->functions[id].number;
    struct dwarf_name name;
    struct dwarf_writer *writer = &reader->writer;
    dwarf_name_of(function, &reader->text, &name);
    uint32_t readable = dwarf_write_string(writer, name.readable);
    uint32_t system_name = dwarf_write_string(writer, name.system_name);
    uint32_t number =
        readable ? dwarf_write_function(writer, readable, system_name, name.start_line) : 0;
    array_reserve(reader->functions, reader->function_capacity, reader->function_count + 1);
    reader->functions[reader->function_count] =
        (struct named_function){.entry = original.addr, .number = number};
    id_table_insert(&reader->index, hash, (uint32_t)reader->function_count++);
    return number;
}

/* ---- lines ---- */

/*
 * A file's whole name. In the tables it may be relative to where the compiler ran, and say the same
 * in several ways: one file shall be one. Links are not looked at, since they are the build
 * machine's.
 */
static void whole_path(const char *folder, const char *name, struct buffer *text)
{
    const char *parts[] = {name[0] == '/' || !folder ? "" : folder, name};
    bool absolute = parts[0][0] == '/' || name[0] == '/';
    text->length = 0;
    for (size_t i = 0; i < 2; i++)
        for (const char *at = parts[i]; *at;) {
            size_t length = strcspn(at, "/");
            const char *slash = text->length ? memrchr(text->data, '/', text->length) : NULL;
            size_t last = slash ? (size_t)(slash - text->data) + 1 : 0;
            bool is_up = text->length - last == 2 && !memcmp(text->data + last, "..", 2);
            if (length == 2 && !memcmp(at, "..", 2) && !is_up && (text->length || absolute)) {
                text->length = slash ? last - 1 : 0;
            } else if (length && !(length == 1 && *at == '.')) {
                if (text->length || absolute)
                    buffer_add_char(text, '/');
                buffer_add(text, at, length);
            }
            at += length + (at[length] == '/');
        }
}

static uint32_t file_number(struct dwarf_reader *reader, Dwarf_Die *unit_die, const char *name)
{
    Dwarf_Attribute attribute;
    if (!name || !name[0])
        return 0;
    const char *folder = dwarf_formstring(dwarf_attr(unit_die, DW_AT_comp_dir, &attribute));
    whole_path(folder, name, &reader->text);
    return dwarf_write_string(&reader->writer, buffer_text(&reader->text));
}

static void line_of(struct dwarf_reader *reader, Dwarf_Die *unit_die, uint64_t address,
                    struct dwarf_frame *frame)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit_die, address);
    int number = 0;
    if (!line)
        return;
    frame->file = file_number(reader, unit_die, dwarf_linesrc(line, NULL, NULL));
    if (dwarf_lineno(line, &number) == 0 && number > 0)
        frame->line = (uint32_t)number;
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned int name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &value) == 0 ? value
                                                                                         : 0;
}

/* Where the function was called that is inlined here. */
static void call_of(struct dwarf_reader *reader, Dwarf_Die *unit_die, Dwarf_Die *inlined,
                    struct dwarf_frame *frame)
{
    Dwarf_Files *files;
    size_t count;
    Dwarf_Word file = number_of(inlined, DW_AT_call_file);
    Dwarf_Word line = number_of(inlined, DW_AT_call_line);
    if (dwarf_getsrcfiles(unit_die, &files, &count) == 0 && file < count)
        frame->file = file_number(reader, unit_die, dwarf_filesrc(files, file, NULL, NULL));
    frame->line = line <= UINT32_MAX ? (uint32_t)line : 0;
}

/* ---- addresses ---- */

static void answer(struct dwarf_reader *reader, Dwarf_Die *unit_die, size_t i)
{
    struct dwarf_unit *unit = &reader->unit;
    struct dwarf_frame frames[SYMBOL_FRAMES_MAX] = {0};
    uint32_t index = unit->wanted[i], scope = unit->scope_of[i], count = 0;
    line_of(reader, unit_die, unit->addresses[index], &frames[0]);
    for (; scope; scope = unit->scopes[scope].parent) {
        Dwarf_Die *function = &unit->scopes[scope].die;
        frames[count].function = function_number(reader, function);
        /* A chain that is too deep, or has a nameless part, says nothing. */
        if (!frames[count].function || count + 1 == SYMBOL_FRAMES_MAX)
            return;
        count++;
        if (unit->scopes[scope].parent)
            call_of(reader, unit_die, function, &frames[count]);
    }
    if (!count && !frames[0].file)
        return;
    reader->answered[index] = true;
    dwarf_write_address(&reader->writer, index, frames, MAX(count, 1));
}

static void read_units(struct dwarf_reader *reader, Dwarf *dwarf)
{
    Dwarf_CU *at = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (dwarf_get_units(dwarf, at, &at, NULL, &type, &die, NULL) == 0) {
        /* Of a unit whose entries are in another file (.dwo), the lines are still here. */
        if ((type != DW_UT_compile && type != DW_UT_skeleton) ||
            !dwarf_unit_wants(&reader->unit, &die, reader->answered))
            continue;
        dwarf_unit_walk(&reader->unit, &die);
        for (size_t i = 0; i < reader->unit.wanted_count; i++)
            answer(reader, &die, i);
    }
}

static int run(const struct confined_input *input)
{
    Dwarf *dwarf = dwarf_file_open(input->files[DWARF_FILE]);
    Dwarf *alternate =
        input->files[DWARF_ALTERNATE] < 0 ? NULL : dwarf_file_open(input->files[DWARF_ALTERNATE]);
    if (!dwarf)
        return -1;
    if (alternate)
        dwarf_setalt(dwarf, alternate);
    struct dwarf_reader reader = {
        .unit = {.addresses = input->request,
                 .address_count = input->request_bytes / sizeof(uint64_t)},
        .answered = memory_zalloc(input->request_bytes / sizeof(uint64_t) + 1, sizeof(bool)),
        .writer = {.write = confined_write},
    };
    read_units(&reader, dwarf);
    dwarf_write_end(&reader.writer);
    return 0; /* the process ends now, and everything with it */
}

const struct confined_program dwarf_program = {
    .name = "dwarf",
    .run = run,
    .memory_bytes = 1ull << 30,
    .cpu_seconds = 20,
    .deadline_ms = 60000,
    .output_max_bytes = 256u << 20,
};
