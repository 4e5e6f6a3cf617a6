/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind rows and rules: exactly what user space and BPF programs share, in plain C types without
 * pointers. docs/formats/unwind-rows.md explains them. Raise UNWIND_RULE_VERSION with every change
 * of a size, a field or a number below: tables of another version are built again.
 *
 * The names are the machine's roles, not its registers: src/arch says which they are. CFA is the
 * caller's stack pointer just after this frame returns.
 */
#pragma once

#define UNWIND_RULE_VERSION 3

/* Rows are kept by pages of code: a page's offsets fit into 16 bits with room to spare, and about
 * 70 rows are found in six steps. */
#define UNWIND_PAGE_SHIFT 12
#define UNWIND_PAGE_BYTES (1u << UNWIND_PAGE_SHIFT)

/* Rules are numbered by 16 bits. Whole machines have about 1,000. */
#define UNWIND_RULES_MAX 65535

/* 4 bytes: from `offset` in its page on, until the next row or the page's end, the rule holds. */
struct unwind_row {
    unsigned short offset;
    unsigned short rule;
};

/* How the CFA, and by it the caller's ip, is found. Unless said otherwise the caller's ip is the
 * 8 bytes below the CFA, and the caller's sp is the CFA. */
enum unwind_cfa {
    UNWIND_CFA_NONE = 0, /* code without unwind information: try fp as a frame pointer, which is a
                            guess in code that was not built for it */
    UNWIND_CFA_END = 1,  /* the thread's first function, without a caller */
    UNWIND_CFA_UNSUPPORTED = 2, /* there is a rule, and it can't be said in this form */
    UNWIND_CFA_SP = 3,          /* sp + cfa_offset */
    UNWIND_CFA_FP = 4,          /* fp + cfa_offset */
    UNWIND_CFA_REGISTER = 5,    /* the register `argument` (DWARF number) + cfa_offset: can be
                                   followed where that register is known: in the innermost frame,
                                   and the base where it is tracked */
    UNWIND_CFA_PLT = 6,         /* sp + cfa_offset + ((ip & 15) >= argument ? 8 : 0): a stub of the
                                   procedure linkage table, before and after its push */
    UNWIND_CFA_AT_SP = 7,       /* the 8 bytes at sp + cfa_offset, plus 8 * argument */
    UNWIND_CFA_AT_FP = 8,       /* the 8 bytes at fp + cfa_offset, plus 8 * argument: functions that
                                   align their stack */
    UNWIND_CFA_SIGNAL = 9,      /* a signal's trampoline: the interrupted sp is at sp + cfa_offset,
                                   its ip 8 bytes behind it, its fp 40 and its base 32 bytes before
                                   it; the ip is exact, no return address */
    UNWIND_CFA_IP_IN_REGISTER = 10, /* sp + cfa_offset, and the caller's ip is in the register
                                       `argument`: innermost frame only, as for REGISTER */
    UNWIND_CFA_OTHER_STACK = 11, /* fp + cfa_offset, on another stack, which may be below this one
                                    too, and which a copy of this one doesn't have */
    UNWIND_CFA_CLONE = 12, /* sp + cfa_offset, behind the system call that starts a thread: when the
                              word below is no return address, this is the new thread, which has
                              come from nowhere */
    UNWIND_CFA_LOST = 13,  /* code without unwind information that sets no frame pointer up: fp may
                              be its caller's, which would be left out */
};

/* Where the caller's fp is. */
enum unwind_fp {
    UNWIND_FP_SAME = 0,   /* still in fp */
    UNWIND_FP_AT_CFA = 1, /* at CFA + 8 * fp_slot */
    UNWIND_FP_AT_FP = 2,  /* at fp + 8 * fp_slot; but where fp is not below the CFA, it has the
                             caller's value still or again */
    UNWIND_FP_LOST = 3,   /* nowhere that can be said: rules that need it fail from here on */
    UNWIND_FP_AT_SP = 4,  /* at sp + 8 * fp_slot */
};

/*
 * Where the caller's base register is. Lazy binding finds its frame by it and calls other functions
 * of the loader meanwhile; so in the one or two files that have such code it is tracked, and in all
 * others it is not.
 */
enum unwind_base {
    UNWIND_BASE_UNKNOWN = 0,
    UNWIND_BASE_SAME = 1, /* 2 to 15: at CFA - 8 * that */
};

/* 8 bytes, so that one load brings a rule in and no rule lies across two cache lines. */
struct unwind_rule {
    unsigned char cfa;      /* enum unwind_cfa */
    unsigned char saved;    /* low four bits enum unwind_fp, high four enum unwind_base */
    unsigned char argument; /* see enum unwind_cfa; else 0 */
    signed char fp_slot;    /* in units of 8 bytes: 1 KiB either way; what is farther is LOST */
    int cfa_offset;         /* bytes */
};

#define UNWIND_SAVED_FP(saved) ((saved)&15)
#define UNWIND_SAVED_BASE(saved) ((saved) >> 4)

/* The first rules of every table. */
enum { UNWIND_RULE_NONE = 0, UNWIND_RULE_END = 1, UNWIND_RULE_UNSUPPORTED = 2 };

/* ---- walking ---- */

/* How a walk ended. */
enum unwind_end {
    UNWIND_END_COMPLETE,    /* the thread's first frame was reached */
    UNWIND_END_TRUNCATED,   /* the copy of the stack ends before the stack does, or memory of it
                               could not be read */
    UNWIND_END_NO_MAPPING,  /* an address outside of the process's code */
    UNWIND_END_NO_ROWS,     /* code without unwind information, and fp isn't a frame pointer */
    UNWIND_END_UNSUPPORTED, /* a rule that can't be followed here */
    UNWIND_END_LOOP,        /* the next frame is not above this one */
    UNWIND_END_LIMIT,       /* more frames than there is room for */
    UNWIND_END_NO_TABLE,    /* in the kernel: the rows are not there (yet, or any more) */
    UNWIND_END_STALE,       /* in the kernel: by mappings that had been replaced */
};
#define UNWIND_END_KINDS (UNWIND_END_STALE + 1)

/* Registers by DWARF number. */
#define UNWIND_REGISTERS 17

/* Handlers that are interrupted in turn, and changes of the stack; more is a stack that leads
 * around in a circle, which only these can, since the next stack may be anywhere. */
#define UNWIND_SIGNAL_FRAMES_MAX 64
