/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a frame, as a profile holds it (a file and an offset in it), to a function's name. Each file
 * is read once, under any number of names; the number of files and their memory are limited. All
 * returned pointers live as long as the symbolizer. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/jit/jit.h"
#include "symbol/symbol.h"

#define SYMBOLIZER_FILES_MAX 1024
#define SYMBOLIZER_PATHS_MAX 16384 /* names of files, those without symbols among them */
#define SYMBOLIZER_BYTES_MAX (1ull << 30)

struct symbolizer;

/* Why names are missing; counted once for each file. */
struct symbolizer_stats {
    uint64_t files;        /* that were read */
    uint64_t unreadable;   /* that could not be */
    uint64_t mismatched;   /* with another build ID than the program that ran */
    uint64_t refused;      /* requests for files beyond a limit */
    uint64_t bytes;        /* of all tables, without readable names */
    uint64_t too_large;    /* files of which tables were left out: symbolizer_limit_file() */
    uint64_t debug_files;  /* whose debug information was read */
    uint64_t debug_failed; /* whose could not be: damaged, too large, too slow */
    uint64_t late;         /* that were left unread because the watch said so, or of which only
                              symbols were read */
};

/*
 * To be called first thing in main(): when this process was started to read debug information, does
 * so and doesn't return. Programs that don't call it must have one thread when they look something
 * up (confined.h).
 */
void symbolizer_enter(int argc, char **argv);

struct symbolizer *symbolizer_new(void);
void symbolizer_free(struct symbolizer *symbolizer);

/* From now on names come from symbol tables alone: no children are started to read debug
 * information, for callers that need an answer at once. Before the first query. */
void symbolizer_use_tables_only(struct symbolizer *symbolizer);

/* Asked before files are read and a few times a second meanwhile; once it says no, files that are
 * not read yet are left out, and counted as late. */
typedef bool symbolizer_watch_fn(void *context, size_t files_done, size_t files);
void symbolizer_watch(struct symbolizer *symbolizer, symbolizer_watch_fn *watch, void *context);
bool symbolizer_goes_on(struct symbolizer *symbolizer, size_t files_done, size_t files);

/* The tables of one file take at most so much: what is larger is left out, and counted. */
void symbolizer_limit_file(struct symbolizer *symbolizer, uint64_t limit_bytes);

/*
 * `path` is where the file can be opened now, such as /proc/PID/root/usr/bin/x. With `build_id`
 * (lower-case hexadecimal; NULL when not known), a file that has another or none is not used.
 * Offsets are those in the file; the symbol's start is an address in the file's own terms.
 */
bool symbolizer_find(struct symbolizer *symbolizer, const char *path, const char *build_id,
                     uint64_t file_offset, struct symbol *ret_symbol);

/*
 * The same file for many queries; NULL when there is nothing to be had. Debug information is read
 * for what was wanted before symbolizer_look_up, all of a file's addresses at once and several
 * files at the same time.
 */
struct symbolizer_file;
struct symbolizer_file *symbolizer_file(struct symbolizer *symbolizer, const char *path,
                                        const char *build_id);
/* The offset in the file of an address as the linker gave it; false when no segment has it. */
bool symbolizer_file_offset(const struct symbolizer_file *file, uint64_t address,
                            uint64_t *ret_offset);
void symbolizer_want(struct symbolizer_file *file, const uint64_t *file_offsets, size_t count);
void symbolizer_look_up(struct symbolizer *symbolizer);

/* The function and those inlined there; 0 without a name. Without symbolizer_look_up, only the
 * symbol tables' names. */
size_t symbolizer_file_frames(struct symbolizer_file *file, uint64_t file_offset,
                              struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX]);
bool symbolizer_file_find(struct symbolizer_file *file, uint64_t file_offset,
                          struct symbol *ret_symbol);

bool symbolizer_find_kernel(struct symbolizer *symbolizer, uint64_t address,
                            struct symbol *ret_symbol);
/* Why the kernel's functions have no names, in a sentence; NULL when they have. */
const char *symbolizer_kernel_reason(struct symbolizer *symbolizer);

/* The source of names of the kernel's addresses, instead of /proc/kallsyms. The symbol's pointers
 * live until the next query. The context must outlive the symbolizer. */
typedef bool symbolizer_kernel_fn(void *context, uint64_t address, struct symbol *ret_symbol);
void symbolizer_ask_kernel(struct symbolizer *symbolizer, symbolizer_kernel_fn *fn, void *context);

/* Takes over a list of the kernel's functions that is used instead of its own /proc/kallsyms. */
struct kernel_symbols;
void symbolizer_set_kernel(struct symbolizer *symbolizer, struct kernel_symbols *symbols);

/* Where names of code that is in no file come from; stays the caller's, and must outlive it. */
void symbolizer_set_jit(struct symbolizer *symbolizer, struct jit_names *jit);
bool symbolizer_find_jit(struct symbolizer *symbolizer, uint32_t pid, uint64_t address,
                         struct symbol_frame *ret_frame, enum frame_kind *ret_kind);

struct symbolizer_stats symbolizer_stats(const struct symbolizer *symbolizer);
