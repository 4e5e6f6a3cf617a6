/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that holds a CPython interpreter: the executable, libpython, or a program that has it
 * linked in. It is recognised by its dynamic symbols, which stripping leaves in place.
 */
#pragma once

#include "elf/file.h"

struct python_binary {
    uint8_t major, minor, micro;
    char version[32];         /* "3.11.2" */
    uint64_t runtime;         /* file addresses: _PyRuntime, */
    uint64_t code_type;       /* PyCode_Type, */
    uint64_t evaluate[2];     /* _PyEval_EvalFrameDefault, */
    uint64_t cold[2];         /* and the part of it that the compiler has moved elsewhere */
    uint64_t evaluate_offset; /* where it begins in the file */
    /* Instructions are functions that call each other (an option of 3.14): the evaluation function
     * is small, and part of those that call it. */
    bool tail_calls;
};

/* `path` is what the file is called. False when it has no interpreter. One whose version can't be
 * told has major 0. */
bool python_binary_find(struct elf_file *file, const char *path, struct python_binary *ret_binary);
