/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter of call frame programs: turns an FDE into stretches of code in which the caller's
 * frame is found the same way. Only what a walk needs is tracked: the canonical frame address (CFA:
 * the stack pointer before the call), the frame pointer and the return address, and whether the
 * stack pointer is anything but the CFA.
 */
#pragma once

#include "elf/cfi/ehframe.h"

/* gcc nests them once or twice. */
#define CFI_REMEMBERED_MAX 32

enum cfi_where {
    CFI_SAME,          /* the register still has the caller's value; also when nothing was said */
    CFI_UNDEFINED,     /* lost; a return address that is undefined ends the stack */
    CFI_AT_CFA,        /* in memory at CFA + offset */
    CFI_IS_CFA,        /* is CFA + offset itself */
    CFI_IN_REGISTER,   /* in the register `offset` */
    CFI_AT_EXPRESSION, /* in memory at what the expression gives */
    CFI_IS_EXPRESSION,
};

/* A DWARF expression: borrowed bytes of the section. */
struct cfi_expression {
    const uint8_t *bytes;
    size_t length;
};

struct cfi_location {
    enum cfi_where where;
    int64_t offset;
    struct cfi_expression expression;
};

struct cfi_state {
    bool cfa_is_expression;
    bool cfa_known; /* false until a program has said something */
    uint64_t cfa_register;
    int64_t cfa_offset;
    struct cfi_expression cfa_expression;
    struct cfi_location frame_pointer;
    struct cfi_location stack_pointer; /* SAME, which no rule sets, means the CFA */
    struct cfi_location extra;         /* a register that a few functions find their frame by */
    struct cfi_location return_address;
};

/* One stretch of code. */
struct cfi_stretch {
    uint64_t start;
    uint64_t end;
    const struct cfi_state *state; /* of the run: good until the next step */
};

/* The machine's numbers of these registers. */
struct cfi_machine {
    uint64_t frame_pointer;
    uint64_t stack_pointer;
    uint64_t extra;
};

struct cfi_run {
    const struct frame_section *section;
    struct frame_cie cie;
    struct cfi_machine machine;
    struct cursor program;
    uint64_t location;
    uint64_t end;
    bool is_initial; /* running the CIE's own program */
    bool bad;
    struct cfi_state state;
    struct cfi_state initial;
    unsigned remembered_count;
    struct cfi_state remembered[CFI_REMEMBERED_MAX];
};

/* False when the CIE's program makes no sense. `reader` must outlive the run. */
bool cfi_start(struct cfi_run *run, struct frame_reader *reader, const struct frame_fde *fde,
               const struct cfi_machine *machine);

/* The next stretch, of at least one byte: 1, 0 at the FDE's end, or -1 when the rest of the program
 * makes no sense: the code from run->location on has no rule then. */
int cfi_next(struct cfi_run *run, struct cfi_stretch *ret_stretch);
