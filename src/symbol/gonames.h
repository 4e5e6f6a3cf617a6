/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names out of Go's own table of functions (elf/go/gopclntab.h). It has files, lines and inlined
 * calls for all Go code, is there in stripped programs too, and costs far less to read than debug
 * information: so where it covers code, nothing else is asked.
 */
#pragma once

#include "elf/go/gopclntab.h"
#include "symbol/symbol.h"

/* Whether an address is Go code. C code that Go's linker put into its program is in the table too,
 * but only by name: other tables know more about it. An empty table contains no code. */
bool go_covers(const struct gopclntab *table, uint64_t address);

/* By address, Go's or not; the pointers live with the table. */
bool go_find(const struct gopclntab *table, uint64_t address, struct symbol *ret_symbol);
size_t go_frames(const struct gopclntab *table, uint64_t address,
                 struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX]);
