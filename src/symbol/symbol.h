/* SPDX-License-Identifier: Apache-2.0 */
/* The name and place of an address. */
#pragma once

#include <stdint.h>

/* The pointers belong to what gave them: a table, or the symbolizer that holds it. */
struct symbol {
    const char *name;        /* for people; NULL when only the start is known */
    const char *system_name; /* the linker's; NULL when it is the same */
    const char *module;      /* the kernel's module; NULL for the rest */
    uint64_t start;          /* address of the function's first instruction, in the file's terms */
    uint64_t size_bytes;
    uint64_t distance; /* of what was looked up from the start */
};

/*
 * One line of what an address stands for. Of the frames of an address, the innermost function comes
 * first, and all but the last are inlined into the next. The file is the one that `line` is in.
 */
struct symbol_frame {
    const char *name;        /* for people; never NULL */
    const char *system_name; /* the linker's; NULL when it is the same or not known */
    const char *file;        /* NULL when not known */
    uint32_t line;           /* 0 when not known */
    uint32_t start_line;     /* where the function begins; 0 when not known */
};

#define SYMBOL_FRAMES_MAX 128 /* of one address; compilers stop inlining far below */
