/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that holds Ruby's interpreter (CRuby): ruby, or libruby.so. It is recognised by its
 * dynamic symbols.
 */
#pragma once

#include "bpf/runtimes/runtime.h"
#include "elf/file.h"
#include "runtime/memory.h"

struct ruby_binary {
    struct bpf_ruby walk; /* addresses are the file's */
    uint8_t major, minor;
    char version[32];         /* "3.1.2"; "": not known */
    uint64_t evaluate_offset; /* where rb_vm_exec() begins in the file */
    uint64_t module_slot;     /* where the dynamic linker writes the module's number; 0: nowhere */
    /* For user space alone: offsets in the body of a sequence of instructions. */
    uint16_t code_lines, code_line_count, code_line_index;
};

/* False when it has no interpreter. */
bool ruby_binary_find(struct elf_file *file, struct ruby_binary *ret_binary);

enum ruby_attach { RUBY_ATTACHED, RUBY_NOT_YET, RUBY_REFUSED };

/* The binary with a process's addresses; `bias` is what to add to the file's. */
enum ruby_attach ruby_attach(const struct ruby_binary *binary, uint64_t bias,
                             const struct runtime_memory *memory, struct ruby_binary *ret_ruby,
                             const char **ret_reason);
