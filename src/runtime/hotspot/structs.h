/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables in which HotSpot describes its structures to debuggers: fields with their offsets, or
 * addresses of static ones, and sizes of types. Versions differ in what they have: a field that a
 * version doesn't have is HOTSPOT_NONE.
 */
#pragma once

#include "runtime/hotspot/binary.h"
#include "runtime/memory.h"

#define HOTSPOT_NONE UINT64_MAX

enum hotspot_field {
    /* static: where in the process */
    HOTSPOT_CACHE_HEAPS, /* an array of CodeHeap, from 9 on, */
    HOTSPOT_CACHE_HEAP,  /* or one of them */
    HOTSPOT_INTERPRETER_CODE,
    HOTSPOT_CALL_STUB,
    HOTSPOT_RELEASE,
    HOTSPOT_MAJOR_VERSION,
    /* offsets */
    HOTSPOT_ARRAY_LENGTH,
    HOTSPOT_ARRAY_DATA,
    HOTSPOT_HEAP_MEMORY,
    HOTSPOT_HEAP_SEGMENTS,
    HOTSPOT_HEAP_SHIFT,
    HOTSPOT_SPACE_LOW,
    HOTSPOT_SPACE_LIMIT,
    HOTSPOT_STUBS_BUFFER,
    HOTSPOT_STUBS_BYTES,
    HOTSPOT_BLOB_NAME,
    HOTSPOT_BLOB_SIZE,
    HOTSPOT_BLOB_FRAME_SIZE,
    HOTSPOT_BLOB_FRAME_COMPLETE,
    HOTSPOT_BLOB_CODE_BEGIN,  /* an address, */
    HOTSPOT_BLOB_CODE_OFFSET, /* or an offset */
    HOTSPOT_BLOB_DATA_OFFSET,
    HOTSPOT_BLOB_MUTABLE, /* 25 on: data elsewhere, */
    HOTSPOT_BLOB_MUTABLE_SIZE,
    HOTSPOT_BLOB_RELOCATION_SIZE, /* behind this many bytes */
    HOTSPOT_NMETHOD_METHOD,
    HOTSPOT_COMPILED_METHOD, /* the same, 9 to 22 */
    HOTSPOT_NMETHOD_COMPILE_ID,
    HOTSPOT_NMETHOD_ORIGINAL_PC,
    HOTSPOT_COMPILED_DEOPT,     /* an address, */
    HOTSPOT_NMETHOD_DEOPT,      /* or an offset, */
    HOTSPOT_NMETHOD_DEOPTIMIZE, /* in 8 under another name */
    HOTSPOT_COMPILED_SCOPES,    /* an address, */
    HOTSPOT_NMETHOD_SCOPES,     /* or an offset */
    HOTSPOT_NMETHOD_PCS,
    HOTSPOT_NMETHOD_DEPENDENCIES,
    HOTSPOT_NMETHOD_METADATA,
    HOTSPOT_NMETHOD_IMMUTABLE, /* 23 on */
    HOTSPOT_NMETHOD_IMMUTABLE_SIZE,
    HOTSPOT_METHOD_CONST,
    HOTSPOT_CONST_CONSTANTS,
    HOTSPOT_CONST_SIZE,
    HOTSPOT_CONST_FLAGS,
    HOTSPOT_CONST_NEW_FLAGS, /* 21 on */
    HOTSPOT_CONST_CODE_SIZE,
    HOTSPOT_CONST_NAME,
    HOTSPOT_POOL_TAGS,
    HOTSPOT_POOL_HOLDER,
    HOTSPOT_POOL_LENGTH,
    HOTSPOT_POOL_SOURCE,
    HOTSPOT_CLASS_SOURCE, /* the same, before 15 */
    HOTSPOT_CLASS_NAME,
    HOTSPOT_SYMBOL_LENGTH,
    HOTSPOT_SYMBOL_BODY,
    /* sizes */
    HOTSPOT_BLOCK_BYTES,
    HOTSPOT_CONST_BYTES,
    HOTSPOT_POOL_BYTES,
    HOTSPOT_FIELDS,
};

struct hotspot_structs {
    uint64_t value[HOTSPOT_FIELDS];
    uint8_t bytes[HOTSPOT_FIELDS]; /* of a field whose type has 1 or 2 of them; else 0 */
};

/* Reads the tables in a process. `bias` is what to add to the file's addresses. False when they
 * cannot be read: the machine is just being loaded, or is something else. */
bool hotspot_structs_read(const struct hotspot_binary *binary, uint64_t bias,
                          const struct runtime_memory *memory, struct hotspot_structs *ret_structs);

static inline bool hotspot_has(const struct hotspot_structs *structs, enum hotspot_field field)
{
    return structs->value[field] != HOTSPOT_NONE;
}
