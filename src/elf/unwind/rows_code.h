/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of functions that have no call frame information, such as static programs of musl and
 * assembly: found by their symbols, with rules from their code (arch/x86_64/code.h).
 */
#pragma once

#include "elf/file.h"
#include "elf/unwind_rule.h"

struct code_rows {
    void *context;
    /* How many bytes from `start` on, up to `end`, are code that no rows are known of. */
    uint64_t (*free_bytes)(void *context, uint64_t start, uint64_t end);
    void (*put)(void *context, uint64_t start, uint32_t length, const struct unwind_rule *rule);
};

/* 0 when the rest of the file's code tells nothing: V8's is entered by jumps. Otherwise 1, or
 * -ENOMEM, when some functions are missing. */
int code_rows_compile(struct elf_file *file, const struct code_rows *rows);
