/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of interpreters and virtual machines: what BPF programs and user space share. A process
 * whose runtime is known has a description (struct bpf_runtime), found by a number in its struct
 * bpf_process. Python, PHP, Ruby: when the native walk reaches the interpreter's evaluation
 * function, the frames that this call evaluates are added before the native one (evaluation.bpf.h).
 * HotSpot: frames in its code cache are walked by what the machine knows of its code
 * (hotspot.bpf.h). V8: its frames have a pointer to their function (v8.bpf.h).
 */
#pragma once

#include "bpf/runtimes/hotspot.h"
#include "bpf/runtimes/php.h"
#include "bpf/runtimes/ruby.h"
#include "bpf/runtimes/v8.h"

/*
 * A frame of a runtime is one word, here for Python: this bit, without BPF_FRAME_RAW; the identity
 * of its code object, 42 bits; and the instruction in it, in units of two bytes. The identity is a
 * hash of the process, the object's address and what it says about itself, so that another object
 * at the same address has another identity. Each identity is sent once, in a struct bpf_code_event.
 * HotSpot's frames are the same but for the unit, which hotspot.h has.
 */
#define BPF_FRAME_PYTHON (1ull << 62)
#define BPF_PYTHON_UNIT_BITS 20
#define BPF_PYTHON_UNIT_MASK ((1ull << BPF_PYTHON_UNIT_BITS) - 1)
#define BPF_PYTHON_IDENTITY_MASK ((1ull << 42) - 1)
#define BPF_IS_PYTHON(word) (((word) >> 62) == 1)
/* Identity 0: here are frames that the walk could not read. The unit is the runtime's kind. */
#define BPF_PYTHON_UNREAD BPF_FRAME_PYTHON

/* How the frames of one call of the evaluation function are told from its caller's. */
enum bpf_python_entry {
    BPF_PYTHON_ENTRY_EACH,  /* 3.8 to 3.10: each call evaluates one frame */
    BPF_PYTHON_ENTRY_FLAG,  /* 3.11: the first frame of a call has a flag */
    BPF_PYTHON_ENTRY_FRAME, /* 3.12 on: a call begins with a frame of its own, on the C stack */
};

#define BPF_PYTHON_FRAME_BYTES 128 /* room for a frame, up to the last field of interest */
#define BPF_PYTHON_CODE_BYTES 192  /* likewise, for a code object */
#define BPF_PYTHON_NONE 0xffff     /* an offset that this version doesn't have */

/* An interpreter in a process. Addresses are the process's, offsets are bytes. */
struct bpf_python {
    unsigned int unused_word;
    unsigned char entry;        /* enum bpf_python_entry */
    unsigned char unit_shift;   /* of frame_unit, where the frame has a number and not an address */
    unsigned char tag_mask;     /* bits of the code's address that are not part of it */
    unsigned char tsd_indirect; /* the thread-specific data is behind a pointer at tsd_offset */
    unsigned long long evaluate[2]; /* the evaluation function: from, to */
    unsigned long long cold[2];   /* and the part that the compiler has moved away; may be empty */
    unsigned long long code_type; /* what the type of each code object points to */
    int tsd_offset;               /* from the thread pointer to the address of its state, */
    int tsd_second;               /* or behind the pointer there */
    unsigned short thread_frame;  /* thread state: its frame */
    unsigned short thread_cframe; /* ... its C frame, or none */
    unsigned short cframe_frame;  /* C frame: its frame; none: the thread state has it */
    unsigned short cframe_previous;
    unsigned short frame_bytes;
    unsigned short frame_code;
    unsigned short frame_previous;
    unsigned short frame_instruction; /* an address, */
    unsigned short frame_unit;        /* or an int; the other is none */
    unsigned short frame_entry;       /* the flag, or the owner */
    unsigned short code_bytes;
    unsigned short code_type_at;
    unsigned short code_first_line;
    unsigned short code_file;
    unsigned short code_name;
    unsigned short code_lines;
    unsigned short code_instructions; /* where they begin, in code objects that hold them */
    unsigned short unused[5];
};

/* The owner of an entry frame is this value or above. */
#define BPF_PYTHON_OWNER_ENTRY 3

enum bpf_runtime_kind {
    BPF_RUNTIME_PYTHON = 1,
    BPF_RUNTIME_HOTSPOT = 2,
    BPF_RUNTIME_V8 = 3,
    BPF_RUNTIME_PHP = 4,
    BPF_RUNTIME_RUBY = 5,
};

struct bpf_runtime {
    unsigned int generation; /* as in bpf_process.runtime; 0: the place is free */
    unsigned int kind;       /* enum bpf_runtime_kind */
    union {
        struct bpf_python python;
        struct bpf_hotspot hotspot;
        struct bpf_v8 v8;
        struct bpf_php php;
        struct bpf_ruby ruby;
    };
};

/* bpf_process.runtime: a place in the table and its generation; 0: no interpreter. */
#define BPF_RUNTIMES_MAX 4096 /* a power of two */
#define BPF_RUNTIME_BITS 12
#define BPF_RUNTIME_GENERATION_SHIFT BPF_RUNTIME_BITS

/* Code objects that user space knows, as for stacks (BPF_KNOWN_SHIFT). */
#define BPF_KNOWN_CODES_SHIFT 15
#define BPF_KNOWN_CODES_MAX (1u << BPF_KNOWN_CODES_SHIFT)

/* A code object that was met for the first time. What it says about itself lets user space notice
 * that another one has taken its place meanwhile. */
struct bpf_code_event {
    unsigned int kind; /* BPF_EVENT_CODE */
    unsigned int pid;
    unsigned long long identity;
    unsigned long long address;
    unsigned long long file, name, lines; /* addresses of objects */
    unsigned int first_line;
    unsigned int runtime; /* as in struct bpf_process */
};
