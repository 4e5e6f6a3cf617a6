/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the readers of source maps and of mapping files. Private to src/symbol. */
#pragma once

#include "base/idtable.h"
#include "symbol/maps/map.h"

struct symbol_map_builder {
    struct buffer texts;    /* each ends with a 0; the first is empty */
    struct id_table known;  /* hash of a text -> number */
    uint32_t *text_offsets; /* by number */
    size_t text_count, text_capacity;
    struct symbol_map_place {
        uint32_t line; /* generated, from 0 */
        uint32_t order;
        struct symbol_map_segment segment;
    } * places;
    size_t place_count, place_capacity;
    struct symbol_map_class *classes;
    size_t class_count, class_capacity;
    struct symbol_map_method *methods;
    size_t method_count, method_capacity;
    struct buffer file; /* what a source map says it is of */
};

/* The offset of a text, 0 for an empty one; bytes behind a 0 are left out. */
uint32_t symbol_map_intern(struct symbol_map_builder *builder, const char *text, size_t length);

/* Each reads all of the source. */
int sourcemap_read(struct source *source, struct symbol_map_builder *builder, struct error *error);
int proguard_read(struct source *source, struct symbol_map_builder *builder, struct error *error);

/* Of a file, as if its field `checksum` were 0. */
uint64_t symbol_map_checksum(const void *bytes, size_t length);
