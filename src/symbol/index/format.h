/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a symbol index, as docs/formats/symbol-index.md specifies it: what its writer and
 * its reader share. Numbers are little-endian. */
#pragma once

#include <stdint.h>

#define SYMBOL_INDEX_MAGIC "assaysym"
#define SYMBOL_INDEX_MAGIC_BYTES                                                                   \
    {                                                                                              \
        'a', 's', 's', 'a', 'y', 's', 'y', 'm'                                                     \
    }
#define SYMBOL_INDEX_VERSION 2
#define SYMBOL_INDEX_ID_MAX 128

#define SYMBOL_INDEX_ROWS_PER_GROUP 12
#define SYMBOL_INDEX_NODES_PER_GROUP 4
#define SYMBOL_INDEX_CODE_MAX UINT32_MAX /* from the first address with a name to the last */

enum symbol_index_part {
    SYMBOL_INDEX_SEGMENTS,    /* struct symbol_index_segment */
    SYMBOL_INDEX_GROUPS,      /* struct symbol_index_group, by address */
    SYMBOL_INDEX_ROWS,        /* what groups point into */
    SYMBOL_INDEX_NODE_GROUPS, /* 32-bit offsets into the next */
    SYMBOL_INDEX_NODES,
    SYMBOL_INDEX_FUNCTIONS, /* struct symbol_index_function; number 0 is none */
    SYMBOL_INDEX_FILES,     /* 32-bit offsets of names; number 0 is none */
    SYMBOL_INDEX_STRINGS,   /* each ends with a 0; offset 0 is none */
    SYMBOL_INDEX_PART_COUNT,
};

struct symbol_index_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint64_t header_checksum;  /* XXH3 (64 bits) of the header, with 0 in this place */
    uint64_t content_checksum; /* of everything behind the header */
    uint32_t sources;          /* enum symbol_index_source, or'ed */
    uint16_t id_kind, id_bytes;
    uint8_t id[SYMBOL_INDEX_ID_MAX];
    uint64_t base; /* address that those of groups and nodes count from */
    uint64_t code_bytes, named_bytes, line_bytes;
    uint64_t debug_bytes; /* of the sections that it was made from, unpacked */
    uint64_t unit_count, missing_units;
    uint32_t node_count, inlined_count, row_count, reserved;
    struct {
        uint64_t offset, length;
    } parts[SYMBOL_INDEX_PART_COUNT];
};

/* A stretch of the file that is mapped when it runs. */
struct symbol_index_segment {
    uint64_t offset, address, bytes;
    uint32_t is_code, reserved;
};

struct symbol_index_group {
    uint32_t address; /* of its first row, from the base */
    uint32_t offset;  /* of its rows */
};

struct symbol_index_function {
    uint32_t name, system_name; /* offsets of strings */
    uint32_t start_line;
};

/* The low bits of a row's first number say what follows; the others are the distance in bytes from
 * the row before. */
enum {
    SYMBOL_INDEX_ROW_NODE = 1,
    SYMBOL_INDEX_ROW_FILE = 2,
    SYMBOL_INDEX_ROW_LINE = 4,
    SYMBOL_INDEX_ROW_BITS = 3,
};

static inline uint64_t symbol_index_fold(int64_t value)
{
    return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t symbol_index_unfold(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}
