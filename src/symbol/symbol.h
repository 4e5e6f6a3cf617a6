/* SPDX-License-Identifier: Apache-2.0 */
/* What an address is called. */
#pragma once

#include <stdint.h>

/* The pointers belong to what gave them: a table, or the symbolizer that holds it. */
struct symbol {
    const char *name;        /* for people; NULL when only the start is known */
    const char *system_name; /* the linker's; NULL when it is the same */
    const char *module;      /* the kernel's module; NULL for the rest */
    uint64_t start;          /* address of the function's first instruction, in the file's terms */
    uint64_t size_bytes;
    uint64_t distance; /* of what was looked up from the start */
};
