/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a symbol index (index.h) of a binary: from its debug information (DWARF 2 to 5, compressed
 * or not, split or not, shared by dwz or not), its symbol tables, Go's own table, its linkage stubs
 * and unwind entries. Files come from anywhere, so all of that is done by a child process that can
 * do nothing else (confined.h), and what it says is checked.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "symbol/confined.h"
#include "symbol/debugfile.h"
#include "symbol/index/index.h"

#define SYMBOL_INDEX_MEMORY_MAX (4ull << 30)      /* of the child, beside its files */
#define SYMBOL_INDEX_MEMORY_RATIO 32              /* and for each of their bytes */
#define SYMBOL_INDEX_BYTES_MAX (2ull << 30)       /* of an index */
#define SYMBOL_INDEX_SPLIT_MAX 65536              /* files that a program was split into, */
#define SYMBOL_INDEX_SPLIT_BYTES_MAX (8ull << 30) /* and all of them together */

/* Descriptors are open for reading; -1 where there is none. */
struct symbol_index_input {
    int file;    /* the binary, or its debug file alone */
    int debug;   /* its separate debug file */
    int shared;  /* what dwz put into a file of its own */
    int package; /* what the program was split into, as a .dwp */
    /* A file that the compiler split off (.dwo): its name as the compiler gave it, and the
     * directory that it ran in, which may be empty. Gives a descriptor, which is taken over, or -1.
     * May be NULL. */
    int (*find_split)(void *context, const char *folder, const char *name);
    void *context;
    /* NULL, or another child than symbol_index_program: for tests of what becomes of its death. */
    const struct confined_program *program;
};

/* 0 and the index; or what stands in the way. -EBADMSG: the file is damaged, or its reader did not
 * survive it; -E2BIG: it is beyond a limit. */
int symbol_index_build(const struct symbol_index_input *input, struct buffer *ret_index,
                       struct error *error);

/* The same for a file by name, with what belongs to it found as debuggers find it: the debug file
 * (debugfile.h), dwz's, FILE.dwp, and .dwo files where they were made or beside the file. `debug`
 * may be NULL. */
int symbol_index_build_path(const char *path, const char *debug, struct buffer *ret_index,
                            struct error *error);

/* Files that belong to a file by name, found in the same way; -1 for the rest.
 * symbol_index_close_input closes them. `path` has to outlive the input. */
struct symbol_index_found {
    struct symbol_index_input input;
    char build_id[BUILD_ID_TEXT_BYTES]; /* of the file */
    bool has_debug_info;                /* anywhere */
};
int symbol_index_find(const char *path, const char *debug, struct symbol_index_found *ret_found,
                      struct error *error);
void symbol_index_close_input(struct symbol_index_input *input);

/* All .dwo files of a program in one (index_splits.h); *ret_fd is -1 if none was found. *ret_units
 * is how many there should be. A package makes them unnecessary. */
int symbol_index_collect_splits(const struct symbol_index_input *input, int *ret_fd,
                                size_t *ret_units, struct error *error);

/* ---- a few addresses of many files at once ---- */

/* Fills in a job whose answer says what debug information knows about the wanted addresses, which
 * are sorted: an index of the units that these are in, and of nothing else. */
int symbol_names_ask(const struct symbol_index_input *input, const uint64_t *wanted, size_t count,
                     struct confined_job *job, struct error *error);
/* The index that a finished job answered, checked. */
int symbol_names_take(struct confined_job *job, struct buffer *ret_index,
                      struct symbol_index *ret_opened, struct error *error);

/* The children, for confined_enter. */
extern const struct confined_program symbol_index_program, symbol_names_program,
    symbol_index_split_program;

/* ---- inside: what the child does, for tests and fuzzers (index_make.c) ---- */

struct symbol_index_bytes {
    const void *bytes;
    size_t length;
};

struct symbol_index_content {
    struct symbol_index_bytes file, debug, shared, package;
    struct symbol_index_bytes splits; /* all .dwo files in one (index_splits.h) */
    /* Sorted. Where there are any, units without one of them are not read, and only debug
     * information is. */
    const uint64_t *wanted;
    size_t wanted_count;
};

int symbol_index_make(const struct symbol_index_content *content, struct buffer *ret_index,
                      struct error *error);
/* Appends for each file that the binary was split into an id of 8 bytes and two texts that end with
 * a 0: directory and name. */
int symbol_index_list_splits(const struct symbol_index_content *content, struct buffer *ret_list,
                             struct error *error);
