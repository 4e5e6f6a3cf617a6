/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of interpreters that samples have met, by identity (bpf/runtimes/runtime.h), with their
 * names: each is read once, as soon as it is known of, by its interpreter's reader. It may be
 * freed, and its memory used for something else, while it is read: a reader succeeds only if the
 * function says the same about itself before and after. One thread at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/idtable.h"
#include "runtime/memory.h"

/* Beyond these, the owner forgets all of them and they are read anew: see runtime_codes_full. */
#define RUNTIME_CODES_MAX (1u << 17)
#define RUNTIME_CODES_BYTES_MAX (24u << 20)
#define RUNTIME_NAME_MAX 512 /* bytes; longer names are cut */
#define RUNTIME_FILE_MAX 1024

/* The members of bpf_code_event: equal at two times means that it is the same function. */
struct runtime_mark {
    uint64_t address, file, name, lines;
    uint32_t first_line;
};

/* Up to `end`, units are of this line; 0: of none. */
struct runtime_line {
    uint32_t end;
    uint32_t line;
};

struct runtime_code {
    const char *function; /* UTF-8, as it is shown; in the arena, as the rest */
    const char *file;     /* "": built in */
    uint32_t first_line;
    const struct runtime_line *lines; /* NULL: a unit is the line */
    uint32_t line_count;
    uint32_t first_unit; /* frames that are not there yet belong to the interpreter's own work */
};

struct runtime_known {
    uint64_t identity;
    uint32_t pid;
    uint32_t kind; /* enum bpf_runtime_kind */
    bool named, ambiguous;
    struct runtime_mark mark;
    struct runtime_code code;
};

struct runtime_codes {
    struct runtime_known *list;
    size_t count, capacity;
    struct id_table index; /* by identity */
    struct arena arena;
    uint64_t named, unreadable; /* so far */
};

/* `context` is the interpreter's; NULL when that isn't known. False when the function isn't the one
 * with this mark any more. */
typedef bool (*runtime_code_read_fn)(const void *context, const struct runtime_memory *memory,
                                     const struct runtime_mark *mark, struct arena *arena,
                                     struct runtime_code *ret_code);

void runtime_codes_release(struct runtime_codes *codes);
void runtime_codes_clear(struct runtime_codes *codes);
bool runtime_codes_full(const struct runtime_codes *codes);

/* Reads a function that was met in the process. */
void runtime_codes_take(struct runtime_codes *codes, runtime_code_read_fn read, const void *context,
                        const struct runtime_memory *memory, const struct runtime_known *met);
/* NULL: it was never met. */
const struct runtime_known *runtime_codes_find(const struct runtime_codes *codes,
                                               uint64_t identity);

/* The identity that user space gives the functions that it meets itself. */
uint64_t runtime_code_identity(uint32_t pid, const struct runtime_mark *mark);

bool runtime_mark_equal(const struct runtime_mark *a, const struct runtime_mark *b);

/* The line of a unit, or 0. BPF_PYTHON_UNIT_MASK stands for the function's first line. */
uint32_t runtime_code_line(const struct runtime_code *code, uint32_t unit);

/* Bytes of another process as text, cut to `limit`: what is not UTF-8, and control characters,
 * become question marks. NULL when they can't be read. */
const char *runtime_read_text(const struct runtime_memory *memory, uint64_t address,
                              uint64_t length, size_t limit, struct arena *arena);
/* "app.rb:handle": the last part of the path, and the name. */
const char *runtime_name_in_file(struct arena *arena, const char *file, const char *name);
