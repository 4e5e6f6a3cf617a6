/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that holds the HotSpot virtual machine, libjvm.so: recognised by the dynamic symbols of
 * the tables in which it describes itself to debuggers.
 */
#pragma once

#include "elf/file.h"

enum hotspot_symbol {
    HOTSPOT_SYMBOL_STRUCTS,
    HOTSPOT_SYMBOL_STRUCT_STRIDE,
    HOTSPOT_SYMBOL_STRUCT_TYPE,
    HOTSPOT_SYMBOL_STRUCT_FIELD,
    HOTSPOT_SYMBOL_STRUCT_TEXT, /* the field's type */
    HOTSPOT_SYMBOL_STRUCT_STATIC,
    HOTSPOT_SYMBOL_STRUCT_OFFSET,
    HOTSPOT_SYMBOL_STRUCT_ADDRESS,
    HOTSPOT_SYMBOL_TYPES,
    HOTSPOT_SYMBOL_TYPE_STRIDE,
    HOTSPOT_SYMBOL_TYPE_NAME,
    HOTSPOT_SYMBOL_TYPE_SIZE,
    HOTSPOT_SYMBOLS,
};

struct hotspot_binary {
    uint64_t symbols[HOTSPOT_SYMBOLS]; /* file addresses */
};

/* False when the file has no such machine. */
bool hotspot_binary_find(struct elf_file *file, struct hotspot_binary *ret_binary);
