// SPDX-License-Identifier: Apache-2.0
// The rows of all units in the order of addresses, with symbols where no unit has a function.

#include "symbol/index/builder.h"

struct merge {
    struct index_builder *builder;
    struct index_groups *groups;
    struct index_run *functions; /* runs with nodes, by start, */
    size_t function_count;
    struct index_run *lines; /* and those of lines only */
    size_t line_count, line;
    uint64_t *marks; /* addresses where symbols begin or end, sorted */
    size_t mark_count, mark_capacity, mark;
    /* The last symbol, for which there is a node. */
    uint64_t symbol_start;
    const char *symbol_name;
    uint32_t symbol_node;
    bool symbol_is_named;
};

/* ---- groups ---- */

static void add_number(struct buffer *bytes, uint64_t value)
{
    char *out = buffer_reserve(bytes, 10);
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        out[length++] = (char)(value | 0x80);
    out[length++] = (char)value;
    bytes->length += length;
}

static void add_distance(struct buffer *bytes, uint32_t value, uint32_t last)
{
    add_number(bytes, symbol_index_fold((int32_t)(value - last)));
}

/* A row; one that says the same as the last is a part of it. */
static void put_row(struct merge *merge, const struct index_row *row)
{
    struct index_groups *groups = merge->groups;
    struct index_row *last = &groups->last;
    uint64_t base = merge->builder->tables.base;
    bool node = row->node != last->node, file = row->file != last->file,
         line = row->line != last->line;
    if (!node && !file && !line)
        return;
    if (row->address < base || row->address - base > SYMBOL_INDEX_CODE_MAX ||
        groups->bytes.length > UINT32_MAX - 64 || groups->row_count == UINT32_MAX)
        return;
    if (!groups->row_count || groups->in_group == SYMBOL_INDEX_ROWS_PER_GROUP) {
        array_reserve(groups->list, groups->capacity, groups->count + 1);
        groups->list[groups->count++] = (struct symbol_index_group){(uint32_t)(row->address - base),
                                                                    (uint32_t)groups->bytes.length};
        add_number(&groups->bytes, row->node);
        add_number(&groups->bytes, row->file);
        add_number(&groups->bytes, row->line);
        groups->in_group = 0;
    } else {
        add_number(&groups->bytes, (row->address - last->address) << SYMBOL_INDEX_ROW_BITS |
                                       (node ? SYMBOL_INDEX_ROW_NODE : 0) |
                                       (file ? SYMBOL_INDEX_ROW_FILE : 0) |
                                       (line ? SYMBOL_INDEX_ROW_LINE : 0));
        if (node)
            add_distance(&groups->bytes, row->node, last->node);
        if (file)
            add_distance(&groups->bytes, row->file, last->file);
        if (line)
            add_distance(&groups->bytes, row->line, last->line);
    }
    groups->in_group++;
    groups->row_count++;
    *last = *row;
}

/* ---- symbols ---- */

static int compare_marks(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void add_mark(struct merge *merge, uint64_t address)
{
    array_reserve(merge->marks, merge->mark_capacity, merge->mark_count + 1);
    merge->marks[merge->mark_count++] = address;
}

static void add_marks(struct merge *merge, const struct symbol_table *table)
{
    for (size_t i = 0; table && i < table->stretch_count; i++)
        add_mark(merge, table->stretches[i].start);
    for (size_t i = 0; table && i < table->entry_count; i++) {
        add_mark(merge, table->entries[i].start);
        add_mark(merge, table->entries[i].end);
    }
    for (size_t i = 0; table && i < table->stubs.count; i++) {
        add_mark(merge, table->stubs.list[i].start);
        add_mark(merge, table->stubs.list[i].end);
    }
    for (size_t i = 0; table && i < table->code_count; i++) {
        add_mark(merge, table->code[i].start);
        add_mark(merge, table->code[i].end);
    }
    for (uint32_t i = 0; table && i < table->go.function_count; i++) {
        struct gopclntab_function function;
        if (gopclntab_function(&table->go, i, &function)) {
            add_mark(merge, function.start);
            add_mark(merge, function.end);
        }
    }
}

/* A symbol of the debug file is better than a start that only the file has. */
static bool find_symbol(struct merge *merge, uint64_t address, struct symbol *ret_symbol)
{
    const struct index_builder *builder = merge->builder;
    struct symbol start;
    if (!index_is_code(merge->builder, address))
        return false;
    bool found = symbol_table_find(builder->symbols, address, &start);
    if (found && start.name) {
        *ret_symbol = start;
        return true;
    }
    if (builder->debug_symbols && symbol_table_find(builder->debug_symbols, address, ret_symbol) &&
        ret_symbol->name)
        return true;
    if (found)
        *ret_symbol = start;
    return found;
}

static uint32_t symbol_node(struct merge *merge, uint64_t address)
{
    struct index_tables *tables = &merge->builder->tables;
    struct symbol symbol;
    if (!find_symbol(merge, address, &symbol))
        return 0;
    if (merge->symbol_node && merge->symbol_start == symbol.start &&
        merge->symbol_name == symbol.name)
        return merge->symbol_node;
    uint32_t name = index_string(tables, symbol.name);
    uint32_t function = index_function(tables, name, index_string(tables, symbol.system_name), 0);
    merge->symbol_start = symbol.start;
    merge->symbol_name = symbol.name;
    merge->symbol_is_named = function != 0;
    return merge->symbol_node = index_add_root(tables, function, symbol.start);
}

/* ---- in order ---- */

static void count_bytes(struct index_groups *groups, const struct index_row *row, uint64_t end,
                        bool is_named)
{
    if (row->node && is_named)
        groups->named_bytes += end - row->address;
    if (row->line)
        groups->line_bytes += end - row->address;
}

/* Code from row->address to `end`, after all that was put before; symbols name what has no node. */
static void put(struct merge *merge, struct index_row row, uint64_t end)
{
    if (row.node) {
        count_bytes(merge->groups, &row, end, true);
        put_row(merge, &row);
        return;
    }
    while (row.address < end) {
        while (merge->mark < merge->mark_count && merge->marks[merge->mark] <= row.address)
            merge->mark++;
        uint64_t until =
            merge->mark < merge->mark_count ? MIN(end, merge->marks[merge->mark]) : end;
        row.node = symbol_node(merge, row.address);
        count_bytes(merge->groups, &row, until, merge->symbol_is_named);
        put_row(merge, &row);
        row.address = until;
    }
}

static void put_run(struct merge *merge, const struct index_run *run, uint64_t start, uint64_t end)
{
    struct index_run_reader reader;
    index_run_start(&merge->builder->rows, run, &reader);
    while (index_run_next(&reader)) {
        struct index_row row = reader.row;
        if (row.address >= end)
            break;
        row.address = MAX(row.address, start);
        if (row.address < reader.end)
            put(merge, row, MIN(reader.end, end));
    }
}

/* Lines of code for which no unit has a function. */
static void fill(struct merge *merge, uint64_t from, uint64_t to)
{
    while (from < to && merge->line < merge->line_count && merge->lines[merge->line].start < to) {
        const struct index_run *run = &merge->lines[merge->line];
        if (run->end > from) {
            uint64_t start = MAX(from, run->start);
            put(merge, (struct index_row){.address = from}, start);
            put_run(merge, run, start, MIN(run->end, to));
            from = MIN(run->end, to);
        }
        if (run->end > to)
            return;
        merge->line++;
    }
    put(merge, (struct index_row){.address = from}, to);
}

static int compare_runs(const void *left, const void *right)
{
    const struct index_run *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static void sort_runs(struct merge *merge)
{
    struct index_rows *rows = &merge->builder->rows;
    merge->functions = memory_zalloc(rows->run_count + 1, sizeof(*merge->functions));
    for (size_t i = 0; i < rows->run_count; i++)
        if (rows->runs[i].has_nodes)
            merge->functions[merge->function_count++] = rows->runs[i];
    merge->lines = &merge->functions[merge->function_count];
    for (size_t i = 0; i < rows->run_count; i++)
        if (!rows->runs[i].has_nodes)
            merge->lines[merge->line_count++] = rows->runs[i];
    if (merge->function_count)
        qsort(merge->functions, merge->function_count, sizeof(*merge->functions), compare_runs);
    if (merge->line_count)
        qsort(merge->lines, merge->line_count, sizeof(*merge->lines), compare_runs);
}

void index_merge(struct index_builder *builder, struct index_groups *groups)
{
    struct merge merge = {.builder = builder, .groups = groups};
    uint64_t at = builder->tables.base, last = at;
    sort_runs(&merge);
    add_marks(&merge, builder->symbols);
    add_marks(&merge, builder->debug_symbols);
    if (merge.mark_count)
        qsort(merge.marks, merge.mark_count, sizeof(*merge.marks), compare_marks);
    for (size_t i = 0; i < builder->symbols->code_count; i++)
        last = MAX(last, builder->symbols->code[i].end);
    for (size_t i = 0; i < merge.function_count; i++) {
        const struct index_run *run = &merge.functions[i];
        if (run->end <= at)
            continue;
        fill(&merge, at, run->start);
        put_run(&merge, run, MAX(at, run->start), run->end);
        at = run->end;
    }
    fill(&merge, at, last);
    put_row(&merge, &(struct index_row){.address = MAX(at, last)});
    free(merge.marks);
    free(merge.functions);
}
