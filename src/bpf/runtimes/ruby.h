/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ruby's frames: what BPF programs and user space share. See ruby.bpf.h for the walk. */
#pragma once

#define BPF_RUBY_FRAME_BYTES 40 /* of a control frame, up to its environment */
#define BPF_RUBY_CODE_BYTES 128 /* of a sequence of instructions, up to its first line */

/* Flags of an environment. */
#define BPF_RUBY_FINISH 0x20 /* the first frame of a call of the evaluation function */
#define BPF_RUBY_NATIVE 0x80 /* a function in C */

/* Addresses are the process's, offsets are bytes. */
struct bpf_ruby {
    unsigned long long evaluate[2]; /* rb_vm_exec(): from, to */
    unsigned long long cold[2];     /* the function with the instructions, which it calls */
    unsigned int tls_module;        /* the thread's state, by its module's number, */
    int tls_offset;                 /* and there; from the thread pointer where that is 0 */
    unsigned short frame_bytes;     /* from one control frame to its caller's */
    unsigned short code_first_line;
    unsigned short first_line_shift; /* 1: it is a small integer of Ruby's */
    unsigned short unused;
};

/* A frame's bpf_code_event: address: the instruction sequence; lines: its body; file, name:
 * strings. Unit: the word of the instruction. */
