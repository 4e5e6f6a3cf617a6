/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that src/elf knows about x86-64: register numbers, which call frame states become which
 * rules, the stubs that linkers write. Another machine is another such file.
 */
#pragma once

#include "elf/cfi/cfi.h"
#include "elf/unwind_rule.h"

/* DWARF's numbers. */
enum { X86_64_RBX = 3, X86_64_RBP = 6, X86_64_RSP = 7, X86_64_RIP = 16, X86_64_REGISTERS = 17 };

extern const struct cfi_machine x86_64_machine;

/* The rule of a state; UNWIND_CFA_UNSUPPORTED when there is none. rbx is tracked only when that is
 * asked for: it makes more rules and more rows. */
struct unwind_rule x86_64_rule(const struct cfi_state *state, bool signal_frame, bool with_rbx);

/* True for rules that can only be followed where rbx was tracked. */
bool x86_64_needs_rbx(const struct unwind_rule *rule);

/* The rule for a section of linkage stubs that has no call frame information of its own, as some
 * linkers leave it. `stub` is the second 16 bytes of the section, the first stub that is not the
 * common one. False when the section is none, or its stubs are not known. */
bool x86_64_plt_rule(const char *section_name, const uint8_t stub[16],
                     struct unwind_rule *ret_rule);

/* Is this .init or .fini, by its first and last bytes? The linker puts them together from pieces of
 * assembly, of which the first makes room on the stack in `ret_entered` bytes, and the last takes
 * it back and returns. */
bool x86_64_is_init(const uint8_t first[8], const uint8_t last[5], uint32_t *ret_entered);

/* Is this the code between `syscall` and the first code of a new thread, as C libraries have it?
 * They end their call frame information before it, since two threads come back there. The two bytes
 * behind `length` are the new thread's. The rule is for all of it. */
#define X86_64_CLONE_BYTES_MAX 32
bool x86_64_clone_rule(const uint8_t *code, size_t length, struct unwind_rule *ret_rule);
