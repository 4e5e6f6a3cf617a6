/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs through which a binary calls functions of others: no symbol names them, but the entry
 * of the global offset table that each one jumps through has a relocation, and that has a symbol.
 * A stub is called "printf@plt", as gdb and objdump call it.
 */
#pragma once

#include "base/buffer.h"
#include "elf/file.h"

#define PLT_BYTES_MAX (16u << 20) /* of one section of stubs: a million */
#define PLT_RELOCATIONS_BYTES_MAX (192u << 20)

struct plt_stub {
    uint64_t start, end;
    const char *name;     /* the symbol's; NULL when the function has none */
    uint64_t resolver;    /* without a symbol: address of what chooses the function when it runs */
    const char *readable; /* set when first shown; NULL before */
    const char *system;
};

struct plt_stubs {
    struct plt_stub *list; /* by start */
    size_t count, capacity;
    struct buffer strings; /* what the names are in */
};

/* A file without stubs, or without sections, gives none. */
void plt_load(struct plt_stubs *stubs, struct elf_file *file);
void plt_release(struct plt_stubs *stubs);
struct plt_stub *plt_find(const struct plt_stubs *stubs, uint64_t address);
