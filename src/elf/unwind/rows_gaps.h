/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of code that has neither call frame information nor symbols, such as assembly in a stripped
 * library: found from anywhere inside of a function (x86_64_region_rules).
 */
#pragma once

#include "elf/unwind/rows_code.h"

/* The code in [start, end), up to *bytes_left, which is subtracted. */
void gap_rows_compile(struct elf_file *file, uint64_t start, uint64_t end, uint64_t *bytes_left,
                      const struct code_rows *rows);
