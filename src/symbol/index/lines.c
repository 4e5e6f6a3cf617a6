// SPDX-License-Identifier: Apache-2.0
// The rows of a unit: its functions' stretches of code together with its line table.

#include "symbol/index/builder.h"

static bool is_code(void *context, uint64_t address)
{
    return index_is_code(context, address);
}

static int compare_sequences(const void *left, const void *right)
{
    const struct debug_line_sequence *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* ---- files ---- */

/* The name of where the compiler ran, which other names are relative to. */
static const char *compiler_folder(const struct index_builder *builder)
{
    const char *folder =
        debug_value_string(&builder->program, &builder->program.folder, &builder->shared.sections);
    if (!folder)
        folder =
            debug_value_string(&builder->unit, &builder->unit.folder, &builder->shared.sections);
    return folder;
}

static uint32_t file_number(struct index_builder *builder, uint64_t file)
{
    const struct debug_lines *lines = &builder->lines;
    if (file >= lines->file_count)
        return 0;
    if (!builder->files[file]) {
        const struct debug_line_file *found = &lines->files[file];
        const char *folder =
            found->folder < lines->folder_count ? lines->folders[found->folder] : NULL;
        const char *name = found->name;
        /* Before DWARF 5, 0 is the unit itself. */
        if (!file && lines->version < 5)
            name = debug_value_string(&builder->program, &builder->program.name,
                                      &builder->shared.sections);
        builder->files[file] =
            index_file(&builder->tables, compiler_folder(builder), folder, name) + 1;
    }
    return builder->files[file] - 1;
}

static void read_lines(struct index_builder *builder)
{
    struct debug_lines *lines = &builder->lines;
    debug_lines_read(lines, &builder->program, &builder->shared.sections, is_code, builder);
    array_reserve(builder->files, builder->files_capacity, lines->file_count + 1);
    memset(builder->files, 0, (lines->file_count + 1) * sizeof(*builder->files));
    if (lines->sequence_count)
        qsort(lines->sequences, lines->sequence_count, sizeof(*lines->sequences),
              compare_sequences);
}

/* ---- nodes ---- */

/* The node of a scope that has code; the nodes that it is inlined into come first. */
static uint32_t scope_node(struct index_builder *builder, uint32_t number)
{
    uint32_t chain[SYMBOL_FRAMES_MAX];
    size_t count = 0;
    for (uint32_t at = number; at && !builder->scopes[at].is_resolved && count < SYMBOL_FRAMES_MAX;
         at = builder->scopes[at].parent)
        chain[count++] = at;
    while (count) {
        struct index_scope *scope = &builder->scopes[chain[--count]];
        uint32_t parent = scope->parent ? builder->scopes[scope->parent].node : 0;
        uint32_t function = index_name_entry(builder, scope->place);
        scope->is_resolved = true;
        /* A part without a name belongs to the function around it; within a function without a
         * name, the symbols decide. */
        if (!function || (scope->parent && !parent))
            scope->node = parent;
        else if (scope->parent)
            scope->node =
                index_add_inlined(&builder->tables, parent, function,
                                  file_number(builder, scope->call_file), scope->call_line);
        else
            scope->node =
                index_add_root(&builder->tables,
                               index_name_by_symbol(builder, function, scope->start), scope->start);
    }
    return number ? builder->scopes[number].node : 0;
}

/* ---- both together ---- */

/* Rows and stretches from an address on. */
struct sweep {
    size_t sequence, row, stretch;
    uint64_t at;
};

/* The line at an address that isn't below the last one; *ret_end is how far it goes. */
static void line_at(struct index_builder *builder, struct sweep *sweep, struct index_row *row,
                    uint64_t *ret_end)
{
    const struct debug_lines *lines = &builder->lines;
    while (sweep->sequence < lines->sequence_count &&
           lines->sequences[sweep->sequence].end <= sweep->at) {
        sweep->sequence++;
        sweep->row = 0;
    }
    if (sweep->sequence == lines->sequence_count)
        return;
    const struct debug_line_sequence *sequence = &lines->sequences[sweep->sequence];
    if (sequence->start > sweep->at) {
        *ret_end = MIN(*ret_end, sequence->start);
        return;
    }
    const struct debug_line_row *rows = &lines->rows[sequence->first];
    while (sweep->row + 1 < sequence->count && rows[sweep->row + 1].address <= sweep->at)
        sweep->row++;
    row->file = file_number(builder, rows[sweep->row].file);
    row->line = rows[sweep->row].line;
    *ret_end = MIN(*ret_end,
                   sweep->row + 1 < sequence->count ? rows[sweep->row + 1].address : sequence->end);
}

static void function_at(struct index_builder *builder, struct sweep *sweep, struct index_row *row,
                        uint64_t *ret_end)
{
    while (sweep->stretch < builder->stretch_count &&
           builder->stretches[sweep->stretch].end <= sweep->at)
        sweep->stretch++;
    if (sweep->stretch == builder->stretch_count)
        return;
    const struct index_stretch *stretch = &builder->stretches[sweep->stretch];
    if (stretch->start > sweep->at) {
        *ret_end = MIN(*ret_end, stretch->start);
        return;
    }
    row->node = scope_node(builder, stretch->scope);
    *ret_end = MIN(*ret_end, stretch->end);
}

void index_add_unit_rows(struct index_builder *builder)
{
    struct sweep sweep = {0};
    read_lines(builder);
    while ((sweep.at = index_next_wanted(builder, sweep.at)) != UINT64_MAX) {
        struct index_row row = {.address = sweep.at};
        uint64_t end = UINT64_MAX;
        line_at(builder, &sweep, &row, &end);
        function_at(builder, &sweep, &row, &end);
        if (end == UINT64_MAX)
            break;
        if (row.node || row.file || row.line)
            index_rows_add(&builder->rows, &row, end);
        sweep.at = end;
    }
    index_rows_close(&builder->rows);
}
