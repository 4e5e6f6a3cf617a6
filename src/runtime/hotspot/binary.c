// SPDX-License-Identifier: Apache-2.0
// Recognising HotSpot in files: see binary.h.

#include "runtime/hotspot/binary.h"

static const char *const names[HOTSPOT_SYMBOLS] = {
    [HOTSPOT_SYMBOL_STRUCTS] = "gHotSpotVMStructs",
    [HOTSPOT_SYMBOL_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
    [HOTSPOT_SYMBOL_STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
    [HOTSPOT_SYMBOL_STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
    [HOTSPOT_SYMBOL_STRUCT_TEXT] = "gHotSpotVMStructEntryTypeStringOffset",
    [HOTSPOT_SYMBOL_STRUCT_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
    [HOTSPOT_SYMBOL_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
    [HOTSPOT_SYMBOL_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
    [HOTSPOT_SYMBOL_TYPES] = "gHotSpotVMTypes",
    [HOTSPOT_SYMBOL_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
    [HOTSPOT_SYMBOL_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
    [HOTSPOT_SYMBOL_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
};

bool hotspot_binary_find(struct elf_file *file, struct hotspot_binary *ret_binary)
{
    struct hotspot_binary binary;
    for (unsigned i = 0; i < HOTSPOT_SYMBOLS; i++) {
        struct elf_symbol symbol;
        if (!elf_dynamic_symbol(file, names[i], &symbol))
            return false;
        binary.symbols[i] = symbol.address;
    }
    *ret_binary = binary;
    return true;
}
