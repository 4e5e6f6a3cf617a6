/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a frame, as a profile holds it (a file and an offset in it), to a function's name. Each file
 * is read once, whatever it is called; how many, and what they take, is limited. All pointers that
 * are given live as long as the symbolizer. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbol/symbol.h"

#define SYMBOLIZER_FILES_MAX 1024
#define SYMBOLIZER_PATHS_MAX 16384 /* names of files, those without symbols among them */
#define SYMBOLIZER_BYTES_MAX (1ull << 30)

struct symbolizer;

/* What could not be named, for whoever asks why; counted once for each file. */
struct symbolizer_figures {
    uint64_t files;      /* that were read */
    uint64_t unreadable; /* that could not be */
    uint64_t mismatched; /* with another build ID than the program that ran */
    uint64_t refused;    /* requests for files beyond a limit */
    uint64_t bytes;      /* of all tables, without readable names */
};

struct symbolizer *symbolizer_new(void);
void symbolizer_free(struct symbolizer *symbolizer);

/*
 * `path` is where the file can be opened now, such as /proc/PID/root/usr/bin/x. With `build_id`
 * (lower-case hexadecimal; NULL when not known), a file that has another or none is not used.
 * Offsets are those in the file; the symbol's start is an address in the file's own terms.
 */
bool symbolizer_find(struct symbolizer *symbolizer, const char *path, const char *build_id,
                     uint64_t file_offset, struct symbol *ret_symbol);

bool symbolizer_find_kernel(struct symbolizer *symbolizer, uint64_t address,
                            struct symbol *ret_symbol);
/* Why the kernel's functions have no names, in a sentence; NULL when they have. */
const char *symbolizer_kernel_reason(struct symbolizer *symbolizer);

struct symbolizer_figures symbolizer_figures(const struct symbolizer *symbolizer);
