/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code object of another process: function, file and lines. It may be freed, and its memory used
 * for something else, while it is read: what was read counts only if the object says the same about
 * itself before and after.
 */
#pragma once

#include "base/arena.h"
#include "runtime/python/attach.h"

#define PYTHON_NAME_MAX 512 /* characters; longer names are cut */
#define PYTHON_FILE_MAX 1024
#define PYTHON_LINES_MAX 4096 /* stretches of one function; what follows has no line */
#define PYTHON_LINE_TABLE_MAX (256u << 10)

/* Fields of a code object: equal at two times means that it is the same object. */
struct python_code_mark {
    uint64_t address;
    uint64_t file, name, lines; /* objects */
    uint32_t first_line;
};

/* Up to `end` (a unit of two bytes), instructions are of this line; 0: of none. */
struct python_line {
    uint32_t end;
    uint32_t line;
};

struct python_code {
    const char *name; /* UTF-8, qualified where the version has that; in the arena, as the rest */
    const char *file;
    uint32_t first_line;
    const struct python_line *lines;
    uint32_t line_count;
    uint32_t first_unit; /* frames that are not there yet belong to the interpreter's own work */
};

/* The mark of the object at an address; false when it isn't a code object. */
bool python_code_mark(const struct python_process *python, const struct runtime_memory *memory,
                      uint64_t address, struct python_code_mark *ret_mark);

/* False when the object is not, or is not any more, the one with this mark. */
bool python_code_read(const struct python_process *python, const struct runtime_memory *memory,
                      const struct python_code_mark *mark, struct arena *arena,
                      struct python_code *ret_code);

/* The line of an instruction, or 0. */
uint32_t python_code_line(const struct python_code *code, uint32_t unit);
