/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one ELF file, by address: from .symtab, or else from the .symtab of its separate
 * debug file, or else of the one that is packed into .gnu_debugdata, together with .dynsym. Linkage
 * stubs get the name of their target. Where no symbol has an address, the range of its unwind entry
 * (FDE) still identifies its function.
 *
 * Files lie: a symbol outside of the file's code is left out, names end within their section, and
 * an unreadable name counts as missing. A table is used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "elf/file.h"
#include "elf/go/gopclntab.h"
#include "symbol/plt.h"
#include "symbol/symbol.h"

#define SYMBOLS_BYTES_MAX (192u << 20) /* of a symbol table: 8 million symbols */
#define SYMBOL_STRINGS_MAX (1u << 30)
#define SYMBOL_NAME_MAX 65536 /* longer names are dropped */
#define SYMBOL_CODE_MAX 65536

/* A stretch of the file's code: an executable section, or a segment where there are none. */
struct symbol_code {
    uint64_t start, end;
};

struct function_symbol {
    uint64_t start, end;
    char *name;
    const char *readable; /* of the demangled name, made on demand; `name` when it is the same */
    uint8_t rank;         /* of its kind and binding; the lowest is taken first */
    bool guessed_end;     /* the symbol has no size */
};

/* From `start` on, up to the next one's start, code is in this function. */
struct symbol_stretch {
    uint64_t start;
    uint32_t function; /* SYMBOL_NONE for no function */
};

#define SYMBOL_NONE UINT32_MAX

struct symbol_table {
    struct elf_file layout; /* only its segments */
    struct function_symbol *functions;
    size_t function_count, function_capacity;
    struct symbol_stretch *stretches;
    size_t stretch_count;
    struct symbol_code *entries; /* unwind entries, by start */
    size_t entry_count, entry_capacity;
    struct symbol_code *code; /* by start */
    size_t code_count;
    struct buffer strings[3];
    size_t string_tables;
    struct plt_stubs stubs;
    struct gopclntab go; /* empty when there is no Go code */
    struct arena readable;
    bool has_debug_file;
    uint64_t limit_bytes; /* of what is read of the file */
    bool too_large;       /* something was left out for that */
};

/* `path` is where separate debug files are looked for; NULL when there shall be none. A file
 * without symbols gives a table without. */
struct symbol_table *symbol_table_new(struct elf_file *file, const char *path);
/* The same within a limit of memory: tables that would take more are left out, each as a whole. */
struct symbol_table *symbol_table_new_within(struct elf_file *file, const char *path,
                                             uint64_t limit_bytes);
/* Only where the file's code is: no names. */
struct symbol_table *symbol_table_new_code(struct elf_file *file);
void symbol_table_free(struct symbol_table *table);

/* By the file's own address; false when nothing is known. The pointers live with the table. */
bool symbol_table_find(struct symbol_table *table, uint64_t address, struct symbol *ret_symbol);
/* By offset in the file. */
bool symbol_table_find_offset(struct symbol_table *table, uint64_t offset,
                              struct symbol *ret_symbol);
/* The function, and what is inlined there, as far as tables say. Returns how many frames; 0 when
 * the address has no name. */
size_t symbol_table_frames(struct symbol_table *table, uint64_t address,
                           struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX]);
size_t symbol_table_bytes(const struct symbol_table *table);

/* ---- inside (order.c) ---- */

/* The stretch of code that an address is in. */
const struct symbol_code *symbol_code_find(const struct symbol_code *code, size_t count,
                                           uint64_t address);
/* Puts `functions` in order: one per address, each with its end; and makes the stretches. */
void symbol_table_order(struct symbol_table *table);
void symbol_code_sort(struct symbol_code *code, size_t count);

/* Whether the name reads better than another of the same rank for the same function. */
bool symbol_name_better(const char *name, const char *other);
