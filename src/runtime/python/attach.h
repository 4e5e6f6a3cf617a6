/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interpreter in a process: its offsets, and how to find a thread's state, checked against the
 * threads that the interpreter lists. Nothing is written and no thread is stopped.
 */
#pragma once

#include "runtime/python/offsets.h"

struct python_process {
    struct python_offsets offsets; /* with the addresses of this process */
    uint64_t runtime;              /* where _PyRuntime is */
    bool tail_calls;               /* see python_binary: calls are told by their place alone */
    char version[32];
};

enum python_attach {
    PYTHON_ATTACHED,
    PYTHON_NOT_YET, /* the interpreter is starting: try again later */
    PYTHON_REFUSED, /* its structures are not what its version says */
};

/* `bias` is what to add to the file's addresses. */
enum python_attach python_attach(const struct python_binary *binary, uint64_t bias,
                                 const struct runtime_memory *memory,
                                 struct python_process *ret_python, const char **ret_reason);

/* The interpreter's thread state of the thread with this thread pointer; 0: not a Python thread. */
uint64_t python_thread_state(const struct python_process *python,
                             const struct runtime_memory *memory, uint64_t thread_pointer);

/* Whether the thread holds the global interpreter lock at this moment. False where it isn't known,
 * and in free-threaded programs, which have none. */
bool python_holds_lock(const struct python_process *python, const struct runtime_memory *memory,
                       uint64_t thread_pointer);
