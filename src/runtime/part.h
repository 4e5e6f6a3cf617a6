/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of an interpreter's evaluation function: compilers move what is rarely run elsewhere,
 * and some interpreters have their instructions in a function of its own. */
#pragma once

#include "elf/file.h"

/* The part of a function that the compiler has moved away; unchanged when there is none. */
void runtime_find_part(struct elf_file *file, const uint64_t function[2], uint64_t ret_part[2]);

/* The largest function that this one calls; unchanged when none has `least` bytes. */
void runtime_find_callee(struct elf_file *file, const uint64_t function[2], uint64_t least,
                         uint64_t ret_callee[2]);
