/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running kernel's functions and its modules', as /proc/kallsyms lists them. It has no sizes: a
 * function goes on to the next symbol, or to the end of the page after its start where that one is
 * another module's. Used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "symbol/symbol.h"

#define KERNEL_TEXT_MAX (512u << 20) /* of kallsyms; a kernel with all modules has 30 MiB */

struct kernel_symbols;

/* The function that a symbol belongs to. The padding before a function has its name with __pfx_
 * before it. Padding never runs: a caller there is a function that was interrupted at its first
 * instruction, looked up a byte before the address, as all callers are. */
static inline const char *kernel_function_name(const char *symbol)
{
    static const char padding[] = "__pfx_";
    size_t length = sizeof(padding) - 1;
    return !strncmp(symbol, padding, length) && symbol[length] ? symbol + length : symbol;
}

/* -EPERM when the kernel hides the addresses (kptr_restrict), as it does from most users. */
int kernel_symbols_load(const char *path, struct kernel_symbols **ret_symbols, struct error *error);
int kernel_symbols_parse(const char *text, size_t length, struct kernel_symbols **ret_symbols,
                         struct error *error);
void kernel_symbols_free(struct kernel_symbols *symbols);

bool kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address,
                         struct symbol *ret_symbol);
size_t kernel_symbols_count(const struct kernel_symbols *symbols);
