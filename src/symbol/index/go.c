// SPDX-License-Identifier: Apache-2.0
// Symbols of Go code from Go's own table (elf/go/gopclntab.h), which has files, lines and inlined
// functions and exists in stripped programs too. Where it covers code, no other source is used.

#include "symbol/gonames.h"
#include "symbol/index/builder.h"

/* A node that was made for some place of a function, to be used again. */
struct index_chain {
    uint32_t parent, function, file, line, node;
};

static uint32_t inlined_node(struct index_builder *builder, const struct index_chain *wanted)
{
    uint64_t hash = hash_word(((uint64_t)wanted->parent << 32 | wanted->function) ^
                              hash_word((uint64_t)wanted->file << 32 | wanted->line));
    struct id_probe probe = id_probe_start(hash);
    uint32_t i;
    while ((i = id_table_next(&builder->chain_index, &probe)) != ID_NONE) {
        const struct index_chain *chain = &builder->chains[i];
        if (chain->parent == wanted->parent && chain->function == wanted->function &&
            chain->file == wanted->file && chain->line == wanted->line)
            return chain->node;
    }
    array_reserve(builder->chains, builder->chain_capacity, builder->chain_count + 1);
    builder->chains[builder->chain_count] = *wanted;
    builder->chains[builder->chain_count].node = index_add_inlined(
        &builder->tables, wanted->parent, wanted->function, wanted->file, wanted->line);
    id_table_insert(&builder->chain_index, hash, (uint32_t)builder->chain_count);
    return builder->chains[builder->chain_count++].node;
}

static uint32_t frame_function(struct index_builder *builder, const struct symbol_frame *frame)
{
    return index_function(&builder->tables, index_string(&builder->tables, frame->name), 0,
                          frame->start_line);
}

/* The row of an address. *root is the function's own node, once there is one. */
static void set_row(struct index_builder *builder, const struct gopclntab_function *function,
                    uint64_t address, uint32_t *root, struct index_row *row)
{
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    size_t count = go_frames(&builder->symbols->go, address, frames);
    if (!count)
        return;
    if (!*root)
        *root = index_add_root(&builder->tables, frame_function(builder, &frames[count - 1]),
                               function->start);
    uint32_t node = *root;
    for (size_t i = count - 1; i-- > 0 && node;) {
        struct index_chain inlined = {
            .parent = node,
            .function = frame_function(builder, &frames[i]),
            .file = index_file(&builder->tables, NULL, NULL, frames[i + 1].file),
            .line = frames[i + 1].line,
        };
        node = inlined_node(builder, &inlined);
    }
    row->node = node;
    row->file = index_file(&builder->tables, NULL, NULL, frames[0].file);
    row->line = frames[0].line;
}

static void add_function(struct index_builder *builder, const struct gopclntab_function *function)
{
    const struct gopclntab *table = &builder->symbols->go;
    const uint32_t values[] = {function->file_values, function->line_values,
                               function->inline_values};
    struct gopclntab_run runs[ARRAY_LENGTH(values)];
    bool is_open[ARRAY_LENGTH(values)];
    uint32_t root = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        if (values[i])
            gopclntab_run_start(&runs[i], table, function, values[i]);
        is_open[i] = values[i] && gopclntab_run_next(&runs[i]);
    }
    for (uint64_t at = function->start; at < function->end;) {
        uint64_t end = function->end;
        for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
            while (is_open[i] && runs[i].end <= at)
                is_open[i] = gopclntab_run_next(&runs[i]);
            if (is_open[i])
                end = MIN(end, runs[i].start > at ? runs[i].start : runs[i].end);
        }
        struct index_row row = {.address = at};
        set_row(builder, function, at, &root, &row);
        if (row.node)
            index_rows_add(&builder->rows, &row, end);
        at = end;
    }
}

void index_add_go(struct index_builder *builder)
{
    const struct gopclntab *table = &builder->symbols->go;
    for (uint32_t i = 0; i < table->function_count; i++) {
        struct gopclntab_function function;
        /* C code that Go's linker put in has only a name there: others know more. */
        if (!gopclntab_function(table, i, &function) || !function.file_values ||
            !function.name[0] || !index_is_code(builder, function.start))
            continue;
        function.end = MIN(function.end, builder->last_code->end);
        add_function(builder, &function);
        builder->sources |= SYMBOL_INDEX_FROM_GO;
    }
    index_rows_close(&builder->rows);
}
