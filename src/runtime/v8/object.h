/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of V8 in the memory of another process. Pointers to them have a tag of 1. */
#pragma once

#include "runtime/memory.h"
#include "runtime/v8/binary.h"

#define V8_STRING_KIND_MASK 7u /* of a string's type */
#define V8_STRING_ONE_BYTE 8u
#define V8_STRING_UNCACHED 16u /* external: its text has to be asked for */
enum {
    V8_STRING_FLAT = 0,
    V8_STRING_JOINED = 1,
    V8_STRING_EXTERNAL = 2,
    V8_STRING_SLICED = 3,
    V8_STRING_THIN = 5
};
#define V8_STRING_FIRST 16u /* joined: its parts; sliced: what it is of; thin: the real one */
#define V8_STRING_SECOND                                                                           \
    24u /* joined: the other part; sliced: where it begins, a small integer                        \
         */

struct v8_objects {
    const struct v8_binary *binary;
    const struct runtime_memory *memory;
};

/* A field of an object; 0 where there is none. */
static inline uint64_t v8_load(const struct v8_objects *objects, uint64_t object, uint64_t offset)
{
    return (object & 3) == 1 ? runtime_read_word(objects->memory, object - 1 + offset) : 0;
}

/* 0xffff: not an object. */
static inline uint32_t v8_type_of(const struct v8_objects *objects, uint64_t object)
{
    uint64_t map = v8_load(objects, object, 0);
    uint16_t type;
    if ((map & 3) != 1 || !runtime_read(objects->memory, map - 1 + objects->binary->walk.map_type,
                                        &type, sizeof(type)))
        return 0xffff;
    return type;
}
