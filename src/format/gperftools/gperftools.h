/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiles of gperftools and its relatives: what gperftools.c (the binary CPU profile),
 * gperftools_text.c (heap, contention and count profiles), gperftools_lines.c (their lines),
 * gperftools_maps.c (memory maps) and gperftools_stage.c (stacks until all is known) share.
 *
 * These files give stacks of bare addresses first and say only at the end what was mapped where.
 * Distinct stacks are staged in a profile of their own until then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "io/source.h"
#include "profile/profile.h"

struct gperftools_map {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    const char *file;     /* in the arena; may be empty */
    const char *build_id; /* in the arena; may be empty */
    bool extended;        /* an address was found before its start: it begins at offset 0 */
    uint32_t mapping;     /* in the profile, once one is needed */
};

/* A line of source at an address. The innermost comes first; the others it was inlined into. */
struct gperftools_symbol {
    uint32_t function; /* in the profile */
    uint32_t line;
    uint32_t next; /* index + 1; 0: none */
};

/* Symbols in the text for the address of a staged frame. */
struct gperftools_address {
    uint32_t first_symbol; /* index + 1; 0: none */
    uint32_t last_symbol;
    uint32_t symbol_count;
    bool listed; /* the text names it, perhaps without a symbol */
};

#define GPERFTOOLS_VARIABLES_MAX 16

struct gperftools {
    struct profile *profile; /* where it all goes */
    struct profile staged;   /* stacks of frames that have an address and nothing else */
    bool java;               /* symbols replace addresses */
    uint64_t line;           /* of the text, for messages */
    struct arena text;

    struct gperftools_map *maps; /* in the file's order */
    size_t map_count, map_capacity;
    struct {
        const char *name, *value;
    } variables[GPERFTOOLS_VARIABLES_MAX]; /* `build=/path` lines, for `$build` in maps */
    size_t variable_count;

    struct gperftools_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    struct gperftools_address *addresses; /* by staged frame */
    size_t address_capacity;

    /* Go's symbol lines that are being read: the first of those with the current address. */
    struct buffer group;
    uint64_t group_address;
    bool group_open; /* further lines with the address tell something new */

    uint32_t *frames; /* of the stack that is being read */
    size_t frame_count, frame_capacity;
};

/* With `staged_types` sample types in the staged profile. */
void gperftools_init(struct gperftools *reader, struct profile *profile, unsigned staged_types);
void gperftools_release(struct gperftools *reader);
#define _cleanup_gperftools_ __attribute__((cleanup(gperftools_release)))

/* The next address of a stack, from the innermost on, as it is to be looked up. */
void gperftools_add_address(struct gperftools *reader, uint64_t address);

/* The staged node of the addresses added since the last call. */
uint32_t gperftools_take_stack(struct gperftools *reader);

/* A symbol for an address, innermost line first. `name` may be NULL: only listed. */
void gperftools_add_symbol(struct gperftools *reader, uint64_t address, const char *name,
                           size_t name_length, const char *file, size_t file_length, uint32_t line);

/* Lines of text: gperftools_lines.c. Each is false when the line is not such a one, and takes lines
 * without white space at the ends. */

/* " 0x83 com.example.Main.run (Main.java:12)": a line of Java's table of addresses. */
bool gperftools_java_location(struct gperftools *reader, const char *line, size_t length);

/* "#\t0x46f6d0\tmain.run+0x2f\t/src/main.go:12": Go's comments after a stack. */
bool gperftools_go_symbol(struct gperftools *reader, const char *line, size_t length);

/* The following lines belong to another stack. */
void gperftools_end_symbols(struct gperftools *reader);

/* " 0x1234 0x5678": a stack, innermost first; each address moves by `adjust`. */
bool gperftools_stack(struct gperftools *reader, const char *text, size_t length, int adjust);

/* "0x1234 PC 0x5678": adds all addresses in a line to the stack that is being read; all but its
 * first, the innermost, are return addresses, and are moved onto the call. False when one has more
 * than 64 bits. */
bool gperftools_add_addresses(struct gperftools *reader, const char *text, size_t length);

/* Whether a symbol was added for the address, or it was named without one. */
bool gperftools_is_listed(struct gperftools *reader, uint64_t address);

/* Reads memory maps until the end of the source. */
int gperftools_read_maps(struct gperftools *reader, struct source *source, struct error *error);

/* Pointers to the maps by address, for the caller to free, and the one that holds an address. */
struct gperftools_map **gperftools_sort_maps(const struct gperftools *reader);
struct gperftools_map *gperftools_find_map(struct gperftools_map **sorted, size_t count,
                                           uint64_t address);

/* Moves all staged rows into the profile. Staged type i becomes types[i]; a duration of 0 is
 * unknown. */
void gperftools_finish(struct gperftools *reader, int64_t duration_ns, const unsigned *types,
                       unsigned type_count);

/* -E2BIG with a sentence when too much was read, otherwise 0. */
int gperftools_check_full(const struct gperftools *reader, struct error *error);
