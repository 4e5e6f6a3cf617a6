/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own table of its functions, .gopclntab, which the runtime needs and no strip removes: for
 * each address how far the stack pointer has moved, the function, file and line, and the calls that
 * were inlined there. docs/formats/gopclntab.md has the layouts.
 *
 * A table is read into memory once, checked, and then only read: several threads may ask. Addresses
 * are the file's own. Nothing in it is believed: offsets are checked where they are used, and what
 * an answer costs is bounded by the function's length and by GOPCLNTAB_STEPS_MAX. x86-64 only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "elf/cursor.h"
#include "elf/file.h"

#define GOPCLNTAB_BYTES_MAX (256u << 20) /* the largest programs have about 60 MiB */
#define GOPCLNTAB_STEPS_MAX (1u << 20)   /* for one answer; real ones take thousands */
#define GOPCLNTAB_NAME_MAX 65536
#define GOPCLNTAB_INLINES_MAX (128u << 20) /* of what inline trees are in */

enum gopclntab_layout {
    GOPCLNTAB_1_2,  /* up to Go 1.15 */
    GOPCLNTAB_1_16, /* and 1.17 */
    GOPCLNTAB_1_18, /* and 1.19 */
    GOPCLNTAB_1_20, /* and later */
};

/* Borrowed bytes. */
struct gopclntab_part {
    const uint8_t *bytes;
    size_t length;
};

struct gopclntab {
    struct buffer content; /* with a 0 behind it, so that every name ends */
    struct buffer inlines; /* what is read of the program's function data, if it is elsewhere */
    enum gopclntab_layout layout;
    uint64_t address;
    uint64_t text; /* where offsets of functions count from; 0 where they are addresses */
    uint32_t function_count;
    uint8_t quantum; /* what distances between instructions are counted in */
    struct gopclntab_part names, files, units, values, functions, trees;
};

/*
 * Finds and reads the table of a file: by its section, and in a file that looks like Go's without
 * one, by its first bytes. -ENOENT when the file has no table, which is not an error.
 */
int gopclntab_load(struct elf_file *file, struct gopclntab *ret_table, struct error *error);
void gopclntab_release(struct gopclntab *table);
#define _cleanup_gopclntab_ _cleanup_(gopclntab_release)

/* Where in memory a table is, and what the program's module data says about it. */
struct gopclntab_place {
    uint64_t address;
    uint64_t text;      /* 0: the table says it itself, as it did up to Go 1.25 */
    uint64_t functions; /* where function data begins, with the inline trees; 0: not known */
};

/* The same from a table's bytes, which are taken over when it succeeds. Function data is used when
 * it is in these bytes, as since Go 1.26. */
int gopclntab_parse(struct buffer *content, const struct gopclntab_place *place,
                    struct gopclntab *ret_table, struct error *error);

size_t gopclntab_bytes(const struct gopclntab *table);

/* ---- functions ---- */

enum {
    GOPCLNTAB_TOP_FRAME = 1, /* has no caller; marked since Go 1.17 */
    GOPCLNTAB_SP_WRITE = 2,  /* puts another value into sp: `sp_values` don't say all */
};

struct gopclntab_function {
    uint64_t start;
    uint64_t end;     /* where the next one starts, so padding belongs to it */
    const char *name; /* lives with the table; "" when it can't be read */
    uint32_t flags;
    uint32_t start_line; /* since Go 1.20; 0 when not known */
    /* Offsets of tables of values; 0 is no table. */
    uint32_t sp_values, file_values, line_values, inline_values;
    uint32_t unit; /* whose numbers of files count */
    uint32_t tree; /* offset of the inline tree */
    bool has_tree;
};

/* By number, in the order of addresses; false when the table is damaged there. */
bool gopclntab_function(const struct gopclntab *table, uint32_t number,
                        struct gopclntab_function *ret_function);
/* The function that an address is in. */
bool gopclntab_find(const struct gopclntab *table, uint64_t address,
                    struct gopclntab_function *ret_function);

/* ---- values ---- */

/* A table of values by address: `value` holds from `start` up to `end`. */
struct gopclntab_run {
    struct cursor cursor;
    uint64_t start, end;
    uint64_t limit; /* the function's end */
    uint32_t steps;
    int32_t value;
    uint8_t quantum;
};

void gopclntab_run_start(struct gopclntab_run *run, const struct gopclntab *table,
                         const struct gopclntab_function *function, uint32_t values);
/* The next stretch, of at least one byte; false at the end, or where the table makes no sense. */
bool gopclntab_run_next(struct gopclntab_run *run);

/* ---- names ---- */

/* The pointers live with the table. */
struct gopclntab_frame {
    const char *name;
    const char *file; /* NULL when not known */
    uint32_t line;    /* 0 when not known */
    uint32_t start_line;
};

/* The functions at an address: the innermost first, all but the last inlined into the next. Returns
 * their number, at most `limit`; 0 when no function of the table has the address. Beyond the limit
 * those in the middle are left out. */
size_t gopclntab_frames(const struct gopclntab *table, uint64_t address,
                        struct gopclntab_frame *frames, size_t limit);
