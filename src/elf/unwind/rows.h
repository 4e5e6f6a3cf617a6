/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's call frame information, compiled into rows that can be searched in a few steps, in the
 * kernel too: see unwind_rule.h and docs/formats/unwind-rows.md. Addresses are the file's own
 * (`elf_load_bias` gives what to subtract from a process's).
 *
 * Many files share one table of rules. It only grows, so a rule's number stays good; who compiles
 * from several threads locks it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/idtable.h"
#include "elf/cfi/ehframe.h"
#include "elf/file.h"
#include "elf/unwind_rule.h"

/* ---- rules ---- */

struct unwind_rules {
    struct unwind_rule *rules;
    size_t count;
    size_t capacity;
    struct id_table index;
    uint64_t rejected; /* rules beyond UNWIND_RULES_MAX, which became UNSUPPORTED */
};

void unwind_rules_init(struct unwind_rules *rules);
void unwind_rules_release(struct unwind_rules *rules);
#define _cleanup_rules_ _cleanup_(unwind_rules_release)

/* The number of a rule, which is added if it is new. */
uint16_t unwind_rules_add(struct unwind_rules *rules, struct unwind_rule rule);

/* ---- rows ---- */

/* Code further than this from the file's first is left out, and counted: 4 GiB of code. */
#define UNWIND_PAGES_MAX (1u << 20)
#define UNWIND_CODE_MAX 16                   /* executable segments; real files have one or two */
#define UNWIND_FRAMES_BYTES_MAX (512u << 20) /* of .eh_frame or .debug_frame */

/* An FDE's range: a function, or a part of one that the compiler put elsewhere. */
struct unwind_function {
    uint32_t start; /* distance from the first page's address */
    uint32_t length;
};

struct unwind_rows {
    uint64_t first_page; /* address >> UNWIND_PAGE_SHIFT */
    uint32_t page_count;
    uint32_t row_count;
    uint32_t *pages; /* page_count + 1: the index of each page's first row. A page without rows has
                        no unwind information at all. */
    struct unwind_row *rows;           /* each page's begin with offset 0 */
    struct unwind_function *functions; /* by start */
    uint32_t function_count;

    /* Entries that could not be used, as a measure of quality. */
    uint64_t bad_entries;      /* of the section; their code has no rows */
    uint64_t bad_programs;     /* the rest of these functions is UNSUPPORTED */
    uint64_t outside;          /* functions where the file has no code, or beyond the limit */
    uint64_t unsupported_rows; /* stretches of code whose rule can't be said */
};

/* A stretch of addresses. */
struct unwind_code {
    uint64_t start;
    uint64_t end;
};

/*
 * Compiles .eh_frame, what .debug_frame has beyond it, and the linkage stubs that have neither. A
 * file without any gives rows with no pages and no error. Damage is counted above and costs only
 * the functions it is in.
 */
int unwind_rows_compile(struct elf_file *file, struct unwind_rules *rules,
                        struct unwind_rows *ret_rows, struct error *error);

/* The same from sections' bytes; those named first win where two have the same code. `code` is
 * where code can be at all, which keeps rows in proportion to it. */
int unwind_rows_compile_sections(const struct frame_section *sections, size_t section_count,
                                 const struct unwind_code *code, size_t code_count,
                                 struct unwind_rules *rules, struct unwind_rows *ret_rows,
                                 struct error *error);
void unwind_rows_release(struct unwind_rows *rows);
#define _cleanup_rows_ _cleanup_(unwind_rows_release)

/* The number of the rule at an address; UNWIND_RULE_NONE where there is none. */
uint16_t unwind_rows_find(const struct unwind_rows *rows, uint64_t address);

/* The function that an address is in, by its FDE: for naming stripped code. */
bool unwind_rows_function(const struct unwind_rows *rows, uint64_t address, uint64_t *ret_start,
                          uint64_t *ret_end);

/* Memory of the rows, the page directory and the functions. */
size_t unwind_rows_bytes(const struct unwind_rows *rows);
