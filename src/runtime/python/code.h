/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code object of another process: function, file and lines. It may be freed, and its memory used
 * for something else, while it is read: what was read counts only if the object says the same about
 * itself before and after.
 */
#pragma once

#include "runtime/codes.h"
#include "runtime/python/attach.h"

#define PYTHON_NAME_MAX 512 /* characters; longer names are cut */
#define PYTHON_FILE_MAX 1024
#define PYTHON_LINES_MAX 4096 /* stretches of one function; what follows has no line */
#define PYTHON_LINE_TABLE_MAX (256u << 10)

/* The mark of the object at an address: its file, name and table of lines are objects. False when
 * it isn't a code object. */
bool python_code_mark(const struct python_process *python, const struct runtime_memory *memory,
                      uint64_t address, struct runtime_mark *ret_mark);

/* "main.py:handler"; of a package's own file, "json/__init__.py:loads". */
const char *python_function_name(struct arena *arena, const char *file, const char *name);

/* A runtime_code_read_fn; the context is a struct python_process. The function's name is qualified
 * where the version has that; units are of two bytes of bytecode. */
bool python_code_read(const void *context, const struct runtime_memory *memory,
                      const struct runtime_mark *mark, struct arena *arena,
                      struct runtime_code *ret_code);
