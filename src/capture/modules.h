/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binaries that processes have mapped: their identity and their unwind rows, compiled once each.
 * One thread at a time.
 */
#pragma once

#include "elf/rows.h"

/* A binary, as long as the table lives. */
struct module {
    char *path;     /* as the process sees it */
    char *build_id; /* hex; "" when it has none */
    uint64_t device, inode;
    uint64_t size_bytes;
    bool readable; /* false: nothing is known but its name */
    struct elf_file file;
    struct unwind_rows rows;
};

struct modules {
    struct module **list;
    size_t count, capacity;
    struct id_table index;
    struct unwind_rules rules;
    uint64_t refused; /* beyond MODULES_MAX */
};

#define MODULES_MAX 16384

void modules_init(struct modules *modules);
void modules_release(struct modules *modules);

/*
 * The module of a mapped path. `open_path` is where the file can be opened (under /proc/PID/root
 * for another mount namespace). Returns NULL for what is no file, and for files beyond the limit.
 * "[vdso]" is the vDSO, which is the same in every process.
 */
struct module *modules_get(struct modules *modules, const char *path, const char *open_path);
