/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of V8's JavaScript: what BPF programs and user space share. Offsets come from the
 * constants that V8 exports for debuggers (src/runtime/v8/binary.h). See v8.bpf.h for the walk.
 */
#pragma once

/* Room for a function or its SharedFunctionInfo, up to the fields below. */
#define BPF_V8_BYTES 64

/* Offsets are bytes, of objects from their beginning: pointers to them have a tag of 1. */
struct bpf_v8 {
    short frame_context; /* from the frame pointer */
    short frame_function;
    unsigned short map_type;         /* of a map: the type of its objects, 2 bytes */
    unsigned short function_type[2]; /* of functions: first, last */
    unsigned short function_shared;
    unsigned short shared_name, shared_script;
};

/* A frame's bpf_code_event: address: SharedFunctionInfo; name: its name or ScopeInfo; file: its
 * Script. Unit: 0. */
