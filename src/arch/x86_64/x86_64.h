/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that src/elf knows about x86-64: register numbers, which call frame states become which
 * rules, the stubs that linkers write. Another machine is another such file.
 */
#pragma once

#include "arch/x86_64/registers.h"
#include "elf/cfi/cfi.h"
#include "elf/unwind_rule.h"

/* DWARF's numbers. */
enum {
    X86_64_RBX = REGISTER_BASE,
    X86_64_RBP = REGISTER_FP,
    X86_64_RSP = REGISTER_SP,
    X86_64_RIP = REGISTER_IP,
    X86_64_REGISTERS = REGISTERS
};

extern const struct cfi_machine x86_64_machine;

/* The rule of a state; UNWIND_CFA_UNSUPPORTED when there is none. rbx is tracked only when that is
 * asked for: it makes more rules and more rows. */
struct unwind_rule x86_64_rule(const struct cfi_state *state, bool signal_frame, bool with_base);

/* True for rules that can only be followed where rbx was tracked. */
bool x86_64_needs_base(const struct unwind_rule *rule);

/*
 * The rules for a section of linkage stubs that has no call frame information of its own, as some
 * linkers leave it: each from an offset in the section, the last one to its end. `start` is how the
 * section begins; 16 bytes suffice for a section without a common stub, 48 for all. False when the
 * section is not one of linkage stubs, or their form is unknown.
 */
#define X86_64_PLT_START_BYTES 48
struct x86_64_plt {
    unsigned count;
    struct {
        uint32_t offset;
        struct unwind_rule rule;
    } parts[4];
};
bool x86_64_plt_rules(const char *section_name, const uint8_t *start, size_t length,
                      struct x86_64_plt *ret_plt);

/*
 * The target of a stub of the procedure linkage table, in the forms that linkers write:
 * `jmp *slot(%rip)`, maybe with a prefix and behind a landing pad; or, in the table that lazy
 * binding begins in, `push index; jmp`. The mold linker loads the index into r11 first; stubs
 * against speculation load the slot into it. False for all else.
 */
struct x86_64_plt_stub {
    uint64_t slot;  /* of the global offset table */
    uint32_t index; /* of the relocation, where the stub has that instead */
    bool by_index;
};
bool x86_64_plt_stub(const uint8_t *bytes, size_t length, uint64_t address,
                     struct x86_64_plt_stub *ret_stub);

/* Where Go's code has saved the caller's rbp below the return address, in bytes behind the place
 * where a frame of that size is first there: since Go 1.21 behind `push %rbp`, before it in front
 * of `mov %rbp,n(%rsp)`. `code` begins one byte before that place. False when it is not saved. */
bool x86_64_go_saves_fp(const uint8_t code[9], uint32_t frame, uint32_t *ret_bytes);

/* The length of an instruction that loads rsp, by the forms that Go's assembler writes; 0 for all
 * else. */
size_t x86_64_sp_write_bytes(const uint8_t code[4]);

/* Is this .init or .fini, by its first and last bytes? The linker puts them together from pieces of
 * assembly, of which the first makes room on the stack in `ret_entered` bytes, and the last takes
 * it back and returns. */
bool x86_64_is_init(const uint8_t first[8], const uint8_t last[5], uint32_t *ret_entered);

/* Is this the code between `syscall` and the first code of a new thread, as C libraries have it?
 * They end their call frame information before it, since two threads come back there. The two bytes
 * behind `length` are the new thread's. The rule is for all of it. */
#define X86_64_CLONE_BYTES_MAX 32
bool x86_64_clone_rule(const uint8_t *code, size_t length, struct unwind_rule *ret_rule);
