// SPDX-License-Identifier: Apache-2.0
// Writing instructions with their cost, beside the source where it can be read: see
// report_asm_parts.h.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/file/report_asm_parts.h"

#define CONTEXT_INSTRUCTIONS 6

/* An instruction's place in the source. */
struct asm_line {
    const char *function, *file; /* "": not known */
    uint32_t line;
    bool inlined;
    struct buffer text; /* of the source */
};

static void find_line(struct assembly *assembly, uint32_t binary, uint64_t address,
                      struct asm_line *line)
{
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    size_t count = recorded_code_frames(assembly->code, binary, address, frames);
    line->function = count && frames[0].name ? frames[0].name : "";
    line->file = count && frames[0].file ? frames[0].file : "";
    line->line = count ? frames[0].line : 0;
    line->inlined = count > 1;
    line->text.length = 0;
    if (!*line->file || !line->line)
        return;
    const struct source_text *source = report_sources_find(
        assembly->report->sources, line->file, recorded_code_build_id(assembly->code, binary));
    if (line->line > source->count)
        return;
    const char *text = source->lines[line->line - 1];
    size_t length = source->lengths[line->line - 1];
    while (length && (*text == ' ' || *text == '\t'))
        text++, length--;
    while (length && (text[length - 1] == '\r' || text[length - 1] == ' '))
        length--;
    buffer_add(&line->text, text, length);
}

/* With the name of what is jumped to, where that is another function. */
static struct cell instruction_cell(struct assembly *assembly, const struct recorded_place *place,
                                    const struct instruction *instruction)
{
    struct buffer *text = &assembly->scratch;
    struct symbol symbol;
    text->length = 0;
    buffer_add_text(text, instruction->text);
    if (instruction->target &&
        (instruction->target < place->start ||
         instruction->target - place->start >= place->size_bytes) &&
        recorded_code_name(assembly->code, place->binary, instruction->target, &symbol)) {
        buffer_printf(text, " <%s", symbol.name);
        if (symbol.distance)
            buffer_printf(text, "+0x%" PRIx64, symbol.distance);
        buffer_add_char(text, '>');
    }
    return (struct cell){.text = text->data, .length = text->length};
}

static struct cell address_cell(uint64_t address, char text[24])
{
    snprintf(text, 24, "0x%" PRIx64, address);
    return cell_text(text);
}

/* As the binary has it, or else the profile. */
static const char *function_name(const struct assembly *assembly,
                                 const struct asm_function *function)
{
    const struct asm_address *first = &assembly->addresses[function->first];
    const struct naming *naming = assembly->report->naming;
    return first->place.name ? first->place.name
                             : naming->entries[naming->of_frame[first->frame]].name;
}

static void add_data_row(struct assembly *assembly, const struct asm_function *function, size_t i,
                         struct table *table)
{
    const struct recorded_place *place = &assembly->addresses[function->first].place;
    const struct instruction *instruction = &function->code.instructions[i];
    const struct asm_row *row = &assembly->rows[function->row + i];
    struct asm_line line = {0};
    char address[24];
    find_line(assembly, place->binary, instruction->address, &line);
    struct cell cells[] = {
        cell_number(row->flat),
        cell_percent(row->flat, assembly->report->whole),
        cell_number(row->cumulative),
        cell_percent(row->cumulative, assembly->report->whole),
        address_cell(instruction->address, address),
        instruction_cell(assembly, place, instruction),
        cell_text(function_name(assembly, function)),
        cell_text(line.inlined ? line.function : ""),
        cell_text(line.file),
        cell_number(line.line),
        {.text = buffer_text(&line.text), .length = line.text.length},
        cell_text(recorded_code_path(assembly->code, place->binary)),
    };
    table_add(table, cells);
    buffer_release(&line.text);
}

void assembly_write_data(struct assembly *assembly, const char *name, const char *head)
{
    static const struct column columns[] = {
        {NULL, "flat", COLUMN_VALUE},    {NULL, "flat_percent", COLUMN_PERCENT},
        {NULL, "cum", COLUMN_VALUE},     {NULL, "cum_percent", COLUMN_PERCENT},
        {NULL, "address", COLUMN_NAME},  {NULL, "instruction", COLUMN_NAME},
        {NULL, "function", COLUMN_NAME}, {NULL, "inlined", COLUMN_NAME},
        {NULL, "file", COLUMN_NAME},     {NULL, "line", COLUMN_COUNT},
        {NULL, "source", COLUMN_NAME},   {NULL, "binary", COLUMN_NAME},
    };
    struct report *report = assembly->report;
    _cleanup_table_ struct table table = {0};
    table_init(&table, columns, ARRAY_LENGTH(columns), report_unit(report));
    for (size_t f = 0; f < assembly->read; f++)
        for (size_t i = 0; i < assembly->functions[f].code.count; i++)
            add_data_row(assembly, &assembly->functions[f], i, &table);
    report_begin(report, head, "assembly_of", name);
    table_write(&table, report->format, false, report->out);
    report_end(report);
}

static void add_text_row(struct assembly *assembly, const struct asm_function *function, size_t i,
                         struct asm_line *last, struct table *table)
{
    const struct recorded_place *place = &assembly->addresses[function->first].place;
    const struct instruction *instruction = &function->code.instructions[i];
    const struct asm_row *row = &assembly->rows[function->row + i];
    struct asm_line line = {.text = last->text};
    _cleanup_buffer_ struct buffer source = {0};
    char address[24];
    find_line(assembly, place->binary, instruction->address, &line);
    bool same = last->file && line.line == last->line && !strcmp(line.file, last->file) &&
                !strcmp(line.function, last->function);
    if (*line.file && !same) {
        buffer_printf(&source, "%s:%u  ", path_base(line.file), line.line);
        buffer_add(&source, line.text.data, line.text.length);
        if (line.inlined)
            buffer_printf(&source, "%s(inlined: %s)", line.text.length ? "  " : "", line.function);
    }
    struct cell cells[] = {
        cell_number(row->flat),
        cell_percent(row->flat, assembly->report->whole),
        cell_number(row->cumulative),
        cell_percent(row->cumulative, assembly->report->whole),
        address_cell(instruction->address, address),
        instruction_cell(assembly, place, instruction),
        {.text = buffer_text(&source), .length = source.length},
    };
    table_add(table, cells);
    *last = line;
}

/* Whether one nearby has samples; `*next` is the first such at or behind the one before. */
static bool is_near(const struct assembly *assembly, const struct asm_function *function, size_t i,
                    size_t *last, size_t *next)
{
    const struct asm_row *rows = &assembly->rows[function->row];
    while (*next < function->code.count &&
           (*next < i || (!rows[*next].flat && !rows[*next].cumulative)))
        ++*next;
    if (*next == i)
        *last = i;
    return (*next < function->code.count && *next - i <= CONTEXT_INSTRUCTIONS) ||
           (*last != SIZE_MAX && i - *last <= CONTEXT_INSTRUCTIONS);
}

static void add_gap(struct table *table, size_t count)
{
    char text[64];
    snprintf(text, sizeof(text), "... %zu instructions without samples", count);
    table_add(table,
              (struct cell[]){cell_number(0), cell_percent(0, 1), cell_number(0),
                              cell_percent(0, 1), cell_text(""), cell_text(text), cell_text("")});
}

static void write_function(struct assembly *assembly, const struct asm_function *function)
{
    static const struct column columns[] = {
        {"flat", NULL, COLUMN_VALUE},   {"flat%", NULL, COLUMN_PERCENT},
        {"cum", NULL, COLUMN_VALUE},    {"cum%", NULL, COLUMN_PERCENT},
        {"address", NULL, COLUMN_NAME}, {"instruction", NULL, COLUMN_NAME},
        {"source", NULL, COLUMN_NAME},
    };
    struct report *report = assembly->report;
    const struct recorded_place *place = &assembly->addresses[function->first].place;
    const char *name = function_name(assembly, function);
    const char *path = recorded_code_path(assembly->code, place->binary);
    bool sure = *recorded_code_build_id(assembly->code, place->binary);
    const char *note = sure ? "" : " (the profile has no build ID: this may be another build)";
    struct asm_line last_line = {0};
    size_t last = SIZE_MAX, next = 0, gap = 0;
    _cleanup_table_ struct table table = {0};
    table_init(&table, columns, ARRAY_LENGTH(columns), report_unit(report));
    for (size_t i = 0; i < function->code.count; i++) {
        if (!is_near(assembly, function, i, &last, &next)) {
            gap++;
            continue;
        }
        if (gap)
            add_gap(&table, gap);
        gap = 0;
        add_text_row(assembly, function, i, &last_line, &table);
    }
    if (gap)
        add_gap(&table, gap);
    buffer_release(&last_line.text);
    text_escape_terminal(report->out, name, strlen(name));
    buffer_add_text(report->out, " in ");
    text_escape_terminal(report->out, path, strlen(path));
    buffer_printf(report->out, ", %" PRIu64 " bytes%s\n", place->size_bytes, note);
    table_write(&table, TABLE_TEXT, report->colour, report->out);
}

void assembly_write_text(struct assembly *assembly)
{
    for (size_t i = 0; i < assembly->read; i++) {
        buffer_add_text(assembly->report->out, i ? "\n" : "");
        write_function(assembly, &assembly->functions[i]);
    }
}
