/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of the HotSpot virtual machine: what BPF programs and user space share. Offsets come from
 * the machine's own tables (src/runtime/hotspot/structs.h). See hotspot.bpf.h for the walk.
 */
#pragma once

#define BPF_HOTSPOT_HEAPS 4          /* parts of the code cache; real ones have 1 or 3 */
#define BPF_HOTSPOT_BLOB_BYTES 384   /* room for a compiled method's header */
#define BPF_HOTSPOT_HOPS 64          /* in the segment map: 2 MiB of code */
#define BPF_HOTSPOT_SEGMENT_FREE 255 /* what the segment map has for memory without code */

/* A piece of the code cache. */
struct bpf_hotspot_heap {
    unsigned long long low, high;
    unsigned long long segments; /* the map: a byte for each segment */
    unsigned int shift;          /* of a segment's size */
    unsigned int unused;
};

/* A virtual machine in a process. Addresses are the process's, offsets are bytes. */
struct bpf_hotspot {
    unsigned long long low, high; /* of the whole code cache */
    unsigned long long interpreter[2];
    unsigned long long call_stub; /* where Java returns to the native code that called it */
    struct bpf_hotspot_heap heaps[BPF_HOTSPOT_HEAPS];
    unsigned short block_header; /* before each piece of code */
    unsigned short blob_bytes;   /* of its header, up to the last field of interest */
    unsigned short blob_name, blob_frame_size, blob_frame_complete, blob_code;
    unsigned short nmethod_method, nmethod_compile_id, nmethod_deopt, nmethod_original_pc;
    unsigned short method_const;
    unsigned short const_bytes; /* of a ConstMethod: bytecodes follow */
    short frame_method, frame_bytecode;
    unsigned char short_complete; /* blob_frame_complete has 2 bytes, not 4 */
    unsigned char code_offset;    /* blob_code is an offset from the blob, not an address; */
    unsigned char deopt_offset;   /* likewise nmethod_deopt */
    unsigned char unused;
};

/* bpf_code_event.first_line of a frame of HotSpot. The event's other members: */
enum bpf_hotspot_code {
    BPF_HOTSPOT_INTERPRETED = 1, /* address: Method; file: ConstMethod. Unit: the bytecode index */
    BPF_HOTSPOT_COMPILED = 2,    /* address: nmethod; file: Method; lines: the compilation's number.
                                    Unit: the offset from the beginning of the code */
    BPF_HOTSPOT_STUB = 3,        /* address: CodeBlob; name: its name. Unit: 0 */
};
