/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a name map, as docs/formats/name-map.md specifies it, for its writer and its
 * reader. Numbers are little-endian; texts are offsets into the part of texts, 0 means no text. */
#pragma once

#include <stdint.h>

#define SYMBOL_MAP_MAGIC "assaymap"
#define SYMBOL_MAP_VERSION 1
#define SYMBOL_MAP_ANY_LINE UINT32_MAX

enum symbol_map_part {
    SYMBOL_MAP_TEXTS,    /* each ends with a 0 */
    SYMBOL_MAP_LINES,    /* of each generated line the number of its first segment, and one more */
    SYMBOL_MAP_SEGMENTS, /* struct symbol_map_segment, by line and column */
    SYMBOL_MAP_CLASSES,  /* struct symbol_map_class, by name */
    SYMBOL_MAP_METHODS,  /* struct symbol_map_method, by class and name, then in the file's order */
    SYMBOL_MAP_PART_COUNT,
};

struct symbol_map_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t file_bytes;
    uint64_t checksum; /* XXH3 (64 bits) of the whole file, with 0 in this place */
    uint32_t kind;     /* enum symbol_map_kind */
    uint32_t tenant, service, service_version, name; /* texts */
    uint32_t reserved;
    uint64_t source_bytes; /* of the file that it was made from */
    int64_t added;         /* seconds since 1970 */
    struct {
        uint64_t offset, length;
    } parts[SYMBOL_MAP_PART_COUNT];
};

/* Of a source map: from this column of the generated line on. */
struct symbol_map_segment {
    uint32_t column;                     /* from 0 */
    uint32_t source;                     /* text; 0: generated code without a source */
    uint32_t source_line, source_column; /* from 1 */
    uint32_t name;                       /* text: what the source calls what stands here */
};

/* Of a ProGuard or R8 mapping. */
struct symbol_map_class {
    uint32_t name, original; /* texts; `name` is what the class is called at run time */
    uint32_t file;           /* text */
    uint32_t first_method, method_count;
};

struct symbol_map_method {
    uint32_t name, original;                /* texts */
    uint32_t original_class;                /* text; 0: the class that it is listed in */
    uint32_t first_line, last_line;         /* at run time; 0 and SYMBOL_MAP_ANY_LINE: any */
    uint32_t original_first, original_last; /* 0: not known */
};
