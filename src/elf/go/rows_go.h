/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go functions as a source of unwind rows: Go writes no call frame information, but its own table
 * says for each address how far the stack pointer has moved (gopclntab.h). docs/formats/
 * unwind-rows.md, "Go", says what is made of it, and what happens where Go changes stacks.
 */
#pragma once

#include "elf/file.h"
#include "elf/unwind_rule.h"

struct go_rows;

/* NULL when the file has no Go code, or none that can be understood. The file must outlive it. */
struct go_rows *go_rows_new(struct elf_file *file);
void go_rows_free(struct go_rows *go);

uint32_t go_rows_count(const struct go_rows *go);
/* The code of a function, by number in ascending order; false for what has no rows. */
bool go_rows_range(struct go_rows *go, uint32_t number, uint64_t *ret_start, uint64_t *ret_end);

/* Calls `put` for each stretch of the function, in ascending order: from `start` on, the rule
 * holds. */
typedef void (*go_rows_put_fn)(void *context, uint64_t start, struct unwind_rule rule);
void go_rows_compile(struct go_rows *go, uint32_t number, go_rows_put_fn put, void *context);
