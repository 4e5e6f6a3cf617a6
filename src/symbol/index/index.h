/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbol index: everything that is known about the addresses of one binary, in one file that is
 * mapped and asked. It is made once (index_build.h) and only read after that, by as many threads as
 * like. A query takes two binary searches and the decoding of a few dozen bytes, and allocates
 * nothing. docs/formats/symbol-index.md specifies the file.
 *
 * The file may come from anywhere: what it says is checked where it is used, so that a damaged or
 * hostile one gives wrong names at worst. A file that is cut short while it is mapped is another
 * thing (SIGBUS): indexes are written under another name and never changed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "symbol/index/format.h"
#include "symbol/symbol.h"

/* Where an index has its names from. */
enum symbol_index_source {
    SYMBOL_INDEX_FROM_FUNCTIONS = 1, /* debug information: functions, */
    SYMBOL_INDEX_FROM_LINES = 2,     /* files and lines, */
    SYMBOL_INDEX_FROM_INLINES = 4,   /* and inlined functions */
    SYMBOL_INDEX_FROM_GO = 8,        /* Go's own table */
    SYMBOL_INDEX_FROM_SYMBOLS = 16,  /* .symtab, of the file or its debug file */
    SYMBOL_INDEX_FROM_PACKED = 32,   /* .gnu_debugdata */
    SYMBOL_INDEX_FROM_DYNAMIC = 64,  /* .dynsym */
    SYMBOL_INDEX_FROM_UNWIND = 128,  /* unwind entries: where functions start */
};

/* How good an index is; the greater the better. */
enum symbol_index_quality {
    SYMBOL_INDEX_NOTHING,
    SYMBOL_INDEX_STARTS,  /* of functions only */
    SYMBOL_INDEX_DYNAMIC, /* only what the dynamic linker has to know */
    SYMBOL_INDEX_SYMBOLS,
    SYMBOL_INDEX_NAMED_LINES, /* files and lines */
    SYMBOL_INDEX_INLINES,     /* and inlined functions */
};

enum symbol_index_id {
    SYMBOL_INDEX_ID_NONE,
    SYMBOL_INDEX_ID_GNU, /* bytes */
    SYMBOL_INDEX_ID_GO,  /* text */
};

struct symbol_index {
    const uint8_t *bytes;
    size_t length;
    bool is_mapped;
    const struct symbol_index_header *header;
    const uint8_t *parts[SYMBOL_INDEX_PART_COUNT];
    uint32_t group_count, node_group_count, function_count, file_count;
};

/* Of a file, which is mapped. -EBADMSG when it isn't an index or is damaged, -ENOTSUP for another
 * version, which has to be built again. */
int symbol_index_open(const char *path, struct symbol_index *ret_index, struct error *error);
/* Of bytes, which are borrowed and aligned to 8. */
int symbol_index_open_memory(const void *bytes, size_t length, struct symbol_index *ret_index,
                             struct error *error);
void symbol_index_close(struct symbol_index *index);

/* Reads all of it: checksums, order, every reference. For an index that comes from elsewhere. */
int symbol_index_check(const struct symbol_index *index, struct error *error);

enum symbol_index_quality symbol_index_quality(const struct symbol_index *index);
const char *symbol_index_quality_text(enum symbol_index_quality quality);

/*
 * The functions at an address of the file: the innermost first, each of the others where the one
 * before was inlined into it. Returns their number, at most `most`: beyond that the outer ones are
 * left out. 0: unknown address. Strings live as long as the index. A single frame may have no name:
 * then the start of its function is known, or its line. *ret_start, which may be NULL, is the
 * address of the (outermost) function's first instruction, and 0 when it isn't known.
 */
size_t symbol_index_look_up(const struct symbol_index *index, uint64_t address,
                            struct symbol_frame *frames, size_t most, uint64_t *ret_start);
/* The names of source files that have code, by number, below `file_count`; NULL: none. */
const char *symbol_index_file(const struct symbol_index *index, uint32_t number);
/* The address of a byte of the file; false when it is not mapped, or when the index was made from a
 * debug file alone, which doesn't say. */
bool symbol_index_address(const struct symbol_index *index, uint64_t offset, uint64_t *ret_address);
