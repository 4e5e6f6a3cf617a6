/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading DWARF with libdw, in a confined child only (confined.h): the library is not made for
 * hostile files. Nothing here checks for damage beyond what the library does, and nothing has to.
 *
 * Only units whose ranges have a wanted address are touched. The entries of such a unit are walked
 * once for all wanted addresses in it, and of functions without one nothing but the range is read.
 */
#pragma once

#include <elfutils/libdw.h>

#include "symbol/dwarf_answer.h"

/* A function that some wanted addresses are in: a subprogram, or an inlined copy in another. */
struct dwarf_scope {
    Dwarf_Die die;
    uint32_t parent; /* that it is inlined into; 0 for a subprogram */
    uint32_t root;   /* the subprogram that it is in; itself for one */
    uint64_t bytes;  /* of a subprogram's code */
};

/* The functions of wanted addresses in one unit. */
struct dwarf_unit {
    const uint64_t *addresses; /* all that are wanted of the file, sorted */
    size_t address_count;
    uint32_t *wanted; /* those in this unit: indexes, sorted */
    size_t wanted_count, wanted_capacity;
    uint32_t *scope_of; /* of wanted[i]: the innermost function so far; 0 is none */
    size_t scope_of_capacity;
    struct dwarf_scope *scopes; /* from 1 */
    size_t scope_count, scope_capacity;
};

/* Finds the unit's wanted addresses, those that have no answer yet; false when there are none. */
bool dwarf_unit_wants(struct dwarf_unit *unit, Dwarf_Die *unit_die, const bool *answered);
/* Finds their functions. */
void dwarf_unit_walk(struct dwarf_unit *unit, Dwarf_Die *unit_die);
void dwarf_unit_release(struct dwarf_unit *unit);

/* ---- names (dwarf_name.c) ---- */

struct dwarf_name {
    const char *readable;    /* NULL when there is none */
    const char *system_name; /* NULL when there is none or it is the same */
    uint32_t start_line;
};

/* `text` holds the readable name and lives until the next call. */
void dwarf_name_of(Dwarf_Die *function, struct buffer *text, struct dwarf_name *ret_name);

/* ---- files (dwarf_file.c) ---- */

/* The file's DWARF, with sections inflated that the library can't inflate itself. NULL when there
 * is none that can be read. The child's end releases it. */
Dwarf *dwarf_file_open(int fd);
