// SPDX-License-Identifier: Apache-2.0
// Tables as text, CSV and JSON: see table.h.

#include "cli/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/json_write.h"
#include "profile/units.h"

#define RED "\033[31m"
#define BLUE "\033[34m"
#define DIM "\033[2m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

struct cell cell_percent(int64_t part, int64_t whole)
{
    return (struct cell){.real = whole ? 100.0 * (double)part / (double)whole : 0};
}

struct cell cell_text(const char *text)
{
    return (struct cell){.text = text, .length = strlen(text)};
}

void table_init(struct table *table, const struct column *columns, size_t column_count,
                const char *unit)
{
    *table = (struct table){.columns = columns, .column_count = column_count, .unit = unit};
}

void table_release(struct table *table)
{
    free(table->cells);
    arena_release(&table->text);
    *table = (struct table){0};
}

void table_add(struct table *table, const struct cell *cells)
{
    size_t first = table->row_count * table->column_count;
    array_reserve(table->cells, table->capacity, first + table->column_count);
    for (size_t i = 0; i < table->column_count; i++) {
        struct cell cell = cells[i];
        if (table->columns[i].kind == COLUMN_NAME)
            cell.text = arena_strndup(&table->text, cell.text, cell.length);
        table->cells[first + i] = cell;
    }
    table->row_count++;
}

static void format_cell(const struct table *table, const struct column *column,
                        const struct cell *cell, struct buffer *out)
{
    if (cell->unknown)
        return;
    switch (column->kind) {
    case COLUMN_CHANGE:
        units_add_change(out, &units_terminal, (double)cell->number, table->unit);
        break;
    case COLUMN_VALUE:
        units_add(out, &units_terminal, (double)cell->number, table->unit);
        break;
    case COLUMN_PERCENT:
        units_add_percent(out, &units_terminal, cell->real / 100);
        break;
    case COLUMN_COUNT:
        buffer_add_i64(out, cell->number);
        break;
    case COLUMN_RATIO:
        if (!isnan(cell->real))
            buffer_printf(out, "%.2f", cell->real);
        break;
    case COLUMN_NAME:
        text_escape_terminal(out, cell->text, cell->length);
        break;
    }
}

static void add_padding(struct buffer *out, size_t width, size_t used)
{
    for (; used < width; used++)
        buffer_add_char(out, ' ');
}

static void measure(const struct table *table, size_t *widths)
{
    _cleanup_buffer_ struct buffer text = {0};
    for (size_t i = 0; i < table->column_count; i++) {
        widths[i] = table->columns[i].title ? strlen(table->columns[i].title) : 0;
        bool last = i + 1 == table->column_count;
        for (size_t row = 0; table->columns[i].title && !last && row < table->row_count; row++) {
            text.length = 0;
            format_cell(table, &table->columns[i], &table->cells[row * table->column_count + i],
                        &text);
            size_t columns = text.length ? utf8_columns(text.data, text.length) : 0;
            widths[i] = MAX(widths[i], columns);
        }
    }
}

static void write_row(const struct table *table, const size_t *widths, const struct cell *cells,
                      bool colour, struct buffer *out)
{
    _cleanup_buffer_ struct buffer text = {0};
    bool first = true;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        if (!column->title)
            continue;
        text.length = 0;
        if (cells)
            format_cell(table, column, &cells[i], &text);
        else
            buffer_add_text(&text, column->title);
        size_t used = text.length ? utf8_columns(text.data, text.length) : 0;
        if (!first)
            buffer_add_text(out, "  ");
        first = false;
        bool name = column->kind == COLUMN_NAME;
        if (!name)
            add_padding(out, widths[i], used);
        const char *start = "";
        if (colour && !cells)
            start = BOLD;
        else if (colour && column->kind == COLUMN_CHANGE)
            start = cells[i].quiet        ? DIM
                    : cells[i].number > 0 ? RED
                    : cells[i].number < 0 ? BLUE
                                          : "";
        else if (colour && column->kind == COLUMN_PERCENT)
            start = DIM;
        buffer_add_text(out, start);
        buffer_add(out, text.data, text.length);
        buffer_add_text(out, *start ? PLAIN : "");
        if (name && i + 1 < table->column_count)
            add_padding(out, widths[i], used);
    }
    while (out->length && out->data[out->length - 1] == ' ')
        out->length--;
    buffer_add_char(out, '\n');
}

static void write_text(const struct table *table, bool colour, struct buffer *out)
{
    size_t widths[TABLE_COLUMNS_MAX];
    measure(table, widths);
    write_row(table, widths, NULL, colour, out);
    for (size_t row = 0; row < table->row_count; row++)
        write_row(table, widths, table->cells + row * table->column_count, colour, out);
}

static bool is_real(const struct column *column)
{
    return column->kind == COLUMN_PERCENT || column->kind == COLUMN_RATIO;
}

static void write_json_cell(const struct column *column, const struct cell *cell,
                            struct json_writer *json)
{
    json_write_key(json, column->key);
    if (cell->unknown)
        json_write_null(json);
    else if (column->kind == COLUMN_NAME)
        json_write_bytes(json, cell->text, cell->length);
    else if (is_real(column))
        json_write_digits(json, cell->real, 6);
    else
        json_write_signed(json, cell->number);
}

static void write_csv_cell(const struct column *column, const struct cell *cell, struct buffer *out)
{
    if (cell->unknown)
        return;
    if (column->kind == COLUMN_NAME)
        text_escape_csv(out, cell->text, cell->length);
    else if (!is_real(column))
        buffer_add_i64(out, cell->number);
    else if (!isnan(cell->real))
        buffer_printf(out, "%.6g", cell->real);
}

static void write_json(const struct table *table, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_array(&json);
    for (size_t row = 0; row < table->row_count; row++) {
        json_write_line(&json);
        json_write_object(&json);
        for (size_t i = 0; i < table->column_count; i++)
            if (table->columns[i].key)
                write_json_cell(&table->columns[i], &table->cells[row * table->column_count + i],
                                &json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
}

static void write_csv(const struct table *table, struct buffer *out)
{
    for (size_t line = 0; line <= table->row_count; line++) {
        const char *between = "";
        for (size_t i = 0; i < table->column_count; i++) {
            const struct column *column = &table->columns[i];
            if (!column->key)
                continue;
            buffer_add_text(out, between);
            between = ",";
            if (line)
                write_csv_cell(column, &table->cells[(line - 1) * table->column_count + i], out);
            else
                buffer_add_text(out, column->key);
        }
        buffer_add_char(out, '\n');
    }
}

void table_write(const struct table *table, enum table_format format, bool colour,
                 struct buffer *out)
{
    if (format == TABLE_JSON)
        write_json(table, out);
    else if (format == TABLE_CSV)
        write_csv(table, out);
    else
        write_text(table, colour, out);
}

bool table_format_parse(const char *name, enum table_format *ret_format)
{
    static const char *const names[] = {"text", "json", "csv"};
    *ret_format = TABLE_TEXT;
    for (size_t i = 0; name && i < ARRAY_LENGTH(names); i++)
        if (!strcmp(name, names[i])) {
            *ret_format = (enum table_format)i;
            return true;
        }
    return !name;
}

bool terminal_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
}

void print_buffer(const struct buffer *buffer)
{
    if (buffer->length)
        fwrite(buffer->data, 1, buffer->length, stdout);
}
