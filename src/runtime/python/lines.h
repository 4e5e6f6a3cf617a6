/* SPDX-License-Identifier: Apache-2.0 */
/* CPython's tables of lines, of which there are three forms: before 3.10, 3.10, and from 3.11 on.
 * Code beyond PYTHON_LINES_MAX stretches of a table has no line. */
#pragma once

#include "runtime/python/code.h"

/* Returns how many stretches; units are of two bytes of bytecode. */
size_t python_lines_decode(unsigned minor, const uint8_t *table, size_t length, uint32_t first_line,
                           struct runtime_line ret_lines[PYTHON_LINES_MAX]);
