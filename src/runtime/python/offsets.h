/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython keeps what a walk needs, by version. From 3.13 on the interpreter says so itself,
 * at the start of _PyRuntime; for 3.8 to 3.12 there is a table. Both are checked against the
 * process (attach.h) before they are used.
 */
#pragma once

#include "bpf/runtimes/runtime.h"
#include "runtime/memory.h"
#include "runtime/python/binary.h"

struct python_offsets {
    struct bpf_python walk; /* all of its offsets; the addresses are 0 */
    /* For user space alone. */
    uint16_t runtime_interpreters; /* _PyRuntime: the first interpreter */
    uint16_t interpreter_next, interpreter_threads;
    uint16_t thread_next, thread_interpreter, thread_id;
    /* Who holds the global interpreter lock: up to 3.11 a field of _PyRuntime; later the lock,
     * which an interpreter has a pointer to. BPF_PYTHON_NONE: not in this version. */
    uint16_t runtime_holder;
    uint16_t interpreter_lock, lock_held, lock_holder;
    uint16_t lock_enabled;             /* of free-threaded builds alone */
    uint16_t code_qualified_name;      /* BPF_PYTHON_NONE before 3.11, */
    uint16_t code_first_unit;          /* likewise; and where it isn't known */
    uint16_t text_header, wide_header; /* bytes before the characters of ASCII and other strings */
    uint16_t text_length, text_state;
    uint16_t bytes_length, bytes_header;
    uint8_t text_state_shift; /* free-threaded 3.14 keeps a byte where others have two bits */
    uint8_t minor;            /* of the version */
    bool free_threaded;
};

/* The offsets of a version; `runtime` is where _PyRuntime is in the process. False, with the reason
 * in a sentence, when they are not known. */
bool python_offsets_get(const struct python_binary *binary, const struct runtime_memory *memory,
                        uint64_t runtime, struct python_offsets *ret_offsets,
                        const char **ret_reason);
