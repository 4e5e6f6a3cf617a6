/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that holds V8: node, or a program or library that has it linked in with the constants that
 * it exports for debuggers (symbols that begin with v8dbg_). They have all offsets, so nothing has
 * to be read of a process before its frames can be.
 */
#pragma once

#include "bpf/runtimes/runtime.h"
#include "elf/file.h"

struct v8_binary {
    struct bpf_v8 walk;
    /* For user space alone: types of objects, */
    uint16_t shared_type, script_type, scope_type;
    uint16_t first_other_type;            /* strings are below it */
    uint16_t string_length, string_chars; /* offsets */
    uint16_t script_name, script_source;
    uint16_t scope_locals, scope_first; /* numbers of words in a ScopeInfo */
    char version[32];                   /* of V8: "11.3" */
};

/* False when the file has no V8, or one whose pointers are compressed. */
bool v8_binary_find(struct elf_file *file, struct v8_binary *ret_binary);
