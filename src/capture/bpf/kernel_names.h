/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the kernel's addresses from the kernel itself, one at a time: where BPF can be used,
 * that costs a microsecond each instead of fifty milliseconds for the whole of /proc/kallsyms, and
 * no memory. Used by one thread at a time.
 */
#pragma once

#include "symbol/naming/symbolizer.h"
#include "symbol/symbol.h"

struct kernel_names;

/* NULL when this kernel or this user can't. */
struct kernel_names *kernel_names_new(void);
void kernel_names_free(struct kernel_names *names); /* takes NULL */

/* A symbolizer_kernel_fn. What the symbol points to lives until the next call. */
bool kernel_names_find(void *names, uint64_t address, struct symbol *ret_symbol);

/* "function+0x12/0x340 [module]", as the kernel prints it, cut into pieces in place. */
bool kernel_names_parse(char *text, uint64_t address, struct symbol *ret_symbol);
