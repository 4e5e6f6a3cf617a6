/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child that reads DWARF: its request is a sorted array of addresses in the file's own terms,
 * each once; its files are the one with the debug information, and the one that this shares parts
 * with others in (dwz), where there is one; its answer is in the form of dwarf_answer.h.
 */
#pragma once

#include "symbol/confined.h"

enum { DWARF_FILE, DWARF_ALTERNATE };

extern const struct confined_program dwarf_program;
