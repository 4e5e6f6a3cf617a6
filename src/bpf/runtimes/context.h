/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The request that a thread works on: what BPF programs and user space share. Programs publish it
 * in a record that a thread-local variable points to (OTEP 4947); Go programs in the labels of
 * goroutines. User space says where in a process that is, and the ids come with each sample; the
 * rest of a record, its attributes, is sent once and known by its hash from then on.
 */
#pragma once

enum bpf_context_kind {
    BPF_CONTEXT_THREAD = 1, /* a variable of threads */
    BPF_CONTEXT_GO = 2,     /* goroutines */
};

/* How to find a thread's variable. */
enum bpf_context_way {
    BPF_CONTEXT_STATIC, /* at a fixed distance from the thread pointer */
    BPF_CONTEXT_GLIBC,  /* through the thread's vector of modules, each with two words */
    BPF_CONTEXT_MUSL,   /* ... with one */
};

/* The record begins with ids and two flags, then the attributes' length and they themselves. */
#define BPF_RECORD_HEADER 28
#define BPF_RECORD_VALID 24
#define BPF_RECORD_FLAGS 25
#define BPF_RECORD_SIZE 26
#define BPF_RECORD_BYTES 640 /* with attributes: what is beyond is left out */
#define BPF_RECORD_AT_ONCE 128

struct bpf_thread_context {
    unsigned int way; /* enum bpf_context_way */
    unsigned int module;
    long long offset; /* from the thread pointer, or in the module's block */
};

/* Offsets in structures of Go's runtime. */
struct bpf_go {
    int g;                   /* from the thread pointer to the address of the running goroutine */
    unsigned short g_m;      /* goroutine: its thread */
    unsigned short m_curg;   /* thread: the goroutine whose work it does */
    unsigned short g_labels; /* goroutine: its labels */
    unsigned short list;     /* labels are a list, since 1.24, and not a map */
};
#define BPF_GO_LABELS_MAX 8 /* of a goroutine; in a map, they are one bucket */

struct bpf_context {
    unsigned int generation; /* as in bpf_process.context; 0: the place is free */
    unsigned int kinds;      /* a bit for each enum bpf_context_kind */
    struct bpf_thread_context thread;
    struct bpf_go go;
};

/* bpf_process.context: a place in the table and its generation; 0: none. */
#define BPF_CONTEXTS_MAX 4096 /* a power of two */
#define BPF_CONTEXT_BITS 12

/* Hashes of attributes that user space knows, as for stacks (BPF_KNOWN_SHIFT). */
#define BPF_KNOWN_ATTRIBUTES_SHIFT 14
#define BPF_KNOWN_ATTRIBUTES_MAX (1u << BPF_KNOWN_ATTRIBUTES_SHIFT)

/* Attributes that were met for the first time: of a thread's record as they are, {key, length,
 * value}...; of a goroutine {length of the name, length of the value, name, value}... */
#define BPF_ATTRIBUTE_BYTES (BPF_RECORD_BYTES - BPF_RECORD_HEADER)
#define BPF_ATTRIBUTE_WORDS 80
struct bpf_attributes_event {
    unsigned int kind; /* BPF_EVENT_ATTRIBUTES */
    unsigned short bytes;
    unsigned short source; /* enum bpf_context_kind */
    unsigned int context;  /* as in struct bpf_process */
    unsigned int unused;
    unsigned long long hash;
    /* They follow. */
};
