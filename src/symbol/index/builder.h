/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of making a symbol index. Debug information is read unit by unit: the functions of a unit
 * and what is inlined in them become stretches of code (index_unit.c), those and its line table
 * become rows (index_lines.c), which are packed at once. At the end rows of all units are put in
 * the order of addresses, symbols fill what is left (index_merge.c), and the file is put together
 * (index_write.c). So what is in memory is the index twice, and one unit.
 */
#pragma once

#include "base/buffer.h"
#include "base/idtable.h"
#include "elf/dwarf/line.h"
#include "elf/dwarf/ranges.h"
#include "symbol/index/build.h"
#include "symbol/index/index.h"
#include "symbol/table.h"

/* ---- strings, functions, files, nodes (index_tables.c) ---- */

struct index_tables {
    struct buffer strings;
    struct id_table string_index; /* hash -> offset */
    struct symbol_index_function *functions;
    size_t function_count, function_capacity;
    struct id_table function_index;
    uint32_t *files;
    size_t file_count, file_capacity;
    struct id_table file_index;
    struct buffer text;

    /* Linkage names that were made readable: many entries have the same. */
    struct id_table readable_index;
    struct readable_name {
        uint32_t system_name, name;
    } * readable;
    size_t readable_count, readable_capacity;

    /* Nodes, packed as they are in the file. */
    uint64_t base;
    struct buffer nodes;
    uint32_t *node_groups;
    size_t node_group_count, node_group_capacity;
    uint32_t node_count, inlined_count;
    uint32_t last_file, last_line; /* in the group */
    uint64_t last_start;
    bool is_full; /* some table has as many as numbers can tell */
};

void index_tables_init(struct index_tables *tables, uint64_t base);
void index_tables_release(struct index_tables *tables);

/* The offset of a text; 0 for none, or for one that is too long. */
uint32_t index_string(struct index_tables *tables, const char *text);
/* By offsets of strings; 0 without a name. */
uint32_t index_function(struct index_tables *tables, uint32_t name, uint32_t system_name,
                        uint32_t start_line);
/* By the linkage name, which is made readable; `otherwise` is the name when that can't be. */
uint32_t index_linked_function(struct index_tables *tables, const char *linkage_name,
                               const char *otherwise, uint32_t start_line);
/* A file by its parts, of which the first may be NULL: the same in all its spellings. */
uint32_t index_file(struct index_tables *tables, const char *compiler_folder, const char *folder,
                    const char *name);

/* A function of its own, and one that is inlined into another. 0 when the table is full. */
uint32_t index_add_root(struct index_tables *tables, uint32_t function, uint64_t start);
uint32_t index_add_inlined(struct index_tables *tables, uint32_t parent, uint32_t function,
                           uint32_t file, uint32_t line);

/* ---- rows (index_rows.c) ---- */

struct index_row {
    uint64_t address;
    uint32_t node, file, line;
};

/* Rows of code without a gap, packed. */
struct index_run {
    uint64_t start, end;
    uint64_t offset; /* in the rows' bytes */
    bool has_nodes;  /* all rows have one, or none has */
};

struct index_rows {
    struct buffer bytes;
    struct index_run *runs;
    size_t run_count, run_capacity;
    struct index_row last; /* of the run that is being added to */
    bool is_open;
};

/* Code from row->address to `end`, after all that was added since index_rows_close. */
void index_rows_add(struct index_rows *rows, const struct index_row *row, uint64_t end);
/* Ends the run. */
void index_rows_close(struct index_rows *rows);
void index_rows_release(struct index_rows *rows);

/* Reading a run again: false at its end. */
struct index_run_reader {
    struct cursor cursor;
    struct index_row row, next;
    uint64_t end; /* of the row's code */
    uint64_t run_end;
};
void index_run_start(const struct index_rows *rows, const struct index_run *run,
                     struct index_run_reader *ret_reader);
bool index_run_next(struct index_run_reader *reader);

/* ---- units ---- */

/* Some file's debug information. */
struct index_file_units {
    struct debug_sections sections;
    uint64_t *starts; /* of its units, sorted */
    size_t count, capacity;
};

/* A function that has code, or an inlined copy of one. */
struct index_scope {
    const uint8_t *place; /* of the entry that names it */
    uint64_t start;
    uint32_t parent; /* scope that it is inlined into; 0 for none */
    uint32_t root;   /* scope that all of these are inlined into, or itself */
    uint32_t call_file, call_line;
    uint32_t node; /* once it has one */
    uint16_t depth;
    bool is_resolved; /* a node was asked for */
};

/* The scopes of a unit's functions: entries of functions, types and namespaces. */
struct index_contexts {
    const uint8_t *unit; /* its first byte */
    struct index_context {
        const uint8_t *place;
        uint32_t parent; /* counted from 1; 0: the unit */
        uint16_t tag;
    } * list; /* in the order of places */
    size_t count, capacity;
};

void index_contexts_start(struct index_contexts *contexts, const struct debug_unit *unit);
/* *context is what the entry is in, and becomes what its children are in. (index_names.c) */
void index_contexts_add(struct index_contexts *contexts,
                        const struct debug_abbreviation *abbreviation, const uint8_t *place,
                        uint32_t *context);

struct index_stretch {
    uint64_t start, end;
    uint32_t scope;
};

struct index_builder {
    struct index_tables tables;
    struct index_rows rows;
    struct symbol_table *symbols;       /* of the file */
    struct symbol_table *debug_symbols; /* of its debug file, or NULL */
    const struct symbol_code *last_code;
    const uint64_t *wanted; /* restricts the result to these addresses, sorted; NULL for all */
    size_t wanted_count;

    struct debug_abbreviation_cache abbreviations;
    struct index_file_units main, shared; /* the other one is what dwz put into a file of its own */
    struct debug_sections package;
    uint64_t unit_count, missing_units;
    unsigned context_depth;
    uint64_t
        context_budget; /* bytes that may be read again to find what functions are members of */
    struct index_contexts contexts, other_contexts; /* of the unit, and of the last other one */

    /* Of the unit that is being read; all are used again. */
    struct debug_unit unit;    /* whose entries are read */
    struct debug_unit program; /* whose lines count: the same, or what it was split from */
    struct debug_lines lines;
    struct debug_range_list ranges;
    struct index_scope *scopes; /* from 1 */
    size_t scope_count, scope_capacity;
    struct index_stretch *claims; /* ranges of all scopes */
    size_t claim_count, claim_capacity;
    struct index_stretch *stretches; /* in order, none overlaps another */
    size_t stretch_count, stretch_capacity;
    uint32_t *files; /* numbers of the unit's files, from 1; 0 is not known yet */
    size_t files_capacity;

    /* Functions that were named, by where their entries are. */
    struct id_table named_index;
    struct named_entry {
        const uint8_t *place;
        uint32_t function;
    } * named;
    size_t named_count, named_capacity;

    struct id_table chain_index; /* of Go's inlined functions (index_go.c) */
    struct index_chain *chains;
    size_t chain_count, chain_capacity;
    uint32_t sources;
};

bool index_is_code(struct index_builder *builder, uint64_t address);
/* The next wanted address, `from` included; UINT64_MAX at the end. */
uint64_t index_next_wanted(const struct index_builder *builder, uint64_t from);

/* Lists the units of a file. (index_unit.c) */
void index_list_units(struct index_file_units *file);
/* Finds the functions of builder->unit: scopes and stretches. */
void index_read_functions(struct index_builder *builder);
/* The function of an entry: its number, 0 when it has no name. (index_names.c) */
uint32_t index_name_entry(struct index_builder *builder, const uint8_t *place);
/* The same function by its symbol, where that says more. */
uint32_t index_name_by_symbol(struct index_builder *builder, uint32_t number, uint64_t start);
/* The entry that an entry of builder->unit has all its names from; NULL when it has its own, or a
 * line of its own: a method is declared in one place and defined in another. */
const uint8_t *index_named_place(const struct index_builder *builder,
                                 const struct debug_function *function);
/* Adds the rows of the unit, by its stretches and its line table. (index_lines.c) */
void index_add_unit_rows(struct index_builder *builder);
/* Adds rows of all Go code. (index_go.c) */
void index_add_go(struct index_builder *builder);

/* ---- the end ---- */

/* The finished rows, in groups. (index_merge.c) */
struct index_groups {
    struct symbol_index_group *list;
    size_t count, capacity;
    struct buffer bytes;
    struct index_row last;
    uint32_t in_group, row_count;
    uint64_t named_bytes, line_bytes;
};

void index_merge(struct index_builder *builder, struct index_groups *groups);
void index_write(const struct index_builder *builder, const struct index_groups *groups,
                 struct elf_file *file, struct buffer *ret_index);
